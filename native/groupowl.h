/* The compiled kernel of groupowl: it proposes coefficients, Python proves what they are worth.
 *
 * One call is one solve, or one path of many weights, of
 *
 *     F(X B + b0) + sum_i lam_i ||B_[i]||,      lam non-increasing, B_[i] the unit with the i-th largest norm,
 *
 * with X in memory (or squared loss by its sufficient statistics). Nothing here is believed: a fault costs time, never
 * a wrong proof. No global state, no allocation: all memory is the caller's. BLAS and LAPACK are handed in.
 *
 * Arrays have a row per feature (coefficients, correlations) or per sample (targets, residuals) of `q` numbers each,
 * one row after the other; matrices of columns of X are stored by columns. theta = -grad F always (a "residual"). A
 * unit of the penalty is one row of coefficients, or several that follow each other.
 */
#ifndef GROUPOWL_H
#define GROUPOWL_H

#include <stddef.h>
#include <stdlib.h> /* __GLIBC__ below */

#if defined(_WIN32)
#define GO_EXPORT __declspec(dllexport)
#else
#define GO_EXPORT __attribute__((visibility("default")))
#endif

/* ---- What the caller hands in --------------------------------------------------------------------------------- */

typedef struct {
    void (*dgemm)(char *, char *, int *, int *, int *, double *, double *, int *, double *, int *, double *, double *,
                  int *);
    void (*dgemv)(char *, int *, int *, double *, double *, int *, double *, int *, double *, double *, int *);
    void (*dsyrk)(char *, char *, int *, int *, double *, double *, int *, double *, double *, int *);
    void (*dpotrf)(char *, int *, double *, int *, int *);
    void (*dpotrs)(char *, int *, int *, double *, int *, double *, int *, int *);
    void (*dsyev)(char *, char *, int *, double *, int *, double *, double *, int *, int *);
} go_blas;

/* A loss F(Z) = sum_i w_i f_i(Z_i); see losses.c. */
typedef struct {
    int quadratic; /* F(Z) = 1/2 ||Y - Z||^2 with weights 1: Gram matrices serve, and nothing below `dual` is needed */
    /* F(Z), and theta = -grad F(Z) */
    double (*evaluate)(int n, int q, const double *Z, const double *Y, const double *w, double *theta);
    /* D(scale * theta) = -F*(-scale * theta), minus infinity outside of its domain */
    double (*dual)(int n, int q, const double *theta, double scale, const double *Y, const double *w);
    /* theta moved inside the domain so that each column sums to zero, as an intercept asks; work: 2 q */
    void (*balance)(int n, int q, double *theta, const double *Y, const double *w, double *work);
    /* intercept of the model without features */
    void (*null_intercept)(int n, int q, const double *Y, const double *w, double *intercept);
    /* H (n, q): second derivatives of w_i f_i, each task on its own, where the dual point is theta */
    void (*curvatures)(int n, int q, const double *theta, const double *Y, const double *w, double *H);
    /* bound on the second derivatives of each f_i where predictors differ by at most 1 from those of theta */
    double (*curvature_near)(int n, int q, const double *theta, const double *Y, const double *w);
    /* size of the terms that cancel inside the loss */
    double (*cancelling)(int n, int q, const double *Z, const double *w);
} go_loss;

enum { GO_DENSE_F64, GO_DENSE_F32, GO_CSC_F64, GO_CSC_F32, GO_GRAM };

/* The data. Column j of the problem is (x_j - mean_j) / scale_j. GO_GRAM: X is the Gram matrix (d, d), Y is X^T Y
 * (d, q), y_square is ||Y||^2, n = d, and nothing else is given. */
typedef struct {
    int n, d, q;
    int kind;
    int by_rows;            /* dense: whether rows are contiguous, not columns */
    ptrdiff_t stride;       /* dense: elements between two rows (by_rows) or columns */
    const void *X;          /* dense, or the non-zero entries */
    const void *start;      /* sparse: where columns begin, d + 1 numbers of int32, or int64 if wide */
    const void *index;      /* sparse: their samples */
    int wide;
    const double *mean;     /* d, or NULL for 0 */
    const double *scale;    /* d, or NULL for 1 */
    const double *Y;        /* (n, q), rows contiguous */
    const double *weight;   /* n sample weights, or NULL for 1 */
    double y_square;
    int intercept;          /* columns must be centered by their weighted mean then */
    int n_units;
    const int *unit_start;  /* n_units + 1 rows, or NULL: every row is a unit */
    const go_loss *loss;
} go_data;

enum { GO_CONVERGED, GO_MAX_STEPS, GO_GAVE_UP, GO_INTERRUPTED, GO_NO_ROOM, GO_NOT_RUN };

/* One solve or a path of several, from the first weights to the last, each from the solution before. */
typedef struct {
    int n_lam;
    const double *lam;      /* (n_lam, n_units), or (n_units) if alpha is given */
    const double *alpha;    /* n_lam factors of lam, or NULL */
    const double *goal;     /* n_lam: gap to reach */
    double least_loss;      /* the first solve whose loss is not above it is the last */
    int max_steps;          /* of each solve */
    int capacity;           /* most rows of a working set */
    int gram_capacity;      /* most rows whose Gram matrix is kept */
    int (*interrupted)(void); /* called every 50 ms at most; not zero: stop. May be NULL */
    int n_init;             /* rows of the start */
    const int *init_row;
    const double *init_B;   /* (n_init, q) */
    const double *init_intercept; /* q, or NULL for that of the null model */
    const double *init_C;   /* (d, q): X^T theta at the start, where it is known, or NULL; squared loss only */
    int unchecked;          /* end without a product with all of X once the working set's own gap is small enough: the
                               caller looks at the whole problem anyway, and starts again from what it sees there. On a
                               path each solve but the first begins with that product */
    /* results */
    int room;               /* rows that fit into row and B, over all solves */
    int *first;             /* n_lam + 1: rows of solve k are first[k] .. first[k + 1] - 1 */
    int *row;               /* (room) which rows are not zero */
    double *B;              /* (room, q) their coefficients, of the columns as they are above */
    double *intercept;      /* (n_lam, q), of these columns */
    double *gap;            /* n_lam: estimates, not proofs */
    double *passes;         /* n_lam: products with all of X */
    int *steps;             /* n_lam */
    int *status;            /* n_lam */
    int *peak;              /* 1: most rows of a working set */
} go_task;

GO_EXPORT const char *go_stamp(void);
GO_EXPORT const char *go_compiler(void);
GO_EXPORT const go_loss *go_loss_squared(void);
GO_EXPORT const go_loss *go_loss_multinomial(void);
GO_EXPORT const go_loss *go_loss_logistic(void);
GO_EXPORT const go_loss *go_loss_poisson(void);
/* Bytes of memory that a task needs. */
GO_EXPORT size_t go_workspace(const go_data *data, const go_task *task);
/* The number of solves that were run; if `size` is too small, minus the bytes that are needed, and nothing is done. */
GO_EXPORT ptrdiff_t go_solve(const go_data *data, const go_task *task, const go_blas *blas, void *work, size_t size);

/* ---- Certificates (certificate.c) -------------------------------------------------------------------------------- */

/* Dense or sparse data; Y of squared loss is centered already where there is an intercept. */
typedef struct {
    const double *lam;             /* n_units */
    const double *norms;           /* d: norms of the columns */
    const double *rounding_norms;  /* d: of the numbers that are really multiplied */
    double y_norm;                 /* norm of the targets, with what was taken off them */
    double product_error;          /* errors of products and of scales, where statistics stand for the data */
    double scale_error;
    int n_rows;                    /* non-zero rows of B */
    const int *row;
    const double *B;
    const double *constant;        /* q: the intercept where it is a coefficient, or NULL */
    /* results */
    double *theta;                 /* (n, q), balanced, not scaled */
    double *raw;                   /* the same before it was balanced, where the intercept is a coefficient */
    double *products;              /* (d, q): X^T theta */
    double *correlations;          /* n_units: their norms */
    double *excess;                /* d: memory */
    double loss, primal, dual, gap, rounding;
    double gauge, scale;           /* scale * theta is feasible */
    double product, square, norm;  /* <theta, Y> for squared loss, sum of theta^2 / w, its root */
    double reach;
    double dual_error;             /* the part of the rounding that is an error of the dual value */
    double cancelling;             /* size of the terms that cancel inside the loss */
    double imbalance, balancing;   /* what balancing left, and what it changed */
} go_certificate;

GO_EXPORT size_t go_certificate_workspace(const go_data *data);
GO_EXPORT void go_certify(const go_data *data, go_certificate *certificate, const go_blas *blas, void *work);

/* ---- Whole fits (fit.c) ------------------------------------------------------------------------------------------ */

enum { GO_PROVED, GO_UNUSUAL, GO_SHORT, GO_STOPPED };

/* Dense data in double precision, weights of 1, a loss that is a sum over tasks, with targets that it can use.
 * Coefficients of centered columns are those of X. */
typedef struct {
    go_data data;               /* without mean, scale and weights */
    go_certificate certificate; /* with lam, and the arrays of its results */
    double tol, part;           /* gap to prove, relative to the loss of the null model; part of it to solve to */
    int max_steps;
    int capacity;               /* most rows of a working set */
    int (*interrupted)(void);
    /* results */
    double *mean, *center;      /* d, and q: the intercept of centered columns; NULL without an intercept */
    double *targets;            /* (n, q), centered; squared loss only */
    double *norms, *rounding_norms; /* d */
    int *row;                   /* (capacity) which rows are not zero */
    double *B;                  /* (capacity, q) */
    double *intercept;          /* q */
    int n_rows, steps;
    double passes, goal;
    double rounding;            /* what rounding the intercept can add to the gap */
    /* the same of losses that are not quadratic, for local bounds (Problem.local_bounds) */
    double *spread;             /* (n, q): variances between dual point and residual */
    double *squares;            /* (d, q): their products with the squares of the centered columns */
    double *largest;            /* d: largest entries of the centered columns */
    double distance;            /* from the dual point to the residual before it was balanced */
} go_fit;

/* How it ended; if `size` is too small, minus the bytes that are needed, and nothing is done. */
GO_EXPORT ptrdiff_t go_fit_whole(go_fit *fit, const go_blas *blas, void *work, size_t size);

/* ---- The norm (norm.c): twins of groupowl.norm.kernels, usable on their own ------------------------------------- */

GO_EXPORT void go_unit_norms(int n_units, const int *start, int q, const double *B, double *norms);
GO_EXPORT double go_owl_value(int n, const double *norms, const double *lam, int *work);     /* work: 2 n */
GO_EXPORT double go_owl_gauge(int n, const double *norms, const double *lam, int *work);     /* work: 2 n */
/* order: any order of 0 .. n - 1, better one that is nearly right; it is sorted. work: n, blocks: n */
GO_EXPORT double go_owl_prox(int n, const double *norms, const double *lam, double step, int *order, int *work,
                             double *blocks, double *shrunk);
/* Units that could be non-zero if `values` were the correlations at the optimum: their number, and which. */
GO_EXPORT int go_kkt_units(int n, const double *values, const double *lam, int *units, int *work); /* work: n */

void go_sort_falling(int n, const double *key, int *order, int *work);
/* Pool neighbors of a sequence to a non-increasing one; `weights` may be NULL for 1. work: n, blocks: n */
void go_pool(int n, double *values, const double *weights, int *work, double *blocks);

/* ---- The data (data.c) ------------------------------------------------------------------------------------------- */

double go_density(const go_data *data);
int go_unit_of(const go_data *data, int row);
void go_gather(const go_data *data, int first, int count, const double *row_scale, double *columns);
size_t go_converted(const go_data *data);
void go_predict_sparse(const go_data *data, int rows, const int *column, const double *row_scale, const double *B,
                       double *work, double *Z);
void go_correlate_sparse(const go_data *data, int rows, const int *column, const double *row_scale,
                         const double *theta, double *work, double *scaled, double *C);
/* sums: q, converted: go_converted(data) */
void go_correlate_all(const go_data *data, const go_blas *blas, const double *theta, double *sums, double *converted,
                      double *C);

/* ---- Products (products.c) --------------------------------------------------------------------------------------- */

/* Loops that gain from wider registers are compiled for them as well, where the loader of programs can choose. Without
 * fused multiplication: results are the same on every machine. */
#if defined(__GNUC__) && defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && !defined(GO_PLAIN)
#define FOR_EACH_MACHINE __attribute__((target_clones("avx2", "default")))
#else
#define FOR_EACH_MACHINE
#endif

void go_multiply(const go_blas *blas, int q, int columns, int depth, const double *T, const double *X, int ld,
                 int by_lines, int add, double *out);
double go_dot(size_t n, const double *a, const double *b);

/* A long sum, with what rounding takes off on the way (Knuth): a running sum of equal terms loses more digits than
 * certificates allow for. What overflows is what it is. */
typedef struct {
    double value, rest;
} go_sum;

static inline void go_add(go_sum *sum, double term)
{
    double value = sum->value + term, second = value - sum->value;
    sum->rest += (sum->value - (value - second)) + (term - second);
    sum->value = value;
}

static inline double go_total(const go_sum *sum)
{
    double total = sum->value + sum->rest;
    return total == total ? total : sum->value;
}

/* ---- Losses (losses.c) ------------------------------------------------------------------------------------------- */

/* <theta, Y> and ||theta||^2 to the dual value of the best multiple of theta that is feasible. */
double go_quadratic_dual(double product, double square, double gauge);

#endif
