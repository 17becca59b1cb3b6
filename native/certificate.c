/* The certificate of coefficients: a transcription of Problem.certify and what it calls (groupowl/problem/problem.py),
 * from B alone, with the same formulas and the same allowance for rounding, which docs/mathematics/rounding.rst derives.
 * That function is the definition; this one is compared with it in tests and campaigns, and `verify` never uses it. That
 * nothing is selected is left to the definition where the loss is not squared loss. */
#include "groupowl.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Columns that are gathered at a time. */
#define GATHERED 32
/* Sums of the columns of a balanced dual point are rounding, relative to its norm and that of the targets. */
#define BALANCED_RTOL 1e-11

size_t go_certificate_workspace(const go_data *data)
{
    size_t doubles = (size_t)data->n * (GATHERED + 1 + 3 * (size_t)data->q) + 2 * (size_t)data->q;
    doubles += (size_t)data->n_units + go_converted(data);
    return doubles * sizeof(double) + 2 * (size_t)data->n_units * sizeof(int);
}

/* For each unit, the root of the sum of the squares of one value per row. */
static double length_of(const go_data *data, int unit, const double *values)
{
    if (!data->unit_start)
        return values[unit];
    double sum = 0.0;
    for (int j = data->unit_start[unit]; j < data->unit_start[unit + 1]; j++)
        sum += values[j] * values[j];
    return sqrt(sum);
}

/* Take the weighted mean off each column of theta: the exact effect of the best intercept. sums: q */
static void balance(const go_data *data, double *theta, double *sums)
{
    int n = data->n, q = data->q;
    double total = 0.0;
    memset(sums, 0, (size_t)q * sizeof *sums);
    for (int i = 0; i < n; i++) {
        total += data->weight ? data->weight[i] : 1.0;
        for (int k = 0; k < q; k++)
            sums[k] += theta[(size_t)i * q + k];
    }
    for (int i = 0; i < n; i++)
        for (int k = 0; k < q; k++)
            theta[(size_t)i * q + k] -= (data->weight ? data->weight[i] : 1.0) * (sums[k] / total);
}

/* Z = X B, a piece of the columns after the other. Z: n q; gathered: n GATHERED, and n q for a piece */
static void set_predictor(const go_data *data, const go_certificate *c, const go_blas *blas, double *gathered, go_sum *Z)
{
    int n = data->n, q = data->q;
    double *piece = gathered + (size_t)n * GATHERED;
    memset(Z, 0, (size_t)n * q * sizeof *Z);
    for (int first = 0; first < c->n_rows; first += GATHERED) {
        int count = c->n_rows - first < GATHERED ? c->n_rows - first : GATHERED;
        for (int r = 0; r < count; r++)
            go_gather(data, c->row[first + r], 1, NULL, gathered + (size_t)r * n);
        go_multiply(blas, q, n, count, c->B + (size_t)first * q, gathered, n, 1, 0, piece);
        for (size_t at = 0; at < (size_t)n * q; at++)
            go_add(Z + at, piece[at]);
    }
}

/* For squared loss: its value, theta = w (Y - Z), and its sums over samples. */
static void set_squared_residual(const go_data *data, go_certificate *c, const go_sum *Z, double *sums)
{
    int n = data->n, q = data->q;
    go_sum loss = {0.0, 0.0}, product = {0.0, 0.0}, square = {0.0, 0.0};
    for (int i = 0; i < n; i++) {
        double w = data->weight ? data->weight[i] : 1.0, of_sample = 0.0;
        for (int k = 0; k < q; k++) {
            size_t at = (size_t)i * q + k;
            double residual = data->Y[at] - go_total(Z + at);
            c->theta[at] = w * residual;
            of_sample += residual * residual;
        }
        go_add(&loss, 0.5 * w * of_sample);
    }
    if (data->intercept)
        balance(data, c->theta, sums);
    for (int i = 0; i < n; i++) {
        const double *theta = c->theta + (size_t)i * q, *y = data->Y + (size_t)i * q;
        double with_y = 0.0, with_theta = 0.0;
        for (int k = 0; k < q; k++) {
            with_y += theta[k] * y[k];
            with_theta += theta[k] * theta[k];
        }
        go_add(&product, with_y);
        go_add(&square, with_theta / (data->weight ? data->weight[i] : 1.0));
    }
    c->loss = go_total(&loss);
    c->product = go_total(&product);
    c->square = go_total(&square);
    c->norm = sqrt(c->square);
    c->cancelling = c->imbalance = c->balancing = 0.0;
}

/* What balancing left of the sums of theta, and how much it changed; infinity where it failed, so that nothing is
 * proved. The norm of theta is known. */
static void set_balance(const go_data *data, go_certificate *c, const double *w, double root_of_weights)
{
    int n = data->n, q = data->q;
    go_sum moved = {0.0, 0.0};
    double left = 0.0;
    for (int i = 0; i < n; i++) {
        double of_sample = 0.0;
        for (int k = 0; k < q; k++) {
            double move = c->theta[(size_t)i * q + k] - c->raw[(size_t)i * q + k];
            of_sample += move * move;
        }
        go_add(&moved, of_sample / w[i]);
    }
    for (int k = 0; k < q; k++) {
        go_sum of_column = {0.0, 0.0};
        for (int i = 0; i < n; i++)
            go_add(&of_column, c->theta[(size_t)i * q + k]);
        left += go_total(&of_column) * go_total(&of_column);
    }
    left = sqrt(left) / root_of_weights;
    c->balancing = sqrt(go_total(&moved));
    c->imbalance = left <= BALANCED_RTOL * (c->norm + c->y_norm) ? left : INFINITY;
}

/* For other losses: value, dual point, balanced where there is an intercept, and its sums. Z: memory; sums: 2 q */
static void set_residual(const go_data *data, go_certificate *c, const go_sum *of_columns, const double *w, double *Z,
                         double *sums)
{
    int n = data->n, q = data->q;
    go_sum square = {0.0, 0.0}, weights = {0.0, 0.0};
    for (int i = 0; i < n; i++) {
        go_add(&weights, w[i]);
        for (int k = 0; k < q; k++)
            Z[(size_t)i * q + k] = go_total(of_columns + (size_t)i * q + k) + (c->constant ? c->constant[k] : 0.0);
    }
    c->loss = data->loss->evaluate(n, q, Z, data->Y, w, c->theta);
    c->cancelling = data->loss->cancelling(n, q, Z, w);
    if (c->constant) {
        memcpy(c->raw, c->theta, (size_t)n * q * sizeof *c->raw);
        data->loss->balance(n, q, c->theta, data->Y, w, sums);
    }
    for (int i = 0; i < n; i++)
        go_add(&square, go_dot((size_t)q, c->theta + (size_t)i * q, c->theta + (size_t)i * q) / w[i]);
    c->product = 0.0;
    c->square = go_total(&square);
    c->norm = sqrt(c->square);
    c->imbalance = c->balancing = 0.0;
    if (!c->constant)
        return;
    double root = sqrt(go_total(&weights));
    c->reach += root * sqrt(go_dot((size_t)q, c->constant, c->constant));
    set_balance(data, c, w, root);
}

/* The factor with which the residual is feasible and has a large dual value: the best one of squared loss; of other
 * losses the one closest to 1, between which and 0 all points are in the domain. */
static double feasible_scale(const go_data *data, const go_certificate *c)
{
    double limit = c->gauge > 0.0 ? 1.0 / c->gauge : INFINITY;
    if (!data->loss->quadratic || !(c->square > 0.0))
        return data->loss->quadratic || limit > 1.0 ? 1.0 : limit;
    double best = c->product / c->square;
    return best > limit ? limit : best < -limit ? -limit : best;
}

/* The weights of the samples, as an array. */
static void set_weights(const go_data *data, double *w)
{
    for (int i = 0; i < data->n; i++)
        w[i] = data->weight ? data->weight[i] : 1.0;
}

void go_certify(const go_data *data, go_certificate *c, const go_blas *blas, void *work)
{
    int d = data->d, q = data->q, n_units = data->n_units;
    go_sum *Z = work;
    double *gathered = (double *)(Z + (size_t)data->n * q);
    double *predictor = gathered + (size_t)data->n * GATHERED, *w = predictor + (size_t)data->n * q;
    double *sums = w + data->n, *padded = sums + 2 * (size_t)q, *converted = padded + n_units;
    int *order = (int *)(converted + go_converted(data));
    set_predictor(data, c, blas, gathered, Z);
    c->reach = c->y_norm;
    if (data->loss->quadratic) {
        set_squared_residual(data, c, Z, sums);
    } else {
        set_weights(data, w);
        set_residual(data, c, Z, w, predictor, sums);
    }
    go_correlate_all(data, blas, c->theta, sums, converted, c->products);
    go_unit_norms(n_units, data->unit_start, q, c->products, c->correlations);

    /* reach: bound on the norms of targets and predictor; J(B), by the norms of all units */
    double *norms = padded;
    memset(norms, 0, (size_t)n_units * sizeof *norms);
    for (int r = 0; r < c->n_rows; r++) {
        double square = go_dot((size_t)q, c->B + (size_t)r * q, c->B + (size_t)r * q);
        c->reach += c->rounding_norms[c->row[r]] * sqrt(square);
        norms[go_unit_of(data, c->row[r])] += square;
    }
    for (int u = 0; u < n_units; u++)
        norms[u] = sqrt(norms[u]);
    c->primal = c->loss + go_owl_value(n_units, norms, c->lam, order);
    for (int u = 0; u < n_units && c->product_error > 0.0; u++) { /* upper bounds where products are not exact */
        double error = c->product_error * c->reach * length_of(data, u, c->rounding_norms);
        c->correlations[u] = (1.0 + c->scale_error) * (c->correlations[u] + error);
    }

    /* scaled into the dual ball; correlations may be too small by rounding where centering cancels */
    double slack = 8.0 * DBL_EPSILON * sqrt((double)data->n) * c->norm;
    for (int j = 0; j < d; j++)
        c->excess[j] = c->rounding_norms[j] - c->norms[j];
    for (int u = 0; u < n_units; u++)
        padded[u] = c->correlations[u] + slack * length_of(data, u, c->excess);
    c->gauge = go_owl_gauge(n_units, padded, c->lam, order);
    c->scale = feasible_scale(data, c);
    if (data->loss->quadratic && c->gauge <= 1.0 && c->n_rows == 0) { /* optimal, and there is nothing to round */
        c->dual = c->primal;
        c->gap = c->rounding = c->dual_error = 0.0;
        return;
    }
    double size = fabs(c->scale), slope = size * c->norm + c->norm, square = c->reach * c->reach;
    c->dual_error = c->product_error * (size + 0.5 * size * size) * square;
    if (data->loss->quadratic)
        c->dual = c->scale * c->product - 0.5 * c->scale * c->scale * c->square;
    else
        c->dual = data->loss->dual(data->n, q, c->theta, c->scale, data->Y, w);
    if (c->imbalance > 0.0 && c->scale != 0.0)
        c->dual_error += size * c->imbalance * c->reach;
    c->rounding = c->dual_error + (64.0 * DBL_EPSILON + c->scale_error) * (fabs(c->primal) + fabs(c->dual));
    c->rounding += 0.5 * c->product_error * square + 8.0 * DBL_EPSILON * (slope * c->reach + c->cancelling);
    c->gap = (c->primal > c->dual ? c->primal - c->dual : 0.0) + c->rounding;
}
