/* Newton steps along the pattern of one task: non-zero rows and clusters of equal norms as they are. Once gradient
 * steps have found them, one such step ends most solves of squared loss, and a few those of other losses, each at the
 * curvature of the samples where it starts. The NumPy twin is groupowl/solvers/inner/newton.py. */
#include "inner.h"

#include <math.h>
#include <string.h>

/* Norms that the prox has just made equal differ by rounding only. */
#define TIE_RTOL 1e-12
/* How often clusters that passed each other in a Newton step are merged, and the others solved for again. */
#define MERGES 3
/* A Newton step that makes rows longer than the longest times this comes from a nearly singular system. */
#define LONGEST_STEP 10.0
/* Where the curvature changes a step may be too long: so often it is halved. */
#define HALVINGS 3

/* Non-zero rows by falling norm, and the clusters of equal norms that they form. Arrays are of the penalized rows. */
typedef struct {
    const double *B, *C;
    int count, clusters;
    int *row, *cluster;      /* of each non-zero row */
    double *K, *right;       /* K r = right at the minimizer over the radii r of the clusters; lower triangle */
    double *share;           /* of each cluster, how much the intercept falls when its radius rises */
    double free_move;        /* of the intercept if no radius moves */
} pattern;

static pattern find_pattern(const go_inner *p, int ordered)
{
    pattern t = {.B = p->B + p->fixed, .C = p->C + p->fixed, .row = p->pattern, .cluster = p->work};
    for (int j = 0; j < p->units; j++)
        if (t.B[j] != 0.0)
            t.row[t.count++] = j;
    go_unit_norms(p->units, NULL, 1, t.B, p->norms);
    go_sort_falling(t.count, p->norms, t.row, p->work);
    for (int i = 0; i < t.count; i++) {
        int tied = ordered && i > 0 && p->norms[t.row[i]] >= p->norms[t.row[i - 1]] * (1.0 - TIE_RTOL);
        t.cluster[i] = tied ? t.clusters - 1 : t.clusters++;
    }
    return t;
}

/* A S, with S the signed indicators of the clusters. */
static void add_up_columns(const go_inner *p, const pattern *t)
{
    int n = p->n;
    memset(p->cluster_sums, 0, (size_t)n * t->clusters * sizeof *p->cluster_sums);
    for (int i = 0; i < t->count; i++) {
        const double *column = p->A + (size_t)(p->fixed + t->row[i]) * n;
        double sign = t->B[t->row[i]] > 0.0 ? 1.0 : -1.0, *sum = p->cluster_sums + (size_t)t->cluster[i] * n;
        for (int k = 0; k < n; k++)
            sum[k] += sign * column[k];
    }
}

/* The same times the roots of the curvatures; with an intercept, less what it explains of them. 0 if there is no
 * curvature left. */
static int weigh_columns(go_inner *p, pattern *t)
{
    int n = p->n;
    double *root = p->curvatures, own = 0.0;
    p->loss->curvatures(n, 1, p->theta, p->Y, p->w, root);
    for (int k = 0; k < n; k++) {
        root[k] = sqrt(root[k]);
        for (int a = 0; a < t->clusters; a++)
            p->cluster_sums[(size_t)a * n + k] *= root[k];
        own += p->fixed ? root[k] * p->A[k] * root[k] * p->A[k] : 0.0;
    }
    if (!p->fixed)
        return 1;
    if (!(own > 0.0))
        return 0;
    t->free_move = p->C[0] / own;
    for (int k = 0; k < n; k++)
        root[k] *= p->A[k];
    for (int a = 0; a < t->clusters; a++) {
        double *sum = p->cluster_sums + (size_t)a * n;
        t->share[a] = go_dot((size_t)n, sum, root) / own;
        for (int k = 0; k < n; k++)
            sum[k] -= t->share[a] * root[k];
    }
    return 1;
}

/* K = S^T G S, from G or as the Gram matrix of A S; 0 if there is none. */
static int set_cluster_gram(go_inner *p, pattern *t)
{
    int c = t->clusters, n = p->n;
    double unit = 1.0, zero = 0.0;
    memset(t->K, 0, (size_t)c * c * sizeof *t->K);
    if (!p->G) {
        add_up_columns(p, t);
        if (!p->loss->quadratic && !weigh_columns(p, t))
            return 0;
        p->blas->dsyrk("L", "T", &c, &n, &unit, p->cluster_sums, &n, &zero, t->K, &c);
        return 1;
    }
    for (int i = 0; i < t->count; i++) {
        int j = t->row[i], a = t->cluster[i];
        double sign = t->B[j] > 0.0 ? 1.0 : -1.0;
        const double *column = p->G + (size_t)j * p->ldg;
        double *target = t->K + (size_t)a * c;
        for (int l = i; l < t->count; l++) {
            int b = t->cluster[l]; /* both orders of a pair within a cluster count */
            target[b] += (b == a && l > i ? 2.0 : 1.0) * (t->B[t->row[l]] > 0.0 ? sign : -sign) * column[t->row[l]];
        }
    }
    return 1;
}

/* The system for the radii: K r = K r_now + S^T C - sums of lam, with the intercept where it is best. 0 if there is
 * none. */
static int set_system(go_inner *p, pattern *t, double *memory)
{
    int c = t->clusters;
    t->right = memory;
    t->share = memory + c;
    t->K = memory + 2 * c;
    memset(t->right, 0, 2 * (size_t)c * sizeof *t->right);
    if (!set_cluster_gram(p, t))
        return 0;
    for (int i = 0; i < t->count; i++)
        t->right[t->cluster[i]] += (t->B[t->row[i]] > 0.0 ? t->C[t->row[i]] : -t->C[t->row[i]]) - p->lam[i];
    for (int a = 0; a < c && p->fixed; a++)
        t->right[a] -= t->share[a] * p->C[0];
    for (int i = 0; i < t->count; i++) {
        if (i > 0 && t->cluster[i] == t->cluster[i - 1])
            continue;
        int a = t->cluster[i];
        double radius = p->norms[t->row[i]];
        for (int b = 0; b < c; b++)
            t->right[b] += radius * (b >= a ? t->K[(size_t)a * c + b] : t->K[(size_t)b * c + a]);
    }
    return 1;
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

/* Coefficients with these radii, the same signs and the intercept that is best with them. */
static void set_coefficients(go_inner *p, const pattern *t, const int *unknown, const double *radii)
{
    double *V = p->V + p->fixed;
    memset(V, 0, (size_t)p->units * sizeof *V);
    if (p->fixed)
        p->V[0] = p->B[0] + t->free_move;
    for (int i = 0; i < t->count; i++) {
        int a = unknown[t->cluster[i]];
        double radius = a >= 0 && radii[a] > 0.0 ? radii[a] : 0.0;
        if (p->fixed && (i == 0 || t->cluster[i] != t->cluster[i - 1]))
            p->V[0] -= t->share[t->cluster[i]] * (radius - p->norms[t->row[i]]);
        if (radius > 0.0)
            V[t->row[i]] = copysign(radius, t->B[t->row[i]]);
    }
}

/* To the minimizer over the radii of the clusters, each at its weights. Radii that come out negative are taken for
 * zero, clusters that passed each other for one, and the others are solved for again, a few times. The NumPy twin is
 * in groupowl/solvers/inner/newton.py. 0 if it did not help. */
int go_pattern_step(go_inner *p)
{
    int ordered = !go_has_equal_weights(p);
    pattern t = find_pattern(p, ordered);
    int size = t.clusters, *unknown = p->work + p->units, *renamed = unknown + p->units;
    if (size == 0 || size > p->newton_size || !set_system(p, &t, p->system))
        return 0;
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
    set_coefficients(p, &t, unknown, radii);
    for (int halvings = 0; !go_move_to(p, p->V); halvings++) {
        if (p->loss->quadratic || halvings == HALVINGS)
            return 0;
        for (int r = 0; r < p->rows; r++)
            p->V[r] = 0.5 * (p->B[r] + p->V[r]);
    }
    p->steps++;
    return 1;
}
