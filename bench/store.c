/* store.c - what a row costs in the store, SQLite's or PostgreSQL's: through the
 * calls that the hub makes, group by group. bench/store.py runs it.
 *
 * usage: store PATH|URL ROWS PER_GROUP [SERVER]
 *
 * A line for each kind of row: its name, rows a second, CPU us a row of this
 * process, and of the server, whose first process is SERVER. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host/wall.h"
#include "store/store.h"

enum { BODY = 1024, LANES = 50, CHECKPOINTS = 500 };

typedef struct bench {
    uv_loop_t loop;
    stg_store *store;
    stg_claim claim;
    stg_message *message;
    uint32_t lanes[LANES];
    stg_failure failure;
    size_t rows, per_group;
    stg_change *changes; /* of a group */
    stg_cursor cursors[LANES];
    unsigned long server; /* its first process; 0: none */
    uint64_t appended;    /* the first message of the last group */
    bool is_done;
} bench;

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "store: %s: %s\n", what, why);
    exit(1);
}

/* -- costs ----------------------------------------------------------------- */

static double wall_seconds(void)
{
    return (double)uv_hrtime() / 1e9;
}

static double own_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The field of a row of /proc/PID/stat, from 0 behind the name, which may have
 * anything in it. */
static unsigned long field_of(const char *row, int field)
{
    const char *at = strrchr(row, ')');

    for (int i = 0; at != NULL && i <= field; i++) {
        at = strchr(at, ' ');
        at = at == NULL ? NULL : at + 1;
    }
    return at == NULL ? 0 : strtoul(at, NULL, 10);
}

/* Ticks of a process that is the server's, or was started by it; else 0. */
static unsigned long ticks_of(const char *process, unsigned long server)
{
    char path[300], row[1024] = "";
    FILE *file;

    snprintf(path, sizeof path, "/proc/%s/stat", process);
    file = fopen(path, "r");
    if (file == NULL)
        return 0;
    if (fgets(row, sizeof row, file) == NULL)
        row[0] = '\0';
    fclose(file);
    return strtoul(process, NULL, 10) == server || field_of(row, 1) == server
               ? field_of(row, 11) + field_of(row, 12)
               : 0;
}

/* Of the server's first process and all that it has started, and that lives: so
 * our connections are made before, and closed after. */
static double server_seconds(unsigned long server)
{
    unsigned long ticks = 0;
    DIR *processes = server == 0 ? NULL : opendir("/proc");

    if (processes == NULL)
        return 0;
    for (struct dirent *one; (one = readdir(processes)) != NULL;)
        if (one->d_name[0] >= '1' && one->d_name[0] <= '9')
            ticks += ticks_of(one->d_name, server);
    closedir(processes);
    return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

/* -- the store ------------------------------------------------------------- */

static void on_broken(void *ctx, const stg_error *why)
{
    (void)ctx;
    stop("the store broke", why->text);
}

static void on_claimed(void *ctx, const stg_claimed *claimed)
{
    bench *b = ctx;

    if (claimed->status != STG_OK)
        stop("no partition", claimed->words);
    b->claim = (stg_claim){.partition = claimed->number,
                           .generation = claimed->generation};
    b->is_done = true;
}

static void on_stored(void *ctx, stg_stored how, const uint32_t *fenced,
                      size_t count)
{
    bench *b = ctx;

    (void)fenced;
    (void)count;
    if (how != STG_STORED)
        stop("a group", "was not stored");
    b->is_done = true;
}

static void on_closed(void *ctx)
{
    bench *b = ctx;

    b->is_done = true;
}

static void wait_for_it(bench *b)
{
    while (!b->is_done)
        uv_run(&b->loop, UV_RUN_ONCE);
    b->is_done = false;
}

static void open_store(bench *b, const char *path)
{
    stg_store_options o = stg_store_options_default(path);
    stg_claim_ask ask = {.log = "bench",
                         .topic = "bench",
                         .end = STG_NO_POSITION,
                         .committed = STG_NO_POSITION,
                         .previous = STG_NO_PARTITION,
                         .ctx = b};
    stg_error err;

    o.quota = UINT64_C(1) << 36;
    o.broken = on_broken;
    o.ctx = b;
    if (uv_loop_init(&b->loop) != 0)
        stop(path, "no loop");
    if (stg_store_open(&b->store, &b->loop, &o, &err) != STG_OK)
        stop(path, err.text);
    for (uint32_t i = 0; i < LANES; i++) {
        char name[16];

        snprintf(name, sizeof name, "t%" PRIu32, i);
        if (stg_store_lane(b->store, name, "http://127.0.0.1/", &b->lanes[i],
                           &err) != STG_OK)
            stop(name, err.text);
    }
    stg_store_claim(b->store, &ask, 1, on_claimed);
    wait_for_it(b);
}

static void close_store(bench *b)
{
    stg_store_close(b->store, on_closed, b);
    wait_for_it(b);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    uv_loop_close(&b->loop);
}

/* -- rows ------------------------------------------------------------------ */

static void make_message(bench *b)
{
    static char body[BODY];
    const stg_parcel parcel = {
        .content_type = {"application/json", 16},
        .headers = {"X-Kind: order\r\nX-Of: bench\r\n", 28},
        .body = {memset(body, 'x', sizeof body), sizeof body}};
    size_t size = stg_parcel_size(&parcel);

    b->message = calloc(1, sizeof *b->message + size);
    if (b->message == NULL)
        stop("a message", "no memory");
    b->message->size = size;
    b->message->created_at = stg_wall_now();
    stg_parcel_pack(&parcel, b->message->bytes);
}

typedef struct kind {
    const char *name;
    stg_change_kind change;
    bool has_failure;
    uint64_t from; /* position of the first row, in rows */
} kind;

/* Each message to all lanes, as a broadcast that fails. */
static void make_change(bench *b, const kind *k, size_t row, stg_change *c)
{
    *c = (stg_change){.kind = k->change,
                      .lane = b->lanes[row % LANES],
                      .partition = b->claim.partition,
                      .position = k->from + row / LANES,
                      .message = b->message,
                      .failure = k->has_failure ? &b->failure : NULL,
                      .progress = {.attempts = 1},
                      .wait = STG_MIN,
                      .due_at = stg_wall_now() + STG_MIN};
}

static void store(bench *b, size_t changes, size_t cursors)
{
    const stg_group g = {.changes = b->changes,
                         .change_count = changes,
                         .cursors = b->cursors,
                         .cursor_count = cursors,
                         .claims = &b->claim,
                         .claim_count = 1};

    stg_store_group(b->store, &g, on_stored, b);
    wait_for_it(b);
}

/* With the cursors that rely on them, as flow does. */
static void store_rows(bench *b, const kind *k)
{
    for (size_t row = 0; row < b->rows;) {
        size_t count = 0;

        while (count < b->per_group && row < b->rows)
            make_change(b, k, row++, &b->changes[count++]);
        for (uint32_t i = 0; i < LANES; i++)
            b->cursors[i].base++;
        store(b, count, LANES);
    }
}

static void on_appended(void *ctx, stg_appended how,
                        const stg_append_answer *answers, size_t at)
{
    bench *b = ctx;

    (void)at;
    if (how != STG_APPENDED)
        stop("messages", "were not appended");
    b->appended = answers[0].position;
    b->is_done = true;
}

/* Of the queue, each group delivered when the next one comes: with their trim. */
static void store_messages(bench *b, const kind *k)
{
    stg_append *messages = calloc(b->per_group, sizeof *messages);
    size_t count;

    (void)k;
    if (messages == NULL)
        stop("messages", "no memory");
    for (size_t i = 0; i < b->per_group; i++)
        stg_parcel_unpack(&messages[i].parcel, b->message->bytes,
                          b->message->size);
    for (size_t row = 0; row < b->rows; row += count) {
        count = b->rows - row < b->per_group ? b->rows - row : b->per_group;
        stg_store_append(b->store, messages, count, on_appended, b);
        wait_for_it(b);
        stg_store_commit(b->store, b->appended);
    }
    free(messages);
}

/* Nothing else, a row of the table each time: 50 lanes of a partition. */
static void store_cursors(bench *b, const kind *k)
{
    (void)k;
    for (size_t row = 0; row < CHECKPOINTS; row++) {
        for (uint32_t i = 0; i < LANES; i++)
            b->cursors[i].base++;
        store(b, 0, LANES);
    }
}

static void measure(bench *b, const kind *k, size_t count,
                    void (*work)(bench *b, const kind *k))
{
    double server = server_seconds(b->server), own = own_seconds(),
           wall = wall_seconds();
    double each = 1e6 / (double)count;

    work(b, k);
    wall = wall_seconds() - wall;
    own = own_seconds() - own;
    server = server_seconds(b->server) - server;
    printf("%s %.0f %.2f %.2f\n", k->name, (double)count / wall, own * each,
           server * each);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const kind kinds[] = {
        {"parked", STG_CHANGE_PARK, true, 0},
        {"parked-again", STG_CHANGE_PARK, true, 0},
        {"delivered", STG_CHANGE_DELIVERED, false, 0},
        {"dead", STG_CHANGE_DEAD, true, 1 << 30},
    };
    static bench b = {.failure = {.outcome = {.fault = STG_FAULT_5XX,
                                              .code_kind = STG_CODE_STATUS,
                                              .code = 503},
                                  .why = STG_WHY_BACKOFF,
                                  .detail = "it said no",
                                  .answer = "busy",
                                  .answer_size = 4}};
    kind again = kinds[0],
         died = {"parked-dead", STG_CHANGE_DEAD, true, 1 << 29};

    if (argc < 4) {
        fprintf(stderr, "usage: store PATH|URL ROWS PER_GROUP [SERVER]\n");
        return 2;
    }
    b.rows = strtoul(argv[2], NULL, 10);
    b.per_group = strtoul(argv[3], NULL, 10);
    b.server = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
    b.changes = calloc(b.per_group, sizeof *b.changes);
    if (b.changes == NULL)
        stop("a group", "no memory");
    make_message(&b);
    open_store(&b, argv[1]);
    b.failure.first_attempt_at = b.failure.last_attempt_at = stg_wall_now();
    for (uint32_t i = 0; i < LANES; i++)
        b.cursors[i] =
            (stg_cursor){.lane = b.lanes[i], .partition = b.claim.partition};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        measure(&b, &kinds[i], b.rows, store_rows);
    again.from = died.from;
    store_rows(&b, &again);
    measure(&b, &died, b.rows, store_rows);
    measure(&b, &(kind){.name = "cursors"}, CHECKPOINTS, store_cursors);
    if (!stg_store_is_url(argv[1]))
        measure(&b, &(kind){.name = "messages"}, b.rows, store_messages);
    close_store(&b);
    free(b.message);
    free(b.changes);
    return 0;
}
