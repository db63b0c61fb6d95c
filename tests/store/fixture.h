/* fixture.h - a store in a folder of its own, and calls that wait for their
 * answer. With STAGGER_TEST_POSTGRES in the environment, the URL of a server, it
 * is in a schema of its own there. */
#ifndef TESTS_STORE_FIXTURE_H
#define TESTS_STORE_FIXTURE_H

#include "store/store.h"

typedef struct fixture {
    uv_loop_t loop;
    stg_store *store; /* NULL: closed */
    stg_store_options options;
    char folder[64], letters[96];
    char path[300]; /* of the file; or a URL, of a schema of its own: */
    char server[200], schema[64];
    unsigned times_broken, times_retaining, times_troubled, times_untroubled;
    uint64_t retaining;
    uint32_t fenced[16]; /* of the last group */
    size_t fenced_count;
    bool is_postgres, was_open;
    bool is_made_up; /* the test's rows and cursors contradict each other */
    bool is_storing; /* fixture_begin_store() */
    char words[400]; /* of what broke, or troubled */
    bool is_closed;
    stg_message *messages[512]; /* that fixture_message() made */
    size_t message_count;
} fixture;

/* A folder and the options for a file in it; nothing is open. */
void fixture_make(fixture *s);
/* The same store as another, which is in PostgreSQL, for another hub. */
void fixture_share(fixture *s, const fixture *with);

void fixture_open(fixture *s);
void fixture_close(fixture *s);
void fixture_reopen(fixture *s);

/* Closes, and removes the folder. What is in a file has to fit together then
 * (stg_verify()): whatever a test has done, the books balance, unless
 * is_made_up. */
void fixture_end(fixture *s);

/* Opens, and is refused; returns the words, static. */
const char *fixture_refused(fixture *s, stg_status status);

/* Turns the loop until the claim holds. */
#define FIXTURE_UNTIL(s, claim) \
    while (!(claim))            \
    uv_run(&(s)->loop, UV_RUN_ONCE)

/* The same for what no callback tells: it is looked at again and again. */
#define FIXTURE_POLL(s, claim) \
    while (!(claim))           \
    fixture_turn(s)

/* What there is to call back, and a moment. */
void fixture_turn(fixture *s);

/* The position that the queue gives next. */
uint64_t fixture_next(const fixture *s);

/* -- the file, by a connection of its own */

/* Rows as "a|b\nc|d"; static, and NULL is empty. Fails the test on an error. */
const char *fixture_ask(fixture *s, const char *sql);

/* -- the queue */

typedef struct appending {
    bool is_done;
    stg_appended how;
    size_t at;
    stg_append_answer answers[64];
    size_t count;
    stg_append messages[64];
} appending;

/* A message with a body, and a key unless it is NULL. */
stg_append fixture_text(const char *key, const char *body);

/* Does not wait. */
void fixture_start(fixture *s, appending *a, size_t count);

/* Waits. One message; its position. Fails the test if it is not appended. */
uint64_t fixture_put(fixture *s, const char *key, const char *body);

/* How one message fared. */
stg_appended fixture_try(fixture *s, const stg_append *m);

/* What is read from a position on, "1:a 2:b, next 3". Static. */
const char *fixture_read(fixture *s, uint64_t from, size_t bytes_max);

/* -- rows */

/* Kept until the end. */
const stg_message *fixture_message(fixture *s, uint64_t position,
                                   const char *body);

/* The same of a record of a topic, whose key was the bytes 0, 0xff and a line
 * feed; headers: packed, not NULL. */
const stg_message *fixture_record(fixture *s, uint64_t position,
                                  const char *body, const char *headers);

stg_stored fixture_store(fixture *s, const stg_group *g);
/* Does not wait: see is_storing. g is kept. */
void fixture_begin_store(fixture *s, const stg_group *g);

stg_stored fixture_change(fixture *s, const stg_change *c);
stg_stored fixture_cursors(fixture *s, const stg_cursor *c, size_t count);

uint32_t fixture_lane(fixture *s, const char *name);

/* A failure by an HTTP status. */
stg_failure fixture_failure(int status, stg_why why);

/* Parks a message of body at a position, due at a time. */
void fixture_park(fixture *s, uint32_t lane, uint64_t position, stg_ns due_at,
                  const char *body);

/* A lane's rows behind a mark as "5@100:a 6@101:b", and " ..." if there are
 * more; *mark becomes that of the last one. Static. */
const char *fixture_fetch(fixture *s, uint32_t lane, stg_mark *mark,
                          uint32_t rows_max);
const char *fixture_fetch_replays(fixture *s, uint32_t lane, stg_mark *mark,
                                  uint32_t rows_max);

/* Every cursor: "lane/partition base [settled] routed=delivered+dead+cancelled+
 * parked", a line each. Static. */
const char *fixture_stands(fixture *s);

#endif
