/* What all patterns say of a message's body: parsed and matched once, and kept as a bit
 * for each pattern.
 *
 * Messages have entries by their position, in a table of a fixed number of them: a later
 * message takes the entry of an earlier one, which is then judged again if a lane comes
 * to it. A change of the patterns begins a new round, whose number makes all older
 * entries void without a walk over them. */
#include "filter/verdicts.h"

#include <stdlib.h>
#include <string.h>

enum { PATTERNS_FIRST = 16, ENTRIES_MAX = 1 << 15, ENTRIES_MIN = 64 };

typedef struct entry {
    uint64_t position, round;
    uint32_t partition;
} entry;

/* Progress in a partition: the positions after the last message that was judged
 * in this round, and after the last one that was counted. */
typedef struct front {
    uint64_t judged, round;
    uint64_t counted;
} front;

typedef struct kept {
    stg_pattern *pattern; /* NULL: free */
    uint32_t users;
} kept;

struct stg_verdicts {
    kept *patterns;
    uint32_t room, count; /* count: up to the last that is used */
    uint64_t round;       /* of the patterns as they are; entries of others
                             count for nothing */
    entry *entries;       /* a power of two of them, by their place */
    unsigned char *bits;  /* `bytes` of each entry */
    size_t entry_count, bytes;
    front *fronts; /* by partition */
    uint32_t front_count;
    stg_verdicts_view seen;
};

stg_verdicts *stg_verdicts_new(void)
{
    stg_verdicts *v = calloc(1, sizeof *v);

    if (v != NULL)
        v->round = 1;
    return v;
}

void stg_verdicts_free(stg_verdicts *v)
{
    if (v == NULL)
        return;
    for (uint32_t i = 0; i < v->count; i++)
        stg_pattern_unref(v->patterns[i].pattern);
    free(v->patterns);
    free(v->entries);
    free(v->bits);
    free(v->fronts);
    free(v);
}

/* -- patterns -------------------------------------------------------------- */

/* NULL: no memory. */
static kept *find_room(stg_verdicts *v)
{
    uint32_t room = v->room > 0 ? 2 * v->room : PATTERNS_FIRST;
    kept *grown;

    for (uint32_t i = 0; i < v->count; i++)
        if (v->patterns[i].pattern == NULL)
            return &v->patterns[i];
    if (v->count < v->room)
        return &v->patterns[v->count++];
    grown = realloc(v->patterns, room * sizeof *grown);
    if (grown == NULL)
        return NULL;
    v->patterns = grown;
    v->room = room;
    return &v->patterns[v->count++];
}

/* Memory for the bits is made when they are asked for. */
static void forget(stg_verdicts *v)
{
    v->round++;
    if (v->bytes == (v->count + 7) / 8)
        return;
    free(v->entries);
    free(v->bits);
    v->entries = NULL;
    v->bits = NULL;
}

/* Targets with equal patterns share a number. A new number makes all that is known
 * void: older entries have no bit of it. */
uint32_t stg_verdicts_add(stg_verdicts *v, stg_pattern *p)
{
    kept *k;

    for (uint32_t i = 0; i < v->count; i++)
        if (v->patterns[i].pattern != NULL &&
            stg_pattern_equal(v->patterns[i].pattern, p)) {
            v->patterns[i].users++;
            return i + 1;
        }
    k = find_room(v);
    if (k == NULL)
        return 0;
    *k = (kept){.pattern = stg_pattern_ref(p), .users = 1};
    forget(v);
    return (uint32_t)(k - v->patterns) + 1;
}

void stg_verdicts_remove(stg_verdicts *v, uint32_t number)
{
    kept *k = number > 0 ? &v->patterns[number - 1] : NULL;

    if (k == NULL || --k->users > 0)
        return;
    stg_pattern_unref(k->pattern);
    k->pattern = NULL;
}

/* -- what is known of a message -------------------------------------------- */

/* As many entries as the memory allows: the more patterns, the fewer messages. */
static bool make_entries(stg_verdicts *v)
{
    size_t count = ENTRIES_MAX;

    v->bytes = (v->count + 7) / 8;
    while (count > ENTRIES_MIN &&
           count * (v->bytes + sizeof(entry)) > STG_VERDICTS_MEMORY)
        count /= 2;
    v->entries = calloc(count, sizeof *v->entries);
    v->bits = malloc(count * v->bytes);
    v->entry_count = count;
    if (v->entries != NULL && v->bits != NULL)
        return true;
    free(v->entries);
    v->entries = NULL;
    return false;
}

/* Neighbours have places of their own. NULL: no memory. */
static entry *entry_of(stg_verdicts *v, const stg_asked *m)
{
    enum { APART = 0x9e37 };
    uint64_t place = m->position + (uint64_t)m->partition * APART;

    if (v->entries == NULL && !make_entries(v))
        return NULL;
    return &v->entries[place & (v->entry_count - 1)];
}

/* NULL: no memory. */
static front *front_of(stg_verdicts *v, uint32_t partition)
{
    uint32_t count = partition + 16;
    front *wider;

    if (partition < v->front_count)
        return &v->fronts[partition];
    wider = realloc(v->fronts, count * sizeof *wider);
    if (wider == NULL)
        return NULL;
    memset(wider + v->front_count, 0, (count - v->front_count) * sizeof *wider);
    v->fronts = wider;
    v->front_count = count;
    return &v->fronts[partition];
}

static void count(stg_verdicts *v, front *f, const stg_asked *m, bool is_json)
{
    if (m->position < f->counted)
        return;
    f->counted = m->position + 1;
    if (is_json)
        v->seen.json++;
    else
        v->seen.not_json++;
}

/* Matches all patterns, and writes down what they say. */
static void judge(stg_verdicts *v, entry *e, const stg_asked *m,
                  const json_t *body)
{
    unsigned char *bits = v->bits + (size_t)(e - v->entries) * v->bytes;

    *e = (entry){
        .position = m->position, .partition = m->partition, .round = v->round};
    memset(bits, 0, v->bytes);
    for (uint32_t i = 0; body != NULL && i < v->count; i++)
        if (v->patterns[i].pattern != NULL &&
            stg_pattern_matches(v->patterns[i].pattern, body))
            bits[i / 8] |= (unsigned char)(1U << i % 8);
}

static bool find(const stg_verdicts *v, const entry *e, uint32_t number)
{
    const unsigned char *bits = v->bits + (size_t)(e - v->entries) * v->bytes;

    return (bits[(number - 1) / 8] >> (number - 1) % 8 & 1) != 0;
}

bool stg_verdicts_ask(stg_verdicts *v, uint32_t number, const stg_asked *m)
{
    entry *e = entry_of(v, m);
    front *f = front_of(v, m->partition);
    bool matches;
    json_t *body;

    if (e != NULL && e->round == v->round && e->position == m->position &&
        e->partition == m->partition)
        return find(v, e, number);
    body = stg_pattern_parse(m->body);
    if (f != NULL)
        count(v, f, m, body != NULL);
    // An older message: other lanes have passed it.
    if (e == NULL || f == NULL ||
        (f->round == v->round && m->position < f->judged)) {
        matches = stg_pattern_matches(v->patterns[number - 1].pattern, body);
    } else {
        f->round = v->round;
        f->judged = m->position + 1;
        judge(v, e, m, body);
        matches = find(v, e, number);
    }
    json_decref(body);
    return matches;
}

stg_verdicts_view stg_verdicts_look(const stg_verdicts *v)
{
    return v != NULL ? v->seen : (stg_verdicts_view){0, 0};
}
