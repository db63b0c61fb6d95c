#include "ingress/cloud_event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"

/* -- what several tests share ---------------------------------------------- */

static stg_span span_of(const char *text)
{
    return (stg_span){text, strlen(text)};
}

static const char required[] =
    "ce-specversion: 1.0\r\nce-id: 7\r\nce-source: /a\r\nce-type: b\r\n";

/* "TYPE | HEADERS | BODY", ends of lines as a '/'. */
static const char *convert(stg_cloud_events mode, const char *type,
                           const char *headers, const char *body)
{
    static char line[2000];
    stg_parcel p = {.content_type = span_of(type),
                    .headers = span_of(headers),
                    .body = span_of(body)};
    char *memory, *at;

    CHECK(stg_cloud_event_convert(mode, &p, &memory));
    snprintf(line, sizeof line, "%.*s | %.*s | %.*s", (int)p.content_type.size,
             p.content_type.at, (int)p.headers.size, p.headers.at,
             (int)p.body.size, p.body.at);
    while ((at = strstr(line, "\r\n")) != NULL) {
        *at++ = '/';
        memmove(at, at + 1, strlen(at));
    }
    free(memory);
    return line;
}

static const char *to_structured(const char *type, const char *more,
                                 const char *body)
{
    char headers[500];

    snprintf(headers, sizeof headers, "%s%s", required, more);
    return convert(STG_CLOUD_EVENTS_STRUCTURED, type, headers, body);
}

static const char *to_binary(const char *body)
{
    return convert(STG_CLOUD_EVENTS_BINARY,
                   "application/cloudevents+json; charset=utf-8", "X-A: 1\r\n",
                   body);
}

#define ATTRIBUTES \
    "\"specversion\":\"1.0\",\"id\":\"7\",\"source\":\"/a\",\"type\":\"b\""
#define STRUCTURED "application/cloudevents+json; charset=utf-8"

/* -- to structured mode ---------------------------------------------------- */

TEST(cloud_event, has_data_of_each_kind_in_structured_mode)
{
    CHECK_STR(to_structured("application/json", "", "{\"n\": 1.0e1}"),
              STRUCTURED " |  | {" ATTRIBUTES
                         ",\"datacontenttype\":\"application/json\",\"data\":"
                         "{\"n\": 1.0e1}}");
    CHECK_STR(to_structured("application/x+json", "", "5"),
              STRUCTURED " |  | {" ATTRIBUTES
                         ",\"datacontenttype\":\"application/x+json\","
                         "\"data\":5}");
    // JSON that is none keeps its bytes.
    CHECK_STR(to_structured("application/json", "", "{"),
              STRUCTURED " |  | {" ATTRIBUTES
                         ",\"datacontenttype\":\"application/json\","
                         "\"data_base64\":\"ew==\"}");
    CHECK_STR(to_structured("text/plain", "", "a \"b\"\n"),
              STRUCTURED " |  | {" ATTRIBUTES
                         ",\"datacontenttype\":\"text/plain\",\"data\":\"a "
                         "\\\"b\\\"\\u000a\"}");
    CHECK_STR(to_structured("text/plain", "", "\xff"),
              STRUCTURED " |  | {" ATTRIBUTES
                         ",\"datacontenttype\":\"text/plain\",\"data_base64\":"
                         "\"/w==\"}");
    CHECK_STR(to_structured("image/png", "", "abc"),
              STRUCTURED " |  | {" ATTRIBUTES
                         ",\"datacontenttype\":\"image/png\",\"data_base64\":"
                         "\"YWJj\"}");
    CHECK_STR(to_structured("", "", ""), STRUCTURED " |  | {" ATTRIBUTES "}");
    CHECK_STR(to_structured("", "", "[1]"),
              STRUCTURED " |  | {" ATTRIBUTES ",\"data\":[1]}");
}

TEST(cloud_event, keeps_other_headers_and_decodes_values)
{
    CHECK_STR(
        to_structured("", "X-A: 1\r\nCE_Subject: a%20%22%e2%82%AC%\r\n", ""),
        STRUCTURED " | X-A: 1/ | {" ATTRIBUTES
                   ",\"subject\":\"a \\\"\u20ac%\"}");
}

TEST(cloud_event, stays_as_it_is_where_it_is_none)
{
    CHECK_STR(convert(STG_CLOUD_EVENTS_STRUCTURED, "text/plain",
                      "ce-id: 7\r\nce-type: b\r\n", "x"),
              "text/plain | ce-id: 7/ce-type: b/ | x");
    CHECK_STR(convert(STG_CLOUD_EVENTS_AS_IS, "", required, ""),
              " | ce-specversion: 1.0/ce-id: 7/ce-source: /a/ce-type: b/ | ");
    CHECK_STR(convert(STG_CLOUD_EVENTS_BINARY, "", required, ""),
              " | ce-specversion: 1.0/ce-id: 7/ce-source: /a/ce-type: b/ | ");
    CHECK_STR(to_structured("", "ce-datacontenttype: a\r\n", ""),
              " | ce-specversion: 1.0/ce-id: 7/ce-source: /a/ce-type: b/"
              "ce-datacontenttype: a/ | ");
    // No attribute has such a name, and no JSON such a value.
    CHECK_STR(to_structured("", "ce-a-b: 1\r\n", ""),
              " | ce-specversion: 1.0/ce-id: 7/ce-source: /a/ce-type: b/"
              "ce-a-b: 1/ | ");
    CHECK_STR(to_structured("", "ce-a: %ff\r\n", ""),
              " | ce-specversion: 1.0/ce-id: 7/ce-source: /a/ce-type: b/"
              "ce-a: %ff/ | ");
    CHECK_STR(to_binary("{\"id\":\"7\"}"), STRUCTURED
              " | X-A: 1/ | "
              "{\"id\":\"7\"}");
    CHECK_STR(to_binary("{"), STRUCTURED " | X-A: 1/ | {");
    CHECK_STR(to_binary("{" ATTRIBUTES ",\"x\":{}}"),
              STRUCTURED " | X-A: 1/ | {" ATTRIBUTES ",\"x\":{}}");
    CHECK_STR(to_binary("{" ATTRIBUTES ",\"x\":1,\"X\":2}"),
              STRUCTURED " | X-A: 1/ | {" ATTRIBUTES ",\"x\":1,\"X\":2}");
    CHECK_STR(to_binary("{" ATTRIBUTES ",\"id\":\"8\"}"),
              STRUCTURED " | X-A: 1/ | {" ATTRIBUTES ",\"id\":\"8\"}");
    CHECK_STR(to_binary("{" ATTRIBUTES ",\"x y\":1}"),
              STRUCTURED " | X-A: 1/ | {" ATTRIBUTES ",\"x y\":1}");
    CHECK_STR(to_binary("{" ATTRIBUTES ",\"data_base64\":\"!\"}"),
              STRUCTURED " | X-A: 1/ | {" ATTRIBUTES ",\"data_base64\":\"!\"}");
    CHECK_STR(to_binary("{" ATTRIBUTES ",\"datacontenttype\":\"a\\nB: c\"}"),
              STRUCTURED " | X-A: 1/ | {" ATTRIBUTES
                         ",\"datacontenttype\":\"a\\nB: c\"}");
}

/* -- to binary mode -------------------------------------------------------- */

#define LINES "X-A: 1/ce-specversion: 1.0/ce-id: 7/ce-source: /a/ce-type: b/"

TEST(cloud_event, has_data_of_each_kind_in_binary_mode)
{
    CHECK_STR(to_binary("{" ATTRIBUTES ",\"data\": {\"n\": 1.0e1} }"),
              "application/json | " LINES " | {\"n\": 1.0e1}");
    CHECK_STR(to_binary("{" ATTRIBUTES ",\"data\":\"a\"}"),
              "application/json | " LINES " | \"a\"");
    CHECK_STR(to_binary("{\"data\":\"a\\u20ac\",\"datacontenttype\":"
                        "\"text/plain\"," ATTRIBUTES "}"),
              "text/plain | " LINES " | a\u20ac");
    CHECK_STR(to_binary("{\"data_base64\":\"YW\\u004aj\",\"datacontenttype\":"
                        "\"image/png\"," ATTRIBUTES "}"),
              "image/png | " LINES " | abc");
    CHECK_STR(to_binary("{\"data_base64\":\"YWJj\"," ATTRIBUTES "}"),
              " | " LINES " | abc");
    CHECK_STR(to_binary("{" ATTRIBUTES ",\"data\":null}"), " | " LINES " | ");
}

TEST(cloud_event, encodes_values_in_headers)
{
    CHECK_STR(to_binary("{" ATTRIBUTES ",\"n\":5,\"t\":true,\"none\":null,"
                        "\"s\":\"a \\\"\u20ac\\r\\nX: %\"}"),
              " | " LINES
              "ce-n: 5/ce-t: true/ce-s: "
              "a%20%22%E2%82%AC%0D%0AX:%20%25/ | ");
}

/* -- there and back -------------------------------------------------------- */

TEST(cloud_event, comes_back_as_it_was)
{
    static const struct {
        const char *type, *body;
    } cases[] = {
        {"application/json", "{\"a\": [1, 2.50]}"},
        {"application/json", "no JSON"},
        {"text/json", "no JSON"},
        {"text/plain", "a\n\"b\""},
        {"image/png", "\x89PNG\r\n\xff"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stg_parcel p = {.content_type = span_of(cases[i].type),
                        .headers = span_of(required),
                        .body = span_of(cases[i].body)};
        char *there, *back;

        CHECK(stg_cloud_event_convert(STG_CLOUD_EVENTS_STRUCTURED, &p, &there));
        CHECK(stg_cloud_event_is_structured(p.content_type));
        CHECK(stg_cloud_event_convert(STG_CLOUD_EVENTS_BINARY, &p, &back));
        CHECK(back != NULL);
        CHECK(p.body.size == strlen(cases[i].body) &&
              memcmp(p.body.at, cases[i].body, p.body.size) == 0);
        CHECK(p.content_type.size == strlen(cases[i].type) &&
              memcmp(p.content_type.at, cases[i].type, p.content_type.size) ==
                  0);
        CHECK(p.headers.size == strlen(required) &&
              memcmp(p.headers.at, required, p.headers.size) == 0);
        free(there);
        free(back);
    }
}

TEST(cloud_event, knows_its_types_and_headers)
{
    CHECK(stg_cloud_event_is_structured(
        span_of("Application/CloudEvents+JSON ; charset=utf-8")));
    CHECK(!stg_cloud_event_is_structured(
        span_of("application/cloudevents-batch+json")));
    CHECK(!stg_cloud_event_is_structured((stg_span){NULL, 0}));
    CHECK(stg_cloud_event_is_header(span_of("CE-Type")));
    CHECK(stg_cloud_event_is_header(span_of("ce_type")));
    CHECK(!stg_cloud_event_is_header(span_of("ce-")));
    CHECK(!stg_cloud_event_is_header(span_of("cent")));
}
