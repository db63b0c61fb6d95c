#include "tests/adapters/pq_proxy.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/harness.h"

static struct sockaddr_un address_in(const char *folder)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path, sizeof address.sun_path,
                          "%s/.s.PGSQL.5432", folder);

    CHECK(length > 0 && (size_t)length < sizeof address.sun_path);
    return address;
}

static bool copy(const char *bytes, ssize_t size, int to)
{
    while (size > 0) {
        ssize_t count = send(to, bytes, (size_t)size, MSG_NOSIGNAL);

        if (count <= 0)
            return false;
        bytes += count;
        size -= count;
    }
    return true;
}

/* libpq sends a command in one piece. */
static bool is_commit(const char *bytes, ssize_t size)
{
    static const char commit[] = "COMMIT";

    return size == 5 + (ssize_t)sizeof commit && bytes[0] == 'Q' &&
           memcmp(bytes + 5, commit, sizeof commit) == 0;
}

/* From the client. False: the connection ends here. */
static bool pass_on(pq_proxy *p, int client, int server)
{
    char bytes[65536];
    ssize_t size = recv(client, bytes, sizeof bytes, 0);

    if (size <= 0)
        return false;
    if (p->loss == PQ_LOSE_NOTHING || !is_commit(bytes, size) ||
        atomic_fetch_sub(&p->commits, 1) <= 0)
        return copy(bytes, size, server);
    if (p->loss == PQ_LOSE_COMMIT || !copy(bytes, size, server))
        return false;
    size = recv(server, bytes, sizeof bytes, 0); // the COMMIT is done
    if (p->loss == PQ_CUT_ANSWER)
        (void)copy(bytes, size < 12 ? size : 12, client); // C, 4 bytes, COMMIT
    if (p->loss == PQ_HOLD_ANSWER)
        (void)!recv(client, bytes, sizeof bytes, 0); // until the client ends it
    return false;
}

static bool pass_back(int client, int server)
{
    char bytes[65536];
    ssize_t size = recv(server, bytes, sizeof bytes, 0);

    return size > 0 && copy(bytes, size, client);
}

static void serve(pq_proxy *p, int client, int server)
{
    struct pollfd fds[2] = {{.fd = client, .events = POLLIN},
                            {.fd = server, .events = POLLIN}};
    bool is_going = true;

    while (is_going && poll(fds, 2, -1) > 0) {
        if (fds[0].revents != 0)
            is_going = pass_on(p, client, server);
        if (is_going && fds[1].revents != 0)
            is_going = pass_back(client, server);
    }
}

static void *run(void *ctx)
{
    pq_proxy *p = ctx;
    struct sockaddr_un address = address_in(p->server);
    int client;

    while ((client = accept(p->listener, NULL, NULL)) >= 0) {
        int server = socket(AF_UNIX, SOCK_STREAM, 0);

        if (connect(server, (struct sockaddr *)&address, sizeof address) == 0)
            serve(p, client, server);
        close(server);
        close(client);
    }
    return NULL;
}

void pq_proxy_begin(pq_proxy *p, const char *folder)
{
    struct sockaddr_un address;

    memset(p, 0, sizeof *p);
    snprintf(p->server, sizeof p->server, "%s", folder);
    snprintf(p->folder, sizeof p->folder, "/tmp/stagger-proxy.XXXXXX");
    CHECK(mkdtemp(p->folder) != NULL);
    address = address_in(p->folder);
    p->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(p->listener, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(p->listener, 8) == 0);
    CHECK(pthread_create(&p->thread, NULL, run, p) == 0);
}

/* All its connections are closed. */
void pq_proxy_end(pq_proxy *p)
{
    struct sockaddr_un address = address_in(p->folder);

    shutdown(p->listener, SHUT_RDWR);
    pthread_join(p->thread, NULL);
    close(p->listener);
    unlink(address.sun_path);
    rmdir(p->folder);
}
