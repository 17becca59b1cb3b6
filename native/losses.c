/* The table of losses: value, gradient, conjugate and balance of each, on arrays of one row per sample.
 * Formulas: docs/mathematics/duality.rst. A new loss is one more entry. */
#include "groupowl.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- Squared: f(z) = 1/2 ||y - z||^2; sample weights are in the rows of X and Y already ------------------------- */

static double squared_evaluate(int n, int q, const double *Z, const double *Y, const double *w, double *theta)
{
    size_t size = (size_t)n * q;
    (void)w;
    for (size_t i = 0; i < size; i++)
        theta[i] = Y[i] - Z[i];
    return 0.5 * go_dot(size, theta, theta);
}

static double squared_dual(int n, int q, const double *theta, double scale, const double *Y, const double *w)
{
    size_t size = (size_t)n * q;
    (void)w;
    return scale * go_dot(size, theta, Y) - 0.5 * scale * scale * go_dot(size, theta, theta);
}

static const go_loss squared = {1.0, 1, squared_evaluate, squared_dual, NULL, NULL};

const go_loss *go_loss_squared(void)
{
    return &squared;
}

/* max over s in [-1/gauge, 1/gauge] of s <theta, Y> - s^2/2 ||theta||^2 */
double go_quadratic_dual(double product, double square, double gauge)
{
    if (!(square > 0.0))
        return product;
    double s = product / square;
    if (gauge > 0.0 && fabs(s) * gauge > 1.0)
        s = (s > 0.0 ? 1.0 : -1.0) / gauge;
    return s * (product - 0.5 * s * square);
}

/* ---- Multinomial: f(z) = log sum_k exp z_k - <y, z>, theta = w (y - softmax(z)) --------------------------------- */

static double multinomial_evaluate(int n, int q, const double *Z, const double *Y, const double *w, double *theta)
{
    double value = 0.0;
    for (int i = 0; i < n; i++) {
        const double *z = Z + (size_t)i * q, *y = Y + (size_t)i * q;
        double *t = theta + (size_t)i * q, top = z[0], sum = 0.0, below = 0.0;
        for (int k = 1; k < q; k++)
            top = z[k] > top ? z[k] : top;
        for (int k = 0; k < q; k++) {
            below += y[k] * (top - z[k]);
            t[k] = exp(z[k] - top);
            sum += t[k];
        }
        for (int k = 0; k < q; k++)
            t[k] = w[i] * (y[k] - t[k] / sum);
        value += w[i] * (log(sum) + below);
    }
    return value;
}

/* Weighted entropy of p = y - scale theta / w. */
static double multinomial_dual(int n, int q, const double *theta, double scale, const double *Y, const double *w)
{
    double value = 0.0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < q && w[i] > 0.0; k++) {
            size_t at = (size_t)i * q + k;
            double p = Y[at] - scale * theta[at] / w[i];
            if (p < -64.0 * DBL_EPSILON)
                return -INFINITY;
            if (p > 0.0)
                value -= w[i] * p * log(p);
        }
    return value;
}

/* Transport rounding: classes with too large a total shrink to what the targets have; what a sample loses there goes
 * to the other classes in proportion to their deficits. */
static void multinomial_balance(int n, int q, double *theta, const double *Y, const double *w, double *work)
{
    double *share = work, *lost = work + q, deficit = 0.0;
    memset(work, 0, (size_t)(2 * q) * sizeof *work);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < q; k++) {
            share[k] += theta[(size_t)i * q + k];       /* what the targets have beyond the model */
            lost[k] += w[i] * Y[(size_t)i * q + k];     /* what they have */
        }
    for (int k = 0; k < q; k++) {
        lost[k] = share[k] < 0.0 ? -share[k] / (lost[k] - share[k]) : 0.0;
        share[k] = share[k] > 0.0 ? share[k] : 0.0;
        deficit += share[k];
    }
    for (int i = 0; i < n && deficit > 0.0; i++) {
        double moved = 0.0, *t = theta + (size_t)i * q;
        for (int k = 0; k < q; k++) {
            double p = w[i] * Y[(size_t)i * q + k] - t[k], away = p > 0.0 ? p * lost[k] : 0.0;
            t[k] += away;
            moved += away;
        }
        for (int k = 0; k < q; k++)
            t[k] -= moved * share[k] / deficit;
    }
}

/* Logarithms of the class frequencies, with mean zero; finite for a class that never occurs. */
static void multinomial_null_intercept(int n, int q, const double *Y, const double *w, double *intercept)
{
    double total = 0.0, mean = 0.0;
    memset(intercept, 0, (size_t)q * sizeof *intercept);
    for (int i = 0; i < n; i++) {
        total += w[i];
        for (int k = 0; k < q; k++)
            intercept[k] += w[i] * Y[(size_t)i * q + k];
    }
    for (int k = 0; k < q; k++) {
        double frequency = intercept[k] / total;
        intercept[k] = log(frequency > 1e-300 ? frequency : 1e-300);
        mean += intercept[k] / q;
    }
    for (int k = 0; k < q; k++)
        intercept[k] -= mean;
}

static const go_loss multinomial = {
    0.5, 0, multinomial_evaluate, multinomial_dual, multinomial_balance, multinomial_null_intercept,
};

const go_loss *go_loss_multinomial(void)
{
    return &multinomial;
}
