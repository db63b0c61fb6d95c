/* Transfers of a stg_curl_multi. Each is in the tree; one that is to be dealt
 * with at once is in the list `ready`, one that waits in the heap, one whose
 * attempt is under way in the CURLM. Nobody calls libcurl but
 * stg_curl_multi_read() and stg_curl_multi_close(), so that all else may be
 * called from inside libcurl's callbacks. */
#include <stagger/curl.h>

#include <assert.h>
#include <errno.h>
#include <limits.h>

#include "adapters/curl_request.h"
#include "adapters/internal.h"
#include "base/heap.h"
#include "base/list.h"

/* stg_curl_transfer.phase */
enum { ENDED, WAITING, IN_FLIGHT };

/* A cancel may be set from anywhere, and cannot wake the loop. */
static const stg_ns look_every = 50 * STG_MS;

static_assert(sizeof((stg_curl_transfer *)NULL)->waiting == sizeof(stg_node),
              "a place is a node");
static_assert(sizeof((stg_curl_transfer *)NULL)->ready == sizeof(stg_link),
              "a place is a link");
static_assert(sizeof((stg_curl_multi *)NULL)->ready == sizeof(stg_list),
              "what has its turn is a list");
static_assert(sizeof((stg_curl_multi *)NULL)->waiting == sizeof(stg_heap),
              "what waits is a heap");

static stg_heap *waiting(const stg_curl_multi *m)
{
    return (stg_heap *)(void *)&m->waiting;
}

static stg_list *ready(const stg_curl_multi *m)
{
    return (stg_list *)(void *)&m->ready;
}

static stg_list *watched(const stg_curl_multi *m)
{
    return (stg_list *)(void *)&m->watched;
}

static stg_node *place_of(stg_curl_transfer *t)
{
    return (stg_node *)(void *)&t->waiting;
}

static stg_link *turn_of(stg_curl_transfer *t)
{
    return (stg_link *)(void *)&t->ready;
}

static stg_link *watch_of(stg_curl_transfer *t)
{
    return (stg_link *)(void *)&t->watched;
}

static stg_ns due_at(stg_curl_transfer *t)
{
    return place_of(t)->key;
}

/* The one that waits for the least instant, or NULL. */
static stg_curl_transfer *first_waiting(const stg_curl_multi *m)
{
    stg_node *top = waiting(m)->top;

    return top == NULL ? NULL
                       : STG_HEAP_HOLDER(top, stg_curl_transfer, waiting);
}

static stg_curl_transfer *first_watched(const stg_curl_multi *m)
{
    return STG_HOLDER(stg_list_first(watched(m)), stg_curl_transfer, watched);
}

static bool is_virtual(const stg_curl_transfer *t)
{
    return stg_env_is_virtual(t->op.with.env);
}

/* -- the tree, by handle
 *
 * A digital search tree (Coffman and Eve, "File structures using hashing
 * functions", Communications of the ACM 13, 1970): the n-th bit of a hash says
 * where it goes on from the n-th transfer on the way. A product with an odd
 * number is another one for each handle, so that 64 bits always end it. */

static stg_curl_transfer **find(stg_curl_multi *m, const CURL *easy)
{
    uint64_t hash = (uintptr_t)easy * UINT64_C(0x9e3779b97f4a7c15);
    stg_curl_transfer **at = &m->root;

    for (; *at != NULL && (*at)->request.easy != easy; hash <<= 1)
        at = &(*at)->child[hash >> 63];
    return at;
}

/* Any leaf below it can stand in its place. */
static void take_out(stg_curl_transfer *t)
{
    stg_curl_transfer **at = find(t->multi, t->request.easy), **below = at;
    stg_curl_transfer *leaf = t;

    while (leaf->child[0] != NULL || leaf->child[1] != NULL) {
        below = &leaf->child[leaf->child[0] == NULL];
        leaf = *below;
    }
    *below = NULL;
    if (leaf == t)
        return;
    leaf->child[0] = t->child[0];
    leaf->child[1] = t->child[1];
    *at = leaf;
}

/* -- the timer */

static stg_ns read_clock(void)
{
    return stg_env_system()->now(NULL);
}

/* How long the first wait still takes. On virtual time it ends when no transfer
 * is under way. */
static stg_ns left_to_wait(const stg_curl_multi *m)
{
    stg_curl_transfer *t = first_waiting(m);

    if (t == NULL)
        return STG_NEVER;
    if (is_virtual(t))
        return m->in_flight == 0 ? 0 : STG_NEVER;
    return stg_ns_sub(due_at(t), stg_operation_now(&t->op));
}

static stg_ns left_in_all(const stg_curl_multi *m)
{
    stg_ns at = m->curl_at, left;

    if (!stg_list_is_empty(ready(m)))
        return 0;
    if (!stg_list_is_empty(watched(m)))
        at = stg_ns_min(at, m->look_at);
    left = left_to_wait(m);
    return at == STG_NEVER ? left
                           : stg_ns_min(left, stg_ns_sub(at, read_clock()));
}

int stg_curl_multi_timeout(const stg_curl_multi *m, int max_ms)
{
    stg_ns left = m == NULL || m->multi == NULL ? STG_NEVER : left_in_all(m);
    int ms = left == STG_NEVER ? -1 : (int)stg_to_ms(left);

    return max_ms >= 0 && (ms < 0 || ms > max_ms) ? max_ms : ms;
}

/* The application's timer is stopped only where it was set, so that one that
 * never waits is never called. */
static int tell(stg_curl_multi *m)
{
    int ms;

    if (m->on_timer == NULL || m->is_reading) // which tells at its end
        return 0;
    ms = stg_curl_multi_timeout(m, -1);
    if (ms < 0 && !m->is_armed)
        return 0;
    m->is_armed = ms >= 0;
    return m->on_timer(m->multi, ms, m->timer_data);
}

static void set_timer(stg_curl_multi *m, long ms)
{
    m->curl_at =
        ms < 0 ? STG_NEVER : stg_ns_add(read_clock(), (stg_ns)ms * STG_MS);
}

static int on_curl_timer(CURLM *multi, long ms, void *data)
{
    stg_curl_multi *m = data;

    (void)multi;
    set_timer(m, ms);
    return tell(m);
}

/* libcurl tells of a time-out, but not that it was the last one: a loop would
 * be called for it again and again. */
static void ask_libcurl(stg_curl_multi *m)
{
    long ms = -1;

    if (m->curl_at == STG_NEVER)
        return;
    curl_multi_timeout(m->multi, &ms);
    set_timer(m, ms);
}

/* At the next stg_curl_multi_read(), which is to be soon. */
static void have_turn(stg_curl_transfer *t)
{
    stg_curl_multi *m = t->multi;

    if (!stg_list_has(turn_of(t)))
        stg_list_push(ready(m), turn_of(t));
    if (m->is_at_once)
        return;
    m->is_at_once = true;
    (void)tell(m);
}

/* -- one transfer */

/* The application may free t in done(): nothing touches it behind. */
static void end(stg_curl_transfer *t)
{
    take_out(t);
    stg_list_remove(turn_of(t));
    stg_list_remove(watch_of(t));
    t->multi->running--;
    t->phase = ENDED;
    stg_curl_request_end(&t->request);
    t->report = stg_operation_result(&t->op);
    t->done(t, t->code, &t->report);
}

/* libcurl does not take the handle. Want of memory may pass, and is a failure
 * like any other; all else is a mistake. */
static void fail_to_start(stg_curl_transfer *t, CURLMcode code)
{
    stg_outcome o = stg_failed_errno(ENOMEM);

    if (code == CURLM_OUT_OF_MEMORY) {
        o.unsent = true;
        t->code = CURLE_OUT_OF_MEMORY;
        stg_operation_report(&t->op, &o);
        return;
    }
    t->code = CURLE_BAD_FUNCTION_ARGUMENT;
    stg_operation_cancel(&t->op);
    stg_operation_refuse(&t->op, curl_multi_strerror(code));
}

static void start(stg_curl_transfer *t)
{
    stg_ns limit = stg_retry_timeout(&t->op.retry, t->op.changed_at);
    CURLMcode code;

    stg_curl_request_start(&t->request, limit);
    code = curl_multi_add_handle(t->multi->multi, t->request.easy);
    if (code == CURLM_OK) {
        t->phase = IN_FLIGHT;
        t->multi->in_flight++;
        return;
    }
    fail_to_start(t, code);
}

/* In flight it is libcurl's; from here on the application's handle can be set
 * up for another attempt. */
static void leave_libcurl(stg_curl_transfer *t)
{
    t->phase = WAITING;
    t->multi->in_flight--;
    curl_multi_remove_handle(t->multi->multi, t->request.easy);
}

/* Carries out the operation's decision. */
static void follow(stg_curl_transfer *t)
{
    if (t->op.decision.next == STG_GO)
        start(t);
    if (t->op.decision.next == STG_WAIT)
        stg_heap_put(waiting(t->multi), place_of(t), t->op.decision.due_at);
    else if (t->op.decision.next != STG_GO)
        end(t);
}

/* It is due, or cancelled. */
static void wake(stg_curl_transfer *t)
{
    stg_list_remove(turn_of(t));
    stg_heap_remove(waiting(t->multi), place_of(t));
    if (t->is_cancelled && t->phase == IN_FLIGHT) {
        t->code = CURLE_ABORTED_BY_CALLBACK;
        leave_libcurl(t);
    }
    if (t->is_cancelled)
        stg_operation_cancel(&t->op);
    else
        stg_operation_admit(&t->op, stg_operation_now(&t->op));
    follow(t);
}

/* -- all of them */

/* Returns a message that is the caller's, or NULL. */
static CURLMsg *take_messages(stg_curl_multi *m)
{
    stg_curl_transfer *t;
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(m->multi, &left)) != NULL) {
        t = *find(m, message->easy_handle);
        if (t == NULL || t->phase != IN_FLIGHT || message->msg != CURLMSG_DONE)
            return message;
        t->code = message->data.result; // the message goes with the handle
        leave_libcurl(t);
        stg_curl_request_report(&t->request, &t->op, &t->code);
        follow(t);
    }
    return NULL;
}

/* A stg_cancel is a flag that any thread sets without telling: it is looked at from
 * time to time. */
static void look_at_cancels(stg_curl_multi *m)
{
    stg_curl_transfer *first = first_watched(m);
    stg_link *link;
    stg_ns now;

    if (first == NULL)
        return;
    now = read_clock();
    if (now < m->look_at && !is_virtual(first))
        return;
    m->look_at = stg_ns_add(now, look_every);
    for (link = watch_of(first); link != NULL;
         link = stg_list_next(watched(m), link)) {
        stg_curl_transfer *t = STG_HOLDER(link, stg_curl_transfer, watched);

        if (stg_cancel_is_set(t->op.with.cancel))
            stg_curl_multi_cancel(t);
    }
}

/* Virtual time passes while nothing else happens. */
static void pass_until_due(const stg_curl_multi *m)
{
    stg_curl_transfer *t = first_waiting(m);
    const stg_env *env;

    if (t == NULL || !is_virtual(t) || m->in_flight > 0 ||
        !stg_list_is_empty(ready(m)))
        return;
    env = t->op.with.env;
    if (due_at(t) > stg_operation_now(&t->op) &&
        !env->sleep(env->ctx, due_at(t), NULL))
        stg_curl_multi_cancel(t);
}

static stg_curl_transfer *next_due(const stg_curl_multi *m)
{
    stg_link *link = stg_list_first(ready(m));
    stg_curl_transfer *t = first_waiting(m);

    if (link != NULL)
        return STG_HOLDER(link, stg_curl_transfer, ready);
    return t != NULL && due_at(t) <= stg_operation_now(&t->op) ? t : NULL;
}

/* What done() adds has its turn the next time. */
static void give_turns(stg_curl_multi *m)
{
    stg_curl_transfer *t;

    for (size_t n = m->running; n > 0 && (t = next_due(m)) != NULL; n--)
        wake(t);
}

/* -- the calls */

stg_status stg_curl_multi_init(stg_curl_multi *m, CURLM *multi,
                               stg_curl_timer_fn *on_timer, void *data)
{
    if (m == NULL)
        return STG_INVALID;
    *m = (stg_curl_multi){.multi = multi,
                          .on_timer = on_timer,
                          .timer_data = data,
                          .curl_at = STG_NEVER};
    if (multi == NULL)
        return STG_INVALID;
    *waiting(m) = (stg_heap){.top = NULL};
    stg_list_init(ready(m));
    stg_list_init(watched(m));
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, m);
    return STG_OK;
}

/* A clock is one for all transfers: waits of several clocks could not be
 * compared in one heap. */
static const char *find_flaw(stg_curl_multi *m, const stg_curl_transfer *t)
{
    if (m == NULL || m->multi == NULL || t->done == NULL)
        return "the stg_curl_multi is NULL or was not begun, or done is NULL";
    if (m->is_closing)
        return "the stg_curl_multi is being closed";
    if (*find(m, t->request.easy) != NULL)
        return "the handle is in this stg_curl_multi already";
    if (m->root != NULL && m->root->op.with.env != t->op.with.env)
        return "with.env is not that of the other transfers";
    return NULL;
}

/* Whether there is nothing wrong with it. */
static bool begin(stg_curl_multi *m, stg_curl_transfer *t, CURL *easy,
                  const stg_policy *policy, const stg_curl_with *with)
{
    const char *flaw = stg_curl_request_begin(&t->request, easy, with);

    (void)stg_operation_begin(&t->op, policy, &t->request.with.with);
    // It is looked at here, and not by libcurl.
    t->request.with.with.cancel = NULL;
    if (flaw == NULL)
        flaw = find_flaw(m, t);
    if (flaw != NULL)
        stg_operation_refuse(&t->op, flaw);
    t->report = stg_operation_result(&t->op);
    return t->op.flaw == NULL;
}

/* Nothing is called back from within: the transfer begins in the next turn. */
stg_status stg_curl_multi_add(stg_curl_multi *m, stg_curl_transfer *t,
                              CURL *easy, const stg_policy *policy,
                              const stg_curl_with *with, stg_curl_done_fn *done)
{
    if (t == NULL)
        return STG_INVALID;
    *t = (stg_curl_transfer){.data = t->data,
                             .multi = m,
                             .done = done,
                             .code = CURLE_ABORTED_BY_CALLBACK};
    *place_of(t) = (stg_node){0};
    *turn_of(t) = *watch_of(t) = (stg_link){0};
    if (!begin(m, t, easy, policy, with))
        return STG_INVALID;
    t->phase = WAITING;
    *find(m, easy) = t;
    m->running++;
    if (t->op.with.cancel != NULL)
        stg_list_push(watched(m), watch_of(t));
    have_turn(t);
    return STG_OK;
}

void stg_curl_multi_cancel(stg_curl_transfer *t)
{
    if (t == NULL || t->phase == ENDED)
        return;
    t->is_cancelled = true;
    have_turn(t);
}

CURLMsg *stg_curl_multi_read(stg_curl_multi *m)
{
    CURLMsg *message;

    if (m == NULL || m->multi == NULL || m->is_reading)
        return NULL;
    m->is_reading = true;
    message = take_messages(m);
    if (message == NULL) {
        look_at_cancels(m);
        pass_until_due(m);
        give_turns(m);
    }
    ask_libcurl(m);
    m->is_reading = m->is_at_once = false;
    (void)tell(m);
    return message;
}

size_t stg_curl_multi_running(const stg_curl_multi *m)
{
    return m == NULL ? 0 : m->running;
}

/* Each transfer ends as cancelled, and its done() is called from here. */
void stg_curl_multi_close(stg_curl_multi *m)
{
    if (m == NULL || m->multi == NULL || m->is_reading)
        return;
    m->is_reading = m->is_closing = true;
    while (m->root != NULL) {
        m->root->is_cancelled = true;
        wake(m->root);
    }
    curl_multi_setopt(m->multi, CURLMOPT_TIMERFUNCTION, NULL);
    curl_multi_setopt(m->multi, CURLMOPT_TIMERDATA, NULL);
    if (m->is_armed)
        (void)m->on_timer(m->multi, -1, m->timer_data);
    *m = (stg_curl_multi){.multi = NULL};
}
