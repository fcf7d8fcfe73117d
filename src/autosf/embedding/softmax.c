/* The multi-class loss's softmax for one block of queries against all candidates, with its gradients, on x86-64.
 *
 * `forward` makes the scores of a tile of candidates, raises them and uses them for the queries' gradient while they
 * are in the first cache; `backward` uses the kept powers for the candidates' gradient, once their sums are known. Both
 * are one product of small matrices held in registers, ROWS x PANEL, in three arrangements. `step.c` calls them;
 * docs/notes/014 tells why, and what it gains. The candidates are the entities, or the relations where these are asked
 * for.
 *
 * Matrices lie row by row. Inside, the n queries are padded with zeros to whole panels:
 *     powers [panels][total][PANEL]    packed queries [panels][d][PANEL]    sums and gradients of each thread likewise
 *     weighted queries: for every PANEL columns of d, or what is left of them, [panels * PANEL][columns]
 * d is a multiple of WIDTH. Every thread has a range of candidates of its own, so that sums are the same in every run.
 */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "softmax.h"

#if defined(__AVX512F__)
enum { WIDTH = 16, VECTORS = 4 };
typedef __m512 vec;
#define OP(name) _mm512_##name
#define BITS _mm512_castps_si512
#define FLOATS _mm512_castsi512_ps
#define BY_VECTORS(n, CALL) switch (n) { CASE(4, CALL) CASE(3, CALL) CASE(2, CALL) CASE(1, CALL) }
#else
enum { WIDTH = 8, VECTORS = 2 };
typedef __m256 vec;
#define OP(name) _mm256_##name
#define BITS _mm256_castps_si256
#define FLOATS _mm256_castsi256_ps
#define BY_VECTORS(n, CALL) switch (n) { CASE(2, CALL) CASE(1, CALL) }
#endif

/* ROWS * VECTORS sums, VECTORS loads and a broadcast fill the registers; a tile's powers fit the first cache */
enum { ROWS = 6, PANEL = WIDTH * VECTORS, TILE = 96, LINE = 16, STREAMED = 1 << 20 /* powers that leave the caches */ };

static const float MOSTLY_OWN = 1e-4f; /* a smaller share of a sum has too few digits left */

#define INLINE static inline __attribute__((always_inline))
#define ALONE static __attribute__((noinline)) /* or the compiler keeps others' constants in the registers */
#define all OP(set1_ps)

/* The case n of a number that must be known when compiled, for what is left over at the edges. */
#define CASE(i, CALL) case i: CALL(i); break;
#define BY_ROWS(n, CALL) switch (n) { CASE(5, CALL) CASE(4, CALL) CASE(3, CALL) CASE(2, CALL) CASE(1, CALL) }

static long least(long a, long b) { return a < b ? a : b; }

/* 2^x within a float's last bits for -126 <= x <= 127.4, and the nearer end's beyond; not-a-number stays.
 * x = whole + f, |f| <= 1/2: adding 1.5 * 2^23 leaves the whole in the last bits, to be moved to the exponent;
 * the polynomial is the best of its degree with p(0) = 1. */
INLINE vec power(vec x) {
    const vec magic = all(12582912.f);
    x = OP(max_ps)(all(-126.f), OP(min_ps)(all(127.4f), x));
    vec shifted = OP(add_ps)(x, magic);
    vec f = OP(sub_ps)(x, OP(sub_ps)(shifted, magic));
    vec p = all(1.535336344e-4f);
    p = OP(fmadd_ps)(p, f, all(1.339887444e-3f));
    p = OP(fmadd_ps)(p, f, all(9.618437351e-3f));
    p = OP(fmadd_ps)(p, f, all(5.550332471e-2f));
    p = OP(fmadd_ps)(p, f, all(2.402264791e-1f));
    p = OP(fmadd_ps)(p, f, all(6.931472029e-1f));
    p = OP(fmadd_ps)(p, f, all(1.0f));
    return FLOATS(OP(add_epi32)(BITS(p), OP(slli_epi32)(BITS(shifted), 23)));
}

/* Sums in registers: what `c` holds, or nothing. */
INLINE void begin(int rows, int vectors, const float *c, long row, int add, vec sum[ROWS][VECTORS]) {
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++)
            sum[i][v] = add ? OP(loadu_ps)(c + i * row + v * WIDTH) : OP(setzero_ps)();
}

/* sum[i] += a[i] b, a [rows][depth] with the given strides and b [depth][vectors * WIDTH]. */
INLINE void multiply(int rows, int vectors, const float *a, long a_row, long a_step, const float *b, long b_step,
                     long depth, vec sum[ROWS][VECTORS]) {
    for (long k = 0; k < depth; k++, a += a_step, b += b_step) {
        vec right[VECTORS];
        for (int v = 0; v < vectors; v++) right[v] = OP(loadu_ps)(b + v * WIDTH);
        for (int i = 0; i < rows; i++) {
            vec left = all(a[i * a_row]);
            for (int v = 0; v < vectors; v++) sum[i][v] = OP(fmadd_ps)(left, right[v], sum[i][v]);
        }
    }
}

INLINE void end(int rows, int vectors, float *c, long row, vec sum[ROWS][VECTORS]) {
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) OP(storeu_ps)(c + i * row + v * WIDTH, sum[i][v]);
}

/* Scores of some candidates and a panel of queries: out [count][PANEL] = e q. */
INLINE void some_scores(int rows, const float *e, long d, const float *q, float *out) {
    vec sum[ROWS][VECTORS];
    begin(rows, VECTORS, out, PANEL, 0, sum);
    multiply(rows, VECTORS, e, d, 1, q, PANEL, d, sum);
    end(rows, VECTORS, out, PANEL, sum);
}

ALONE void scores(const float *e, long count, long d, const float *q, float *out) {
    long i = 0;
    for (; i + ROWS <= count; i += ROWS) some_scores(ROWS, e + i * d, d, q, out + i * PANEL);
#define CALL(n) some_scores(n, e + i * d, d, q, out + i * PANEL)
    BY_ROWS(count - i, CALL)
#undef CALL
}

/* Raises a tile in place, each row times what it stands for, and adds it up; keeps a copy, past the caches if there
 * are too many to stay there. */
ALONE void raise(float *tile, long count, const float *stands_for, float *kept, int stream, float *sums) {
    vec sum[VECTORS];
    for (int v = 0; v < VECTORS; v++) sum[v] = OP(setzero_ps)();
    for (long i = 0; i < count; i++)
        for (int v = 0; v < VECTORS; v++) {
            long at = i * PANEL + v * WIDTH;
            vec raised = power(OP(loadu_ps)(tile + at));
            if (stands_for) raised = OP(mul_ps)(raised, all(stands_for[i]));
            OP(storeu_ps)(tile + at, raised);
            if (stream) OP(stream_ps)(kept + at, raised);
            else OP(storeu_ps)(kept + at, raised);
            sum[v] = OP(add_ps)(sum[v], raised);
        }
    for (int v = 0; v < VECTORS; v++) {
        float *to = sums + v * WIDTH;
        OP(storeu_ps)(to, OP(add_ps)(OP(loadu_ps)(to), sum[v]));
    }
}

/* The tile's part of the queries' gradient: out [d][PANEL] += e^T p, e packed by ROWS columns. */
INLINE void some_gathered(int rows, const float *e, long count, const float *p, float *out) {
    vec sum[ROWS][VECTORS];
    begin(rows, VECTORS, out, PANEL, 1, sum);
    multiply(rows, VECTORS, e, 1, rows, p, PANEL, count, sum);
    end(rows, VECTORS, out, PANEL, sum);
}

ALONE void gather(const float *packed, long count, long d, const float *p, float *out) {
    long k = 0;
    for (; k + ROWS <= d; k += ROWS) some_gathered(ROWS, packed + k * count, count, p, out + k * PANEL);
#define CALL(n) some_gathered(n, packed + k * count, count, p, out + k * PANEL)
    BY_ROWS(d - k, CALL)
#undef CALL
}

/* A tile of candidates by ROWS columns, so that `gather` reads without holes. */
static void pack(const float *e, long count, long d, float *out) {
    for (long i = 0; i < count; i++)
        for (long k = 0; k < d; k += ROWS) {
            long columns = least(ROWS, d - k);
            for (long j = 0; j < columns; j++) out[k * count + i * columns + j] = e[i * d + k + j];
        }
}

/* Rows of the candidates' gradient: out [rows][vectors * WIDTH], rows d apart, = p w over all panels. */
INLINE void some_spread(int rows, int vectors, const float *p, long total, const float *w, long panels, float *out,
                        long d, int add) {
    vec sum[ROWS][VECTORS];
    begin(rows, vectors, out, d, add, sum);
    for (long panel = 0; panel < panels; panel++)
        multiply(rows, vectors, p + panel * total * PANEL, PANEL, 1, w + panel * PANEL * vectors * WIDTH,
                 vectors * WIDTH, PANEL, sum);
    end(rows, vectors, out, d, sum);
}

/* A panel of queries, column by column, to be raised as powers of two. */
static void pack_queries(const float *queries, long n, long d, float *out) {
    const float log2_e = 1.44269504088896341f;
    n = least(n, PANEL);
    if (n < PANEL) memset(out, 0, d * PANEL * sizeof(float));
    for (long from = 0; from < d; from += LINE)
        for (long j = 0; j < n; j++)
            for (long k = from; k < from + least(LINE, d - from); k++) out[k * PANEL + j] = queries[j * d + k] * log2_e;
}

/* PANEL rows of some columns of the queries, each row times its weight. */
static void pack_weighted(const float *queries, const float *weights, long n, long d, long columns, float *out) {
    n = least(n, PANEL);
    if (n < PANEL) memset(out, 0, columns * PANEL * sizeof(float));
    for (long j = 0; j < n; j++)
        for (long k = 0; k < columns; k++) out[j * columns + k] = queries[j * d + k] * weights[j];
}

/* What the threads have of a panel's sums, added up. */
static void add_sums(const float *each, long apart, long threads, long n, float *sums) {
    for (long j = 0; j < n; j++) {
        sums[j] = 0.f;
        for (long thread = 0; thread < threads; thread++) sums[j] += each[thread * apart + j];
    }
}

/* And of its gradient, query by query, each times its weight: out [n][d]. */
static void add_gradients(const float *each, long apart, long threads, const float *weights, long n, long d, float *out) {
    for (long from = 0; from < d; from += LINE)
        for (long j = 0; j < n; j++)
            for (long k = from; k < from + least(LINE, d - from); k++) {
                float sum = 0.f;
                for (long thread = 0; thread < threads; thread++) sum += each[thread * apart + k * PANEL + j];
                out[j * d + k] = weights[j] * sum;
            }
}

/* Where the range of a thread begins: at a whole tile. */
static long bound(long total, long thread, long threads) {
    return thread == threads ? total : total * thread / threads / TILE * TILE;
}

static long panels_of(long n) { return (n + PANEL - 1) / PANEL; }

/* A thread's tiles; its sums and its part of the gradient come out. */
static void forward_range(const float *candidates, const float *stands_for, long first, long last, long total, long d,
                          const float *queries, long panels, float *powers, int stream, float *sums, float *by_query,
                          float *packed) {
    float tile[TILE * PANEL] __attribute__((aligned(64)));
    memset(sums, 0, panels * PANEL * sizeof(float));
    memset(by_query, 0, panels * d * PANEL * sizeof(float));
    for (long start = first; start < last; start += TILE) {
        long count = least(TILE, last - start);
        const float *e = candidates + start * d;
        pack(e, count, d, packed);
        for (long panel = 0; panel < panels; panel++) {
            scores(e, count, d, queries + panel * d * PANEL, tile);
            raise(tile, count, stands_for ? stands_for + start : NULL, powers + (panel * total + start) * PANEL, stream,
                  sums + panel * PANEL);
            gather(packed, count, d, tile, by_query + panel * d * PANEL);
        }
    }
}

/* Number k of the candidates that are query j's own: its answers, then its source; -1 after the last. */
static long own(const struct drawn *drawn, long j, long k) {
    const long *answers = drawn->answers + drawn->starts[j];
    long count = drawn->counts[j];
    if (k < count) return answers[k];
    if (k > count) return -1;
    for (long i = 0; i < count; i++)
        if (answers[i] == drawn->sources[j]) return -1;
    return drawn->sources[j];
}

/* A query's own stand for themselves alone: what their powers are too large by comes off them and off the sum, which is
 * returned. A sum that is mostly its own loses digits so: with one that stands for 5,000 it is right to a few parts in ten
 * thousand. Where more would be lost it is 0, which has torch do the step. */
static float alone(const struct drawn *drawn, long j, float *powers, float sum) {
    float less = 0.f;
    for (long k = 0, a; (a = own(drawn, j, k)) >= 0; k++) {
        powers[a * PANEL] /= drawn->stands_for[a];
        less += powers[a * PANEL] * (drawn->stands_for[a] - 1.f);
    }
    return sum - less > MOSTLY_OWN * sum ? sum - less : 0.f;
}

/* And off its gradient [d], of which the query has `weight`. */
static void alone_gradient(const struct drawn *drawn, long j, const float *powers, const float *candidates, long d,
                           float weight, float *restrict gradient) {
    for (long k = 0, a; (a = own(drawn, j, k)) >= 0; k++) {
        float by = weight * powers[a * PANEL] * (drawn->stands_for[a] - 1.f);
        for (long i = 0; i < d; i++) gradient[i] -= by * candidates[a * d + i];
    }
}

/* Of P = exp(candidates queries^T): column sums [n], weights = counts / sums, and P^T candidates [n][d], each row times
 * its weight; P is kept in `powers`, past the caches if there are too many to stay there. */
static void forward(long threads, const float *candidates, long total, long d, const struct drawn *drawn,
                    const float *queries, long n, const float *counts, float *powers, float *sums, float *weights,
                    float *by_query, float *scratch) {
    long panels = panels_of(n), width = panels * PANEL;
    int stream = n * total > STREAMED;
    float *asked = scratch, *all_sums = asked + width * d, *all_parts = all_sums + threads * width;
    float *packed = all_parts + threads * width * d;
#pragma omp parallel num_threads(hands(threads))
    {
#pragma omp for
        for (long p = 0; p < panels; p++)
            pack_queries(queries + p * PANEL * d, n - p * PANEL, d, asked + p * PANEL * d);
#pragma omp for schedule(static, 1)
        for (long i = 0; i < threads; i++)
            forward_range(candidates, drawn ? drawn->stands_for : NULL, bound(total, i, threads),
                          bound(total, i + 1, threads), total, d, asked, panels, powers, stream, all_sums + i * width,
                          all_parts + i * width * d, packed + i * TILE * d);
#pragma omp for
        for (long p = 0; p < panels; p++) {
            long first = p * PANEL, some = least(PANEL, n - first);
            float *of_panel = powers + p * total * PANEL - first;
            add_sums(all_sums + first, width, threads, some, sums + first);
            if (drawn)
                for (long j = first; j < first + some; j++) sums[j] = alone(drawn, j, of_panel + j, sums[j]);
            for (long j = first; j < first + some; j++) weights[j] = counts[j] / sums[j];
            add_gradients(all_parts + first * d, width * d, threads, weights + first, some, d, by_query + first * d);
            if (drawn)
                for (long j = first; j < first + some; j++)
                    alone_gradient(drawn, j, of_panel + j, candidates, d, weights[j], by_query + j * d);
        }
    }
}

/* A thread's rows of the candidates' gradient. */
static void backward_range(const float *powers, long first, long last, long total, long d, const float *weighted,
                           long panels, float *by_candidate, int add) {
    for (long i = first; i < last; i += ROWS) {
        long rows = least(ROWS, last - i);
        const float *p = powers + i * PANEL;
        if (i + 2 * ROWS <= last) /* the next rows, a panel each from another page */
            for (long panel = 0; panel < panels; panel++)
                for (long at = 0; at < ROWS * PANEL; at += LINE)
                    _mm_prefetch(p + panel * total * PANEL + ROWS * PANEL + at, _MM_HINT_T1);
        for (long k = 0; k < d; k += PANEL) {
            long vectors = least(PANEL, d - k) / WIDTH;
            const float *w = weighted + k * panels * PANEL;
            float *out = by_candidate + i * d + k;
            if (rows == ROWS) {
#define CALL(n) some_spread(ROWS, n, p, total, w, panels, out, d, add)
                BY_VECTORS(vectors, CALL)
#undef CALL
            } else
                for (long row = 0; row < rows; row++) {
#define CALL(n) some_spread(1, n, p + row * PANEL, total, w, panels, out + row * d, d, add)
                    BY_VECTORS(vectors, CALL)
#undef CALL
                }
        }
    }
}

/* by_candidate [total][d] = P (weights * queries), with the powers that `forward` kept; added to what is there if so. */
static void backward(long threads, const float *powers, long total, long d, const float *queries, long n,
                     const float *weights, float *by_candidate, int add, float *scratch) {
    long panels = panels_of(n);
#pragma omp parallel num_threads(hands(threads))
    {
#pragma omp for
        for (long p = 0; p < panels; p++)
            for (long k = 0; k < d; k += PANEL) {
                long columns = least(PANEL, d - k), first = p * PANEL;
                pack_weighted(queries + first * d + k, weights + first, n - first, d, columns,
                              scratch + k * panels * PANEL + first * columns);
            }
#pragma omp for schedule(static, 1)
        for (long i = 0; i < threads; i++)
            backward_range(powers, bound(total, i, threads), bound(total, i + 1, threads), total, d, scratch, panels,
                           by_candidate, add);
    }
}

/* How many of the threads there are to work, each on a range or on several: what comes out does not depend on it. */
static long most_hands = 1 << 20;
void limit_hands(long most) { most_hands = most; }
int hands(long threads) { return least(threads, most_hands); }

/* Numbers that `softmax` needs for itself, and for the powers. */
long softmax_room(long threads, long d, long n) {
    return n + panels_of(n) * PANEL * (d + threads * (d + 1)) + threads * TILE * d;
}
long powers_room(long total, long n) { return panels_of(n) * PANEL * total; }

/* Log-sum-exp of each query's scores as `totals` [n], and the gradients of their sum, each times its count, towards the
 * queries and the candidates. Returns 0, with the candidates' gradient as it was, where a sum of powers is near the end
 * of floats or no number. */
int softmax(long threads, const float *candidates, long total, long d, const struct drawn *drawn, const float *queries,
            long n, const float *counts, float *powers, float *totals, float *by_query, float *by_candidate, int add,
            float *scratch) {
    float *weights = scratch;
    scratch += n;
    forward(threads, candidates, total, d, drawn, queries, n, counts, powers, totals, weights, by_query, scratch);
    for (long j = 0; j < n; j++)
        if (!(totals[j] > 1e-30f && totals[j] < 1e36f)) return 0;
    for (long j = 0; j < n; j++) totals[j] = logf(totals[j]);
    backward(threads, powers, total, d, queries, n, weights, by_candidate, add, scratch);
    return 1;
}

int panel_size(void) { return PANEL; }
int vector_size(void) { return WIDTH; }
