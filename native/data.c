/* Columns of X and products with all of them, whatever X is made of: double or single precision, by rows or by columns,
 * dense or sparse. Column j of the problem is (x_j - mean_j) / scale_j, never made but for columns of working sets. */
#include "groupowl.h"

#include <stdint.h>
#include <string.h>

/* Products of fewer multiplications are small for BLAS; pieces narrower than this would be too many. */
#define SMALL_PRODUCT 9.5e5
#define LEAST_PIECE 10
/* Numbers of single precision that become double at a time: they should stay in cache. */
#define CONVERTED 131072

static int is_sparse(const go_data *data)
{
    return data->kind == GO_CSC_F64 || data->kind == GO_CSC_F32;
}

double go_density(const go_data *data)
{
    if (!is_sparse(data))
        return 1.0;
    double entries = data->wide ? (double)((const int64_t *)data->start)[data->d] : ((const int *)data->start)[data->d];
    return entries / ((double)data->n * data->d);
}

/* The unit that a row belongs to. */
int go_unit_of(const go_data *data, int row)
{
    if (!data->unit_start)
        return row;
    int low = 0, high = data->n_units;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (data->unit_start[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- Sparse columns, for each kind of numbers -------------------------------------------------------------------- */

#define SPARSE_FUNCTIONS(KIND, NUMBER, INDEX)                                                                          \
    static void scatter_##KIND(const go_data *data, int j, double *column)                                             \
    {                                                                                                                  \
        const INDEX *start = data->start, *index = data->index;                                                        \
        const NUMBER *X = data->X;                                                                                     \
        for (INDEX e = start[j]; e < start[j + 1]; e++)                                                                \
            column[index[e]] += X[e];                                                                                  \
    }                                                                                                                  \
    static void products_##KIND(const go_data *data, const double *T, double *C)                                       \
    {                                                                                                                  \
        const INDEX *start = data->start, *index = data->index;                                                        \
        const NUMBER *X = data->X;                                                                                     \
        int q = data->q;                                                                                               \
        for (int j = 0; j < data->d && q == 1; j++) {                                                                  \
            double sum = 0.0;                                                                                          \
            for (INDEX e = start[j]; e < start[j + 1]; e++)                                                            \
                sum += X[e] * T[index[e]];                                                                             \
            C[j] = sum;                                                                                                \
        }                                                                                                              \
        for (int j = 0; j < data->d && q > 1; j++) {                                                                   \
            double *c = C + (size_t)j * q;                                                                             \
            memset(c, 0, (size_t)q * sizeof *c);                                                                       \
            for (INDEX e = start[j]; e < start[j + 1]; e++) {                                                          \
                const double *t = T + (size_t)index[e] * q;                                                            \
                for (int k = 0; k < q; k++)                                                                            \
                    c[k] += X[e] * t[k];                                                                               \
            }                                                                                                          \
        }                                                                                                              \
    }

SPARSE_FUNCTIONS(f64_i32, double, int)
SPARSE_FUNCTIONS(f32_i32, float, int)
SPARSE_FUNCTIONS(f64_i64, double, int64_t)
SPARSE_FUNCTIONS(f32_i64, float, int64_t)

typedef struct {
    void (*scatter)(const go_data *data, int j, double *column);            /* add column j */
    void (*products)(const go_data *data, const double *T, double *C);      /* C = X^T T */
} sparse_table;

static sparse_table sparse_functions(const go_data *data)
{
    static const sparse_table tables[4] = {
        {scatter_f64_i32, products_f64_i32},
        {scatter_f32_i32, products_f32_i32},
        {scatter_f64_i64, products_f64_i64},
        {scatter_f32_i64, products_f32_i64},
    };
    return tables[2 * (data->wide != 0) + (data->kind == GO_CSC_F32)];
}

/* ---- Columns ----------------------------------------------------------------------------------------------------- */

/* Column j, centered and scaled, times `row_scale` (n, or NULL). */
void go_gather(const go_data *data, int j, const double *row_scale, double *column)
{
    int n = data->n;
    ptrdiff_t between = data->by_rows ? data->stride : 1, first = data->by_rows ? j : j * data->stride;
    if (data->kind == GO_DENSE_F64 || data->kind == GO_GRAM) {
        const double *x = (const double *)data->X + first;
        for (int i = 0; i < n; i++)
            column[i] = x[i * between];
    } else if (data->kind == GO_DENSE_F32) {
        const float *x = (const float *)data->X + first;
        for (int i = 0; i < n; i++)
            column[i] = x[i * between];
    } else {
        memset(column, 0, (size_t)n * sizeof *column);
        sparse_functions(data).scatter(data, j, column);
    }
    double mean = data->mean ? data->mean[j] : 0.0, scale = data->scale ? data->scale[j] : 1.0;
    if (data->mean || data->scale)
        for (int i = 0; i < n; i++)
            column[i] = (column[i] - mean) / scale;
    if (row_scale)
        for (int i = 0; i < n; i++)
            column[i] *= row_scale[i];
}

/* ---- Products ---------------------------------------------------------------------------------------------------- */

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

/* out (columns, q) = add * out + sum_i of T_i (depth, q) times line i of X. X has `depth` numbers per column, columns
 * `ld` apart; if `by_lines` it is given the other way round, lines `ld` apart. In pieces that BLAS takes for small:
 * these have kernels that are twice as fast where q is small. */
void go_multiply(const go_blas *blas, int q, int columns, int depth, const double *T, const double *X, int ld,
                 int by_lines, double add, double *out)
{
    int one = 1;
    double unit = 1.0;
    if (depth == 0 && add == 0.0) /* BLAS wants leading dimensions of 1 at least */
        memset(out, 0, (size_t)columns * q * sizeof *out);
    if (columns == 0 || depth == 0)
        return;
    if (q == 1 && by_lines) {
        blas->dgemv("N", &columns, &depth, &unit, (double *)X, &ld, (double *)T, &one, &add, out, &one);
        return;
    }
    if (q == 1) {
        blas->dgemv("T", &depth, &columns, &unit, (double *)X, &ld, (double *)T, &one, &add, out, &one);
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
            double more = top ? 1.0 : add;
            blas->dgemm("N", by_lines ? "T" : "N", &q, &count, &rows, &unit, (double *)T + (size_t)top * q, &q,
                        (double *)part, &ld, &more, out + (size_t)first * q, &q);
        }
    }
}

/* Numbers of X that are converted to double at a time: several rows or columns, or one if it is that long. */
size_t go_converted(const go_data *data)
{
    int longest = data->n > data->d ? data->n : data->d;
    return data->kind != GO_DENSE_F32 ? 0 : longest > CONVERTED ? (size_t)longest : CONVERTED;
}

/* C = X^T T in single precision: a piece at a time becomes double, so that sums are in double precision. */
static void single_products(const go_data *data, const go_blas *blas, const double *T, double *converted, double *C)
{
    int n = data->n, d = data->d, q = data->q, lines = data->by_rows ? n : d, length = data->by_rows ? d : n;
    int piece = (int)(go_converted(data) / (size_t)length);
    for (int first = 0; first < lines; first += piece) {
        int count = lines - first < piece ? lines - first : piece;
        for (int a = 0; a < count; a++) {
            const float *line = (const float *)data->X + (first + a) * data->stride;
            double *to = converted + (size_t)a * length;
            for (int i = 0; i < length; i++)
                to[i] = line[i];
        }
        if (data->by_rows)
            go_multiply(blas, q, d, count, T + (size_t)first * q, converted, d, 1, first ? 1.0 : 0.0, C);
        else
            go_multiply(blas, q, count, n, T, converted, n, 0, 0.0, C + (size_t)first * q);
    }
}

/* C = X^T theta for all columns, centered and scaled: x_j^T theta less mean_j sum(theta), over scale_j. */
void go_correlate_all(const go_data *data, const go_blas *blas, const double *theta, double *sums, double *converted,
                      double *C)
{
    int n = data->n, d = data->d, q = data->q;
    if (is_sparse(data))
        sparse_functions(data).products(data, theta, C);
    else if (data->kind == GO_DENSE_F32)
        single_products(data, blas, theta, converted, C);
    else
        go_multiply(blas, q, d, n, theta, data->X, (int)data->stride, data->by_rows, 0.0, C);
    if (data->mean) {
        memset(sums, 0, (size_t)q * sizeof *sums);
        for (int i = 0; i < n; i++)
            for (int k = 0; k < q; k++)
                sums[k] += theta[(size_t)i * q + k];
        for (int j = 0; j < d; j++)
            for (int k = 0; k < q; k++)
                C[(size_t)j * q + k] -= data->mean[j] * sums[k];
    }
    if (data->scale)
        for (int j = 0; j < d; j++)
            for (int k = 0; k < q; k++)
                C[(size_t)j * q + k] /= data->scale[j];
}
