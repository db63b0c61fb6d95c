#include "sim/delivery/internal.h"

#include <string.h>

/* The targets of a world, and what they see of attempts. What a target has
 * really processed is counted when an attempt ends, also where the hub is told
 * of a fault: a crash in between loses the answer and not the message.
 *
 * A target is asked at the start of an attempt, and the hub hears the answer at
 * its end. So a script goes on in the order of starts, whatever the order in
 * which attempts end. A cancelled or timed out attempt changes what the hub
 * hears, and never is_processed. */

enum { SCRIPT_TOOK = 10 * STG_MS };

stg_world_answer stg_world_answer_ok(stg_world *w, uint32_t lane,
                                     uint64_t position, uint64_t attempt)
{
    (void)w;
    (void)lane;
    (void)position;
    (void)attempt;
    return (stg_world_answer){stg_ok(), SCRIPT_TOOK, true};
}

void stg_world_set_target(stg_world *w, uint32_t lane, stg_world_target *answer)
{
    w->lanes[lane]->target = answer;
}

void stg_world_set_dialing(stg_world *w, uint32_t lane, bool is_dialing)
{
    w->lanes[lane]->is_dialing = is_dialing;
}

void stg_world_set_signing_in(stg_world *w, uint32_t lane, bool is_signing_in)
{
    w->lanes[lane]->is_signing_in = is_signing_in;
}

static stg_world_answer answer_same(stg_world *w, uint32_t lane,
                                    uint64_t position, uint64_t attempt)
{
    (void)position;
    (void)attempt;
    return w->lanes[lane]->same;
}

void stg_world_set_answer(stg_world *w, uint32_t lane, stg_outcome outcome,
                          stg_ns took)
{
    w->lanes[lane]->same =
        (stg_world_answer){outcome, took, outcome.fault == STG_FAULT_NONE};
    w->lanes[lane]->target = answer_same;
}

/* -- a script -------------------------------------------------------------- */

static const struct {
    const char *name;
    stg_fault fault;
} faults[] = {
    {"refused", STG_FAULT_REFUSED},
    {"timeout", STG_FAULT_TIMEOUT},
    {"connect-timeout", STG_FAULT_CONNECT_TIMEOUT},
    {"reset", STG_FAULT_RESET},
    {"protocol", STG_FAULT_PROTOCOL},
    {"dns", STG_FAULT_DNS},
};

static bool is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

/* Up to six digits. Returns what follows them; NULL: there are none. */
static const char *read_number(const char *text, const char *end, int *number)
{
    const char *at = text;

    for (*number = 0; at < end && *at >= '0' && *at <= '9'; at++) {
        if (at - text == 6)
            return NULL;
        *number = *number * 10 + (*at - '0');
    }
    return at == text ? NULL : at;
}

/* "503", "429+2" */
static bool read_status(const char *text, const char *end, stg_outcome *outcome)
{
    int status, seconds = 0;
    const char *at = read_number(text, end, &status);

    if (at != NULL && at < end && *at == '+')
        at = read_number(at + 1, end, &seconds);
    if (at != end || status < 200 || status > 599)
        return false;
    *outcome = stg_answered_after(status, (stg_ns)seconds * STG_S);
    return true;
}

bool stg_world_read_answer(const char *text, size_t length, stg_world_answer *a)
{
    *a = (stg_world_answer){.took = SCRIPT_TOOK};
    if (is_word(text, length, "hang")) {
        a->outcome = stg_failed(STG_FAULT_TIMEOUT);
        a->took = STG_NEVER;
        return true;
    }
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (is_word(text, length, faults[i].name)) {
            a->outcome = stg_failed(faults[i].fault);
            return true;
        }
    if (!read_status(text, text + length, &a->outcome))
        return false;
    a->is_processed = a->outcome.fault == STG_FAULT_NONE;
    return true;
}

/* The last answer repeats. */
static stg_world_answer answer_script(stg_world *w, uint32_t lane,
                                      uint64_t position, uint64_t attempt)
{
    stg_world_lane *l = w->lanes[lane];
    uint32_t at = l->script_at;

    (void)position;
    (void)attempt;
    if (at + 1 < l->script_count)
        l->script_at++;
    return l->script[at];
}

static size_t count_while(const char *text, bool is_space)
{
    size_t count = 0;

    while (text[count] != '\0' && (text[count] == ' ') == is_space)
        count++;
    return count;
}

/* Reads the words into `script`, which has room for one a byte of the text.
 * Returns how many; 0: there is none, or one that is no answer. */
static uint32_t read_script(const char *text, stg_world_answer *script)
{
    uint32_t count = 0;

    for (text += count_while(text, true); *text != '\0';
         text += count_while(text, true)) {
        size_t length = count_while(text, false);

        if (!stg_world_read_answer(text, length, &script[count]))
            return 0;
        count++;
        text += length;
    }
    return count;
}

stg_status stg_world_set_script(stg_world *w, uint32_t lane,
                                const char *answers)
{
    stg_world_lane *l = w->lanes[lane];
    stg_world_answer *script;
    uint32_t count;

    script = stg_world_allocate(w, strlen(answers) + 1, sizeof *script);
    if (script == NULL)
        return STG_IO;
    count = read_script(answers, script);
    if (count == 0) {
        stg_world_release(w, script);
        return STG_INVALID;
    }
    stg_world_release(w, l->script);
    l->script = script;
    l->script_count = count;
    l->script_at = 0;
    l->target = answer_script;
    return STG_OK;
}

/* -- an attempt ------------------------------------------------------------ */

/* What the hub gets to know when the attempt has had its time. One that was
 * unsent waited for something of the hub's own: no timeout of the target, but
 * cancelled. */
static void time_out(stg_world_answer *a, stg_ns timeout)
{
    bool is_unsent = a->outcome.unsent;

    if (a->took <= timeout)
        return;
    a->took = timeout;
    a->outcome =
        stg_failed(is_unsent ? STG_FAULT_CANCELLED : STG_FAULT_TIMEOUT);
    a->outcome.unsent = is_unsent;
}

/* A message that was never published has failed the world (I11), and no attempt
 * is made. */
void stg_world_begin_attempt(stg_world *w, const stg_action *a)
{
    const stg_message *m = a->start.message;
    stg_world_lane *l = w->lanes[a->lane];
    uint64_t i = stg_world_index(w, m->partition, m->position);
    stg_world_answer answer;
    stg_world_event *e;

    if (i == w->log_count)
        return;
    stg_world_check_start(w, a, i);
    answer = l->target(w, a->lane, m->position, a->start.attempt);
    time_out(&answer, a->start.timeout);
    l->receipts[i].started_at = w->now;
    l->receipts[i].attempts++;
    l->starts++;
    l->in_flight++;
    if (l->in_flight > l->peak)
        l->peak = l->in_flight;
    e = stg_world_post(w, STG_WORLD_ENDED, answer.took);
    if (e == NULL)
        return;
    e->lane = a->lane;
    e->partition = m->partition;
    e->attempt.delivery = a->start.delivery;
    e->attempt.replay = a->start.replay;
    e->attempt.position = m->position;
    e->attempt.index = i;
    e->attempt.answer = answer;
    stg_delivery_attach(a->start.delivery, e);
    stg_world_check_touched(w, e->lane, e->partition);
}

void stg_world_cancel_attempt(stg_world *w, const stg_action *a)
{
    stg_world_event *e = a->cancel.attempt;
    stg_outcome *outcome = &e->attempt.answer.outcome;
    bool is_unsent = outcome->unsent;

    // The target may have taken it, and the hub will not know.
    e->at = w->now;
    stg_world_moved(w, e);
    *outcome = stg_failed(STG_FAULT_CANCELLED);
    outcome->unsent = is_unsent;
}

static stg_world_receipt *find_receipt(stg_world *w, const stg_world_event *e)
{
    return &w->lanes[e->lane]->receipts[e->attempt.index];
}

void stg_world_count_processed(stg_world *w, const stg_world_event *e)
{
    const stg_world_answer *a = &e->attempt.answer;
    stg_world_receipt *r = find_receipt(w, e);

    r->processed += a->is_processed;
    if (a->outcome.fault != STG_FAULT_NONE)
        r->unknown += a->is_processed;
}

/* Flow decides, and the receipt notes what must hold from then on: the message
 * is over, or was not tried at all (put back), or starts no earlier than it is
 * due. */
void stg_world_end_attempt(stg_world *w, stg_world_event *e)
{
    stg_world_receipt *r = find_receipt(w, e);
    stg_end ended = {.outcome = e->attempt.answer.outcome,
                     .detail = "as told",
                     .answer = "answer",
                     .answer_size = 6,
                     .dialed_at = w->lanes[e->lane]->is_dialing ? w->now : 0,
                     .is_unauthorized = w->lanes[e->lane]->is_signing_in &&
                                        e->attempt.answer.outcome.code == 401};
    stg_verdict v;

    w->lanes[e->lane]->in_flight--;
    stg_world_count_processed(w, e);
    r->ended_at = w->now;
    if (ended.outcome.fault == STG_FAULT_NONE) {
        w->delivered++;
        r->lied += !e->attempt.answer.is_processed;
    }
    v = stg_flow_ended(w->flow, e->attempt.delivery, &ended, w->now);
    stg_world_trace_end(w, e, &v);
    if (v.decision.next != STG_WAIT)
        r->is_over = true;
    else if (stg_world_is_put_back(&v))
        r->attempts--;
    else
        r->not_before = v.decision.due_at;
    stg_world_check_touched(w, e->lane, e->partition);
}
