/* The table of losses: value, gradient, conjugate, balance and curvature of each, on arrays of one row per sample.
 * The NumPy twins, and the definitions, are in groupowl/losses; formulas: docs/mathematics/duality.rst. A new loss is
 * one more entry. Sums over samples are compensated: certificates are made of them. */
#include "groupowl.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Rounding leaves means this far outside of their range, relative to the targets and to 1. */
#define RANGE_RTOL (64.0 * DBL_EPSILON)
/* Means are lost that predict less than this fraction of the targets. */
#define VANISHING 1e-100
/* What never occurs has its intercept at infinity; this stands in for its frequency or mean. */
#define TINY_FREQUENCY 1e-300

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

static const go_loss squared = {.quadratic = 1, .evaluate = squared_evaluate, .dual = squared_dual};

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

/* ---- Losses that are sums over tasks: f(z) = sum_k cost(z_k, y_k), theta = w (y - p) with the mean p -------------- */

static double clipped(double p, double lowest, double highest)
{
    return p < lowest ? lowest : p > highest ? highest : p;
}

/* Sum of w dual_cost(p, y) for p = y - scale theta / w, each in its range. */
static double separable_dual(int n, int q, const double *theta, double scale, const double *Y, const double *w,
                             double lowest, double highest, double (*dual_cost)(double))
{
    go_sum value = {0.0, 0.0};
    for (int i = 0; i < n; i++)
        for (int k = 0; k < q; k++) {
            size_t at = (size_t)i * q + k;
            double raw = Y[at] - scale * theta[at] / w[i], p = clipped(raw, lowest, highest);
            if (!(fabs(raw - p) <= RANGE_RTOL * (1.0 + fabs(Y[at]))))
                return -INFINITY;
            go_add(&value, w[i] * dual_cost(p));
        }
    return go_total(&value);
}

/* Move the means of each task towards an end of their range until they add up to the targets: the lowest where they are
 * too large; where too small, the highest, or away from the lowest where there is no highest. Means so small that
 * rounding is all that is left of them become those of the targets. */
static void separable_balance(int n, int q, double *theta, const double *Y, const double *w, double lowest,
                              double highest)
{
    for (int k = 0; k < q; k++) {
        go_sum of_model = {0.0, 0.0}, of_targets = {0.0, 0.0}, of_weights = {0.0, 0.0};
        for (int i = 0; i < n; i++) {
            double target = w[i] * Y[(size_t)i * q + k];
            go_add(&of_model, target - theta[(size_t)i * q + k]);
            go_add(&of_targets, target);
            go_add(&of_weights, w[i]);
        }
        double predicted = go_total(&of_model), wanted = go_total(&of_targets), weights = go_total(&of_weights);
        if (predicted == wanted)
            continue;
        double end = predicted < wanted && isfinite(highest) ? highest : lowest;
        double distance = predicted - weights * end, factor = (wanted - weights * end) / distance;
        int is_lost = !(fabs(distance) > VANISHING * wanted);
        for (int i = 0; i < n; i++) {
            size_t at = (size_t)i * q + k;
            double p = clipped(Y[at] - theta[at] / w[i], lowest, highest);
            theta[at] = w[i] * (Y[at] - (is_lost ? wanted / weights : end + factor * (p - end)));
        }
    }
}

static double entropy(double p)
{
    return p > 0.0 ? -p * log(p) : 0.0;
}

/* ---- Logistic: cost = log(1 + exp z) - y z ------------------------------------------------------------------------ */

/* The cost as a sum of terms that are not negative; the residual with all digits where target and mean are near 1. */
static double logistic_evaluate(int n, int q, const double *Z, const double *Y, const double *w, double *theta)
{
    go_sum value = {0.0, 0.0};
    for (int i = 0; i < n; i++)
        for (int k = 0; k < q; k++) {
            size_t at = (size_t)i * q + k;
            double z = Z[at], y = Y[at], odds = exp(-fabs(z)), rest = odds / (1.0 + odds);
            go_add(&value, w[i] * (log1p(odds) + fabs(z) * (z > 0.0 ? 1.0 - y : y)));
            theta[at] = w[i] * (z > 0.0 ? (y - 1.0) + rest : y - rest);
        }
    return go_total(&value);
}

static double logistic_dual_cost(double p)
{
    return entropy(p) + entropy(1.0 - p);
}

static double logistic_dual(int n, int q, const double *theta, double scale, const double *Y, const double *w)
{
    return separable_dual(n, q, theta, scale, Y, w, 0.0, 1.0, logistic_dual_cost);
}

static void logistic_balance(int n, int q, double *theta, const double *Y, const double *w, double *work)
{
    (void)work;
    separable_balance(n, q, theta, Y, w, 0.0, 1.0);
}

/* Log-odds, from the sums of labels and of their absence, each with all its digits. */
static void logistic_null_intercept(int n, int q, const double *Y, const double *w, double *intercept)
{
    for (int k = 0; k < q; k++) {
        go_sum with = {0.0, 0.0}, without = {0.0, 0.0};
        for (int i = 0; i < n; i++) {
            go_add(&with, w[i] * Y[(size_t)i * q + k]);
            go_add(&without, w[i] * (1.0 - Y[(size_t)i * q + k]));
        }
        double a = go_total(&with), b = go_total(&without);
        intercept[k] = log((a > b * TINY_FREQUENCY ? a : b * TINY_FREQUENCY) / (b > a * DBL_EPSILON ? b : a * DBL_EPSILON));
    }
}

static void logistic_curvatures(int n, int q, const double *theta, const double *Y, const double *w, double *H)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < q; k++) {
            size_t at = (size_t)i * q + k;
            double p = clipped(Y[at] - theta[at] / w[i], 0.0, 1.0);
            H[at] = w[i] * p * (1.0 - p);
        }
}

static double logistic_curvature_near(int n, int q, const double *theta, const double *Y, const double *w)
{
    (void)n, (void)q, (void)theta, (void)Y, (void)w;
    return 0.25;
}

/* Predictors carry their rounding into the loss. */
static double logistic_cancelling(int n, int q, const double *Z, const double *w)
{
    go_sum size = {0.0, 0.0};
    for (int i = 0; i < n; i++)
        for (int k = 0; k < q; k++)
            go_add(&size, w[i] * (1.0 + fabs(Z[(size_t)i * q + k])));
    return go_total(&size);
}

static const go_loss logistic = {
    .evaluate = logistic_evaluate, .dual = logistic_dual, .balance = logistic_balance,
    .null_intercept = logistic_null_intercept, .curvatures = logistic_curvatures,
    .curvature_near = logistic_curvature_near, .cancelling = logistic_cancelling,
};

const go_loss *go_loss_logistic(void)
{
    return &logistic;
}

/* ---- Poisson: cost = exp z - y z ---------------------------------------------------------------------------------- */

/* Beyond this predictor the mean overflows soon: there the loss is infinite, and steps are refused. */
#define LARGEST_PREDICTOR 500.0

static double poisson_mean(double z)
{
    return exp(z < LARGEST_PREDICTOR ? z : LARGEST_PREDICTOR);
}

static double poisson_evaluate(int n, int q, const double *Z, const double *Y, const double *w, double *theta)
{
    go_sum value = {0.0, 0.0};
    for (int i = 0; i < n; i++)
        for (int k = 0; k < q; k++) {
            size_t at = (size_t)i * q + k;
            double mean = poisson_mean(Z[at]);
            go_add(&value, Z[at] > LARGEST_PREDICTOR ? INFINITY : w[i] * (mean - Y[at] * Z[at]));
            theta[at] = w[i] * (Y[at] - mean);
        }
    return go_total(&value);
}

static double poisson_dual_cost(double p)
{
    return p + entropy(p);
}

static double poisson_dual(int n, int q, const double *theta, double scale, const double *Y, const double *w)
{
    return separable_dual(n, q, theta, scale, Y, w, 0.0, INFINITY, poisson_dual_cost);
}

static void poisson_balance(int n, int q, double *theta, const double *Y, const double *w, double *work)
{
    (void)work;
    separable_balance(n, q, theta, Y, w, 0.0, INFINITY);
}

/* Logarithms of the means. */
static void poisson_null_intercept(int n, int q, const double *Y, const double *w, double *intercept)
{
    for (int k = 0; k < q; k++) {
        go_sum counts = {0.0, 0.0}, weights = {0.0, 0.0};
        for (int i = 0; i < n; i++) {
            go_add(&counts, w[i] * Y[(size_t)i * q + k]);
            go_add(&weights, w[i]);
        }
        double mean = go_total(&counts) / go_total(&weights);
        intercept[k] = log(mean > TINY_FREQUENCY ? mean : TINY_FREQUENCY);
    }
}

static void poisson_curvatures(int n, int q, const double *theta, const double *Y, const double *w, double *H)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < q; k++) {
            size_t at = (size_t)i * q + k;
            double p = clipped(Y[at] - theta[at] / w[i], 0.0, INFINITY);
            H[at] = w[i] * p;
        }
}

static double poisson_curvature_near(int n, int q, const double *theta, const double *Y, const double *w)
{
    double most = 0.0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < q; k++)
            most = fmax(most, Y[(size_t)i * q + k] - theta[(size_t)i * q + k] / w[i]);
    return exp(1.0) * most;
}

/* The mean multiplies the error of the predictor, and cancels with y z. */
static double poisson_cancelling(int n, int q, const double *Z, const double *w)
{
    go_sum size = {0.0, 0.0};
    for (int i = 0; i < n; i++)
        for (int k = 0; k < q; k++) {
            double z = Z[(size_t)i * q + k];
            go_add(&size, w[i] * (poisson_mean(z) + fabs(z)) * (1.0 + fabs(z)));
        }
    return go_total(&size);
}

static const go_loss poisson = {
    .evaluate = poisson_evaluate, .dual = poisson_dual, .balance = poisson_balance,
    .null_intercept = poisson_null_intercept, .curvatures = poisson_curvatures,
    .curvature_near = poisson_curvature_near, .cancelling = poisson_cancelling,
};

const go_loss *go_loss_poisson(void)
{
    return &poisson;
}

/* ---- Multinomial: f(z) = log sum_k exp z_k - <y, z>, theta = w (y - softmax(z)) --------------------------------- */

static double multinomial_evaluate(int n, int q, const double *Z, const double *Y, const double *w, double *theta)
{
    go_sum value = {0.0, 0.0};
    for (int i = 0; i < n; i++) {
        const double *z = Z + (size_t)i * q, *y = Y + (size_t)i * q;
        double *t = theta + (size_t)i * q, others = 0.0, below = 0.0;
        int top = 0;
        for (int k = 1; k < q; k++)
            top = z[k] > z[top] ? k : top;
        for (int k = 0; k < q; k++) {
            below += y[k] * (z[top] - z[k]);
            t[k] = exp(z[k] - z[top]);
            others += k == top ? 0.0 : t[k];
        }
        for (int k = 0; k < q; k++)
            t[k] = w[i] * (y[k] - t[k] / (1.0 + others));
        go_add(&value, w[i] * (log1p(others) + below));
    }
    return go_total(&value);
}

/* Weighted entropy of p = y - scale theta / w, minus infinity off the simplex. */
static double multinomial_dual(int n, int q, const double *theta, double scale, const double *Y, const double *w)
{
    go_sum value = {0.0, 0.0};
    for (int i = 0; i < n; i++) {
        double sum = 0.0;
        for (int k = 0; k < q; k++) {
            size_t at = (size_t)i * q + k;
            double p = Y[at] - scale * theta[at] / w[i];
            if (!(p >= -RANGE_RTOL))
                return -INFINITY;
            sum += p;
            go_add(&value, w[i] * entropy(p));
        }
        if (!(fabs(sum - 1.0) <= RANGE_RTOL))
            return -INFINITY;
    }
    return go_total(&value);
}

/* Transport rounding: classes with too large a total shrink to what the targets have; what a sample loses there goes
 * to the other classes in proportion to their deficits. */
static void multinomial_balance(int n, int q, double *theta, const double *Y, const double *w, double *work)
{
    double *share = work, *lost = work + q, deficit = 0.0;
    for (int k = 0; k < q; k++) {
        go_sum of_model = {0.0, 0.0}, of_targets = {0.0, 0.0};
        for (int i = 0; i < n; i++) {
            double target = w[i] * Y[(size_t)i * q + k];
            go_add(&of_model, target - theta[(size_t)i * q + k]);
            go_add(&of_targets, target);
        }
        double predicted = go_total(&of_model), wanted = go_total(&of_targets);
        lost[k] = predicted > wanted ? 1.0 - wanted / predicted : 0.0;
        share[k] = wanted > predicted ? wanted - predicted : 0.0;
        deficit += share[k];
    }
    for (int i = 0; i < n && deficit > 0.0; i++) {
        double moved = 0.0, *t = theta + (size_t)i * q;
        for (int k = 0; k < q; k++) {
            double p = Y[(size_t)i * q + k] - t[k] / w[i], away = p > 0.0 ? p * lost[k] : 0.0;
            t[k] += w[i] * away;
            moved += away;
        }
        for (int k = 0; k < q; k++)
            t[k] -= w[i] * moved * (share[k] / deficit);
    }
}

/* Logarithms of the class frequencies, with mean zero; finite for a class that never occurs. */
static void multinomial_null_intercept(int n, int q, const double *Y, const double *w, double *intercept)
{
    double mean = 0.0;
    for (int k = 0; k < q; k++) {
        go_sum of_class = {0.0, 0.0}, weights = {0.0, 0.0};
        for (int i = 0; i < n; i++) {
            go_add(&of_class, w[i] * Y[(size_t)i * q + k]);
            go_add(&weights, w[i]);
        }
        double frequency = go_total(&of_class) / go_total(&weights);
        intercept[k] = log(frequency > TINY_FREQUENCY ? frequency : TINY_FREQUENCY);
        mean += intercept[k] / q;
    }
    for (int k = 0; k < q; k++)
        intercept[k] -= mean;
}

static void multinomial_curvatures(int n, int q, const double *theta, const double *Y, const double *w, double *H)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < q; k++) {
            size_t at = (size_t)i * q + k;
            double p = clipped(Y[at] - theta[at] / w[i], 0.0, 1.0);
            H[at] = w[i] * p * (1.0 - p);
        }
}

static double multinomial_curvature_near(int n, int q, const double *theta, const double *Y, const double *w)
{
    (void)n, (void)q, (void)theta, (void)Y, (void)w;
    return 0.5;
}

/* Differences of predictors carry their rounding. */
static double multinomial_cancelling(int n, int q, const double *Z, const double *w)
{
    go_sum size = {0.0, 0.0};
    for (int i = 0; i < n; i++) {
        double largest = 0.0;
        for (int k = 0; k < q; k++)
            largest = fmax(largest, fabs(Z[(size_t)i * q + k]));
        go_add(&size, w[i] * largest);
    }
    return go_total(&size);
}

static const go_loss multinomial = {
    .evaluate = multinomial_evaluate, .dual = multinomial_dual, .balance = multinomial_balance,
    .null_intercept = multinomial_null_intercept, .curvatures = multinomial_curvatures,
    .curvature_near = multinomial_curvature_near,
    .cancelling = multinomial_cancelling,
};

const go_loss *go_loss_multinomial(void)
{
    return &multinomial;
}
