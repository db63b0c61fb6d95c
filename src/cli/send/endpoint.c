/* Where `stagger send` posts to: the URL and the endpoint of the hub, and the headers
 * that each message has, from the options. */
#include "cli/send/send.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/writer.h"
#include "store/parcel.h"

enum { URL_MAX = 2400, TAIL_MAX = 320, HEAD_MAX = STG_TOKEN_MAX + 128 };

/* Ids of a whole batch have to fit the answer that is shown. */
enum { ANSWER_MAX = 1024 * 1024 };

/* -- the endpoint ---------------------------------------------------------- */

/* The paths of the API stand behind the URL, so a hub behind a proxy may have a
 * path of its own, but no query. */
static stg_status write_url(char url[URL_MAX], const send_options *o,
                            stg_error *err)
{
    const char *hub = stg_remote_url(&o->remote);
    size_t size = strlen(hub);
    const char *path =
        o->form == SEND_WHOLE ? "/v1/messages" : "/v1/messages/batch";

    while (size > 0 && hub[size - 1] == '/')
        size--;
    if (size < URL_MAX - TAIL_MAX && strchr(hub, '?') == NULL) {
        snprintf(url, URL_MAX, "%.*s%s%s%s", (int)size, hub, path,
                 o->topic == NULL ? "" : "?topic=",
                 o->topic == NULL ? "" : o->topic);
        return STG_OK;
    }
    snprintf(err->text, sizeof err->text,
             "--hub: expected a URL without a query, of 2048 bytes at most");
    return STG_INVALID;
}

/* Batches have one content type for all requests; that of a whole message is
 * among the headers of the request. As many idle connections are kept as there
 * may be posts in flight, so that none is closed between two batches. */
static stg_status open_with(stg_endpoint **endpoint, stg_client *c,
                            const send_options *o, const char *url,
                            const char *token, stg_error *err)
{
    stg_endpoint_options e = stg_endpoint_options_default(url);
    char head[HEAD_MAX] = "", words[sizeof err->text];
    size_t size = 0;
    stg_status status;

    if (token[0] != '\0')
        size = (size_t)snprintf(head, sizeof head,
                                "Authorization: Bearer %s\r\n", token);
    if (o->form != SEND_WHOLE)
        snprintf(head + size, sizeof head - size,
                 "Content-Type: application/x-ndjson\r\n");
    e.headers = head;
    stg_remote_secure(&o->remote, &e);
    e.idle_count_max = SEND_IN_FLIGHT_MAX;
    e.answer_max = ANSWER_MAX;
    e.excerpt_max = ANSWER_MAX;
    status = stg_endpoint_new(endpoint, c, &e, err);
    if (status == STG_OK)
        return STG_OK;
    snprintf(words, sizeof words, "%s", err->text);
    snprintf(err->text, sizeof err->text, "--hub: %.360s", words);
    return status;
}

stg_status stg_send_endpoint_open(stg_endpoint **endpoint, stg_client *c,
                                  const send_options *o, stg_error *err)
{
    char url[URL_MAX], token[STG_TOKEN_MAX + 1] = "";
    stg_status status = write_url(url, o, err);

    if (status == STG_OK && o->remote.token_file != NULL)
        status = stg_token_file_read(token, o->remote.token_file, err);
    if (status == STG_OK)
        status = open_with(endpoint, c, o, url, token, err);
    return status;
}

/* -- the headers of a message ---------------------------------------------- */

static void write_span(stg_writer *w, stg_span text)
{
    for (size_t i = 0; i < text.size; i++)
        stg_write_char(w, text.at[i]);
}

static void write_header(stg_writer *w, stg_span name, stg_span value)
{
    write_span(w, name);
    stg_write_text(w, ": ");
    write_span(w, value);
    stg_write_text(w, "\r\n");
}

static void write_own(stg_writer *w, const char *name, const char *value)
{
    if (value != NULL)
        write_header(w, (stg_span){name, strlen(name)},
                     (stg_span){value, strlen(value)});
}

/* The hub refuses the message if it would drop one of them. */
static void write_keep(stg_writer *w, const send_options *o)
{
    for (size_t i = 0; i < o->header_count; i++) {
        stg_write_text(w, i == 0 ? "Stagger-Keep: " : ", ");
        write_span(w, o->headers[i].name);
    }
    stg_write_text(w, o->header_count > 0 ? "\r\n" : "");
}

/* Called twice, first to measure: it must write the same both times. */
static void write_headers(stg_writer *w, const send_options *o)
{
    write_own(w, "Idempotency-Key", o->has_no_id ? NULL : o->id);
    write_own(w, "Stagger-Key", o->key);
    write_own(w, STG_NOT_BEFORE, o->not_before);
    write_own(w, STG_EXPIRES, o->expires);
    write_own(w, "Content-Type", o->type);
    for (size_t i = 0; i < o->header_count; i++)
        write_header(w, o->headers[i].name, o->headers[i].value);
    write_keep(w, o);
}

bool stg_send_headers_make(char **headers, const send_options *o)
{
    stg_writer w = stg_writer_on(NULL, 0);

    write_headers(&w, o);
    *headers = malloc(w.length + 1);
    if (*headers == NULL)
        return false;
    w = stg_writer_on(*headers, w.length + 1);
    write_headers(&w, o);
    return true;
}
