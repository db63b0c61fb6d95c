#include <stdio.h>
#include <stdlib.h>

#include "http/template.h"
#include "tests/harness.h"

#define SPAN(text) ((stg_span){(text), sizeof(text) - 1})

static const stg_template_message message = {
    .id = {"orders.3.17", 11},
    .topic = {"orders", 6},
    .key = {"a b/\xc3\xa9", 6},
    .content_type = {"application/json", 16},
    .headers = {"X-A: one\r\nX-Odd: a?b\r\n", 22},
    .body =
        {"{\"user\":{\"id\":7,\"name\":\"J\\u00f6\",\"at\":null,\"on\":true,"
         "\"line\":\"a\\nb\",\"dots\":\"..\",\"no\":\"\"},\"n\":1.50e3,"
         "\"list\":[1],\"two\":1,\"tw\\u006f\":2}",
         0},
};

/* What it comes to, or "! WHY". */
static const char *filled(const char *text, stg_template_place place)
{
    static char shown[4096];
    stg_template_message m = message;
    char flaw[STG_TEMPLATE_FLAW_MAX];
    stg_text to = {.at = NULL};

    m.body.size = strlen(m.body.at);
    if (stg_template_put(&to, text, place, &m, flaw))
        snprintf(shown, sizeof shown, "%.*s", (int)to.size,
                 to.at == NULL ? "" : to.at);
    else
        snprintf(shown, sizeof shown, "! %s", flaw);
    stg_text_free(&to);
    return shown;
}

TEST(template, fills_in_a_path_and_a_query)
{
    static const struct {
        const char *text, *is;
    } rows[] = {
        {"/in", "/in"},
        {"", ""},
        {"/u/{body.user.id}/x?k={key}&t={topic}",
         "/u/7/x?k=a%20b%2F%C3%A9&t=orders"},
        {"/{id}/{header.x_a}", "/orders.3.17/one"},
        {"/{header.X-Odd}", "/a%3Fb"},
        {"/{header.content-type}", "/application%2Fjson"},
        {"/{body.n}/{body.user.on}/{body.user.name}", "/1.50e3/true/J%C3%B6"},
        {"/a{{b}}/v{body.user.dots}", "/a{b}}/v.."},
        {"/x?empty={body.user.no}", "/x?empty="},
        {"/{body.user.dots}", "! body.user.dots makes a path segment of dots"},
        {"/a/{body.user.no}/b", "! body.user.no makes an empty path segment"},
        {"/a/{body.user.no}", "! body.user.no makes an empty path segment"},
        {"/{body.user.nobody}", "! body.user.nobody is missing"},
        {"/{body.n.id}", "! body.n.id is missing"},
        {"/{body.user}", "! body.user is an object"},
        {"/{body.list}", "! body.list is a list"},
        {"/{body.user.at}", "! body.user.at is null"},
        {"/{body.two}", "! body.two is there twice"},
        {"/{header.X-B}", "! header.X-B is missing"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_STR(filled(rows[i].text, STG_TEMPLATE_PATH), rows[i].is);
}

TEST(template, fills_in_the_value_of_a_header)
{
    CHECK_STR(filled("user {body.user.id}; {key}", STG_TEMPLATE_HEADER),
              "user 7; a b/\xc3\xa9");
    CHECK_STR(filled("{{\"a\":1}", STG_TEMPLATE_HEADER), "{\"a\":1}");
    CHECK_STR(filled("{body.user.line}", STG_TEMPLATE_HEADER),
              "! body.user.line has characters that no header may have");
}

TEST(template, of_a_message_that_is_bare)
{
    static const struct {
        const char *text, *body, *why;
    } rows[] = {
        {"/{key}", "", "key is missing"},
        {"/{topic}", "", "topic is missing"},
        {"/{body.a}", "a=1", "the body is not JSON: a value is missing"},
        {"/{body.a}", "[{\"a\":1}]", "body.a is missing"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stg_template_message m = {.body = {rows[i].body, strlen(rows[i].body)}};
        char flaw[STG_TEMPLATE_FLAW_MAX];
        stg_text to = {.at = NULL};

        CHECK(
            !stg_template_put(&to, rows[i].text, STG_TEMPLATE_PATH, &m, flaw));
        if (strncmp(rows[i].why, "the body", 8) != 0)
            CHECK_STR(flaw, rows[i].why);
        else
            CHECK(strncmp(flaw, "the body is not JSON: ", 22) == 0);
        stg_text_free(&to);
    }
}

/* What another name or template of the message needs is there already. */
TEST(template, reads_a_body_once)
{
    static const char body[] = "{\"a\":1,\"b\":{\"c\":2}}";
    stg_template_message m = {.body = {body, sizeof body - 1}};
    char flaw[STG_TEMPLATE_FLAW_MAX];
    stg_text to = {.at = NULL};

    CHECK(stg_template_put(&to, "/{body.a}", STG_TEMPLATE_PATH, &m, flaw));
    m.body = (stg_span){"no JSON", 7};
    CHECK(stg_template_put(&to, "{body.b.c}{body.a}", STG_TEMPLATE_HEADER, &m,
                           flaw));
    CHECK_INT(to.size, 4);
    CHECK(memcmp(to.at, "/121", 4) == 0);
    stg_text_free(&to);
}

TEST(template, is_checked_before_there_is_a_message)
{
    static const char *const good[] = {"/in", "/{{x", "/{id}{key}{topic}",
                                       "/{header.X-A}/{body.a.b-c.d}", "}"};
    static const char *const bad[] = {
        "/{",       "/{}",          "/{colour}",  "/{header.}", "/{header.a b}",
        "/{body.}", "/{body.a..b}", "/{body.a.}", "/{body}",    "/{id",
        "/{ id}"};
    char flaw[STG_TEMPLATE_FLAW_MAX];

    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK_FROM(i, stg_template_check(good[i], flaw));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_FROM(i, !stg_template_check(bad[i], flaw));
    CHECK(!stg_template_check("/{colour}", flaw));
    CHECK_STR(flaw,
              "{colour}; expected {id}, {key}, {topic}, {header.NAME} or "
              "{body.NAME}, or {{ for a brace");
}

TEST(template, takes_values_of_2048_bytes_at_most)
{
    static char key[2050];
    char flaw[STG_TEMPLATE_FLAW_MAX] = "";
    stg_template_message m = {.key = {key, 2048}};
    stg_text to = {.at = NULL};

    memset(key, 'k', sizeof key);
    CHECK(stg_template_put(&to, "/{key}", STG_TEMPLATE_PATH, &m, flaw));
    CHECK_U64(to.size, 2049);
    m.key.size++;
    CHECK(!stg_template_put(&to, "/{key}", STG_TEMPLATE_PATH, &m, flaw));
    CHECK_STR(flaw, "key is longer than 2048 bytes");
    stg_text_free(&to);
}

TEST(template, has_the_headers_that_the_hub_keeps_apart)
{
    CHECK_STR(filled("{header.stagger-key}", STG_TEMPLATE_HEADER),
              "a b/\xc3\xa9");
    CHECK_STR(filled("{header.Content-Type}", STG_TEMPLATE_HEADER),
              "application/json");
}
