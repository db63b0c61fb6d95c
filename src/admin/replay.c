/* Replay and drop: dry runs, and the replays that run beside the calls that
 * began them.
 *
 * A replay first counts what it will send and answers 202 with its number; then
 * it runs by itself, and its record is kept in a ring of STG_REPLAYS_MAX. A
 * drop is answered when it is done. A dry run is no change: it has no line in
 * the audit log.
 *
 * The store may be closed between two steps, which is why each step asks for it
 * again. With is_impossible the store is never asked. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/internal.h"
#include "base/text.h"
#include "host/wall.h"

/* What is under way: a sum that is to come, or a sample before it. */
typedef struct asked {
    stg_admin *admin;
    stg_ask *ask; /* of a dry run; else the call has it */
    stg_change_call *call;
    stg_choice *choice;
    uint64_t replay; /* its id */
    bool is_drop;
    json_t *sample;
} asked;

static void free_asked(asked *d)
{
    if (d->choice != NULL)
        stg_choice_free(d->choice);
    free(d->choice);
    free(d);
}

/* -- sums -------------------------------------------------------------------- */

static void add_sum(json_t *json, const stg_letters_sum *sum)
{
    const struct {
        const char *name;
        uint64_t number;
    } numbers[] = {
        {"letters", sum->letters},   {"messages", sum->messages},
        {"expired", sum->expired},   {"forgotten", sum->forgotten},
        {"orphaned", sum->orphaned}, {"paused", sum->paused},
    };

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_object_set_new(json, numbers[i].name,
                            stg_json_count(numbers[i].number));
}

static void tell_messages(stg_change_call *call, uint64_t count)
{
    stg_change_tell(call, "%" PRIu64 " message%s", count, stg_plural(count));
}

/* -- replays ----------------------------------------------------------------- */

/* NULL: the place of this number has another replay now, or none. */
static stg_replay *find_replay(stg_admin *a, uint64_t id)
{
    stg_replay *r = &a->replays[id % STG_REPLAYS_MAX];

    return r->id == id && id > 0 ? r : NULL;
}

static const char *state_of(const stg_replay *r)
{
    static const char *const states[] = {
        [STG_LETTERS_DONE] = "done",       [STG_LETTERS_HELD] = "held",
        [STG_LETTERS_AWAY] = "away",       [STG_LETTERS_FULL] = "full",
        [STG_LETTERS_STOPPED] = "stopped",
    };

    return r->is_running ? "running" : states[r->sum.end];
}

static json_t *print_replay(const stg_replay *r)
{
    json_t *json = json_pack(
        "{s:o,s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "id", stg_json_count(r->id),
        "state", state_of(r), "held",
        stg_json_text(r->held[0] == '\0' ? NULL : r->held), "recovered",
        stg_json_text(r->recovered[0] == '\0' ? NULL : r->recovered), "who",
        stg_json_text(r->who[0] == '\0' ? NULL : r->who), "started_at",
        stg_json_time(r->started_at), "ended_at", stg_json_time(r->ended_at),
        "found", r->is_counted ? stg_json_count(r->found) : json_null());

    add_sum(json, &r->sum);
    return json;
}

/* The place of the oldest is taken; those that run are fewer than there are, so
 * that the loop ends. */
static stg_replay *new_replay(stg_admin *a, stg_ns started_at)
{
    stg_replay *r;

    do
        r = &a->replays[++a->last_replay % STG_REPLAYS_MAX];
    while (r->is_running);
    *r = (stg_replay){.id = a->last_replay, .started_at = started_at};
    return r;
}

static stg_replay *begin_call(stg_admin *a, const stg_ask *ask)
{
    stg_replay *r = new_replay(a, stg_wall_now());

    r->is_running = true;
    snprintf(r->who, sizeof r->who, "%s", stg_ask_who(ask));
    a->replays_running++;
    return r;
}

/* sum->held is lent: the target's name is copied. */
static void end(stg_replay *r, const stg_letters_sum *sum)
{
    r->is_running = false;
    r->ended_at = stg_wall_now();
    r->sum = *sum;
    if ((sum->end == STG_LETTERS_HELD || sum->end == STG_LETTERS_AWAY) &&
        sum->held != NULL)
        snprintf(r->held, sizeof r->held, "%s", sum->held);
    r->sum.held = NULL;
}

/* Of any number of targets that recover at a time those are kept that have done
 * something, once they have ended: the others would push out those of calls. */
void stg_admin_replayed(void *part, const char *target, stg_ns started_at,
                        const stg_letters_sum *sum)
{
    stg_replay *r = new_replay(part, started_at);

    snprintf(r->recovered, sizeof r->recovered, "%s", target);
    end(r, sum);
}

/* The job has ended, whether all was sent again or something held it up (`held`). */
static void end_replay(void *ctx, const stg_letters_sum *sum)
{
    asked *d = ctx;
    stg_admin *a = d->admin;
    stg_replay *r = find_replay(a, d->replay);

    end(r, sum);
    a->replays_running--;
    STG_LOG(a->hub->log, STG_LOG_INFO, "replay-ended",
            stg_field_number("replay", r->id),
            stg_field_text("state", state_of(r)),
            stg_field_text("held", r->held[0] == '\0' ? NULL : r->held),
            stg_field_number("letters", sum->letters),
            stg_field_number("messages", sum->messages),
            stg_field_number("expired", sum->expired),
            stg_field_number("forgotten", sum->forgotten),
            stg_field_number("orphaned", sum->orphaned),
            stg_field_number("paused", sum->paused));
    free_asked(d);
}

/* The replay was counted, and its call is answered: it goes on by itself, for
 * minutes perhaps. The client asks for it by its number. */
static void go_on(void *ctx, const stg_letters_sum *sum)
{
    asked *d = ctx;
    stg_admin *a = d->admin;
    stg_replay *r = find_replay(a, d->replay);
    stg_store *store = a->hub->store;
    stg_change_call *call = d->call;
    stg_letters_sum nothing = {.end = STG_LETTERS_DONE};

    d->call = NULL;
    if (sum->end != STG_LETTERS_DONE || store == NULL) {
        stg_change_refuse(call, 503, "the hub stops");
        nothing.end = STG_LETTERS_STOPPED;
        end_replay(d, &nothing);
        return;
    }
    r->is_counted = true;
    r->found = sum->letters;
    tell_messages(call, sum->messages);
    stg_change_done(call, 202, print_replay(r), true);
    if (d->choice->is_impossible)
        end_replay(d, &nothing);
    else
        stg_store_replay_watched(store, &d->choice->filter, &r->sum, end_replay,
                                 d);
}

static void begin_replay(asked *d)
{
    const stg_letters_sum nothing = {.end = STG_LETTERS_DONE};

    d->replay = begin_call(d->admin, d->ask)->id;
    d->ask = NULL;
    if (d->choice->is_impossible)
        go_on(d, &nothing);
    else
        stg_store_replay(d->admin->hub->store, &d->choice->filter, true, go_on,
                         d);
}

/* -- drop -------------------------------------------------------------------- */

/* A drop that was cut short stays done as far as it came: the answer says how many. */
static void end_drop(void *ctx, const stg_letters_sum *sum)
{
    asked *d = ctx;
    json_t *json = json_pack("{s:b}", "is_dry_run", 0);

    add_sum(json, sum);
    if (sum->end == STG_LETTERS_DONE) {
        tell_messages(d->call, sum->messages);
        stg_change_done(d->call, 200, json, true);
    } else {
        json_decref(json);
        stg_change_refuse(d->call, 503,
                          "not all of them: %" PRIu64
                          " letters were dropped, "
                          "and then %s",
                          sum->letters,
                          sum->end == STG_LETTERS_FULL ? "the store was full"
                                                       : "the hub stopped");
    }
    free_asked(d);
}

/* The call has the request from here on. */
static void begin_drop(asked *d)
{
    const stg_letters_sum nothing = {.end = STG_LETTERS_DONE};

    d->ask = NULL;
    if (d->choice->is_impossible)
        end_drop(d, &nothing);
    else
        stg_store_drop(d->admin->hub->store, &d->choice->filter, false,
                       end_drop, d);
}

/* -- dry runs ---------------------------------------------------------------- */

static void end_dry_run(void *ctx, const stg_letters_sum *sum)
{
    asked *d = ctx;
    json_t *json = json_pack("{s:b,s:o}", "is_dry_run", 1, "sample", d->sample);

    add_sum(json, sum);
    stg_ask_answer_json(d->ask, 200, json);
    free_asked(d);
}

/* The sample first, then the sum: each is a question to the store, and
 * `letters` are lent. */
static void take_sample(void *ctx, const stg_letter *letters, size_t count,
                        uint64_t next)
{
    asked *d = ctx;
    stg_store *store = d->admin->hub->store;
    const stg_letter_filter *f = &d->choice->filter;

    (void)next;
    d->sample = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(d->sample, stg_admin_print_letter(&letters[i]));
    if (store == NULL) { // the hub is closing
        json_decref(d->sample);
        stg_ask_refuse(d->ask, 503, "the store is closed");
        free_asked(d);
    } else if (d->is_drop) {
        stg_store_drop(store, f, true, end_dry_run, d);
    } else {
        stg_store_replay(store, f, true, end_dry_run, d);
    }
}

/* The sample has only what is dead now, as the change itself would. */
static void begin_dry_run(asked *d)
{
    enum { SAMPLE = 10 };
    const stg_letters_sum nothing = {.end = STG_LETTERS_DONE};

    d->choice->filter.state = "dead";
    if (!d->choice->is_impossible) {
        stg_store_letters(d->admin->hub->store, &d->choice->filter, 0, SAMPLE,
                          false, take_sample, d);
        return;
    }
    d->sample = json_array();
    end_dry_run(d, &nothing);
}

/* -- handlers ---------------------------------------------------------------- */

static asked *make_asked(stg_admin *a, stg_ask *ask, bool is_drop)
{
    asked *d = calloc(1, sizeof *d);
    stg_choice *choice = calloc(1, sizeof *choice);

    if (d == NULL || choice == NULL) {
        free(d);
        free(choice);
        stg_ask_refuse(ask, 503, "no memory");
        return NULL;
    }
    *d = (asked){.admin = a, .ask = ask, .choice = choice, .is_drop = is_drop};
    if (stg_choice_read_body(choice, a, ask))
        return d;
    free_asked(d);
    return NULL;
}

static void begin_change(asked *d)
{
    stg_admin *a = d->admin;
    char which[640]; // the longest texts, and ten ids

    stg_choice_print(d->choice, which, sizeof which);
    d->call =
        stg_change_begin(a, d->ask, d->is_drop ? "drop" : "replay",
                         json_pack("{s:O,s:o}", "letters", d->choice->json,
                                   "detail", stg_json_text(which)));
    if (d->call == NULL)
        free_asked(d);
    else if (d->is_drop)
        begin_drop(d);
    else if (a->replays_running < STG_REPLAYS_RUNNING_MAX)
        begin_replay(d);
    else {
        stg_change_refuse(d->call, 429, "%u replays are running",
                          a->replays_running);
        free_asked(d);
    }
}

static void begin(stg_admin *a, stg_ask *ask, bool is_drop)
{
    asked *d;

    if (a->hub->store == NULL || a->hub->is_broken) {
        stg_ask_refuse(ask, 503, "the store is closed");
        return;
    }
    d = make_asked(a, ask, is_drop);
    if (d == NULL)
        return;
    if (d->choice->is_dry_run)
        begin_dry_run(d);
    else
        begin_change(d);
}

void stg_admin_replay(void *admin, stg_ask *ask)
{
    begin(admin, ask, false);
}

void stg_admin_drop(void *admin, stg_ask *ask)
{
    begin(admin, ask, true);
}

void stg_admin_replays(void *admin, stg_ask *ask)
{
    stg_admin *a = admin;
    json_t *list = json_array();

    for (uint64_t id = a->last_replay, left = STG_REPLAYS_MAX;
         id > 0 && left > 0; id--, left--) {
        const stg_replay *r = find_replay(a, id);

        if (r != NULL)
            json_array_append_new(list, print_replay(r));
    }
    stg_ask_answer_json(ask, 200, json_pack("{s:o}", "replays", list));
}

/* Replays are remembered in memory: not over a restart, and the last ones only. */
void stg_admin_one_replay(void *admin, stg_ask *ask)
{
    const char *word = stg_ask_word(ask, 0);
    char *end;
    uint64_t id = strtoull(word, &end, 10);
    const stg_replay *r;

    if (*word < '1' || *word > '9' || *end != '\0') {
        stg_ask_refuse(ask, 400, "expected the number of a replay");
        return;
    }
    r = find_replay(admin, id);
    if (r == NULL)
        stg_ask_refuse(ask, 404,
                       "there is no replay of this number since the start of "
                       "the hub, or it was long ago");
    else
        stg_ask_answer_json(ask, 200, print_replay(r));
}
