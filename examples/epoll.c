/* epoll.c - many operations on an event loop of your own: epoll, one timerfd, and
 * nothing else.
 *
 * stagger/operation.h decides, and the loop waits: each operation has one
 * instant, the end of its wait or of its attempt's time, and a heap has the
 * earliest of them, to which the timerfd is set. The server is a thread of this
 * program, which answers 503 at first and sometimes not at all. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <stagger/stagger.h>

enum { REQUESTS = 200, EVENTS = 64 };

typedef struct request {
    stg_operation op;
    int number;
    int fd;          /* of the attempt under way, or -1 */
    bool is_written; /* else it is connecting */
    stg_ns due_at;
    size_t place; /* in the heap */
} request;

typedef struct loop {
    int epoll, timer;
    struct sockaddr_in server;
    request *heap[REQUESTS]; /* by due_at; children of i: 2 i + 1 and 2 i + 2 */
    size_t waiting;
    unsigned done, gave_up, attempts;
} loop;

/* -- the heap: the earliest instant first */

static void put(loop *l, size_t place, request *r)
{
    l->heap[place] = r;
    r->place = place;
}

static void sift_up(loop *l, request *r)
{
    size_t i = r->place;

    for (; i > 0 && l->heap[(i - 1) / 2]->due_at > r->due_at; i = (i - 1) / 2)
        put(l, i, l->heap[(i - 1) / 2]);
    put(l, i, r);
}

static void sift_down(loop *l, request *r)
{
    size_t i = r->place, child;

    while ((child = 2 * i + 1) < l->waiting) {
        if (child + 1 < l->waiting &&
            l->heap[child + 1]->due_at < l->heap[child]->due_at)
            child++;
        if (l->heap[child]->due_at >= r->due_at)
            break;
        put(l, i, l->heap[child]);
        i = child;
    }
    put(l, i, r);
}

static void set_due(loop *l, request *r, stg_ns due_at)
{
    r->due_at = due_at;
    sift_up(l, r);
    sift_down(l, r);
}

static void take_out(loop *l, request *r)
{
    request *last = l->heap[--l->waiting];

    if (last == r)
        return;
    put(l, r->place, last);
    set_due(l, last, last->due_at);
}

/* The clock of the operations is CLOCK_MONOTONIC, and so is the timer's. */
static void set_timer(loop *l)
{
    stg_ns at = l->waiting > 0 ? l->heap[0]->due_at : STG_NEVER;
    struct itimerspec to = {.it_value.tv_sec = 0};

    if (at != STG_NEVER) { // zeros stop it; 1 ns is long ago
        at = stg_ns_max(at, 1);
        to.it_value.tv_sec = (time_t)(at / STG_S);
        to.it_value.tv_nsec = (long)(at % STG_S);
    }
    timerfd_settime(l->timer, TFD_TIMER_ABSTIME, &to, NULL);
}

/* -- an attempt: connect, write, read */

static void watch(const loop *l, request *r, int what, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = r};

    epoll_ctl(l->epoll, what, r->fd, &e);
}

/* Returns whether it is under way; else errno says why not. */
static bool begin_attempt(const loop *l, request *r)
{
    r->is_written = false;
    r->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (r->fd < 0)
        return false;
    if (connect(r->fd, (const struct sockaddr *)&l->server, sizeof l->server) !=
            0 &&
        errno != EINPROGRESS)
        return false;
    watch(l, r, EPOLL_CTL_ADD, EPOLLOUT);
    return true;
}

static void end_attempt(request *r)
{
    if (r->fd >= 0)
        close(r->fd); // which takes it out of the epoll, too
    r->fd = -1;
}

static stg_outcome write_request(const loop *l, request *r)
{
    char text[32];
    int error = 0;
    int n =
        snprintf(text, sizeof text, "%d %u\n", r->number, r->op.retry.attempts);

    getsockopt(r->fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof error});
    if (error != 0)
        return stg_failed_errno(error);
    if (send(r->fd, text, (size_t)n, MSG_NOSIGNAL) != n)
        return stg_failed_errno(errno);
    r->is_written = true;
    watch(l, r, EPOLL_CTL_MOD, EPOLLIN);
    return stg_ok();
}

static stg_outcome read_answer(const request *r)
{
    char text[8] = "";
    ssize_t n = recv(r->fd, text, sizeof text - 1, 0);

    if (n < 0)
        return stg_failed_errno(errno);
    return n == 0 ? stg_failed(STG_FAULT_RESET) : stg_answered(atoi(text));
}

/* -- what stagger has decided */

static void end(loop *l, request *r)
{
    stg_report report = stg_operation_result(&r->op);
    char text[STG_REPORT_TEXT_MAX];

    take_out(l, r);
    l->done += report.next == STG_DONE;
    l->gave_up += report.next == STG_GIVE_UP;
    if (r->number % 50 == 0)
        printf("request %d: %s\n", r->number, stg_report_text(&report, text));
}

static void follow(loop *l, request *r)
{
    stg_ns now = stg_operation_now(&r->op);

    while (r->op.decision.next == STG_GO) {
        stg_outcome failed;

        l->attempts++;
        if (begin_attempt(l, r)) {
            set_due(l, r,
                    stg_ns_add(now, stg_retry_timeout(&r->op.retry, now)));
            return;
        }
        failed = stg_failed_errno(errno);
        end_attempt(r);
        stg_operation_report(&r->op, &failed);
    }
    if (r->op.decision.next == STG_WAIT)
        set_due(l, r, r->op.decision.due_at);
    else
        end(l, r);
}

static void report(loop *l, request *r, stg_outcome outcome)
{
    end_attempt(r);
    stg_operation_report(&r->op, &outcome);
    follow(l, r);
}

static void on_socket(loop *l, request *r)
{
    stg_outcome written;

    if (r->is_written) {
        report(l, r, read_answer(r));
        return;
    }
    written = write_request(l, r);
    if (written.fault != STG_FAULT_NONE)
        report(l, r, written);
}

/* The wait, or the attempt's time, is over. */
static void on_due(loop *l, request *r, stg_ns now)
{
    if (r->op.decision.next == STG_GO) {
        report(l, r, stg_failed(STG_FAULT_TIMEOUT));
        return;
    }
    stg_operation_admit(&r->op, now);
    follow(l, r);
}

static void run(loop *l)
{
    struct epoll_event events[EVENTS];

    while (l->waiting > 0) {
        int n;
        stg_ns now;

        set_timer(l);
        n = epoll_wait(l->epoll, events, EVENTS, -1);
        // A socket is watched for one attempt: none of these is of another.
        for (int i = 0; i < n; i++)
            if (events[i].data.ptr != NULL)
                on_socket(l, events[i].data.ptr);
        now = stg_env_system()->now(NULL);
        while (l->waiting > 0 && l->heap[0]->due_at <= now)
            on_due(l, l->heap[0], now);
    }
}

/* -- the server */

static void *serve(void *listener)
{
    static int lost[REQUESTS];
    int lost_count = 0, fd;

    while ((fd = accept(*(int *)listener, NULL, NULL)) >= 0) {
        char text[32] = "";
        unsigned number = 0, attempt = 0;

        if (read(fd, text, sizeof text - 1) > 0)
            sscanf(text, "%u %u", &number, &attempt);
        if (attempt == 1 && number % 10 == 0) {
            lost[lost_count++] = fd; // no answer
            continue;
        }
        if (write(fd, (number + attempt) % 3 == 0 ? "200" : "503", 3) != 3)
            perror("the server");
        close(fd);
    }
    while (lost_count > 0)
        close(lost[--lost_count]);
    return NULL;
}

static int listen_anywhere(struct sockaddr_in *address)
{
    socklen_t length = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    *address = (struct sockaddr_in){.sin_family = AF_INET};
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)address, length) != 0 ||
        getsockname(fd, (struct sockaddr *)address, &length) != 0 ||
        listen(fd, SOMAXCONN) != 0)
        return -1;
    return fd;
}

int main(void)
{
    static request requests[REQUESTS];
    static loop l;
    struct epoll_event tick = {.events = EPOLLIN | EPOLLET};
    stg_policy policy;
    pthread_t thread;
    int listener = listen_anywhere(&l.server);

    l.epoll = epoll_create1(EPOLL_CLOEXEC);
    l.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (listener < 0 || l.epoll < 0 || l.timer < 0 ||
        epoll_ctl(l.epoll, EPOLL_CTL_ADD, l.timer, &tick) != 0 ||
        pthread_create(&thread, NULL, serve, &listener) != 0 ||
        stg_policy_parse(&policy, "interactive base=5ms attempt-timeout=200ms",
                         NULL) != STG_OK) {
        perror("epoll");
        return 2;
    }
    for (int i = 0; i < REQUESTS; i++) {
        request *r = &requests[i];

        r->number = i;
        r->fd = -1;
        put(&l, l.waiting++, r);
        set_due(&l, r, 0);
        stg_operation_begin(&r->op, &policy, NULL);
    }
    run(&l);
    printf("%u of %d done, after %u attempts\n", l.done, REQUESTS, l.attempts);

    shutdown(listener, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(listener);
    close(l.timer);
    close(l.epoll);
    return l.done == REQUESTS && l.gave_up == 0 ? 0 : 1;
}
