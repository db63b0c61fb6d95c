/* Calls to a hub, one at a time, on a loop of their own: a command waits for the
 * answer and has nothing else to do. Whatever goes wrong becomes words for the
 * user, with what to do: the hub's problem document where there is one, else what
 * the network says. A hub's words are untrusted, and are cleaned for a
 * terminal. */
#include "cli/remote.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stagger/load.h>

#include "base/visible.h"
#include "cli/options.h"
#include "cli/say.h"
#include "core/reader.h"
#include "http/url.h"

enum {
    ANSWER_MAX = 64 * 1024 * 1024, /* a dead letter, with its payload */
    PATH_MAX_ = 1024,
    URL_MAX = STG_URL_MAX + PATH_MAX_,
    WHY_MAX = 64 * 1024, /* wrong settings are many lines */
    EXIT_REFUSED = 1
};

static const stg_ns patience = 60 * STG_S;

struct stg_remote {
    const char *who;
    stg_remote_options options;
    char hub[STG_URL_MAX + 1];
    char head[STG_TOKEN_MAX + 128]; /* headers of each request */
    bool has_token;
    uv_loop_t loop;
    stg_client *client;
    // The call under way, or else the last one:
    bool is_answered;
    stg_outcome outcome;
    int status;
    char *text; /* the answer */
    size_t size;
    char why[WHY_MAX];
};

/* -- opening --------------------------------------------------------------- */

bool stg_remote_take(stg_remote_options *o, int option, const char *argument)
{
    if (option == STG_REMOTE_HUB)
        o->hub = argument;
    else if (option == STG_REMOTE_TOKEN)
        o->token_file = argument;
    else if (option == STG_REMOTE_CA)
        o->ca_file = argument;
    else if (option == STG_REMOTE_CERTIFICATE)
        o->certificate_file = argument;
    else if (option == STG_REMOTE_KEY)
        o->key_file = argument;
    else
        return false;
    return true;
}

static int read_option(void *ctx, int option)
{
    return stg_remote_take(ctx, option, optarg) ? 0 : STG_EXIT_USAGE;
}

int stg_remote_read(const stg_usage *u, int argc, char **argv,
                    stg_remote_options *o, stg_arguments *left)
{
    return stg_options_read(u, argc, argv, read_option, o, left);
}

bool stg_remote_is_named(const stg_remote_options *o)
{
    return o->hub != NULL || o->token_file != NULL || o->ca_file != NULL ||
           o->certificate_file != NULL || o->key_file != NULL;
}

/* The order: --hub, STAGGER_HUB, the hub's default address. */
const char *stg_remote_url(const stg_remote_options *o)
{
    const char *named = getenv("STAGGER_HUB");

    if (o->hub != NULL)
        return o->hub;
    return named != NULL && named[0] != '\0' ? named : "http://127.0.0.1:8080";
}

void stg_remote_secure(const stg_remote_options *o, stg_endpoint_options *e)
{
    e->ca_file = o->ca_file;
    e->certificate_file = o->certificate_file;
    e->key_file = o->key_file;
}

/* Without the slash at its end. */
static stg_status take_url(stg_remote *r, const char *text, stg_error *err)
{
    size_t size = strlen(text);
    stg_error why;
    stg_url url;

    if (stg_url_parse(&url, text, &why) != STG_OK) {
        snprintf(err->text, sizeof err->text, "--hub: %.300s", why.text);
        return STG_INVALID;
    }
    if (memchr(url.path.at, '?', url.path.size) != NULL) {
        snprintf(err->text, sizeof err->text,
                 "--hub: expected a URL without a query");
        return STG_INVALID;
    }
    while (size > 0 && text[size - 1] == '/')
        size--;
    memcpy(r->hub, text, size);
    r->hub[size] = '\0';
    return STG_OK;
}

static stg_status take_options(stg_remote *r, const stg_remote_options *o,
                               stg_error *err)
{
    char token[STG_TOKEN_MAX + 1];
    int size = 0;

    if (take_url(r, stg_remote_url(o), err) != STG_OK)
        return STG_INVALID;
    if (o->token_file != NULL) {
        if (stg_token_file_read(token, o->token_file, err) != STG_OK)
            return STG_INVALID;
        r->has_token = true;
        size = snprintf(r->head, sizeof r->head, "Authorization: Bearer %s\r\n",
                        token);
    }
    snprintf(r->head + size, sizeof r->head - (size_t)size,
             "Accept: application/json\r\n");
    return STG_OK;
}

static stg_status open_client(stg_remote *r, stg_error *err)
{
    const stg_egress any = {.is_open = true}; // a person named the address

    if (uv_loop_init(&r->loop) != 0) {
        snprintf(err->text, sizeof err->text, "out of memory");
        return STG_IO;
    }
    if (stg_client_new(&r->client, &r->loop, err) != STG_OK)
        return STG_IO;
    return stg_client_set_egress(r->client, &any, err);
}

stg_remote *stg_remote_open(const char *who, const stg_remote_options *o)
{
    stg_remote *r = calloc(1, sizeof *r);
    stg_error err = {.text = "out of memory"};

    if (r != NULL && take_options(r, o, &err) == STG_OK &&
        open_client(r, &err) == STG_OK) {
        r->who = who;
        r->options = *o;
        return r;
    }
    stg_options_complain(who, "%s", err.text);
    free(r); // the process ends, and its loop with it
    return NULL;
}

/* The loop runs until the client's handles are closed. */
void stg_remote_close(stg_remote *r)
{
    if (r == NULL)
        return;
    stg_client_close(r->client, NULL, NULL);
    uv_run(&r->loop, UV_RUN_DEFAULT);
    uv_loop_close(&r->loop);
    free(r->text);
    free(r);
}

const char *stg_remote_hub(const stg_remote *r)
{
    return r->hub;
}

/* -- words ----------------------------------------------------------------- */

static void add(stg_remote *r, const char *text)
{
    size_t size = strlen(r->why);

    snprintf(r->why + size, sizeof r->why - size, "%s", text);
}

/* Of a target's settings an error is an object, which has its place, too. */
static const char *text_of_error(const json_t *error)
{
    const char *line = json_string_value(error);

    return line != NULL ? line : stg_json_text_of(error, "detail");
}

static void add_error(stg_remote *r, const json_t *error)
{
    const char *pointer = stg_json_text_of(error, "pointer");

    add(r, pointer);
    add(r, *pointer != '\0' ? ": " : "");
    add(r, text_of_error(error));
}

/* Whether `detail` has the words of the only error, which a hub may cut. */
static bool is_said(const char *detail, const json_t *errors)
{
    return json_array_size(errors) == 1 && *detail != '\0' &&
           strncmp(text_of_error(json_array_get(errors, 0)), detail,
                   strlen(detail)) == 0;
}

/* The detail of a problem document, and the errors behind it, a line each; an
 * error that the detail says itself stands in its place. */
static void explain_problem(stg_remote *r, const json_t *problem)
{
    const char *detail = stg_json_text_of(problem, "detail");
    const json_t *errors = json_object_get(problem, "errors");
    bool is_one = is_said(detail, errors);
    char status[16];

    snprintf(r->why, sizeof r->why, "%s: ", r->hub);
    if (is_one)
        add_error(r, json_array_get(errors, 0));
    else
        add(r, detail[0] != '\0' ? detail : stg_json_text_of(problem, "title"));
    snprintf(status, sizeof status, " (%d)", r->status);
    add(r, status);
    for (size_t i = 0; !is_one && i < json_array_size(errors); i++) {
        add(r, "\n  ");
        add_error(r, json_array_get(errors, i));
    }
}

/* Behind the hub's words, on a line of its own. */
static void add_advice(stg_remote *r)
{
    const char *advice = stg_token_advice(r->status, r->has_token);

    if (advice[0] != '\0')
        add(r, "\n");
    add(r, advice);
}

static void explain_no_answer(stg_remote *r, const char *detail)
{
    bool is_unknown = r->outcome.fault == STG_FAULT_DNS;
    bool is_nobody = is_unknown || r->outcome.fault == STG_FAULT_REFUSED ||
                     r->outcome.fault == STG_FAULT_UNREACHABLE;

    // The URL, which has the name, is told already.
    if (is_unknown)
        detail = "the server's name does not resolve";
    snprintf(r->why, sizeof r->why, "%s %s: %s%s",
             is_nobody ? "no hub answers at" : "no answer from", r->hub, detail,
             is_nobody ? "\nSet its URL with --hub URL, or with "
                         "STAGGER_HUB in the environment."
                       : "");
}

/* -- a call ---------------------------------------------------------------- */

static void answered(void *ctx, const stg_reply *reply)
{
    stg_remote *r = ctx;

    r->is_answered = true;
    r->outcome = reply->outcome;
    r->status = reply->status;
    if (reply->status == 0 || reply->outcome.fault == STG_FAULT_PROTOCOL) {
        r->status = 0;
        explain_no_answer(r, reply->detail);
    }
    r->text = malloc(reply->answer.size + 1);
    if (r->text == NULL)
        return;
    memcpy(r->text, reply->answer.at, reply->answer.size);
    r->size = reply->answer.size;
}

static stg_endpoint *open_endpoint(stg_remote *r, const char *method,
                                   const char *path)
{
    char url[URL_MAX];
    stg_endpoint_options o;
    stg_endpoint *e = NULL;
    stg_error err;

    snprintf(url, sizeof url, "%s%s", r->hub, path);
    o = stg_endpoint_options_default(url);
    o.method = method;
    o.headers = r->head;
    stg_remote_secure(&r->options, &o);
    o.answer_max = o.excerpt_max = ANSWER_MAX;
    if (stg_endpoint_new(&e, r->client, &o, &err) == STG_OK)
        return e;
    snprintf(r->why, sizeof r->why, "--hub: %.400s", err.text);
    return NULL;
}

/* Runs the loop until the answer is there: no other call is under way. */
static bool exchange(stg_remote *r, stg_endpoint *e, const char *body)
{
    static const char type[] = "Content-Type: application/json\r\n";
    stg_span none = {"", 0};
    stg_span headers = body == NULL ? none : (stg_span){type, sizeof type - 1};
    stg_span bytes = body == NULL ? none : (stg_span){body, strlen(body)};

    if (stg_endpoint_send(e, headers, bytes, patience, answered, r) == NULL) {
        snprintf(r->why, sizeof r->why, "out of memory");
        return false;
    }
    while (!r->is_answered)
        uv_run(&r->loop, UV_RUN_ONCE);
    return r->status != 0 && r->text != NULL;
}

/* Reads the answer. Returns true, and gives it as *answer, for a success with a
 * JSON object; else sets r->why. */
static bool read_answer(stg_remote *r, json_t **answer)
{
    json_t *found =
        json_loadb(r->text, r->size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    bool is_success = r->status >= 200 && r->status <= 299;

    if (is_success && json_is_object(found)) {
        *answer = found;
        return true;
    }
    if (!is_success && json_is_string(json_object_get(found, "title"))) {
        explain_problem(r, found);
        add_advice(r);
    } else {
        snprintf(r->why, sizeof r->why,
                 "%s answered %d, but not as a hub does: is it a hub?", r->hub,
                 r->status);
    }
    json_decref(found);
    return false;
}

/* An endpoint for each call: its path is a part of it. */
static bool call(stg_remote *r, const char *method, const char *path,
                 const char *body, json_t **answer)
{
    stg_endpoint *e = open_endpoint(r, method, path);
    bool is_answered;

    if (e == NULL)
        return false;
    is_answered = exchange(r, e, body);
    stg_endpoint_free(e);
    return is_answered && read_answer(r, answer);
}

/* One attempt: what a change did that got no answer is not known here, so it is
 * not sent again. `why` is set beforehand, so that every failure has words. */
bool stg_remote_call(stg_remote *r, const char *method, const char *path,
                     const json_t *body, json_t **answer)
{
    char *text = body == NULL ? NULL : json_dumps(body, JSON_COMPACT);
    bool is_well;

    free(r->text);
    r->text = NULL;
    r->is_answered = false;
    r->status = 0;
    snprintf(r->why, sizeof r->why, "out of memory");
    is_well =
        (body == NULL || text != NULL) && call(r, method, path, text, answer);
    stg_visible_string(r->why, STG_VISIBLE_IN_TEXT);
    free(text);
    return is_well;
}

int stg_remote_status(const stg_remote *r)
{
    return r->status;
}

const char *stg_remote_why(const stg_remote *r)
{
    return r->why;
}

/* The first line is a complaint like others; the errors of a settings file
 * follow as they are. */
int stg_remote_complain(const stg_remote *r)
{
    const char *at = r->why;

    // The hub may say more, on lines of their own.
    stg_options_complain(r->who, "%.*s", (int)strcspn(at, "\n"), at);
    for (at += strcspn(at, "\n"); *at == '\n'; at += 1 + strcspn(at + 1, "\n"))
        stg_say(stderr, "%.*s\n", (int)strcspn(at + 1, "\n"), at + 1);
    return EXIT_REFUSED;
}

/* What does not fit is cut between characters, never within an escape. */
const char *stg_remote_escape(const char *text, char *to, size_t size)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        "abcdefghijklmnopqrstuvwxyz0123456789-._~";
    size_t at = 0;

    for (; *text != '\0' && at + 4 <= size; text++)
        at += (size_t)snprintf(to + at, size - at,
                               strchr(plain, *text) != NULL ? "%c" : "%%%02X",
                               (unsigned char)*text);
    to[at] = '\0';
    return to;
}

/* -- reading answers ------------------------------------------------------- */

const char *stg_json_text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

/* What is missing, negative or no number is 0. */
uint64_t stg_json_count_of(const json_t *object, const char *key)
{
    json_int_t number = json_integer_value(json_object_get(object, key));

    return number > 0 ? (uint64_t)number : 0;
}

/* -- printing answers ------------------------------------------------------- */

/* jansson gives whole characters; those to escape are in strings only, as its
 * own text is ASCII and ends of line. */
static int put(const char *at, size_t size, void *ctx)
{
    char escape[STG_VISIBLE_ESCAPE_MAX] = "";
    FILE *to = ctx;

    for (size_t i = 0; i < size;) {
        stg_visible_char c =
            stg_visible_next(at + i, size - i, STG_VISIBLE_IN_TEXT);

        if (c.is_visible)
            fwrite(at + i, 1, c.size, to);
        else
            fwrite(escape, 1, stg_visible_escape(c.code, escape), to);
        i += c.size;
    }
    return 0;
}

void stg_say_json(FILE *to, const json_t *value, bool is_line)
{
    size_t form = is_line ? JSON_COMPACT : JSON_INDENT(2);

    (void)json_dump_callback(value, put, to, form | JSON_REAL_PRECISION(12));
    fputc('\n', to);
}

/* -- the token's file ------------------------------------------------------ */

static bool is_token(stg_reader line)
{
    for (const char *at = line.at; at < line.end; at++)
        if (*at <= ' ' || *at > '~')
            return false;
    return line.at < line.end && line.end - line.at <= STG_TOKEN_MAX;
}

/* The first line that is neither empty nor a comment. */
static bool find_token(const char *text, size_t size, stg_reader *token)
{
    stg_reader rest = {text, text + size};

    while (!stg_reader_is_empty(&rest)) {
        *token = stg_read_until(&rest, '\n');
        while (token->end > token->at &&
               (stg_is_blank(token->end[-1]) || token->end[-1] == '\r'))
            token->end--;
        while (token->end > token->at && stg_is_blank(*token->at))
            token->at++;
        if (token->at < token->end && *token->at != '#')
            return is_token(*token);
    }
    return false;
}

stg_status stg_token_file_read(char token[STG_TOKEN_MAX + 1], const char *path,
                               stg_error *err)
{
    char *text;
    size_t size;
    stg_reader found;
    stg_status status = stg_file_read(path, &text, &size, err);

    if (status != STG_OK)
        return status;
    if (find_token(text, size, &found)) {
        memcpy(token, found.at, (size_t)(found.end - found.at));
        token[found.end - found.at] = '\0';
    } else {
        snprintf(err->text, sizeof err->text,
                 "--token-file=%s: expected a token in its first line", path);
        status = STG_INVALID;
    }
    free(text);
    return status;
}

const char *stg_token_advice(int status, bool has_token)
{
    if (status == 401)
        return has_token ? "The hub does not know the token of --token-file. "
                           "It knows one that is new after a reload: SIGHUP, "
                           "or stagger reload with a token that it knows."
                         : "Name a file with a token of it: --token-file.";
    if (status == 403 && has_token)
        return "Another token may do this: its role is publish for messages, "
               "view for what only looks, operate for changes.";
    return "";
}
