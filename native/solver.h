/* A solve in progress: the whole problem, and the working set with its choice (working_set.c), which solve.c uses. */
#ifndef SOLVER_H
#define SOLVER_H

#include "inner.h"

#include <time.h>

/* Rounds in which the gap must halve: then all units join, and if that does not help the kernel gives up. */
#define HALVING_ROUNDS 5
/* Accuracy of an inner solve relative to the gap at its start, and the finest one where rounds make little headway. */
#define INNER_RTOL 0.1
#define FINEST_RTOL 1e-3

typedef struct {
    const go_data *data;
    const go_task *task;
    go_inner p;              /* the working set; p.B are the coefficients */
    double *lam;             /* current weights, n_units */
    double *row_scale;       /* square roots of the sample weights, quadratic losses only; or NULL */
    double *center;          /* q: what was taken off the targets */
    double *Y, *w;
    double *samples;         /* n x q: theta times the row scale */
    double *sums;            /* q */
    double *C;               /* d x q: X^T theta */
    double *norms;           /* its unit norms */
    int *place;              /* of each unit in the working set, or -1 */
    int *found, *scratch;    /* n_units, 3 n_units */
    int *unit, *start;       /* of the working set: which unit, where its rows begin */
    int *feature;            /* of each row of the working set */
    double *before, *guess;  /* coefficients of the solve before, and where they lead */
    double *converted;
    double *gram;            /* A^T A */
    int newton_size;         /* largest system of a Newton step */
    int gram_rows;           /* rows whose Gram matrix is known */
    double constant;         /* value of the column of the intercept */
    double position, position_before; /* of the last two solves along a path */
    double passes;
    double work;             /* operations since the last look at the clock */
    clock_t called;          /* time of the last call of `interrupted` */
    int stopped;
} go_solver;

/* What the rounds of a solve remember. */
typedef struct {
    int joining;         /* violators that may join in one round */
    int violators;       /* of the last look */
    int cut;             /* more of them than could join: another round is certain */
    int everything;      /* the working set has all units */
    double relative;     /* accuracy of the next inner solve */
    double last_gap;
    double inner_gap;    /* on the working set, after the last inner solve */
    double halved_gap;   /* when the gap was last found to have halved, */
    int rounds;          /* and rounds since then */
} go_choice;

static inline int go_most(int a, int b)
{
    return a > b ? a : b;
}

int go_unit_first(const go_data *data, int unit);
/* Units outside of the working set that could be non-zero if the residual were that of the optimum. */
int go_violators(go_solver *s);
/* Append a unit with zero coefficients; 0 if there is no room. */
int go_join(go_solver *s, int unit);
/* The next working set after a round that ended with this gap; 0 if there is no room. */
int go_choose(go_solver *s, go_choice *c, double gap);
/* Set p.G to the Gram matrix of the working set where it pays, else to NULL. */
void go_set_gram(go_solver *s, const go_choice *c);
void go_fit_constant(go_solver *s);
/* When an inner solve is good enough. */
go_goal go_inner_goal(const go_solver *s, const go_choice *c, double goal, double gap, int steps_left);

#endif
