#include <stagger/uv.h>

#include <stdio.h>
#include <stdlib.h>

#include "tests/adapters/story.h"
#include "tests/harness.h"

/* A loop, and the virtual time of what runs on it. */
typedef struct world {
    story story;
    uv_loop_t loop;
} world;

static void begin_world(world *w)
{
    story_begin(&w->story, "");
    CHECK(uv_loop_init(&w->loop) == 0);
}

/* Runs all there is to its end: no handle is left. */
static void end_world(world *w)
{
    CHECK_INT(uv_run(&w->loop, UV_RUN_DEFAULT), 0);
    CHECK_INT(uv_loop_close(&w->loop), 0);
}

/* -- later: calls a function after a delay, by an operation that fails once */

typedef struct later {
    stg_uv op;
    stg_policy policy;
    void (*call)(void *ctx);
    void *ctx;
} later;

static void pass_time(stg_uv *op, uint32_t attempt)
{
    stg_uv_report(op, attempt,
                  attempt == 1 ? stg_failed(STG_FAULT_REFUSED) : stg_ok());
}

static void call_now(stg_uv *op, const stg_report *report)
{
    later *l = op->data;

    CHECK_INT(report->next, STG_DONE);
    l->call(l->ctx);
    free(l);
}

static void call_later(world *w, stg_ns delay, void (*call)(void *), void *ctx)
{
    later *l = calloc(1, sizeof *l);

    CHECK(l != NULL);
    l->policy = policy_of("fixed base=0 jitter=none deadline=none");
    l->policy.backoff.base = delay;
    l->call = call;
    l->ctx = ctx;
    l->op.data = l;
    CHECK(stg_uv_retry(&w->loop, &l->op, &l->policy,
                       &(stg_with){.env = &w->story.env}, pass_time,
                       call_now) == STG_OK);
}

/* -- a request: an operation that plays a script, word by word an attempt
 *
 *     503       is reported before start() returns
 *     503@30    is reported 30 ms later
 *     -         is not reported
 *     cancel    the operation is cancelled before start() returns
 *     cancel@5  or 5 ms later */

typedef struct request {
    stg_uv op;
    world *world;
    const char *name, *script;
    unsigned ends;
    stg_report report;
} request;

static request request_of(world *w, const char *name, const char *script)
{
    return (request){.world = w, .name = name, .script = script};
}

/* What comes later, for one attempt. */
typedef struct reply {
    request *to;
    uint32_t attempt;
    int status; /* 0: cancel */
} reply;

static void give(const reply *r)
{
    if (r->status == 0)
        stg_uv_cancel(&r->to->op);
    else
        stg_uv_report(&r->to->op, r->attempt, stg_answered(r->status));
}

static void give_later(void *ctx)
{
    reply *r = ctx;

    if (r->status == 0)
        story_say(&r->to->world->story, "%s  cancel", r->to->name);
    else
        story_say(&r->to->world->story, "%s  %d to attempt %u", r->to->name,
                  r->status, r->attempt);
    give(r);
    free(r);
}

static void start(stg_uv *op, uint32_t attempt)
{
    request *r = op->data;
    reply said = {.to = r, .attempt = attempt}, *then;
    char word[32];
    const char *at;
    int length;

    CHECK(sscanf(r->script, "%31s%n", word, &length) == 1);
    r->script += length;
    story_say(&r->world->story, "%s  attempt %u: %s", r->name, attempt, word);
    said.status = atoi(word);
    at = strchr(word, '@');
    if (strcmp(word, "-") == 0)
        return;
    if (at == NULL) {
        give(&said);
        return;
    }
    then = malloc(sizeof *then);
    CHECK(then != NULL);
    *then = said;
    call_later(r->world, strtoull(at + 1, NULL, 10) * STG_MS, give_later, then);
}

static void done(stg_uv *op, const stg_report *report)
{
    request *r = op->data;
    char text[STG_REPORT_TEXT_MAX];

    r->ends++;
    r->report = *report;
    story_say(&r->world->story, "%s  %s", r->name,
              stg_report_text(report, text));
}

static void abandon(stg_uv *op, uint32_t attempt)
{
    request *r = op->data;

    story_say(&r->world->story, "%s  abandon %u", r->name, attempt);
}

/* On the virtual time of its world. */
static void post(request *r, const stg_policy *policy, stg_with with)
{
    with.env = &r->world->story.env;
    r->op.data = r;
    r->op.abandon = abandon;
    r->op.hedge = start;
    CHECK(stg_uv_retry(&r->world->loop, &r->op, policy, &with, start, done) ==
          STG_OK);
}

/* The trace of one request. */
static const char *trace(const char *text, const char *script)
{
    static world w;
    stg_policy policy = policy_of(text);
    request r = request_of(&w, "a", script);

    begin_world(&w);
    post(&r, &policy, (stg_with){0});
    end_world(&w);
    CHECK_INT(r.ends, 1);
    return w.story.trace;
}

TEST(uv, makes_one_attempt_when_it_succeeds)
{
    CHECK_TRACE(trace("client", "200"),
                "     0 ms  a  attempt 1: 200\n"
                "     0 ms  a  done after 1 attempt\n");
}

TEST(uv, takes_a_report_before_or_after_start_returns)
{
    CHECK_TRACE(trace("base=100ms jitter=none", "503 503@20 200@5"),
                "     0 ms  a  attempt 1: 503\n"
                "   100 ms  a  attempt 2: 503@20\n"
                "   120 ms  a  503 to attempt 2\n"
                "   320 ms  a  attempt 3: 200@5\n"
                "   325 ms  a  200 to attempt 3\n"
                "   325 ms  a  done after 3 attempts in 325 ms\n");
}

TEST(uv, gives_up_as_the_policy_says)
{
    CHECK_TRACE(trace("fixed base=1s jitter=none attempts=2", "503 502"),
                "     0 ms  a  attempt 1: 503\n"
                "  1000 ms  a  attempt 2: 502\n"
                "  1000 ms  a  gave up after 2 attempts in 1 s: 502 "
                "(attempts)\n");
    CHECK_TRACE(trace("client", "404@1"),
                "     0 ms  a  attempt 1: 404@1\n"
                "     1 ms  a  404 to attempt 1\n"
                "     1 ms  a  gave up after 1 attempt in 1 ms: 404 "
                "(permanent)\n");
    CHECK_TRACE(trace("fixed base=1s jitter=none deadline=1500ms", "503 503"),
                "     0 ms  a  attempt 1: 503\n"
                "  1000 ms  a  attempt 2: 503\n"
                "  1000 ms  a  gave up after 2 attempts in 1 s: 503 "
                "(deadline)\n");
}

TEST(uv, hedges_a_slow_attempt_and_cancels_the_loser)
{
    CHECK_TRACE(trace("hedge=100ms", "200@500 200@20"),
                "     0 ms  a  attempt 1: 200@500\n"
                "   100 ms  a  attempt 2: 200@20\n"
                "   120 ms  a  200 to attempt 2\n"
                "   120 ms  a  abandon 1\n"
                "   120 ms  a  done after 1 attempt and 1 hedge in 120 ms\n"
                "   500 ms  a  200 to attempt 1\n");
    CHECK_TRACE(trace("hedge=100ms:3", "- - 200@300 -"),
                "     0 ms  a  attempt 1: -\n"
                "   100 ms  a  attempt 2: -\n"
                "   200 ms  a  attempt 3: 200@300\n"
                "   300 ms  a  attempt 4: -\n"
                "   500 ms  a  200 to attempt 3\n"
                "   500 ms  a  abandon 1\n"
                "   500 ms  a  abandon 2\n"
                "   500 ms  a  abandon 4\n"
                "   500 ms  a  done after 1 attempt and 3 hedges in 500 ms\n");
    // Not where the first one is fast, and not before start() returns.
    CHECK_TRACE(trace("hedge=100ms", "200@99"),
                "     0 ms  a  attempt 1: 200@99\n"
                "    99 ms  a  200 to attempt 1\n"
                "    99 ms  a  done after 1 attempt in 99 ms\n");
    CHECK_TRACE(trace("hedge=100ms", "- 200"),
                "     0 ms  a  attempt 1: -\n"
                "   100 ms  a  attempt 2: 200\n"
                "   100 ms  a  abandon 1\n"
                "   100 ms  a  done after 1 attempt and 1 hedge in 100 ms\n");
}

TEST(uv, retries_when_all_of_a_round_have_failed)
{
    CHECK_TRACE(trace("fixed base=1s jitter=none hedge=100ms attempts=2",
                      "503@150 502@200 404@150 -"),
                "     0 ms  a  attempt 1: 503@150\n"
                "   100 ms  a  attempt 2: 502@200\n"
                "   150 ms  a  503 to attempt 1\n"
                "   300 ms  a  502 to attempt 2\n"
                "  1300 ms  a  attempt 3: 404@150\n"
                "  1400 ms  a  attempt 4: -\n"
                "  1450 ms  a  404 to attempt 3\n"
                "  1450 ms  a  abandon 4\n"
                "  1450 ms  a  gave up after 2 attempts and 2 hedges in 1.5 s: "
                "404 (permanent)\n");
}

TEST(uv, ends_each_attempt_of_a_round_in_its_own_time)
{
    CHECK_TRACE(trace("attempts=1 hedge=100ms attempt-timeout=300ms", "- -"),
                "     0 ms  a  attempt 1: -\n"
                "   100 ms  a  attempt 2: -\n"
                "   300 ms  a  abandon 1\n"
                "   400 ms  a  abandon 2\n"
                "   400 ms  a  gave up after 1 attempt and 1 hedge in 400 ms: "
                "timeout (attempts)\n");
    CHECK_TRACE(trace("deadline=250ms hedge=100ms:3", "- - -"),
                "     0 ms  a  attempt 1: -\n"
                "   100 ms  a  attempt 2: -\n"
                "   200 ms  a  attempt 3: -\n"
                "   250 ms  a  abandon 1\n"
                "   250 ms  a  abandon 2\n"
                "   250 ms  a  abandon 3\n"
                "   250 ms  a  gave up after 1 attempt and 2 hedges in 250 ms: "
                "timeout (deadline)\n");
}

TEST(uv, cancels_all_attempts_of_a_round)
{
    CHECK_TRACE(trace("hedge=100ms", "cancel@150 -"),
                "     0 ms  a  attempt 1: cancel@150\n"
                "   100 ms  a  attempt 2: -\n"
                "   150 ms  a  cancel\n"
                "   150 ms  a  abandon 1\n"
                "   150 ms  a  abandon 2\n"
                "   150 ms  a  gave up after 1 attempt and 1 hedge in 150 ms: "
                "it was cancelled (cancelled)\n");
    CHECK_TRACE(trace("hedge=100ms", "- cancel"),
                "     0 ms  a  attempt 1: -\n"
                "   100 ms  a  attempt 2: cancel\n"
                "   100 ms  a  abandon 1\n"
                "   100 ms  a  abandon 2\n"
                "   100 ms  a  gave up after 1 attempt and 1 hedge in 100 ms: "
                "it was cancelled (cancelled)\n");
}

/* The caller cancels while it is told of the loser: the end stays what it
 * was. */
static void cancel_in_abandon(stg_uv *op, uint32_t attempt)
{
    abandon(op, attempt);
    stg_uv_report(op, attempt, stg_ok());
    stg_uv_cancel(op);
}

static const char *trace_of_canceller(const char *text, const char *script)
{
    static world w;
    stg_policy policy = policy_of(text);
    request r = request_of(&w, "a", script);

    begin_world(&w);
    post(&r, &policy, (stg_with){0});
    r.op.abandon = cancel_in_abandon;
    end_world(&w);
    CHECK_INT(r.ends, 1);
    return w.story.trace;
}

TEST(uv, may_be_cancelled_while_an_attempt_of_a_round_is_abandoned)
{
    CHECK_TRACE(trace_of_canceller("hedge=100ms:2", "- - 200"),
                "     0 ms  a  attempt 1: -\n"
                "   100 ms  a  attempt 2: -\n"
                "   200 ms  a  attempt 3: 200\n"
                "   200 ms  a  abandon 1\n"
                "   200 ms  a  abandon 2\n"
                "   200 ms  a  done after 1 attempt and 2 hedges in 200 ms\n");
    CHECK_TRACE(trace_of_canceller("hedge=100ms attempt-timeout=300ms", "- -"),
                "     0 ms  a  attempt 1: -\n"
                "   100 ms  a  attempt 2: -\n"
                "   300 ms  a  abandon 1\n"
                "   300 ms  a  abandon 2\n"
                "   300 ms  a  gave up after 1 attempt and 1 hedge in 300 ms: "
                "it was cancelled (cancelled)\n");
}

/* One that cannot have two at a time has none. */
TEST(uv, makes_no_hedges_for_a_caller_without_the_function)
{
    static world w;
    stg_policy policy = policy_of("hedge=100ms");
    request r = request_of(&w, "a", "200@500");

    begin_world(&w);
    post(&r, &policy, (stg_with){0});
    r.op.hedge = NULL;
    end_world(&w);
    CHECK_TRACE(w.story.trace,
                "     0 ms  a  attempt 1: 200@500\n"
                "   500 ms  a  200 to attempt 1\n"
                "   500 ms  a  done after 1 attempt\n");
}

TEST(uv, goes_on_where_a_hedge_is_refused)
{
    CHECK_TRACE(
        trace("fixed base=1s jitter=none hedge=100ms deadline=100ms", "200@99"),
        "     0 ms  a  attempt 1: 200@99\n"
        "    99 ms  a  200 to attempt 1\n"
        "    99 ms  a  done after 1 attempt in 99 ms\n");
    {
        static world w;
        stg_policy policy = policy_of("hedge=100ms");
        request r = request_of(&w, "a", "200@500");

        begin_world(&w);
        post(&r, &policy, (stg_with){.method = "POST"});
        end_world(&w);
        CHECK_TRACE(w.story.trace,
                    "     0 ms  a  attempt 1: 200@500\n"
                    "   500 ms  a  200 to attempt 1\n"
                    "   500 ms  a  done after 1 attempt in 500 ms\n");
    }
}

static bool answer(void *ctx, const stg_report *report)
{
    CHECK_INT(report->why, STG_WHY_ATTEMPTS);
    story_say(ctx, "a  the fallback");
    return true;
}

TEST(uv, is_answered_by_its_fallback_before_it_is_done)
{
    static world w;
    stg_policy policy = policy_of("fixed base=1s jitter=none attempts=2");
    request r = request_of(&w, "a", "503 502@1");
    stg_fallback fallback = {.answer = answer, .ctx = &w.story};

    begin_world(&w);
    post(&r, &policy, (stg_with){.fallback = &fallback});
    end_world(&w);
    CHECK(r.report.fell_back);
    CHECK_TRACE(
        w.story.trace,
        "     0 ms  a  attempt 1: 503\n"
        "  1000 ms  a  attempt 2: 502@1\n"
        "  1001 ms  a  502 to attempt 2\n"
        "  1001 ms  a  the fallback\n"
        "  1001 ms  a  gave up after 2 attempts in 1 s: 502 (attempts); "
        "the fallback answered\n");
}

TEST(uv, does_not_wait_where_there_is_no_wait)
{
    CHECK_TRACE(trace("fixed base=0", "503 503 200"),
                "     0 ms  a  attempt 1: 503\n"
                "     0 ms  a  attempt 2: 503\n"
                "     0 ms  a  attempt 3: 200\n"
                "     0 ms  a  done after 3 attempts\n");
}

TEST(uv, abandons_an_attempt_when_its_time_is_over)
{
    CHECK_TRACE(trace("fixed base=100ms jitter=none attempt-timeout=30ms",
                      "- 503@29 -"),
                "     0 ms  a  attempt 1: -\n"
                "    30 ms  a  abandon 1\n"
                "   130 ms  a  attempt 2: 503@29\n"
                "   159 ms  a  503 to attempt 2\n"
                "   259 ms  a  attempt 3: -\n"
                "   289 ms  a  abandon 3\n"
                "   289 ms  a  gave up after 3 attempts in 289 ms: timeout "
                "(attempts)\n");
}

TEST(uv, ignores_the_report_of_an_attempt_that_is_over)
{
    CHECK_TRACE(trace("fixed base=100ms jitter=none attempt-timeout=30ms",
                      "200@50 200@90 503@20 "),
                "     0 ms  a  attempt 1: 200@50\n"
                "    30 ms  a  abandon 1\n"
                "    50 ms  a  200 to attempt 1\n" // in the wait
                "   130 ms  a  attempt 2: 200@90\n"
                "   160 ms  a  abandon 2\n"
                "   220 ms  a  200 to attempt 2\n"
                "   260 ms  a  attempt 3: 503@20\n"
                "   280 ms  a  503 to attempt 3\n"
                "   280 ms  a  gave up after 3 attempts in 280 ms: 503 "
                "(attempts)\n");
}

TEST(uv, ignores_a_late_report_in_a_later_attempt)
{
    CHECK_TRACE(trace("fixed base=10ms jitter=none attempt-timeout=30ms",
                      "200@50 503@20 200"),
                "     0 ms  a  attempt 1: 200@50\n"
                "    30 ms  a  abandon 1\n"
                "    40 ms  a  attempt 2: 503@20\n"
                "    50 ms  a  200 to attempt 1\n"
                "    60 ms  a  503 to attempt 2\n"
                "    70 ms  a  attempt 3: 200\n"
                "    70 ms  a  done after 3 attempts in 70 ms\n");
}

TEST(uv, ends_an_attempt_at_the_deadline)
{
    CHECK_TRACE(trace("fixed base=10ms jitter=none deadline=200ms "
                      "attempt-timeout=150ms",
                      "503@140 -"),
                "     0 ms  a  attempt 1: 503@140\n"
                "   140 ms  a  503 to attempt 1\n"
                "   150 ms  a  attempt 2: -\n"
                "   200 ms  a  abandon 2\n"
                "   200 ms  a  gave up after 2 attempts in 200 ms: timeout "
                "(deadline)\n");
}

TEST(uv, can_be_cancelled_inside_start)
{
    CHECK_TRACE(trace("fixed base=1s jitter=none", "503 cancel"),
                "     0 ms  a  attempt 1: 503\n"
                "  1000 ms  a  attempt 2: cancel\n"
                "  1000 ms  a  abandon 2\n"
                "  1000 ms  a  gave up after 2 attempts in 1 s: 503 "
                "(cancelled)\n");
}

TEST(uv, can_be_cancelled_in_an_attempt)
{
    CHECK_TRACE(trace("client", "cancel@30"),
                "     0 ms  a  attempt 1: cancel@30\n"
                "    30 ms  a  cancel\n"
                "    30 ms  a  abandon 1\n"
                "    30 ms  a  gave up after 1 attempt in 30 ms: it was "
                "cancelled (cancelled)\n");
}

static void cancel_request(void *ctx)
{
    request *r = ctx;

    stg_uv_cancel(&r->op);
    stg_uv_cancel(&r->op); // once is enough
}

TEST(uv, can_be_cancelled_in_a_wait)
{
    stg_policy policy = policy_of(
        "fixed base=1s jitter=none "
        "budget=tokens:5:0.001/s");
    stg_peer peer = peer_of(&policy);
    world w;
    request a;

    begin_world(&w);
    a = request_of(&w, "a", "503");
    post(&a, &policy, (stg_with){.peer = &peer});
    call_later(&w, 300 * STG_MS, cancel_request, &a);
    end_world(&w);
    CHECK_TRACE(w.story.trace,
                "     0 ms  a  attempt 1: 503\n"
                "   300 ms  a  gave up after 1 attempt in 300 ms: 503 "
                "(cancelled)\n");
    CHECK_INT(a.ends, 1);
    CHECK_U64(a.report.waited, 300 * STG_MS);
    CHECK_U64(stg_budget_left(&peer.budget, w.story.now), 5000);
}

TEST(uv, can_be_cancelled_before_it_runs)
{
    stg_policy policy = policy_of("client");
    world w;
    request a;

    begin_world(&w);
    a = request_of(&w, "a", "");
    post(&a, &policy, (stg_with){0});
    stg_uv_cancel(&a.op);
    CHECK_INT(a.ends, 0); // only by the loop
    end_world(&w);
    CHECK_TRACE(w.story.trace,
                "     0 ms  a  gave up before the first attempt: it was "
                "cancelled (cancelled)\n");
}

TEST(uv, calls_nothing_before_the_loop_runs)
{
    stg_policy policy = policy_of("client");
    world w;
    request a;

    begin_world(&w);
    a = request_of(&w, "a", "200");
    post(&a, &policy, (stg_with){0});
    CHECK_STR(w.story.trace, "");
    end_world(&w);
    CHECK_INT(a.ends, 1);
}

/* -- with.cancel */

static void set_cancel(void *ctx)
{
    stg_cancel_set(ctx);
}

TEST(uv, notices_its_cancel_in_a_wait)
{
    stg_policy policy = policy_of("fixed base=1s jitter=none");
    world w;
    request a;

    begin_world(&w);
    a = request_of(&w, "a", "503");
    post(&a, &policy, (stg_with){.cancel = &w.story.cancel});
    call_later(&w, 300 * STG_MS, set_cancel, &w.story.cancel);
    end_world(&w);
    CHECK_TRACE(w.story.trace,
                "     0 ms  a  attempt 1: 503\n"
                "   300 ms  a  gave up after 1 attempt in 300 ms: 503 "
                "(cancelled)\n");
}

/* Its cancel is set while another operation is what the clock moves for. */
TEST(uv, notices_its_cancel_before_time_goes_on)
{
    stg_policy slow = policy_of("fixed base=10s jitter=none");
    stg_policy slower = policy_of("fixed base=20s jitter=none");
    world w;
    request a, b;

    begin_world(&w);
    a = request_of(&w, "a", "503 200");
    b = request_of(&w, "b", "503");
    post(&a, &slow, (stg_with){0});
    post(&b, &slower, (stg_with){.cancel = &w.story.cancel});
    call_later(&w, STG_S, set_cancel, &w.story.cancel);
    end_world(&w);
    CHECK_U64(b.report.took, STG_S);
    CHECK_INT(b.report.why, STG_WHY_CANCELLED);
    CHECK_U64(a.report.took, 10 * STG_S);
}

/* It never reports. The flag is set once the attempt is under way. */
static void hang(stg_uv *op, uint32_t attempt)
{
    CHECK_INT(attempt, 1);
    stg_cancel_set(op->data);
}

static void end_hanging(stg_uv *op, const stg_report *report)
{
    CHECK(&op->report == report);
}

static bool stay_awake(void *ctx, stg_ns until_at, const stg_cancel *cancel)
{
    (void)ctx;
    (void)until_at;
    (void)cancel;
    return false;
}

TEST(uv, that_is_cancelled_in_an_attempt_ends_it_at_once)
{
    stg_policy policy = policy_of("client");
    world w;
    request a, b;

    begin_world(&w);
    a = request_of(&w, "a", "503@30");
    b = request_of(&w, "b", "200@40");
    post(&a, &policy, (stg_with){.cancel = &w.story.cancel});
    post(&b, &policy, (stg_with){.cancel = &w.story.cancel});
    call_later(&w, 10 * STG_MS, set_cancel, &w.story.cancel);
    end_world(&w);
    CHECK_INT(a.report.why, STG_WHY_CANCELLED);
    CHECK_U64(a.report.took, 10 * STG_MS);
    CHECK_INT(b.report.why, STG_WHY_CANCELLED);
}

/* On real time: nothing but the flag ends an attempt that hangs. */
TEST(uv, is_ended_by_its_cancel_while_an_attempt_hangs)
{
    stg_policy policy = policy_of("client attempt-timeout=none deadline=none");
    stg_cancel cancel = {0};
    stg_uv op = {.data = &cancel};
    uv_loop_t loop;

    CHECK(uv_loop_init(&loop) == 0);
    CHECK(stg_uv_retry(&loop, &op, &policy, &(stg_with){.cancel = &cancel},
                       hang, end_hanging) == STG_OK);
    CHECK_INT(uv_run(&loop, UV_RUN_DEFAULT), 0);
    CHECK_INT(op.report.why, STG_WHY_CANCELLED);
    CHECK_INT(uv_loop_close(&loop), 0);
}

/* A sleep that was left early ends it as cancelled. */
TEST(uv, is_cancelled_when_its_clock_does_not_go_on)
{
    stg_policy policy = policy_of("fixed base=1s jitter=none");
    world w;
    request a;

    begin_world(&w);
    w.story.env.sleep = stay_awake;
    a = request_of(&w, "a", "503");
    post(&a, &policy, (stg_with){0});
    end_world(&w);
    CHECK_INT(a.report.why, STG_WHY_CANCELLED);
}

TEST(uv, that_is_cancelled_in_an_attempt_abandons_it)
{
    stg_policy policy = policy_of("client attempt-timeout=30ms");
    world w;
    request a;

    begin_world(&w);
    a = request_of(&w, "a", "-");
    post(&a, &policy, (stg_with){.cancel = &w.story.cancel});
    call_later(&w, 10 * STG_MS, set_cancel, &w.story.cancel);
    end_world(&w);
    CHECK_TRACE(w.story.trace,
                "     0 ms  a  attempt 1: -\n"
                "    10 ms  a  abandon 1\n"
                "    10 ms  a  gave up after 1 attempt in 10 ms: it was "
                "cancelled (cancelled)\n");
}

/* -- many */

static void post_with_slow(void *ctx)
{
    static stg_policy slow;

    slow = policy_of("fixed base=250ms jitter=none");
    post(ctx, &slow, (stg_with){0});
}

static void post_with_growing(void *ctx)
{
    static stg_policy growing;

    growing = policy_of("base=70ms jitter=none");
    post(ctx, &growing, (stg_with){0});
}

TEST(uv, wakes_whoever_is_due_first)
{
    stg_policy fast = policy_of("fixed base=100ms jitter=none");
    world w;
    request a, b, c;

    begin_world(&w);
    a = request_of(&w, "a", "503 503 200");
    b = request_of(&w, "b", "503@10 200");
    c = request_of(&w, "c", "503@1 503 200");
    post(&a, &fast, (stg_with){0});
    call_later(&w, 1 * STG_MS, post_with_slow, &b);
    call_later(&w, 2 * STG_MS, post_with_growing, &c);
    end_world(&w);
    CHECK_TRACE(w.story.trace,
                "     0 ms  a  attempt 1: 503\n"
                "     1 ms  b  attempt 1: 503@10\n"
                "     2 ms  c  attempt 1: 503@1\n"
                "     3 ms  c  503 to attempt 1\n"
                "    11 ms  b  503 to attempt 1\n"
                "    73 ms  c  attempt 2: 503\n"
                "   100 ms  a  attempt 2: 503\n"
                "   200 ms  a  attempt 3: 200\n"
                "   200 ms  a  done after 3 attempts in 200 ms\n"
                "   213 ms  c  attempt 3: 200\n"
                "   213 ms  c  done after 3 attempts in 211 ms\n"
                "   261 ms  b  attempt 2: 200\n"
                "   261 ms  b  done after 2 attempts in 260 ms\n");
}

/* The order is not that in which they were begun. */
TEST(uv, wakes_those_that_are_due_together_in_the_order_of_their_waits)
{
    stg_policy slow = policy_of("fixed base=300ms jitter=none");
    stg_policy growing = policy_of("list=100ms,200ms jitter=none");
    stg_policy short_of = policy_of("none attempt-timeout=300ms");
    world w;
    request a, b, c, d;

    begin_world(&w);
    a = request_of(&w, "a", "503 503 200");
    b = request_of(&w, "b", "503 503 200");
    c = request_of(&w, "c", "503 200");
    d = request_of(&w, "d", "-");
    post(&a, &growing, (stg_with){0});
    post(&d, &short_of, (stg_with){0});
    post(&b, &growing, (stg_with){0});
    post(&c, &slow, (stg_with){0});
    end_world(&w);
    CHECK_TRACE(w.story.trace,
                "     0 ms  a  attempt 1: 503\n"
                "     0 ms  d  attempt 1: -\n"
                "     0 ms  b  attempt 1: 503\n"
                "     0 ms  c  attempt 1: 503\n"
                "   100 ms  a  attempt 2: 503\n"
                "   100 ms  b  attempt 2: 503\n"
                "   300 ms  d  abandon 1\n"
                "   300 ms  c  attempt 2: 200\n"
                "   300 ms  a  attempt 3: 200\n"
                "   300 ms  b  attempt 3: 200\n"
                "   300 ms  b  done after 3 attempts in 300 ms\n"
                "   300 ms  a  done after 3 attempts in 300 ms\n"
                "   300 ms  c  done after 2 attempts in 300 ms\n"
                "   300 ms  d  gave up after 1 attempt in 300 ms: timeout "
                "(attempts)\n");
}

/* One of many: it fails `failures` times, and counts. */
typedef struct one {
    stg_uv op;
    stg_policy policy;
    uint32_t failures, starts, ends;
    stg_report report;
    struct crowd *crowd;
} one;

typedef struct crowd {
    world world;
    stg_ns last_at;
    unsigned left;
} crowd;

static void start_one(stg_uv *op, uint32_t attempt)
{
    one *o = op->data;

    CHECK_INT(attempt, ++o->starts);
    CHECK(o->crowd->world.story.now >= o->crowd->last_at);
    o->crowd->last_at = o->crowd->world.story.now;
    stg_uv_report(op, attempt,
                  attempt > o->failures ? stg_ok() : stg_answered(503));
}

static void end_one(stg_uv *op, const stg_report *report)
{
    one *o = op->data;

    o->ends++;
    o->crowd->left--;
    o->report = *report;
}

TEST(uv, runs_any_number_at_once)
{
    enum { MANY = 1000 };
    one *all = calloc(MANY, sizeof *all);
    crowd c = {.left = MANY};

    CHECK(all != NULL);
    begin_world(&c.world);
    for (unsigned i = 0; i < MANY; i++) {
        one *o = &all[i];

        o->policy = policy_of("fixed base=0 jitter=none attempts=5");
        o->policy.backoff.base = (1 + i % 10) * STG_MS;
        o->failures = i % 6;
        o->crowd = &c;
        o->op.data = o;
        CHECK(stg_uv_retry(&c.world.loop, &o->op, &o->policy,
                           &(stg_with){.env = &c.world.story.env}, start_one,
                           end_one) == STG_OK);
    }
    end_world(&c.world);
    CHECK_INT(c.left, 0);
    for (unsigned i = 0; i < MANY; i++) {
        const one *o = &all[i];
        uint32_t waits = o->failures < 4 ? o->failures : 4;

        CHECK_FROM(i, o->ends == 1 && o->starts == waits + 1);
        CHECK_FROM(i, o->report.attempts == waits + 1);
        CHECK_FROM(i, o->report.took == waits * o->policy.backoff.base);
        CHECK_FROM(i, o->report.waited == o->report.took);
        CHECK_FROM(i, (o->report.next == STG_DONE) == (o->failures < 5));
    }
    free(all);
}

static uint64_t scatter(void *ctx)
{
    story *s = ctx;

    s->bits = s->bits * UINT64_C(6364136223846793005) + 1;
    return s->bits ^ s->bits >> 29;
}

/* How often the clock was read, which each look at an operation does, for each
 * event of `many` operations with instants of their own. */
static unsigned looks_for_each_event(unsigned many)
{
    one *all = calloc(many, sizeof *all);
    crowd c = {.left = many};
    unsigned events = 0, looks;

    CHECK(all != NULL);
    begin_world(&c.world);
    c.world.story.env.random = scatter;
    for (unsigned i = 0; i < many; i++) {
        one *o = &all[i];

        o->policy = policy_of("exponential base=1s deadline=none attempts=4");
        o->failures = i % 6;
        o->crowd = &c;
        o->op.data = o;
        CHECK(stg_uv_retry(&c.world.loop, &o->op, &o->policy,
                           &(stg_with){.env = &c.world.story.env}, start_one,
                           end_one) == STG_OK);
    }
    end_world(&c.world);
    CHECK_INT(c.left, 0);
    for (unsigned i = 0; i < many; i++)
        events += all[i].starts;
    looks = c.world.story.clocks / events;
    free(all);
    return looks;
}

TEST(uv, looks_at_those_that_are_due_not_at_all_there_are)
{
    CHECK(looks_for_each_event(100) <= 8);
    CHECK(looks_for_each_event(3000) <= 8);
}

/* Begins b, and lets a wait. */
static void begin_and_report(uv_idle_t *idle)
{
    request *a = idle->data, *b = a + 1;
    static stg_policy once;

    if (a->op.attempt == 0)
        return;
    once = policy_of("none");
    b->op.data = b;
    CHECK(stg_uv_retry(&a->world->loop, &b->op, &once,
                       &(stg_with){.env = &a->world->story.env}, start,
                       done) == STG_OK);
    stg_uv_report(&a->op, 1, stg_answered(503));
    uv_close((uv_handle_t *)idle, NULL);
}

TEST(uv, does_not_let_time_pass_what_has_just_begun)
{
    stg_policy policy = policy_of("fixed base=1s jitter=none deadline=none");
    world w;
    uv_idle_t idle;

    begin_world(&w);
    request both[] = {request_of(&w, "a", "- 200"), request_of(&w, "b", "200")};
    both[0].op.data = &both[0];
    idle.data = both;
    CHECK(stg_uv_retry(&w.loop, &both[0].op, &policy,
                       &(stg_with){.env = &w.story.env}, start,
                       done) == STG_OK);
    // a's attempt hangs: nobody waits, and the clock has nobody to look after.
    uv_idle_init(&w.loop, &idle);
    uv_idle_start(&idle, begin_and_report);
    end_world(&w);
    CHECK_TRACE(w.story.trace,
                "     0 ms  a  attempt 1: -\n"
                "     0 ms  b  attempt 1: 200\n"
                "     0 ms  b  done after 1 attempt\n"
                "  1000 ms  a  attempt 2: 200\n"
                "  1000 ms  a  done after 2 attempts in 1 s\n");
}

enum { MANY_OPS = 10 };

typedef struct many {
    stg_uv ops[MANY_OPS];
    world world;
    stg_ns ended_at[MANY_OPS];
    unsigned turns;
    size_t cancelled;
} many;

static void do_nothing(stg_uv *op, uint32_t attempt)
{
    (void)op;
    (void)attempt;
}

static void note_end(stg_uv *op, const stg_report *report)
{
    many *m = op->data;

    (void)report;
    m->ended_at[op - m->ops] = m->world.story.now;
}

/* Cancels one operation in the turn in which time would go on, before it does.
 * */
static void cancel_one(uv_idle_t *idle)
{
    many *m = idle->data;

    if (m->turns++ == 0)
        return; // all begin their attempts
    stg_uv_cancel(&m->ops[m->cancelled]);
    uv_close((uv_handle_t *)idle, NULL);
}

TEST(uv, tells_of_an_end_before_time_goes_on)
{
    stg_policy policy = policy_of("attempts=1 attempt-timeout=2s");

    // Whoever of them keeps the clock.
    for (size_t cancelled = 0; cancelled < MANY_OPS; cancelled++) {
        many m = {.cancelled = cancelled};
        uv_idle_t idle = {.data = &m};

        begin_world(&m.world);
        for (size_t i = 0; i < MANY_OPS; i++) {
            m.ops[i].data = &m;
            CHECK(stg_uv_retry(&m.world.loop, &m.ops[i], &policy,
                               &(stg_with){.env = &m.world.story.env},
                               do_nothing, note_end) == STG_OK);
        }
        uv_idle_init(&m.world.loop, &idle);
        uv_idle_start(&idle, cancel_one);
        end_world(&m.world);
        for (size_t i = 0; i < MANY_OPS; i++)
            CHECK_FROM(i, m.ended_at[i] == (i == cancelled ? 0 : 2 * STG_S));
    }
}

static void stop_clock(stg_uv *op, const stg_report *report)
{
    const story *its = op->data;

    CHECK_U64(report->took, its->now);
}

TEST(uv, keeps_a_clock_for_each_env)
{
    stg_policy policy = policy_of("fixed base=1s jitter=none attempts=3");
    stg_uv ops[MANY_OPS];
    story other;
    world w;

    begin_world(&w);
    story_begin(&other, "");
    for (size_t i = 0; i < MANY_OPS; i++) {
        story *its = i % 2 == 0 ? &w.story : &other;

        ops[i] = (stg_uv){.data = its};
        CHECK(stg_uv_retry(
                  &w.loop, &ops[i], &policy, &(stg_with){.env = &its->env},
                  i < 4 ? pass_time : do_nothing, stop_clock) == STG_OK);
    }
    end_world(&w);
    CHECK_U64(w.story.now, 2 * STG_MIN);
    CHECK_U64(other.now, 2 * STG_MIN);
}

/* -- the handle */

static void done_and_again(stg_uv *op, const stg_report *report)
{
    request *r = op->data;
    stg_policy policy = policy_of("none");
    static stg_policy kept;

    done(op, report);
    kept = policy;
    if (r->ends < 3)
        CHECK(stg_uv_retry(&r->world->loop, op, &kept,
                           &(stg_with){.env = &r->world->story.env}, start,
                           done_and_again) == STG_OK);
}

TEST(uv, may_be_used_again_when_it_is_done)
{
    stg_policy policy = policy_of("fixed base=1s jitter=none");
    world w;
    request a;

    begin_world(&w);
    a = request_of(&w, "a", "503 200 503 200@7");
    a.op.data = &a;
    CHECK(stg_uv_retry(&w.loop, &a.op, &policy,
                       &(stg_with){.env = &w.story.env}, start,
                       done_and_again) == STG_OK);
    end_world(&w);
    CHECK_TRACE(w.story.trace,
                "     0 ms  a  attempt 1: 503\n"
                "  1000 ms  a  attempt 2: 200\n"
                "  1000 ms  a  done after 2 attempts in 1 s\n"
                "  1000 ms  a  attempt 1: 503\n"
                "  1000 ms  a  gave up after 1 attempt: 503 (attempts)\n"
                "  1000 ms  a  attempt 1: 200@7\n"
                "  1007 ms  a  200 to attempt 1\n"
                "  1007 ms  a  done after 1 attempt\n");
}

static void free_it(stg_uv *op, const stg_report *report)
{
    CHECK_INT(report->next, STG_DONE);
    CHECK(!uv_is_active(&op->handle.any));
    free(op);
}

TEST(uv, may_be_freed_when_it_is_done)
{
    stg_policy policy = policy_of("fixed base=0");
    stg_uv *op = calloc(1, sizeof *op);
    world w;

    CHECK(op != NULL);
    begin_world(&w);
    CHECK(stg_uv_retry(&w.loop, op, &policy, &(stg_with){.env = &w.story.env},
                       pass_time, free_it) == STG_OK);
    end_world(&w);
}

TEST(uv, that_is_done_ignores_what_comes_later)
{
    stg_policy policy = policy_of("none");
    world w;
    request a;

    begin_world(&w);
    a = request_of(&w, "a", "200");
    post(&a, &policy, (stg_with){0});
    end_world(&w);
    stg_uv_report(&a.op, 1, stg_answered(503));
    stg_uv_cancel(&a.op);
    CHECK_INT(a.ends, 1);
    CHECK_INT(a.op.report.next, STG_DONE);
}

/* As a program may do that ends before it has begun them all. */
TEST(uv, that_was_never_begun_does_nothing)
{
    stg_uv op = {0};

    stg_uv_report(&op, 0, stg_ok());
    stg_uv_report(&op, 1, stg_ok());
    stg_uv_cancel(&op);
}

/* Abandons a request and reports its end at once, as functions that stop a
 * request often do. */
static void abandon_and_report(stg_uv *op, uint32_t attempt)
{
    abandon(op, attempt);
    stg_uv_report(op, attempt, stg_failed(STG_FAULT_CANCELLED));
}

TEST(uv, ignores_a_report_from_inside_abandon)
{
    stg_policy policy = policy_of(
        "fixed base=100ms jitter=none "
        "attempt-timeout=30ms");
    world w;
    request a, b;

    begin_world(&w);
    a = request_of(&w, "a", "- 200");
    post(&a, &policy, (stg_with){0});
    a.op.abandon = abandon_and_report;
    end_world(&w);
    CHECK_TRACE(w.story.trace,
                "     0 ms  a  attempt 1: -\n"
                "    30 ms  a  abandon 1\n"
                "   130 ms  a  attempt 2: 200\n"
                "   130 ms  a  done after 2 attempts in 130 ms\n");

    begin_world(&w);
    b = request_of(&w, "b", "cancel@10");
    post(&b, &policy, (stg_with){0});
    b.op.abandon = abandon_and_report;
    end_world(&w);
    CHECK_TRACE(w.story.trace,
                "     0 ms  b  attempt 1: cancel@10\n"
                "    10 ms  b  cancel\n"
                "    10 ms  b  abandon 1\n"
                "    10 ms  b  gave up after 1 attempt in 10 ms: it was "
                "cancelled (cancelled)\n");
}

static void abandon_and_cancel(stg_uv *op, uint32_t attempt)
{
    request *r = op->data;

    CHECK(strlen(r->script) < 100);
    abandon(op, attempt);
    stg_uv_cancel(op);
}

TEST(uv, can_be_cancelled_inside_abandon)
{
    stg_policy policy = policy_of("fixed attempt-timeout=30ms");
    world w;
    request a;

    begin_world(&w);
    a = request_of(&w, "a", "-");
    post(&a, &policy, (stg_with){0});
    a.op.abandon = abandon_and_cancel;
    end_world(&w);
    CHECK_INT(a.ends, 1);
    CHECK_INT(a.report.why, STG_WHY_CANCELLED);
}

/* -- refused */

static void never_start(stg_uv *op, uint32_t attempt)
{
    (void)op, (void)attempt;
    harness_fail(__FILE__, __LINE__, "it was started");
}

static void never_done(stg_uv *op, const stg_report *report)
{
    (void)op, (void)report;
    harness_fail(__FILE__, __LINE__, "it was done");
}

TEST(uv, calls_nothing_for_what_cannot_be_used)
{
    stg_policy backend = policy_of("backend"), client = policy_of("client");
    stg_policy zeroed = {0};
    stg_uv op = {0};
    world w;

    begin_world(&w);
    CHECK(stg_uv_retry(&w.loop, NULL, &client, NULL, never_start, never_done) ==
          STG_INVALID);
    CHECK(stg_uv_retry(&w.loop, &op, &backend, NULL, never_start, never_done) ==
          STG_INVALID);
    CHECK_INT(op.report.why, STG_WHY_INVALID);
    CHECK_STR(op.report.flaw,
              "the policy needs a peer, see stg_policy_needs_peer(), and "
              "with.peer is NULL");
    CHECK(stg_uv_retry(&w.loop, &op, &zeroed, NULL, never_start, never_done) ==
          STG_INVALID);
    CHECK(stg_uv_retry(&w.loop, &op, NULL, NULL, never_start, never_done) ==
          STG_INVALID);
    CHECK_STR(op.report.flaw, "the policy is NULL");
    CHECK(stg_uv_retry(NULL, &op, &client, NULL, never_start, never_done) ==
          STG_INVALID);
    CHECK(stg_uv_retry(&w.loop, &op, &client, NULL, NULL, never_done) ==
          STG_INVALID);
    CHECK(stg_uv_retry(&w.loop, &op, &client, NULL, never_start, NULL) ==
          STG_INVALID);
    CHECK_STR(op.report.flaw, "loop, start or done is NULL");
    stg_uv_report(&op, 1, stg_ok());
    stg_uv_cancel(&op);
    end_world(&w);
}

/* -- what it shares with others */

TEST(uv, waits_at_the_gate_of_its_peer)
{
    stg_policy policy = policy_of("none");
    stg_peer peer = peer_of(&policy);
    world w;
    request a, b, c;

    CHECK(stg_peer_limit(&peer, 10000, 1, NULL) == STG_OK);
    begin_world(&w);
    a = request_of(&w, "-", "200");
    b = request_of(&w, "-", "200");
    c = request_of(&w, "-", "200");
    post(&a, &policy, (stg_with){.peer = &peer});
    post(&b, &policy, (stg_with){.peer = &peer});
    post(&c, &policy, (stg_with){.peer = &peer});
    end_world(&w);
    CHECK_TRACE(w.story.trace,
                "     0 ms  -  attempt 1: 200\n"
                "     0 ms  -  done after 1 attempt\n"
                "   100 ms  -  attempt 1: 200\n"
                "   100 ms  -  done after 1 attempt in 100 ms\n"
                "   200 ms  -  attempt 1: 200\n"
                "   200 ms  -  done after 1 attempt in 200 ms\n");
}

TEST(uv, tells_its_hook_what_happens)
{
    stg_policy policy = policy_of(
        "fixed base=1s jitter=none "
        "attempt-timeout=3s");
    world w;
    request a;

    begin_world(&w);
    a = request_of(&w, "a", "- 503");
    post(&a, &policy, (stg_with){.hook = &w.story.hook});
    call_later(&w, 4500 * STG_MS, cancel_request, &a);
    end_world(&w);
    CHECK_TRACE(w.story.trace,
                "     0 ms  | attempt, -: go\n"
                "     0 ms  a  attempt 1: -\n"
                "  3000 ms  a  abandon 1\n"
                "  3000 ms  | decision, timeout: wait 1 s (backoff)\n"
                "  4000 ms  | attempt, -: go\n"
                "  4000 ms  a  attempt 2: 503\n"
                "  4000 ms  | decision, 503: wait 1 s (backoff)\n"
                "  4500 ms  | end, -: give up (cancelled)\n"
                "  4500 ms  a  gave up after 2 attempts in 4.5 s: 503 "
                "(cancelled)\n");
}

static void report_outer(void *op)
{
    stg_uv_report(op, 1, stg_ok());
}

/* An operation inside another one is told so by its parent. */
static void start_nested(stg_uv *op, uint32_t attempt)
{
    static request inner;
    static stg_policy policy;
    request *r = op->data;

    story_say(&r->world->story, "%s  attempt %u", r->name, attempt);
    policy = policy_of("fixed base=1s jitter=none");
    inner = request_of(r->world, "inner", "503");
    post(&inner, &policy, (stg_with){.parent = &op->op.retry});
    call_later(r->world, STG_S, report_outer, op);
}

TEST(uv, is_nested_when_it_is_told_its_parent)
{
    stg_policy policy = policy_of("client");
    world w;
    request a;

    begin_world(&w);
    a = request_of(&w, "a", "");
    a.op.data = &a;
    CHECK(stg_uv_retry(&w.loop, &a.op, &policy,
                       &(stg_with){.env = &w.story.env}, start_nested,
                       done) == STG_OK);
    end_world(&w);
    CHECK_TRACE(w.story.trace,
                "     0 ms  a  attempt 1\n"
                "     0 ms  inner  attempt 1: 503\n"
                "     0 ms  inner  gave up after 1 attempt: 503 (nested)\n"
                "  1000 ms  a  done after 1 attempt\n");
}

/* -- between the call and the loop */

/* The loop may come to it late: the deadline counts from the call. */
TEST(uv, makes_no_attempt_behind_its_deadline)
{
    stg_policy policy = policy_of("deadline=1s");
    world w;
    request a;

    begin_world(&w);
    a = request_of(&w, "a", "200");
    post(&a, &policy, (stg_with){0});
    w.story.now += 2 * STG_S;
    end_world(&w);
    CHECK_TRACE(w.story.trace,
                "  2000 ms  a  gave up before the first attempt: the next "
                "attempt would come too late (deadline)\n");
}

/* And an attempt's time counts from its start. */
TEST(uv, gives_the_first_attempt_all_its_time)
{
    stg_policy policy = policy_of("attempt-timeout=100ms");
    world w;
    request a;

    begin_world(&w);
    a = request_of(&w, "a", "503@80 200");
    post(&a, &policy, (stg_with){0});
    w.story.now += 50 * STG_MS;
    end_world(&w);
    CHECK_INT(a.report.next, STG_DONE);
    CHECK_INT(a.report.last.code, 503); // and no timeout
}

/* -- for real: a few ms, and only what must hold on a busy machine */

typedef struct real {
    stg_uv op;
    unsigned starts, ends;
    stg_ns at[8]; /* of each start */
    stg_report report;
} real;

static stg_ns now(void)
{
    return stg_env_system()->now(NULL);
}

static void start_real(stg_uv *op, uint32_t attempt)
{
    real *r = op->data;

    CHECK(attempt <= 8);
    r->at[attempt - 1] = now();
    r->starts++;
    if (attempt < 3)
        stg_uv_report(op, attempt, stg_failed(STG_FAULT_REFUSED));
    else if (attempt == 4)
        stg_uv_report(op, attempt, stg_ok());
}

static void end_real(stg_uv *op, const stg_report *report)
{
    real *r = op->data;

    r->ends++;
    r->report = *report;
}

TEST(uv, waits_and_times_out_on_real_time)
{
    stg_policy policy = policy_of(
        "fixed base=3ms jitter=none attempts=5 "
        "attempt-timeout=2ms");
    uv_loop_t loop;
    real r = {.op = {.data = &r}};

    CHECK(uv_loop_init(&loop) == 0);
    CHECK(stg_uv_retry(&loop, &r.op, &policy, NULL, start_real, end_real) ==
          STG_OK);
    CHECK_INT(uv_run(&loop, UV_RUN_DEFAULT), 0);
    CHECK_INT(uv_loop_close(&loop), 0);
    CHECK_INT(r.ends, 1);
    CHECK_INT(r.starts, 4);
    CHECK_INT(r.report.next, STG_DONE);
    CHECK_INT(r.report.last.fault, STG_FAULT_TIMEOUT);
    CHECK(r.at[1] - r.at[0] >= 3 * STG_MS);
    CHECK(r.at[2] - r.at[1] >= 3 * STG_MS);
    CHECK(r.at[3] - r.at[2] >= 5 * STG_MS);
    CHECK(r.report.waited >= 9 * STG_MS);
    CHECK(r.report.took >= 11 * STG_MS && r.report.took < STG_MIN);
}

static void succeed_start(stg_uv *op, uint32_t attempt)
{
    stg_uv_report(op, attempt, stg_ok());
}

TEST(uv, that_succeeds_at_once_without_a_limit_took_no_time)
{
    stg_policy policy = policy_of("deadline=none");
    uv_loop_t loop;
    real r = {.op = {.data = &r}};

    CHECK(uv_loop_init(&loop) == 0);
    CHECK(stg_uv_retry(&loop, &r.op, &policy, NULL, succeed_start, end_real) ==
          STG_OK);
    CHECK_INT(uv_run(&loop, UV_RUN_DEFAULT), 0);
    CHECK_INT(uv_loop_close(&loop), 0);
    CHECK_INT(r.report.next, STG_DONE);
    CHECK_U64(r.report.took, 0);
    CHECK_U64(r.report.waited, 0);
}

static void set_on_timer(uv_timer_t *timer)
{
    stg_cancel_set(timer->data);
    uv_close((uv_handle_t *)timer, NULL);
}

static void fail_start(stg_uv *op, uint32_t attempt)
{
    stg_uv_report(op, attempt, stg_failed(STG_FAULT_REFUSED));
}

TEST(uv, notices_its_cancel_on_real_time)
{
    stg_policy policy = policy_of("fixed base=1d jitter=none deadline=none");
    stg_cancel cancel = {0};
    uv_loop_t loop;
    uv_timer_t timer = {.data = &cancel};
    real r = {.op = {.data = &r}};

    CHECK(uv_loop_init(&loop) == 0);
    CHECK(uv_timer_init(&loop, &timer) == 0);
    CHECK(uv_timer_start(&timer, set_on_timer, 5, 0) == 0);
    CHECK(stg_uv_retry(&loop, &r.op, &policy, &(stg_with){.cancel = &cancel},
                       fail_start, end_real) == STG_OK);
    CHECK_INT(uv_run(&loop, UV_RUN_DEFAULT), 0);
    CHECK_INT(uv_loop_close(&loop), 0);
    CHECK_INT(r.ends, 1);
    CHECK_INT(r.report.why, STG_WHY_CANCELLED);
    CHECK(r.report.took < STG_MIN);
}

TEST(uv, runs_many_on_real_time)
{
    enum { MANY = 1000 };
    stg_policy policy = policy_of(
        "fixed base=5ms jitter=full attempts=4 "
        "deadline=none");
    real *all = calloc(MANY, sizeof *all);
    uv_loop_t loop;

    CHECK(all != NULL);
    CHECK(uv_loop_init(&loop) == 0);
    for (int i = 0; i < MANY; i++) {
        all[i].op.data = &all[i];
        CHECK(stg_uv_retry(&loop, &all[i].op, &policy, NULL, fail_start,
                           end_real) == STG_OK);
    }
    CHECK_INT(uv_run(&loop, UV_RUN_DEFAULT), 0);
    CHECK_INT(uv_loop_close(&loop), 0);
    for (int i = 0; i < MANY; i++) {
        CHECK_FROM(i, all[i].ends == 1);
        CHECK_FROM(i, all[i].report.attempts == 4);
        CHECK_FROM(i, all[i].report.why == STG_WHY_ATTEMPTS);
        CHECK_FROM(i, all[i].report.took < STG_MIN);
    }
    free(all);
}
