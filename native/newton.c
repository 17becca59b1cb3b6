/* Newton steps along the pattern of one task: non-zero rows and clusters of equal norms as they are. Once gradient
 * steps have found them, one such step ends most solves. The NumPy twin is groupowl/solvers/inner/newton.py. */
#include "inner.h"

#include <math.h>
#include <string.h>

/* Norms that the prox has just made equal differ by rounding only. */
#define TIE_RTOL 1e-12
/* How often clusters that passed each other in a Newton step are merged, and the others solved for again. */
#define MERGES 3
/* A Newton step that makes rows longer than the longest times this comes from a nearly singular system. */
#define LONGEST_STEP 10.0

/* Non-zero rows by falling norm, and the clusters of equal norms that they form. */
typedef struct {
    int count, clusters;
    int *row, *cluster;      /* of each non-zero row */
    double *K, *right;       /* K r = right at the minimizer over the radii r of the clusters; lower triangle */
} pattern;

static pattern find_pattern(const go_inner *p, int ordered)
{
    pattern t = {.row = p->pattern, .cluster = p->work};
    for (int j = 0; j < p->units; j++)
        if (p->B[j] != 0.0)
            t.row[t.count++] = j;
    go_unit_norms(p->units, NULL, 1, p->B, p->norms);
    go_sort_falling(t.count, p->norms, t.row, p->work);
    for (int i = 0; i < t.count; i++) {
        int tied = ordered && i > 0 && p->norms[t.row[i]] >= p->norms[t.row[i - 1]] * (1.0 - TIE_RTOL);
        t.cluster[i] = tied ? t.clusters - 1 : t.clusters++;
    }
    return t;
}

/* K = S^T G S with S the signed indicators of the clusters, from G or as the Gram matrix of A S. */
static void set_cluster_gram(const go_inner *p, const pattern *t)
{
    int c = t->clusters, n = p->n;
    double unit = 1.0, zero = 0.0;
    memset(t->K, 0, (size_t)c * c * sizeof *t->K);
    if (!p->G)
        memset(p->cluster_sums, 0, (size_t)n * c * sizeof *p->cluster_sums);
    for (int i = 0; i < t->count; i++) {
        int j = t->row[i], a = t->cluster[i];
        double sign = p->B[j] > 0.0 ? 1.0 : -1.0;
        if (!p->G) {
            const double *column = p->A + (size_t)j * n;
            double *sum = p->cluster_sums + (size_t)a * n;
            for (int k = 0; k < n; k++)
                sum[k] += sign * column[k];
            continue;
        }
        const double *column = p->G + (size_t)j * p->ldg;
        double *target = t->K + (size_t)a * c;
        for (int l = i; l < t->count; l++) {
            int b = t->cluster[l]; /* both orders of a pair within a cluster count */
            target[b] += (b == a && l > i ? 2.0 : 1.0) * (p->B[t->row[l]] > 0.0 ? sign : -sign) * column[t->row[l]];
        }
    }
    if (!p->G)
        p->blas->dsyrk("L", "T", &c, &n, &unit, p->cluster_sums, &n, &zero, t->K, &c);
}

/* The system for the radii: K r = K r_now + S^T C - sums of lam. */
static void set_system(const go_inner *p, pattern *t, double *memory)
{
    int c = t->clusters;
    t->right = memory;
    t->K = memory + c;
    set_cluster_gram(p, t);
    memset(t->right, 0, (size_t)c * sizeof *t->right);
    for (int i = 0; i < t->count; i++)
        t->right[t->cluster[i]] += (p->B[t->row[i]] > 0.0 ? p->C[t->row[i]] : -p->C[t->row[i]]) - p->lam[i];
    for (int i = 0; i < t->count; i++) {
        if (i > 0 && t->cluster[i] == t->cluster[i - 1])
            continue;
        int a = t->cluster[i];
        double radius = p->norms[t->row[i]];
        for (int b = 0; b < c; b++)
            t->right[b] += radius * (b >= a ? t->K[(size_t)a * c + b] : t->K[(size_t)b * c + a]);
    }
}

/* Solve for the unknowns that stand for clusters, each the sum of its clusters; 0 if there is no solution. */
static int solve_system(const go_inner *p, const pattern *t, const int *unknown, int size, double *K, double *radii)
{
    int one = 1, failed = 0;
    memset(K, 0, (size_t)size * size * sizeof *K);
    memset(radii, 0, (size_t)size * sizeof *radii);
    for (int a = 0; a < t->clusters; a++) {
        int to = unknown[a];
        if (to < 0)
            continue;
        radii[to] += t->right[a];
        for (int b = a; b < t->clusters; b++) {
            int other = unknown[b];
            if (other >= 0)
                K[(size_t)to * size + other] += (to == other && a != b ? 2.0 : 1.0) * t->K[(size_t)a * t->clusters + b];
        }
    }
    p->blas->dpotrf("L", &size, K, &size, &failed);
    if (!failed)
        p->blas->dpotrs("L", &size, &one, K, &size, radii, &size, &failed);
    return !failed;
}

/* To the minimizer over the radii of the clusters, each at its weights. Radii that come out negative are taken for
 * zero, clusters that passed each other for one, and the others are solved for again, a few times. The NumPy twin is
 * in groupowl/solvers/inner/newton.py. 0 if it did not help. */
int go_pattern_step(go_inner *p)
{
    int ordered = !go_has_equal_weights(p);
    pattern t = find_pattern(p, ordered);
    int size = t.clusters, *unknown = p->work + p->units, *renamed = unknown + p->units;
    if (size == 0 || size > p->newton_size)
        return 0;
    set_system(p, &t, p->system);
    double *radii = t.K + (size_t)size * size, *sizes = radii + size, *blocks = sizes + size, *K = blocks + size;
    double longest = LONGEST_STEP * p->norms[t.row[0]];
    for (int c = 0; c < t.clusters; c++)
        unknown[c] = c;
    for (int tries = 0;; tries++) {
        if (size == 0 || !solve_system(p, &t, unknown, size, K, radii))
            return 0;
        memset(sizes, 0, (size_t)size * sizeof *sizes);
        for (int i = 0; i < t.count; i++)
            if (unknown[t.cluster[i]] >= 0)
                sizes[unknown[t.cluster[i]]] += 1.0;
        if (ordered)
            go_pool(size, radii, sizes, renamed, blocks);
        int kept = 0;
        for (int a = 0; a < size; a++) {
            if (!(radii[a] < longest)) /* nearly singular, or not a number */
                return 0;
            int tied = ordered && kept > 0 && radii[a] == radii[a - 1];
            renamed[a] = radii[a] <= 0.0 ? -1 : tied ? kept - 1 : kept++;
        }
        if (kept == size || tries == MERGES)
            break;
        for (int c = 0; c < t.clusters; c++)
            unknown[c] = unknown[c] < 0 ? -1 : renamed[unknown[c]];
        size = kept;
    }
    memset(p->V, 0, (size_t)p->units * sizeof *p->V);
    for (int i = 0; i < t.count; i++) {
        int a = unknown[t.cluster[i]];
        if (a >= 0 && radii[a] > 0.0)
            p->V[t.row[i]] = copysign(radii[a], p->B[t.row[i]]);
    }
    if (!go_move_to(p, p->V))
        return 0;
    p->steps++;
    return 1;
}
