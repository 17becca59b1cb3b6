/* Columns of X and products with all of them, whatever X is made of: double or single precision, by rows or by columns,
 * dense or sparse. Column j of the problem is (x_j - mean_j) / scale_j, never made but for columns of working sets. */
#include "groupowl.h"

#include <stdint.h>
#include <string.h>

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
    static void add_##KIND(const go_data *data, int j, const double *b, double *Z)                                     \
    {                                                                                                                  \
        const INDEX *start = data->start, *index = data->index;                                                        \
        const NUMBER *X = data->X;                                                                                     \
        int q = data->q;                                                                                               \
        for (INDEX e = start[j]; e < start[j + 1] && q == 1; e++)                                                      \
            Z[index[e]] += X[e] * b[0];                                                                                \
        for (INDEX e = start[j]; e < start[j + 1] && q > 1; e++)                                                       \
            for (int k = 0; k < q; k++)                                                                                \
                Z[(size_t)index[e] * q + k] += X[e] * b[k];                                                            \
    }                                                                                                                  \
    static void product_##KIND(const go_data *data, int j, const double *T, double *c)                                 \
    {                                                                                                                  \
        const INDEX *start = data->start, *index = data->index;                                                        \
        const NUMBER *X = data->X;                                                                                     \
        int q = data->q;                                                                                               \
        double sum = 0.0;                                                                                              \
        memset(c, 0, (size_t)q * sizeof *c);                                                                           \
        for (INDEX e = start[j]; e < start[j + 1] && q == 1; e++)                                                      \
            sum += X[e] * T[index[e]];                                                                                 \
        c[0] = sum;                                                                                                    \
        for (INDEX e = start[j]; e < start[j + 1] && q > 1; e++)                                                       \
            for (int k = 0; k < q; k++)                                                                                \
                c[k] += X[e] * T[(size_t)index[e] * q + k];                                                            \
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
    void (*add)(const go_data *data, int j, const double *b, double *Z);     /* Z += x_j b^T */
    void (*product)(const go_data *data, int j, const double *T, double *c); /* c = x_j^T T */
    void (*products)(const go_data *data, const double *T, double *C);      /* C = X^T T */
} sparse_table;

static sparse_table sparse_functions(const go_data *data)
{
    static const sparse_table tables[4] = {
        {scatter_f64_i32, add_f64_i32, product_f64_i32, products_f64_i32},
        {scatter_f32_i32, add_f32_i32, product_f32_i32, products_f32_i32},
        {scatter_f64_i64, add_f64_i64, product_f64_i64, products_f64_i64},
        {scatter_f32_i64, add_f32_i64, product_f32_i64, products_f32_i64},
    };
    return tables[2 * (data->wide != 0) + (data->kind == GO_CSC_F32)];
}

/* ---- Columns ----------------------------------------------------------------------------------------------------- */

/* Pieces of so many rows and columns are turned at a time, in the nearest cache. */
#define PIECE_ROWS 64
#define PIECE_COLUMNS 32

#define DENSE_FUNCTION(KIND, NUMBER)                                                                                   \
    static void copy_##KIND(const go_data *data, int first, int count, double *columns)                                \
    {                                                                                                                  \
        const NUMBER *X = (const NUMBER *)data->X + (data->by_rows ? first : first * data->stride);                    \
        NUMBER piece[PIECE_ROWS * PIECE_COLUMNS];                                                                      \
        int n = data->n;                                                                                               \
        for (int r = 0; r < count && !data->by_rows; r++)                                                              \
            for (int i = 0; i < n; i++)                                                                                \
                columns[(size_t)r * n + i] = X[r * data->stride + i];                                                  \
        for (int r = 0; r < count && data->by_rows; r += PIECE_COLUMNS)                                                \
            for (int top = 0; top < n; top += PIECE_ROWS) {                                                            \
                int rows = n - top < PIECE_ROWS ? n - top : PIECE_ROWS;                                                \
                int width = count - r < PIECE_COLUMNS ? count - r : PIECE_COLUMNS;                                     \
                for (int i = 0; i < rows; i++)                                                                         \
                    memcpy(piece + i * PIECE_COLUMNS, X + (top + i) * data->stride + r, width * sizeof *piece);        \
                for (int k = 0; k < width; k++)                                                                        \
                    for (int i = 0; i < rows; i++)                                                                     \
                        columns[(size_t)(r + k) * n + top + i] = piece[i * PIECE_COLUMNS + k];                         \
            }                                                                                                          \
    }

DENSE_FUNCTION(f64, double)
DENSE_FUNCTION(f32, float)

/* `count` columns from `first` on, centered and scaled, times `row_scale` (n, or NULL); one after the other. */
void go_gather(const go_data *data, int first, int count, const double *row_scale, double *columns)
{
    size_t n = (size_t)data->n;
    if (data->kind == GO_DENSE_F64 || data->kind == GO_GRAM)
        copy_f64(data, first, count, columns);
    else if (data->kind == GO_DENSE_F32)
        copy_f32(data, first, count, columns);
    else
        memset(columns, 0, (size_t)count * n * sizeof *columns);
    for (int j = first; j < first + count; j++) {
        double *column = columns + (size_t)(j - first) * n;
        double mean = data->mean ? data->mean[j] : 0.0, scale = data->scale ? data->scale[j] : 1.0;
        if (is_sparse(data))
            sparse_functions(data).scatter(data, j, column);
        for (size_t i = 0; i < n && (data->mean || data->scale); i++)
            column[i] = (column[i] - mean) / scale;
        for (size_t i = 0; i < n && row_scale; i++)
            column[i] *= row_scale[i];
    }
}

/* ---- Products ---------------------------------------------------------------------------------------------------- */

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
            go_multiply(blas, q, d, count, T + (size_t)first * q, converted, d, 1, first > 0, C);
        else
            go_multiply(blas, q, count, n, T, converted, n, 0, 0, C + (size_t)first * q);
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
        go_multiply(blas, q, d, n, theta, data->X, (int)data->stride, data->by_rows, 0, C);
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

/* ---- Products with some columns ---------------------------------------------------------------------------------- */

/* Z (n, q) = A B for sparse columns A = diag(row_scale) (x_j - mean_j) / scale_j, without making them. work: 2 q */
void go_predict_sparse(const go_data *data, int rows, const int *column, const double *row_scale, const double *B,
                       double *work, double *Z)
{
    int n = data->n, q = data->q;
    double *b = work, *centers = work + q;
    sparse_table x = sparse_functions(data);
    memset(Z, 0, (size_t)n * q * sizeof *Z);
    memset(centers, 0, (size_t)q * sizeof *centers);
    for (int r = 0; r < rows; r++) {
        int j = column[r], any = 0;
        for (int k = 0; k < q; k++) {
            b[k] = B[(size_t)r * q + k] / (data->scale ? data->scale[j] : 1.0);
            centers[k] += data->mean ? data->mean[j] * b[k] : 0.0;
            any |= b[k] != 0.0;
        }
        if (any)
            x.add(data, j, b, Z);
    }
    for (int i = 0; i < n && (data->mean || row_scale); i++)
        for (int k = 0; k < q; k++)
            Z[(size_t)i * q + k] = (Z[(size_t)i * q + k] - centers[k]) * (row_scale ? row_scale[i] : 1.0);
}

/* C (rows, q) = A^T theta for the same columns. work: q, scaled: n q where there is a row scale */
void go_correlate_sparse(const go_data *data, int rows, const int *column, const double *row_scale,
                         const double *theta, double *work, double *scaled, double *C)
{
    int n = data->n, q = data->q;
    double *sums = work;
    sparse_table x = sparse_functions(data);
    for (size_t i = 0; i < (size_t)n * q && row_scale; i++)
        scaled[i] = row_scale[i / q] * theta[i];
    theta = row_scale ? scaled : theta;
    memset(sums, 0, (size_t)q * sizeof *sums);
    for (int i = 0; i < n && data->mean; i++)
        for (int k = 0; k < q; k++)
            sums[k] += theta[(size_t)i * q + k];
    for (int r = 0; r < rows; r++) {
        int j = column[r];
        double *c = C + (size_t)r * q;
        x.product(data, j, theta, c);
        for (int k = 0; k < q; k++)
            c[k] = (c[k] - (data->mean ? data->mean[j] * sums[k] : 0.0)) / (data->scale ? data->scale[j] : 1.0);
    }
}
