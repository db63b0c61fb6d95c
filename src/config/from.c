/* Texts that say several things at once: kafka://BROKERS/TOPICS?group=GROUP,
 * where Kafka's group begins, and stores that are a database.
 *
 * The parser is strict, for a text that is read in part would connect to
 * another broker or topic than was meant. Texts are kept with the settings. On
 * a mistake s->kafka is as it was. */
#include "config/from.h"

#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "host/wall.h"
#include "kafka/topic.h"
#include "store/postgres/open.h"

enum { GROUP_MAX = 200, LIST_MAX = 100 };

static const char scheme[] = "kafka://";

/* -- parts ----------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

static bool are_letters(stg_span text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!is_letter(text.at[i]))
            return false;
    return text.size > 0;
}

/* Port 0 is refused: it is no address to connect to. */
static bool is_port(stg_span text)
{
    unsigned port = 0;

    if (text.size == 0 || text.size > 5)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        port = port * 10 + (unsigned)(text.at[i] - '0');
    }
    return port > 0 && port <= 65535;
}

static stg_span behind(stg_span text, const char *at)
{
    return (stg_span){at, (size_t)(text.at + text.size - at)};
}

/* HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT, with an address of IPv6. */
bool stg_from_is_broker(stg_span text)
{
    const char *end, *colon;

    if (text.size == 0 || text.size > 255)
        return false;
    if (text.at[0] == '[') {
        end = memchr(text.at, ']', text.size);
        if (end == NULL || end == text.at + 1 ||
            strspn(text.at + 1, "0123456789abcdefABCDEF:.") !=
                (size_t)(end - text.at - 1))
            return false;
        text = behind(text, end + 1);
        return text.size == 0 ||
               (text.at[0] == ':' && is_port(behind(text, text.at + 1)));
    }
    colon = memchr(text.at, ':', text.size);
    if (colon == NULL)
        return are_letters(text);
    return are_letters((stg_span){text.at, (size_t)(colon - text.at)}) &&
           is_port(behind(text, colon + 1));
}

/* -- kafka://BROKERS/TOPICS?group=GROUP ------------------------------------ */

typedef bool is_part(stg_span text);

/* Whether a pattern can be compiled is checked with the settings. */
static bool is_name_or_pattern(stg_span text)
{
    return stg_topic_is_name(text) ||
           (text.size > 0 && stg_topic_is_pattern(text.at));
}

/* The parts between commas, kept; LIST_MAX at most. STG_INVALID: one of them is
 * wrong, or there are too many. */
static stg_status split(stg_settings *s, stg_span text, is_part *is_one,
                        stg_texts *parts)
{
    const char **at = stg_settings_keep(s, (LIST_MAX + 1) * sizeof(char *));

    *parts = (stg_texts){.at = at};
    if (at == NULL)
        return STG_IO;
    for (;;) {
        const char *comma =
            text.size > 0 ? memchr(text.at, ',', text.size) : NULL;
        stg_span part = {text.at,
                         comma != NULL ? (size_t)(comma - text.at) : text.size};

        if (!is_one(part) || parts->count == LIST_MAX)
            return STG_INVALID;
        at[parts->count] = stg_settings_keep_text(s, part.at, part.size);
        if (at[parts->count++] == NULL)
            return STG_IO;
        if (comma == NULL)
            return STG_OK;
        text = behind(text, comma + 1);
    }
}

bool stg_from_read_start(const char *text, stg_start_kind *kind,
                         uint64_t *at_ms)
{
    stg_ns wall = 0;

    if (strcmp(text, "latest") == 0)
        *kind = STG_START_LATEST;
    else if (strcmp(text, "earliest") == 0)
        *kind = STG_START_EARLIEST;
    else if (stg_instant_read(text, &wall))
        *kind = STG_START_TIME;
    else
        return false;
    *at_ms = wall / STG_MS;
    return true;
}

static stg_status read_group(stg_settings *s, stg_span text,
                             stg_kafka_settings *k, stg_error *err)
{
    if (text.size > GROUP_MAX || !are_letters(text))
        return stg_hub_refuse(
            err, STG_INVALID,
            "it has no group of 1 to 200 of A-Z a-z 0-9 . _ -");
    k->group = stg_settings_keep_text(s, text.at, text.size);
    return k->group != NULL ? STG_OK : STG_IO;
}

/* Kept before it is checked, because the parser needs its end. */
static stg_status read_start(stg_settings *s, stg_span text,
                             stg_kafka_settings *k, stg_error *err)
{
    stg_start_kind kind;
    uint64_t at_ms;

    k->start = stg_settings_keep_text(s, text.at, text.size);
    if (k->start == NULL)
        return STG_IO;
    if (stg_from_read_start(k->start, &kind, &at_ms))
        return STG_OK;
    return stg_hub_refuse(err, STG_INVALID,
                          "it has no start that is latest, earliest or a time "
                          "such as 2026-03-01T12:00:00Z");
}

/* "group=...&start=...", in any order. */
static stg_status read_parameters(stg_settings *s, const char *text,
                                  stg_kafka_settings *k, stg_error *err)
{
    static const char group[] = "group=", start[] = "start=";
    stg_status status = STG_OK;
    bool goes_on = *text == '?';

    while (goes_on && status == STG_OK) {
        const char *value = ++text + sizeof group - 1;
        stg_span part = {value, strcspn(text, "&") - (sizeof group - 1)};

        if (strncmp(text, group, sizeof group - 1) == 0)
            status = read_group(s, part, k, err);
        else if (strncmp(text, start, sizeof start - 1) == 0)
            status = read_start(s, part, k, err);
        else
            return stg_hub_refuse(err, STG_INVALID,
                                  "it goes on behind its topics by something "
                                  "else than ?group=GROUP&start=START; the "
                                  "rest of what Kafka can be told is in "
                                  "`kafka`, in a file");
        text += strcspn(text, "&");
        goes_on = *text == '&';
    }
    return status;
}

/* Reads into a copy: what the file says in `kafka` stays where the URL has no
 * such part. */
static stg_status read_url(stg_settings *s, const char *text, stg_error *err)
{
    const char *brokers = text + sizeof scheme - 1;
    const char *slash = strchr(brokers, '/'), *end;
    stg_kafka_settings k = s->kafka;
    stg_status status;

    if (slash == NULL)
        return stg_hub_refuse(err, STG_INVALID, "it has no topic");
    status = split(s, (stg_span){brokers, (size_t)(slash - brokers)},
                   stg_from_is_broker, &k.brokers);
    if (status == STG_INVALID)
        return stg_hub_refuse(err, STG_INVALID,
                              "it has no broker as HOST:PORT");
    end = slash + 1 + strcspn(slash + 1, "?");
    if (status == STG_OK)
        status = split(s, (stg_span){slash + 1, (size_t)(end - slash - 1)},
                       is_name_or_pattern, &k.topics);
    if (status == STG_INVALID)
        return stg_hub_refuse(
            err, STG_INVALID,
            "it has no topic of 1 to 249 of A-Z a-z 0-9 . _ -, or ^PATTERN");
    if (status == STG_OK)
        status = read_parameters(s, end, &k, err);
    if (status == STG_OK)
        k.from = stg_settings_keep_text(s, text, strlen(text));
    if (status == STG_IO || (status == STG_OK && k.from == NULL))
        return stg_hub_refuse(err, STG_IO, "there is no memory for it");
    if (status == STG_OK)
        s->kafka = k;
    return status;
}

/* "kafka" alone leaves brokers and topics to the file; whether they are there
 * is checked with all settings. */
stg_status stg_from_read(stg_settings *s, const char *text, stg_error *err)
{
    stg_source_kind source;
    stg_status status = STG_OK;

    if (strcmp(text, "queue") == 0)
        source = STG_SOURCE_QUEUE;
    else if (strcmp(text, "kafka") == 0)
        source = STG_SOURCE_KAFKA;
    else if (strncmp(text, scheme, sizeof scheme - 1) == 0) {
        source = STG_SOURCE_KAFKA;
        status = read_url(s, text, err);
    } else
        return stg_hub_refuse(err, STG_INVALID, "it is none of them%s",
                              strcmp(text, "-") == 0 ||
                                      strcmp(text, "stdin") == 0
                                  ? ": `stagger send --lines` publishes the "
                                    "lines of standard input"
                                  : "");
    if (status == STG_OK)
        s->source = source;
    return status;
}

/* -- the store ------------------------------------------------------------- */

/* Both spellings that libpq takes. */
bool stg_from_is_postgres(const char *store)
{
    return strncmp(store, "postgres://", 11) == 0 ||
           strncmp(store, "postgresql://", 13) == 0;
}

/* A password before the @, or as a parameter. Also checks what libpq cannot
 * read, since a text with a slip in it may still have a password. */
static bool looks_secret(const char *store)
{
    const char *host = strstr(store, "://") + 3, *at, *colon, *asked;

    at = memchr(host, '@', strcspn(host, "/?"));
    colon = at != NULL ? memchr(host, ':', (size_t)(at - host)) : NULL;
    asked = strchr(host, '?');
    return (colon != NULL && colon + 1 < at) ||
           (asked != NULL && (strncmp(asked, "?password=", 10) == 0 ||
                              strstr(asked, "&password=") != NULL));
}

bool stg_from_has_password(const char *store)
{
    return stg_from_is_postgres(store) &&
           (looks_secret(store) || stg_pg_url_has_secret(store));
}
