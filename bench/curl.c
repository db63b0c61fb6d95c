/* curl.c - what the retry costs around transfers of libcurl that succeed at
 * once: one after the other, and many at once. The bare column is the same
 * without stagger. `make bench` runs it.
 *
 * The peer is a thread of the same program, on connections that are kept. An
 * empty file needs no peer, and shows the difference with less noise; what
 * only answers of HTTP need (to look for Retry-After) is not in it. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stagger/curl.h>
#include <stagger/text.h>

#include "bench/meter.h"

enum { MANY = 32 };

/* -- the peer */

/* Returns whether the connection goes on. A request of a GET comes whole. */
static bool answer(int fd)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    char request[4096];
    ssize_t length = read(fd, request, sizeof request);

    return length > 0 && write(fd, text, sizeof text - 1) > 0;
}

static void *serve(void *listening)
{
    struct pollfd fds[MANY + 8] = {{.fd = *(int *)listening, .events = POLLIN}};
    nfds_t count = 1;

    for (;;) {
        if (poll(fds, count, -1) < 0 && errno != EINTR)
            return NULL;
        for (nfds_t i = 1; i < count; i++) {
            if (fds[i].revents == 0 || answer(fds[i].fd))
                continue;
            close(fds[i].fd);
            fds[i--] = fds[--count];
        }
        if (fds[0].revents != 0 && count < MANY + 8)
            fds[count++] = (struct pollfd){.fd = accept(fds[0].fd, NULL, NULL),
                                           .events = POLLIN};
    }
}

static const char *start_server(void)
{
    static char url[64];
    static int fd;
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    pthread_t thread;

    fd = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)&address, length) != 0 ||
        listen(fd, MANY) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0 ||
        pthread_create(&thread, NULL, serve, &fd) != 0) {
        perror("bench/curl");
        exit(2);
    }
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", ntohs(address.sin_port));
    return url;
}

/* -- transfers */

static CURL *handles[MANY];
static stg_curl_transfer transfers[MANY];
static CURLM *multi;
static stg_curl_multi stagger_multi;
static stg_policy client, backend;
static stg_peer peer;
static unsigned long failures; // there should be none

// NOLINTNEXTLINE(readability-non-const-parameter): as libcurl declares it
static size_t take(char *data, size_t size, size_t count, void *ctx)
{
    (void)data;
    (void)ctx;
    return size * count;
}

static void open_handles(const char *url)
{
    for (int i = 0; i < MANY; i++) {
        curl_easy_cleanup(handles[i]);
        handles[i] = curl_easy_init();
        curl_easy_setopt(handles[i], CURLOPT_URL, url);
        curl_easy_setopt(handles[i], CURLOPT_WRITEFUNCTION, take);
        curl_easy_setopt(handles[i], CURLOPT_NOPROXY, "*");
    }
}

/* -- one after the other */

static void perform_bare(size_t n)
{
    while (n-- > 0)
        failures += curl_easy_perform(handles[0]) != CURLE_OK;
}

static void perform(const stg_policy *policy, const stg_curl_with *with,
                    size_t n)
{
    while (n-- > 0) {
        stg_report report;

        (void)stg_curl_perform(handles[0], policy, with, &report);
        failures += report.attempts != 1 || report.next != STG_DONE;
    }
}

static void perform_client(size_t n)
{
    perform(&client, NULL, n);
}

static void perform_backend(size_t n)
{
    perform(&backend,
            &(stg_curl_with){.with = {.peer = &peer}, .make_key = true}, n);
}

/* -- many at once */

static void read_bare(size_t *running)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(multi, &left)) != NULL) {
        failures += message->data.result != CURLE_OK;
        curl_multi_remove_handle(multi, message->easy_handle);
        --*running;
    }
}

static void turn(int timeout_ms)
{
    int unused;

    curl_multi_poll(multi, NULL, 0, timeout_ms, NULL);
    curl_multi_perform(multi, &unused);
}

static void multi_bare(size_t n)
{
    size_t running, left;

    for (; n > 0; n -= running) {
        left = running = n < MANY ? n : MANY;
        for (size_t i = 0; i < running; i++)
            curl_multi_add_handle(multi, handles[i]);
        while (left > 0) {
            turn(1000);
            read_bare(&left);
        }
    }
}

static void done(stg_curl_transfer *t, CURLcode code, const stg_report *report)
{
    (void)t;
    (void)code;
    failures += report->attempts != 1 || report->next != STG_DONE;
}

static void multi_with(const stg_policy *policy, const stg_curl_with *with,
                       size_t n)
{
    size_t running;

    for (; n > 0; n -= running) {
        running = n < MANY ? n : MANY;
        for (size_t i = 0; i < running; i++)
            (void)stg_curl_multi_add(&stagger_multi, &transfers[i], handles[i],
                                     policy, with, done);
        stg_curl_multi_read(&stagger_multi);
        while (stg_curl_multi_running(&stagger_multi) > 0) {
            turn(stg_curl_multi_timeout(&stagger_multi, 1000));
            stg_curl_multi_read(&stagger_multi);
        }
    }
}

static void multi_client(size_t n)
{
    multi_with(&client, NULL, n);
}

static void multi_backend(size_t n)
{
    multi_with(&backend,
               &(stg_curl_with){.with = {.peer = &peer}, .make_key = true}, n);
}

static void measure(const char *title, const char *url)
{
    meter_begin(title);
    open_handles(url);
    meter_compare("stg_curl_perform", 0, perform_bare, perform_client);
    meter_compare("stg_curl_perform, backend: a peer, and a key", 0,
                  perform_bare, perform_backend);
    meter_compare("stg_curl_multi, 32 at once", 0, multi_bare, multi_client);
    meter_compare("stg_curl_multi, backend: a peer, and keys", 0, multi_bare,
                  multi_backend);
}

int main(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
    multi = curl_multi_init();
    (void)stg_curl_multi_init(&stagger_multi, multi, NULL, NULL);
    (void)stg_policy_parse(&client, "client", NULL);
    (void)stg_policy_parse(&backend, "backend", NULL);
    (void)stg_peer_init(&peer, &backend);

    measure("HTTP on a connection that is kept", start_server());
    measure("an empty file", "file:///dev/null");
    printf("\n");
    meter_number("sizeof(stg_curl_transfer)", sizeof(stg_curl_transfer),
                 "bytes", 0);
    if (failures > 0)
        meter_number("failed", failures, "transfers", 0);
    return failures > 0;
}
