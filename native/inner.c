/* Minimization on a working set: proximal gradient steps of Barzilai-Borwein length for all problems, Newton steps
 * along the pattern for one task, coordinate descent with Anderson extrapolation for equal weights and several tasks or
 * units of several rows.
 * The NumPy twin is groupowl/solvers/inner; formulas: docs/mathematics/solver.rst, "Inner solvers". */
#include "inner.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Armijo's constant. */
#define DECREASE 5e-5
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
/* Gradient steps before another method has its turn: from far away; nearby, or after a Newton step that helped; where
 * coordinate descent has become slow. */
#define FAR_STEPS 10
#define NEAR_STEPS 3
#define MORE_STEPS 20

/* ---- Products -------------------------------------------------------------------------------------------------- */

/* Z = A B */
void go_predict(const go_inner *p, const double *B, double *Z)
{
    if (p->sparse)
        go_predict_sparse(p->sparse, p->rows, p->feature, p->row_scale, B, p->sparse_work, Z);
    else
        go_multiply(p->blas, p->q, p->n, p->rows, B, p->A, p->n, 1, 0, Z);
}

/* C = A^T theta */
void go_correlate(const go_inner *p, const double *theta, double *C)
{
    if (p->sparse)
        go_correlate_sparse(p->sparse, p->rows, p->feature, p->row_scale, theta, p->sparse_work,
                            p->sparse_work + 2 * p->q, C);
    else
        go_multiply(p->blas, p->q, p->rows, p->n, theta, p->A, p->n, 0, 0, C);
}

/* image = G move; G is symmetric, and by lines those of rows that do not move are left out */
static void apply_gram(const go_inner *p, const double *move, double *image)
{
    go_multiply(p->blas, p->q, p->rows, p->rows, move, p->G, p->ldg, 1, 0, image);
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

int go_has_equal_weights(const go_inner *p)
{
    return p->units == 0 || p->lam[0] == p->lam[p->units - 1];
}

double go_penalty_of(const go_inner *p, const double *B)
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
        int first = p->start ? p->start[u] : u, last = p->start ? p->start[u + 1] : u + 1;
        for (size_t k = (size_t)first * q; k < (size_t)last * q; k++)
            rows[k] *= factor;
    }
    return value;
}

/* The duality gap on the working set at B, C, value and penalty (and theta, if the loss is not quadratic). */
double go_gap_of(go_inner *p)
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

static void start_again(go_inner *p)
{
    p->recent[0] = p->value + p->penalty;
    p->n_recent = 1;
}

static void remember(go_inner *p, double objective)
{
    if (p->n_recent == GO_MEMORY) {
        memmove(p->recent, p->recent + 1, (GO_MEMORY - 1) * sizeof *p->recent);
        p->n_recent--;
    }
    p->recent[p->n_recent++] = objective;
}

/* Look at the gap, and whether to go on. */
int go_verdict(go_inner *p)
{
    p->gap = go_gap_of(p);
    if (p->gap <= p->goal.tight || (p->gap <= p->goal.loose && p->steps >= p->goal.free_steps))
        return GO_DONE;
    if (p->steps >= p->goal.max_steps)
        return GO_DONE;
    if (p->gap <= 0.5 * p->halved_gap) {
        p->halved_gap = p->gap;
        p->halved_at = p->steps;
    } else if (p->steps - p->halved_at > SLOW_STEPS) {
        return GO_SLOW;
    }
    return p->pause(p->pause_argument) ? GO_PAUSED : GO_ON;
}

/* ---- Proximal gradient steps ------------------------------------------------------------------------------------ */

/* One step with a non-monotone line search (SpaRSA). 0 if no step is short enough, or none is needed. */
static int gradient_step(go_inner *p)
{
    size_t size = (size_t)p->rows * p->q;
    double reference = p->recent[0], penalty = 0.0, value = 0.0, square = 0.0;
    for (int i = 1; i < p->n_recent; i++)
        reference = p->recent[i] > reference ? p->recent[i] : reference;
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
    remember(p, value + penalty);
    p->steps++;
    p->largest = p->lipschitz > p->largest ? p->lipschitz : p->largest;
    double product = go_dot(size, p->move, p->image);
    if (product > 0.0) { /* one of the two Barzilai-Borwein curvatures in turn */
        int turn = p->steps <= LONG_TURNS_AFTER ? p->steps : p->steps / LONG_TURN;
        p->lipschitz = turn % 2 ? product / square : go_dot(size, p->image, p->image) / product;
    }
    if (!(p->lipschitz >= CURVATURE_RANGE * p->largest))
        p->lipschitz = CURVATURE_RANGE * p->largest;
    return square > 0.0;
}

/* Several steps, with looks at the gap. */
static int gradient_steps(go_inner *p, int count, int warm)
{
    for (int i = 1; i <= count; i++) {
        if (!gradient_step(p)) {
            if (!p->loss->quadratic) { /* theta may be that of a step that was refused */
                p->value = go_evaluate(p, p->B, p->theta);
                go_correlate(p, p->theta, p->C);
            }
            p->gap = go_gap_of(p);
            return GO_DONE;
        }
        if (i == count || p->steps % CHECK_EVERY == 0 || p->steps >= p->goal.max_steps ||
            (warm && (p->steps == 1 || p->steps == 3))) {
            int found = go_verdict(p);
            if (found != GO_ON)
                return found;
        }
    }
    return GO_ON;
}

/* Go to V if it has a lower objective; whether it has. */
int go_move_to(go_inner *p, const double *V)
{
    size_t size = (size_t)p->rows * p->q;
    for (size_t i = 0; i < size; i++)
        p->move[i] = V[i] - p->B[i];
    double value = value_after(p, V, p->move), penalty = go_penalty_of(p, V);
    if (!(value + penalty < p->value + p->penalty)) {
        if (!p->loss->quadratic) /* theta is that of V */
            go_evaluate(p, p->B, p->theta);
        return 0;
    }
    change_after(p);
    memmove(p->B, V, size * sizeof *p->B);
    for (size_t i = 0; i < size; i++)
        p->C[i] -= p->image[i];
    p->value = value;
    p->penalty = penalty;
    start_again(p);
    return 1;
}

/* ---- All of it --------------------------------------------------------------------------------------------------- */

/* The curvature of the loss along its gradient, or more. */
static double first_curvature(go_inner *p)
{
    size_t size = (size_t)p->rows * p->q;
    double square = go_dot(size, p->C, p->C), along = 0.0;
    if (p->G) {
        apply_gram(p, p->C, p->image);
        along = go_dot(size, p->C, p->image);
    } else {
        go_predict(p, p->C, p->Z);
        if (!p->loss->quadratic)
            p->loss->curvatures(p->n, p->q, p->theta, p->Y, p->w, p->curvatures);
        for (size_t i = 0; i < (size_t)p->n * p->q; i++)
            along += (p->loss->quadratic ? 1.0 : p->curvatures[i]) * p->Z[i] * p->Z[i];
    }
    return square > 0.0 && along > 0.0 ? along / square : 1.0;
}

/* Note the signs of the coefficients of one task: how many have changed since `signs`, and how many are not zero. */
static int note_signs(const go_inner *p, signed char *signs, int *count)
{
    int changes = 0;
    *count = 0;
    const double *B = p->B + p->fixed;
    for (int j = 0; j < p->units; j++) {
        signed char sign = (signed char)((B[j] > 0.0) - (B[j] < 0.0));
        changes += sign != signs[j];
        *count += sign != 0;
        signs[j] = sign;
    }
    return changes;
}

/* Gradient steps, and Newton steps along the pattern whenever it has not changed, or hardly after one that helped. */
static int minimize_one_task(go_inner *p, int warm)
{
    signed char *signs = (signed char *)p->past_B; /* at the last look */
    int count, wait = 1, looks = 0, near = warm, found = GO_ON;
    memset(signs, 0, (size_t)p->units);
    note_signs(p, signs, &count);
    while (found == GO_ON) {
        found = gradient_steps(p, near ? NEAR_STEPS : FAR_STEPS, warm);
        int changed = note_signs(p, signs, &count);
        if (found != GO_ON || ++looks < wait || changed > (near ? count / 5 : 0))
            continue;
        near = go_pattern_step(p);
        looks = 0;
        wait = near ? 1 : 2 * wait;
        if (near) {
            note_signs(p, signs, &count);
            found = go_verdict(p);
        }
    }
    return found;
}

int go_minimize(go_inner *p, go_goal goal, double *guess)
{
    p->goal = goal;
    p->steps = p->halved_at = 0;
    p->gap = p->halved_gap = INFINITY;
    p->largest = 0.0;
    for (int u = 0; u < p->units; u++)
        p->order[u] = u;
    start_again(p);
    if (guess)
        go_move_to(p, guess);
    if (!(p->lipschitz > 0.0))
        p->lipschitz = first_curvature(p);
    int warm = p->penalty > 0.0, found = GO_ON;
    if (!p->start && p->q == 1 && p->newton_size > 0)
        return minimize_one_task(p, warm);
    if (!p->start && p->q > 1 && p->G && go_has_equal_weights(p)) {
        while (found == GO_ON) {
            if (warm) /* from far away gradient steps are as good, and their products faster */
                found = go_coordinate_cycles(p);
            start_again(p);
            if (found == GO_ON)
                found = gradient_steps(p, warm ? MORE_STEPS : FAR_STEPS, warm);
            warm = 1;
        }
        return found;
    }
    while (found == GO_ON) {
        if (go_suits_blocks(p)) {
            found = go_block_cycles(p);
            start_again(p);
        }
        if (found == GO_ON)
            found = gradient_steps(p, FAR_STEPS, warm);
    }
    return found;
}
