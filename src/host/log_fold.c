/* Folds lines of the log: one line for many events of one kind.
 *
 * A kind is an event with its cause. Its last nine lines are a ring of instants:
 * while the oldest is less than a second ago, nothing more is written, so that
 * no second, wherever it begins, has more than nine lines of the kind and one
 * that could not wait. A fold is due a second after the last line, when the
 * kind has room for eight more lines as they are. */
#include "host/log_fold.h"

#include <stdlib.h>
#include <string.h>

#include "host/wall.h"

enum {
    EVENT_ROOM = 64,
    CAUSE_ROOM = 64,
    NAMED = 3, /* subjects that a fold names */
    NAME_ROOM = 72,
    SLOTS = 64, /* room of the smallest set */
};

/* Hashes of different subjects: a table that is half full at most. */
typedef struct fold_set {
    uint64_t *slots; /* 0: free */
    size_t room, count;
} fold_set;

typedef struct fold_kind {
    char event[EVENT_ROOM];
    stg_field cause; /* text: in cause_text */
    char cause_text[CAUSE_ROOM];

    stg_ns lines[STG_LOG_FOLD_LINES]; /* instants of the last lines, a ring */
    size_t oldest, line_count;

    uint64_t folded; /* events that are counted and not told */
    uint64_t since;  /* UTC of the first of them */
    stg_ns due_at;
    stg_log_level level;
    const char *subjects;
    fold_set seen;
    bool is_least; /* there are more subjects than `seen` had room for */
    size_t named;
    char names[NAMED][NAME_ROOM];
} fold_kind;

/* Kinds in the order in which they came; those that were silent for a second
 * are replaced where there is no room. */
typedef struct fold_kinds {
    uint64_t *hashes;
    fold_kind *at;
    size_t count, room;
} fold_kinds;

struct stg_log_fold {
    stg_hash_seed seed;
    stg_log_fold_fn *write;
    void *ctx;
    size_t slots; /* total room of the sets */
    fold_kinds with_cause, without;
    uint64_t hashes[STG_LOG_FOLD_CAUSES + STG_LOG_FOLD_EVENTS];
    fold_kind kinds[STG_LOG_FOLD_CAUSES + STG_LOG_FOLD_EVENTS];
};

stg_log_fold *stg_log_fold_new(const stg_hash_seed *seed,
                               stg_log_fold_fn *write, void *ctx)
{
    stg_log_fold *f = calloc(1, sizeof *f);

    if (f == NULL)
        return NULL;
    f->seed = *seed;
    f->write = write;
    f->ctx = ctx;
    f->with_cause = (fold_kinds){f->hashes, f->kinds, 0, STG_LOG_FOLD_CAUSES};
    f->without =
        (fold_kinds){f->hashes + STG_LOG_FOLD_CAUSES,
                     f->kinds + STG_LOG_FOLD_CAUSES, 0, STG_LOG_FOLD_EVENTS};
    return f;
}

/* -- what a line is about --------------------------------------------------- */

static const stg_field *fold_find_field(const stg_field *fields, size_t count,
                                        const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(fields[i].name, name) == 0 &&
            (fields[i].kind != STG_FIELD_TEXT || fields[i].text.at != NULL))
            return &fields[i];
    return NULL;
}

static void fold_find_cause(stg_log_fact *fact, const stg_field *fields,
                            size_t count)
{
    const stg_field *found = fold_find_field(fields, count, "cause");

    if (found == NULL)
        found = fold_find_field(fields, count, "status");
    if (found != NULL)
        fact->cause = *found;
}

stg_log_fact stg_log_fact_of(stg_log_level level, const char *event,
                             const stg_field *fields, size_t count)
{
    static const struct {
        const char *one, *many;
    } subjects[] = {{"target", "targets"},     {"from", "addresses"},
                    {"receiver", "receivers"}, {"topic", "topics"},
                    {"client", "clients"},     {"proxy", "proxies"}};
    stg_log_fact fact = {.level = level, .event = event, .events = 1};
    const stg_field *found = NULL;

    fold_find_cause(&fact, fields, count);
    for (size_t i = 0;
         i < sizeof subjects / sizeof subjects[0] && found == NULL; i++) {
        found = fold_find_field(fields, count, subjects[i].one);
        fact.subjects = subjects[i].many;
    }
    if (found != NULL)
        fact.subject = found->text;
    return fact;
}

/* -- subjects --------------------------------------------------------------- */

/* Returns the slot of a hash: its own, or the free one where it belongs. */
static uint64_t *fold_find_slot(const fold_set *s, uint64_t hash)
{
    size_t i = hash & (s->room - 1);

    while (s->slots[i] != 0 && s->slots[i] != hash)
        i = (i + 1) & (s->room - 1);
    return &s->slots[i];
}

/* Makes room for one more. False: out of memory, or of what all sets may
 * have. */
static bool fold_grow(stg_log_fold *f, fold_set *s)
{
    fold_set grown = {.room = s->room == 0 ? SLOTS : 2 * s->room,
                      .count = s->count};

    if (2 * (s->count + 1) <= s->room)
        return true;
    if (f->slots + grown.room - s->room > 2 * (size_t)STG_LOG_FOLD_TARGETS)
        return false;
    grown.slots = calloc(grown.room, sizeof *grown.slots);
    if (grown.slots == NULL)
        return false;
    for (size_t i = 0; i < s->room; i++)
        if (s->slots[i] != 0)
            *fold_find_slot(&grown, s->slots[i]) = s->slots[i];
    f->slots += grown.room - s->room;
    free(s->slots);
    *s = grown;
    return true;
}

static void fold_name(fold_kind *k, stg_span subject)
{
    char *name = k->names[k->named];
    size_t size = subject.size < NAME_ROOM ? subject.size : NAME_ROOM - 1;

    memcpy(name, subject.at, size);
    name[size] = '\0';
    k->named++;
}

/* Counts the subject, if it is a new one. */
static void fold_note_subject(stg_log_fold *f, fold_kind *k, stg_span subject)
{
    uint64_t hash = stg_hash(&f->seed, subject.at, subject.size) | 1;
    uint64_t *slot;

    if (k->seen.room > 0 && *fold_find_slot(&k->seen, hash) == hash)
        return;
    if (!fold_grow(f, &k->seen)) {
        k->is_least = true;
        return;
    }
    slot = fold_find_slot(&k->seen, hash);
    *slot = hash;
    k->seen.count++;
    if (k->named < NAMED)
        fold_name(k, subject);
}

static void fold_forget_subjects(stg_log_fold *f, fold_kind *k)
{
    f->slots -= k->seen.room;
    free(k->seen.slots);
    k->seen = (fold_set){NULL, 0, 0};
    k->named = 0;
    k->is_least = false;
}

/* -- lines ------------------------------------------------------------------ */

/* Returns when the kind has room for a line: a second after the oldest. */
static stg_ns fold_room_at(const fold_kind *k)
{
    if (k->line_count < STG_LOG_FOLD_LINES)
        return 0;
    return stg_ns_add(k->lines[k->oldest], STG_S);
}

static void fold_note_line(fold_kind *k, stg_ns now)
{
    if (k->line_count < STG_LOG_FOLD_LINES) {
        k->lines[k->line_count++] = now;
        return;
    }
    k->lines[k->oldest] = now;
    k->oldest = (k->oldest + 1) % STG_LOG_FOLD_LINES;
}

/* Returns when no line of the kind is of the last second. */
static stg_ns fold_quiet_at(const fold_kind *k)
{
    size_t newest = (k->oldest + k->line_count - 1) % STG_LOG_FOLD_LINES;

    return k->line_count == 0 ? 0 : stg_ns_add(k->lines[newest], STG_S);
}

static size_t fold_print_names(const fold_kind *k,
                               char text[NAMED * (NAME_ROOM + 2)])
{
    size_t size = 0;

    for (size_t i = 0; i < k->named; i++) {
        size_t more = strlen(k->names[i]);

        if (i > 0) {
            text[size++] = ',';
            text[size++] = ' ';
        }
        memcpy(text + size, k->names[i], more);
        size += more;
    }
    return size;
}

/* Writes the fold of the kind. A writer that has no room is asked again in a
 * second. */
static void fold_tell(stg_log_fold *f, fold_kind *k, stg_log_now now)
{
    char since[STG_UTC_TEXT_MAX], names[NAMED * (NAME_ROOM + 2)];
    stg_field fields[6];
    size_t count = 0;

    if (k->cause.name != NULL)
        fields[count++] = k->cause;
    fields[count++] = stg_field_number("folded", k->folded);
    fields[count++] = stg_field_text("since", stg_utc_text(k->since, since));
    if (k->seen.count > 0) {
        fields[count++] = stg_field_number(k->subjects, k->seen.count);
        if (k->is_least)
            fields[count++] = stg_field_bool("at_least", true);
        fields[count++] = stg_field_span(
            "names", (stg_span){names, fold_print_names(k, names)});
    }
    if (!f->write(f->ctx, &(stg_log_folded){k->level, k->event, fields, count},
                  now)) {
        k->due_at = stg_ns_add(now.now, STG_S);
        return;
    }
    k->folded = 0;
    fold_forget_subjects(f, k);
    fold_note_line(k, now.now);
}

static void fold_count(stg_log_fold *f, fold_kind *k, const stg_log_fact *fact,
                       stg_log_now now)
{
    if (k->folded == 0) {
        k->since = now.utc;
        k->due_at = fold_quiet_at(k);
        k->level = fact->level;
        k->subjects = fact->subjects;
    }
    k->folded += fact->events;
    if (fact->level > k->level)
        k->level = fact->level;
    if (fact->subject.at != NULL)
        fold_note_subject(f, k, fact->subject);
}

/* -- kinds ------------------------------------------------------------------ */

static uint64_t fold_hash(const stg_log_fold *f, const char *event,
                          const stg_field *cause)
{
    uint64_t hash = stg_hash(&f->seed, event, strlen(event));
    stg_hash_seed seed = {{f->seed.at[0] ^ hash, f->seed.at[1]}};

    if (cause->name == NULL)
        return hash;
    if (cause->kind == STG_FIELD_TEXT)
        return stg_hash(&seed, cause->text.at, cause->text.size);
    return stg_hash(&seed, &cause->number, sizeof cause->number);
}

static void fold_begin(fold_kind *k, const char *event, const stg_field *cause)
{
    size_t size = cause->text.size < CAUSE_ROOM ? cause->text.size : CAUSE_ROOM;

    *k = (fold_kind){.cause = *cause};
    strncpy(k->event, event, sizeof k->event - 1);
    if (cause->name == NULL || cause->kind != STG_FIELD_TEXT)
        return;
    memcpy(k->cause_text, cause->text.at, size);
    k->cause.text = (stg_span){k->cause_text, size};
}

/* Returns a place for a new kind, or the count of all: each is in use. */
static size_t fold_make_room(fold_kinds *all, stg_ns now)
{
    if (all->count < all->room)
        return all->count++;
    for (size_t i = 0; i < all->count; i++)
        if (all->at[i].folded == 0 && now >= fold_quiet_at(&all->at[i]))
            return i;
    return all->count;
}

/* Returns the kind; NULL: there is no room for it. By the hash alone: 64 bits
 * under a secret seed. */
static fold_kind *fold_find(const stg_log_fold *f, fold_kinds *all,
                            const char *event, const stg_field *cause,
                            stg_ns now)
{
    uint64_t hash = fold_hash(f, event, cause);
    size_t i = 0;

    while (i < all->count && all->hashes[i] != hash)
        i++;
    if (i < all->count)
        return &all->at[i];
    i = fold_make_room(all, now);
    if (i == all->room)
        return NULL;
    all->hashes[i] = hash;
    fold_begin(&all->at[i], event, cause);
    return &all->at[i];
}

/* Returns the kind of a line; NULL: more events than the hub has. */
static fold_kind *fold_kind_of(stg_log_fold *f, const stg_log_fact *fact,
                               stg_ns now)
{
    const stg_field other = stg_field_text("cause", "other");
    fold_kind *k;

    if (fact->cause.name == NULL)
        return fold_find(f, &f->without, fact->event, &fact->cause, now);
    k = fold_find(f, &f->with_cause, fact->event, &fact->cause, now);
    return k != NULL ? k : fold_find(f, &f->without, fact->event, &other, now);
}

/* -- the whole -------------------------------------------------------------- */

bool stg_log_fold_admit(stg_log_fold *f, const stg_log_fact *fact,
                        stg_log_now now)
{
    fold_kind *k = fold_kind_of(f, fact, now.now);

    if (k == NULL)
        return true;
    if (k->folded > 0 && now.now >= k->due_at)
        fold_tell(f, k, now);
    if (k->folded == 0 && now.now >= fold_room_at(k)) {
        fold_note_line(k, now.now);
        return true;
    }
    fold_count(f, k, fact, now);
    return false;
}

static stg_ns fold_tell_due(stg_log_fold *f, fold_kinds *all, stg_log_now now)
{
    stg_ns next_at = STG_NEVER;

    for (size_t i = 0; i < all->count; i++) {
        fold_kind *k = &all->at[i];

        if (k->folded > 0 && now.now >= k->due_at)
            fold_tell(f, k, now);
        if (k->folded > 0)
            next_at = stg_ns_min(next_at, k->due_at);
    }
    return next_at;
}

stg_ns stg_log_fold_tick(stg_log_fold *f, stg_log_now now)
{
    stg_ns next_at = fold_tell_due(f, &f->with_cause, now);

    return stg_ns_min(next_at, fold_tell_due(f, &f->without, now));
}

void stg_log_fold_flush(stg_log_fold *f, stg_log_now now)
{
    fold_kinds *const both[] = {&f->with_cause, &f->without};

    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < both[side]->count; i++)
            if (both[side]->at[i].folded > 0)
                fold_tell(f, &both[side]->at[i], now);
}

void stg_log_fold_free(stg_log_fold *f)
{
    if (f == NULL)
        return;
    for (size_t i = 0; i < STG_LOG_FOLD_CAUSES + STG_LOG_FOLD_EVENTS; i++)
        free(f->kinds[i].seen.slots);
    free(f);
}
