/* Solves and paths: working sets that are solved again and again, with a gap on the whole problem after each round.
 * Products with all of X happen once per round. The NumPy twin is groupowl/solvers/working_set.py; formulas:
 * docs/mathematics/solver.rst.
 *
 * The working set is always the leading columns of one array A and of their Gram matrix G: rows that join are appended,
 * rows that leave are closed up. Zero rows outside take the smallest weights, so units inside pay lam_1, lam_2, ... */
#include "inner.h"

#include <math.h>
#include <string.h>
#include <time.h>

/* So few units are a working set as a whole. */
#define FEW_UNITS 40
/* Violators that may join in the first round: one in a hundred, between these. */
#define LEAST_JOINING 50
#define MOST_JOINING 150
/* Accuracy of an inner solve relative to the gap at its start, and the finest one where rounds make little headway. */
#define INNER_RTOL 0.1
#define FINEST_RTOL 1e-3
#define POOR_ROUND 0.7
/* Units that are neither non-zero nor possible leave a working set if they are more than so many, and a quarter. */
#define MANY_IDLE 8
/* The length of the intercept's column is decided again once there are so many others. */
#define FEW_COLUMNS 8
/* A working set with more than this of all units may as well be all of them. */
#define MOST_UNITS 0.6
/* Rounds in which the gap must halve: then all units join, and if that does not help the kernel gives up. */
#define HALVING_ROUNDS 5
/* Steps that a Gram matrix should pay off in, and what an operation of making it costs against one of a step. */
#define USUAL_STEPS 30.0
#define GRAM_PRICE 0.2
/* Solves in a row that were given up end a path. */
#define MOST_FAILURES 3
/* Floating-point operations that take as long as the fixed cost of a round, and between two looks at the clock. */
#define ROUND_OVERHEAD 3e4
#define CLOCK_WORK 1e6
#define SECONDS_BETWEEN_CALLS 0.05

typedef struct {
    const go_data *data;
    const go_task *task;
    go_inner p;              /* the working set; p.B are the coefficients */
    double *lam;             /* current weights, n_units */
    double *row_scale;       /* square roots of the sample weights, quadratic losses only; or NULL */
    double *center;          /* q: what was taken off the targets */
    double *Y, *w;
    double *samples;         /* n x q: theta times the row scale */
    double *sums;            /* q */
    double *C;               /* d x q: X^T theta */
    double *norms;           /* its unit norms */
    int *place;              /* of each unit in the working set, or -1 */
    int *found, *scratch;    /* n_units, 3 n_units */
    int *unit, *start;       /* of the working set: which unit, where its rows begin */
    int *feature;            /* of each row of the working set */
    double *before, *guess;  /* coefficients of the solve before, and where they lead */
    double *converted;
    double *gram;            /* A^T A */
    int newton_size;         /* largest system of a Newton step */
    int gram_rows;           /* rows whose Gram matrix is known */
    double constant;         /* value of the column of the intercept */
    double position, position_before; /* of the last two solves along a path */
    double passes;
    double work;             /* operations since the last look at the clock */
    clock_t called;          /* time of the last call of `interrupted` */
    int stopped;
} solver;

/* ---- Memory ----------------------------------------------------------------------------------------------------- */

static int most(int a, int b)
{
    return a > b ? a : b;
}

/* For the address sanitizer, which sees one array where the kernel has many: a forbidden line after each. */
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define LINES 2
#define FORBID(START, SIZE) ASAN_POISON_MEMORY_REGION(START, SIZE)
#define ALLOW(START, SIZE) ASAN_UNPOISON_MEMORY_REGION(START, SIZE)
#else
#define LINES 0
#define FORBID(START, SIZE) (void)0
#define ALLOW(START, SIZE) (void)0
#endif

/* The next `size` bytes of the caller's memory, on a line of the cache; NULL while only sizes are added up. */
static void *take(char *base, size_t *at, size_t size)
{
    char *here = base ? base + *at : NULL;
    *at += (size + 63) / 64 * 64 + 64 * LINES;
    if (here)
        FORBID(here + size, base + *at - (here + size));
    return here;
}

#define TAKE(POINTER, COUNT) ((POINTER) = take(base, &at, (size_t)(COUNT) * sizeof *(POINTER)))

/* Give every array its place in the caller's memory; the size of all of them. */
static size_t lay_out(solver *s, const go_data *data, const go_task *task, char *base)
{
    go_inner *p = &s->p;
    size_t n = (size_t)most(data->n, 2), d = (size_t)data->d, q = (size_t)data->q;
    size_t units = (size_t)data->n_units, at = 0;
    int quadratic = data->loss->quadratic, gram = data->kind == GO_GRAM;
    size_t rows = (size_t)task->capacity + 1, gram_rows = quadratic ? (size_t)task->gram_capacity : 0;
    size_t system = quadratic && q == 1 && !data->unit_start ? (rows < gram_rows ? rows : gram_rows) : 0;
    s->newton_size = (int)system;
    TAKE(s->lam, units);
    TAKE(s->norms, units);
    TAKE(s->place, units);
    TAKE(s->found, units);
    TAKE(s->scratch, 3 * units);
    TAKE(s->C, d * q);
    TAKE(s->center, q);
    TAKE(s->sums, q);
    TAKE(s->unit, rows);
    TAKE(s->start, rows + 1);
    TAKE(s->feature, rows);
    TAKE(p->norms, rows);
    TAKE(p->shrunk, rows);
    TAKE(p->blocks, rows);
    TAKE(p->order, rows);
    TAKE(p->work, 3 * rows);
    TAKE(p->pattern, rows);
    TAKE(p->B, rows * q);
    TAKE(p->C, rows * q);
    TAKE(p->V, rows * q);
    TAKE(p->move, (rows + 5) * q);
    TAKE(p->image, rows * q);
    TAKE(s->before, rows * q);
    TAKE(s->guess, rows * q);
    TAKE(p->Z, n * q);
    if (!gram) {
        TAKE(s->Y, n * q);
        TAKE(s->w, n);
        TAKE(p->theta, n * q);
    }
    if (quadratic && data->weight && !gram) {
        TAKE(s->row_scale, n);
        TAKE(s->samples, n * q);
    }
    if (!quadratic && data->intercept)
        TAKE(p->balanced, n * q);
    TAKE(s->converted, go_converted(data));
    TAKE(p->past_B, (GO_ANDERSON + 1) * (quadratic ? (gram_rows < rows ? gram_rows : rows) * q : 1) + rows);
    TAKE(p->past_C, (GO_ANDERSON + 1) * (quadratic ? (gram_rows < rows ? gram_rows : rows) * q : 1));
    TAKE(p->system, 2 * system * system + 4 * system);
    TAKE(p->cluster_sums, n * system);
    TAKE(s->gram, gram_rows * gram_rows);
    TAKE(p->A, (size_t)data->n * rows);
    return at;
}

size_t go_workspace(const go_data *data, const go_task *task)
{
    solver s = {0};
    return lay_out(&s, data, task, NULL) + 64;
}

/* ---- Where the whole problem stands ------------------------------------------------------------------------------ */

/* Targets as the kernel has them: for a quadratic loss centered, and times the roots of the sample weights. */
static void adopt_targets(solver *s)
{
    const go_data *data = s->data;
    int n = data->n, q = data->q;
    double total = 0.0;
    memset(s->center, 0, (size_t)q * sizeof *s->center);
    for (int i = 0; i < n; i++) {
        s->w[i] = data->weight ? data->weight[i] : 1.0;
        total += s->w[i];
        if (s->row_scale)
            s->row_scale[i] = sqrt(s->w[i]);
    }
    if (data->intercept && data->loss->quadratic)
        for (int i = 0; i < n; i++)
            for (int k = 0; k < q; k++)
                s->center[k] += s->w[i] / total * data->Y[(size_t)i * q + k];
    for (int i = 0; i < n; i++)
        for (int k = 0; k < q; k++) {
            double factor = s->row_scale ? s->row_scale[i] : 1.0;
            s->Y[(size_t)i * q + k] = factor * (data->Y[(size_t)i * q + k] - s->center[k]);
        }
}

/* Sufficient statistics: C = X^T Y - G B, and ||Y - X B||^2 = ||Y||^2 - <X^T Y + C, B>. */
static void refresh_from_gram(solver *s)
{
    go_inner *p = &s->p;
    const double *products = s->data->Y;
    double square = s->data->y_square;
    go_predict(p, p->B, p->Z); /* the columns of the working set are those of the Gram matrix */
    for (size_t i = 0; i < (size_t)p->n * p->q; i++)
        s->C[i] = products[i] - p->Z[i];
    for (int r = 0; r < p->rows; r++)
        for (int k = 0; k < p->q; k++) {
            size_t at = (size_t)s->feature[r] * p->q + k;
            square -= (products[at] + s->C[at]) * p->B[(size_t)r * p->q + k];
        }
    p->value = square > 0.0 ? 0.5 * square : 0.0;
}

/* From the data: the residual, balanced where the intercept is a coefficient, times all columns. */
static void refresh_from_data(solver *s)
{
    go_inner *p = &s->p;
    const double *theta = p->theta;
    p->value = go_evaluate(p, p->B, p->theta);
    if (p->fixed) {
        memcpy(p->balanced, p->theta, (size_t)p->n * p->q * sizeof *p->theta);
        p->loss->balance(p->n, p->q, p->balanced, p->Y, p->w, p->Z);
        theta = p->balanced;
    }
    if (s->row_scale) {
        for (int i = 0; i < p->n; i++)
            for (int k = 0; k < p->q; k++)
                s->samples[(size_t)i * p->q + k] = s->row_scale[i] * theta[(size_t)i * p->q + k];
        theta = s->samples;
    }
    go_correlate_all(s->data, p->blas, theta, s->sums, s->converted, s->C);
    s->passes += 1.0;
}

/* Loss, residual and correlations of all units at p.B. */
static void refresh(solver *s)
{
    if (s->data->kind == GO_GRAM)
        refresh_from_gram(s);
    else
        refresh_from_data(s);
    s->passes += (double)s->p.rows / s->data->d;
    go_unit_norms(s->data->n_units, s->data->unit_start, s->data->q, s->C, s->norms);
}

static double whole_gap(solver *s)
{
    go_inner *p = &s->p;
    double gauge = go_owl_gauge(s->data->n_units, s->norms, s->lam, s->scratch), dual;
    go_unit_norms(p->units, p->start, p->q, p->B + (size_t)p->fixed * p->q, p->norms);
    p->penalty = go_owl_value(p->units, p->norms, s->lam, p->work);
    if (p->loss->quadratic) {
        double square = 2.0 * p->value, product = square;
        for (int r = 0; r < p->rows; r++)
            product += go_dot((size_t)p->q, p->B + (size_t)r * p->q, s->C + (size_t)s->feature[r] * p->q);
        dual = go_quadratic_dual(product, square, gauge);
    } else {
        const double *theta = p->fixed ? p->balanced : p->theta;
        dual = p->loss->dual(p->n, p->q, theta, gauge > 1.0 ? 1.0 / gauge : 1.0, p->Y, p->w);
    }
    return p->value + p->penalty - dual;
}

/* ---- The working set --------------------------------------------------------------------------------------------- */

static int unit_first(const go_data *data, int unit)
{
    return data->unit_start ? data->unit_start[unit] : unit;
}

static int unit_size(const go_data *data, int unit)
{
    return data->unit_start ? data->unit_start[unit + 1] - data->unit_start[unit] : 1;
}

/* Append a unit with zero coefficients; 0 if there is no room. */
static int join(solver *s, int unit)
{
    go_inner *p = &s->p;
    int q = p->q, size = unit_size(s->data, unit), first = unit_first(s->data, unit);
    if (p->rows - p->fixed + size > s->task->capacity)
        return 0;
    s->place[unit] = p->units;
    s->unit[p->units] = unit;
    for (int r = 0; r < size; r++) {
        int row = p->rows + r;
        s->feature[row] = first + r;
        go_gather(s->data, first + r, s->row_scale, p->A + (size_t)row * p->n);
        memset(p->B + (size_t)row * q, 0, (size_t)q * sizeof *p->B);
        memset(s->before + (size_t)row * q, 0, (size_t)q * sizeof *s->before);
    }
    p->rows += size;
    *s->task->peak = most(*s->task->peak, p->rows);
    p->units++;
    s->start[p->units] = p->rows - p->fixed;
    return 1;
}

/* Let units go whose `leaving` mark is set: everything that follows closes up. */
static void close_up(solver *s, const int *leaving)
{
    go_inner *p = &s->p;
    int q = p->q, rows = p->fixed, units = 0, known = 0, *kept = p->work;
    for (int u = 0; u < p->units; u++) {
        if (leaving[u]) {
            s->place[s->unit[u]] = -1;
            continue;
        }
        for (int r = p->fixed + s->start[u]; r < p->fixed + s->start[u + 1]; r++) {
            if (r != rows) {
                memcpy(p->A + (size_t)rows * p->n, p->A + (size_t)r * p->n, (size_t)p->n * sizeof *p->A);
                memcpy(p->B + (size_t)rows * q, p->B + (size_t)r * q, (size_t)q * sizeof *p->B);
                memcpy(s->before + (size_t)rows * q, s->before + (size_t)r * q, (size_t)q * sizeof *p->B);
            }
            s->feature[rows] = s->feature[r];
            if (r < s->gram_rows)
                kept[known++] = r; /* no fixed rows where there is a Gram matrix */
            rows++;
        }
        s->place[s->unit[u]] = units;
        s->unit[units++] = s->unit[u];
        s->start[units] = rows - p->fixed;
    }
    for (int b = 0; b < known; b++)
        for (int a = 0; a < known; a++)
            s->gram[(size_t)b * p->ldg + a] = s->gram[(size_t)kept[b] * p->ldg + kept[a]];
    p->rows = rows;
    p->units = units;
    s->gram_rows = known;
}

/* Move the columns of the Gram matrix apart to make room for more rows: memory is touched as it is needed. */
static void widen_gram(solver *s, int rows)
{
    int before = s->p.ldg;
    s->p.ldg = 2 * rows < s->task->gram_capacity ? 2 * rows : s->task->gram_capacity;
    for (int b = s->gram_rows - 1; b > 0; b--)
        memmove(s->gram + (size_t)b * s->p.ldg, s->gram + (size_t)b * before, (size_t)s->gram_rows * sizeof *s->gram);
}

/* The Gram matrix of all rows, from that of the first ones. */
static void extend_gram(solver *s)
{
    go_inner *p = &s->p;
    int m = p->rows, known = s->gram_rows, more = m - known, n = p->n;
    if (more == 0)
        return;
    if (m > p->ldg)
        widen_gram(s, m);
    double unit = 1.0, zero = 0.0, *right = s->gram + (size_t)known * p->ldg;
    if (s->data->kind == GO_GRAM) {
        for (int b = 0; b < more; b++)
            for (int a = 0; a < m; a++)
                right[(size_t)b * p->ldg + a] = p->A[(size_t)(known + b) * n + s->feature[a]];
    } else {
        double *A = p->A + (size_t)known * n;
        if (known)
            p->blas->dgemm("T", "N", &known, &more, &n, &unit, p->A, &n, A, &n, &zero, right, &p->ldg);
        p->blas->dsyrk("U", "T", &more, &n, &unit, A, &n, &zero, right + known, &p->ldg);
    }
    for (int b = known; b < m; b++)
        for (int a = 0; a < b; a++)
            s->gram[(size_t)a * p->ldg + b] = s->gram[(size_t)b * p->ldg + a];
    s->gram_rows = m;
}

/* Whether to go through the Gram matrix: where it is known, where coordinate descent needs it, or where what it saves
 * in a usual number of steps pays for the part of it that is missing. */
static int wants_gram(const solver *s, int another_round)
{
    const go_inner *p = &s->p;
    if (!p->loss->quadratic || p->rows > s->task->gram_capacity)
        return 0;
    if (s->data->kind == GO_GRAM)
        return 1;
    if (p->q > 1 && s->lam[0] == s->lam[most(p->units, 1) - 1])
        return !another_round && p->rows <= 4 * p->n;
    if (another_round)
        return 0;
    double saved = USUAL_STEPS * (4.0 * p->n - 2.0 * p->rows) * p->q;
    return saved > 0.0 && saved >= GRAM_PRICE * p->n * (p->rows - s->gram_rows);
}

/* The column of the intercept is as long as the longest other one: then it never limits a step. */
static void fit_constant(solver *s)
{
    go_inner *p = &s->p;
    double longest = 0.0, total = 0.0;
    if (!p->fixed)
        return;
    for (int i = 0; i < p->n; i++)
        total += p->w[i];
    for (int r = 1; r < p->rows; r++) {
        double square = 0.0;
        for (int i = 0; i < p->n; i++)
            square += p->w[i] * p->A[(size_t)r * p->n + i] * p->A[(size_t)r * p->n + i];
        longest = square > longest ? square : longest;
    }
    double value = longest > 0.0 ? sqrt(longest / total) : 1.0;
    for (int k = 0; k < p->q; k++) {
        p->B[k] *= s->constant / value;
        s->before[k] *= s->constant / value;
    }
    for (int i = 0; i < p->n; i++)
        p->A[i] = value;
    s->constant = value;
}

/* What the rounds of a solve remember. */
typedef struct {
    int joining;         /* violators that may join in one round */
    int violators;       /* of the last look */
    int cut;             /* more of them than could join: another round is certain */
    int everything;      /* the working set has all units */
    double relative;     /* accuracy of the next inner solve */
    double last_gap;
    double inner_gap;    /* on the working set, after the last inner solve */
    double halved_gap;   /* when the gap was last found to have halved, */
    int rounds;          /* and rounds since then */
} choice;

/* Units that could be non-zero if the residual were that of the optimum, by falling correlation. */
static int find_possible(solver *s, int all)
{
    if (!all)
        return go_kkt_units(s->data->n_units, s->norms, s->lam, s->found, s->scratch);
    for (int u = 0; u < s->data->n_units; u++)
        s->found[u] = u;
    return s->data->n_units;
}

/* Let units go that are zero and not among the possible ones, where they are many; p.norms are those of B. */
static void release_idle(solver *s, int n_possible)
{
    go_inner *p = &s->p;
    int idle = 0, *leaving = s->scratch;
    for (int u = 0; u < p->units; u++)
        leaving[u] = p->norms[u] == 0.0;
    for (int i = 0; i < n_possible; i++)
        if (s->place[s->found[i]] >= 0)
            leaving[s->place[s->found[i]]] = 0;
    for (int u = 0; u < p->units; u++)
        idle += leaving[u];
    if (idle > MANY_IDLE + p->units / 4)
        close_up(s, leaving);
}

/* The next working set: units with coefficients, those of the last one that could still be non-zero, and the strongest
 * violators of the optimality conditions. Where there are none it stays as it is: dropping units would make it cycle.
 * 0 if there is no room. */
static int choose(solver *s, choice *c, double gap)
{
    go_inner *p = &s->p;
    int n_units = s->data->n_units, before = p->units, support = 0, halved = gap <= 0.5 * c->halved_gap;
    c->rounds = halved ? 0 : c->rounds + 1;
    c->halved_gap = halved ? gap : c->halved_gap;
    int all = n_units <= FEW_UNITS || c->rounds >= HALVING_ROUNDS, count = find_possible(s, all);
    c->violators = 0;
    for (int i = 0; i < count; i++)
        c->violators += s->place[s->found[i]] < 0;
    go_unit_norms(p->units, p->start, p->q, p->B + (size_t)p->fixed * p->q, p->norms);
    for (int u = 0; u < p->units; u++)
        support += p->norms[u] > 0.0;
    c->joining = most(c->joining, 2 * support);
    c->cut = !all && c->violators > c->joining + c->joining / 2;
    int left = c->cut ? c->joining : c->violators;
    if (c->cut)
        c->joining *= 2;
    if (c->violators > 0 && !all)
        release_idle(s, count);
    if (!c->cut && p->units + left > MOST_UNITS * n_units && s->data->d <= s->task->capacity) {
        count = find_possible(s, 1);
        left = n_units;
    }
    for (int i = 0; i < count && left > 0; i++) {
        if (s->place[s->found[i]] >= 0)
            continue;
        if (!join(s, s->found[i]))
            return 0;
        left--;
    }
    c->everything = p->units == n_units;
    if (before == 0 || (before < FEW_COLUMNS && p->units >= FEW_COLUMNS))
        fit_constant(s);
    int poor = c->violators == 0 || gap > POOR_ROUND * c->last_gap;
    double finer = c->relative / 10.0 > FINEST_RTOL ? c->relative / 10.0 : FINEST_RTOL;
    c->relative = poor ? finer : INNER_RTOL;
    return 1;
}

/* When an inner solve is good enough; steps that together cost less than a round are free. */
static go_goal inner_goal(const solver *s, const choice *c, double goal, double gap, int steps_left)
{
    const go_inner *p = &s->p;
    double tight = (c->everything ? 0.9 : 0.3) * goal;
    if (c->violators == 0 && !c->everything && c->inner_gap <= 1.2 * tight)
        tight *= c->relative; /* so accurate it was already, and yet the gap of the whole problem is too large */
    double round_cost = 2.0 * go_density(s->data) * p->n * s->data->d * p->q + ROUND_OVERHEAD;
    double step_cost = (p->G ? 2.0 * p->rows : 4.0 * p->n) * p->rows * p->q + 500.0;
    double loose = c->relative * gap > tight ? c->relative * gap : tight;
    return (go_goal){tight, loose, c->cut ? 0 : (int)(round_cost / step_cost), steps_left};
}

/* ---- Solves ------------------------------------------------------------------------------------------------------ */

/* Whether the caller wants to stop; asked now and then. */
static int pause_and_ask(void *argument)
{
    solver *s = argument;
    const go_inner *p = &s->p;
    if (!s->task->interrupted || s->stopped)
        return s->stopped;
    s->work += 10.0 * p->rows * p->q * (p->G ? p->rows : 2.0 * p->n);
    if (s->work < CLOCK_WORK)
        return 0;
    s->work = 0.0;
    clock_t now = clock();
    if ((double)(now - s->called) < SECONDS_BETWEEN_CALLS * CLOCKS_PER_SEC)
        return 0;
    s->called = now;
    s->stopped = s->task->interrupted() != 0;
    return s->stopped;
}

/* The line through the last two solutions at the current weights, zero where the last one is or would turn round;
 * NULL if there is none. */
static double *extrapolated(solver *s)
{
    go_inner *p = &s->p;
    int q = p->q;
    size_t size = (size_t)p->rows * q;
    double position = p->loss->quadratic ? s->lam[0] : log(s->lam[0]);
    double t = (position - s->position) / (s->position - s->position_before);
    int known = isfinite(t) && t != 0.0;
    for (int r = 0; r < p->rows && known; r++) {
        double along = 0.0, *g = s->guess + (size_t)r * q;
        const double *b = p->B + (size_t)r * q, *old = s->before + (size_t)r * q;
        for (int k = 0; k < q; k++) {
            g[k] = b[k] + t * (b[k] - old[k]);
            along += g[k] * b[k];
        }
        if (!(along > 0.0) && r >= p->fixed)
            memset(g, 0, (size_t)q * sizeof *g);
    }
    memcpy(s->before, p->B, size * sizeof *p->B);
    s->position_before = s->position;
    s->position = position;
    return known ? s->guess : NULL;
}

/* Solve for s->lam from p.B, whose correlations are known. */
static int solve_one(solver *s, double goal, double *gap_found, int *steps_found)
{
    go_inner *p = &s->p;
    int first_size = s->data->n_units / 100;
    first_size = first_size < LEAST_JOINING ? LEAST_JOINING : first_size > MOST_JOINING ? MOST_JOINING : first_size;
    choice c = {.joining = most(first_size, p->units), .relative = INNER_RTOL};
    c.last_gap = c.inner_gap = c.halved_gap = INFINITY;
    int steps = 0, ended = 0;
    p->lam = s->lam;
    p->lipschitz = 0.0;
    for (int round = 0;; round++) {
        double gap = whole_gap(s);
        *gap_found = gap;
        *steps_found = steps;
        if (gap <= goal && (round > 0 || p->penalty == 0.0))
            return GO_CONVERGED;
        if (ended)
            return s->stopped ? GO_INTERRUPTED : GO_GAVE_UP;
        if (steps >= s->task->max_steps)
            return GO_MAX_STEPS;
        if (!isfinite(gap) || c.rounds >= 2 * HALVING_ROUNDS)
            return GO_GAVE_UP;
        if (!choose(s, &c, gap))
            return GO_NO_ROOM;
        p->G = wants_gram(s, c.cut) ? s->gram : NULL;
        if (p->G)
            extend_gram(s);
        if (p->loss->quadratic)
            for (int r = 0; r < p->rows; r++)
                memcpy(p->C + (size_t)r * p->q, s->C + (size_t)s->feature[r] * p->q, (size_t)p->q * sizeof *p->C);
        else
            go_correlate(p, p->theta, p->C);
        if (c.violators)
            p->lipschitz = 0.0;
        p->newton_size = c.cut ? 0 : s->newton_size;
        double *guess = round == 0 ? extrapolated(s) : NULL;
        int end = go_minimize(p, inner_goal(s, &c, goal, gap, s->task->max_steps - steps), guess);
        steps += p->steps;
        c.inner_gap = p->gap;
        c.last_gap = gap;
        refresh(s);
        ended = end != GO_DONE || pause_and_ask(s);
    }
}

/* Append the non-zero rows of the solution to the results; 0 if there is no room. */
static int publish(solver *s, int k)
{
    const go_task *task = s->task;
    const go_inner *p = &s->p;
    int q = p->q, at = task->first[k];
    for (int r = p->fixed; r < p->rows; r++) {
        const double *b = p->B + (size_t)r * q;
        int any = 0;
        for (int i = 0; i < q; i++)
            any |= b[i] != 0.0;
        if (!any)
            continue;
        if (at == task->room)
            return 0;
        task->row[at] = s->feature[r];
        memcpy(task->B + (size_t)at * q, b, (size_t)q * sizeof *b);
        at++;
    }
    task->first[k + 1] = at;
    for (int i = 0; i < q; i++)
        task->intercept[(size_t)k * q + i] = p->fixed ? s->constant * p->B[i] : s->center[i];
    return 1;
}

/* Put the start into the working set, and the column of the intercept before it; 0 if there is no room. */
static int begin(solver *s)
{
    const go_data *data = s->data;
    const go_task *task = s->task;
    go_inner *p = &s->p;
    int q = p->q;
    for (int u = 0; u < data->n_units; u++)
        s->place[u] = -1;
    s->start[0] = 0;
    if (data->kind == GO_GRAM)
        memset(s->center, 0, (size_t)q * sizeof *s->center);
    else
        adopt_targets(s);
    if (p->fixed) {
        p->rows = 1;
        s->constant = 1.0;
        for (int i = 0; i < p->n; i++)
            p->A[i] = 1.0;
        if (task->init_intercept)
            memcpy(p->B, task->init_intercept, (size_t)q * sizeof *p->B);
        else
            p->loss->null_intercept(p->n, q, p->Y, p->w, p->B);
        memcpy(s->before, p->B, (size_t)q * sizeof *p->B);
    }
    for (int i = 0; i < task->n_init; i++) {
        int row = task->init_row[i], unit = row;
        if (data->unit_start) { /* units of several rows: rows of the start are in order, so are units */
            int low = 0, high = data->n_units;
            while (high - low > 1) {
                int middle = (low + high) / 2;
                if (data->unit_start[middle] <= row)
                    low = middle;
                else
                    high = middle;
            }
            unit = low;
        }
        if (s->place[unit] < 0 && !join(s, unit))
            return 0;
        int at = p->fixed + s->start[s->place[unit]] + row - unit_first(data, unit);
        memcpy(p->B + (size_t)at * q, task->init_B + (size_t)i * q, (size_t)q * sizeof *p->B);
    }
    fit_constant(s);
    return 1;
}

/* All solves one after the other; how many were run. */
static int follow(solver *s)
{
    const go_task *task = s->task;
    int failures = 0, n_units = s->data->n_units, k = 0;
    for (; k < task->n_lam && failures < MOST_FAILURES && !s->stopped; k++) {
        double before = k ? s->passes : 0.0;
        for (int u = 0; u < n_units; u++)
            s->lam[u] = task->alpha ? task->alpha[k] * task->lam[u] : task->lam[(size_t)k * n_units + u];
        int status = solve_one(s, task->goal[k], &task->gap[k], &task->steps[k]);
        task->status[k] = status;
        task->passes[k] = s->passes - before;
        if (!publish(s, k)) {
            task->status[k] = GO_NO_ROOM;
            return k;
        }
        failures = status == GO_CONVERGED ? 0 : status == GO_NO_ROOM ? MOST_FAILURES : failures + 1;
    }
    return k;
}

ptrdiff_t go_solve(const go_data *data, const go_task *task, const go_blas *blas, void *work, size_t size)
{
    solver s = {.data = data, .task = task};
    go_inner *p = &s.p;
    size_t needed = go_workspace(data, task);
    if (size < needed)
        return -(ptrdiff_t)needed;
    ALLOW(work, size);
    lay_out(&s, data, task, (char *)work + (64 - (size_t)work % 64) % 64);
    p->blas = blas;
    p->loss = data->loss;
    p->n = data->n;
    p->q = data->q;
    p->Y = s.Y;
    p->w = s.w;
    p->fixed = data->intercept && !data->loss->quadratic;
    p->start = data->unit_start ? s.start : NULL;
    p->pause = pause_and_ask;
    p->pause_argument = &s;
    s.called = clock();
    s.position = s.position_before = NAN;
    task->first[0] = *task->peak = 0;
    for (int k = 0; k < task->n_lam; k++)
        task->status[k] = GO_NOT_RUN;
    int n_run = 0;
    if (begin(&s)) {
        refresh(&s);
        n_run = follow(&s);
    } else {
        task->status[0] = GO_NO_ROOM;
    }
    ALLOW(work, size);
    return n_run;
}

/* ---- Identity ---------------------------------------------------------------------------------------------------- */

#ifndef GO_STAMP
#define GO_STAMP "unknown"
#endif

const char *go_stamp(void)
{
    return GO_STAMP;
}

const char *go_compiler(void)
{
#ifdef __VERSION__
    return __VERSION__;
#else
    return "unknown";
#endif
}
