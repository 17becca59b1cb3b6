/* A solver that returns nonsense: linked in place of native/solve.c by test_lean.py. */
#include "groupowl.h"

#include <math.h>

GO_EXPORT int nonsense_kind = 0;

const char *go_stamp(void)
{
    return GO_STAMP;
}

const char *go_compiler(void)
{
    return "for a test";
}

size_t go_workspace(const go_data *data, const go_task *task)
{
    (void)data;
    (void)task;
    return 64;
}

/* 0: nothing, 1: the wrong rows, 2: overflowing squares, 3: no numbers, 4: rows of nothing but noise */
ptrdiff_t go_solve(const go_data *data, const go_task *task, const go_blas *blas, void *work, size_t size)
{
    (void)blas;
    (void)work;
    (void)size;
    int rows = nonsense_kind == 0 ? 0 : data->d < task->room ? data->d : task->room;
    for (int r = 0; r < rows; r++) {
        task->row[r] = rows - 1 - r;
        for (int k = 0; k < data->q; k++) {
            double noise = sin(1.0 + r * data->q + k);
            task->B[r * data->q + k] = nonsense_kind == 2 ? 1e200 : nonsense_kind == 3 ? NAN : noise;
        }
    }
    task->first[1] = nonsense_kind == 1 ? rows / 3 : rows;
    *task->gap = 0.0;
    *task->passes = 1.0;
    *task->steps = 7;
    *task->status = GO_CONVERGED;
    *task->peak = rows;
    return 1;
}
