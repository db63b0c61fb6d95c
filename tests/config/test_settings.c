#include "config/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/kinds/kinds.h"
#include "config/load.h"
#include "config/targets.h"
#include "host/process.h"
#include "store/parcel.h"
#include "tests/harness.h"

/* -- the table ------------------------------------------------------------- */

/* A part of each list that the settings have. */
typedef struct parts {
    stg_alert_receiver_options receiver;
    stg_inbound_settings inbound;
} parts;

static parts new_parts(void)
{
    return (parts){.receiver =
                       stg_alert_receiver_options_default(STG_RECEIVER_WEBHOOK),
                   .inbound = {.hook.tolerance = 5 * STG_MIN}};
}

static void *base_of(stg_settings *s, const stg_setting *row, parts *p)
{
    return row->in == STG_IN_HUB       ? (void *)s
           : row->in == STG_IN_TARGET  ? stg_setting_base(row, &s->defaults)
           : row->in == STG_IN_INBOUND ? (void *)&p->inbound
                                       : (void *)&p->receiver;
}

/* What stands in the documentation is what a hub has. */
TEST(settings, have_the_defaults_that_the_table_says)
{
    const stg_setting *row;

    for (size_t i = 0; (row = stg_setting_at(i)) != NULL; i++) {
        stg_settings *a = stg_settings_new(), *b = stg_settings_new();
        parts x = new_parts(), y = x;
        stg_value_flaw flaw;

        // Where it listens by default depends on the source.
        if (row->standard != NULL && stg_setting_is_scalar(row) &&
            strcmp(row->path, "listen.address") != 0) {
            void *to = base_of(a, row, &x);

            if (!stg_value_read(row, row->standard, to, &flaw) ||
                !stg_setting_equal(row, to, base_of(b, row, &y)))
                harness_fail(__FILE__, __LINE__, "%s: %s is not the default",
                             row->path, row->standard);
        }
        stg_settings_free(a);
        stg_settings_free(b);
    }
}

TEST(settings, have_examples_that_can_be_used)
{
    stg_settings *s = stg_settings_new();
    parts p = new_parts();
    const stg_setting *row;
    stg_value_flaw flaw;

    for (size_t i = 0; (row = stg_setting_at(i)) != NULL; i++) {
        const char *example = row->example;
        char bare[64];

        // As YAML has it, in quotes.
        if (example != NULL && example[0] == '\'') {
            snprintf(bare, sizeof bare, "%s", example + 1);
            bare[strlen(bare) - 1] = '\0';
            example = bare;
        }
        if (row->kind != &stg_kind_section && row->example == NULL)
            harness_fail(__FILE__, __LINE__, "%s has no example", row->path);
        if (stg_setting_is_scalar(row) &&
            !stg_value_read(row, example, base_of(s, row, &p), &flaw))
            harness_fail(__FILE__, __LINE__, "%s: %s: %s", row->path, example,
                         flaw.what);
        if (row->kind != &stg_kind_section && row->standard != NULL &&
            strcmp(row->standard, row->example) == 0)
            harness_fail(__FILE__, __LINE__, "%s: its example is its default",
                         row->path);
    }
    stg_settings_free(s);
}

TEST(settings, each_have_a_path_and_a_flag_of_their_own)
{
    const stg_setting *a, *b;

    for (size_t i = 0; (a = stg_setting_at(i)) != NULL; i++) {
        CHECK_INT(stg_setting_number(a), i);
        CHECK(stg_setting_find(a->in, a->path, strlen(a->path)) == a);
        CHECK(a->says[strlen(a->says) - 1] == '.');
        for (size_t k = 0; (b = stg_setting_at(k)) != NULL; k++)
            if (k != i && a->flag != NULL && b->flag != NULL)
                CHECK(strcmp(a->flag, b->flag) != 0);
    }
}

/* What lies in a section has the section's row before it. */
TEST(settings, lie_in_sections_that_are_there)
{
    const stg_setting *row;

    for (size_t i = 0; (row = stg_setting_at(i)) != NULL; i++) {
        const char *dot = strrchr(row->path, '.');
        const stg_setting *section;

        if (dot == NULL)
            continue;
        section =
            stg_setting_find(row->in, row->path, (size_t)(dot - row->path));
        CHECK(section != NULL);
        CHECK_INT(section->kind, &stg_kind_section);
    }
}

/* -- one value ------------------------------------------------------------- */

static const char *read_suggestion(const char *path, const char *text)
{
    static stg_value_flaw flaw;
    stg_settings *s = stg_settings_new();
    const stg_setting *row = stg_setting_find(STG_IN_HUB, path, strlen(path));
    bool is_read = stg_value_read(row, text, s, &flaw);

    stg_settings_free(s);
    return is_read ? "read" : flaw.suggestion;
}

TEST(settings, guess_what_a_value_was_meant_to_be)
{
    CHECK_STR(read_suggestion("drain", "10s"), "read");
    CHECK_STR(read_suggestion("drain", "10"), "10s");
    CHECK_STR(read_suggestion("drain", "10 s"), "10s");
    CHECK_STR(read_suggestion("drain", "2 minutes"), "2m");
    CHECK_STR(read_suggestion("drain", "1.5hours"), "1.5h");
    CHECK_STR(read_suggestion("drain", "3d"), "");
    CHECK_STR(read_suggestion("memory", "1GiB"), "read");
    CHECK_STR(read_suggestion("memory", "1G"), "read");
    CHECK_STR(read_suggestion("memory", "134217728"), "read");
    CHECK_STR(read_suggestion("memory", "1gb"), "1GiB");
    CHECK_STR(read_suggestion("memory", "64"), "64MiB");
    CHECK_STR(read_suggestion("log.level", "Info"), "info");
    CHECK_STR(read_suggestion("budget", "100:10/s"), "read");
    CHECK_STR(read_suggestion("alerts.threshold", "3 failures in 1m"), "read");
    CHECK_STR(read_suggestion("alerts.repeat-interval", "none"), "never");
}

/* -- filters --------------------------------------------------------------- */

#define SPAN(text)                  \
    (stg_span)                      \
    {                               \
        (text), sizeof(text "") - 1 \
    }

static bool accepts(const char *header, const char *value, const stg_parcel *p)
{
    const char *const values[] = {"other", value, NULL};
    stg_match_setting match = {.header = header, .values = {values, 2}};
    stg_target_settings t = {.match = &match, .match_count = 1};
    size_t size = stg_parcel_size(p);
    stg_message *m = calloc(1, sizeof *m + size);
    bool is_accepted;

    m->size = size;
    stg_parcel_pack(p, m->bytes);
    is_accepted = stg_match_accepts(&t, m);
    free(m);
    return is_accepted;
}

TEST(settings, filter_by_headers)
{
    stg_parcel p = {.content_type = SPAN("text/plain"),
                    .headers = SPAN("X-A: one\r\nX-B: two\r\nX-A: three\r\n"),
                    .key = SPAN("k"),
                    .body = SPAN("X-C: four\r\n")};

    CHECK(accepts("X-A", "one", &p));
    CHECK(accepts("x-a", "three", &p));
    CHECK(accepts("X-B", "two", &p));
    CHECK(!accepts("X-B", "Two", &p));
    CHECK(!accepts("X-B", "zzz", &p));
    CHECK(!accepts("X-B", "tw", &p));
    CHECK(!accepts("X-C", "four", &p));
    CHECK(!accepts("X-", "one", &p));
    CHECK(accepts("content-type", "text/plain", &p));
    CHECK(!accepts("Content-Type", "text/html", &p));
    CHECK(accepts("Stagger-Key", "k", &p));
    p.key = p.content_type = (stg_span){"", 0};
    CHECK(!accepts("Stagger-Key", "", &p));
    CHECK(!accepts("Content-Type", "", &p));
}

TEST(settings, filter_by_all_headers_at_once)
{
    const char *const one[] = {"one", NULL}, *const two[] = {"two", NULL};
    stg_match_setting match[] = {{.header = "X-A", .values = {one, 1}},
                                 {.header = "X-B", .values = {two, 1}}};
    stg_target_settings t = {.match = match, .match_count = 2};
    stg_parcel p = {.headers = SPAN("X-A: one\r\nX-B: two\r\n")};

    CHECK(stg_match_wants(&t, &p));
    p.headers = SPAN("X-A: one\r\n");
    CHECK(!stg_match_wants(&t, &p));
    t.match_count = 0;
    CHECK(stg_match_wants(&t, &p));
}

/* -- by hand --------------------------------------------------------------- */

static stg_settings *with_target(const char *name, const char *url)
{
    stg_settings *s = stg_settings_new();
    stg_target_settings *t = stg_settings_add_target(s);

    t->name = name;
    t->url = url;
    return s;
}

TEST(settings, are_complete_with_names_and_policies)
{
    stg_settings *s = with_target(NULL, "http://a.example/");
    stg_target_settings *t = stg_settings_add_target(s);

    t->name = "b";
    t->url = "http://b.example/";
    t->common = stg_settings_keep_common(s, t->common);
    t->common->policy_text = "broadcast attempts=7";
    t->common->attempt_timeout = 3 * STG_S;
    CHECK_INT(stg_settings_complete(s, NULL), STG_OK);
    CHECK_STR(s->targets[0].name, "a.example-80");
    CHECK_INT(s->targets[0].common->policy->attempts_max, 3);
    CHECK_INT(s->targets[1].common->policy->attempts_max, 7);
    CHECK_INT(s->targets[1].common->policy->attempt_timeout, 3 * STG_S);
    stg_settings_free(s);
}

/* A policy is large, and targets are many. */
TEST(settings, share_policies_that_say_the_same)
{
    stg_settings *s = with_target("a", "http://a.example/");
    stg_target_settings *t = stg_settings_add_target(s);

    t->name = "b";
    t->url = "http://b.example/";
    t->common = stg_settings_keep_common(s, t->common);
    t->common->policy_text = "broadcast";
    t = stg_settings_add_target(s);
    t->name = "c";
    t->url = "http://c.example/";
    t->common = stg_settings_keep_common(s, t->common);
    t->common->policy_text = "broadcast";
    CHECK_INT(stg_settings_complete(s, NULL), STG_OK);
    CHECK(s->targets[1].common->policy == s->targets[2].common->policy);
    CHECK(s->targets[0].common->policy != s->targets[1].common->policy);
    stg_settings_free(s);
}

/* What a target says of timeout and rate is in its policy. */
TEST(settings, have_a_policy_each_where_timeouts_or_rates_differ)
{
    stg_settings *s = with_target("a", "http://a.example/");
    static const struct {
        stg_ns timeout;
        uint32_t rate;
    } rows[] = {{0, 0}, {STG_S, 0}, {STG_S, 7000}, {0, 7000}, {0, 7000}};
    static const char *const names[] = {"b", "c", "d", "e", "f"};

    for (size_t i = 0; i < 5; i++) {
        stg_target_settings *t = stg_settings_add_target(s);

        t->name = names[i];
        t->url = "http://b.example/";
        t->common = stg_settings_keep_common(s, t->common);
        t->common->policy_text = "broadcast rate=50/s";
        t->common->attempt_timeout = rows[i].timeout;
        t->common->rate = rows[i].rate;
    }
    CHECK_INT(stg_settings_complete(s, NULL), STG_OK);
    for (size_t i = 1; i < 5; i++)
        CHECK_FROM(i, (s->targets[i].common->policy ==
                       s->targets[i + 1].common->policy) == (i == 4));
    CHECK_U64(s->targets[1].common->policy->rate, 50000);
    CHECK_U64(s->targets[2].common->policy->rate, 50000);
    CHECK_U64(s->targets[3].common->policy->rate, 7000);
    CHECK_U64(s->targets[5].common->policy->rate, 7000);
    stg_settings_free(s);
}

TEST(settings, are_refused_with_the_target_at_fault)
{
    stg_settings *s = with_target("a", "http://a.example/");
    stg_target_settings *t = stg_settings_add_target(s);
    stg_error err;

    t->name = "a";
    t->url = "http://b.example/";
    CHECK_INT(stg_settings_complete(s, &err), STG_INVALID);
    CHECK_STR(err.text,
              "target 2 (a): two targets have this name; give one of "
              "them another");
    stg_settings_free(s);
    s = with_target("a", NULL);
    CHECK_INT(stg_settings_complete(s, &err), STG_INVALID);
    CHECK_STR(err.text, "target 1 (a): it has no URL");
    stg_settings_free(s);
    s = with_target("a", "http://[::ffff:169.254.169.254]/latest");
    CHECK_INT(stg_settings_complete(s, &err), STG_INVALID);
    CHECK_STR(err.text,
              "target 1 (a): the hub may not connect to its address: a "
              "metadata address (169.254.169.254/32); expected another, or one "
              "that `egress.allow` has");
    stg_settings_free(s);
}

/* -- from a text, and compared --------------------------------------------- */

static stg_settings *load(const char *text)
{
    stg_diagnostics c = {.all = NULL};
    stg_settings *s = NULL;

    if (stg_settings_load_text(text, strlen(text), "hub.yaml", &s, &c) !=
        STG_OK)
        stg_diagnostics_print(&c, "hub.yaml", stderr);
    stg_diagnostics_free(&c);
    CHECK(s != NULL);
    return s;
}

static const char base[] =
    "policies: {p: broadcast attempts=5}\n"
    "defaults: {headers: {X-A: 1}, tags: {t: u}}\n"
    "targets:\n"
    "  - {name: a, url: 'http://127.0.0.1:1/', policy: p}\n"
    "  - {name: b, url: 'http://127.0.0.1:2/', headers: {x-a: 2, X-B: 3}}\n";

TEST(settings, are_read_from_a_text)
{
    stg_settings *s = load(base);
    const stg_target_settings *b = stg_settings_target(s, "b");

    CHECK_INT(s->target_count, 2);
    CHECK_INT(s->targets[0].common->policy->attempts_max, 5);
    CHECK_INT(s->targets[0].place.line, 4);
    CHECK_INT(s->targets[0].place.column, 12);
    CHECK_STR(s->listen.address, "127.0.0.1:8080");
    CHECK_INT(b->header_count, 2);
    CHECK_STR(b->headers[0].name, "x-a");
    CHECK_STR(b->headers[0].value, "2");
    CHECK_INT(b->tag_count, 1);
    CHECK(stg_settings_target(s, "c") == NULL);
    stg_settings_free(s);
}

static stg_target_settings *load_call(const char *json,
                                      const stg_settings *beside)
{
    stg_diagnostics c = {.all = NULL};
    stg_target_settings *t = NULL;

    CHECK_INT(stg_settings_load_target(json, strlen(json), beside, &t, &c),
              STG_OK);
    stg_diagnostics_free(&c);
    return t;
}

#define CALL(rest) "{\"name\": \"c\", \"url\": \"http://127.0.0.1:3/\"" rest "}"

/* Calls may add thousands of targets, each by itself. */
TEST(settings, share_much_with_targets_that_calls_add)
{
    stg_settings *s = load(base);
    stg_target_settings *plain = load_call(CALL(""), s),
                        *tagged =
                            load_call(CALL(", \"tags\": {\"t\": \"v\"}"), s),
                        *named = load_call(CALL(", \"policy\": \"p\""), s),
                        *own =
                            load_call(CALL(", \"policy\": \"broadcast\""), s);

    CHECK(plain->common == tagged->common);
    CHECK_STR(tagged->tags[0].value, "v");
    CHECK(plain->common != own->common);
    CHECK(named->common->policy == s->targets[0].common->policy);
    CHECK(plain->common->policy != s->targets[1].common->policy);
    CHECK(own->common->policy != plain->common->policy);
    stg_target_settings_free(own);
    stg_target_settings_free(named);
    stg_target_settings_free(tagged);
    stg_target_settings_free(plain);
    stg_settings_free(s);
}

/* What a target that a call adds would have of them is no mistake of the file. */
TEST(settings, may_have_defaults_that_are_half_a_token)
{
    stg_settings *s = load(
        "defaults: {oauth2: {token-url: "
        "'https://idp.example/token'}}\n"
        "targets:\n"
        "  - {name: a, url: 'https://a.example/', oauth2: "
        "{client-id: hub, client-secret: word}}\n");
    stg_target_settings *t =
        load_call(CALL(", \"oauth2\": {\"client-id\": \"other\", "
                       "\"client-secret\": \"word\"}"),
                  s);

    CHECK_STR(s->targets[0].common->token->client_id, "hub");
    CHECK_STR(t->common->token->client_id, "other");
    stg_target_settings_free(t);
    stg_settings_free(s);
}

/* Of thousands of targets most differ by name, URL and secret alone. */
TEST(settings, share_what_targets_have_in_common)
{
    stg_settings *s = load(
        "defaults: {in-flight: 3}\n"
        "targets:\n"
        "  - {name: a, url: 'http://127.0.0.1:1/'}\n"
        "  - {name: b, url: 'http://127.0.0.1:2/',"
        " headers: {X-A: b}, tags: {t: u}, paused: true}\n"
        "  - {name: c, url: 'http://127.0.0.1:3/',"
        " tls: {server-name: one}}\n"
        "  - {name: d, url: 'http://127.0.0.1:4/'}\n"
        "  - {name: e, url: 'http://127.0.0.1:5/',"
        " tls: {server-name: one}}\n"
        "  - {name: f, url: 'http://127.0.0.1:6/',"
        " tls: {server-name: two}}\n");
    const stg_target_settings *t = s->targets;

    CHECK(t[1].common == t[0].common && t[3].common == t[0].common);
    CHECK(t[4].common == t[2].common && t[2].common != t[0].common);
    CHECK(t[5].common != t[2].common && t[5].common != t[0].common);
    CHECK_INT(t[5].common->in_flight_max, 3);
    CHECK_STR(t[5].common->server_name, "two");
    CHECK(t[1].is_paused && !t[0].is_paused);
    stg_settings_free(s);
}

/* The one target of a line that is changed in some way. */
static bool is_same(const char *a, const char *b)
{
    char text[512];
    stg_settings *x, *y;
    bool same;

    snprintf(text, sizeof text, "targets: [{name: a, %s}]\n", a);
    x = load(text);
    snprintf(text, sizeof text, "# moved\ntargets: [{name: a, %s}]\n", b);
    y = load(text);
    same = stg_settings_same_target(&x->targets[0], &y->targets[0]);
    stg_settings_free(x);
    stg_settings_free(y);
    return same;
}

#define URL "url: 'http://127.0.0.1:1/'"

TEST(settings, tell_a_target_that_has_changed)
{
    CHECK(is_same(URL, URL));
    CHECK(is_same(URL ", shed-after: 10m", URL));
    CHECK(is_same(URL ", shed-after: 60s", URL ", shed-after: 1m"));
    CHECK(!is_same(URL ", shed-after: 5m", URL));
    CHECK(!is_same(URL, "url: 'http://127.0.0.1:2/'"));
    CHECK(!is_same(URL ", headers: {X-A: 1}", URL ", headers: {X-A: 2}"));
    CHECK(!is_same(URL ", tags: {a: b}", URL));
    CHECK(!is_same(URL ", match: {X-A: [1, 2]}", URL ", match: {X-A: [1]}"));
    CHECK(!is_same(URL ", paused: true", URL));
    CHECK(!is_same(URL ", policy: broadcast attempts=4", URL));
    CHECK(!is_same(URL ", timeouts: {attempt: 5s}", URL));
}

static void check_reload(const char *before, const char *after,
                         const char *expected)
{
    stg_settings *old = load(before), *next = load(after);
    stg_diagnostics c = {.all = NULL};

    stg_settings_check_reload(old, next, &c);
    CHECK_INT(c.mistakes, expected == NULL ? 0 : 1);
    if (expected != NULL) {
        char found[256];

        snprintf(found, sizeof found, "%u:%u: %s",
                 (unsigned)c.all[0].place.line, (unsigned)c.all[0].place.column,
                 c.all[0].text);
        CHECK_STR(found, expected);
    }
    stg_diagnostics_free(&c);
    stg_settings_free(old);
    stg_settings_free(next);
}

#define TARGETS "targets: [{name: a, " URL "}]\n"

TEST(settings, refuse_a_reload_of_what_needs_a_restart)
{
    check_reload(TARGETS, TARGETS "policies: {}\n", NULL);
    check_reload(TARGETS, "store: {quota: 8192MiB}\n" TARGETS, NULL);
    check_reload(TARGETS, "store: {quota: 64MiB}\n" TARGETS,
                 "1:16: `store.quota` has changed, and only a restart can do "
                 "that; expected it as it was, or a restart");
    check_reload("store: {quota: 64MiB}\n" TARGETS, TARGETS,
                 "0:0: `store.quota` has changed: it is gone, and only a "
                 "restart can do that; expected it as it was, or a restart");
    check_reload(TARGETS, "listen: {headers: [X-*]}\n" TARGETS, NULL);
}

#define FIXED                                                    \
    "source: 'kafka://k1:9092,k2:9092/orders,bills?group=hub'\n" \
    "kafka: {options: {client.id: till, linger.ms: '5'}}\n"      \
    "listen: {address: '127.0.0.1:0'}\n"                         \
    "store: {path: /tmp/hub.db, quota: 1GiB}\n"                  \
    "receipts: {copy: 'kafka:receipts'}\n"                       \
    "audit: /tmp/audit.log\n"                                    \
    "traces: {endpoint: 'http://127.0.0.1:1/v1', headers: {A: b}}\n" TARGETS

/* The copy shares nothing with what it was made of: that is freed here. */
TEST(settings, copy_what_only_a_restart_changes)
{
    stg_settings *from = load(FIXED), *same = load(FIXED),
                 *other = load(TARGETS), *fixed = stg_settings_copy_fixed(from);
    stg_diagnostics c = {.all = NULL};
    const stg_setting *s;

    stg_settings_free(from);
    CHECK(fixed != NULL);
    stg_settings_check_reload(fixed, other, &c);
    CHECK(c.mistakes > 7);
    stg_diagnostics_free(&c);
    stg_settings_use_fixed(other, fixed);
    for (size_t i = 0; (s = stg_setting_at(i)) != NULL; i++) {
        if (s->in != STG_IN_HUB || !s->is_fixed)
            continue;
        CHECK_FROM(i, stg_setting_equal(s, same, fixed));
        CHECK_FROM(i, stg_setting_equal(s, same, other));
        // A kind that compares by itself would have to copy by itself.
        CHECK_FROM(i, s->kind->equal == NULL);
        CHECK_FROM(i, s->count_at == 0 || s->kind->texts > 0);
    }
    CHECK(other->kafka.topics.at[2] == NULL);
    CHECK(other->traces.headers == fixed->traces.headers);
    stg_settings_free(same);
    stg_settings_free(other);
    stg_settings_free(fixed);
}

/* Two that are loaded from one text share no pointer, so that what is equal was
 * compared by its content; and a default is what its kind reads. */
TEST(settings, have_kinds_that_read_compare_and_describe_each_of_them)
{
    stg_settings *one = load(TARGETS), *other = load(TARGETS);
    const stg_setting *s;

    for (size_t i = 0; (s = stg_setting_at(i)) != NULL; i++) {
        bool is_target = s->in == STG_IN_TARGET;
        char expected[STG_EXPECTED_MAX];
        stg_value_flaw flaw;

        CHECK_FROM(i, (s->kind->read == NULL) != (s->kind->load == NULL));
        CHECK_FROM(i, *stg_setting_expected(s, expected) != '\0');
        if (s->in == STG_IN_RECEIVER || s->in == STG_IN_INBOUND)
            continue;
        CHECK_FROM(
            i, stg_setting_equal(
                   s, is_target ? stg_setting_base(s, one->targets) : one,
                   is_target ? stg_setting_base(s, other->targets) : other));
        if (stg_setting_is_scalar(s) && s->standard != NULL)
            CHECK_FROM(
                i, stg_value_read(
                       s, s->standard,
                       is_target ? stg_setting_base(s, &one->defaults) : one,
                       &flaw));
    }
    stg_settings_free(one);
    stg_settings_free(other);
}

static void override(stg_settings *s, const char *path, const char *text)
{
    const stg_setting *row = stg_setting_find(STG_IN_HUB, path, strlen(path));
    stg_error err = {.text = ""};

    (void)stg_settings_override(s, row, text, &err);
    CHECK_STR(err.text, "");
}

/* Loads a file of this text with the options, which may be NULL. */
static stg_settings *load_over(const char *text, const stg_settings *options,
                               stg_diagnostics *c)
{
    char path[] = "/tmp/stagger-settings-XXXXXX";
    int fd = mkstemp(path);
    stg_settings *s = NULL;

    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    CHECK(close(fd) == 0);
    *c = (stg_diagnostics){.all = NULL};
    (void)stg_settings_load_over(path, options, &s, c);
    CHECK(unlink(path) == 0);
    return s;
}

/* Values of the command's options go before those of the file, after a reload, too:
 * each set of settings hands them on to the next. */
TEST(settings, keep_the_commands_options_over_a_reload)
{
    stg_settings *options = stg_settings_new(), *old, *next;
    const stg_setting *row = stg_setting_find(STG_IN_HUB, "drain", 5);
    stg_diagnostics c;
    stg_error err;

    CHECK(!stg_settings_override(options, row, "5", &err));
    CHECK_STR(err.text,
              "expected a time from 0 to 1d, like 10s; did you mean "
              "5s?");
    override(options, "drain", "4s");
    override(options, "drain", "5s"); // the last one counts
    old = load_over("drain: 1s\n" TARGETS, options, &c);
    stg_settings_free(options);
    stg_diagnostics_free(&c);
    CHECK(old != NULL && old->drain == 5 * STG_S);
    next = load_over("drain: 2s\n" TARGETS, old, &c);
    stg_settings_free(old);
    stg_diagnostics_free(&c);
    CHECK(next != NULL && next->drain == 5 * STG_S);
    stg_settings_free(next);
}

/* Settings that are checked beside each other are those in force. */
TEST(settings, are_checked_with_the_commands_options)
{
    static const char self[] =
        "listen: {address: '127.0.0.1:8080'}\n"
        "targets: [{url: 'http://127.0.0.1:9090/'}]\n";
    stg_settings *options = stg_settings_new(), *s;
    stg_diagnostics c;

    s = load_over(self, NULL, &c);
    CHECK_INT(c.mistakes, 0);
    stg_settings_free(s);
    stg_diagnostics_free(&c);
    override(options, "listen.address", "127.0.0.1:9090");
    CHECK(load_over(self, options, &c) == NULL);
    CHECK_INT(c.mistakes, 1);
    CHECK(strstr(c.all[0].text, "the hub itself listens there") != NULL);
    stg_diagnostics_free(&c);

    // The file's own target is where the file says that the hub listens.
    override(options, "listen.address", "127.0.0.1:7070");
    s = load_over(
        "listen: {address: '127.0.0.1:9090'}\n"
        "targets: [{url: 'http://127.0.0.1:9090/'}]\n",
        options, &c);
    CHECK_INT(c.mistakes, 0);
    stg_settings_free(s);
    stg_diagnostics_free(&c);

    // Others may reach it, and nobody has tokens.
    override(options, "listen.address", "0.0.0.0:9090");
    CHECK(load_over(TARGETS, options, &c) == NULL);
    stg_diagnostics_free(&c);
    stg_settings_free(options);
}

TEST(settings, say_the_same_thing_once_and_no_more_than_so_many)
{
    stg_diagnostics c = {.all = NULL};

    for (unsigned i = 0; i < STG_DIAGNOSTICS_MAX + 5; i++) {
        stg_complain(&c, (stg_file_place){i + 1, 1}, "a\nb");
        stg_complain(&c, (stg_file_place){i + 1, 1}, "a\nb");
    }
    CHECK_INT(c.count, STG_DIAGNOSTICS_MAX);
    CHECK_STR(c.all[0].text, "a?b");
    CHECK(c.cut > 0);
    stg_diagnostics_free(&c);
}

/* Docker and Kubernetes hand them out so. */
TEST(settings, take_secrets_that_a_group_of_the_process_may_read)
{
    static const struct {
        mode_t mode;
        bool is_ours, is_private;
    } cases[] = {
        {0600, false, true}, {0400, false, true},  {0440, true, true},
        {0640, true, true},  {0440, false, false}, {0460, true, false},
        {0450, true, false}, {0644, true, false},  {0601, true, false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stat s = {.st_mode = S_IFREG | cases[i].mode,
                         .st_gid = cases[i].is_ours ? getegid() : (gid_t)-2};

        CHECK_INT(stg_file_is_private(&s), cases[i].is_private);
    }
}

/* -- signatures ------------------------------------------------------------ */

TEST(settings, share_the_signer_of_the_defaults)
{
    static const stg_sign_secret secret = {.value = "24 bytes are just enough"};
    stg_settings *s = stg_settings_new();
    const stg_target_settings *t;

    s->defaults.common->sign.scheme = STG_SIGN_GITHUB;
    s->defaults.secrets = &secret;
    s->defaults.secret_count = 1;
    stg_settings_add_target(s)->url = "http://a.example/";
    stg_settings_add_target(s)->url = "http://b.example/";
    stg_settings_add_target(s)->url = "http://c.example/";
    for (size_t i = 1; i < 3; i++)
        s->targets[i].common =
            stg_settings_keep_common(s, s->targets[i].common);
    s->targets[1].common->sign.scheme = STG_SIGN_STRIPE;
    s->targets[2].common->sign.scheme = STG_SIGN_NONE;
    CHECK_INT(stg_settings_complete(s, NULL), STG_OK);
    t = s->targets;
    CHECK(t[0].signer != NULL && t[0].signer == s->defaults.signer);
    CHECK(t[1].signer != NULL && t[1].signer != t[0].signer);
    CHECK(t[2].signer == NULL);
    stg_settings_free(s);
}

TEST(settings, refuse_signatures_without_a_secret)
{
    stg_settings *s = stg_settings_new();
    stg_target_settings *t = stg_settings_add_target(s);
    static const stg_sign_secret secret = {.value = "short"};
    stg_error err;

    t->url = "http://a.example/";
    t->common->sign.scheme = STG_SIGN_GITHUB;
    CHECK_INT(stg_settings_complete(s, &err), STG_INVALID);
    CHECK(strstr(err.text, "0 secrets to sign with; expected 1 to 1") != NULL);
    t->secrets = &secret;
    t->secret_count = 1;
    CHECK_INT(stg_settings_complete(s, &err), STG_INVALID);
    CHECK(strstr(err.text, "the secret has 5 bytes") != NULL);
    t->common->sign.scheme = STG_SIGN_CUSTOM;
    CHECK_INT(stg_settings_complete(s, &err), STG_INVALID);
    CHECK(strstr(err.text, "the custom scheme needs one") != NULL);
    stg_settings_free(s);
}
