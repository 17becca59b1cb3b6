/* The working set: which units it has, their columns and Gram matrix, and how exactly to solve on it. The NumPy twin is
 * groupowl/solvers/working_set.py; formulas: docs/mathematics/solver.rst.
 *
 * It is always the leading columns of one array A and of their Gram matrix: rows that join are appended, those that
 * leave are closed up. Zero rows outside take the smallest weights, so units inside pay lam_1, lam_2, ... */
#include "solver.h"

#include <math.h>
#include <string.h>

/* So few rows are a working set as a whole. */
#define FEW_ROWS 40
/* Units that are neither non-zero nor possible leave a working set if they are more than so many, and a quarter. */
#define MANY_IDLE 8
/* The length of the intercept's column is decided again once there are so many others. */
#define FEW_COLUMNS 8
/* A working set with more than this of all units may as well be all of them. */
#define MOST_UNITS 0.6
/* Steps that a Gram matrix should pay off in, and what an operation of making it costs against one of a step. */
#define USUAL_STEPS 30.0
#define GRAM_PRICE 0.2
/* Floating-point operations that take as long as the fixed cost of a round. */
#define ROUND_OVERHEAD 3e4
/* Steps that may be free because a round costs more. */
#define MOST_FREE_STEPS 1000
/* A round that leaves more than this of the gap asks for finer inner solves. */
#define POOR_ROUND 0.7

int go_unit_first(const go_data *data, int unit)
{
    return data->unit_start ? data->unit_start[unit] : unit;
}

static int unit_size(const go_data *data, int unit)
{
    return data->unit_start ? data->unit_start[unit + 1] - data->unit_start[unit] : 1;
}

/* Append a unit with zero coefficients; 0 if there is no room. */
int go_join(go_solver *s, int unit)
{
    go_inner *p = &s->p;
    int q = p->q, size = unit_size(s->data, unit), first = go_unit_first(s->data, unit);
    if (p->rows - p->fixed + size > s->task->capacity)
        return 0;
    s->place[unit] = p->units;
    s->unit[p->units] = unit;
    if (p->vectors)
        p->factored[p->units] = 0;
    for (int r = 0; r < size; r++)
        s->feature[p->rows + r] = first + r;
    go_gather(s->data, first, size, s->row_scale, p->A + (size_t)p->rows * p->n);
    memset(p->B + (size_t)p->rows * q, 0, (size_t)size * q * sizeof *p->B);
    memset(s->before + (size_t)p->rows * q, 0, (size_t)size * q * sizeof *s->before);
    p->rows += size;
    *s->task->peak = go_most(*s->task->peak, p->rows);
    p->units++;
    s->start[p->units] = p->rows - p->fixed;
    return 1;
}

/* What blocks.c knows of a unit moves to another place, where its rows end at `end`. */
static void move_factors(go_inner *p, int unit, int first, int size, int to, int end)
{
    size_t block = (size_t)p->largest_unit;
    p->factored[to] = p->factored[unit];
    if (first == end - size || !p->factored[unit])
        return;
    memmove(p->vectors + (end - size) * block, p->vectors + first * block, (size_t)size * size * sizeof *p->vectors);
    memmove(p->values + end - size, p->values + first, (size_t)size * sizeof *p->values);
}

/* Let units go whose `leaving` mark is set: everything that follows closes up. */
static void close_up(go_solver *s, const int *leaving)
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
        if (p->vectors)
            move_factors(p, u, s->start[u], s->start[u + 1] - s->start[u], units, rows - p->fixed);
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
static void widen_gram(go_solver *s, int rows)
{
    int before = s->p.ldg;
    s->p.ldg = 2 * rows < s->task->gram_capacity ? 2 * rows : s->task->gram_capacity;
    for (int b = s->gram_rows - 1; b > 0; b--)
        memmove(s->gram + (size_t)b * s->p.ldg, s->gram + (size_t)b * before, (size_t)s->gram_rows * sizeof *s->gram);
}

/* The Gram matrix of all rows, from that of the first ones. */
static void extend_gram(go_solver *s)
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
static int wants_gram(const go_solver *s, int another_round)
{
    const go_inner *p = &s->p;
    if (!p->loss->quadratic || p->rows > s->task->gram_capacity)
        return 0;
    if (s->data->kind == GO_GRAM)
        return 1;
    if (go_suits_blocks(p))
        return 0;
    if (p->q > 1 && s->lam[0] == s->lam[go_most(p->units, 1) - 1])
        return !another_round && p->rows <= 4 * p->n;
    if (another_round)
        return 0;
    double saved = USUAL_STEPS * (4.0 * p->column_work - 2.0 * p->rows) * p->q;
    return saved > 0.0 && saved >= GRAM_PRICE * p->n * (p->rows - s->gram_rows);
}

void go_set_gram(go_solver *s, const go_choice *c)
{
    s->p.G = wants_gram(s, c->cut) ? s->gram : NULL;
    if (s->p.G)
        extend_gram(s);
}

/* The column of the intercept is as long as the longest other one: then it never limits a step. */
void go_fit_constant(go_solver *s)
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

/* Units that could be non-zero if the residual were that of the optimum, by falling correlation. */
static int find_possible(go_solver *s, int all)
{
    if (!all)
        return go_kkt_units(s->data->n_units, s->norms, s->lam, s->found, s->scratch);
    for (int u = 0; u < s->data->n_units; u++)
        s->found[u] = u;
    return s->data->n_units;
}

int go_violators(go_solver *s)
{
    int violators = 0, count = find_possible(s, 0);
    for (int i = 0; i < count; i++)
        violators += s->place[s->found[i]] < 0;
    return violators;
}

/* Let units go that are zero and not among the possible ones, where they are many; p.norms are those of B. */
static void release_idle(go_solver *s, int n_possible)
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
int go_choose(go_solver *s, go_choice *c, double gap)
{
    go_inner *p = &s->p;
    int n_units = s->data->n_units, before = p->units, support = 0, halved = gap <= 0.5 * c->halved_gap;
    c->rounds = halved ? 0 : c->rounds + 1;
    c->halved_gap = halved ? gap : c->halved_gap;
    int all = s->data->d <= FEW_ROWS || c->rounds >= HALVING_ROUNDS, count = find_possible(s, all);
    c->violators = 0;
    for (int i = 0; i < count; i++)
        c->violators += s->place[s->found[i]] < 0;
    go_unit_norms(p->units, p->start, p->q, p->B + (size_t)p->fixed * p->q, p->norms);
    for (int u = 0; u < p->units; u++)
        support += p->norms[u] > 0.0;
    c->joining = go_most(c->joining, 2 * support);
    c->cut = !all && c->violators > c->joining + c->joining / 2;
    int left = c->cut ? c->joining : c->violators;
    if (c->cut)
        c->joining *= 2;
    if (c->violators > 0 && !all)
        release_idle(s, count);
    int may_be_all = !c->cut && !s->data->unit_start && s->data->d <= s->task->capacity; /* units may have many rows */
    if (may_be_all && p->units + left > MOST_UNITS * n_units) {
        count = find_possible(s, 1);
        left = n_units;
    }
    for (int i = 0; i < count && left > 0; i++) {
        if (s->place[s->found[i]] >= 0)
            continue;
        if (!go_join(s, s->found[i]))
            return 0;
        left--;
    }
    c->everything = p->units == n_units;
    if (before == 0 || (before < FEW_COLUMNS && p->units >= FEW_COLUMNS))
        go_fit_constant(s);
    int poor = c->violators == 0 || gap > POOR_ROUND * c->last_gap;
    double finer = c->relative / 10.0 > FINEST_RTOL ? c->relative / 10.0 : FINEST_RTOL;
    c->relative = poor ? finer : INNER_RTOL;
    return 1;
}

/* When an inner solve is good enough; steps that together cost less than a round are free. */
go_goal go_inner_goal(const go_solver *s, const go_choice *c, double goal, double gap, int steps_left)
{
    const go_inner *p = &s->p;
    double tight = (c->everything ? 0.9 : 0.6) * goal;
    if (c->violators == 0 && !c->everything && c->inner_gap <= 1.2 * tight)
        tight *= c->relative; /* so accurate it was already, and yet the gap of the whole problem is too large */
    double round_cost = 2.0 * go_density(s->data) * p->n * s->data->d * p->q + ROUND_OVERHEAD;
    double step_cost = (p->G ? 2.0 * p->rows : 4.0 * p->column_work) * p->rows * p->q + 500.0;
    int may_stop = c->violators > 0 || !p->vectors; /* cycles over blocks go to the end where no unit is missing */
    double loose = may_stop && c->relative * gap > tight ? c->relative * gap : tight;
    double free_steps = c->cut ? 0.0 : round_cost / step_cost;
    return (go_goal){tight, loose, free_steps < MOST_FREE_STEPS ? (int)free_steps : MOST_FREE_STEPS, steps_left};
}
