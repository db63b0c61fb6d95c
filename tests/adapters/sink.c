#include "tests/adapters/sink.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness.h"

enum { WORDS_MAX = 32, TEXT_MAX = 32768 };

/* -- stagger sink */

static pid_t sink_pid;
static char log_path[] = "/tmp/stagger-sink-XXXXXX";
static bool has_log;

static void kill_sink(void)
{
    if (sink_pid != 0) {
        kill(sink_pid, SIGTERM);
        waitpid(sink_pid, NULL, 0);
    }
    sink_pid = 0;
}

__attribute__((destructor)) static void clean(void)
{
    kill_sink();
    if (has_log)
        unlink(log_path);
}

static void make_log(void)
{
    int fd = has_log ? -1 : mkstemp(log_path);

    if (fd >= 0)
        close(fd);
    has_log = true;
    CHECK(truncate(log_path, 0) == 0);
}

static void run_sink(const char *options, int out)
{
    char text[512], *rest = text, *word, *words[WORDS_MAX] = {NULL};
    int count = 0;

    snprintf(text, sizeof text, STAGGER " sink --listen 0 --log %s %s",
             log_path, options);
    while ((word = strtok_r(rest, " ", &rest)) != NULL && count < WORDS_MAX - 1)
        words[count++] = word;
    dup2(out, 1);
    execv(STAGGER, words);
    _exit(127);
}

const char *sink_start(const char *options)
{
    static char url[64];
    int ends[2];
    FILE *out;

    kill_sink();
    make_log();
    CHECK(pipe(ends) == 0);
    sink_pid = fork();
    if (sink_pid == 0)
        run_sink(options, ends[1]);
    close(ends[1]);
    out = fdopen(ends[0], "r");
    CHECK(out != NULL &&
          fscanf(out, "stagger sink: listening on %63s", url) == 1);
    fclose(out);
    return url;
}

/* The text of a field of a line of JSON, "" for null. */
static void read_field(const char *line, const char *name, char text[64])
{
    char key[32];
    const char *at;

    snprintf(key, sizeof key, "\"%s\":", name);
    at = strstr(line, key);
    CHECK(at != NULL);
    at += strlen(key);
    at += strspn(at, " \"");
    snprintf(text, 64, "%.*s", (int)strcspn(at, "\",}"), at);
    if (strcmp(text, "null") == 0)
        text[0] = '\0';
}

/* A letter for each different one. */
static char letter_of(const char *id, char ids[26][64], unsigned *count)
{
    if (id[0] == '\0')
        return '-';
    for (unsigned i = 0; i < *count; i++)
        if (strcmp(ids[i], id) == 0)
            return (char)('a' + i);
    CHECK(*count < 26);
    memcpy(ids[*count], id, 64);
    return (char)('a' + (*count)++);
}

const char *sink_stop(void)
{
    static char told[TEXT_MAX];
    char line[1024], method[64], path[64], status[64], size[64], id[64];
    char ids[26][64];
    unsigned count = 0;
    size_t length = 0;
    FILE *log;

    kill_sink();
    log = fopen(log_path, "r");
    CHECK(log != NULL);
    told[0] = '\0';
    while (fgets(line, sizeof line, log) != NULL) {
        read_field(line, "method", method);
        read_field(line, "path", path);
        read_field(line, "status", status);
        read_field(line, "size", size);
        read_field(line, "id", id);
        length += (size_t)snprintf(told + length, sizeof told - length,
                                   "%s %s %s %s %c\n", method, path, status,
                                   size, letter_of(id, ids, &count));
        CHECK(length < sizeof told);
    }
    fclose(log);
    return told;
}

/* -- listening sockets */

/* Returns its port; backlog < 0: it is bound, and does not listen. */
static int listen_at(int *fd, int backlog)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(*fd >= 0 && bind(*fd, (struct sockaddr *)&address, length) == 0);
    CHECK(backlog < 0 || listen(*fd, backlog) == 0);
    CHECK(getsockname(*fd, (struct sockaddr *)&address, &length) == 0);
    return ntohs(address.sin_port);
}

const char *silent_start(const char *scheme)
{
    static char url[64];
    static int fd = -1;

    if (fd >= 0)
        close(fd);
    snprintf(url, sizeof url, "%s://127.0.0.1:%d/", scheme, listen_at(&fd, 64));
    return url;
}

const char *nobody(void)
{
    static char url[64];
    static int fd = -1;

    if (fd < 0)
        snprintf(url, sizeof url, "http://127.0.0.1:%d/", listen_at(&fd, -1));
    return url;
}

/* -- canned answers */

static struct {
    int fd;
    pthread_t thread;
    const char *const *answers;
    unsigned count;
    char told[TEXT_MAX];
} canned = {.fd = -1};

/* Whether the head and the body that it announces are there. */
static bool is_whole(const char *request)
{
    const char *body = strstr(request, "\r\n\r\n");
    const char *length = strstr(request, "Content-Length: ");

    if (body == NULL)
        return false;
    if (strstr(request, "Transfer-Encoding: chunked") != NULL)
        return strstr(body, "\r\n0\r\n\r\n") != NULL;
    return length == NULL || strlen(body + 4) >= strtoul(length + 16, NULL, 10);
}

static void answer(const char *text)
{
    char request[4096] = "";
    size_t length = 0;
    int fd = accept(canned.fd, NULL, NULL);

    CHECK(fd >= 0);
    while (!is_whole(request)) {
        ssize_t n = read(fd, request + length, sizeof request - 1 - length);

        CHECK(n > 0);
        length += (size_t)n;
        request[length] = '\0';
    }
    request[strcspn(request, "\r")] = '\n';
    request[strcspn(request, "\n") + 1] = '\0';
    strncat(canned.told, request, sizeof canned.told - 1 - strlen(canned.told));
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void *serve(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < canned.count; i++)
        answer(canned.answers[i]);
    return NULL;
}

const char *canned_start(const char *const *answers, unsigned count)
{
    static char url[64];

    canned.answers = answers;
    canned.count = count;
    canned.told[0] = '\0';
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", listen_at(&canned.fd, 8));
    CHECK(pthread_create(&canned.thread, NULL, serve, NULL) == 0);
    return url;
}

const char *canned_stop(void)
{
    CHECK(pthread_join(canned.thread, NULL) == 0);
    close(canned.fd);
    return canned.told;
}
