#include "tests/store/fixture.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef STAGGER_POSTGRES
#include <libpq-fe.h>
#endif

#include "store/store_file.h"
#include "tests/harness.h"

enum { TEXT = 65536 };

static char text[TEXT];
static size_t text_size;

static void clear(void)
{
    text[0] = '\0';
    text_size = 0;
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(text + text_size, TEXT - text_size, format, args);
    va_end(args);
    CHECK(length >= 0 && (size_t)length < TEXT - text_size);
    text_size += (size_t)length;
}

/* -- the file */

static void on_broken(void *ctx, const stg_error *why)
{
    fixture *s = ctx;

    s->times_broken++;
    snprintf(s->words, sizeof s->words, "%s", why->text);
}

static void on_retaining(void *ctx, uint64_t position)
{
    fixture *s = ctx;

    s->times_retaining++;
    s->retaining = position;
}

static void on_troubled(void *ctx, stg_store_trouble what, const stg_error *why)
{
    fixture *s = ctx;

    (void)what;
    if (why == NULL) {
        s->times_untroubled++;
        return;
    }
    s->times_troubled++;
    snprintf(s->words, sizeof s->words, "%s", why->text);
}

/* -- PostgreSQL: a schema for each fixture */

#ifdef STAGGER_POSTGRES
static void ask_postgres(const char *url, const char *sql)
{
    PGconn *conn = PQconnectdb(url);
    PGresult *r;

    CHECK_STR(PQerrorMessage(conn), "");
    // As SQLite would show it.
    PQclear(PQexec(conn,
                   "SET client_min_messages = 'warning';"
                   "SET bytea_output = 'escape'"));
    r = PQexec(conn, sql);
    CHECK_STR(PQresultErrorMessage(r), "");
    for (int row = 0; row < PQntuples(r); row++)
        for (int i = 0; i < PQnfields(r); i++)
            say("%s%s",
                i > 0           ? "|"
                : text_size > 0 ? "\n"
                                : "",
                PQftype(r, i) != 16             ? PQgetvalue(r, row, i)
                : *PQgetvalue(r, row, i) == 't' ? "1"
                                                : "0");
    PQclear(r);
    PQfinish(conn);
}

static void make_schema(fixture *s, const char *url)
{
    char sql[96];

    s->is_postgres = true;
    snprintf(s->schema, sizeof s->schema, "fixture_%d_%lx", (int)getpid(),
             (unsigned long)uv_hrtime());
    snprintf(s->server, sizeof s->server, "%s", url);
    snprintf(s->path, sizeof s->path, "%s&options=-csearch_path%%3D%s", url,
             s->schema);
    snprintf(sql, sizeof sql, "CREATE SCHEMA %s", s->schema);
    ask_postgres(s->server, sql);
}

static void drop_schema(fixture *s)
{
    char sql[96];

    snprintf(sql, sizeof sql, "DROP SCHEMA %s CASCADE", s->schema);
    ask_postgres(s->server, sql);
}
#else
static void ask_postgres(const char *url, const char *sql)
{
    (void)url;
    (void)sql;
}

static void make_schema(fixture *s, const char *url)
{
    (void)s;
    (void)url;
    CHECK_STR("no libpq", "built with PostgreSQL");
}

static void drop_schema(fixture *s)
{
    (void)s;
}
#endif

void fixture_make(fixture *s)
{
    const char *tmp = getenv("TMPDIR");
    const char *url = getenv("STAGGER_TEST_POSTGRES");

    memset(s, 0, sizeof *s);
    snprintf(s->folder, sizeof s->folder, "%.40s/stagger-XXXXXX",
             tmp != NULL ? tmp : "/tmp");
    CHECK(mkdtemp(s->folder) != NULL);
    snprintf(s->path, sizeof s->path, "%s/store.db", s->folder);
    snprintf(s->letters, sizeof s->letters, "%s/letters", s->folder);
    if (url != NULL)
        make_schema(s, url);
    s->options = stg_store_options_default(s->path);
    s->options.broken = on_broken;
    s->options.retaining = on_retaining;
    s->options.troubled = on_troubled;
    s->options.ctx = s;
    CHECK_INT(uv_loop_init(&s->loop), 0);
}

void fixture_share(fixture *s, const fixture *with)
{
    fixture_make(s);
    if (s->schema[0] != '\0')
        drop_schema(s);
    s->schema[0] = '\0';
    snprintf(s->path, sizeof s->path, "%s", with->path);
}

void fixture_open(fixture *s)
{
    stg_error err = {.text = ""};
    stg_status status = stg_store_open(&s->store, &s->loop, &s->options, &err);

    CHECK_STR(err.text, "");
    CHECK_INT(status, STG_OK);
    s->was_open = true;
}

static void on_closed(void *ctx)
{
    fixture *s = ctx;

    s->is_closed = true;
}

void fixture_close(fixture *s)
{
    s->is_closed = false;
    stg_store_close(s->store, on_closed, s);
    s->store = NULL;
    FIXTURE_UNTIL(s, s->is_closed);
}

void fixture_reopen(fixture *s)
{
    fixture_close(s);
    fixture_open(s);
}

/* Many tests have lanes that read in a log that has nothing. */
static void refuse_flaw(void *ctx, const char *words)
{
    (void)ctx;
    if (strstr(words, "its cursor is beyond the log") == NULL)
        CHECK_STR(words, "");
}

static void verify(const fixture *s)
{
    stg_error err = {.text = ""};
    stg_verified v;

    CHECK_INT(stg_verify(s->path, &v, refuse_flaw, NULL, &err), STG_OK);
}

void fixture_end(fixture *s)
{
    char command[96];

    if (s->store != NULL)
        fixture_close(s);
    if (s->was_open && !s->is_made_up && !s->is_postgres)
        verify(s);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    CHECK_INT(uv_loop_close(&s->loop), 0);
    for (size_t i = 0; i < s->message_count; i++)
        free(s->messages[i]);
    if (s->schema[0] != '\0')
        drop_schema(s);
    snprintf(command, sizeof command, "rm -rf %s", s->folder);
    CHECK_INT(system(command), 0);
}

void fixture_turn(fixture *s)
{
    uv_run(&s->loop, UV_RUN_NOWAIT);
    usleep(5000);
}

uint64_t fixture_next(const fixture *s)
{
    return stg_store_first(s->store) + stg_store_count_from(s->store, 0);
}

const char *fixture_refused(fixture *s, stg_status status)
{
    static stg_error err;
    stg_store *store = NULL;

    s->was_open = false;
    err.text[0] = '\0';
    CHECK_INT(stg_store_open(&store, &s->loop, &s->options, &err), status);
    // Its handle closes.
    uv_run(&s->loop, UV_RUN_NOWAIT);
    return err.text;
}

static int add_row(void *ctx, int count, char **values, char **names)
{
    (void)ctx;
    (void)names;
    say("%s", text_size > 0 ? "\n" : "");
    for (int i = 0; i < count; i++)
        say("%s%s", i > 0 ? "|" : "", values[i] == NULL ? "" : values[i]);
    return 0;
}

const char *fixture_ask(fixture *s, const char *sql)
{
    sqlite3 *db = NULL;
    char *words = NULL;

    clear();
    if (s->is_postgres) {
        ask_postgres(s->path, sql);
        return text;
    }
    CHECK_INT(sqlite3_open(s->path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    sqlite3_exec(db, sql, add_row, NULL, &words);
    CHECK_STR(words, NULL);
    sqlite3_close(db);
    return text;
}

/* -- the queue */

static void on_appended(void *ctx, stg_appended how,
                        const stg_append_answer *answers, size_t at)
{
    appending *a = ctx;

    CHECK(!a->is_done);
    a->is_done = true;
    a->how = how;
    a->at = at;
    memcpy(a->answers, answers, a->count * sizeof *answers);
}

stg_append fixture_text(const char *key, const char *body)
{
    return (stg_append){
        .parcel = {.body = {body, strlen(body)}},
        .idempotency_key = {key, key == NULL ? 0 : strlen(key)}};
}

void fixture_start(fixture *s, appending *a, size_t count)
{
    a->is_done = false;
    a->count = count;
    stg_store_append(s->store, a->messages, count, on_appended, a);
}

stg_appended fixture_try(fixture *s, const stg_append *m)
{
    appending a = {.messages = {*m}};

    fixture_start(s, &a, 1);
    FIXTURE_UNTIL(s, a.is_done);
    return a.how;
}

uint64_t fixture_put(fixture *s, const char *key, const char *body)
{
    appending a = {.messages = {fixture_text(key, body)}};

    fixture_start(s, &a, 1);
    FIXTURE_UNTIL(s, a.is_done);
    CHECK_INT(a.how, STG_APPENDED);
    return a.answers[0].position;
}

static void on_read(void *ctx, const stg_record *records, size_t count,
                    uint64_t next)
{
    bool *is_done = ctx;

    clear();
    for (size_t i = 0; i < count; i++) {
        stg_parcel p;

        CHECK(stg_parcel_unpack(&p, records[i].bytes, records[i].size));
        say("%s%" PRIu64 ":%.*s", i > 0 ? " " : "", records[i].position,
            (int)(p.body.size < 40 ? p.body.size : 40), p.body.at);
    }
    say(", next %" PRIu64, next);
    *is_done = true;
}

const char *fixture_read(fixture *s, uint64_t from, size_t bytes_max)
{
    bool is_done = false;

    stg_store_read(s->store, from, bytes_max, false, on_read, &is_done);
    FIXTURE_UNTIL(s, is_done);
    return text;
}

/* -- rows */

static const stg_message *keep(fixture *s, uint64_t position, stg_parcel p)
{
    size_t size;
    stg_message *m;

    p.content_type = (stg_span){"text/plain", 10};
    p.headers = (stg_span){"X-A: b\r\n", 8};
    p.key = (stg_span){"k", 1};
    size = stg_parcel_size(&p);
    m = malloc(sizeof *m + size);

    CHECK(m != NULL && s->message_count < 512);
    s->messages[s->message_count++] = m;
    *m = (stg_message){
        .position = position, .key = stg_parcel_hash(p.key), .size = size};
    stg_parcel_pack(&p, m->bytes);
    return m;
}

const stg_message *fixture_message(fixture *s, uint64_t position,
                                   const char *body)
{
    return keep(s, position, (stg_parcel){.body = {body, strlen(body)}});
}

const stg_message *fixture_record(fixture *s, uint64_t position,
                                  const char *body, const char *headers)
{
    return keep(s, position,
                (stg_parcel){.body = {body, strlen(body)},
                             .source_key = {"\0\xff\n", 3},
                             .source_headers = {headers, strlen(headers)}});
}

typedef struct storing {
    bool is_done;
    stg_stored how;
    fixture *s;
} storing;

static void on_stored(void *ctx, stg_stored how, const uint32_t *fenced,
                      size_t count)
{
    storing *s = ctx;

    s->is_done = true;
    s->how = how;
    CHECK(count <= 16);
    for (size_t i = 0; i < count; i++)
        s->s->fenced[i] = fenced[i];
    s->s->fenced_count = count;
}

stg_stored fixture_store(fixture *s, const stg_group *g)
{
    storing answer = {.s = s};

    stg_store_group(s->store, g, on_stored, &answer);
    FIXTURE_UNTIL(s, answer.is_done);
    return answer.how;
}

static void on_begun(void *ctx, stg_stored how, const uint32_t *fenced,
                     size_t count)
{
    fixture *s = ctx;

    (void)how;
    (void)fenced;
    (void)count;
    s->is_storing = false;
}

void fixture_begin_store(fixture *s, const stg_group *g)
{
    s->is_storing = true;
    stg_store_group(s->store, g, on_begun, s);
}

stg_stored fixture_change(fixture *s, const stg_change *c)
{
    return fixture_store(s, &(stg_group){.changes = c, .change_count = 1});
}

stg_stored fixture_cursors(fixture *s, const stg_cursor *c, size_t count)
{
    return fixture_store(s, &(stg_group){.cursors = c, .cursor_count = count});
}

uint32_t fixture_lane(fixture *s, const char *name)
{
    char url[64];
    uint32_t lane;

    snprintf(url, sizeof url, "http://%s.example/", name);
    CHECK_INT(stg_store_lane(s->store, name, url, &lane, NULL), STG_OK);
    return lane;
}

stg_failure fixture_failure(int status, stg_why why)
{
    return (stg_failure){.outcome = stg_answered(status),
                         .why = why,
                         .first_attempt_at = 1000 * STG_S,
                         .last_attempt_at = 1060 * STG_S + 5 * STG_MS,
                         .detail = "it said no",
                         .answer = "busy",
                         .answer_size = 4};
}

void fixture_park(fixture *s, uint32_t lane, uint64_t position, stg_ns due_at,
                  const char *body)
{
    stg_failure failure = fixture_failure(503, STG_WHY_BACKOFF);
    stg_change c = {.kind = STG_CHANGE_PARK,
                    .lane = lane,
                    .position = position,
                    .message = fixture_message(s, position, body),
                    .failure = &failure,
                    .progress = {.attempts = 2, .last = 7},
                    .attempts_before = 5,
                    .began_at = 1600000000 * STG_S,
                    .wait = 60 * STG_S,
                    .due_at = due_at};

    c.progress.limited[3] = 4;
    CHECK_INT(fixture_change(s, &c), STG_STORED);
}

typedef struct fetching {
    bool is_done;
    stg_mark *mark;
} fetching;

static void on_fetched(void *ctx, uint32_t lane, bool is_replay,
                       const stg_parked_row *rows, size_t count, bool is_all)
{
    fetching *f = ctx;

    (void)lane;
    (void)is_replay;
    clear();
    for (size_t i = 0; i < count; i++) {
        stg_parcel p;

        CHECK(stg_parcel_unpack(&p, rows[i].record.bytes, rows[i].record.size));
        say("%s%" PRIu64 "@%" PRIu64 ":%.*s", i > 0 ? " " : "",
            rows[i].record.position, rows[i].due_at,
            (int)(p.body.size < 40 ? p.body.size : 40), p.body.at);
        *f->mark = (stg_mark){.due_at = rows[i].due_at,
                              .position = rows[i].record.position,
                              .partition = rows[i].partition,
                              .replay = rows[i].replay};
    }
    say("%s", is_all ? "" : " ...");
    f->is_done = true;
}

static const char *fetch(fixture *s, uint32_t lane, bool is_replay,
                         stg_mark *mark, uint32_t rows_max)
{
    stg_mark after = *mark;
    fetching f = {.mark = mark};

    stg_store_fetch(s->store, lane, is_replay, &after, rows_max, on_fetched,
                    &f);
    FIXTURE_UNTIL(s, f.is_done);
    return text;
}

const char *fixture_fetch(fixture *s, uint32_t lane, stg_mark *mark,
                          uint32_t rows_max)
{
    return fetch(s, lane, false, mark, rows_max);
}

const char *fixture_fetch_replays(fixture *s, uint32_t lane, stg_mark *mark,
                                  uint32_t rows_max)
{
    return fetch(s, lane, true, mark, rows_max);
}

static void say_cursor(void *ctx, const stg_cursor *c)
{
    (void)ctx;
    say("%u/%u %" PRIu64 " [", c->lane, c->partition, c->base);
    for (size_t i = 0; i < c->settled_count; i++)
        say("%s%" PRIu64 "-%" PRIu64, i > 0 ? " " : "", c->settled[i].first,
            c->settled[i].last);
    say("] %" PRIu64 "=%" PRIu64 "+%" PRIu64 "+%" PRIu64 "+%" PRIu64 "\n",
        c->routed, c->delivered, c->dead, c->cancelled, c->parked);
}

const char *fixture_stands(fixture *s)
{
    clear();
    CHECK_INT(stg_store_cursors(s->store, say_cursor, NULL, NULL), STG_OK);
    return text;
}
