/* The OWL norm: value, dual norm (gauge), proximal map and optimality conditions, as functions of unit norms.
 * The NumPy twins, and the definitions, are in groupowl/norm/kernels.py; formulas: docs/mathematics/model.rst. `lam` is
 * non-increasing everywhere. */
#include "groupowl.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Rounds of the repeated test before sorting what is left. */
#define TEST_ROUNDS 8
/* Length of runs that insertion sorts before they are merged. */
#define SHORT_RUN 16
/* Terms that are added up before rounding is looked after. */
#define LONGEST_SUM 128

/* ---- Sorting --------------------------------------------------------------------------------------------------- */

/* Sort `order` by falling key; equal keys keep their order. From step to step it hardly changes, so pieces that are in
 * order already are left alone. work: n */
void go_sort_falling(int n, const double *key, int *order, int *work)
{
    for (int low = 0; low < n; low += SHORT_RUN) {
        int high = low + SHORT_RUN < n ? low + SHORT_RUN : n;
        for (int i = low + 1; i < high; i++) {
            int item = order[i], j = i;
            double value = key[item];
            for (; j > low && key[order[j - 1]] < value; j--)
                order[j] = order[j - 1];
            order[j] = item;
        }
    }
    for (int width = SHORT_RUN; width < n; width *= 2) {
        for (int low = 0; low + width < n; low += 2 * width) {
            int middle = low + width, high = middle + width < n ? middle + width : n;
            if (key[order[middle - 1]] >= key[order[middle]])
                continue;
            memcpy(work, order + low, (size_t)width * sizeof *order);
            int left = 0, right = middle;
            for (int k = low; left < width; k++)
                order[k] = right == high || key[work[left]] >= key[order[right]] ? work[left++] : order[right++];
        }
    }
}

/* Move to the front, in their order, the units that survive "drop j if values_j < factor lam_|A|" repeated until
 * nothing changes, or nearly so; their number. The others follow. Nothing is lost: they cannot matter to a sum that is
 * at least `factor` times its weights. work: n */
static int survivors(int n, const double *values, const double *lam, double factor, int *order, int *work)
{
    int alive = n;
    for (int round = 0; round < TEST_ROUNDS && alive > 0; round++) {
        double least = factor * lam[alive - 1];
        int kept = 0, dropped = 0;
        for (int i = 0; i < alive; i++) {
            if (values[order[i]] < least)
                work[dropped++] = order[i];
            else
                order[kept++] = order[i];
        }
        memcpy(order + kept, work, (size_t)dropped * sizeof *order);
        alive = kept;
        if (dropped <= kept / 8)
            break;
    }
    return alive;
}

static void count_up(int n, int *order)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
}

/* ---- Values ---------------------------------------------------------------------------------------------------- */

void go_unit_norms(int n_units, const int *start, int q, const double *B, double *norms)
{
    if (q == 1 && !start) {
        for (int u = 0; u < n_units; u++)
            norms[u] = fabs(B[u]);
        return;
    }
    for (int u = 0; u < n_units; u++) {
        size_t first = (size_t)(start ? start[u] : u) * q, last = (size_t)(start ? start[u + 1] : u + 1) * q;
        double sum = 0.0;
        for (size_t k = first; k < last; k++)
            sum += B[k] * B[k];
        norms[u] = sqrt(sum);
    }
}

static double largest_of(int n, const double *values)
{
    double most[4] = {0.0, 0.0, 0.0, 0.0}; /* four at a time: each comparison waits for the one before */
    for (int j = 0; j < n; j++)
        most[j % 4] = values[j] > most[j % 4] ? values[j] : most[j % 4];
    double left = most[0] > most[1] ? most[0] : most[1], right = most[2] > most[3] ? most[2] : most[3];
    return left > right ? left : right;
}

/* J = sum_i lam_i norm_[i] */
double go_owl_value(int n, const double *norms, const double *lam, int *work)
{
    int *order = work, count = 0;
    go_sum value = {0.0, 0.0};
    if (n == 0)
        return 0.0;
    if (lam[0] == lam[n - 1]) {
        for (int first = 0; first < n; first += LONGEST_SUM) {
            double piece = 0.0;
            for (int j = first; j < n && j < first + LONGEST_SUM; j++)
                piece += norms[j];
            go_add(&value, piece);
        }
        return lam[0] * go_total(&value);
    }
    for (int j = 0; j < n; j++)
        if (norms[j] > 0.0)
            order[count++] = j;
    go_sort_falling(count, norms, order, work + n);
    for (int first = 0; first < count; first += LONGEST_SUM) {
        double piece = 0.0;
        for (int i = first; i < count && i < first + LONGEST_SUM; i++)
            piece += lam[i] * norms[order[i]];
        go_add(&value, piece);
    }
    return go_total(&value);
}

/* Dual norm: max_k (sum of the k largest norms) / (lam_1 + ... + lam_k). Where the ratio is largest, the last norm
 * summed is at least the ratio times its weight, so units below a bound of it need no sorting. Sums are long, and
 * rounded up: too small a gauge would make an infeasible point pass for a feasible one. */
double go_owl_gauge(int n, const double *norms, const double *lam, int *work)
{
    double largest = largest_of(n, norms);
    if (largest == 0.0)
        return 0.0;
    if (lam[0] == 0.0 || !isfinite(largest / lam[0]))
        return INFINITY;
    if (lam[0] == lam[n - 1])
        return largest / lam[0];
    count_up(n, work);
    int count = survivors(n, norms, lam, largest / lam[0] * (1.0 - 64.0 * DBL_EPSILON), work, work + n);
    go_sort_falling(count, norms, work, work + n);
    long double sum = 0.0L, weights = 0.0L, gauge = 0.0L;
    for (int i = 0; i < count; i++) {
        sum += norms[work[i]];
        weights += lam[i];
        long double ratio = sum / weights * (1.0L + 2.0L * LDBL_EPSILON * i);
        gauge = ratio > gauge ? ratio : gauge;
    }
    return (double)gauge;
}

/* ---- Proximal map ---------------------------------------------------------------------------------------------- */

/* Pool adjacent violators: the non-increasing sequence nearest to `values`. */
void go_pool(int n, double *values, const double *weights, int *work, double *blocks)
{
    int count = 0; /* blocks; block b begins at work[b] and has mean blocks[b] */
    for (int i = 0; i < n; i++) {
        double mean = values[i], weight = weights ? weights[i] : 1.0;
        int first = i;
        while (count > 0 && blocks[count - 1] <= mean) {
            count--;
            double other = 0.0;
            if (weights)
                for (int k = work[count]; k < first; k++)
                    other += weights[k];
            else
                other = first - work[count];
            mean = (other * blocks[count] + weight * mean) / (other + weight);
            weight += other;
            first = work[count];
        }
        work[count] = first;
        blocks[count++] = mean;
    }
    for (int b = 0; b < count; b++)
        for (int k = work[b]; k < (b + 1 < count ? work[b + 1] : n); k++)
            values[k] = blocks[b];
}

/* Norms after the proximal map of `step` J, and J there: sorted downwards, norm_[i] - step lam_i is pooled to a
 * non-increasing sequence, and what is positive of it remains. Units below their own weight become zero unsorted. */
double go_owl_prox(int n, const double *norms, const double *lam, double step, int *order, int *work, double *blocks,
                   double *shrunk)
{
    double value = 0.0;
    if (n == 0)
        return 0.0;
    if (lam[0] == lam[n - 1]) {
        double weight = step * lam[0];
        for (int j = 0; j < n; j++) {
            shrunk[j] = norms[j] > weight ? norms[j] - weight : 0.0;
            value += shrunk[j];
        }
        return lam[0] * value;
    }
    int count = survivors(n, norms, lam, step, order, work);
    go_sort_falling(count, norms, order, work);
    /* Pool as above, with sums in place of means: all weights are 1. */
    int last = 0;
    for (int i = 0; i < count; i++) {
        double mean = norms[order[i]] - step * lam[i];
        int first = i;
        while (last > 0 && blocks[last - 1] <= mean) {
            last--;
            int size = i + 1 - first, other = first - work[last];
            mean += (blocks[last] - mean) * other / (other + size);
            first = work[last];
        }
        work[last] = first;
        blocks[last++] = mean;
    }
    memset(shrunk, 0, (size_t)n * sizeof *shrunk);
    for (int b = 0; b < last && blocks[b] > 0.0; b++) {
        int end = b + 1 < last ? work[b + 1] : count;
        for (int i = work[b]; i < end; i++) {
            shrunk[order[i]] = blocks[b];
            value += lam[i] * blocks[b];
        }
    }
    return value;
}

/* ---- Optimality conditions ------------------------------------------------------------------------------------- */

/* The largest values up to the last maximizer of sum_{i<=k} (value_i - lam_i), by falling value: the extended rule of
 * docs/mathematics/screening.rst at the residual as it is. */
int go_kkt_units(int n, const double *values, const double *lam, int *units, int *work)
{
    count_up(n, units);
    int count = survivors(n, values, lam, 1.0, units, work), best = 0;
    go_sort_falling(count, values, units, work);
    if (count && values[units[count - 1]] >= lam[0])
        return count;
    double excess = 0.0, most = 0.0, size = 0.0;
    for (int i = 0; i < count; i++) {
        excess += values[units[i]] - lam[i];
        size += values[units[i]] + lam[i];
        if (!(excess < most - DBL_EPSILON * count * size)) {
            best = i + 1;
            most = excess > most ? excess : most;
        }
    }
    return best;
}
