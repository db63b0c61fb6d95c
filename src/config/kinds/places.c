/* Where things are: URLs of targets, addresses to listen on, sources of
 * messages, stores, and copies of dead letters.
 *
 * A URL may have a password in it, so that a wrong one is not repeated where it
 * might. The source is the only value that sets more than its own field: a text
 * with kafka:// says brokers, topics, group and start in one (config/from.h). */
#include <stdio.h>
#include <string.h>

#include "config/from.h"
#include "config/kinds/kinds.h"
#include "config/loading.h"
#include "http/url.h"
#include "ingress/address.h"
#include "kafka/topic.h"

/* -- URLs ------------------------------------------------------------------ */

/* Words of core and hub begin with the setting's name, which is said already. */
static const char *without(const char *prefix, const char *text)
{
    size_t size = strlen(prefix);

    return strncmp(text, prefix, size) == 0 ? text + size : text;
}

/* With http:// in front, if that makes it a URL. Nothing that may be a password
 * is repeated. */
static void suggest_url(const char *text, char *suggestion, size_t size)
{
    const char *host = strstr(text, "://");
    stg_url url;

    suggestion[0] = '\0';
    // What may be a password is not repeated.
    if (strchr(text, '@') != NULL || strchr(text, '#') != NULL)
        return;
    if (host == NULL && *text == '/')
        return;
    if ((size_t)snprintf(suggestion, size, "http://%s",
                         host != NULL ? host + 3 : text) >= size ||
        stg_url_parse(&url, suggestion, NULL) != STG_OK)
        suggestion[0] = '\0';
}

static bool read_url(const stg_setting *s, const char *text, void *base,
                     stg_value_flaw *flaw)
{
    stg_url url;
    stg_error err;

    if (stg_url_parse(&url, text, &err) != STG_OK) {
        suggest_url(text, flaw->suggestion, sizeof flaw->suggestion);
        return stg_kind_refuse_by(flaw, without("url: ", err.text));
    }
    stg_kind_put_text(s, base, text);
    return true;
}

/* The hub shows the URLs of its targets, and of their tokens. */
static void check_url(stg_loading *l, const stg_setting *s,
                      const stg_yaml_node *n, void *base)
{
    const char **written =
        s->is_common ? &((stg_target_common *)base)->oauth.token_url_written
                     : &((stg_target_settings *)base)->url_written;

    if (s->in != STG_IN_TARGET)
        return;
    // Of the defaults there may be one, of another URL.
    *written = n->written == NULL ? NULL : stg_load_keep_text(l, n->written);
}

const stg_kind stg_kind_url = {
    .expected = "http:// or https://, a host, and perhaps a port and a path",
    .read = read_url,
    .check = check_url,
    .texts = 1,
    .pattern = "^[Hh][Tt][Tt][Pp][Ss]?://",
};

/* -- addresses to listen on ------------------------------------------------ */

static void suggest_address(const char *text, char *suggestion, size_t size)
{
    size_t digits = strspn(text, "0123456789");

    suggestion[0] = '\0';
    if (digits > 0 && digits < 6 && text[digits] == '\0')
        snprintf(suggestion, size, "127.0.0.1:%s", text);
    else if (*text == ':' &&
             strspn(text + 1, "0123456789") == strlen(text + 1) &&
             text[1] != '\0')
        snprintf(suggestion, size, "127.0.0.1%s", text);
    else if (strspn(text, "0123456789.") == strlen(text) && *text != '\0')
        snprintf(suggestion, size, "%.40s:8080", text);
}

/* The parser is the one that listens with the address. */
static bool read_address(const stg_setting *s, const char *text, void *base,
                         stg_value_flaw *flaw)
{
    stg_listen_address address;
    stg_error err;

    if (stg_address_parse(&address, text, &err) != STG_OK) {
        suggest_address(text, flaw->suggestion, sizeof flaw->suggestion);
        return stg_kind_refuse(flaw, text, "is not an address to listen on");
    }
    stg_kind_put_text(s, base, text);
    return true;
}

const stg_kind stg_kind_address = {
    .expected =
        "address:port, like 127.0.0.1:8080 or [::1]:8080, or unix:/path",
    .read = read_address,
    .texts = 1,
    .pattern = "^unix:/|:[0-9]{1,5}$",
};

/* -- sources --------------------------------------------------------------- */

/* It is the hub's, and base all of its settings. */
static bool read_source(const stg_setting *s, const char *text, void *base,
                        stg_value_flaw *flaw)
{
    static const char *const words[] = {"queue", "kafka", NULL};
    static const char *const schemes[] = {"kafka:", NULL};
    stg_error err;

    (void)s;
    if (stg_from_read(base, text, &err) == STG_OK)
        return true;
    stg_kind_suggest_beginning(text, schemes, flaw);
    if (strchr(text, ':') == NULL)
        stg_kind_suggest_word(text, words, flaw);
    return stg_kind_refuse_by(flaw, err.text);
}

const stg_kind stg_kind_source = {
    .expected =
        "queue, kafka, or "
        "kafka://HOST:PORT,.../TOPIC,...?group=GROUP&start=START",
    .read = read_source,
    .pattern = "^(queue|kafka|kafka://.*)$",
};

/* -- stores ---------------------------------------------------------------- */

static const char *keep_store(stg_loading *l, const char *text)
{
    return *text == '\0' || stg_from_is_postgres(text)
               ? stg_load_keep_text(l, text)
               : stg_load_keep_path(l, text);
}

/* A settings file is copied, mailed and committed; the environment is not. */
static void check_store(stg_loading *l, const stg_setting *s,
                        const stg_yaml_node *n, void *base)
{
    char expected[STG_EXPECTED_MAX];

    (void)base;
    if (n->written == NULL && stg_from_has_password(n->text))
        stg_complain(l->c, n->place,
                     "`%s`: it has a password: put that into a file of "
                     "libpq's, and name that by ?passfile=FILE, or take it "
                     "from the environment; expected %s",
                     s->path, stg_setting_expected(s, expected));
}

const stg_kind stg_kind_store = {
    .expected = "the name of a file, or postgres://USER@HOST/DATABASE",
    .read = stg_kind_read_text,
    .keep = keep_store,
    .check = check_store,
    .texts = 1,
};

/* -- copies of dead letters ------------------------------------------------ */

static bool read_letters(const stg_setting *s, const char *text, void *base,
                         stg_value_flaw *flaw)
{
    static const char *const beginnings[] = {"file:", "kafka:", NULL};
    stg_letters_settings letters = {.path = NULL};

    if (strncmp(text, "kafka:", 6) == 0) {
        letters.topic = text + 6;
        if (!stg_topic_is_name((stg_span){text + 6, strlen(text + 6)}))
            return stg_kind_refuse(flaw, text, "names no topic");
    } else if (strncmp(text, "file:", 5) == 0 && text[5] != '\0') {
        letters.path = text + 5;
    } else {
        stg_kind_suggest_beginning(text, beginnings, flaw);
        if (strchr(text, ':') == NULL && *text != '\0')
            snprintf(flaw->suggestion, sizeof flaw->suggestion, "file:%.70s",
                     text);
        return stg_kind_refuse(flaw, text,
                               "does not begin with file: or kafka:");
    }
    memcpy((char *)base + s->at, &letters, sizeof letters);
    return true;
}

_Static_assert(sizeof(stg_letters_settings) == 2 * sizeof(char *), "two texts");

/* The path in it is relative to the settings file. */
static void check_letters(stg_loading *l, const stg_setting *s,
                          const stg_yaml_node *n, void *base)
{
    stg_letters_settings letters;

    (void)n;
    memcpy(&letters, (const char *)base + s->at, sizeof letters);
    if (letters.path != NULL)
        letters.path = stg_load_keep_path(l, letters.path);
    memcpy((char *)base + s->at, &letters, sizeof letters);
}

const stg_kind stg_kind_letters = {
    .expected = "file: and the name of a file, or kafka: and a topic",
    .read = read_letters,
    .check = check_letters,
    .texts = 2,
    .pattern = "^(file|kafka):.",
};
