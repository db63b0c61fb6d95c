#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "http/internal.h"

/* An exchange on a connection: its phases (resolve, connect, tunnel, TLS, write,
 * wait, read), the time that each may take, and its end.
 *
 * An exchange ends once, by tell(), and that is the last use of the
 * connection: who is told may send, cancel and free. Nobody is told from
 * within send, so failures there go by stg_connection_fail_later(), which ends
 * the exchange in the loop's next turn. `unsent` is said only where the other
 * side cannot have read a byte of the request: by it a retry is safe. */

/* -- deadlines ------------------------------------------------------------- */

/* 0 is due in the loop's next turn. While the exchange waits for something of
 * ours (a turn to dial, a thread of the resolver), the time of its phase
 * stands still; it waits no longer than the whole exchange may take. */
static stg_ns due_at(const stg_connection *c)
{
    const stg_exchange *x = &c->exchange;

    if (!c->has_exchange)
        return c->phase == STG_PHASE_IDLE ? c->phase_at : STG_NEVER;
    if (x->error != 0 || x->is_cancelled)
        return 0;
    if (c->is_waiting)
        return stg_ns_add(c->wait_at, stg_ns_sub(x->whole_at, x->begun_at));
    return stg_ns_min(c->phase_at, x->whole_at);
}

/* One deadline serves all phases, and all exchanges one after the other: it is
 * only moved to be earlier, and looks again when it passes. So most exchanges
 * do not touch the heap. */
static void watch(stg_connection *c)
{
    stg_ns at = due_at(c);

    if (at < stg_deadline_at(&c->deadline))
        stg_deadline_set(&c->client->deadlines, &c->deadline, at);
}

void stg_connection_enter(stg_connection *c, stg_exchange_phase phase,
                          stg_ns at)
{
    c->phase = phase;
    c->phase_at = at;
    watch(c);
}

void stg_connection_wait(stg_connection *c)
{
    if (c->is_waiting)
        return;
    c->is_waiting = true;
    c->wait_at = stg_deadlines_now();
    watch(c);
}

/* All instants move by the time that was waited: the target is not charged for
 * it. */
void stg_connection_go_on(stg_connection *c)
{
    stg_ns waited;

    if (!c->is_waiting)
        return;
    c->is_waiting = false;
    waited = stg_ns_sub(stg_deadlines_now(), c->wait_at);
    c->exchange.begun_at = stg_ns_add(c->exchange.begun_at, waited);
    c->exchange.whole_at = stg_ns_add(c->exchange.whole_at, waited);
    if (c->dial_at != 0)
        c->dial_at = stg_ns_add(c->dial_at, waited);
}

/* -- the end --------------------------------------------------------------- */

void stg_connection_forget_answer(stg_connection *c)
{
    if (c->answer == NULL)
        return;
    stg_answer_close(c->answer);
    if (c->answer != &c->client->answer)
        free(c->answer);
    c->answer = NULL;
}

static void forget_headers(stg_connection *c)
{
    free(c->exchange.kept);
    c->exchange.kept = NULL;
}

/* Nothing points to c any more: its sockets are closed, and its exchange was
 * told, of which nothing is kept. */
static void release(stg_connection *c)
{
    stg_client *client = c->client;

    stg_deadline_clear(&client->deadlines, &c->deadline);
    stg_dial_end(c);
    if (c->tls != NULL)
        stg_tls_free(c->tls);
    free(c);
    stg_client_release(client);
}

/* The last socket and the end of the exchange come in any order: the later of
 * them frees c. */
void stg_connection_closed(stg_connection *c)
{
    if (--c->handles == 0 && !c->has_exchange)
        release(c);
}

void stg_connection_close(stg_connection *c)
{
    if (c->phase == STG_PHASE_ENDED)
        return;
    if (c->phase == STG_PHASE_IDLE && stg_list_has(&c->link))
        c->endpoint->idle_count--;
    c->exchange.ended_in = c->phase;
    c->phase = STG_PHASE_ENDED;
    stg_list_remove(&c->link);
    stg_list_remove(&c->waiting);
    if (!c->has_exchange) {
        c->endpoint = NULL;
        stg_deadline_clear(&c->client->deadlines, &c->deadline);
    }
    stg_dial_close(c);
}

/* The exchange is over and c in the pool, closing or closed; where its socket was
 * handed over, it is freed here. The last thing that is done with c: what is told
 * may send, cancel and free. */
static void tell(stg_connection *c, stg_endpoint *e, stg_reply *reply)
{
    stg_exchange *x = &c->exchange;
    bool is_gone = c->handles == 0;
    size_t size = 0;
    char *excerpt =
        c->answer == NULL ? NULL : stg_answer_take_excerpt(c->answer, &size);

    stg_connection_forget_answer(c);
    forget_headers(c);
    reply->answer = (stg_span){excerpt != NULL ? excerpt : "", size};
    reply->is_reused = x->is_reused;
    reply->dialed_at = x->dialed_at;
    if (c->phase == STG_PHASE_ENDED)
        c->endpoint = NULL;
    stg_endpoint_leave(e);
    x->done(x->ctx, reply);
    free(excerpt);
    if (is_gone)
        release(c);
}

/* Returns whose it was. */
static stg_endpoint *end_exchange(stg_connection *c)
{
    c->has_exchange = false;
    c->endpoint->busy--;
    return c->endpoint;
}

/* Whatever was sent of the request was not read by anyone: none was. */
static bool is_unsent(const stg_connection *c)
{
    stg_exchange_phase phase = c->exchange.ended_in;

    return phase < STG_PHASE_WRITE ||
           (phase == STG_PHASE_WRITE && c->exchange.sent == 0);
}

void stg_connection_fail(stg_connection *c, stg_outcome outcome,
                         const char *detail)
{
    stg_reply reply = {.outcome = outcome, .detail = detail};

    stg_connection_close(c);
    reply.outcome.unsent = is_unsent(c);
    if (c->exchange.ended_in <= STG_PHASE_TUNNEL &&
        outcome.fault != STG_FAULT_CANCELLED &&
        (outcome.fault != STG_FAULT_EGRESS ||
         c->exchange.ended_in == STG_PHASE_TUNNEL)) // its proxy was reached
        c->exchange.dialed_at = stg_deadlines_now();
    if (c->answer != NULL && c->answer->status >= 200)
        reply.status = c->answer->status;
    reply.took = stg_ns_sub(stg_deadlines_now(), c->exchange.begun_at);
    tell(c, end_exchange(c), &reply);
}

/* It has waited for something of ours for as long as it may take. Such an
 * exchange is no attempt, and the sender tries it again. */
static void put_back(stg_connection *c)
{
    stg_reply reply = {.outcome = stg_failed(STG_FAULT_CANCELLED),
                       .detail = "not tried: it waited for its turn to connect",
                       .is_put_back = true};

    stg_connection_close(c);
    reply.outcome.unsent = true;
    reply.took = stg_ns_sub(stg_deadlines_now(), c->exchange.begun_at);
    tell(c, end_exchange(c), &reply);
}

void stg_connection_fail_later(stg_connection *c, int error)
{
    stg_connection_close(c);
    c->exchange.error = error;
    watch(c);
}

/* done is called in the loop's next turn, as cancelled. */
void stg_exchange_cancel(stg_exchange *x)
{
    stg_connection *c =
        (stg_connection *)(void *)((char *)x -
                                   offsetof(stg_connection, exchange));

    stg_connection_close(c);
    x->is_cancelled = true;
    watch(c);
}

/* -- failures -------------------------------------------------------------- */

static bool is_local(const stg_outcome *o)
{
    return stg_fault_about(o->fault)->category == STG_CATEGORY_LOCAL;
}

static void fail_errno(stg_connection *c, stg_exchange_phase phase, int error)
{
    stg_outcome outcome = stg_failed_errno(-error);

    // A shortage of this machine is no fault of the target's, unless some of
    // the request may have gone out.
    if (error == UV_EOF || (stg_is_shortage(error) && phase >= STG_PHASE_WRITE))
        outcome = stg_failed(STG_FAULT_RESET);
    else if (error == UV_ETIMEDOUT && phase == STG_PHASE_CONNECT)
        outcome = stg_failed(STG_FAULT_CONNECT_TIMEOUT);
    if (stg_connection_is_at_proxy(c, phase) && !is_local(&outcome))
        outcome = stg_failed(STG_FAULT_PROXY);
    stg_connection_fail(c, outcome,
                        stg_connection_print_error(c, phase, error));
}

/* A proxy that the hub itself forbids is one that is away: no message is at
 * fault. */
static void refuse_address(stg_connection *c, int error)
{
    bool is_proxy =
        c->endpoint->proxy != NULL && !stg_dial_is_target_refused(c);
    stg_fault fault =
        error == STG_ERROR_EGRESS ? STG_FAULT_EGRESS : STG_FAULT_UNREACHABLE;
    stg_outcome outcome = stg_failed(is_proxy ? STG_FAULT_PROXY : fault);

    outcome.permanent = !is_proxy; // whatever the policy says of connections
    stg_connection_fail(c, outcome,
                        stg_connection_print_refusal(c, is_proxy, error));
}

/* -- time ------------------------------------------------------------------ */

static void time_out(stg_connection *c)
{
    static const stg_fault faults[] = {
        [STG_PHASE_RESOLVE] = STG_FAULT_DNS_TEMPORARY,
        [STG_PHASE_CONNECT] = STG_FAULT_CONNECT_TIMEOUT,
        [STG_PHASE_TUNNEL] = STG_FAULT_CONNECT_TIMEOUT,
        [STG_PHASE_TLS] = STG_FAULT_TLS_TIMEOUT,
        [STG_PHASE_WRITE] = STG_FAULT_TIMEOUT,
        [STG_PHASE_WAIT] = STG_FAULT_TIMEOUT,
        [STG_PHASE_READ] = STG_FAULT_TIMEOUT,
    };
    stg_exchange_phase phase = c->phase;
    stg_fault fault = faults[phase];

    // An address that does not answer leaves time for the others.
    if (phase == STG_PHASE_CONNECT && stg_deadlines_now() < c->dial_at &&
        stg_dial_has_next(c)) {
        stg_dial_next(c);
        return;
    }
    if (c->endpoint->proxy != NULL && phase <= STG_PHASE_CONNECT)
        fault = STG_FAULT_PROXY;
    stg_connection_fail(c, stg_failed(fault),
                        stg_connection_print_timeout(c, phase));
}

/* The deadline is never moved to be later, so it may pass before anything is
 * due: then it is set again. */
static void pass(stg_deadline *d)
{
    stg_connection *c = (stg_connection *)d;
    const stg_exchange *x = &c->exchange;
    stg_ns at = due_at(c);

    if (at > stg_deadlines_now())
        stg_deadline_set(&c->client->deadlines, d, at);
    else if (!c->has_exchange)
        stg_connection_close(c);
    else if (x->is_cancelled)
        stg_connection_fail(c, stg_failed(STG_FAULT_CANCELLED), "cancelled");
    else if (x->error == STG_ERROR_EGRESS || x->error == STG_ERROR_FAMILY)
        refuse_address(c, x->error);
    else if (x->error != 0)
        fail_errno(c, x->ended_in, x->error);
    else if (c->is_waiting)
        put_back(c);
    else
        time_out(c);
}

/* -- the answer ------------------------------------------------------------ */

/* "HTTP 200", and what became of the rest. */
static const char *print_status(stg_connection *c)
{
    char *detail = c->client->detail;

    // By hand: it is on the path of every delivery.
    for (int i = 0; i < 9; i++)
        detail[i] = "HTTP 000"[i];
    detail[5] = (char)('0' + c->answer->status / 100);
    detail[6] = (char)('0' + c->answer->status / 10 % 10);
    detail[7] = (char)('0' + c->answer->status % 10);
    if (c->answer->state == STG_ANSWER_CUT)
        (void)snprintf(detail + 8, sizeof c->client->detail - 8,
                       ", cut after %llu bytes of its body",
                       (unsigned long long)c->answer->body_size);
    return detail;
}

/* An answer that comes before the whole request is sent is the answer, and the
 * end of the connection: what of the request is still to come has no reader. */
static bool is_reusable(const stg_connection *c)
{
    return c->answer->state == STG_ANSWER_WHOLE && c->answer->keeps_alive &&
           !c->answer->has_leftover && c->phase > STG_PHASE_WRITE &&
           !c->endpoint->is_retired;
}

/* RFC 5842, section 7.2: of a hub, to a message that comes round. */
static stg_outcome classify_answer(uint16_t status, stg_ns delay)
{
    enum { LOOP_DETECTED = 508 };
    stg_outcome outcome = stg_answered_after(status, delay);

    if (outcome.fault == STG_FAULT_INVALID) // no status, but the target's word
        outcome.fault = STG_FAULT_PROTOCOL;
    if (status == LOOP_DETECTED) {
        outcome.fault = STG_FAULT_LOOP;
        outcome.permanent = true; // whatever the policy says of 5xx
    }
    return outcome;
}

static void answered(stg_connection *c)
{
    stg_ns now = stg_deadlines_now();
    // One that took the message is not asked when to come again.
    bool is_taken = c->answer->status / 100 == 2;
    stg_ns delay =
        is_taken ? 0 : stg_answer_delay(c->answer, (int64_t)time(NULL));
    stg_reply reply = {
        .outcome = classify_answer(c->answer->status, delay),
        .status = c->answer->status,
        .detail = print_status(c),
        .took = stg_ns_sub(now, c->exchange.begun_at),
    };
    stg_endpoint *e;

    // The connection is in the pool before done() is called, which may send
    // again.
    e = end_exchange(c);
    if (is_reusable(c))
        stg_endpoint_keep(e, c, now);
    else
        stg_connection_close(c);
    tell(c, e, &reply);
}

static void refuse_answer(stg_connection *c)
{
    (void)snprintf(c->client->detail, sizeof c->client->detail,
                   "answer of %s: %s, after %llu bytes", c->endpoint->peer,
                   c->answer->why, (unsigned long long)c->answer->size);
    stg_connection_fail(c, stg_failed(STG_FAULT_PROTOCOL), c->client->detail);
}

stg_answer *stg_connection_answer(stg_connection *c)
{
    const stg_endpoint *e = c->endpoint;

    if (c->answer == NULL) {
        c->answer = &c->client->answer;
        // A 2xx to CONNECT has no body, and that of another is not read.
        if (c->phase == STG_PHASE_TUNNEL)
            stg_answer_begin(c->answer, 0, 0, true);
        else
            stg_answer_begin(c->answer, e->common->answer_max,
                             e->common->excerpt_max, e->is_to_head);
    }
    return c->answer;
}

/* There is more to come: the client's is for others until then. */
void stg_connection_await_more(stg_connection *c)
{
    if (c->phase == STG_PHASE_WAIT)
        stg_connection_enter(c, STG_PHASE_READ, STG_NEVER);
    if (c->answer != &c->client->answer)
        return;
    c->answer = stg_answer_copy(&c->client->answer);
    if (c->answer != NULL)
        return;
    stg_answer_close(&c->client->answer);
    stg_connection_fail_later(c, UV_ENOMEM);
}

void stg_connection_settle(stg_connection *c)
{
    switch (c->answer->state) {
    case STG_ANSWER_OPEN:
        stg_connection_await_more(c);
        break;
    case STG_ANSWER_BROKEN:
        refuse_answer(c);
        break;
    default:
        answered(c);
    }
}

/* Where bytes of an answer came, the end may be that of its body; else the
 * phase has failed. */
void stg_connection_lost(stg_connection *c, int error, bool is_in_order)
{
    if (c->phase >= STG_PHASE_WRITE && stg_connection_heard(c) > 0 &&
        error == UV_EOF) {
        (void)stg_answer_end(c->answer, is_in_order);
        stg_connection_settle(c);
    } else {
        fail_errno(c, c->phase, error);
    }
}

/* -- the beginning --------------------------------------------------------- */

stg_connection *stg_connection_new(stg_endpoint *e, stg_ns now)
{
    stg_connection *c = calloc(1, sizeof *c);

    if (c == NULL)
        return NULL;
    stg_client_hold(e->client);
    c->deadline.passed = pass;
    c->client = e->client;
    c->endpoint = e;
    c->made_at = now;
    stg_list_init(&c->dials);
    c->phase = STG_PHASE_RESOLVE;
    return c;
}

/* "Content-Length: N\r\n\r\n", by hand: it is on the path of every delivery. */
static void print_length(stg_exchange *x)
{
    static const char name[] = "Content-Length: ";
    size_t number = x->body.size, digits = 1, at;

    for (size_t rest = number; rest >= 10; rest /= 10)
        digits++;
    at = sizeof name - 1;
    for (size_t i = 0; i < at; i++)
        x->length[i] = name[i];
    for (size_t i = digits; i > 0; i--, number /= 10)
        x->length[at + i - 1] = (char)('0' + number % 10);
    at += digits;
    for (int i = 0; i < 4; i++)
        x->length[at++] = "\r\n\r\n"[i];
    x->length_size = (uint8_t)at;
}

void stg_connection_begin_request(stg_connection *c)
{
    stg_connection_enter(c, STG_PHASE_WRITE,
                         stg_from_now(c->endpoint->common->write_timeout));
    stg_wire_write(c);
}

/* Headers are lent for the call of send only, bodies until the exchange
 * ends. */
bool stg_connection_keep_headers(stg_connection *c)
{
    stg_exchange *x = &c->exchange;

    if (x->kept != NULL || x->headers.size == 0)
        return true;
    x->kept = malloc(x->headers.size);
    if (x->kept == NULL)
        return false;
    memcpy(x->kept, x->headers.at, x->headers.size);
    x->headers.at = x->kept;
    return true;
}

/* done is never called from within: what fails here at once is told in the
 * loop's next turn. */
void stg_connection_start(stg_connection *c, stg_span headers, stg_span body,
                          stg_ns timeout, stg_reply_fn *done, void *ctx,
                          stg_ns now)
{
    stg_exchange *x = &c->exchange;

    x->headers = headers;
    x->body = body;
    x->done = done;
    x->ctx = ctx;
    x->begun_at = now;
    x->whole_at = stg_ns_add(now, timeout);
    x->sent = 0;
    x->error = 0;
    x->dialed_at = 0;
    x->is_cancelled = false;
    x->is_reused = c->has_carried;
    print_length(x);
    c->has_exchange = true;
    c->has_carried = true;
    if (c->phase == STG_PHASE_IDLE)
        stg_connection_begin_request(c);
    else if (stg_connection_keep_headers(c))
        stg_dial_begin(c);
    else
        stg_connection_fail_later(c, UV_ENOMEM);
}

/* Egress is asked again: its rule may have changed while the connection was
 * made. */
void stg_connection_connected(stg_connection *c)
{
    stg_endpoint *e = c->endpoint;
    int error = stg_dial_is_allowed(c) ? stg_wire_open(c) : STG_ERROR_EGRESS;

    stg_dial_end(c);
    if (error != 0) {
        stg_connection_fail_later(c, error);
        return;
    }
    if (e->proxy != NULL)
        stg_tunnel_open(c);
    else
        stg_connection_reached(c);
}

void stg_connection_reached(stg_connection *c)
{
    stg_endpoint *e = c->endpoint;

    c->exchange.dialed_at = stg_deadlines_now();
    if (e->tls == NULL) {
        stg_connection_begin_request(c);
        return;
    }
    stg_connection_enter(c, STG_PHASE_TLS,
                         stg_from_now(e->common->tls_timeout));
    c->tls = stg_tls_new(e->tls, e->server_name, e->is_name_address);
    if (c->tls == NULL)
        stg_connection_fail_later(c, UV_ENOMEM);
    else
        stg_wire_shake_hands(c);
}

void stg_connection_secured(stg_connection *c)
{
    c->endpoint->certificate_until = stg_tls_peer_until(c->tls);
    stg_connection_begin_request(c);
}

void stg_connection_written(stg_connection *c)
{
    const stg_endpoint_common *o = c->endpoint->common;

    if (c->phase != STG_PHASE_WRITE)
        return;
    forget_headers(c);
    // The answer may begin before the request has ended.
    if (stg_connection_heard(c) > 0)
        stg_connection_enter(c, STG_PHASE_READ, STG_NEVER);
    else
        stg_connection_enter(c, STG_PHASE_WAIT,
                             stg_from_now(o->first_byte_timeout));
}
