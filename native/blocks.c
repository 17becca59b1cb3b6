/* Block coordinate descent with Anderson extrapolation: units of several rows, equal weights, squared loss. It keeps
 * the residual and reads the columns of a unit once for both of its products, and needs no Gram matrix but those of the
 * units themselves. Each unit goes to its own minimum, whatever its columns are: formulas in docs/mathematics/solver.rst.
 */
#include "inner.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Steps without halving the gap after which gradient steps have their turn. */
#define PATIENCE 60
/* Epochs of the first cycle: from far away a look at the gap comes sooner. */
#define FIRST_EPOCHS 2
/* Rows of a unit that are few for BLAS. */
#define FEW_ROWS 48
/* Newton steps for the norm of a unit, and how exactly it is found. */
#define NORM_STEPS 50
#define NORM_RTOL 1e-12
/* Epochs to the goal that a round is worth, in those that it costs: often it is the last one then. */
#define WORTHWHILE 3.0

/* The rows of a unit, and where what belongs to it is. */
typedef struct {
    int first, size;
    double *vectors, *values; /* eigenvectors, by columns, and eigenvalues of the Gram matrix of its columns */
} block;

static block block_of(const go_inner *p, int unit)
{
    int first = p->start[unit];
    return (block){first, p->start[unit + 1] - first, p->vectors + (size_t)first * p->largest_unit, p->values + first};
}

int go_suits_blocks(const go_inner *p)
{
    return p->vectors && p->units > 0 && p->lam[0] > 0.0 && go_has_equal_weights(p);
}

/* Eigenvalues and -vectors of A_u^T A_u, once; its trace as a bound on all of them where that fails. */
static void factor(const go_inner *p, int unit, block b)
{
    int size = b.size, n = p->n, room = GO_EIGEN_WORK * p->largest_unit, failed = 0;
    double one = 1.0, zero = 0.0, trace = 0.0, *A = p->A + (size_t)b.first * n;
    if (p->factored[unit])
        return;
    p->factored[unit] = 1;
    if (size <= FEW_ROWS) /* so small that half of the products take longer than all of them */
        p->blas->dgemm("T", "N", &size, &size, &n, &one, A, &n, A, &n, &zero, b.vectors, &size);
    else
        p->blas->dsyrk("U", "T", &size, &n, &one, A, &n, &zero, b.vectors, &size);
    for (int i = 0; i < size; i++)
        trace += b.vectors[(size_t)i * size + i];
    if (isfinite(trace))
        p->blas->dsyev("V", "U", &size, b.vectors, &size, b.values, p->eigen_work, &room, &failed);
    if (failed || !isfinite(trace)) {
        memset(b.vectors, 0, (size_t)size * size * sizeof *b.vectors);
        for (int i = 0; i < size; i++) {
            b.vectors[(size_t)i * size + i] = 1.0;
            b.values[i] = trace;
        }
        return;
    }
    double least = 4.0 * DBL_EPSILON * size * b.values[size - 1];
    for (int i = 0; i < size; i++) /* below, it is rounding of zero */
        b.values[i] = b.values[i] > least ? b.values[i] : 0.0;
}

/* The root t of sum_i square_i / (1 + value_i t)^2 = 1, where the sum is larger at zero: Newton steps on its power -1/2,
 * which is concave, so that they rise to the root once they are below it, wherever they begin. */
static double norm_root(int size, const double *values, const double *squares, double t)
{
    for (int step = 0; step < NORM_STEPS; step++) {
        double sum = 0.0, slope = 0.0;
        for (int i = 0; i < size; i++) {
            double inverse = 1.0 / (1.0 + values[i] * t), term = squares[i] * inverse * inverse;
            sum += term;
            slope += term * values[i] * inverse;
        }
        if (!(slope > 0.0) || fabs(sum - 1.0) <= NORM_RTOL)
            break;
        t += sum * (sqrt(sum) - 1.0) / slope;
        t = t > 0.0 ? t : 0.0;
    }
    return t;
}

/* out (size, q) = vectors^T C, or vectors C */
static void turn(int size, int q, const double *vectors, int transposed, const double *C, double *out)
{
    memset(out, 0, (size_t)size * q * sizeof *out);
    for (int a = 0; a < size; a++)
        for (int i = 0; i < size; i++) {
            double factor = vectors[(size_t)a * size + i];
            const double *from = C + (size_t)(transposed ? i : a) * q;
            double *to = out + (size_t)(transposed ? a : i) * q;
            for (int k = 0; k < q; k++)
                to[k] += factor * from[k];
        }
}

/* Coefficients of a unit that minimize the objective with all others as they are, less those it has, from its products
 * C with the residual; 0 if they stay. memory: 3 largest_unit q + largest_unit
 *
 * In the eigenvectors of its Gram matrix, minus the gradient without the unit's own share is v_i = c_i + d_i b_i, and
 * the minimum is b_i = v_i t / (1 + d_i t), where lam t is its norm. */
static int unit_change(const go_inner *p, int unit, block b, const double *C, double *change, double *memory)
{
    int size = b.size, q = p->q;
    size_t entries = (size_t)size * q;
    double lam = p->lam[0], *v = memory, *own = v + entries, *squares = own + entries, sum = 0.0;
    const double *B = p->B + (size_t)b.first * q;
    double norm = sqrt(go_dot(entries, B, B));
    if (norm == 0.0 && go_dot(entries, C, C) <= lam * lam)
        return 0;
    factor(p, unit, b);
    turn(size, q, b.vectors, 1, C, v);
    if (norm > 0.0)
        turn(size, q, b.vectors, 1, B, own);
    for (int i = 0; i < size; i++) {
        double square = 0.0;
        for (int k = 0; k < q; k++) {
            double *at = v + (size_t)i * q + k;
            *at = b.values[i] > 0.0 ? *at + (norm > 0.0 ? b.values[i] * own[(size_t)i * q + k] : 0.0) : 0.0;
            square += (*at / lam) * (*at / lam);
        }
        squares[i] = square;
        sum += square;
    }
    if (sum <= 1.0) {
        for (size_t i = 0; i < entries; i++)
            change[i] = -B[i];
        return norm > 0.0;
    }
    double t = norm_root(size, b.values, squares, norm / lam);
    for (int i = 0; i < size; i++)
        for (int k = 0; k < q; k++)
            v[(size_t)i * q + k] *= t / (1.0 + b.values[i] * t);
    turn(size, q, b.vectors, 0, v, change);
    for (size_t i = 0; i < entries; i++)
        change[i] -= B[i];
    return 1;
}

/* All units once, in turn, or only those that are not zero. */
static void block_epoch(go_inner *p, int all)
{
    int n = p->n, q = p->q;
    double *C = p->image, *change = p->move, *memory = p->V;
    for (int u = 0; u < p->units; u++) {
        block b = block_of(p, u);
        double *B = p->B + (size_t)b.first * q, *A = p->A + (size_t)b.first * n;
        size_t entries = (size_t)b.size * q;
        if (!all && go_dot(entries, B, B) == 0.0)
            continue;
        go_multiply(p->blas, q, b.size, n, p->theta, A, n, 0, 0, C);
        if (!unit_change(p, u, b, C, change, memory))
            continue;
        for (size_t i = 0; i < entries; i++) {
            double now = B[i] + change[i];
            change[i] = B[i] - now;
            B[i] = now;
        }
        go_multiply(p->blas, q, n, b.size, change, A, n, 1, 1, p->theta);
    }
}

/* To the extrapolation of the last iterates where that lowers the objective. The residual is affine in the coefficients,
 * so that it takes no product. */
static void extrapolate(go_inner *p, size_t size, size_t samples)
{
    double weights[GO_ANDERSON];
    if (!go_anderson_weights(p->blas, size, p->past_B, weights))
        return;
    go_mix(size, p->past_B, weights, p->V);
    go_mix(samples, p->past_C, weights, p->Z);
    double value = 0.5 * go_dot(samples, p->Z, p->Z), penalty = go_penalty_of(p, p->V);
    if (!(value + penalty < p->value + p->penalty))
        return;
    memcpy(p->B, p->V, size * sizeof *p->B);
    memcpy(p->theta, p->Z, samples * sizeof *p->theta);
    p->value = value;
    p->penalty = penalty;
}

/* Epochs to the goal if each takes as much off the logarithm of the gap as those since the last look. */
static double epochs_left(const go_inner *p, double gap_before, int epochs)
{
    double rate = log(gap_before / p->gap) / epochs;
    return rate > 0.0 ? log(p->gap / p->goal.tight) / rate : INFINITY;
}

/* Cycles of epochs, each ended by an extrapolation and a look at the gap. Past residuals are in past_C. A gap that
 * would do for another round does not where the goal is nearer than that round is worth. */
int go_block_cycles(go_inner *p)
{
    size_t size = (size_t)p->rows * p->q, samples = (size_t)p->n * p->q;
    int found = GO_ON, epochs = p->steps ? GO_ANDERSON : FIRST_EPOCHS;
    p->value = go_evaluate(p, p->B, p->theta);
    p->gap = go_gap_of(p);
    while (found == GO_ON && p->steps - p->halved_at <= PATIENCE && p->steps + GO_ANDERSON <= p->goal.max_steps) {
        for (int e = 0; e <= epochs; e++) {
            if (e > 0)
                block_epoch(p, e == 1);
            memcpy(p->past_B + e * size, p->B, size * sizeof *p->B);
            memcpy(p->past_C + e * samples, p->theta, samples * sizeof *p->theta);
        }
        p->steps += epochs;
        p->value = 0.5 * go_dot(samples, p->theta, p->theta);
        p->penalty = go_penalty_of(p, p->B);
        if (epochs == GO_ANDERSON)
            extrapolate(p, size, samples);
        go_correlate(p, p->theta, p->C);
        double before = p->gap;
        found = go_verdict(p);
        double left = epochs_left(p, before, epochs);
        int is_far = p->gap > p->goal.tight && p->steps + GO_ANDERSON <= p->goal.max_steps;
        if (found == GO_DONE && is_far && left <= WORTHWHILE * p->goal.free_steps)
            found = GO_ON;
        epochs = left >= 0.0 && left < GO_ANDERSON ? (int)left + 1 : GO_ANDERSON;
    }
    return found;
}
