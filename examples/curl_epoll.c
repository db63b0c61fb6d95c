/* curl_epoll.c - many POSTs by libcurl at once, in a plain loop of epoll.
 *
 * The loop is what any program has that drives libcurl by
 * curl_multi_socket_action(): a function that watches sockets, and epoll_wait().
 * New are the three calls of stg_curl_multi: add a transfer, ask how long to
 * wait, read what has ended. No transfer holds up another one while it waits
 * for its next attempt.
 *
 * Without a URL as its argument the program has a server of its own, a thread
 * that is busy at first. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stagger/curl.h>
#include <stagger/stagger.h>

enum { ORDERS = 20, BUSY = 5 };

typedef struct order {
    stg_curl_transfer transfer;
    CURL *easy;
    int number;
    char text[32];
} order;

static int loop; /* of epoll */
static CURLM *curl;
static stg_curl_multi multi;
static unsigned done_count, attempt_count;

/* -- the loop */

/* libcurl wants to know when it can read or write there. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *data,
                     void *known)
{
    struct epoll_event event = {.data.fd = fd};

    (void)easy;
    (void)data;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(loop, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    if (what & CURL_POLL_IN)
        event.events |= EPOLLIN;
    if (what & CURL_POLL_OUT)
        event.events |= EPOLLOUT;
    if (known != NULL)
        return epoll_ctl(loop, EPOLL_CTL_MOD, fd, &event);
    curl_multi_assign(curl, fd, &loop); // it is known from now on
    return epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
}

static void take_turn(void)
{
    struct epoll_event events[64];
    int count, running;

    count = epoll_wait(loop, events, 64, stg_curl_multi_timeout(&multi, -1));
    for (int i = 0; i < count; i++) {
        int what = 0;

        if (events[i].events & EPOLLOUT)
            what |= CURL_CSELECT_OUT;
        if (events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP))
            what |= CURL_CSELECT_IN;
        curl_multi_socket_action(curl, events[i].data.fd, what, &running);
    }
    // The program's own sockets would have their turn here.
    curl_multi_socket_action(curl, CURL_SOCKET_TIMEOUT, 0, &running);
    stg_curl_multi_read(&multi);
}

/* -- the orders */

static size_t drop(char *data, size_t size, size_t count, void *ctx)
{
    (void)data;
    (void)ctx;
    return size * count;
}

static void done(stg_curl_transfer *t, CURLcode code, const stg_report *report)
{
    order *o = t->data;
    char text[STG_REPORT_TEXT_MAX];

    (void)code; // the report knows better: a 503 is CURLE_OK
    done_count += report->next == STG_DONE;
    attempt_count += report->attempts;
    if (o->number % 5 == 0)
        printf("%s: %s\n", o->text, stg_report_text(report, text));
    curl_easy_cleanup(o->easy);
}

static bool post(order *o, int number, const char *url,
                 const stg_policy *policy)
{
    o->number = number;
    o->transfer.data = o;
    o->easy = curl_easy_init();
    snprintf(o->text, sizeof o->text, "item=%d", number);
    curl_easy_setopt(o->easy, CURLOPT_URL, url);
    curl_easy_setopt(o->easy, CURLOPT_POSTFIELDS, o->text);
    curl_easy_setopt(o->easy, CURLOPT_WRITEFUNCTION, drop);
    return stg_curl_multi_add(&multi, &o->transfer, o->easy, policy,
                              &(stg_curl_with){.make_key = true},
                              done) == STG_OK;
}

static int run(const char *url)
{
    static order orders[ORDERS];
    stg_policy policy;

    if (stg_policy_parse(&policy, "interactive base=10ms", NULL) != STG_OK)
        return 2;
    loop = epoll_create1(EPOLL_CLOEXEC);
    curl = curl_multi_init();
    curl_multi_setopt(curl, CURLMOPT_SOCKETFUNCTION, on_socket);
    stg_curl_multi_init(&multi, curl, NULL, NULL);
    for (int i = 0; i < ORDERS; i++)
        if (!post(&orders[i], i, url, &policy))
            return 2;
    while (stg_curl_multi_running(&multi) > 0)
        take_turn();
    stg_curl_multi_close(&multi);
    curl_multi_cleanup(curl);
    close(loop);
    printf("%u of %d done, after %u attempts\n", done_count, ORDERS,
           attempt_count);
    return done_count == ORDERS ? 0 : 1;
}

/* -- a server that is busy at first */

static void *serve(void *server)
{
    static const char busy[] =
        "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    static const char booked[] =
        "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n"
        "Connection: close\r\n\r\n";

    for (int i = 0; i < BUSY + ORDERS; i++) {
        int fd = accept(*(int *)server, NULL, NULL);
        const char *answer = i < BUSY ? busy : booked;
        char request[4096];

        if (read(fd, request, sizeof request) < 0 ||
            write(fd, answer, strlen(answer)) < 0)
            perror("the server");
        close(fd);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM, 0), result;
    pthread_t thread;
    char url[64];

    curl_global_init(CURL_GLOBAL_DEFAULT);
    if (argc > 1)
        return run(argv[1]);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK); // and any free port
    if (bind(server, (struct sockaddr *)&address, length) != 0 ||
        listen(server, ORDERS) != 0 ||
        getsockname(server, (struct sockaddr *)&address, &length) != 0 ||
        pthread_create(&thread, NULL, serve, &server) != 0) {
        perror("the server");
        return 2;
    }
    snprintf(url, sizeof url, "http://127.0.0.1:%d/orders",
             ntohs(address.sin_port));
    result = run(url);
    pthread_join(thread, NULL);
    close(server);
    curl_global_cleanup();
    return result;
}
