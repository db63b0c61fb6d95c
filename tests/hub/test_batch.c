/* What of a batch is left when a member is cancelled while its request is under
 * way; and how long a recovery looks for dead letters. */
#include "hub/batch.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "admin/admin.h"
#include "config/load.h"
#include "hub/control.h"
#include "hub/hub_internal.h"
#include "tests/harness.h"

typedef struct place {
    uv_loop_t loop;
    char folder[64], path[96];
    int listener, port; /* of the target */
    int target;         /* its connection; -1: none yet */
    stg_hub *hub;
    bool has_ended;
} place;

static void write_settings(const place *p)
{
    FILE *file = fopen(p->path, "w");

    CHECK(file != NULL);
    fprintf(file,
            "listen: {address: '127.0.0.1:0'}\n"
            "drain: 1s\n"
            "store: {path: %s/store.db}\n"
            "targets:\n"
            "  - name: a\n"
            "    url: 'http://127.0.0.1:%d/'\n"
            "    policy: none\n"
            "    replay: on-recovery\n"
            "    batch: {max: 2, linger: 1m, results: true}\n",
            p->folder, p->port);
    CHECK(fclose(file) == 0);
}

static void note_end(void *ctx, const stg_hub_end *end)
{
    place *p = ctx;

    (void)end;
    p->has_ended = true;
}

static int open_socket(struct sockaddr_in *at)
{
    *at = (struct sockaddr_in){.sin_family = AF_INET};
    at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return socket(AF_INET, SOCK_STREAM, 0);
}

static void open_place(place *p)
{
    const char *top = getenv("TMPDIR");
    stg_diagnostics c = {.all = NULL};
    stg_hub_options o = {
        .calls = &stg_admin_calls, .ended = note_end, .ctx = p};
    stg_error err = {.text = ""};
    struct sockaddr_in at;
    socklen_t size = sizeof at;

    *p = (place){.target = -1};
    snprintf(p->folder, sizeof p->folder, "%.40s/stagger-XXXXXX",
             top != NULL ? top : "/tmp");
    CHECK(mkdtemp(p->folder) != NULL);
    snprintf(p->path, sizeof p->path, "%s/hub.yaml", p->folder);
    p->listener = open_socket(&at);
    CHECK(bind(p->listener, (struct sockaddr *)&at, size) == 0);
    CHECK(listen(p->listener, 8) == 0);
    CHECK(getsockname(p->listener, (struct sockaddr *)&at, &size) == 0);
    p->port = ntohs(at.sin_port);
    write_settings(p);
    CHECK(uv_loop_init(&p->loop) == 0);
    CHECK_INT(stg_settings_load(p->path, &o.settings, &c), STG_OK);
    stg_diagnostics_free(&c);
    (void)stg_hub_open(&p->hub, &p->loop, &o, &err);
    CHECK_STR(err.text, "");
}

static void close_place(place *p)
{
    char command[96];

    stg_hub_stop(p->hub);
    if (p->target >= 0)
        close(p->target);
    close(p->listener);
    CHECK(uv_run(&p->loop, UV_RUN_DEFAULT) == 0);
    CHECK(p->has_ended);
    stg_hub_free(p->hub);
    CHECK(uv_loop_close(&p->loop) == 0);
    snprintf(command, sizeof command, "rm -rf %s", p->folder);
    CHECK(system(command) == 0);
}

static void turn(place *p)
{
    (void)uv_run(&p->loop, UV_RUN_ONCE);
}

/* -- a batch --------------------------------------------------------------- */

/* Posts two messages, and runs until their request is under way. */
static stg_bundle *send_two(place *p)
{
    static const char request[] =
        "POST /v1/messages/batch HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        "Content-Type: application/x-ndjson\r\nContent-Length: 26\r\n\r\n"
        "{\"body\":\"1\"}\n{\"body\":\"2\"}\n";
    stg_hub_view v;
    struct sockaddr_in at;
    int client = open_socket(&at);
    stg_bundle *g;

    stg_hub_look(p->hub, &v);
    at.sin_port = htons(v.port);
    CHECK(connect(client, (struct sockaddr *)&at, sizeof at) == 0);
    CHECK(write(client, request, sizeof request - 1) ==
          (ssize_t)sizeof request - 1);
    do {
        turn(p);
        g = STG_HOLDER(stg_list_first(&p->hub->attempts.batches), stg_bundle,
                       link);
    } while (g == NULL || g->exchange == NULL);
    close(client);
    return g;
}

/* Of the target: takes what came, which has the words, and says the answer. */
static void answer(place *p, const char *words, const char *says)
{
    char heard[4096];
    ssize_t size = -1;

    if (p->target < 0)
        p->target = accept(p->listener, NULL, NULL);
    CHECK(p->target >= 0);
    while ((size = recv(p->target, heard, sizeof heard - 1, MSG_DONTWAIT)) < 0)
        turn(p);
    heard[size] = '\0';
    CHECK(strstr(heard, words) != NULL);
    CHECK(write(p->target, says, strlen(says)) == (ssize_t)strlen(says));
}

/* It waits for another batch. */
static void cancel_first(const stg_bundle *g)
{
    stg_batch_cancel(&stg_batch_first(g)->attempt);
    CHECK_U64(g->count, 1);
}

static const stg_target *end_request(place *p)
{
    const stg_target *t = p->hub->targets.all[0];

    while (t->batcher->under_way > 0)
        turn(p);
    return t;
}

TEST(batch, has_a_result_for_each_that_was_sent)
{
    place p;

    open_place(&p);
    cancel_first(send_two(&p));
    answer(&p, "Stagger-Batch: 2\r\n",
           "HTTP/1.1 207 Multi\r\nContent-Length: 47\r\n\r\n"
           "{\"results\": [{\"status\": 200}, {\"status\": 404}]}");
    CHECK_STR(end_request(&p)->cause, "HTTP_404");
    close_place(&p);
}

TEST(batch, is_split_when_more_were_sent_than_are_left)
{
    place p;

    open_place(&p);
    cancel_first(send_two(&p));
    answer(&p, "Stagger-Batch: 2\r\n",
           "HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n");
    answer(&p, "Stagger-Batch: 1\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    CHECK(end_request(&p)->failing_since == 0);
    close_place(&p);
}

/* -- a recovery ------------------------------------------------------------ */

static void end_look(place *p, const stg_target *t)
{
    while (t->recovery == STG_RECOVERY_RUNNING)
        turn(p);
}

TEST(recovery, looks_behind_two_groups_and_no_more)
{
    place p;
    stg_target *t;

    open_place(&p);
    t = p.hub->targets.all[0];
    while (p.hub->groups_stored == 0) // the one of the hub's start
        turn(&p);
    stg_recovery_note(p.hub, t);
    end_look(&p, t);
    CHECK_INT(t->recovery, STG_RECOVERY_AGAIN);
    stg_recovery_stored(p.hub);
    end_look(&p, t);
    CHECK_INT(t->recovery, STG_RECOVERY_AGAIN);
    stg_recovery_stored(p.hub);
    end_look(&p, t);
    CHECK_INT(t->recovery, STG_RECOVERY_DONE);
    close_place(&p);
}
