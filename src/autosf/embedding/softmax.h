/* What step.c takes from softmax.c. */
long softmax_room(long threads, long d, long n);
long powers_room(long total, long n);
int softmax(long threads, const float *candidates, long total, long d, const float *queries, long n, const float *counts,
            float *powers, float *totals, float *by_query, float *by_candidate, int add, float *scratch);
