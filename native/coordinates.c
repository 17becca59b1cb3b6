/* Block coordinate descent with Anderson extrapolation: several tasks, equal weights, Gram form. From a warm start it
 * needs fewer epochs than gradient steps, at about the same price. */
#include "inner.h"

#include <math.h>
#include <string.h>

/* Steps without halving the gap after which gradient steps have their turn. */
#define PATIENCE 40

/* Arrays are by task here: `rows` numbers for each, so that loops over rows are over neighbors. */
static void transpose(int rows, int columns, const double *from, double *to)
{
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < columns; k++)
            to[(size_t)k * rows + i] = from[(size_t)i * columns + k];
}

/* C -= g_0 d_0 + ... + g_3 d_3 with columns g of the Gram matrix, task by task */
FOR_EACH_MACHINE
static void subtract_four(int m, int q, const double *const g[4], const double *d, double *C)
{
    const double *g0 = g[0], *g1 = g[1], *g2 = g[2], *g3 = g[3];
    for (int k = 0; k < q; k++) {
        double d0 = d[k], d1 = d[q + k], d2 = d[2 * q + k], d3 = d[3 * q + k];
        double *c = C + (size_t)k * m;
        for (int i = 0; i < m; i++)
            c[i] -= (g0[i] * d0 + g1[i] * d1) + (g2[i] * d2 + g3[i] * d3);
    }
}

/* All rows once, in turn; the effect of four rows that have changed on the others is applied at once, and until then
 * only on the row whose turn it is. `changes`: 5 q */
static void coordinate_epoch(const go_inner *p, double *B, double *C, double *changes)
{
    int m = p->rows, q = p->q, waiting = 0;
    const double *g[4];
    double lam = p->lam[0], *v = changes + 4 * q;
    for (int j = 0; j < m; j++) {
        const double *column = p->G + (size_t)j * (size_t)p->ldg;
        double diagonal = column[j], square = 0.0;
        for (int k = 0; k < q && diagonal > 0.0; k++) {
            double c = C[(size_t)k * m + j] + diagonal * B[(size_t)k * m + j];
            for (int a = 0; a < waiting; a++)
                c -= g[a][j] * changes[a * q + k];
            v[k] = c;
            square += c * c;
        }
        double norm = sqrt(square), factor = norm > lam ? (1.0 - lam / norm) / diagonal : 0.0;
        int changed = 0;
        for (int k = 0; k < q && diagonal > 0.0; k++) {
            double *b = B + (size_t)k * m + j, now = factor * v[k];
            changes[waiting * q + k] = now - *b;
            changed |= now != *b;
            *b = now;
        }
        if (changed)
            g[waiting++] = column;
        if (waiting == 0 || (waiting < 4 && j < m - 1))
            continue;
        for (; waiting < 4; waiting++) {
            g[waiting] = column;
            memset(changes + waiting * q, 0, (size_t)q * sizeof *changes);
        }
        subtract_four(m, q, g, changes, C);
        waiting = 0;
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

/* Least squares on the differences of the iterates. */
int go_anderson_weights(const go_blas *blas, size_t size, const double *past, double *weights)
{
    double S[GO_ANDERSON * GO_ANDERSON], sum = 0.0, trace = 0.0;
    int count = GO_ANDERSON, one = 1, failed = 0;
    for (int a = 0; a < GO_ANDERSON; a++) {
        const double *x = past + a * size;
        for (int b = 0; b <= a; b++) {
            const double *y = past + b * size;
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
    blas->dpotrf("L", &count, S, &count, &failed);
    if (failed)
        return 0;
    blas->dpotrs("L", &count, &one, S, &count, weights, &count, &failed);
    for (int a = 0; a < GO_ANDERSON; a++)
        sum += weights[a];
    for (int a = 0; a < GO_ANDERSON; a++)
        weights[a] /= sum;
    return isfinite(sum) && sum != 0.0;
}

/* Change of the loss from (B_0, C_0) to (B, C). The gradient is affine in B, so that it takes no product. */
static double value_change(size_t size, const double *B_0, const double *C_0, const double *B, const double *C)
{
    double sum = 0.0;
    for (size_t i = 0; i < size; i++)
        sum += (C_0[i] + C[i]) * (B[i] - B_0[i]);
    return -0.5 * sum;
}

void go_mix(size_t size, const double *past, const double *weights, double *mixed)
{
    memset(mixed, 0, size * sizeof *mixed);
    for (int a = 0; a < GO_ANDERSON; a++)
        for (size_t i = 0; i < size; i++)
            mixed[i] += weights[a] * past[(a + 1) * size + i];
}

/* Cycles of epochs, each ended by an extrapolation that is taken where it lowers the objective. */
int go_coordinate_cycles(go_inner *p)
{
    int m = p->rows, q = p->q, found = GO_ON;
    size_t size = (size_t)m * q;
    double *B = p->past_B, *C = p->past_C, weights[GO_ANDERSON];
    while (found == GO_ON && p->steps - p->halved_at <= PATIENCE && p->steps + GO_ANDERSON <= p->goal.max_steps) {
        transpose(m, q, p->B, B);
        transpose(m, q, p->C, C);
        for (int e = 1; e <= GO_ANDERSON; e++) {
            memcpy(B + e * size, B + (e - 1) * size, size * sizeof *B);
            memcpy(C + e * size, C + (e - 1) * size, size * sizeof *C);
            coordinate_epoch(p, B + e * size, C + e * size, p->move);
        }
        p->steps += GO_ANDERSON;
        const double *end_B = B + GO_ANDERSON * size, *end_C = C + GO_ANDERSON * size;
        double before = p->value;
        p->value = before + value_change(size, B, C, end_B, end_C);
        p->penalty = penalty_by_task(p, end_B);
        if (go_anderson_weights(p->blas, size, B, weights)) {
            go_mix(size, B, weights, p->V);
            go_mix(size, C, weights, p->image);
            double value = before + value_change(size, B, C, p->V, p->image), penalty = penalty_by_task(p, p->V);
            if (value + penalty < p->value + p->penalty) {
                p->value = value;
                p->penalty = penalty;
                end_B = p->V;
                end_C = p->image;
            }
        }
        transpose(q, m, end_B, p->B);
        transpose(q, m, end_C, p->C);
        found = go_verdict(p);
    }
    return found;
}
