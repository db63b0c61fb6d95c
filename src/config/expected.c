/* What is wanted of a setting, in words. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/values.h"
#include "core/writer.h"

static const char *print_size(uint64_t size, char text[24])
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;

    while (unit < 4 && size >= 1024 && size % 1024 == 0) {
        size /= 1024;
        unit++;
    }
    snprintf(text, 24, "%" PRIu64 "%s", size, units[unit]);
    return text;
}

static const char *print_time(uint64_t time, char text[24])
{
    stg_writer w = stg_writer_on(text, 24);

    if (time == 365 * STG_DAY)
        stg_write_text(&w, "365d");
    else
        stg_write_duration(&w, time);
    return text;
}

static void want_words(const stg_setting *s, stg_writer *w)
{
    for (size_t i = 0; s->words[i] != NULL; i++) {
        if (i > 0)
            stg_write_text(w, s->words[i + 1] != NULL ? ", " : " or ");
        stg_write_text(w, s->words[i]);
    }
}

static void want_range(const stg_setting *s, stg_writer *w)
{
    const char *example =
        s->standard != NULL && s->standard != s->none &&
                (s->none == NULL || strcmp(s->standard, s->none) != 0)
            ? s->standard
            : s->example;
    bool is_time = s->kind == STG_KIND_TIME;
    char least[24], most[24];

    stg_write_text(w, is_time ? "a time from " : "a size from ");
    stg_write_text(w, (is_time ? print_time : print_size)(s->least, least));
    stg_write_text(w, " to ");
    stg_write_text(w, (is_time ? print_time : print_size)(s->most, most));
    stg_write_text(w, ", like ");
    stg_write_text(w, example);
    if (s->none != NULL) {
        stg_write_text(w, ", or ");
        stg_write_text(w, s->none);
    }
}

static const char *const wanted[] = {
    [STG_KIND_SECTION] = "a map of settings",
    [STG_KIND_FILE] = "the name of a file",
    [STG_KIND_NAME] = "a name of 1 to 64 of A-Z a-z 0-9 . _ -, but not . or ..",
    [STG_KIND_URL] =
        "http:// or https://, a host, and perhaps a port and a "
        "path",
    [STG_KIND_METHOD] = "a method of HTTP, like POST or PUT",
    [STG_KIND_ADDRESS] =
        "address:port, like 127.0.0.1:8080 or [::1]:8080, or "
        "unix:/path",
    [STG_KIND_SOURCE] =
        "queue, stdin, kafka, or "
        "kafka://HOST:PORT,.../TOPIC,...?group=GROUP&start=START",
    [STG_KIND_STORE] = "the name of a file, or postgres://USER@HOST/DATABASE",
    [STG_KIND_LETTERS] = "file: and the name of a file, or kafka: and a topic",
    [STG_KIND_POLICY] = "a name of `policies`, a preset, or a policy's text",
    [STG_KIND_FLAG] = "true or false",
    [STG_KIND_FLAG_NOT] = "true or false",
    [STG_KIND_RATE] = "requests a second, like 100/s or 0.5/s",
    [STG_KIND_BUDGET] =
        "none, CAPACITY:RATE/s, ratio:SHARE+RATE/s, aws, "
        "share:PERCENT%+FLOOR, aws:CAPACITY:COST:TIMEOUT:THROTTLE or grpc:TOKENS:RATIO",
    [STG_KIND_THRESHOLD] =
        "`N failures in TIME`, like 10 failures in 5m, or "
        "off",
    [STG_KIND_ALERTS] =
        "a list of dead-letters, breaker, gone, store, lag, "
        "certificate, retention",
    [STG_KIND_TEXTS] = "a text, or a list of texts",
    [STG_KIND_RULES] = "a list of names of headers, like [traceparent, X-*]",
    [STG_KIND_BROKERS] = "a list of brokers, like [k1:9092, k2:9092]",
    [STG_KIND_TOPICS] =
        "a list of topics, each 1 to 249 of A-Z a-z 0-9 . _ -, or a pattern: ^ and "
        "the rest of a regular expression",
    [STG_KIND_PROPERTIES] =
        "a map of librdkafka's properties: `name: value`, or `name: {file: "
        "PATH}`",
    [STG_KIND_CIDRS] = "a list of networks, like [10.0.0.0/8, 'fd00::/8']",
    [STG_KIND_HEADERS] =
        "a map of headers: `Name: value`, or `Name: {file: "
        "PATH}`",
    [STG_KIND_SINK_HEADERS] =
        "a map of headers: `Name: value`, or `Name: "
        "{file: PATH}`",
    [STG_KIND_MATCH] =
        "a map of headers: `Name: value`, or `Name: [value, "
        "value]`",
    [STG_KIND_TAGS] = "a map of words: `name: value`",
    [STG_KIND_SINK_TAGS] = "a map of words: `name: value`",
    [STG_KIND_POLICIES] = "a map of policies: `name: text`",
    [STG_KIND_DEFAULTS] = "a map of settings, as of a target",
    [STG_KIND_TARGETS] = "a list of targets: `- {name: NAME, url: URL}`",
    [STG_KIND_SINKS] = "a list of sinks: `- {name: NAME, type: TYPE}`",
};

const char *stg_setting_expected(const stg_setting *s,
                                 char text[STG_EXPECTED_MAX])
{
    stg_writer w = stg_writer_on(text, STG_EXPECTED_MAX);

    switch (s->kind) {
    case STG_KIND_WORD:
        want_words(s, &w);
        break;
    case STG_KIND_TIME:
    case STG_KIND_SIZE:
        want_range(s, &w);
        break;
    case STG_KIND_COUNT:
        snprintf(text, STG_EXPECTED_MAX,
                 "a number from %" PRIu64 " to %" PRIu64 "%s%s", s->least,
                 s->most, s->none != NULL ? ", or " : "",
                 s->none != NULL ? s->none : "");
        break;
    case STG_KIND_PERCENT:
        snprintf(text, STG_EXPECTED_MAX, "%" PRIu64 "%% to %" PRIu64 "%%",
                 s->least, s->most);
        break;
    case STG_KIND_TEXT:
        snprintf(text, STG_EXPECTED_MAX, "a text of 1 to %" PRIu64 " bytes",
                 s->most);
        break;
    default:
        stg_write_text(&w, wanted[s->kind]);
    }
    return text;
}
