/* A whole small fit in one call: statistics of the columns, the solve, and the certificate of what it
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

/* Targets of squared loss are copied to `targets` and centered there if `center` is not NULL; their square.
 * 0 if they are out of the ordinary. work: 2 q */
static int set_squared_targets(const go_data *data, double *center, double *targets, double *work, double *y_square)
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

/* The square of targets of other losses, and the loss of the model without features; 0 if out of the ordinary. The
 * goal is relative to what this loss exceeds the least possible one by. theta: memory, (n, q) */
static int set_other_targets(go_fit *fit, double *theta, double *predictor, double *ones, double *y_square)
{
    const go_data *data = &fit->data;
    int n = data->n, q = data->q;
    *y_square = go_dot((size_t)n * q, data->Y, data->Y);
    for (int i = 0; i < n; i++)
        ones[i] = 1.0;
    memset(fit->intercept, 0, (size_t)q * sizeof *fit->intercept);
    if (fit->mean)
        data->loss->null_intercept(n, q, data->Y, ones, fit->intercept);
    for (int i = 0; i < n; i++)
        memcpy(predictor + (size_t)i * q, fit->intercept, (size_t)q * sizeof *predictor);
    double null_loss = data->loss->evaluate(n, q, predictor, data->Y, ones, theta);
    double floor = data->loss->dual(n, q, theta, 0.0, data->Y, ones), scale = null_loss - floor;
    fit->goal = fit->tol * scale;
    int ordinary = *y_square > SMALLEST * SMALLEST && *y_square < LARGEST * LARGEST;
    return ordinary && isfinite(scale) && scale > LEAST_LEFT * (fabs(null_loss) + fabs(floor));
}

/* Numbers for local bounds: spread, squares and largest entries, and the distance. ones: n; memory: (n, q) */
static void set_spread(go_fit *fit, const double *ones, double *memory)
{
    const go_data *data = &fit->data;
    const go_certificate *c = &fit->certificate;
    const double *raw = c->constant ? c->raw : c->theta;
    size_t size = (size_t)data->n * data->q;
    double square = 0.0;
    for (size_t i = 0; i < size; i++)
        memory[i] = c->scale * c->theta[i];
    data->loss->curvatures(data->n, data->q, memory, data->Y, ones, fit->spread);
    for (size_t i = 0; i < size; i++) {
        double move = memory[i] - raw[i], sizes = fabs(data->Y[i]) + fabs(memory[i]) + fabs(raw[i]);
        square += move * move;
        fit->spread[i] = 0.5 * fit->spread[i] + 0.25 * fabs(move) + 4.0 * DBL_EPSILON * sizes;
    }
    data->loss->curvatures(data->n, data->q, raw, data->Y, ones, memory);
    for (size_t i = 0; i < size; i++)
        fit->spread[i] += 0.5 * memory[i];
    fit->distance = sqrt(square);
}

/* The same of contiguous rows: what sample i, of spread `h` (q), adds to all columns. */
FOR_EACH_MACHINE
static void add_row(int d, int q, const double *x, const double *mean, const double *h, double *squares,
                    double *largest)
{
    for (int j = 0; j < d; j++) {
        double size = fabs(x[j] - mean[j]);
        largest[j] = size > largest[j] ? size : largest[j];
    }
    for (int j = 0; j < d && q == 1; j++)
        squares[j] += (x[j] - mean[j]) * (x[j] - mean[j]) * h[0];
    for (int j = 0; j < d && q > 1; j++)
        for (int k = 0; k < q; k++)
            squares[(size_t)j * q + k] += (x[j] - mean[j]) * (x[j] - mean[j]) * h[k];
}

/* And of a contiguous column, four samples at a time. */
static void add_column(int n, int q, const double *x, double mean, const double *spread, double *squares,
                       double *largest)
{
    double most[4] = {0.0};
    int whole = n - n % 4;
    for (int i = 0; i < whole; i += 4)
        for (int a = 0; a < 4; a++) {
            double size = fabs(x[i + a] - mean);
            most[a] = size > most[a] ? size : most[a];
        }
    for (int i = whole; i < n; i++)
        most[0] = fmax(most[0], fabs(x[i] - mean));
    *largest = fmax(fmax(most[0], most[1]), fmax(most[2], most[3]));
    for (int k = 0; k < q; k++) {
        const double *h = spread + k;
        double sums[4] = {0.0};
        for (int i = 0; i < whole; i += 4)
            for (int a = 0; a < 4; a++)
                sums[a] += (x[i + a] - mean) * (x[i + a] - mean) * h[(size_t)(i + a) * q];
        for (int i = whole; i < n; i++)
            sums[0] += (x[i] - mean) * (x[i] - mean) * h[(size_t)i * q];
        squares[k] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
}

/* zeros: d */
static void set_squares(go_fit *fit, double *zeros)
{
    const go_data *data = &fit->data;
    int n = data->n, d = data->d, q = data->q;
    const double *X = data->X, *mean = fit->mean ? fit->mean : zeros;
    memset(zeros, 0, (size_t)d * sizeof *zeros);
    memset(fit->squares, 0, (size_t)d * q * sizeof *fit->squares);
    memset(fit->largest, 0, (size_t)d * sizeof *fit->largest);
    for (int i = 0; i < n && data->by_rows; i++)
        add_row(d, q, X + i * data->stride, mean, fit->spread + (size_t)i * q, fit->squares, fit->largest);
    for (int j = 0; j < d && !data->by_rows; j++)
        add_column(n, q, X + j * data->stride, mean[j], fit->spread, fit->squares + (size_t)j * q, fit->largest + j);
}

/* The public intercept, and what its rounding, and that of all it is made of, can add to the gap
 * (groupowl/problem/public.py). 0 if that is more than nothing for squared loss, which has no other way to know. */
static int set_intercept(go_fit *fit, const double *ones)
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
    const go_data *data = &fit->data;
    const go_certificate *c = &fit->certificate;
    double doubt = DBL_EPSILON * (sqrt((double)n) * (sqrt(centers) + shifts + sqrt(intercepts)) + 8.0 * reach);
    if (data->loss->quadratic)
        return 1.5 * doubt * doubt <= NEGLIGIBLE * c->primal;
    if (q == 2)
        doubt += DBL_EPSILON * sqrt(n * intercepts);
    double curvature = data->loss->curvature_near(n, q, c->raw, data->Y, ones);
    fit->rounding = c->balancing * doubt + 0.5 * curvature * doubt * doubt;
    if (fit->rounding <= NEGLIGIBLE * fabs(c->primal))
        fit->rounding = 0.0;
    return 1;
}

/* Bytes of the certificate and of sums, which have the same memory. */
static size_t memory_beside(const go_data *data)
{
    size_t certificate = go_certificate_workspace(data), n = (size_t)data->n, d = (size_t)data->d, q = (size_t)data->q;
    size_t own = (d + 2 * q + n * (2 * q + 1)) * sizeof(double); /* more than any step needs at once */
    return certificate > own ? certificate : own;
}

ptrdiff_t go_fit_whole(go_fit *fit, const go_blas *blas, void *work, size_t size)
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
    int quadratic = data->loss->quadratic;
    data->mean = fit->mean;
    data->intercept = fit->mean && !quadratic; /* centered targets leave nothing of it until the certificate */
    size_t beside = (memory_beside(data) + 63) / 64 * 64, needed = beside + go_workspace(data, &task);
    if (size < needed)
        return -(ptrdiff_t)needed;
    double *own = work, *ones = own, *memory = own + data->n, *more = memory + (size_t)data->n * data->q;
    if (!set_columns(data, fit->mean, fit->norms, fit->rounding_norms, own))
        return GO_UNUSUAL;
    if (quadratic) {
        if (!set_squared_targets(data, fit->center, fit->targets, own, &y_square))
            return GO_UNUSUAL;
        data->Y = fit->targets;
        fit->goal = fit->tol * 0.5 * y_square;
    } else if (!set_other_targets(fit, memory, more, ones, &y_square)) {
        return GO_UNUSUAL;
    }
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
    if (fit->mean && !quadratic) {
        memcpy(fit->center, fit->intercept, (size_t)data->q * sizeof *fit->center);
        c->constant = fit->center;
    }
    go_certify(data, c, blas, work);
    if (!(c->gap <= fit->goal))
        return GO_SHORT;
    for (int i = 0; i < data->n; i++)
        ones[i] = 1.0;
    fit->rounding = 0.0;
    if (fit->mean && !set_intercept(fit, ones))
        return GO_UNUSUAL;
    if (!(c->gap + fit->rounding <= fit->goal))
        return GO_SHORT;
    if (!quadratic) {
        set_spread(fit, ones, memory);
        set_squares(fit, memory);
    }
    return GO_PROVED;
}
