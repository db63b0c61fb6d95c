#include "metrics/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stagger/policy.h>

#include "tests/harness.h"

/* The page's text, until the next one. */
static const char *taken(stg_exposition *p)
{
    static char *text;
    size_t size;

    free(text);
    stg_page_sample(p, "", NULL, 0, 0);
    text = stg_page_take(p, &size);
    CHECK(text != NULL);
    text[size - strlen("family 0\n")] = '\0';
    return text;
}

/* -- the format ------------------------------------------------------------ */

TEST(metrics, have_a_help_and_a_type_a_family)
{
    stg_exposition p = {.family = NULL};
    stg_label labels[] = {{"target", "a"}, {"state", "idle"}};

    stg_page_family(&p, "family", "gauge", "What it is.");
    stg_page_sample(&p, "", NULL, 0, 42);
    stg_page_sample(&p, "", labels, 2, UINT64_MAX);
    CHECK_TRACE(taken(&p),
                "# HELP family What it is.\n"
                "# TYPE family gauge\n"
                "family 42\n"
                "family{target=\"a\",state=\"idle\"} "
                "18446744073709551615\n");
}

TEST(metrics, escape_what_would_end_a_value_or_a_line)
{
    stg_exposition p = {.family = NULL};
    stg_label label = {"x", "a\"b\\c\nd\xc3\xa9"};

    stg_page_family(&p, "family", "gauge", "One\ntwo \\ \"three\".");
    stg_page_sample(&p, "", &label, 1, 1);
    CHECK_TRACE(taken(&p),
                "# HELP family One\\ntwo \\\\ \"three\".\n"
                "# TYPE family gauge\n"
                "family{x=\"a\\\"b\\\\c\\nd\xc3\xa9\"} 1\n");
}

TEST(metrics, write_times_in_seconds_exactly)
{
    static const struct {
        stg_ns ns;
        const char *text;
    } all[] = {{0, "0"},
               {1, "0.000000001"},
               {1500 * STG_MS, "1.5"},
               {STG_S, "1"},
               {100 * STG_S + 10, "100.00000001"},
               {STG_NEVER - 1, "18446744073.709551614"},
               {STG_NEVER, "+Inf"}};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        stg_exposition p = {.family = NULL};
        char expected[128];

        (void)snprintf(expected, sizeof expected,
                       "# HELP family h\n# TYPE family gauge\nfamily %s\n",
                       all[i].text);
        stg_page_family(&p, "family", "gauge", "h");
        stg_page_seconds(&p, "", NULL, 0, all[i].ns);
        CHECK_TRACE(taken(&p), expected);
    }
}

TEST(metrics, write_thousandths_with_their_point)
{
    stg_exposition p = {.family = NULL};

    stg_page_family(&p, "family", "gauge", "h");
    stg_page_thousandths(&p, NULL, 0, 1500);
    stg_page_thousandths(&p, NULL, 0, 7);
    stg_page_thousandths(&p, NULL, 0, 3000);
    CHECK_TRACE(taken(&p),
                "# HELP family h\n# TYPE family gauge\n"
                "family 1.5\nfamily 0.007\nfamily 3\n");
}

TEST(metrics, cumulate_the_buckets_of_a_histogram)
{
    stg_exposition p = {.family = NULL};
    stg_histogram h = {.sum = 0};
    stg_label label = {"target", "a"};
    const char *text;

    stg_histogram_add(&h, STG_MS);
    stg_histogram_add(&h, STG_MS);
    stg_histogram_add(&h, 2 * STG_S);
    stg_histogram_add(&h, STG_DAY);
    stg_page_family(&p, "family", "histogram", "h");
    stg_page_histogram(&p, &label, 1, &h);
    text = taken(&p);
    CHECK(strstr(text, "family_bucket{target=\"a\",le=\"0.0005\"} 0\n"));
    CHECK(strstr(text, "family_bucket{target=\"a\",le=\"0.001\"} 2\n"));
    CHECK(strstr(text, "family_bucket{target=\"a\",le=\"1\"} 2\n"));
    CHECK(strstr(text, "family_bucket{target=\"a\",le=\"2.5\"} 3\n"));
    CHECK(strstr(text, "family_bucket{target=\"a\",le=\"3600\"} 3\n"));
    CHECK(strstr(text,
                 "family_bucket{target=\"a\",le=\"+Inf\"} 4\n"
                 "family_sum{target=\"a\"} 86402.002\n"
                 "family_count{target=\"a\"} 4\n"));
}

/* -- causes ---------------------------------------------------------------- */

static void list(void *ctx, const char *cause, stg_category category,
                 uint64_t count)
{
    char *text = ctx;

    (void)snprintf(text + strlen(text), 512 - strlen(text), "%s/%s %u\n", cause,
                   stg_category_name(category), (unsigned)count);
}

static const char *listed(const stg_causes *c)
{
    static char text[512];

    text[0] = '\0';
    stg_causes_each(c, list, text);
    return text;
}

static void add(stg_causes *c, stg_outcome o, uint64_t count)
{
    stg_causes_add(c, &o, count);
}

TEST(causes, are_named_as_records_name_them)
{
    stg_causes c = {.faults = {0}};

    add(&c, stg_ok(), 5);
    add(&c, stg_answered(204), 1);
    add(&c, stg_failed(STG_FAULT_REFUSED), 2);
    add(&c, stg_answered(503), 3);
    add(&c, stg_answered(429), 4);
    add(&c, stg_answered(503), 1);
    CHECK_TRACE(listed(&c),
                "OK/none 6\n"
                "CONNECTION_REFUSED/connect 2\n"
                "HTTP_503/server 4\n"
                "HTTP_429/overload 4\n");
    CHECK_U64(stg_causes_sum(&c), 16);
}

/* Whatever a leaf answers. */
TEST(causes, are_bounded)
{
    stg_causes c = {.faults = {0}};

    for (int status = 300; status < 600; status++)
        add(&c, stg_answered(status), 1);
    CHECK_U64(stg_causes_sum(&c), 300);
    CHECK_TRACE(listed(&c),
                "HTTP_5XX/server 100\n"
                "HTTP_3XX/request 92\n"
                "HTTP_4XX/request 97\n"
                "HTTP_4XX/overload 3\n"
                "HTTP_300/request 1\nHTTP_301/request 1\n"
                "HTTP_302/request 1\nHTTP_303/request 1\n"
                "HTTP_304/request 1\nHTTP_305/request 1\n"
                "HTTP_306/request 1\nHTTP_307/request 1\n");
}

TEST(causes, add_up)
{
    stg_causes a = {.faults = {0}}, b = {.faults = {0}};

    add(&a, stg_answered(500), 1);
    for (int status = 500; status < 510; status++)
        add(&b, stg_answered(status), 1);
    add(&b, stg_failed(STG_FAULT_TIMEOUT), 1);
    stg_causes_merge(&a, &b);
    CHECK_U64(stg_causes_sum(&a), 12);
    CHECK(strstr(listed(&a), "HTTP_500/server 2\n"));
    CHECK(strstr(listed(&a), "HTTP_5XX/server 2\n"));
    CHECK(strstr(listed(&a), "TIMEOUT/server 1\n"));
}

TEST(causes, take_a_fault_that_is_none)
{
    stg_causes c = {.faults = {0}};

    add(&c, (stg_outcome){.fault = (stg_fault)1000}, 1);
    CHECK_TRACE(listed(&c), "ERROR/other 1\n");
}

/* -- counters -------------------------------------------------------------- */

TEST(counters, tell_decisions_apart)
{
    stg_counters c = {.started = 0};
    stg_failure failure = {.outcome = stg_answered(500),
                           .why = STG_WHY_ATTEMPTS};

    stg_counters_decision(&c, &(stg_decision){.next = STG_DONE}, true);
    stg_counters_decision(
        &c, &(stg_decision){.next = STG_WAIT, .why = STG_WHY_BACKOFF}, false);
    stg_counters_decision(
        &c, &(stg_decision){.next = STG_WAIT, .why = STG_WHY_CIRCUIT_OPEN},
        true);
    // It is no dead letter before its row is durable.
    stg_counters_decision(
        &c, &(stg_decision){.next = STG_GIVE_UP, .why = STG_WHY_ATTEMPTS},
        false);
    CHECK_U64(c.delivered, 1);
    CHECK_U64(c.parked[STG_WHY_BACKOFF], 1);
    CHECK_U64(c.parked[STG_WHY_CIRCUIT_OPEN], 0);
    CHECK_U64(c.put_back, 1);
    CHECK_U64(c.dead[STG_WHY_ATTEMPTS], 0);
    stg_counters_dead(&c, &failure);
    CHECK_U64(c.dead[STG_WHY_ATTEMPTS], 1);
    CHECK_U64(stg_causes_sum(&c.letters), 1);
}

/* -- the page -------------------------------------------------------------- */

static const char *printed(const stg_snapshot *p)
{
    static char text[64 * 1024];
    stg_process_view process = {.files_max = STG_UNLIMITED};
    stg_exposition page = {.family = NULL};
    size_t size;
    char *bytes;

    stg_snapshot_print(p, &process, &page);
    bytes = stg_page_take(&page, &size);
    CHECK(bytes != NULL && size < sizeof text);
    memcpy(text, bytes, size);
    text[size] = '\0';
    free(bytes);
    return text;
}

static stg_snapshot_row row_of(const char *name)
{
    stg_snapshot_row row = {.targets = 1, .states = {[STG_LANE_LIVE] = 1}};

    (void)snprintf(row.name, sizeof row.name, "%s", name);
    row.counters.started = 3;
    row.counters.delivered = 2;
    row.counters.parked[STG_WHY_SERVER_DELAY] = 1;
    stg_counters_shed(&row.counters,
                      &(stg_change){.added = 3, .reason = STG_SHED_PAUSED});
    stg_counters_shed(&row.counters,
                      &(stg_change){.added = 1, .is_expired = true});
    add(&row.counters.letters, stg_failed(STG_FAULT_DNS), 5);
    row.lane = (stg_lane_view){.routed = 12,
                               .delivered = 2,
                               .dead = 9,
                               .parked = 1,
                               .limit = 8,
                               .budget_left = UINT64_MAX};
    return row;
}

TEST(metrics, tell_of_each_target)
{
    stg_snapshot_row row = row_of("shop");
    stg_snapshot p = {.rows = &row, .count = 1};
    const char *text = printed(&p);

#define HAS(line) CHECK(strstr(text, line "\n") != NULL)
    HAS("stagger_attempts_started_total{target=\"shop\"} 3");
    HAS("stagger_deliveries_total{target=\"shop\",end=\"delivered\"} 2");
    HAS("stagger_deliveries_total{target=\"shop\",end=\"dead\"} 9");
    HAS("stagger_decisions_total{target=\"shop\",decision=\"parked\","
        "reason=\"server-delay\"} 1");
    HAS("stagger_dead_letters_total{target=\"shop\",cause=\"DNS_FAILURE\","
        "category=\"A\"} 5");
    HAS("stagger_dead_letters_total{target=\"shop\",cause=\"PAUSED\","
        "category=\"none\"} 3");
    HAS("stagger_dead_letters_total{target=\"shop\",cause=\"EXPIRED\","
        "category=\"none\"} 1");
    HAS("stagger_decisions_total{target=\"shop\",decision=\"dead\","
        "reason=\"retention\"} 3");
    HAS("stagger_lane_deliveries{target=\"shop\",state=\"routed\"} 12");
    HAS("stagger_lane_deliveries{target=\"shop\",state=\"parked\"} 1");
    HAS("stagger_lane_state{target=\"shop\",state=\"live\"} 1");
    CHECK(strstr(text, "state=\"throttled\"") == NULL);
    CHECK(strstr(text, "stagger_budget_left_retries{") == NULL);
}

TEST(metrics, add_up_the_others)
{
    stg_snapshot_row a = row_of("a"), b = row_of("b");
    stg_snapshot_row row = {.name = STG_OTHER_TARGETS};
    stg_snapshot p = {.rows = &row, .count = 1, .has_others = true};
    const char *text;

    a.lag_time = 5 * STG_S;
    b.lag_time = 3 * STG_S;
    a.lane.lag = b.lane.lag = 10;
    stg_snapshot_add(&row, &a, &a.counters);
    stg_snapshot_add(&row, &b, NULL);
    text = printed(&p);
    HAS("stagger_attempts_started_total{target=\"(other)\"} 3");
    HAS("stagger_lane_deliveries{target=\"(other)\",state=\"routed\"} 24");
    HAS("stagger_lane_state{target=\"(other)\",state=\"live\"} 2");
    HAS("stagger_lane_attempts_limit{target=\"(other)\"} 16");
    HAS("stagger_lag_messages{target=\"(other)\"} 20");
    HAS("stagger_lag_seconds{target=\"(other)\"} 5");
    CHECK(strstr(text, "stagger_budget_left_retries{") == NULL);
}

TEST(metrics, tell_what_is_left_of_a_budget_that_is_there)
{
    stg_snapshot_row row = row_of("shop");
    stg_snapshot p = {.rows = &row, .count = 1};
    const char *text;

    row.lane.budget_left = 2500;
    p.flow.budget_left = UINT64_MAX;
    text = printed(&p);
    HAS("stagger_budget_left_retries{target=\"shop\"} 2.5");
    CHECK(strstr(text, "stagger_shared_budget_left_retries") == NULL);
    p.flow.budget_left = 7;
    text = printed(&p);
    HAS("stagger_shared_budget_left_retries 0.007");
}

/* A reload gave the target another endpoint, which counts from 0. */
TEST(counters, go_on_where_others_begin_anew)
{
    stg_counters c = {.started = 0};

    stg_counters_note(&c, 1, 10);
    stg_counters_note(&c, 2, 12);
    stg_counters_note(&c, 3, 5);
    stg_counters_note(&c, 3, 6);
    CHECK_U64(c.connects, 18);
    CHECK_U64(c.budget_refused, 3);
}

/* Each family once, with all of its samples behind its type. */
TEST(metrics, have_each_family_in_one_piece)
{
    stg_snapshot_row rows[] = {row_of("a"), row_of("b")};
    stg_snapshot p = {.rows = rows, .count = 2, .has_ingress = true};
    const char *text = printed(&p), *at = text;
    int families = 0;

    while ((at = strstr(at, "# TYPE ")) != NULL) {
        char name[128], type[160];

        CHECK(sscanf(at, "# TYPE %127s", name) == 1);
        (void)snprintf(type, sizeof type, "# TYPE %s ", name);
        CHECK_STR(strstr(text, type), at);
        CHECK(strstr(at + 1, type) == NULL);
        families++;
        at++;
    }
    CHECK(families > 40);
}
