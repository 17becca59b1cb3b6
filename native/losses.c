/* The table of losses: value, gradient, conjugate and balance of each, on arrays of sample space (one column per task).
 * Formulas: math.md, sections 4 and 5. A new loss is one more entry. */
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

/* Samples at a time: loops over them have no reductions, and their numbers stay in cache. */
#define SAMPLES 64

static double multinomial_evaluate(int n, int q, const double *Z, const double *Y, const double *w, double *theta)
{
    double value = 0.0, top[SAMPLES], sum[SAMPLES], below[SAMPLES];
    for (int first = 0; first < n; first += SAMPLES) {
        int count = n - first < SAMPLES ? n - first : SAMPLES;
        memcpy(top, Z + first, (size_t)count * sizeof *top);
        for (int k = 1; k < q; k++) {
            const double *z = Z + (size_t)k * n + first;
            for (int i = 0; i < count; i++)
                top[i] = z[i] > top[i] ? z[i] : top[i];
        }
        memset(sum, 0, sizeof sum);
        memset(below, 0, sizeof below);
        for (int k = 0; k < q; k++) {
            size_t at = (size_t)k * n + first;
            for (int i = 0; i < count; i++) {
                double distance = Z[at + i] - top[i];
                below[i] -= Y[at + i] * distance;
                theta[at + i] = exp(distance);
                sum[i] += theta[at + i];
            }
        }
        for (int i = 0; i < count; i++) {
            value += w[first + i] * (log(sum[i]) + below[i]);
            sum[i] = 1.0 / sum[i];
        }
        for (int k = 0; k < q; k++) {
            size_t at = (size_t)k * n + first;
            for (int i = 0; i < count; i++)
                theta[at + i] = w[first + i] * (Y[at + i] - theta[at + i] * sum[i]);
        }
    }
    return value;
}

/* Weighted entropy of p = y - scale theta / w. */
static double multinomial_dual(int n, int q, const double *theta, double scale, const double *Y, const double *w)
{
    double value = 0.0;
    for (int k = 0; k < q; k++) {
        for (int i = 0; i < n; i++) {
            size_t at = (size_t)k * n + i;
            double p = Y[at] - scale * theta[at] / w[i];
            if (p < -64.0 * DBL_EPSILON)
                return -INFINITY;
            if (p > 0.0)
                value -= w[i] * p * log(p);
        }
    }
    return value;
}

/* Transport rounding: classes with too large a total shrink to what the targets have; what a sample loses there goes
 * to the other classes in proportion to their deficits. */
static void multinomial_balance(int n, int q, double *theta, const double *Y, const double *w, double *work)
{
    double *share = work, *lost = work + q, deficit = 0.0;
    for (int k = 0; k < q; k++) {
        double sum = 0.0, wanted = 0.0; /* what the targets have beyond the model, and what they have */
        for (int i = 0; i < n; i++) {
            sum += theta[(size_t)k * n + i];
            wanted += w[i] * Y[(size_t)k * n + i];
        }
        share[k] = sum > 0.0 ? sum : 0.0;
        lost[k] = sum < 0.0 ? -sum / (wanted - sum) : 0.0;
        deficit += share[k];
    }
    if (deficit == 0.0)
        return;
    for (int i = 0; i < n; i++) {
        double moved = 0.0;
        for (int k = 0; k < q; k++) {
            size_t at = (size_t)k * n + i;
            double p = w[i] * Y[at] - theta[at], away = p > 0.0 ? p * lost[k] : 0.0;
            theta[at] += away;
            moved += away;
        }
        for (int k = 0; k < q; k++)
            theta[(size_t)k * n + i] -= moved * share[k] / deficit;
    }
}

/* Logarithms of the class frequencies, with mean zero; finite for a class that never occurs. */
static void multinomial_null_intercept(int n, int q, const double *Y, const double *w, double *intercept)
{
    double total = 0.0, mean = 0.0;
    for (int i = 0; i < n; i++)
        total += w[i];
    for (int k = 0; k < q; k++) {
        double frequency = 0.0;
        for (int i = 0; i < n; i++)
            frequency += w[i] * Y[(size_t)k * n + i];
        frequency /= total;
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
