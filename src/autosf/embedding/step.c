/* One step of Alg. 1 with the multi-class loss, all but the optimiser: queries out, gradients back.
 *
 * The same as `multiclass_gradients` of steps.py, which is its oracle and does the step again where this one returns 0.
 * There a step is some hundred calls, and rows are turned to columns and back; on a graph of some thousand entities that
 * is half of the time. Here each row is asked and answered back while it is in cache, and rows of the same entity are
 * added up by the thread whose range it is in, in the batch's order: sums are the same in every run.
 */
#include <math.h>
#include <string.h>

#include "softmax.h"

enum { HEAD, RELATION, TAIL, SIGN, TERM };
enum { LINE = 16, AHEAD = 4 }; /* floats in a line of the cache; rows that are fetched ahead */

static long larger(long a, long b) { return a > b ? a : b; }
static long smaller(long a, long b) { return a < b ? a : b; }

/* compiled_steps.py has the same fields in the same order. Matrices lie row by row. */
struct step {
    /* the model: entities [total][d], relations [links][d]; how many entities each stands for, or NULL where these are
     * all there are; each term of the structure as its three parts and its sign */
    const float *entities, *relations, *stands_for;
    const int *terms;
    long total, links, d, parts, term_count;
    /* the batch: n queries, the first of them for tails, each with `counts` answers from `starts` on; `kept` is NULL or
     * what dropout multiplies the queries by */
    const long *sources, *asked_relations, *rows, *starts, *answers;
    const float *counts, *kept;
    long n, tail_queries, answer_count;
    /* the penalties: what role's parts are one vector, as the first part of each, or NULL for squares */
    const int *groups;
    double entity_weight, relation_weight, query_weight, relation_prediction;
    /* gradients, and memory to work in: at most `block` queries' powers at a time */
    float *by_entity, *by_relation, *powers, *scratch;
    long block, threads;
    double loss;
};

/* The trilinear form with one role left out, of one row. */
static void contract(const struct step *s, int absent, int one, const float *left, int other, const float *right,
                     float *restrict out) {
    long width = s->d / s->parts;
    memset(out, 0, s->d * sizeof(float));
    for (const int *term = s->terms; term < s->terms + TERM * s->term_count; term += TERM) {
        const float *a = left + term[one] * width, *b = right + term[other] * width;
        float *c = out + term[absent] * width, sign = term[SIGN];
        for (long k = 0; k < width; k++) c[k] += sign * a[k] * b[k];
    }
}

static float dot(const float *a, const float *b, long d) {
    float sum = 0.f;
#pragma omp simd reduction(+ : sum)
    for (long k = 0; k < d; k++) sum += a[k] * b[k];
    return sum;
}

static void add(float by, const float *row, long d, float *restrict to) {
    for (long k = 0; k < d; k++) to[k] += by * row[k];
}

/* The sum of |x|^3 over a part, times the weight; its gradient is added. */
static float cubes_of_part(const float *part, long width, float weight, float *restrict gradient) {
    float sum = 0.f;
#pragma omp simd reduction(+ : sum)
    for (long k = 0; k < width; k++) {
        float bent = fabsf(part[k]) * part[k];
        gradient[k] += 3 * weight * bent;
        sum += bent * part[k];
    }
    return weight * sum;
}

/* The same of the lengths of vectors: of those parts of a row whose `first` one is the leader, entry by entry. */
static float cubes_of_vectors(const float *row, const int *first, int leader, int parts, long width, float weight,
                              float *restrict gradient) {
    float sum = 0.f, length[width];
    memset(length, 0, sizeof length);
    for (int part = leader; part < parts; part++)
        if (first[part] == leader)
            for (long k = 0; k < width; k++) length[k] += row[part * width + k] * row[part * width + k];
#pragma omp simd reduction(+ : sum)
    for (long k = 0; k < width; k++) {
        float square = length[k];
        length[k] = sqrtf(square);
        sum += square * length[k];
    }
    for (int part = leader; part < parts; part++)
        if (first[part] == leader)
            for (long k = 0; k < width; k++)
                gradient[part * width + k] += 3 * weight * length[k] * row[part * width + k];
    return weight * sum;
}

/* The penalty of a row, its gradient added: squares, or cubes of the vectors that `first` makes of its parts. */
static float penalised(const struct step *s, const float *row, const int *first, float weight, float *gradient) {
    long width = s->d / s->parts;
    float sum = 0.f;
    if (weight == 0.f) return 0.f;
    if (!first) {
        add(2 * weight, row, s->d, gradient);
        return weight * dot(row, row, s->d);
    }
    for (int leader = 0; leader < s->parts; leader++) {
        int members = 0;
        for (int part = leader; part < s->parts; part++) members += first[part] == leader;
        if (members == 1) sum += cubes_of_part(row + leader * width, width, weight, gradient + leader * width);
        if (members > 1) sum += cubes_of_vectors(row, first, leader, s->parts, width, weight, gradient);
    }
    return sum;
}

/* Adds row which[i] of `rows`, or row i, to row ids[i] of `to`, in that order. */
static void scatter(long threads, const long *ids, const long *which, long count, float by, const float *rows, long total,
                    long d, float *to) {
#pragma omp parallel for schedule(static, 1) num_threads(hands(threads))
    for (long thread = 0; thread < threads; thread++) {
        long first = total * thread / threads, last = total * (thread + 1) / threads;
        for (long i = 0; i < count; i++)
            if (first <= ids[i] && ids[i] < last) add(by, rows + (which ? which[i] : i) * d, d, to + ids[i] * d);
    }
}

/* Memory of a step: of each query or triple two ids, matrices [rows][d], and single numbers. */
struct rows {
    long *heads, *links;
    float *asked, *by_query, *by_source, *by_other, *counts, *totals, *losses, *rest;
};

enum { IDS = 2, MATRICES = 4, NUMBERS = 3 };

static struct rows rows_in(float *scratch, long rows, long d) {
    long *ids = (long *)scratch;
    float *matrices = (float *)(ids + IDS * rows), *numbers = matrices + MATRICES * rows * d;
    struct rows at;
    at.heads = ids;
    at.links = ids + rows;
    at.asked = matrices;
    at.by_query = matrices + rows * d;
    at.by_source = matrices + 2 * rows * d;
    at.by_other = matrices + 3 * rows * d;
    at.counts = numbers;
    at.totals = numbers + rows;
    at.losses = numbers + 2 * rows;
    at.rest = numbers + NUMBERS * rows;
    return at;
}

/* Numbers that a step needs for itself, beside the powers. */
long step_room(long threads, long d, long n, long block) {
    long rows = larger(n, block), ids = IDS * sizeof(long) / sizeof(float);
    return rows * (ids + MATRICES * d + NUMBERS) + softmax_room(threads, d, block);
}

static double sum_of(const float *numbers, long n) {
    double sum = 0;
    for (long i = 0; i < n; i++) sum += numbers[i];
    return sum;
}

/* All queries of the batch: their part of the loss, and all gradients. */
static int ask_entities(struct step *s, struct rows at, double share) {
    long d = s->d, n = s->n;
    float *counts = at.counts;
    for (long i = 0; i < n; i++) counts[i] = share * s->counts[i];
#pragma omp parallel for num_threads(hands(s->threads))
    for (long i = 0; i < n; i++) {
        const float *e = s->entities + s->sources[i] * d, *r = s->relations + s->asked_relations[i] * d;
        int role = i < s->tail_queries ? HEAD : TAIL, wanted = HEAD + TAIL - role;
        float *query = at.asked + i * d;
        contract(s, wanted, role, e, RELATION, r, query);
        if (s->kept)
            for (long k = 0; k < d; k++) query[k] *= s->kept[i * d + k];
    }
    for (long from = 0; from < n; from += s->block) {
        long some = smaller(n - from, s->block);
        struct drawn drawn = {s->stands_for, s->sources + from, s->starts + from, s->answers, s->counts + from};
        if (!softmax(s->threads, s->entities, s->total, d, s->stands_for ? &drawn : NULL, at.asked + from * d, some,
                     counts + from, s->powers, at.totals + from, at.by_query + from * d, s->by_entity, from > 0,
                     at.rest))
            return 0;
    }
#pragma omp parallel for num_threads(hands(s->threads))
    for (long i = 0; i < n; i++) {
        int role = i < s->tail_queries ? HEAD : TAIL, wanted = HEAD + TAIL - role;
        const float *e = s->entities + s->sources[i] * d, *r = s->relations + s->asked_relations[i] * d;
        const float *query = at.asked + i * d;
        float *gradient = at.by_query + i * d, *by_source = at.by_source + i * d, *by_relation = at.by_other + i * d;
        float loss = counts[i] * at.totals[i], positive = 0.f;
        for (long k = s->starts[i], last = k + (long)s->counts[i]; k < last; k++) {
            const float *answer = s->entities + s->answers[k] * d;
            positive += dot(query, answer, d);
            add(-share, answer, d, gradient);
        }
        loss += penalised(s, query, NULL, s->query_weight * counts[i], gradient) - share * positive;
        if (s->kept)
            for (long k = 0; k < d; k++) gradient[k] *= s->kept[i * d + k];
        contract(s, role, wanted, gradient, RELATION, r, by_source);
        contract(s, RELATION, role, e, wanted, gradient, by_relation);
        const int *joined = s->groups ? s->groups + role * s->parts : NULL;
        const int *links_joined = s->groups ? s->groups + RELATION * s->parts : NULL;
        loss += penalised(s, e, joined, s->entity_weight * counts[i], by_source);
        loss += penalised(s, r, links_joined, s->relation_weight * counts[i], by_relation);
        at.losses[i] = loss;
    }
    scatter(s->threads, s->answers, s->rows, s->answer_count, -share, at.asked, s->total, d, s->by_entity);
    scatter(s->threads, s->sources, NULL, n, 1.f, at.by_source, s->total, d, s->by_entity);
    scatter(s->threads, s->asked_relations, NULL, n, 1.f, at.by_other, s->links, d, s->by_relation);
    s->loss += sum_of(at.losses, n);
    return 1;
}

/* (h, ?, t) for the triples of the batch's tail queries, `block` at a time. */
static int ask_relations(struct step *s, struct rows at, float weight) {
    long d = s->d, triples = s->tail_queries < s->n ? s->starts[s->tail_queries] : s->answer_count;
    long *heads = at.heads, *links = at.links;
    for (long i = 0; i < s->block; i++) at.counts[i] = weight;
    for (long from = 0; from < triples; from += s->block) {
        long some = smaller(triples - from, s->block);
        const long *tails = s->answers + from;
#pragma omp parallel for num_threads(hands(s->threads))
        for (long i = 0; i < some; i++) {
            heads[i] = s->sources[s->rows[from + i]];
            links[i] = s->asked_relations[s->rows[from + i]];
            contract(s, RELATION, HEAD, s->entities + heads[i] * d, TAIL, s->entities + tails[i] * d, at.asked + i * d);
        }
        if (!softmax(s->threads, s->relations, s->links, d, NULL, at.asked, some, at.counts, s->powers, at.totals,
                     at.by_query, s->by_relation, 1, at.rest))
            return 0;
#pragma omp parallel for num_threads(hands(s->threads))
        for (long i = 0; i < some; i++) {
            const float *h = s->entities + heads[i] * d, *t = s->entities + tails[i] * d;
            const float *r = s->relations + links[i] * d;
            float *gradient = at.by_query + i * d;
            at.losses[i] = weight * (at.totals[i] - dot(at.asked + i * d, r, d));
            add(-weight, r, d, gradient);
            contract(s, HEAD, RELATION, gradient, TAIL, t, at.by_source + i * d);
            contract(s, TAIL, RELATION, gradient, HEAD, h, at.by_other + i * d);
        }
        scatter(s->threads, links, NULL, some, -weight, at.asked, s->links, d, s->by_relation);
        scatter(s->threads, heads, NULL, some, 1.f, at.by_source, s->total, d, s->by_entity);
        scatter(s->threads, tails, NULL, some, 1.f, at.by_other, s->total, d, s->by_entity);
        s->loss += sum_of(at.losses, some);
    }
    return 1;
}

/* A step of Adagrad on some numbers, of which every thread has a range. */
void adagrad(long threads, float *numbers, float *sums, const float *gradient, long count, double rate) {
    float by = rate;
#pragma omp parallel for simd num_threads(hands(threads))
    for (long i = 0; i < count; i++) {
        sums[i] += gradient[i] * gradient[i];
        numbers[i] -= by * gradient[i] / (sqrtf(sums[i]) + 1e-10f);
    }
}

/* The same on some rows, none of them twice. */
void adagrad_rows(long threads, float *numbers, float *sums, const long *rows, long count, const float *gradient, long d,
                  double rate) {
    float by = rate;
#pragma omp parallel for num_threads(hands(threads))
    for (long i = 0; i < count; i++) {
        if (i + AHEAD < count) /* rows of a large matrix lie far apart */
            for (long k = 0, next = rows[i + AHEAD] * d; k < d; k += LINE) {
                __builtin_prefetch(numbers + next + k, 1);
                __builtin_prefetch(sums + next + k, 1);
            }
        float *restrict row = numbers + rows[i] * d, *restrict sum = sums + rows[i] * d;
        const float *g = gradient + i * d;
        for (long k = 0; k < d; k++) {
            sum[k] += g[k] * g[k];
            row[k] -= by * g[k] / (sqrtf(sum[k]) + 1e-10f);
        }
    }
}

/* Mean loss per triple with its penalties, and its gradients. Returns 0 where a sum of powers left the floats. */
int step(struct step *s) {
    double share = 1. / s->answer_count;
    struct rows at = rows_in(s->scratch, larger(s->n, s->block), s->d);
    s->loss = 0;
    memset(s->by_relation, 0, s->links * s->d * sizeof(float));
    if (!ask_entities(s, at, share)) return 0;
    return s->relation_prediction == 0 || ask_relations(s, at, s->relation_prediction * share);
}

/* For a test that both sides mean the same fields. */
long step_size(void) { return sizeof(struct step); }
