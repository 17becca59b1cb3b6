/* Solves and paths: working sets that are solved again and again, with a gap on the whole problem after each round.
 * Products with all of X happen once per round. */
#include "solver.h"

#include <math.h>
#include <string.h>

/* A number of a sparse column takes as long as so many of a dense one. */
#define SPARSE_PRICE 6.0
/* Units of more rows are left to gradient steps, and so are all where their eigenvectors might take more memory than
 * the columns or the Gram matrix of a working set ever do (kernel.py). */
#define LARGEST_BLOCK 128
#define MOST_VECTORS 33554432
/* Violators that may join in the first round: one in a hundred, between these. */
#define LEAST_JOINING 50
#define MOST_JOINING 150
/* Solves in a row that were given up end a path. */
#define MOST_FAILURES 3
/* A smaller working set is worth a product with all of X that costs no more than so many steps. */
#define PASS_IN_STEPS 6.0
/* Floating-point operations between two looks at the clock, and time between two calls of `interrupted`. */
#define CLOCK_WORK 1e6
#define SECONDS_BETWEEN_CALLS 0.05

/* ---- Memory ----------------------------------------------------------------------------------------------------- */

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

/* Rows of the largest unit where blocks.c may serve, or 0: where units are rows, or too large for so many rows. */
static int largest_block(const go_data *data, size_t rows)
{
    int largest = 0;
    if (!data->unit_start || !data->loss->quadratic || data->kind == GO_GRAM)
        return 0;
    for (int u = 0; u < data->n_units; u++)
        largest = go_most(largest, data->unit_start[u + 1] - data->unit_start[u]);
    return largest <= LARGEST_BLOCK && (size_t)largest * rows <= MOST_VECTORS ? largest : 0;
}

/* Give every array its place in the caller's memory; the size of all of them. */
static size_t lay_out(go_solver *s, const go_data *data, const go_task *task, char *base)
{
    go_inner *p = &s->p;
    size_t n = (size_t)go_most(data->n, 2), m = (size_t)task->gram_capacity, d = (size_t)data->d, q = (size_t)data->q;
    size_t units = (size_t)data->n_units, at = 0;
    int quadratic = data->loss->quadratic, gram = data->kind == GO_GRAM;
    size_t rows = (size_t)task->capacity + 1, gram_rows = quadratic ? m : 0;
    size_t system = q == 1 && !data->unit_start ? (rows < m ? rows : m) : 0;
    size_t largest = (size_t)largest_block(data, rows), past = (gram_rows < rows ? gram_rows : rows) * q, past_C = past;
    if (largest > 0) {
        past = rows * q;
        past_C = n * q;
        TAKE(p->values, rows);
        TAKE(p->factored, rows);
        TAKE(p->eigen_work, GO_EIGEN_WORK * largest);
        TAKE(p->vectors, rows * largest);
    }
    p->largest_unit = (int)largest;
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
    TAKE(p->V, (3 * rows + 1) * q + rows);
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
    if (quadratic && (data->kind == GO_CSC_F64 || data->kind == GO_CSC_F32))
        TAKE(p->sparse_work, 2 * q + (data->weight ? n * q : 0));
    if (!quadratic)
        TAKE(p->curvatures, n * q);
    if (!quadratic && data->intercept)
        TAKE(p->balanced, n * q);
    TAKE(s->converted, go_converted(data));
    TAKE(p->past_B, (GO_ANDERSON + 1) * (quadratic ? past : 1) + rows);
    TAKE(p->past_C, (GO_ANDERSON + 1) * (quadratic ? past_C : 1));
    TAKE(p->system, 2 * system * system + 5 * system);
    TAKE(p->cluster_sums, n * system);
    TAKE(s->gram, gram_rows * gram_rows);
    TAKE(p->A, (size_t)data->n * rows);
    return at;
}

size_t go_workspace(const go_data *data, const go_task *task)
{
    go_solver s = {0};
    return lay_out(&s, data, task, NULL) + 64;
}

/* ---- Where the whole problem stands ------------------------------------------------------------------------------ */

/* Targets as the kernel has them: for a quadratic loss centered, and times the roots of the sample weights. */
static void adopt_targets(go_solver *s)
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
static void refresh_from_gram(go_solver *s)
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
static void refresh_from_data(go_solver *s)
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

/* Loss, residual and correlations of all units at p.B; `known` is X^T theta there, or NULL. */
static void refresh(go_solver *s, const double *known)
{
    go_inner *p = &s->p;
    if (known) {
        p->value = go_evaluate(p, p->B, p->theta);
        memcpy(s->C, known, (size_t)s->data->d * p->q * sizeof *s->C);
    } else if (s->data->kind == GO_GRAM) {
        refresh_from_gram(s);
    } else {
        refresh_from_data(s);
    }
    s->passes += (double)p->rows / s->data->d;
    go_unit_norms(s->data->n_units, s->data->unit_start, s->data->q, s->C, s->norms);
}

static double whole_gap(go_solver *s)
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

/* ---- Solves ------------------------------------------------------------------------------------------------------ */

/* Whether the caller wants to stop; asked now and then. */
static int pause_and_ask(void *argument)
{
    go_solver *s = argument;
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
static double *extrapolated(go_solver *s)
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

static double objective(go_solver *s)
{
    go_inner *p = &s->p;
    go_unit_norms(p->units, p->start, p->q, p->B + (size_t)p->fixed * p->q, p->norms);
    return p->value + go_owl_value(p->units, p->norms, s->lam, p->work);
}

/* Whether fewer units that could be non-zero are worth a product with all of X: those of equal weights join one by one,
 * those of sorted weights all together. Newton steps need no small working set. */
static int wants_look_ahead(go_solver *s)
{
    if (s->newton_size > 0)
        return 0;
    int rows = go_has_equal_weights(&s->p) ? go_violators(s) : s->p.rows;
    return go_density(s->data) * s->data->d <= PASS_IN_STEPS * 2.0 * rows;
}

/* Go where the last two solutions lead before the working set is chosen: fewer units could be non-zero there. 0 if that
 * is left to the first round. */
static int look_ahead(go_solver *s)
{
    go_inner *p = &s->p;
    size_t size = (size_t)p->rows * p->q;
    if (!wants_look_ahead(s))
        return 0;
    double before = objective(s), *guess = extrapolated(s);
    if (!guess)
        return 1;
    memcpy(p->B, guess, size * sizeof *p->B);
    refresh(s, NULL);
    if (!(objective(s) < before)) {
        memcpy(p->B, s->before, size * sizeof *p->B);
        refresh(s, NULL);
    }
    return 1;
}

/* Solve for s->lam from p.B, whose correlations are known. */
static int solve_one(go_solver *s, double goal, double *gap_found, int *steps_found)
{
    go_inner *p = &s->p;
    int first_size = s->data->n_units / 100;
    first_size = first_size < LEAST_JOINING ? LEAST_JOINING : first_size > MOST_JOINING ? MOST_JOINING : first_size;
    if (s->data->unit_start) /* units of many rows are fewer at a time, and their rows more */
        first_size = go_most(1, (int)(first_size / sqrt((double)s->data->d / s->data->n_units)));
    go_choice c = {.joining = go_most(first_size, p->units), .relative = INNER_RTOL};
    c.last_gap = c.inner_gap = c.halved_gap = INFINITY;
    int steps = 0, ended = 0;
    p->lam = s->lam;
    p->lipschitz = 0.0;
    int ahead = look_ahead(s);
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
        if (!go_choose(s, &c, gap))
            return GO_NO_ROOM;
        go_set_gram(s, &c);
        if (p->loss->quadratic)
            for (int r = 0; r < p->rows; r++)
                memcpy(p->C + (size_t)r * p->q, s->C + (size_t)s->feature[r] * p->q, (size_t)p->q * sizeof *p->C);
        else
            go_correlate(p, p->theta, p->C);
        if (c.violators)
            p->lipschitz = 0.0;
        p->newton_size = c.cut ? 0 : s->newton_size;
        double *guess = round == 0 && !ahead ? extrapolated(s) : NULL;
        go_goal aim = go_inner_goal(s, &c, goal, gap, s->task->max_steps - steps);
        int end = go_minimize(p, aim, guess);
        steps += p->steps;
        c.inner_gap = p->gap;
        c.last_gap = gap;
        if (s->task->unchecked && end == GO_DONE && !c.cut && p->gap <= aim.tight) {
            *gap_found = p->gap;
            *steps_found = steps;
            return GO_CONVERGED;
        }
        refresh(s, NULL);
        ended = end != GO_DONE || pause_and_ask(s);
    }
}

/* Append the non-zero rows of the solution to the results; 0 if there is no room. */
static int publish(go_solver *s, int k)
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
static int begin(go_solver *s)
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
        int row = task->init_row[i], unit = go_unit_of(data, row);
        if (s->place[unit] < 0 && !go_join(s, unit))
            return 0;
        int at = p->fixed + s->start[s->place[unit]] + row - go_unit_first(data, unit);
        memcpy(p->B + (size_t)at * q, task->init_B + (size_t)i * q, (size_t)q * sizeof *p->B);
    }
    go_fit_constant(s);
    return 1;
}

/* All solves one after the other; how many were run. */
static int follow(go_solver *s)
{
    const go_task *task = s->task;
    const go_inner *p = &s->p;
    int failures = 0, n_units = s->data->n_units, k = 0;
    for (; k < task->n_lam && failures < MOST_FAILURES && !s->stopped; k++) {
        double before = k ? s->passes : 0.0;
        if (k && task->unchecked) /* correlations are those of an earlier look */
            refresh(s, NULL);
        for (int u = 0; u < n_units; u++)
            s->lam[u] = task->alpha ? task->alpha[k] * task->lam[u] : task->lam[(size_t)k * n_units + u];
        int status = solve_one(s, task->goal[k], &task->gap[k], &task->steps[k]);
        task->status[k] = status;
        task->passes[k] = s->passes - before;
        if (!publish(s, k)) {
            task->status[k] = GO_NO_ROOM;
            return k;
        }
        if (p->value <= task->least_loss)
            return k + 1;
        failures = status == GO_CONVERGED ? 0 : status == GO_NO_ROOM ? MOST_FAILURES : failures + 1;
    }
    return k;
}

ptrdiff_t go_solve(const go_data *data, const go_task *task, const go_blas *blas, void *work, size_t size)
{
    go_solver s = {.data = data, .task = task};
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
    p->column_work = data->n;
    if (p->sparse_work && SPARSE_PRICE * go_density(data) < 1.0) {
        p->sparse = data;
        p->feature = s.feature;
        p->row_scale = s.row_scale;
        p->column_work = SPARSE_PRICE * go_density(data) * data->n;
    }
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
        refresh(&s, data->loss->quadratic && data->kind != GO_GRAM ? task->init_C : NULL);
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
#if defined(__clang__)
    return "Clang " __clang_version__;
#elif defined(__GNUC__)
    return "GCC " __VERSION__;
#else
    return "an unknown compiler";
#endif
}
