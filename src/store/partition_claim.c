/* Partitions of a log that is not the queue are claimed, and given up.
 *
 * A call is one transaction of the writer's: find or make each partition's
 * number, raise its generation (which fences whoever had it before), read its
 * cursors, and only then judge whether the epoch is over: cursors that are read
 * before may still move.
 *
 * The trap: the transaction may run again, after a server that went away, and
 * other hubs add numbers meanwhile. So write_claims() reads the table behind
 * the lock, and keeps nothing of its last run. The loop's own table changes in
 * tell_claims(), when all is durable. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/internal.h"
#include "store/partitions.h"

/* One of the partitions of a call. */
typedef struct asked {
    stg_claim_ask ask; /* its texts are ours */
    stg_taken now, before[STG_CLAIMED_BEFORE_MAX];
    size_t before_count;
    stg_claimed answer;
    stg_claimed_before answer_before[STG_CLAIMED_BEFORE_MAX];
    bool is_spent; /* no number is left */
    bool is_back;  /* it was taken back before its generation was raised */
} asked;

/* A call: all of it is one transaction. */
typedef struct taking {
    stg_store_request request;
    stg_store *s;
    stg_claimed_fn *done;
    size_t count;
    asked all[];
} taking;

/* -- on the writer's thread ------------------------------------------------ */

static taking *taking_of(stg_store_request *e)
{
    return STG_HOLDER(&e->link, taking, request.link);
}

/* Whether there is a row for the number, whatever is in it: the caller of
 * the claim has compared it, and says in is_unsure if it proved nothing. */
static int find_fingerprint(stg_db *db, uint32_t number, bool *is_there)
{
    stg_stmt *st;
    uint64_t found;
    int rc = stg_sql_prepare_once(
        db, &st, "SELECT 1 FROM fingerprints WHERE number = ?");

    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "u", (uint64_t)number);
    if (rc == SQLITE_OK)
        rc = stg_sql_number(st, &found);
    stg_sql_finalize(st);
    *is_there = rc == SQLITE_OK;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Whether positions of this epoch name other messages than before: the topic
 * was made again. `previous` says so outright. A cursor above the log's end
 * says so, too, but that end was read when the partition was assigned, and
 * another hub may have read beyond it since: so it counts only where no
 * fingerprint tells. */
static int evaluate_epoch(const asked *a, stg_db *db, bool *is_over)
{
    bool is_above =
        a->ask.end != STG_NO_POSITION && a->now.furthest > a->ask.end;
    bool is_told = false;
    int rc = SQLITE_OK;

    if (is_above && !a->ask.is_unsure)
        rc = find_fingerprint(db, a->now.p.number, &is_told);
    *is_over = a->now.p.number == a->ask.previous || (is_above && !is_told);
    return rc;
}

/* Numbers that have run out are this partition's fault alone: it is refused,
 * and the others of the call are claimed. */
static int make_number(asked *a, stg_store_writer *w)
{
    int rc = stg_partitions_add(w->db, &a->ask, &a->now.p);

    a->is_spent = rc == SQLITE_TOOBIG;
    return a->is_spent ? SQLITE_OK : rc;
}

/* Gives the partition a new number under a new, random epoch. The group's
 * committed offset is of the deleted topic, and is noted to be ignored. */
static int make_epoch(asked *a, stg_store_writer *w)
{
    stg_partition_row *p = &a->now.p;

    if (uv_random(NULL, NULL, &p->epoch, sizeof p->epoch, 0, NULL) != 0)
        return SQLITE_IOERR;
    p->epoch |= 1; // 0 is the first
    p->stale = a->ask.committed;
    a->answer.was_reset = true;
    return make_number(a, w);
}

static stg_partition_row partition_of(const asked *a)
{
    return (stg_partition_row){.log = (char *)a->ask.log,
                               .topic = (char *)a->ask.topic,
                               .partition = a->ask.partition,
                               .stale = STG_NO_POSITION};
}

/* As it is known, with the question's texts. */
static stg_partition_row copy_of(const asked *a, const stg_partition_row *known)
{
    stg_partition_row same = *known;

    same.log = (char *)a->ask.log;
    same.topic = (char *)a->ask.topic;
    return same;
}

/* The newest number is the partition's; those below it are of epochs that
 * are over. */
static int find_number(asked *a, stg_store_writer *w)
{
    const stg_partition_row *known =
        stg_partitions_newest(&w->partitions, &a->ask, UINT32_MAX);

    if (known == NULL)
        return make_number(a, w);
    a->now.p = copy_of(a, known);
    return SQLITE_OK;
}

static bool is_taken(const asked *a)
{
    return !a->is_back && !a->is_spent;
}

static int find_numbers(taking *t, stg_store_writer *w, stg_taken **all,
                        size_t *count)
{
    int rc = SQLITE_OK;

    *count = 0;
    for (size_t i = 0; i < t->count && rc == SQLITE_OK; i++) {
        if (is_taken(&t->all[i]))
            rc = find_number(&t->all[i], w);
        if (is_taken(&t->all[i]))
            all[(*count)++] = &t->all[i].now;
    }
    return rc;
}

/* Begins new epochs where the old ones are over; *all are then the new
 * numbers, whose generations are still to be raised. */
static int make_epochs(taking *t, stg_store_writer *w, stg_taken **all,
                       size_t *count)
{
    int rc = SQLITE_OK;

    *count = 0;
    for (size_t i = 0; i < t->count && rc == SQLITE_OK; i++) {
        asked *a = &t->all[i];
        bool is_over;

        if (!is_taken(a))
            continue;
        rc = evaluate_epoch(a, w->db, &is_over);
        if (rc == SQLITE_OK && is_over)
            rc = make_epoch(a, w);
        if (rc == SQLITE_OK && is_over && is_taken(a))
            all[(*count)++] = &a->now;
    }
    return rc;
}

/* -- rows of earlier epochs ------------------------------------------------ */

/* Earlier numbers of the partitions of a call, and whose they are. */
typedef struct earlier {
    asked **of; /* by number; NULL: none that is asked for */
    uint32_t *numbers;
    size_t count, room;
    const stg_partitions *partitions;
    stg_taken **all; /* those that are taken */
    size_t taken_count;
} earlier;

/* Notes all numbers of the partition that are older than the one it has now. */
static bool note_earlier(earlier *e, asked *a)
{
    const stg_partition_row *p = &a->now.p;

    while ((p = stg_partitions_newest(e->partitions, &a->ask, p->number)) !=
           NULL) {
        if (e->count == e->room) {
            size_t room = e->room == 0 ? 64 : 2 * e->room;
            uint32_t *numbers = realloc(e->numbers, room * sizeof *numbers);

            if (numbers == NULL)
                return false;
            e->numbers = numbers;
            e->room = room;
        }
        e->numbers[e->count++] = p->number;
        e->of[p->number] = a;
    }
    return true;
}

/* Called for the newest number first (stg_partitions_with_rows()). Rows of
 * more than STG_CLAIMED_BEFORE_MAX earlier epochs wait for a later claim. */
static void take_earlier(void *ctx, uint32_t number, uint64_t generation)
{
    earlier *e = ctx;
    asked *a = e->of[number];

    (void)generation;
    if (a == NULL || a->before_count == STG_CLAIMED_BEFORE_MAX)
        return;
    a->before[a->before_count].p =
        copy_of(a, stg_partitions_get(e->partitions, number));
    e->all[e->taken_count++] = &a->before[a->before_count++];
}

/* Earlier numbers of the partitions, where a topic was made again: those that have
 * rows still are taken along, so that what is parked there is sent. */
static int look_earlier(taking *t, stg_store_writer *w, earlier *e)
{
    char *list;
    int rc;

    e->of = calloc(w->partitions.count + 1, sizeof(asked *));
    if (e->of == NULL)
        return SQLITE_NOMEM;
    for (size_t i = 0; i < t->count; i++)
        if (is_taken(&t->all[i]) && !note_earlier(e, &t->all[i]))
            return SQLITE_NOMEM;
    if (e->count == 0)
        return SQLITE_OK;
    list = stg_sql_list(e->numbers, e->count);
    e->all = calloc(e->count, sizeof(stg_taken *));
    rc = list == NULL || e->all == NULL
             ? SQLITE_NOMEM
             : stg_partitions_with_rows(w->db, list, take_earlier, e);
    free(list);
    return rc;
}

/* Claims earlier numbers of the partitions that still have rows, together
 * with the partitions. In a file all rows are this hub's anyway. */
static int take_before(taking *t, stg_store_writer *w)
{
    earlier e = {.partitions = &w->partitions};
    int rc;

    if (!stg_sql_is_shared(w->db))
        return SQLITE_OK;
    rc = look_earlier(t, w, &e);
    if (rc == SQLITE_OK)
        rc = stg_taken_take(e.all, e.taken_count, w);
    free(e.of);
    free(e.numbers);
    free(e.all);
    return rc;
}

/* The position below which lanes need not read: what the group has
 * committed, if it is of this epoch and within the log. Where hubs share
 * cursors these count alone, but a new database has none, and then begins at
 * the group's. */
static uint64_t floor_of(const asked *a, bool is_shared)
{
    uint64_t committed = a->ask.committed;
    bool is_known = is_shared && a->now.count > 0;

    return is_known || committed == STG_NO_POSITION ||
                   committed == a->now.p.stale || committed > a->ask.end
               ? 0
               : committed;
}

static void fill_answer(asked *a, bool is_shared)
{
    a->answer.number = a->now.p.number;
    a->answer.epoch = a->now.p.epoch;
    a->answer.generation = a->now.p.generation;
    a->answer.floor = floor_of(a, is_shared);
    a->answer.cursors = a->now.cursors;
    a->answer.count = a->now.count;
    a->answer.before = a->answer_before;
    a->answer.before_count = a->before_count;
    for (size_t i = 0; i < a->before_count; i++)
        a->answer_before[i] =
            (stg_claimed_before){.number = a->before[i].p.number,
                                 .epoch = a->before[i].p.epoch,
                                 .generation = a->before[i].p.generation,
                                 .cursors = a->before[i].cursors,
                                 .count = a->before[i].count};
}

/* A partition that was taken back while the lock was waited for is not claimed:
 * whoever has it now may have had the lock before us. One that is taken back
 * from here on is claimed by its next owner behind us. */
static void begin(taking *t)
{
    stg_request_queue *in = &t->s->in;

    uv_mutex_lock(&in->lock);
    for (size_t i = 0; i < t->count; i++) {
        asked *a = &t->all[i];

        a->now.p = partition_of(a);
        a->answer = (stg_claimed){.status = STG_OK};
        a->before_count = 0;
        a->is_spent = false;
        a->is_back = stg_request_queue_is_taken_back(in, a->ask.ctx);
        stg_taken_clear(&a->now);
    }
    uv_mutex_unlock(&in->lock);
}

/* The second take is of the numbers that make_epochs() made. The old ones keep
 * their raised generation, and take_before() claims them if they have rows. */
static int claim_numbers(taking *t, stg_store_writer *w, stg_taken **all)
{
    size_t count;
    int rc = find_numbers(t, w, all, &count);

    if (rc == SQLITE_OK)
        rc = stg_taken_take(all, count, w);
    if (rc == SQLITE_OK)
        rc = make_epochs(t, w, all, &count);
    if (rc == SQLITE_OK)
        rc = stg_taken_take(all, count, w);
    return rc == SQLITE_OK ? take_before(t, w) : rc;
}

static int write_claims(stg_store_request *e, stg_store_writer *w)
{
    taking *t = taking_of(e);
    stg_taken **all = calloc(t->count, sizeof(stg_taken *));
    int rc = all == NULL ? SQLITE_NOMEM : SQLITE_OK;

    // This is the first command that waits for an answer: when it comes, the
    // transaction has its advisory lock, and no other hub claims meanwhile.
    if (rc == SQLITE_OK)
        rc = stg_partitions_load(&w->partitions, w->db, w->o->shard);
    if (rc == SQLITE_OK) {
        begin(t);
        rc = claim_numbers(t, w, all);
    }
    for (size_t i = 0; i < t->count && rc == SQLITE_OK; i++)
        fill_answer(&t->all[i], t->s->url != NULL);
    free(all);
    return rc;
}

/* -- on the loop ----------------------------------------------------------- */

static void refuse(asked *a, stg_status status, const char *words)
{
    a->answer = (stg_claimed){.status = status, .words = words};
}

/* Only dead letters of partitions that this hub has claimed are copied by
 * it: the thread that copies is told which they are. A file has no such
 * list. */
static void tell_claimed(stg_store *s)
{
    char *claimed;

    if (s->url == NULL)
        return;
    claimed = stg_store_claimed(s);
    if (claimed == NULL)
        stg_store_lack_memory(s);
    else
        stg_request_queue_set_claimed(&s->in, claimed);
}

static bool note_claimed(stg_store *s, const stg_partition_row *got)
{
    stg_partition_row *p = stg_partitions_set(&s->partitions, got);

    if (p == NULL)
        return false;
    p->is_claimed = true;
    return true;
}

static bool note_asked(stg_store *s, const asked *a)
{
    bool is_noted = note_claimed(s, &a->now.p);

    for (size_t i = 0; i < a->before_count && is_noted; i++)
        is_noted = note_claimed(s, &a->before[i].p);
    return is_noted;
}

/* Without room nothing of the call is written, so is_full refuses all its
 * partitions; one that is refused anyway keeps its own reason. */
static void evaluate(asked *a, bool is_full)
{
    if (a->is_back)
        refuse(a, STG_NOT_FOUND, "it was taken back");
    else if (a->is_spent)
        refuse(a, STG_INVALID,
               "the store has had 65535 partitions, more have no number; begin "
               "with a new store");
    else if (is_full)
        refuse(a, STG_IO, "the store is full: a partition cannot be taken");
}

/* All partitions are noted before the first done() is called, for a caller
 * may fetch their rows at once, and unclaimed rows are dropped. */
static void tell_claims(stg_store_request *e)
{
    taking *t = taking_of(e);

    for (size_t i = 0; i < t->count; i++) {
        asked *a = &t->all[i];

        evaluate(a, e->is_full);
        stg_request_queue_forget_back(&t->s->in, a->ask.ctx);
        if (a->answer.status == STG_OK && !note_asked(t->s, a)) {
            stg_store_lack_memory(t->s);
            return;
        }
    }
    tell_claimed(t->s);
    for (size_t i = 0; i < t->count; i++)
        t->done(t->all[i].ask.ctx, &t->all[i].answer);
}

static void free_claims(stg_store_request *e)
{
    taking *t = taking_of(e);

    for (size_t i = 0; i < t->count; i++) {
        asked *a = &t->all[i];

        stg_taken_free(&a->now);
        for (size_t j = 0; j < STG_CLAIMED_BEFORE_MAX; j++)
            stg_taken_free(&a->before[j]);
        free((char *)a->ask.log);
        free((char *)a->ask.topic);
    }
    free(t);
}

static bool copy_ask(asked *a, const stg_claim_ask *ask)
{
    a->ask = *ask;
    a->ask.log = stg_store_copy(ask->log);
    a->ask.topic = stg_store_copy(ask->topic);
    return a->ask.log != NULL && a->ask.topic != NULL;
}

void stg_store_claim(stg_store *s, const stg_claim_ask *asks, size_t count,
                     stg_claimed_fn *done)
{
    taking *t = calloc(1, sizeof *t + count * sizeof *t->all);
    bool is_copied = t != NULL;

    for (size_t i = 0; i < count && is_copied; i++) {
        is_copied = copy_ask(&t->all[i], &asks[i]);
        t->count++;
    }
    if (!is_copied) {
        if (t != NULL)
            free_claims(&t->request);
        stg_store_lack_memory(s);
        return;
    }
    t->request.write = write_claims;
    t->request.tell = tell_claims;
    t->request.free = free_claims;
    t->s = s;
    t->done = done;
    stg_store_request_send(s, &t->request);
}

/* Read by begin() on the writer's thread, under the queue's lock. */
void stg_store_take_back(stg_store *s, void *ctx)
{
    if (!stg_request_queue_take_back(&s->in, ctx))
        stg_store_lack_memory(s);
}

void stg_store_unclaim(stg_store *s, uint32_t number)
{
    stg_partition_row *p = stg_partitions_get(&s->partitions, number);

    if (p == NULL)
        return;
    p->is_claimed = false;
    tell_claimed(s);
}

/* Six bytes a number: a comma, and at most five digits. */
char *stg_store_claimed(const stg_store *s)
{
    char *list = malloc(4 + 6 * (size_t)s->partitions.count), *to = list;

    if (list == NULL)
        return NULL;
    // What has no topic is of nobody else.
    to += sprintf(to, "{0");
    for (uint32_t i = 1; i < s->partitions.count; i++) {
        const stg_partition_row *p = stg_partitions_get(&s->partitions, i);

        if (p != NULL && p->is_claimed)
            to += sprintf(to, ",%" PRIu32, i);
    }
    memcpy(to, "}", 2);
    return list;
}

/* -- which there are ------------------------------------------------------- */

bool stg_store_partition_of(const stg_store *s, uint32_t number,
                            stg_store_partition *to)
{
    const stg_partition_row *p = stg_partitions_get(&s->partitions, number);

    if (p == NULL)
        return false;
    *to = (stg_store_partition){.number = number,
                                .log = p->log,
                                .topic = p->topic,
                                .partition = p->partition,
                                .epoch = p->epoch,
                                .generation = p->generation};
    return true;
}

void stg_store_partitions(const stg_store *s, stg_store_partition_fn *each,
                          void *ctx)
{
    stg_store_partition one;

    for (uint32_t i = 1; i < s->partitions.count; i++)
        if (stg_store_partition_of(s, i, &one))
            each(ctx, &one);
}

/* -- ids ------------------------------------------------------------------- */

static stg_ids ids_of(const stg_store *s)
{
    return (stg_ids){.epochs = &s->epochs, .partitions = &s->partitions};
}

const char *stg_store_id(const stg_store *s, uint32_t number, uint64_t position,
                         char text[STG_MESSAGE_ID_MAX])
{
    stg_ids ids = ids_of(s);

    return stg_ids_print(&ids, number, position, text);
}

const char *stg_store_record_id(const stg_store *s, const char *log,
                                const char *topic, uint32_t partition,
                                uint64_t position,
                                char text[STG_MESSAGE_ID_MAX])
{
    stg_claim_ask ask = {.log = log, .topic = topic, .partition = partition};
    const stg_partition_row *known =
        stg_partitions_newest(&s->partitions, &ask, UINT32_MAX);
    stg_partition_row row = {.topic = (char *)(uintptr_t)topic,
                             .partition = partition,
                             .epoch = known != NULL ? known->epoch : 0};

    return stg_ids_print_record(&row, position, text);
}

bool stg_store_find_id(const stg_store *s, const char *id, uint32_t *number,
                       uint64_t *position)
{
    stg_ids ids = ids_of(s);

    return stg_ids_parse(&ids, id, number, position);
}
