/* A whole small fit of squared loss in one call: statistics of the columns, the solve, and the certificate of what it
 * found. Whatever is out of the ordinary, and all that falls short of its goal, goes back to the caller, who has a
 * slower way that knows what to say. */
#include "groupowl.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Norms of ordinary columns and targets, and the least part of their squares that centering leaves. */
#define SMALLEST 1e-100
#define LARGEST 1e100
#define LEAST_LEFT 1e-8
/* What changes the objective by less than this, relatively, is nothing (groupowl/problem/public.py). */
#define NEGLIGIBLE (1e-8 * DBL_EPSILON)

/* Sums of the columns about `center` (NULL for 0), and of their squares. */
static void add_up(const go_data *data, const double *center, double *sums, double *squares)
{
    int n = data->n, d = data->d;
    const double *X = data->X;
    memset(sums, 0, (size_t)d * sizeof *sums);
    memset(squares, 0, (size_t)d * sizeof *squares);
    for (int i = 0; i < n && data->by_rows; i++) {
        const double *x = X + i * data->stride;
        for (int j = 0; j < d; j++) {
            double value = center ? x[j] - center[j] : x[j];
            sums[j] += value;
            squares[j] += value * value;
        }
    }
    for (int j = 0; j < d && !data->by_rows; j++) {
        const double *x = X + j * data->stride;
        double c = center ? center[j] : 0.0, sum[4] = {0.0}, square[4] = {0.0};
        for (int i = 0; i + 4 <= n; i += 4)
            for (int k = 0; k < 4; k++) {
                sum[k] += x[i + k] - c;
                square[k] += (x[i + k] - c) * (x[i + k] - c);
            }
        for (int i = n - n % 4; i < n; i++) {
            sum[0] += x[i] - c;
            square[0] += (x[i] - c) * (x[i] - c);
        }
        sums[j] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        squares[j] = (square[0] + square[1]) + (square[2] + square[3]);
    }
}

/* Means and norms of columns; 0 if any is out of the ordinary, or not finite. sums, squares: size */
static int set_columns(const go_data *data, double *mean, double *norms, double *whole, double *sums)
{
    int n = data->n, d = data->d, ordinary = 1;
    add_up(data, NULL, sums, whole);
    memcpy(norms, whole, (size_t)d * sizeof *norms);
    if (mean) { /* about the first row, then about the means: as exact as the values, whatever their size */
        ptrdiff_t between = data->by_rows ? 1 : data->stride;
        for (int j = 0; j < d; j++)
            mean[j] = ((const double *)data->X)[j * between];
        add_up(data, mean, sums, norms);
        for (int j = 0; j < d; j++)
            mean[j] += sums[j] / n;
        add_up(data, mean, sums, norms);
    }
    for (int j = 0; j < d; j++) {
        ordinary &= norms[j] >= LEAST_LEFT * whole[j] && norms[j] > SMALLEST * SMALLEST && whole[j] < LARGEST * LARGEST;
        norms[j] = sqrt(norms[j]);
        whole[j] = mean ? sqrt(norms[j] * norms[j] + n * mean[j] * mean[j]) : norms[j];
    }
    return ordinary;
}

/* The same of targets, which are copied to `targets` and centered there if `center` is not NULL. work: 2 q */
static int set_targets(const go_data *data, double *center, double *targets, double *work, double *y_square)
{
    int n = data->n, q = data->q, ordinary = 1;
    double *before = work, *sums = work + q;
    memset(before, 0, (size_t)q * sizeof *before);
    memcpy(targets, data->Y, (size_t)n * q * sizeof *targets);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < q; k++)
            before[k] += targets[(size_t)i * q + k] * targets[(size_t)i * q + k];
    if (center)
        memset(center, 0, (size_t)q * sizeof *center);
    for (int round = 0; round < 2 && center; round++) { /* the second takes off what rounding left */
        memset(sums, 0, (size_t)q * sizeof *sums);
        for (int i = 0; i < n; i++)
            for (int k = 0; k < q; k++)
                sums[k] += targets[(size_t)i * q + k];
        for (int i = 0; i < n; i++)
            for (int k = 0; k < q; k++)
                targets[(size_t)i * q + k] -= sums[k] / n;
        for (int k = 0; k < q; k++)
            center[k] += sums[k] / n;
    }
    memset(sums, 0, (size_t)q * sizeof *sums);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < q; k++)
            sums[k] += targets[(size_t)i * q + k] * targets[(size_t)i * q + k];
    *y_square = 0.0;
    for (int k = 0; k < q; k++) {
        ordinary &= sums[k] >= LEAST_LEFT * before[k] && sums[k] > SMALLEST * SMALLEST && before[k] < LARGEST * LARGEST;
        *y_square += sums[k];
    }
    return ordinary;
}

/* center_k - sum_r mean_r B_rk in twice the digits, rounded once at the end. */
static double intercept_of(const go_fit *fit, int k)
{
    double high = fit->center[k], low = 0.0;
    for (int r = 0; r < fit->n_rows; r++) {
        double a = -fit->mean[fit->row[r]], b = fit->B[(size_t)r * fit->data.q + k];
        double product = a * b, sum = high + product, part = sum - high;
        low += ((high - (sum - part)) + (product - part)) + fma(a, b, -product);
        high = sum;
    }
    return high + low;
}

/* Whether the rounding of the intercept, and of all that it is made of, changes the objective by nothing. */
static int set_intercept(go_fit *fit)
{
    int n = fit->data.n, q = fit->data.q;
    double centers = 0.0, intercepts = 0.0, shifts = 0.0, reach = 0.0;
    for (int k = 0; k < q; k++) {
        fit->intercept[k] = intercept_of(fit, k);
        centers += fit->center[k] * fit->center[k];
        intercepts += fit->intercept[k] * fit->intercept[k];
    }
    for (int r = 0; r < fit->n_rows; r++) {
        const double *b = fit->B + (size_t)r * q;
        double norm = sqrt(go_dot((size_t)q, b, b));
        shifts += fabs(fit->mean[fit->row[r]]) * norm;
        reach += fit->norms[fit->row[r]] * norm;
    }
    double doubt = DBL_EPSILON * (sqrt((double)n) * (sqrt(centers) + shifts + sqrt(intercepts)) + 8.0 * reach);
    return 1.5 * doubt * doubt <= NEGLIGIBLE * fit->certificate.primal;
}

/* Bytes of the certificate and of sums, which have the same memory. */
static size_t memory_beside(const go_data *data)
{
    size_t certificate = go_certificate_workspace(data);
    size_t own = ((size_t)data->d + 2 * (size_t)data->q) * sizeof(double);
    return certificate > own ? certificate : own;
}

ptrdiff_t go_fit_squared(go_fit *fit, const go_blas *blas, void *work, size_t size)
{
    go_data *data = &fit->data;
    go_certificate *c = &fit->certificate;
    double goal = 0.0, estimate, passes, y_square;
    int first[2], steps, status, peak;
    go_task task = {.n_lam = 1, .lam = c->lam, .goal = &goal, .max_steps = fit->max_steps, .capacity = fit->capacity,
                    .gram_capacity = fit->capacity < 4 * data->n ? fit->capacity : 4 * data->n,
                    .interrupted = fit->interrupted, .room = fit->capacity, .first = first, .row = fit->row,
                    .B = fit->B, .intercept = fit->intercept, .gap = &estimate, .passes = &passes,
                    .steps = &steps, .status = &status, .peak = &peak};
    size_t beside = (memory_beside(data) + 63) / 64 * 64, needed = beside + go_workspace(data, &task);
    if (size < needed)
        return -(ptrdiff_t)needed;
    double *own = work;
    if (!set_columns(data, fit->mean, fit->norms, fit->rounding_norms, own))
        return GO_UNUSUAL;
    if (!set_targets(data, fit->center, fit->targets, own, &y_square))
        return GO_UNUSUAL;
    data->Y = fit->targets;
    data->mean = fit->mean;
    data->intercept = 0; /* columns and targets are centered: nothing is left of it until the certificate */
    fit->goal = fit->tol * 0.5 * y_square;
    goal = fit->part * fit->goal;
    if (go_solve(data, &task, blas, (char *)work + beside, size - beside) < 1 || status == GO_NO_ROOM || status == GO_INTERRUPTED)
        return status == GO_INTERRUPTED ? GO_STOPPED : GO_UNUSUAL;
    fit->n_rows = first[1];
    fit->steps = steps;
    if (fit->n_rows == 0) /* whether nothing is best must be known exactly */
        return GO_SHORT;
    fit->passes = passes + 1.0 + (double)fit->n_rows / data->d;
    data->intercept = fit->mean != NULL;
    c->norms = fit->norms;
    c->rounding_norms = fit->rounding_norms;
    c->y_norm = sqrt(y_square);
    c->n_rows = fit->n_rows;
    c->row = fit->row;
    c->B = fit->B;
    go_certify(data, c, blas, work);
    if (!(c->gap <= fit->goal))
        return GO_SHORT;
    if (fit->mean && !set_intercept(fit))
        return GO_UNUSUAL;
    return GO_PROVED;
}
