/* What step.c takes from softmax.c. */

/* Candidates that are drawn from many: how many each stands for, and each query's own, which stand for themselves alone:
 * its source and its answers, for query j the `counts[j]` from `starts[j]` on, none of them twice. */
struct drawn {
    const float *stands_for;
    const long *sources, *starts, *answers;
    const float *counts;
};

int hands(long threads);
long softmax_room(long threads, long d, long n);
long powers_room(long total, long n);
int softmax(long threads, const float *candidates, long total, long d, const struct drawn *drawn, const float *queries,
            long n, const float *counts, float *powers, float *totals, float *by_query, float *by_candidate, int add,
            float *scratch);
