/* The multi-class loss's two passes over its scores, for one block of queries against all entities, on x86-64.
 *
 * `forward` makes the scores of a tile of entities, raises them and uses them for the queries' gradient while they are
 * in the first cache; `backward` uses the kept powers for the entities' gradient, once their sums are known. Both are
 * one product of small matrices held in registers, ROWS x PANEL, in three arrangements. `compiled.py` calls them;
 * docs/notes/014 tells why, and what it gains.
 *
 * Matrices lie row by row; queries [n][d] may lie in any order, with the strides `row` and `column`. Inside, n is
 * padded with zeros to whole panels:
 *     powers [panels][total][PANEL]    packed queries [panels][d][PANEL]    sums and gradients of each thread likewise
 *     weighted queries: for every PANEL columns of d, or what is left of them, [panels * PANEL][columns]
 * d is a multiple of WIDTH. Every thread has a range of entities of its own, so that sums are the same in every run.
 */
#include <immintrin.h>
#include <string.h>

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
enum { ROWS = 6, PANEL = WIDTH * VECTORS, TILE = 96, LINE = 16 };

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

/* Scores of some entities and a panel of queries: out [count][PANEL] = e q. */
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

/* Raises a tile in place and adds it up; keeps a copy, past the caches if there are too many to stay there. */
ALONE void raise(float *tile, long count, float *kept, int stream, float *sums) {
    vec sum[VECTORS];
    for (int v = 0; v < VECTORS; v++) sum[v] = OP(setzero_ps)();
    for (long i = 0; i < count; i++)
        for (int v = 0; v < VECTORS; v++) {
            long at = i * PANEL + v * WIDTH;
            vec raised = power(OP(loadu_ps)(tile + at));
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

/* A tile of entities by ROWS columns, so that `gather` reads without holes. */
static void pack(const float *e, long count, long d, float *out) {
    for (long i = 0; i < count; i++)
        for (long k = 0; k < d; k += ROWS) {
            long columns = least(ROWS, d - k);
            for (long j = 0; j < columns; j++) out[k * count + i * columns + j] = e[i * d + k + j];
        }
}

/* Rows of the entities' gradient: out [rows][vectors * WIDTH], rows d apart, = p w over all panels. */
INLINE void some_spread(int rows, int vectors, const float *p, long total, const float *w, long panels, float *out,
                        long d, int add) {
    vec sum[ROWS][VECTORS];
    begin(rows, vectors, out, d, add, sum);
    for (long panel = 0; panel < panels; panel++)
        multiply(rows, vectors, p + panel * total * PANEL, PANEL, 1, w + panel * PANEL * vectors * WIDTH,
                 vectors * WIDTH, PANEL, sum);
    end(rows, vectors, out, d, sum);
}

/* A panel of queries, query by query where that is how they lie, to be raised as powers of two. */
static void pack_queries(const float *queries, long row, long column, long n, long d, float *out) {
    const float log2_e = 1.44269504088896341f;
    n = least(n, PANEL);
    if (n < PANEL) memset(out, 0, d * PANEL * sizeof(float));
    if (column < row)
        for (long j = 0; j < n; j++)
            for (long k = 0; k < d; k++) out[k * PANEL + j] = queries[j * row + k * column] * log2_e;
    else
        for (long k = 0; k < d; k++)
            for (long j = 0; j < n; j++) out[k * PANEL + j] = queries[j * row + k * column] * log2_e;
}

/* PANEL rows of some columns of the queries, likewise, each row times its weight. */
static void pack_weighted(const float *queries, long row, long column, const float *weights, long n, long columns,
                          float *out) {
    n = least(n, PANEL);
    if (n < PANEL) memset(out, 0, columns * PANEL * sizeof(float));
    if (column < row)
        for (long j = 0; j < n; j++)
            for (long k = 0; k < columns; k++) out[j * columns + k] = queries[j * row + k * column] * weights[j];
    else
        for (long k = 0; k < columns; k++)
            for (long j = 0; j < n; j++) out[j * columns + k] = queries[j * row + k * column] * weights[j];
}

/* What the threads have of a panel, added up: [rows][n] of it, rows `width` apart. */
static void add_up(const float *each, long apart, long threads, long rows, long n, float *out, long width) {
    for (long k = 0; k < rows; k++)
        for (long j = 0; j < n; j++) {
            float sum = 0.f;
            for (long thread = 0; thread < threads; thread++) sum += each[thread * apart + k * PANEL + j];
            out[k * width + j] = sum;
        }
}

/* Where the range of a thread begins: at a whole tile. */
static long bound(long total, long thread, long threads) {
    return thread == threads ? total : total * thread / threads / TILE * TILE;
}

static long panels_of(long n) { return (n + PANEL - 1) / PANEL; }

/* A thread's tiles; its sums and its part of the gradient come out. */
static void forward_range(const float *entities, long first, long last, long total, long d, const float *queries,
                          long panels, float *powers, int stream, float *sums, float *by_query, float *packed) {
    float tile[TILE * PANEL] __attribute__((aligned(64)));
    memset(sums, 0, panels * PANEL * sizeof(float));
    memset(by_query, 0, panels * d * PANEL * sizeof(float));
    for (long start = first; start < last; start += TILE) {
        long count = least(TILE, last - start);
        const float *e = entities + start * d;
        pack(e, count, d, packed);
        for (long panel = 0; panel < panels; panel++) {
            scores(e, count, d, queries + panel * d * PANEL, tile);
            raise(tile, count, powers + (panel * total + start) * PANEL, stream, sums + panel * PANEL);
            gather(packed, count, d, tile, by_query + panel * d * PANEL);
        }
    }
}

/* Numbers that `forward` and `backward` need for themselves. */
long scratch_size(long threads, long d, long n) {
    return panels_of(n) * PANEL * (d + threads * (d + 1)) + threads * TILE * d;
}

/* Of P = exp(queries entities^T): row sums [n] and E^T P as by_query [d][n]; P is kept in `powers`, past the caches
 * if it has to `stream`. */
void forward(long threads, const float *entities, long total, long d, const float *queries, long row, long column,
             long n, float *powers, int stream, float *sums, float *by_query, float *scratch) {
    long panels = panels_of(n), width = panels * PANEL;
    float *asked = scratch, *all_sums = asked + width * d, *all_parts = all_sums + threads * width;
    float *packed = all_parts + threads * width * d;
#pragma omp parallel num_threads(threads)
    {
#pragma omp for
        for (long p = 0; p < panels; p++)
            pack_queries(queries + p * PANEL * row, row, column, n - p * PANEL, d, asked + p * PANEL * d);
#pragma omp for schedule(static, 1)
        for (long i = 0; i < threads; i++)
            forward_range(entities, bound(total, i, threads), bound(total, i + 1, threads), total, d, asked, panels,
                          powers, stream, all_sums + i * width, all_parts + i * width * d, packed + i * TILE * d);
#pragma omp for
        for (long p = 0; p < panels; p++) {
            long columns = least(PANEL, n - p * PANEL);
            add_up(all_sums + p * PANEL, width, threads, 1, columns, sums + p * PANEL, n);
            add_up(all_parts + p * PANEL * d, width * d, threads, d, columns, by_query + p * PANEL, n);
        }
    }
}

/* A thread's rows of the entities' gradient. */
static void backward_range(const float *powers, long first, long last, long total, long d, const float *weighted,
                           long panels, float *by_entity, int add) {
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
            float *out = by_entity + i * d + k;
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

/* by_entity [total][d] = P (weights * queries), with the powers that `forward` kept; added to what is there if so. */
void backward(long threads, const float *powers, long total, long d, const float *queries, long row, long column,
              long n, const float *weights, float *by_entity, int add, float *scratch) {
    long panels = panels_of(n);
#pragma omp parallel num_threads(threads)
    {
#pragma omp for
        for (long p = 0; p < panels; p++)
            for (long k = 0; k < d; k += PANEL) {
                long columns = least(PANEL, d - k);
                pack_weighted(queries + p * PANEL * row + k * column, row, column, weights + p * PANEL, n - p * PANEL,
                              columns, scratch + k * panels * PANEL + p * PANEL * columns);
            }
#pragma omp for schedule(static, 1)
        for (long i = 0; i < threads; i++)
            backward_range(powers, bound(total, i, threads), bound(total, i + 1, threads), total, d, scratch, panels,
                           by_entity, add);
    }
}

int panel_size(void) { return PANEL; }
int vector_size(void) { return WIDTH; }
