/* Changes by the API: begin, carry out, write the line of the audit log,
 * answer.
 *
 * Every call that gets as far as stg_change_begin() has a line in the audit
 * log, refused or done, and is answered after that line is durable. So each
 * path ends with exactly one stg_change_done() or stg_change_refuse(), after
 * which c belongs to the audit log and must not be used.
 *
 * The hub's callbacks come later, when targets may have been removed: a call
 * keeps its target's name, and not a number or a pointer. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/internal.h"
#include "host/wall.h"
#include "http/server.h"
#include "hub/control.h"

struct stg_change_call {
    stg_admin *admin;
    stg_ask *ask;
    const char *action;
    json_t *line;     /* of the audit log */
    int status;       /* of the answer, */
    json_t *answer;   /* which is this; NULL: a problem */
    json_t *errors;   /* of a problem, with it; NULL: none */
    json_t *warnings; /* with them */
    char why[256];
    char target[STG_WORD_MAX]; /* of those that have one */
};

static json_t *begin_line(const char *action, const char *who, const char *from)
{
    json_t *line = json_pack(
        "{s:o,s:s,s:o,s:s}", "time", stg_json_time(stg_wall_now()), "action",
        action, "who", stg_json_text(*who == '\0' ? NULL : who), "from", from);

    return line;
}

/* NULL: there was no memory, and the request is answered. what is given: more
 * members for the line. */
stg_change_call *stg_change_begin(stg_admin *a, stg_ask *ask,
                                  const char *action, json_t *what)
{
    stg_change_call *c = calloc(1, sizeof *c);
    json_t *line = begin_line(action, stg_ask_who(ask), stg_ask_from(ask));

    if (c == NULL || line == NULL) {
        json_decref(line);
        json_decref(what);
        free(c);
        stg_ask_refuse(ask, 503, "no memory");
        return NULL;
    }
    if (what != NULL)
        json_object_update(line, what);
    json_decref(what);
    *c = (stg_change_call){
        .admin = a, .ask = ask, .action = action, .line = line};
    snprintf(c->target, sizeof c->target, "%s", stg_ask_word(ask, 0));
    return c;
}

const char *stg_change_target(const stg_change_call *c)
{
    return c->target;
}

/* -- the end of it --------------------------------------------------------- */

/* A problem document with more in it than others have. */
json_t *stg_admin_problem(int status, const char *why, json_t *errors,
                          json_t *warnings)
{
    return json_pack("{s:s,s:s,s:i,s:o,s:o,s:o}", "type", "about:blank",
                     "title", stg_response_reason(status), "status", status,
                     "detail", stg_json_text(why), "errors", errors, "warnings",
                     warnings);
}

/* Called by the audit log once the line is durable. */
static void answer(void *ctx)
{
    stg_change_call *c = ctx;

    if (c->answer != NULL)
        stg_ask_answer_json(c->ask, c->status, c->answer);
    else if (c->errors != NULL)
        stg_ask_answer_problem(
            c->ask, c->status,
            stg_admin_problem(c->status, c->why, c->errors, c->warnings));
    else if (c->status == 503 && c->why[0] == '\0')
        stg_ask_refuse(c->ask, 503, "no memory for the answer; it was done");
    else
        stg_ask_refuse(c->ask, c->status, "%s", c->why);
    free(c);
}

static const char *text_in(const json_t *line, const char *name)
{
    return json_string_value(json_object_get(line, name));
}

static void tell(const stg_admin *a, const json_t *line)
{
    STG_LOG_ALWAYS(a->hub->log, STG_LOG_INFO, "audit",
                   stg_field_text("action", text_in(line, "action")),
                   stg_field_text("who", text_in(line, "who")),
                   stg_field_text("from", text_in(line, "from")),
                   stg_field_text("target", text_in(line, "target")),
                   stg_field_text("call", text_in(line, "call")),
                   stg_field_text("outcome", text_in(line, "outcome")),
                   stg_field_text("detail", text_in(line, "detail")));
}

void stg_change_set_target(stg_change_call *c, const char *name)
{
    json_object_set_new(c->line, "target", stg_json_text(name));
}

/* Appends to the line's detail, with a colon after what was there. */
void stg_change_tell(stg_change_call *c, const char *format, ...)
{
    const char *before = text_in(c->line, "detail");
    char text[1024];
    va_list arguments;
    size_t at = 0;

    if (before != NULL)
        at = (size_t)snprintf(text, sizeof text, "%.700s: ", before);
    va_start(arguments, format);
    vsnprintf(text + at, sizeof text - at, format, arguments);
    va_end(arguments);
    json_object_set_new(c->line, "detail", stg_json_text(text));
}

static void end(stg_change_call *c, const char *outcome)
{
    json_t *line = c->line;

    json_object_set_new(line, "outcome", json_string(outcome));
    if (c->why[0] != '\0')
        stg_change_tell(c, "%s", c->why);
    tell(c->admin, line);
    stg_audit_write(&c->admin->audit, line, answer, c);
}

/* json is given; NULL means that there was no memory for an answer to a change
 * that was made. is_told: the line has the answer, too. */
void stg_change_done(stg_change_call *c, int status, json_t *json, bool is_told)
{
    c->status = json == NULL ? 503 : status;
    c->answer = json;
    if (is_told && json != NULL)
        json_object_set(c->line, "result", json);
    end(c, "done");
}

void stg_change_refuse(stg_change_call *c, int status, const char *format, ...)
{
    va_list arguments;

    c->status = status;
    va_start(arguments, format);
    vsnprintf(c->why, sizeof c->why, format, arguments);
    va_end(arguments);
    end(c, "refused");
}

void stg_change_refuse_all(stg_change_call *c, int status, json_t *errors,
                           json_t *warnings, const char *format, ...)
{
    va_list arguments;

    c->status = status;
    c->errors = errors;
    c->warnings = warnings;
    va_start(arguments, format);
    vsnprintf(c->why, sizeof c->why, format, arguments);
    va_end(arguments);
    end(c, "refused");
}

void stg_admin_note(void *part, const char *action, const char *who,
                    bool is_done, const char *detail)
{
    stg_admin *a = part;
    json_t *line = begin_line(action, who, "here");

    if (line == NULL)
        return;
    json_object_set_new(line, "outcome",
                        json_string(is_done ? "done" : "refused"));
    if (detail != NULL && *detail != '\0')
        json_object_set_new(line, "detail", stg_json_text(detail));
    tell(a, line);
    stg_audit_write(&a->audit, line, NULL, NULL);
}

/* Whoever guesses tokens must not fill the disk: 60 lines at once, and one a
 * second after that. */
static bool has_room(stg_admin *a)
{
    static const stg_ns each = STG_S, most = 60 * STG_S;
    stg_ns now = uv_now(a->hub->loop) * STG_MS;

    if (a->refusals_full_at < now)
        a->refusals_full_at = now;
    if (a->refusals_full_at + each > now + most)
        return false;
    a->refusals_full_at += each;
    return true;
}

/* A call without a good token, or without the role. Lines that has_room() left
 * out are counted in the next one that is written. */
void stg_admin_note_refused(void *admin, const stg_refused_call *call)
{
    stg_admin *a = admin;
    char what[200];
    json_t *line;

    if (!has_room(a)) {
        a->refusals_untold++;
        return;
    }
    line = begin_line("call", call->who, call->from);
    if (line == NULL)
        return;
    snprintf(what, sizeof what, "%.16s %s", call->method, call->path);
    json_object_set_new(line, "call", stg_json_text(what));
    json_object_set_new(line, "status", json_integer(call->status));
    json_object_set_new(line, "outcome", json_string("refused"));
    json_object_set_new(line, "detail", stg_json_text(call->why));
    if (a->refusals_untold > 0)
        json_object_set_new(line, "untold", stg_json_count(a->refusals_untold));
    a->refusals_untold = 0;
    tell(a, line);
    stg_audit_write(&a->audit, line, NULL, NULL);
}

/* -- pause, resume, probe -------------------------------------------------- */

int stg_admin_status_for(stg_status status)
{
    return status == STG_NOT_FOUND ? 404 : status == STG_INVALID ? 409 : 503;
}

/* is_full: the change holds in memory, and a restart forgets it. */
static void answer_target(void *ctx, bool is_full)
{
    stg_change_call *c = ctx;
    size_t i;

    if (is_full)
        stg_change_refuse(c, 503,
                          "the store is full: it is done, and holds until the "
                          "hub is restarted; ask again when there is room");
    else if (stg_hub_find_target(c->admin->hub, c->target, &i) == STG_OK)
        stg_change_done(c, 200, stg_admin_print_target(c->admin, i), false);
    else // it was forgotten meanwhile
        stg_change_refuse(c, 404, "there is no target of this name");
}

stg_change_call *stg_change_begin_target(stg_admin *a, stg_ask *ask,
                                         const char *action)
{
    return stg_change_begin(
        a, ask, action,
        json_pack("{s:o}", "target", stg_json_text(stg_ask_word(ask, 0))));
}

static void pause_target(stg_admin *a, stg_ask *ask, bool is_paused)
{
    stg_change_call *c =
        stg_change_begin_target(a, ask, is_paused ? "pause" : "resume");
    stg_status status;
    stg_error err;

    if (c == NULL)
        return;
    status =
        stg_hub_pause(a->hub, c->target, is_paused, answer_target, c, &err);
    if (status != STG_OK)
        stg_change_refuse(c, stg_admin_status_for(status), "%s", err.text);
}

void stg_admin_pause(void *admin, stg_ask *ask)
{
    pause_target(admin, ask, true);
}

void stg_admin_resume(void *admin, stg_ask *ask)
{
    pause_target(admin, ask, false);
}

static void answer_probe(void *ctx, stg_status status)
{
    stg_change_call *c = ctx;

    if (status == STG_OK)
        answer_target(c, false);
    else if (status == STG_IO)
        stg_change_refuse(c, 503, "the hub is stopping");
    else
        stg_change_refuse(c, 409,
                          "no message waits for it that could be the probe: "
                          "publish one, or replay one of its dead letters");
}

void stg_admin_probe(void *admin, stg_ask *ask)
{
    stg_admin *a = admin;
    stg_change_call *c = stg_change_begin_target(a, ask, "probe");
    stg_status status;
    stg_error err;

    if (c == NULL)
        return;
    status = stg_hub_probe(a->hub, c->target, answer_probe, c, &err);
    if (status != STG_OK)
        stg_change_refuse(c, stg_admin_status_for(status), "%s", err.text);
}

/* -- reload ---------------------------------------------------------------- */

/* NULL: no memory. */
static json_t *print_diagnostic(const stg_diagnostic *one, const char *file)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    json_t *line = NULL;

    if (to == NULL)
        return NULL;
    stg_diagnostic_print(one, file, to);
    if (fclose(to) == 0)
        line = stg_json_span(text, size);
    free(text);
    return line;
}

/* The mistakes of the file, or the warnings. */
static json_t *list_diagnostics(const stg_reloaded *r, bool is_warning)
{
    json_t *list = json_array();

    for (size_t i = 0; r->diagnostics != NULL && i < r->diagnostics->count; i++)
        if (r->diagnostics->all[i].is_warning == is_warning)
            json_array_append_new(
                list, print_diagnostic(&r->diagnostics->all[i], r->file));
    return list;
}

/* One mistake is the detail itself; more are listed in `errors`. */
static void refuse_settings(stg_change_call *c, const stg_reloaded *r)
{
    json_t *errors = list_diagnostics(r, false);
    json_t *warnings = list_diagnostics(r, true);

    if (json_array_size(errors) == 1)
        stg_change_refuse_all(c, 422, errors, warnings, "%s",
                              json_string_value(json_array_get(errors, 0)));
    else
        stg_change_refuse_all(c, 422, errors, warnings,
                              "the settings have %zu mistakes, and nothing has "
                              "changed",
                              r->diagnostics->mistakes);
}

static json_t *list_gone(const stg_reloaded *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < r->gone && i < STG_GONE_NAMED_MAX; i++)
        json_array_append_new(list, stg_json_text(r->gone_names[i]));
    return list;
}

static void answer_reload(void *ctx, const stg_reloaded *r)
{
    stg_change_call *c = ctx;

    if (r->status == STG_OK)
        stg_change_done(c, 200,
                        json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "added",
                                  stg_json_count(r->added), "changed",
                                  stg_json_count(r->changed), "gone",
                                  stg_json_count(r->gone), "gone_targets",
                                  list_gone(r), "same", stg_json_count(r->same),
                                  "warnings", list_diagnostics(r, true)),
                        true);
    else if (r->status == STG_INVALID)
        refuse_settings(c, r);
    else
        stg_change_refuse(c, 503, "%s", r->detail);
}

void stg_admin_reload(void *admin, stg_ask *ask)
{
    stg_admin *a = admin;
    stg_change_call *c = stg_change_begin(a, ask, "reload", NULL);
    stg_error err;

    if (c != NULL && stg_hub_reload(a->hub, answer_reload, c, &err) != STG_OK)
        stg_change_refuse(c, 409, "%s", err.text);
}

/* -- a test message to the receivers of alerts ----------------------------- */

static json_t *result_of(const stg_alert_result *r)
{
    return json_pack("{s:o,s:s,s:b,s:o}", "name", stg_json_text(r->name),
                     "type", stg_receiver_type_name(r->type), "is_told",
                     (int)r->is_sent, "detail", stg_json_text(r->detail));
}

static void tried(void *ctx, const stg_alert_result *results, size_t count)
{
    stg_change_call *c = ctx;
    json_t *receivers = json_array();

    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(receivers, result_of(&results[i]));
    stg_change_done(c, 200, json_pack("{s:o}", "receivers", receivers), true);
}

void stg_admin_test_alerts(void *admin, stg_ask *ask)
{
    stg_admin *a = admin;
    const char *receiver = stg_ask_option(ask, "receiver");
    stg_change_call *c = stg_change_begin(
        a, ask, "alerts-test",
        json_pack("{s:o}", "receiver", stg_json_text(receiver)));
    stg_status status;

    if (c == NULL)
        return;
    if (stg_hub_is_stopping(a->hub)) { // they may be gone
        stg_change_refuse(c, 503, "the hub is stopping");
        return;
    }
    status = stg_alerts_try(a->hub->watch.alerts, receiver, tried, c);
    if (status == STG_NOT_FOUND && receiver != NULL)
        stg_change_refuse(c, 404, "no receiver of the settings has this name");
    else if (status == STG_NOT_FOUND)
        stg_change_refuse(c, 409, "the settings have no receiver to try");
    else if (status == STG_INVALID)
        stg_change_refuse(c, 409, "another test is under way");
    else if (status != STG_OK)
        stg_change_refuse(c, 503, "no memory");
}
