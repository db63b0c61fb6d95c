/* curl_post.c - a POST by libcurl that is sent again where it fails, and booked
 * once.
 *
 * Each attempt has the same Idempotency-Key, which the library makes, so that
 * the server can tell a repetition from a second order. Without a URL as its
 * argument the program has a server of its own, a thread that is busy twice. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stagger/curl.h>
#include <stagger/stagger.h>

/* What the answer's body is written to, from the begin in each attempt. */
typedef struct answer {
    char text[256];
    size_t length;
} answer;

static size_t take(char *data, size_t size, size_t count, void *ctx)
{
    answer *a = ctx;
    size_t bytes = size * count;

    if (bytes > sizeof a->text - 1 - a->length)
        return 0; // too much: libcurl gives up
    memcpy(a->text + a->length, data, bytes);
    a->text[a->length += bytes] = '\0';
    return bytes;
}

static void take_back(void *ctx)
{
    *(answer *)ctx = (answer){.length = 0};
}

static bool post(const char *url, const char *order)
{
    CURL *curl = curl_easy_init();
    answer a = {.length = 0};
    stg_hook log = {.on = stg_event_to_stderr};
    stg_curl_with with = {.with = {.hook = &log},
                          .make_key = true,
                          .reset = take_back,
                          .reset_data = &a};
    stg_policy policy;
    stg_report report;
    char text[STG_REPORT_TEXT_MAX];

    if (curl == NULL || stg_policy_parse(&policy, "client base=10ms", NULL))
        return false;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, order);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &a);
    stg_curl_perform(curl, &policy, &with, &report);
    printf("%s\n%s\n", stg_report_text(&report, text), a.text);
    curl_easy_cleanup(curl);
    return report.next == STG_DONE;
}

/* -- a server that is busy twice */

static void *serve(void *server)
{
    static const char busy[] =
        "HTTP/1.1 503 Busy\r\nretry-after-ms: 30\r\n"
        "Connection: close\r\n\r\nbusy";
    static const char done[] =
        "HTTP/1.1 201 Created\r\n"
        "Connection: close\r\n\r\nbooked";
    static const char *const answers[] = {busy, busy, done};

    for (int i = 0; i < 3; i++) {
        int fd = accept(*(int *)server, NULL, NULL);
        char request[4096];

        if (read(fd, request, sizeof request) < 0 ||
            write(fd, answers[i], strlen(answers[i])) < 0)
            perror("the server");
        close(fd);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    pthread_t thread;
    char url[64];
    bool is_done;

    curl_global_init(CURL_GLOBAL_DEFAULT);
    if (argc > 1)
        return post(argv[1], "item=7") ? 0 : 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK); // and any free port
    if (bind(server, (struct sockaddr *)&address, length) != 0 ||
        listen(server, 3) != 0 ||
        getsockname(server, (struct sockaddr *)&address, &length) != 0 ||
        pthread_create(&thread, NULL, serve, &server) != 0) {
        perror("the server");
        return 2;
    }
    snprintf(url, sizeof url, "http://127.0.0.1:%d/orders",
             ntohs(address.sin_port));
    is_done = post(url, "item=7");
    pthread_join(thread, NULL);
    close(server);
    curl_global_cleanup();
    return is_done ? 0 : 1;
}
