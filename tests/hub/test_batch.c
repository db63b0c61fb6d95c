/* What of a batch is left when a member is cancelled while its request is under
 * way; and how long a recovery looks for dead letters. */
#include "hub/batch.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hub/control.h"
#include "hub/hub_internal.h"
#include "tests/harness.h"
#include "tests/hub/place.h"

typedef struct scene {
    place at;   /* whose listener is the target's */
    int target; /* its connection; -1: none yet */
} scene;

static void write_settings(const scene *p)
{
    FILE *file = fopen(p->at.path, "w");

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
            p->at.folder, p->at.port);
    CHECK(fclose(file) == 0);
}

static int open_socket(struct sockaddr_in *at)
{
    *at = (struct sockaddr_in){.sin_family = AF_INET};
    at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return socket(AF_INET, SOCK_STREAM, 0);
}

static void open_scene(scene *p)
{
    place_begin(&p->at);
    p->target = -1;
    write_settings(p);
    place_start(&p->at);
}

static void close_scene(scene *p)
{
    if (p->target >= 0)
        close(p->target);
    place_end(&p->at);
}

static void turn(scene *p)
{
    (void)uv_run(&p->at.loop, UV_RUN_ONCE);
}

/* -- a batch --------------------------------------------------------------- */

/* Posts two messages, and runs until their request is under way. */
static stg_bundle *send_two(scene *p)
{
    static const char request[] =
        "POST /v1/messages/batch HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        "Content-Type: application/x-ndjson\r\nContent-Length: 26\r\n\r\n"
        "{\"body\":\"1\"}\n{\"body\":\"2\"}\n";
    stg_hub_view v;
    struct sockaddr_in at;
    int client = open_socket(&at);
    stg_bundle *g;

    stg_hub_look(p->at.hub, &v);
    at.sin_port = htons(v.port);
    CHECK(connect(client, (struct sockaddr *)&at, sizeof at) == 0);
    CHECK(write(client, request, sizeof request - 1) ==
          (ssize_t)sizeof request - 1);
    do {
        turn(p);
        g = STG_HOLDER(stg_list_first(&p->at.hub->attempts.batches), stg_bundle,
                       link);
    } while (g == NULL || g->exchange == NULL);
    close(client);
    return g;
}

/* Of the target: takes what came, which has the words, and says the answer. */
static void answer(scene *p, const char *words, const char *says)
{
    char heard[4096];
    ssize_t size = -1;

    if (p->target < 0)
        p->target = accept(p->at.listener, NULL, NULL);
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

static const stg_target *end_request(scene *p)
{
    const stg_target *t = p->at.hub->targets.all[0];

    while (t->batcher->under_way > 0)
        turn(p);
    return t;
}

TEST(batch, has_a_result_for_each_that_was_sent)
{
    char cause[STG_CAUSE_MAX];
    scene p;

    open_scene(&p);
    cancel_first(send_two(&p));
    answer(&p, "Stagger-Batch: 2\r\n",
           "HTTP/1.1 207 Multi\r\nContent-Length: 47\r\n\r\n"
           "{\"results\": [{\"status\": 200}, {\"status\": 404}]}");
    CHECK_STR(stg_target_cause(&end_request(&p)->last, cause), "HTTP_404");
    close_scene(&p);
}

TEST(batch, is_split_when_more_were_sent_than_are_left)
{
    scene p;

    open_scene(&p);
    cancel_first(send_two(&p));
    answer(&p, "Stagger-Batch: 2\r\n",
           "HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n");
    answer(&p, "Stagger-Batch: 1\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    CHECK(end_request(&p)->failing_since == 0);
    close_scene(&p);
}

/* -- a recovery ------------------------------------------------------------ */

static void end_look(scene *p, const stg_target *t)
{
    while (t->recovery == STG_RECOVERY_RUNNING)
        turn(p);
}

TEST(recovery, looks_behind_two_groups_and_no_more)
{
    scene p;
    stg_target *t;

    open_scene(&p);
    t = p.at.hub->targets.all[0];
    while (p.at.hub->groups_stored == 0) // the one of the hub's start
        turn(&p);
    stg_recovery_note(p.at.hub, t);
    end_look(&p, t);
    CHECK_INT(t->recovery, STG_RECOVERY_AGAIN);
    stg_recovery_stored(p.at.hub);
    end_look(&p, t);
    CHECK_INT(t->recovery, STG_RECOVERY_AGAIN);
    stg_recovery_stored(p.at.hub);
    end_look(&p, t);
    CHECK_INT(t->recovery, STG_RECOVERY_DONE);
    close_scene(&p);
}
