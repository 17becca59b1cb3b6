/* The problem on a working set, and the methods that minimize it (inner.c, newton.c, coordinates.c, blocks.c). */
#ifndef INNER_H
#define INNER_H

#include "groupowl.h"

#include <string.h>

#define GO_MEMORY 3
#define GO_ANDERSON 5
/* Workspace of the eigenvalues of a matrix, in its rows. */
#define GO_EIGEN_WORK 34

/* How a method ended. */
enum { GO_ON, GO_DONE, GO_SLOW, GO_PAUSED };

typedef struct {
    double tight;   /* gap at which to stop */
    double loose;   /* gap at which to stop after free_steps */
    int free_steps;
    int max_steps;
} go_goal;

typedef struct {
    const go_blas *blas;
    const go_loss *loss;
    int n, q;
    int fixed;              /* leading rows without penalty: 1 with an intercept, else 0 */
    int rows, units;        /* rows in all; units of the others */
    const int *start;       /* first row of each unit, counted after the fixed ones, or NULL */
    const double *lam;      /* of the units */
    double *A;              /* (n, rows) by columns */
    double *G;              /* A^T A, columns `ldg` apart; NULL: products with A */
    int ldg;
    const go_data *sparse;  /* products with A are those with the columns `feature` of these data; or NULL */
    const int *feature;
    const double *row_scale;
    double *sparse_work;    /* 2 q, and n q where there is a row scale */
    double column_work;     /* what a product with a column costs, in numbers of a dense one: n, or less */
    const double *Y, *w;    /* of losses that are not quadratic */
    double *B;              /* coefficients */
    double *C;              /* minus the gradient of the loss there */
    double value, penalty;  /* loss and J at B */
    double gap;
    double lipschitz;       /* curvature for the next step, 0 if not known */
    int steps;
    go_goal goal;
    double recent[GO_MEMORY]; /* past objectives, which a step may compare itself with */
    int n_recent;
    double largest;         /* largest curvature seen */
    double halved_gap;      /* when the gap was last found to have halved, */
    int halved_at;          /* and after how many steps */
    int newton_size;        /* largest system of a Newton step; 0: no such steps */
    int (*pause)(void *);   /* not zero: stop; called every few steps */
    void *pause_argument;
    /* memory */
    double *V, *move, *image;              /* rows x q; the first (3 rows + 1) q + rows, the second (rows + 5) q */
    double *Z, *theta, *balanced;          /* n x q, at least 2 q */
    double *norms, *shrunk, *blocks;       /* units */
    int *order, *work, *pattern;           /* units, 3 x units, units */
    double *past_B, *past_C;               /* GO_ANDERSON + 1 times rows x q; of blocks n x q for the second */
    double *curvatures;                    /* n x q, of losses that are not quadratic */
    double *vectors, *values;              /* blocks.c: rows x largest_unit, rows; or NULL */
    int *factored, largest_unit;           /* units: whether their vectors and values are known */
    double *eigen_work;                    /* GO_EIGEN_WORK largest_unit */
    double *cluster_sums;                  /* n x newton_size */
    double *system;                        /* 2 newton_size^2 + 5 newton_size */
} go_inner;

/* Minimize from B to the goal; `guess` (rows x q, or NULL) is the start where it is better. How it ended. */
int go_minimize(go_inner *p, go_goal goal, double *guess);
/* The residual of coefficients: Z = A B, theta, and the loss, for losses that are not quadratic. */
double go_evaluate(go_inner *p, const double *B, double *theta);
void go_predict(const go_inner *p, const double *B, double *Z);
void go_correlate(const go_inner *p, const double *theta, double *C);

/* What methods share: a look at the gap, and whether to go on; going to a point if it is better, and whether it was. */
int go_verdict(go_inner *p);
int go_move_to(go_inner *p, const double *V);
int go_has_equal_weights(const go_inner *p);
double go_penalty_of(const go_inner *p, const double *B);
double go_gap_of(go_inner *p);

/* The methods: a Newton step, not zero if it helped; cycles of coordinate descent to the end, by rows or by units. */
int go_pattern_step(go_inner *p);
int go_coordinate_cycles(go_inner *p);
int go_block_cycles(go_inner *p);
int go_suits_blocks(const go_inner *p); /* whether the last one serves */

/* Anderson extrapolation of GO_ANDERSON + 1 iterates of `size` numbers: its weights, 0 if there are none, and the same
 * combination of other iterates, the first of which does not count. */
int go_anderson_weights(const go_blas *blas, size_t size, const double *past, double *weights);
void go_mix(size_t size, const double *past, const double *weights, double *mixed);

#endif
