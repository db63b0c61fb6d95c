/* The loop's side: calls become letters to the threads, their notes become
 * callbacks. */
#include "kafka/kafka.h"

#include <stdlib.h>

#include "base/refuse.h"
#include "kafka/internal.h"

struct stg_kafka {
    stg_kafka_options o;
    stg_kafka_topics topics;
    stg_kafka_post post;
    stg_kafka_member member;
    stg_kafka_catch_up behind;
    stg_kafka_read_fn *read, *read_behind;
    void *read_ctx, *read_behind_ctx;
    unsigned threads; /* that run */
    bool is_closing;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

/* -- the end --------------------------------------------------------------- */

static void free_kafka(stg_kafka *k)
{
    stg_link *link;

    while ((link = stg_list_shift(&k->post.notes)) != NULL)
        stg_kafka_note_free(STG_HOLDER(link, stg_kafka_note, link));
    uv_mutex_destroy(&k->post.lock);
    stg_kafka_member_free(&k->member);
    stg_kafka_box_free(&k->behind.box);
    stg_kafka_topics_free(&k->topics);
    stg_kafka_options_free(&k->o);
    free(k);
}

static void handle_closed(uv_handle_t *handle)
{
    stg_kafka *k = handle->data;
    void (*closed)(void *ctx) = k->closed;
    void *ctx = k->closed_ctx;

    free_kafka(k);
    if (closed != NULL)
        closed(ctx);
}

static void note_ended(stg_kafka *k)
{
    if (--k->threads > 0)
        return;
    (void)uv_thread_join(&k->member.thread);
    (void)uv_thread_join(&k->behind.thread);
    uv_close((uv_handle_t *)&k->post.arrived, handle_closed);
}

/* -- what the threads tell ------------------------------------------------- */

static void hand_over(const stg_kafka_batch *b, stg_kafka_read_fn **done,
                      void *ctx)
{
    stg_kafka_read_fn *read = *done;

    *done = NULL;
    if (read != NULL)
        read(ctx, b->runs, b->run_count);
}

static void take_note(stg_kafka *k, const stg_kafka_note *n)
{
    switch (n->kind) {
    case STG_KAFKA_NOTE_ASSIGNED:
        k->o.assigned(k->o.ctx, n->given, n->count);
        break;
    case STG_KAFKA_NOTE_REVOKED:
        k->o.revoked(k->o.ctx, n->places, n->count);
        break;
    case STG_KAFKA_NOTE_LOST:
        k->o.lost(k->o.ctx, n->places, n->count);
        break;
    case STG_KAFKA_NOTE_TOLD:
        k->o.told(k->o.ctx, &n->told);
        break;
    case STG_KAFKA_NOTE_READ:
        hand_over(n->batch, &k->read, k->read_ctx);
        break;
    case STG_KAFKA_NOTE_READ_BEHIND:
        hand_over(n->batch, &k->read_behind, k->read_behind_ctx);
        break;
    case STG_KAFKA_NOTE_COMPARED:
        k->o.compared(k->o.ctx, n->compared, n->count);
        break;
    case STG_KAFKA_NOTE_ENDED:
        break;
    }
}

static void take_notes(uv_async_t *arrived)
{
    stg_kafka *k = arrived->data;
    stg_link *link;
    stg_list notes;

    stg_list_init(&notes);
    uv_mutex_lock(&k->post.lock);
    while ((link = stg_list_shift(&k->post.notes)) != NULL)
        stg_list_push(&notes, link);
    uv_mutex_unlock(&k->post.lock);
    while ((link = stg_list_shift(&notes)) != NULL) {
        stg_kafka_note *n = STG_HOLDER(link, stg_kafka_note, link);

        if (n->kind == STG_KAFKA_NOTE_ENDED)
            note_ended(k);
        else if (!k->is_closing)
            take_note(k, n);
        stg_kafka_note_free(n);
    }
}

/* -- open ------------------------------------------------------------------ */

static void tell_bugs(stg_kafka *k)
{
    static const stg_kafka_sizes sizes = {
        .queue_max = 16 << 20, .answer_max = 8 << 20, .piece_max = 1 << 20};
    rd_kafka_conf_t *conf = stg_kafka_conf(&k->o, &sizes, NULL);

    if (conf == NULL)
        return;
    if (stg_kafka_has_bugs(conf))
        stg_kafka_post_tell(
            &k->post,
            &(stg_kafka_told){.what = STG_KAFKA_COOPERATIVE, .level = 4},
            "partition.assignment.strategy is cooperative, which has bugs in "
            "librdkafka %s; take range or roundrobin, or librdkafka 2.10",
            stg_kafka_version());
    rd_kafka_conf_destroy(conf);
}

/* False: no memory, no descriptor. */
static bool init(stg_kafka *k, uv_loop_t *loop)
{
    stg_list_init(&k->post.notes);
    k->member.o = k->behind.o = &k->o;
    k->member.post = k->behind.post = &k->post;
    k->member.topics = &k->topics;
    if (!stg_kafka_topics_init(&k->topics, &k->o))
        return false;
    if (uv_mutex_init(&k->post.lock) != 0)
        goto no_lock;
    if (!stg_kafka_member_init(&k->member))
        goto no_member;
    if (!stg_kafka_box_init(&k->behind.box))
        goto no_box;
    if (uv_async_init(loop, &k->post.arrived, take_notes) == 0) {
        k->post.arrived.data = k;
        return true;
    }
    stg_kafka_box_free(&k->behind.box);
no_box:
    stg_kafka_member_free(&k->member);
no_member:
    uv_mutex_destroy(&k->post.lock);
no_lock:
    stg_kafka_topics_free(&k->topics);
    return false;
}

static bool start(stg_kafka *k)
{
    if (uv_thread_create(&k->member.thread, stg_kafka_member_run, &k->member) !=
        0)
        return false;
    k->threads++;
    if (uv_thread_create(&k->behind.thread, stg_kafka_catch_up_run,
                         &k->behind) == 0) {
        k->threads++;
        return true;
    }
    stg_kafka_box_close(&k->member.box);
    (void)uv_thread_join(&k->member.thread);
    return false;
}

stg_status stg_kafka_open(stg_kafka **kafka, uv_loop_t *loop,
                          const stg_kafka_options *o, stg_error *err)
{
    stg_status status = stg_kafka_check(o, err);
    stg_kafka *k;

    if (status != STG_OK)
        return status;
    k = stg_kafka_memory(1, sizeof *k);
    k->o = stg_kafka_options_copy(o);
    if (!init(k, loop)) {
        stg_kafka_options_free(&k->o);
        free(k);
        return stg_hub_refuse(err, STG_IO, "kafka: no memory for it");
    }
    tell_bugs(k);
    if (!start(k)) {
        uv_close((uv_handle_t *)&k->post.arrived, handle_closed);
        return stg_hub_refuse(err, STG_IO, "kafka: no thread can be started");
    }
    *kafka = k;
    return STG_OK;
}

void stg_kafka_close(stg_kafka *k, void (*done)(void *ctx), void *ctx)
{
    k->is_closing = true;
    k->closed = done;
    k->closed_ctx = ctx;
    stg_kafka_box_close(&k->member.box);
    stg_kafka_box_close(&k->behind.box);
}

/* -- calls ----------------------------------------------------------------- */

static void post(stg_kafka *k, stg_kafka_ask_kind kind,
                 const stg_kafka_place *p, uint64_t position, uint64_t tag)
{
    stg_kafka_ask ask = {
        .kind = kind, .place = *p, .position = position, .tag = tag};

    ask.place.topic = stg_kafka_topic(&k->topics, p->topic);
    if (ask.place.topic != NULL)
        stg_kafka_box_post(&k->member.box, &ask);
}

void stg_kafka_begin(stg_kafka *k, const stg_kafka_place *p, uint64_t from,
                     uint64_t tag)
{
    post(k, STG_KAFKA_ASK_BEGIN, p, from, tag);
}

void stg_kafka_let_go(stg_kafka *k, const stg_kafka_place *p)
{
    post(k, STG_KAFKA_ASK_LET_GO, p, 0, 0);
}

void stg_kafka_commit(stg_kafka *k, const stg_kafka_place *p, uint64_t offset)
{
    post(k, STG_KAFKA_ASK_COMMIT, p, offset, 0);
}

void stg_kafka_compare(stg_kafka *k, const stg_kafka_place *p,
                       const stg_fingerprint *print)
{
    stg_kafka_ask ask = {
        .kind = STG_KAFKA_ASK_COMPARE, .place = *p, .print = *print};

    ask.place.topic = stg_kafka_topic(&k->topics, p->topic);
    if (ask.place.topic != NULL)
        stg_kafka_box_post(&k->behind.box, &ask);
}

void stg_kafka_resume(stg_kafka *k, const stg_kafka_place *p)
{
    post(k, STG_KAFKA_ASK_RESUME, p, 0, 0);
}

void stg_kafka_renew(stg_kafka *k, const stg_kafka_place *p)
{
    post(k, STG_KAFKA_ASK_RENEW, p, 0, 0);
}

void stg_kafka_read(stg_kafka *k, size_t bytes_max, stg_kafka_read_fn *done,
                    void *ctx)
{
    stg_kafka_ask ask = {.kind = STG_KAFKA_ASK_READ, .bytes_max = bytes_max};

    k->read = done;
    k->read_ctx = ctx;
    stg_kafka_box_post(&k->member.box, &ask);
}

static void ask_behind(stg_kafka *k, stg_kafka_ask *ask,
                       stg_kafka_read_fn *done, void *ctx)
{
    ask->kind = STG_KAFKA_ASK_READ;
    ask->place.topic = stg_kafka_topic(&k->topics, ask->place.topic);
    ask->bytes_max = ask->bytes_max > 0 ? ask->bytes_max : 1;
    k->read_behind = done;
    k->read_behind_ctx = ctx;
    stg_kafka_box_post(&k->behind.box, ask);
}

void stg_kafka_read_behind(stg_kafka *k, const stg_kafka_place *p,
                           uint64_t from, size_t bytes_max, uint64_t tag,
                           stg_kafka_read_fn *done, void *ctx)
{
    stg_kafka_ask ask = {
        .place = *p, .position = from, .tag = tag, .bytes_max = bytes_max};

    ask_behind(k, &ask, done, ctx);
}

void stg_kafka_read_again(stg_kafka *k, const stg_kafka_place *p, uint64_t from,
                          size_t bytes_max, size_t count_max,
                          stg_kafka_read_fn *done, void *ctx)
{
    stg_kafka_ask ask = {.place = *p,
                         .position = from,
                         .bytes_max = bytes_max,
                         .count_max = count_max,
                         .is_again = true};

    ask_behind(k, &ask, done, ctx);
}

void stg_kafka_look(stg_kafka *k, stg_kafka_counts *counts,
                    void (*each)(void *ctx, const stg_kafka_view *v), void *ctx)
{
    stg_kafka_member *m = &k->member;

    uv_mutex_lock(&m->look_lock);
    *counts = m->seen_counts;
    for (size_t i = 0; each != NULL && i < m->seen_count; i++)
        each(ctx, &m->seen[i]);
    uv_mutex_unlock(&m->look_lock);
}
