/* Minimization on a working set: proximal gradient steps of Barzilai-Borwein length for all problems, Newton steps along
 * the pattern for one task, coordinate descent with Anderson extrapolation for equal weights. The NumPy twin is
 * groupowl/solvers/inner; formulas: math.md, sections 7.2 and 11. */
#include "groupowl.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Armijo's constant, and how many past objectives a step may compare itself with. */
#define DECREASE 5e-5
#define MEMORY 3
/* Differences of objectives below this, relatively, are rounding. */
#define NOISE (64.0 * DBL_EPSILON)
/* Steps between two computations of the gap; the first ones of a warm start come sooner. */
#define CHECK_EVERY 5
/* Steps in a row with the same of the two Barzilai-Borwein lengths after so many steps. */
#define LONG_TURNS_AFTER 200
#define LONG_TURN 4
/* Curvatures below this fraction of the largest one seen are not trusted. */
#define CURVATURE_RANGE 1e-4
#define MOST_DOUBLINGS 60
/* Steps that must halve the gap, or the problem goes back to Python. */
#define SLOW_STEPS 150
/* Gradient steps before another method has its turn: from far away, from nearby, after a Newton step that helped. */
#define FAR_STEPS 10
#define NEAR_STEPS 3
/* Norms that the prox has just made equal differ by rounding only. */
#define TIE_RTOL 1e-12
/* How often clusters that passed each other in a Newton step are merged, and the others solved for again. */
#define MERGES 3
/* A Newton step that makes rows longer than the longest times this comes from a nearly singular system. */
#define LONGEST_STEP 10.0

/* A move with fewer non-zero rows than this is multiplied column by column. */
#define SPARSE_MOVE 0.6

enum { GO_ON, DONE, SLOW, PAUSED };

#if defined(__GNUC__) && defined(__x86_64__) && defined(__linux__) && !defined(__clang__) && !defined(GO_PLAIN)
#define FOR_EACH_MACHINE __attribute__((target_clones("avx2,fma", "default")))
#else
#define FOR_EACH_MACHINE
#endif

/* ---- Products -------------------------------------------------------------------------------------------------- */

static int is_mostly_zero(int m, const double *b)
{
    int count = 0;
    for (int j = 0; j < m; j++)
        count += b[j] != 0.0;
    return count < SPARSE_MOVE * m;
}

/* z = sum of the columns of A with b_j != 0, times b_j; four at a time. One task. */
FOR_EACH_MACHINE
static void add_columns(int n, int m, const double *A, size_t ld, const double *b, double *z)
{
    const double *column[4];
    double factor[4];
    int count = 0;
    memset(z, 0, (size_t)n * sizeof *z);
    for (int j = 0; j < m; j++) {
        if (b[j] != 0.0) {
            column[count] = A + (size_t)j * ld;
            factor[count++] = b[j];
        }
        if (count == 4 || (count > 0 && j == m - 1)) {
            for (; count < 4; count++) {
                column[count] = column[0];
                factor[count] = 0.0;
            }
            const double *a0 = column[0], *a1 = column[1], *a2 = column[2], *a3 = column[3];
            double b0 = factor[0], b1 = factor[1], b2 = factor[2], b3 = factor[3];
            for (int i = 0; i < n; i++)
                z[i] += (a0[i] * b0 + a1[i] * b1) + (a2[i] * b2 + a3[i] * b3);
            count = 0;
        }
    }
}

/* Z = A B */
void go_predict(const go_inner *p, const double *B, double *Z)
{
    if (p->q == 1 && is_mostly_zero(p->rows, B))
        add_columns(p->n, p->rows, p->A, (size_t)p->n, B, Z);
    else
        go_multiply(p->blas, p->q, p->n, p->rows, B, p->A, p->n, 1, 0.0, Z);
}

/* C = A^T theta */
void go_correlate(const go_inner *p, const double *theta, double *C)
{
    go_multiply(p->blas, p->q, p->rows, p->n, theta, p->A, p->n, 0, 0.0, C);
}

/* image = G move */
static void apply_gram(const go_inner *p, const double *move, double *image)
{
    if (p->q == 1 && is_mostly_zero(p->rows, move))
        add_columns(p->rows, p->rows, p->G, (size_t)p->ldg, move, image);
    else
        go_multiply(p->blas, p->q, p->rows, p->rows, move, p->G, p->ldg, 0, 0.0, image);
}

double go_evaluate(go_inner *p, const double *B, double *theta)
{
    go_predict(p, B, p->Z);
    return p->loss->evaluate(p->n, p->q, p->Z, p->Y, p->w, theta);
}

/* Loss at V, a move away from B. What change_after needs is left in image (Gram form), Z or theta. */
static double value_after(go_inner *p, const double *V, const double *move)
{
    size_t size = (size_t)p->rows * p->q;
    if (!p->loss->quadratic)
        return go_evaluate(p, V, p->theta);
    double half;
    if (p->G) {
        apply_gram(p, move, p->image);
        half = 0.5 * go_dot(size, move, p->image);
    } else {
        go_predict(p, move, p->Z);
        half = 0.5 * go_dot((size_t)p->n * p->q, p->Z, p->Z);
    }
    return p->value + half - go_dot(size, p->C, move);
}

/* image = C before the move less C after it */
static void change_after(go_inner *p)
{
    if (p->loss->quadratic && p->G)
        return;
    go_correlate(p, p->loss->quadratic ? p->Z : p->theta, p->image);
    if (!p->loss->quadratic)
        for (size_t i = 0; i < (size_t)p->rows * p->q; i++)
            p->image[i] = p->C[i] - p->image[i];
}

/* ---- Penalty and gap ------------------------------------------------------------------------------------------- */

static int has_equal_weights(const go_inner *p)
{
    return p->units == 0 || p->lam[0] == p->lam[p->units - 1];
}

static double penalty_of(const go_inner *p, const double *B)
{
    go_unit_norms(p->units, p->start, p->q, B + (size_t)p->fixed * p->q, p->norms);
    return go_owl_value(p->units, p->norms, p->lam, p->work);
}

/* V becomes its prox with this step; the value of the penalty there. */
static double shrink(const go_inner *p, double *V, double step)
{
    int q = p->q;
    double *rows = V + (size_t)p->fixed * q;
    go_unit_norms(p->units, p->start, q, rows, p->norms);
    double value = go_owl_prox(p->units, p->norms, p->lam, step, p->order, p->work, p->blocks, p->shrunk);
    if (q == 1 && !p->start) { /* norms of a cluster are equal to the last bit then */
        for (int u = 0; u < p->units; u++)
            rows[u] = copysign(p->shrunk[u], rows[u]);
        return value;
    }
    for (int u = 0; u < p->units; u++) {
        double factor = p->norms[u] > 0.0 ? p->shrunk[u] / p->norms[u] : 0.0;
        size_t first = (size_t)(p->start ? p->start[u] : u) * q, last = (size_t)(p->start ? p->start[u + 1] : u + 1) * q;
        for (size_t k = first; k < last; k++)
            rows[k] *= factor;
    }
    return value;
}

/* The duality gap on the working set at B, C, value and penalty (and theta, if the loss is not quadratic). */
static double gap_of(go_inner *p)
{
    size_t size = (size_t)p->n * p->q;
    const double *C = p->C, *theta = p->theta;
    if (!p->loss->quadratic && p->fixed) {
        memcpy(p->balanced, p->theta, size * sizeof *p->theta);
        p->loss->balance(p->n, p->q, p->balanced, p->Y, p->w, p->Z);
        go_correlate(p, p->balanced, p->image);
        C = p->image;
        theta = p->balanced;
    }
    go_unit_norms(p->units, p->start, p->q, C + (size_t)p->fixed * p->q, p->norms);
    double gauge = go_owl_gauge(p->units, p->norms, p->lam, p->work), dual;
    if (p->loss->quadratic) {
        double square = 2.0 * p->value, product = square + go_dot((size_t)p->rows * p->q, p->C, p->B);
        dual = go_quadratic_dual(product, square, gauge);
    } else {
        dual = p->loss->dual(p->n, p->q, theta, gauge > 1.0 ? 1.0 / gauge : 1.0, p->Y, p->w);
    }
    return p->value + p->penalty - dual;
}

/* ---- Where a solve stands -------------------------------------------------------------------------------------- */

typedef struct {
    go_goal goal;
    double recent[MEMORY]; /* past objectives */
    int n_recent;
    double largest;        /* largest curvature seen */
    double halved_gap;     /* when the gap was last found to have halved, and after how many steps */
    int halved_at;
} progress;

static void start_again(go_inner *p, progress *s)
{
    s->recent[0] = p->value + p->penalty;
    s->n_recent = 1;
}

static void remember(progress *s, double objective)
{
    if (s->n_recent == MEMORY) {
        memmove(s->recent, s->recent + 1, (MEMORY - 1) * sizeof *s->recent);
        s->n_recent--;
    }
    s->recent[s->n_recent++] = objective;
}

/* Look at the gap, and whether to go on. */
static int verdict(go_inner *p, progress *s)
{
    p->gap = gap_of(p);
    if (p->gap <= s->goal.tight || (p->gap <= s->goal.loose && p->steps >= s->goal.free_steps))
        return DONE;
    if (p->steps >= s->goal.max_steps)
        return DONE;
    if (p->gap <= 0.5 * s->halved_gap) {
        s->halved_gap = p->gap;
        s->halved_at = p->steps;
    } else if (p->steps - s->halved_at > SLOW_STEPS) {
        return SLOW;
    }
    return p->pause(p->pause_argument) ? PAUSED : GO_ON;
}

/* ---- Proximal gradient steps ------------------------------------------------------------------------------------ */

/* One step with a non-monotone line search (SpaRSA). 0 if no step is short enough, or none is needed. */
static int gradient_step(go_inner *p, progress *s)
{
    size_t size = (size_t)p->rows * p->q;
    double reference = s->recent[0], penalty = 0.0, value = 0.0, square = 0.0;
    for (int i = 1; i < s->n_recent; i++)
        reference = s->recent[i] > reference ? s->recent[i] : reference;
    int doublings = 0;
    for (;; doublings++, p->lipschitz *= 2.0) {
        if (doublings == MOST_DOUBLINGS)
            return 0;
        double step = 1.0 / p->lipschitz;
        for (size_t i = 0; i < size; i++)
            p->V[i] = p->B[i] + step * p->C[i];
        penalty = shrink(p, p->V, step);
        for (size_t i = 0; i < size; i++)
            p->move[i] = p->V[i] - p->B[i];
        square = go_dot(size, p->move, p->move);
        value = value_after(p, p->V, p->move);
        double objective = value + penalty;
        if (objective <= reference - DECREASE * p->lipschitz * square + 4.0 * DBL_EPSILON * fabs(reference))
            break;
        if (objective <= reference + NOISE * fabs(reference)) { /* gradients tell what objectives cannot */
            change_after(p);
            if (go_dot(size, p->move, p->image) <= p->lipschitz * square)
                break;
        }
    }
    change_after(p);
    memcpy(p->B, p->V, size * sizeof *p->B);
    for (size_t i = 0; i < size; i++)
        p->C[i] -= p->image[i];
    p->value = value;
    p->penalty = penalty;
    remember(s, value + penalty);
    p->steps++;
    s->largest = p->lipschitz > s->largest ? p->lipschitz : s->largest;
    double product = go_dot(size, p->move, p->image);
    if (product > 0.0) { /* one of the two Barzilai-Borwein curvatures in turn */
        int turn = p->steps <= LONG_TURNS_AFTER ? p->steps : p->steps / LONG_TURN;
        p->lipschitz = turn % 2 ? product / square : go_dot(size, p->image, p->image) / product;
    }
    if (!(p->lipschitz >= CURVATURE_RANGE * s->largest))
        p->lipschitz = CURVATURE_RANGE * s->largest;
    return square > 0.0;
}

/* Several steps, with looks at the gap. */
static int gradient_steps(go_inner *p, progress *s, int count, int warm)
{
    for (int i = 1; i <= count; i++) {
        if (!gradient_step(p, s)) {
            if (!p->loss->quadratic) { /* theta may be that of a step that was refused */
                p->value = go_evaluate(p, p->B, p->theta);
                go_correlate(p, p->theta, p->C);
            }
            p->gap = gap_of(p);
            return DONE;
        }
        if (i == count || p->steps % CHECK_EVERY == 0 || p->steps >= s->goal.max_steps ||
            (warm && (p->steps == 1 || p->steps == 3))) {
            int found = verdict(p, s);
            if (found != GO_ON)
                return found;
        }
    }
    return GO_ON;
}

/* Go to a point of a quadratic loss, `move` away, if it has a lower objective; whether it has. */
static int moved_to(go_inner *p, progress *s, const double *V)
{
    size_t size = (size_t)p->rows * p->q;
    for (size_t i = 0; i < size; i++)
        p->move[i] = V[i] - p->B[i];
    double value = value_after(p, V, p->move), penalty = penalty_of(p, V);
    if (!(value + penalty < p->value + p->penalty))
        return 0;
    change_after(p);
    memmove(p->B, V, size * sizeof *p->B);
    for (size_t i = 0; i < size; i++)
        p->C[i] -= p->image[i];
    p->value = value;
    p->penalty = penalty;
    start_again(p, s);
    return 1;
}

/* ---- Newton steps along the pattern: one task --------------------------------------------------------------------- */

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
 * zero, clusters that passed each other for one, and the others are solved for again, a few times (math.md, 11;
 * groupowl/solvers/inner/newton.py). 0 if it did not help. */
static int pattern_step(go_inner *p, progress *s)
{
    int ordered = !has_equal_weights(p);
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
    if (!moved_to(p, s, p->V))
        return 0;
    p->steps++;
    return 1;
}

/* ---- Coordinate descent: several tasks, equal weights, Gram form -------------------------------------------------- */

/* Arrays are by task here: `rows` numbers for each, so that loops over rows are over neighbors. */
static void transpose(int rows, int columns, const double *from, double *to)
{
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < columns; k++)
            to[(size_t)k * rows + i] = from[(size_t)i * columns + k];
}

/* C -= G_j0 d0 + ... + G_j3 d3, task by task */
FOR_EACH_MACHINE
static void subtract_four(int m, int q, const double *G, size_t ldg, const double *d, double *C)
{
    const double *g0 = G, *g1 = G + ldg, *g2 = G + 2 * ldg, *g3 = G + 3 * ldg;
    for (int k = 0; k < q; k++) {
        double d0 = d[k], d1 = d[q + k], d2 = d[2 * q + k], d3 = d[3 * q + k];
        double *c = C + (size_t)k * m;
        for (int i = 0; i < m; i++)
            c[i] -= (g0[i] * d0 + g1[i] * d1) + (g2[i] * d2 + g3[i] * d3);
    }
}

/* All rows once, in turn; the effect of four rows on the others is applied at once. `changes`: 5 q */
static void coordinate_epoch(const go_inner *p, double *B, double *C, double *changes)
{
    int m = p->rows, q = p->q;
    size_t ldg = (size_t)p->ldg;
    double lam = p->lam[0], *v = changes + 4 * q;
    for (int first = 0; first < m; first += 4) {
        int count = m - first < 4 ? m - first : 4, any = 0;
        const double *G = p->G + (size_t)first * ldg;
        memset(changes, 0, (size_t)(4 * q) * sizeof *changes);
        for (int a = 0; a < count; a++) {
            int j = first + a;
            double diagonal = G[(size_t)a * ldg + j], square = 0.0;
            if (!(diagonal > 0.0))
                continue;
            for (int k = 0; k < q; k++) {
                double c = C[(size_t)k * m + j] + diagonal * B[(size_t)k * m + j];
                for (int b = 0; b < a; b++)
                    c -= G[(size_t)b * ldg + j] * changes[b * q + k];
                v[k] = c;
                square += c * c;
            }
            double norm = sqrt(square), factor = norm > lam ? (1.0 - lam / norm) / diagonal : 0.0;
            for (int k = 0; k < q; k++) {
                double *b = B + (size_t)k * m + j, now = factor * v[k];
                changes[a * q + k] = now - *b;
                any |= now != *b;
                *b = now;
            }
        }
        if (!any)
            continue;
        if (count == 4) {
            subtract_four(m, q, G, ldg, changes, C);
        } else {
            for (int a = 0; a < count; a++)
                for (int k = 0; k < q; k++)
                    for (int i = 0; i < m; i++)
                        C[(size_t)k * m + i] -= G[(size_t)a * ldg + i] * changes[a * q + k];
        }
    }
}

/* lam times the norms of the rows, arrays by task */
static double penalty_by_task(const go_inner *p, const double *B)
{
    int m = p->rows;
    double sum = 0.0;
    memset(p->norms, 0, (size_t)m * sizeof *p->norms);
    for (int k = 0; k < p->q; k++)
        for (int i = 0; i < m; i++)
            p->norms[i] += B[(size_t)k * m + i] * B[(size_t)k * m + i];
    for (int i = 0; i < m; i++)
        sum += sqrt(p->norms[i]);
    return p->lam[0] * sum;
}

/* Weights of the last iterates in their extrapolation: least squares on their differences; 0 if there is none. */
static int anderson_weights(const go_inner *p, size_t size, double *weights)
{
    double S[GO_ANDERSON * GO_ANDERSON], sum = 0.0, trace = 0.0;
    int count = GO_ANDERSON, one = 1, failed = 0;
    for (int a = 0; a < GO_ANDERSON; a++) {
        const double *x = p->past_B + a * size;
        for (int b = 0; b <= a; b++) {
            const double *y = p->past_B + b * size;
            double product = 0.0;
            for (size_t i = 0; i < size; i++)
                product += (x[size + i] - x[i]) * (y[size + i] - y[i]);
            S[a * GO_ANDERSON + b] = S[b * GO_ANDERSON + a] = product;
        }
        trace += S[a * GO_ANDERSON + a];
    }
    for (int a = 0; a < GO_ANDERSON; a++) {
        S[a * GO_ANDERSON + a] += 1e-12 * trace;
        weights[a] = 1.0;
    }
    p->blas->dpotrf("L", &count, S, &count, &failed);
    if (failed)
        return 0;
    p->blas->dpotrs("L", &count, &one, S, &count, weights, &count, &failed);
    for (int a = 0; a < GO_ANDERSON; a++)
        sum += weights[a];
    for (int a = 0; a < GO_ANDERSON; a++)
        weights[a] /= sum;
    return isfinite(sum) && sum != 0.0;
}

/* Cycles of epochs, each ended by an extrapolation that is taken where it lowers the objective. The gradient is affine
 * in B, so that gradient and loss of a combination cost no product: value - value_0 = -1/2 <C_0 + C, B - B_0>. */
static int coordinate_cycles(go_inner *p, progress *s)
{
    int m = p->rows, q = p->q, found = GO_ON;
    size_t size = (size_t)m * q;
    double *B = p->past_B, *C = p->past_C, *last_B = B + GO_ANDERSON * size, *last_C = C + GO_ANDERSON * size;
    double *mixed_B = p->V, *mixed_C = p->image, weights[GO_ANDERSON];
    while (found == GO_ON) {
        if (p->steps + GO_ANDERSON > s->goal.max_steps) /* no room for a whole cycle */
            return gradient_steps(p, s, s->goal.max_steps - p->steps, 0);
        transpose(m, q, p->B, B);
        transpose(m, q, p->C, C);
        for (int e = 1; e <= GO_ANDERSON; e++) {
            memcpy(B + e * size, B + (e - 1) * size, size * sizeof *B);
            memcpy(C + e * size, C + (e - 1) * size, size * sizeof *C);
            coordinate_epoch(p, B + e * size, C + e * size, p->move);
        }
        p->steps += GO_ANDERSON;
        const double *end_B = last_B, *end_C = last_C;
        double before = p->value, change = 0.0;
        for (size_t i = 0; i < size; i++)
            change += (C[i] + last_C[i]) * (last_B[i] - B[i]);
        p->value = before - 0.5 * change;
        p->penalty = penalty_by_task(p, last_B);
        if (anderson_weights(p, size, weights)) {
            memset(mixed_B, 0, size * sizeof *B);
            memset(mixed_C, 0, size * sizeof *C);
            for (int a = 0; a < GO_ANDERSON; a++) {
                const double *from_B = B + (a + 1) * size, *from_C = C + (a + 1) * size;
                for (size_t i = 0; i < size; i++) {
                    mixed_B[i] += weights[a] * from_B[i];
                    mixed_C[i] += weights[a] * from_C[i];
                }
            }
            change = 0.0;
            for (size_t i = 0; i < size; i++)
                change += (C[i] + mixed_C[i]) * (mixed_B[i] - B[i]);
            double value = before - 0.5 * change, penalty = penalty_by_task(p, mixed_B);
            if (value + penalty < p->value + p->penalty) {
                p->value = value;
                p->penalty = penalty;
                end_B = mixed_B;
                end_C = mixed_C;
            }
        }
        transpose(q, m, end_B, p->B);
        transpose(q, m, end_C, p->C);
        found = verdict(p, s);
    }
    return found;
}

/* ---- All of it --------------------------------------------------------------------------------------------------- */

static int count_changes(go_inner *p, signed char *last, int *count)
{
    int changes = 0;
    *count = 0;
    for (int j = 0; j < p->units; j++) {
        signed char sign = (signed char)((p->B[j] > 0.0) - (p->B[j] < 0.0));
        changes += sign != last[j];
        *count += sign != 0;
        last[j] = sign;
    }
    return changes;
}

static int minimize(go_inner *p, progress *s, double *guess)
{
    size_t size = (size_t)p->rows * p->q;
    p->steps = 0;
    p->gap = INFINITY;
    for (int u = 0; u < p->units; u++)
        p->order[u] = u;
    start_again(p, s);
    if (guess)
        moved_to(p, s, guess);
    if (!(p->lipschitz > 0.0)) { /* the curvature along the gradient */
        double square = go_dot(size, p->C, p->C), along;
        if (p->G) {
            apply_gram(p, p->C, p->image);
            along = go_dot(size, p->C, p->image);
        } else {
            go_predict(p, p->C, p->Z);
            along = p->loss->curvature * go_dot((size_t)p->n * p->q, p->Z, p->Z);
        }
        p->lipschitz = square > 0.0 && along > 0.0 ? along / square : 1.0;
    }
    int rows_are_units = !p->start && p->loss->quadratic, warm = p->penalty > 0.0, found = GO_ON;
    int by_coordinates = rows_are_units && p->G && p->q > 1 && has_equal_weights(p);
    int by_newton = rows_are_units && p->q == 1 && p->newton_size > 0;
    if (by_coordinates) {
        if (!warm)
            found = gradient_steps(p, s, FAR_STEPS, warm);
        return found == GO_ON ? coordinate_cycles(p, s) : found;
    }
    if (!by_newton) {
        while (found == GO_ON)
            found = gradient_steps(p, s, FAR_STEPS, warm);
        return found;
    }
    signed char *signs = (signed char *)p->past_B; /* of the coefficients at the last look */
    int count, changed = 0, wait = 1, looks = 0, near = warm;
    memset(signs, 0, (size_t)p->units);
    count_changes(p, signs, &count);
    while (found == GO_ON) {
        found = gradient_steps(p, s, near ? NEAR_STEPS : FAR_STEPS, warm);
        changed = count_changes(p, signs, &count);
        if (found != GO_ON || ++looks < wait || changed > (near ? count / 5 : 0))
            continue;
        near = pattern_step(p, s);
        looks = 0;
        wait = near ? 1 : 2 * wait;
        if (near) {
            count_changes(p, signs, &count);
            found = verdict(p, s);
        }
    }
    return found;
}

int go_minimize(go_inner *p, go_goal goal, double *guess)
{
    progress s = {.goal = goal, .halved_gap = INFINITY};
    return minimize(p, &s, guess) != DONE;
}
