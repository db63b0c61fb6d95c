/* internal.h - what the files of the admin API share. Private to them.
 *
 *     admin.c    the table of routes; open and close
 *     look.c     the hub, its targets
 *     history.c  what targets did in the last hour
 *     plan.c     what a target's policy will do
 *     letters.c  dead letters and messages, to look at
 *     choice.c   which dead letters
 *     change.c   changes, from the request to the audit log; a test of the
 *                receivers of alerts
 *     targets.c  targets that calls add, change and remove
 *     secrets.c  what is not shown of their settings
 *     replay.c   replay and drop
 *     rewind.c   rewind and resend
 *     events.c   what happens, as it happens
 *     live.c     what changes, once a second
 *     json.c     values of JSON */
#ifndef STAGGER_ADMIN_INTERNAL_H
#define STAGGER_ADMIN_INTERNAL_H

#include <jansson.h>
#include <uv.h>

#include <stagger/status.h>

#include "admin/admin.h"
#include "host/lines.h"
#include "host/log.h"
#include "hub/hub_internal.h"
#include "ingress/ask.h"
#include "store/cause.h"
#include "store/dead_letters.h"

/* -- audit.c ------------------------------------------------------------- */

/* The audit log: who changed what, when, and with what outcome; a JSON object a line.
 *
 *     {"time": "2026-03-01T12:00:00.250Z", "action": "pause", "who": "anna",
 *      "from": "10.0.0.7", "outcome": "done", "target": "a"}
 *
 * Lines are appended and synced by a thread of libuv's pool, in their order;
 * the file is opened anew each time, so that it may be rotated under us, and is
 * looked at again behind the last line: see host/lines.h. A line
 * that cannot be written is logged, and what was done stays done. */

typedef struct stg_audit_line stg_audit_line;

typedef struct stg_audit {
    uv_loop_t *loop;
    stg_log *log;
    char *path;                    /* owned; NULL: there is no file */
    char *store;                   /* path of the store, owned, or NULL */
    stg_lines lines;               /* appends to path; used by the pool alone */
    stg_audit_line *first, **last; /* not written yet */
    stg_audit_line *writing;       /* these are */
    uv_work_t work;
    int error; /* errno of the last write */
    void (*closed)(void *ctx);
    void *closed_ctx;
} stg_audit;

/* Checks that the file, if any, can be appended to; it is made, with mode 0600.
 * store: the path of the store, whose files no line goes to; NULL: it has none. Both
 * paths are copied. Returns STG_IO with words; then nothing has to be closed. */
stg_status stg_audit_open(stg_audit *a, uv_loop_t *loop, stg_log *log,
                          const char *path, const char *store, stg_error *err);

/* json is given. done is called when the line is durable, or could not be
 * written; never from within this call. It may be NULL. */
void stg_audit_write(stg_audit *a, json_t *json, void (*done)(void *ctx),
                     void *ctx);

/* All of it is written; then closed is called, perhaps at once. */
void stg_audit_close(stg_audit *a, void (*closed)(void *ctx), void *ctx);

enum { STG_REPLAYS_MAX = 100, STG_REPLAYS_RUNNING_MAX = 8 };

typedef struct stg_admin stg_admin;
typedef struct stg_live stg_live;

typedef struct stg_replay {
    uint64_t id; /* 0: none */
    bool is_running;
    stg_letters_sum sum; /* so far */
    bool is_counted;     /* `found` is known */
    uint64_t found;      /* letters that it could send when it began */
    char held[STG_TARGET_NAME_MAX];
    char who[STG_WHO_MAX];
    char recovered[STG_TARGET_NAME_MAX]; /* the target whose recovery began it;
                                            "": a call did */
    stg_ns started_at, ended_at;         /* wall clock */
} stg_replay;

struct stg_admin {
    stg_hub *hub;
    stg_audit audit;
    stg_ns started_at;                   /* wall clock */
    stg_replay replays[STG_REPLAYS_MAX]; /* by id modulo */
    uint64_t last_replay;
    unsigned replays_running;
    stg_ns refusals_full_at; /* of the loop: when the room for lines of calls
                                that were refused is whole again */
    uint64_t refusals_untold;
    stg_list followers; /* of events */
    stg_live *live;
};

/* A stg_refused_fn, of an admin: its line in the audit log. */
void stg_admin_note_refused(void *admin, const stg_refused_call *call);

/* -- json.c ------------------------------------------------------------ */

/* Each makes a value; NULL when there is no memory, which jansson bears where
 * it is added. */
json_t *stg_json_span(const char *at, size_t size);
json_t *stg_json_text(const char *text);    /* NULL: null. No UTF-8: U+FFFD */
json_t *stg_json_count(uint64_t number);    /* the most is INT64_MAX */
json_t *stg_json_time(stg_ns wall);         /* 0: null */
json_t *stg_json_milliseconds(stg_ns time); /* 0: null */

/* An attempt that has ended: when, by the wall clock; how long it took; its
 * number; its answer's status, 0: none; and its cause, null of a success. */
json_t *stg_admin_print_attempt(stg_ns ended_at, stg_ns took, uint64_t number,
                                const stg_outcome *outcome, int status);

/* Adds bytes as name, or where they are no UTF-8 as name_base64. Fails like
 * json_object_set_new(). */
int stg_json_add_bytes(json_t *object, const char *name, stg_span bytes);

/* -- look.c ------------------------------------------------------------ */

void stg_admin_status(void *admin, stg_ask *a);
void stg_admin_token(void *admin, stg_ask *a);
void stg_admin_targets(void *admin, stg_ask *a);
void stg_admin_target(void *admin, stg_ask *a);

/* The answer of /v1/status. NULL: no memory. */
json_t *stg_admin_print_status(const stg_admin *a);

/* "half-open" */
const char *stg_admin_breaker_name(stg_breaker_state state);

/* An instant of the loop's clock as one of the wall's; 0: none. */
stg_ns stg_admin_wall_of(stg_ns at);

/* NULL: no memory. */
json_t *stg_admin_print_target(const stg_admin *a, size_t i);

/* The same with the settings of one that a call has added, and its ETag goes to
 * the answer. */
json_t *stg_admin_print_whole_target(const stg_admin *a, size_t i,
                                     stg_ask *ask);

/* 404: there is no target of this name, with the name that was meant. */
void stg_admin_refuse_name(const stg_admin *a, stg_ask *ask, const char *name);

/* ?limit= of a page; 0: it was wrong, and the request is answered. */
uint32_t stg_admin_limit(stg_ask *a);

/* ?cursor, the name of a target: *at is the place behind it, or 0, and *limit as
 * above. False: answered. */
bool stg_admin_target_page(const stg_admin *a, stg_ask *ask, size_t *at,
                           uint32_t *limit);

/* -- plan.c ------------------------------------------------------------ */

void stg_admin_target_plan(void *admin, stg_ask *a);
void stg_admin_target_picture(void *admin, stg_ask *a);

/* -- history.c --------------------------------------------------------- */

void stg_admin_target_history(void *admin, stg_ask *a);
void stg_admin_history(void *admin, stg_ask *a);
void stg_admin_attempts(void *admin, stg_ask *a);

/* -- letters.c --------------------------------------------------------- */

void stg_admin_letters(void *admin, stg_ask *a);
void stg_admin_letter(void *admin, stg_ask *a);
void stg_admin_message(void *admin, stg_ask *a);

/* NULL: no memory. */
json_t *stg_admin_print_letter(const stg_letter *l);

/* -- choice.c ---------------------------------------------------------- */

/* A filter, with what it points to. */
typedef struct stg_choice {
    stg_letter_filter filter;
    stg_cause cause, category;
    bool is_dry_run;
    bool is_impossible; /* a message of another hub: nothing fits */
    uint64_t ids[1000];
    json_t *json; /* the request, which texts point into */
} stg_choice;

/* From the query of a list, or the body of a change. False: the request is
 * answered. A choice that was read is to be freed. */
bool stg_choice_read_query(stg_choice *c, const stg_admin *a, stg_ask *ask);
bool stg_choice_read_body(stg_choice *c, const stg_admin *a, stg_ask *ask);
void stg_choice_free(stg_choice *c);

/* "target=a cause=HTTP_503" of one that was read from a body; "all"; of more
 * than a few ids the first, and how many. Cut where there is no room. */
void stg_choice_print(const stg_choice *c, char *text, size_t size);

/* -- change.c ---------------------------------------------------------- */

/* A change, from its request to its answer. */
typedef struct stg_change_call stg_change_call;

/* what: given, an object that the audit line has, too; may be NULL. NULL: no
 * memory, and the request is answered. */
stg_change_call *stg_change_begin(stg_admin *a, stg_ask *ask,
                                  const char *action, json_t *what);

/* The same of the target in the path. */
stg_change_call *stg_change_begin_target(stg_admin *a, stg_ask *ask,
                                         const char *action);
const char *stg_change_target(const stg_change_call *c);

/* Which target it is of, where the path does not say it. */
void stg_change_set_target(stg_change_call *c, const char *name);

/* Adds to the words of the audit line: ": ", and these. */
__attribute__((format(printf, 2, 3))) void
stg_change_tell(stg_change_call *c, const char *format, ...);

/* Writes the audit line and the log; then answers, and is gone. json is given;
 * what the audit line is to say of the outcome is in it, or not: is_told. */
void stg_change_done(stg_change_call *c, int status, json_t *json,
                     bool is_told);
__attribute__((format(printf, 3, 4))) void
stg_change_refuse(stg_change_call *c, int status, const char *format, ...);

/* The status of an answer for what the hub refuses. */
int stg_admin_status_for(stg_status status);

/* The same with lists of all that is wrong, and of what is unwise; given. */
__attribute__((format(printf, 5, 6))) void
stg_change_refuse_all(stg_change_call *c, int status, json_t *errors,
                      json_t *warnings, const char *format, ...);

/* A problem document with such lists; given. */
json_t *stg_admin_problem(int status, const char *why, json_t *errors,
                          json_t *warnings);

void stg_admin_pause(void *admin, stg_ask *a);
void stg_admin_resume(void *admin, stg_ask *a);
void stg_admin_probe(void *admin, stg_ask *a);
void stg_admin_reload(void *admin, stg_ask *a);
void stg_admin_test_alerts(void *admin, stg_ask *a);

/* -- secrets.c --------------------------------------------------------- */

/* Replaces what is secret in a target's settings, an object. */
void stg_secrets_mask(json_t *settings);

/* Values that are as they were shown become what they were in old. */
void stg_secrets_unmask(json_t *settings, const json_t *old);

/* Adds {"pointer": ..., "detail": ...} for each mask that stands for nothing. */
void stg_secrets_check(const json_t *settings, json_t *errors);

/* Whether there is a secret in them: what is masked. pointer: the first. */
bool stg_secrets_find(const json_t *settings, char *pointer, size_t size);

/* -- targets.c --------------------------------------------------------- */

void stg_admin_add_target(void *admin, stg_ask *a);
void stg_admin_put_target(void *admin, stg_ask *a);
void stg_admin_patch_target(void *admin, stg_ask *a);
void stg_admin_remove_target(void *admin, stg_ask *a);

/* -- removal.c --------------------------------------------------------- */

/* ?dry-run=true. False: it is something else, and answered. */
bool stg_admin_read_dry_run(stg_ask *a, bool *is_dry);

/* The deliveries that a target's removal cancels; NULL: no memory. */
json_t *stg_admin_print_removal(const char *name, bool is_dry,
                                const stg_lane_view *v);

/* Answers a dry run with that, and with the dead letters that could not be sent
 * again. */
void stg_admin_look_removal(stg_admin *a, stg_ask *ask, const char *name,
                            const stg_lane_view *v);

void stg_admin_forget(void *admin, stg_ask *a);

/* -- events.c ---------------------------------------------------------- */

void stg_admin_events(void *admin, stg_ask *a);

/* -- live.c ------------------------------------------------------------ */

void stg_admin_live(void *admin, stg_ask *a);

/* To be freed by free(), once nobody watches. NULL: no memory. */
stg_live *stg_live_new(stg_admin *a);

/* -- replay.c ---------------------------------------------------------- */

void stg_admin_replay(void *admin, stg_ask *a);
void stg_admin_drop(void *admin, stg_ask *a);
void stg_admin_replays(void *admin, stg_ask *a);
void stg_admin_one_replay(void *admin, stg_ask *a);

/* -- rewind.c ---------------------------------------------------------- */

void stg_admin_rewind(void *admin, stg_ask *a);
void stg_admin_cancel_rewind(void *admin, stg_ask *a);
void stg_admin_rewinds(void *admin, stg_ask *a);
void stg_admin_resend(void *admin, stg_ask *a);

/* Whether a text has the shape of a message's id: of the queue or of a topic. */
bool stg_admin_is_id(const char *id);

/* For stg_hub_calls: a replay that the recovery of a target began, and that has
 * ended. */
void stg_admin_replayed(void *part, const char *target, stg_ns started_at,
                        const stg_letters_sum *sum);

/* For stg_hub_calls: a change that did not come by HTTP, "reload" of "SIGHUP",
 * to the audit log. detail may be NULL. */
void stg_admin_note(void *part, const char *action, const char *who,
                    bool is_done, const char *detail);

#endif
