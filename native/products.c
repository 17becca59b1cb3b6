/* Products of matrices with a few tasks at a time. BLAS has little for them: it copies both factors into pieces whose
 * size suits square matrices, and that takes as long as the product. */
#include "groupowl.h"

#include <string.h>

/* More tasks are left to BLAS. */
#define FEW_TASKS 8
/* Tasks that are summed up in registers together, and what each has room for beside them. */
#define TOGETHER 4
/* Numbers of a line at a time: sums of few tasks then stay in the nearest cache. */
#define PIECE 256
/* With more non-zero factors than this BLAS is the faster one for one task. */
#define MOSTLY_ZERO 0.6
/* For BLAS, products of fewer multiplications are small; pieces narrower than this would be too many. */
#define SMALL_PRODUCT 9.5e5
#define LEAST_PIECE 10

/* Into each of the functions that are compiled for several machines, and with constants for numbers of tasks. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

double go_dot(size_t n, const double *a, const double *b)
{
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0; /* four sums at a time, in the same order on every machine */
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        s0 += a[i] * b[i];
        s1 += a[i + 1] * b[i + 1];
        s2 += a[i + 2] * b[i + 2];
        s3 += a[i + 3] * b[i + 3];
    }
    for (; i < n; i++)
        s0 += a[i] * b[i];
    return (s0 + s1) + (s2 + s3);
}

/* ---- Sums of lines ------------------------------------------------------------------------------------------------ */

/* sums_k += b_0k x_0 + ... + b_3k x_3 */
ALWAYS_INLINE void add_four_for(int tasks, int length, const double *const x[4], const double *b, double *sums)
{
    const double *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
    double f[4][TOGETHER];
    for (int a = 0; a < 4; a++)
        for (int k = 0; k < tasks; k++)
            f[a][k] = b[a * FEW_TASKS + k];
    for (int i = 0; i < length; i++)
        for (int k = 0; k < tasks; k++)
            sums[k * PIECE + i] += (x0[i] * f[0][k] + x1[i] * f[1][k]) + (x2[i] * f[2][k] + x3[i] * f[3][k]);
}

ALWAYS_INLINE void add_four(int q, int length, const double *const x[4], const double *b, double *restrict sums)
{
    int groups = (q + TOGETHER - 1) / TOGETHER, size = (q + groups - 1) / groups;
    for (int first = 0; first < q; first += size) {
        int tasks = q - first < size ? q - first : size;
        double *mine = sums + first * PIECE;
        if (tasks == 1)
            add_four_for(1, length, x, b + first, mine);
        else if (tasks == 2)
            add_four_for(2, length, x, b + first, mine);
        else if (tasks == 3)
            add_four_for(3, length, x, b + first, mine);
        else
            add_four_for(4, length, x, b + first, mine);
    }
}

/* out (columns, q) += T^T X, lines of X `ld` apart; lines whose factors are all zero are left out */
FOR_EACH_MACHINE
static void add_lines(int q, int columns, int depth, const double *T, const double *X, size_t ld, double *out)
{
    double sums[FEW_TASKS * PIECE], b[4 * FEW_TASKS];
    const double *x[4];
    for (int first = 0; first < columns; first += PIECE) {
        int length = columns - first < PIECE ? columns - first : PIECE, waiting = 0;
        double *piece = out + (size_t)first * q;
        for (int k = 0; k < q; k++)
            memset(sums + k * PIECE, 0, (size_t)length * sizeof *sums);
        for (int i = 0; i < depth; i++) {
            const double *factors = T + (size_t)i * q;
            int k = 0;
            while (k < q && factors[k] == 0.0)
                k++;
            if (k < q) {
                for (k = 0; k < q; k++)
                    b[waiting * FEW_TASKS + k] = factors[k];
                x[waiting++] = X + (size_t)i * ld + first;
            }
            if (waiting == 0 || (waiting < 4 && i < depth - 1))
                continue;
            for (; waiting < 4; waiting++) {
                x[waiting] = x[0];
                memset(b + waiting * FEW_TASKS, 0, FEW_TASKS * sizeof *b);
            }
            add_four(q, length, x, b, sums);
            waiting = 0;
        }
        for (int k = 0; k < q; k++)
            for (int i = 0; i < length; i++)
                piece[i * q + k] += sums[k * PIECE + i];
    }
}

/* The same for one task, for which less is to be arranged: z += sum of the lines with b_j != 0, times b_j */
FOR_EACH_MACHINE
static void add_lines_of_one(int columns, int depth, const double *b, const double *X, size_t ld, double *z)
{
    const double *x[4];
    double f[4];
    int waiting = 0;
    for (int i = 0; i < depth; i++) {
        if (b[i] != 0.0) {
            x[waiting] = X + (size_t)i * ld;
            f[waiting++] = b[i];
        }
        if (waiting == 0 || (waiting < 4 && i < depth - 1))
            continue;
        for (; waiting < 4; waiting++) {
            x[waiting] = x[0];
            f[waiting] = 0.0;
        }
        const double *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
        for (int c = 0; c < columns; c++)
            z[c] += (x0[c] * f[0] + x1[c] * f[1]) + (x2[c] * f[2] + x3[c] * f[3]);
        waiting = 0;
    }
}

/* ---- Products with columns ---------------------------------------------------------------------------------------- */

/* Four sums at a time, in the same order on every machine. */
typedef double four __attribute__((vector_size(32), aligned(8), may_alias));

/* products (2, FEW_TASKS) of two columns with T by task */
ALWAYS_INLINE void multiply_two_for(int tasks, int length, const double *x, const double *y, const double *T,
                                    double *products)
{
    four sums[2][TOGETHER];
    int i = 0;
    memset(sums, 0, sizeof sums);
    for (; i + 4 <= length; i += 4) {
        four xs = *(const four *)(x + i), ys = *(const four *)(y + i);
        for (int k = 0; k < tasks; k++) {
            four t = *(const four *)(T + k * PIECE + i);
            sums[0][k] += xs * t;
            sums[1][k] += ys * t;
        }
    }
    for (int k = 0; k < tasks; k++) {
        double with_x = (sums[0][k][0] + sums[0][k][1]) + (sums[0][k][2] + sums[0][k][3]);
        double with_y = (sums[1][k][0] + sums[1][k][1]) + (sums[1][k][2] + sums[1][k][3]);
        for (int r = i; r < length; r++) {
            with_x += x[r] * T[k * PIECE + r];
            with_y += y[r] * T[k * PIECE + r];
        }
        products[k] = with_x;
        products[FEW_TASKS + k] = with_y;
    }
}

ALWAYS_INLINE void multiply_two(int q, int length, const double *x, const double *y, const double *T, double *products)
{
    int groups = (q + TOGETHER - 1) / TOGETHER, size = (q + groups - 1) / groups;
    for (int first = 0; first < q; first += size) {
        int tasks = q - first < size ? q - first : size;
        const double *mine = T + first * PIECE;
        if (tasks == 1)
            multiply_two_for(1, length, x, y, mine, products + first);
        else if (tasks == 2)
            multiply_two_for(2, length, x, y, mine, products + first);
        else if (tasks == 3)
            multiply_two_for(3, length, x, y, mine, products + first);
        else
            multiply_two_for(4, length, x, y, mine, products + first);
    }
}

/* out (columns, q) += X^T T, columns of X `ld` apart */
FOR_EACH_MACHINE
static void multiply_columns(int q, int columns, int depth, const double *T, const double *X, size_t ld,
                             double *out)
{
    double by_task[FEW_TASKS * PIECE], products[2 * FEW_TASKS];
    for (int first = 0; first < depth; first += PIECE) {
        int length = depth - first < PIECE ? depth - first : PIECE;
        for (int i = 0; i < length; i++)
            for (int k = 0; k < q; k++)
                by_task[k * PIECE + i] = T[(size_t)(first + i) * q + k];
        for (int j = 0; j < columns; j += 2) {
            const double *x = X + (size_t)j * ld + first, *y = j + 1 < columns ? x + ld : x;
            multiply_two(q, length, x, y, by_task, products);
            for (int a = 0; a < 2 && j + a < columns; a++)
                for (int k = 0; k < q; k++)
                    out[(size_t)(j + a) * q + k] += products[a * FEW_TASKS + k];
        }
    }
}

/* ---- All of it ---------------------------------------------------------------------------------------------------- */

static int is_mostly_zero(int m, const double *b)
{
    int count = 0;
    for (int j = 0; j < m; j++)
        count += b[j] != 0.0;
    return count < MOSTLY_ZERO * m;
}

/* One task, or many: BLAS. In pieces that it takes for small: these have kernels that are twice as fast for few tasks,
 * where the processor is one that it has them for. */
static void multiply_by_blas(const go_blas *blas, int q, int columns, int depth, const double *T, const double *X,
                             int ld, int by_lines, double *out)
{
    int one = 1;
    double unit = 1.0;
    if (q == 1 && by_lines) {
        blas->dgemv("N", &columns, &depth, &unit, (double *)X, &ld, (double *)T, &one, &unit, out, &one);
        return;
    }
    if (q == 1) {
        blas->dgemv("T", &depth, &columns, &unit, (double *)X, &ld, (double *)T, &one, &unit, out, &one);
        return;
    }
    int along = by_lines ? columns : depth, most = (int)(SMALL_PRODUCT / q / LEAST_PIECE) + 1;
    int length = along < most ? along : most;          /* of a piece, along what is contiguous */
    int width = (int)(SMALL_PRODUCT / q / length) + 1; /* and across */
    int wide = by_lines ? length : width, deep = by_lines ? width : length;
    for (int first = 0; first < columns; first += wide) {
        int count = columns - first < wide ? columns - first : wide;
        for (int top = 0; top < depth; top += deep) {
            int rows = depth - top < deep ? depth - top : deep;
            const double *part = X + (by_lines ? first + (size_t)top * ld : top + (size_t)first * ld);
            blas->dgemm("N", by_lines ? "T" : "N", &q, &count, &rows, &unit, (double *)T + (size_t)top * q, &q,
                        (double *)part, &ld, &unit, out + (size_t)first * q, &q);
        }
    }
}

/* out (columns, q) = sum_i of T_i (depth, q) times line i of X, added to `out` as it is if `add`. X has `depth` numbers
 * per column, columns `ld` apart; if `by_lines` it is given the other way round, lines `ld` apart. */
void go_multiply(const go_blas *blas, int q, int columns, int depth, const double *T, const double *X, int ld,
                 int by_lines, int add, double *out)
{
    if (!add)
        memset(out, 0, (size_t)columns * q * sizeof *out);
    if (columns == 0 || depth == 0) /* BLAS wants leading dimensions of 1 at least */
        return;
    if (q == 1 && by_lines && is_mostly_zero(depth, T))
        add_lines_of_one(columns, depth, T, X, (size_t)ld, out);
    else if (q == 1 || q > FEW_TASKS)
        multiply_by_blas(blas, q, columns, depth, T, X, ld, by_lines, out);
    else if (by_lines)
        add_lines(q, columns, depth, T, X, (size_t)ld, out);
    else
        multiply_columns(q, columns, depth, T, X, (size_t)ld, out);
}
