#include "tests/harness.h"

#include <stdio.h>

#include "sim/drain.h"
#include "tests/sim/memory.h"

enum { CASES_MAX = 6 };

/* A report, and what it points to. */
typedef struct scene {
    stg_drain_question question;
    stg_drain_verdict verdicts[CASES_MAX];
    stg_drain_case cases[CASES_MAX];
    stg_drain_report report;
    char names[CASES_MAX][16];
} scene;

static void begin(scene *s)
{
    stg_error err;

    *s = (scene){.question = stg_drain_question_default()};
    s->question.clients = 10000;
    CHECK(stg_resource_parse(&s->question.resource, "workers=50 service=100ms",
                             &err) == STG_OK);
    s->report = (stg_drain_report){
        .question = &s->question, .cases = s->cases, .tried = 200, .reps = 4};
}

/* One of 20 runs that has all of its clients done. */
static void add(scene *s, double done_s, double calls, stg_ns start,
                stg_drain_difference more)
{
    size_t i = s->report.count++;
    stg_drain_verdict *v = &s->verdicts[i];

    *v = (stg_drain_verdict){.runs = 20, .calls = calls, .peak_ms100 = 500};
    for (size_t k = 0; k < STG_DRAIN_SCENARIOS; k++) {
        double share = stg_drain_clients(&s->question, k) / 10000.0;

        v->done_ms[k].mean = 1000 * done_s * share;
        v->each[k] = calls;
    }
    snprintf(s->names[i], sizeof s->names[i], "policy-%c", (char)('a' + i));
    s->cases[i] = (stg_drain_case){
        .name = s->names[i], .start = start, .verdict = v, .more = more};
}

static void miss(scene *s, size_t i, double share, uint32_t runs)
{
    s->verdicts[i].missed = share;
    s->verdicts[i].unfinished = runs;
}

/* The text of one at a time. */
static const char *say(const scene *s)
{
    static char text[8192];
    stg_memory memory = test_memory_of(&(test_memory){0});
    stg_text_buffer p = stg_text_buffer_on(&memory);

    stg_drain_say(&s->report, &p);
    CHECK(!p.is_short && p.length < sizeof text);
    memcpy(text, p.text, p.length + 1);
    stg_text_buffer_free(&p);
    return text;
}

static const stg_drain_difference none;
static const stg_drain_difference later = {.time = {.mean = 0.5, .se = 0.01},
                                           .calls = {.mean = 1, .se = 0.01}};
static const stg_drain_difference cheaper = {.time = {.mean = 0.5, .se = 0.01},
                                             .calls = {.mean = -1, .se = 0.01}};
static const stg_drain_difference chance = {.time = {.mean = 0.5, .se = 0.2},
                                            .calls = {.mean = 1, .se = 0.4}};

TEST(drain_words, say_who_succeeds_how_soon_and_what_it_costs)
{
    scene s;

    begin(&s);
    add(&s, 22, 3, 20 * STG_S, none);
    add(&s, 30, 4, 0, later);
    add(&s, 31, 2, 20 * STG_S, cheaper);
    add(&s, 23, 3.1, 20 * STG_S, chance);
    add(&s, 60, 40, 0, later);
    s.cases[4].is_plain = true;
    miss(&s, 4, 0.25, 8);
    s.verdicts[4].cut = 8;
    s.cases[4].more.missed = (stg_estimate){0.25, 0.01};
    CHECK_STR(
        say(&s),
        "Each client succeeds, in all 20 runs (5,000 to 20,000 clients).\n"
        "Done: 10,000 clients after 22 s (at best 20 s); 5,000 clients after "
        "11 s (at best 10 s); 20,000 clients after 44 s (at best 40 s). Means "
        "of 4 runs each.\n"
        "Cost: 3 calls for each success, 3 with 20,000 clients; at most 500 "
        "calls in 100 ms, the mean of the runs as asked.\n"
        "Spread the starts over 20 s. The best of those that begin at once, "
        "policy-b: 30 s and 4 calls for each success with 10,000 clients, "
        "1 min and 4 calls for each success with 20,000 clients.\n"
        "As good, but for chance: policy-d.\n"
        "Over all runs fewer calls, but later, with policy-c: 31 s and 2 calls "
        "for each success with 10,000 clients, 1.03 min and 2 calls for each "
        "success with 20,000 clients.\n"
        "With policy-e: 25 % of all clients do not succeed, 8 of 20 runs being "
        "ended after 64 calls a client or long after the others.\n");
}

TEST(drain_words, say_nothing_of_starts_that_make_no_difference)
{
    scene s;

    begin(&s);
    add(&s, 22, 3, 0, none);
    add(&s, 23, 3, 20 * STG_S, chance);
    CHECK(strstr(say(&s), "Begin at once") == NULL);
    CHECK(strstr(say(&s), "spread") == NULL);
    s.cases[1].more = later;
    CHECK(strstr(say(&s),
                 "Begin at once. The best with a spread of the "
                 "starts, policy-b: 23 s") != NULL);
}

TEST(drain_words, say_what_share_does_not_succeed)
{
    scene s;

    begin(&s);
    s.question.patience = 10 * STG_S;
    add(&s, 12, 3, 0, none);
    miss(&s, 0, 0.42, 20);
    CHECK(strstr(say(&s),
                 "Not each client succeeds: with the best of 200 candidates "
                 "42 % of the clients do not, and in 20 of 20 runs some do "
                 "not.\nStopped: 10,000 clients after 12 s") != NULL);
    CHECK(strstr(say(&s), "Each client succeeds") == NULL);
}

/* -- any report ------------------------------------------------------------- */

static stg_estimate any(stg_rng *rng)
{
    return (stg_estimate){((double)stg_rng_upto(rng, 200) - 100) / 100,
                          (double)stg_rng_upto(rng, 50) / 100};
}

static void begin_any(scene *s, uint64_t seed)
{
    stg_rng rng = stg_rng_seed(seed);

    begin(s);
    while (s->report.count < 2 || stg_rng_upto(&rng, 3) > 0) {
        size_t i = s->report.count;
        stg_drain_difference more = {any(&rng), any(&rng), any(&rng)};
        stg_ns start = stg_rng_upto(&rng, 1) * 20 * STG_S;

        if (stg_rng_upto(&rng, 1) > 0)
            more.missed = (stg_estimate){0};
        add(s, 20 + (double)stg_rng_upto(&rng, 50), 3, start,
            i == 0 ? none : more);
        s->cases[i].is_plain = i > 0 && stg_rng_upto(&rng, 3) == 0;
        if (stg_rng_upto(&rng, 3) == 0)
            miss(s, i, 0.1, 2);
        if (s->report.count == CASES_MAX)
            break;
    }
}

/* Whether a name stands in a line that begins so. */
static bool has(const char *text, const char *begin, const char *name)
{
    for (const char *at = text; at != NULL && *at != '\0';) {
        const char *end = strchr(at, '\n');
        const char *found = strstr(at, name);

        if (strncmp(at, begin, strlen(begin)) == 0 && found != NULL &&
            found < end)
            return true;
        at = end + 1;
    }
    return false;
}

static int sign(stg_estimate e)
{
    return e.mean > 3 * e.se ? 1 : e.mean < -3 * e.se ? -1 : 0;
}

/* Each sentence that names another candidate, against the numbers. */
static void check_other(const char *text, const stg_drain_case *c,
                        uint64_t seed)
{
    int missed = sign(c->more.missed), time = sign(c->more.time),
        calls = sign(c->more.calls);
    int order = missed != 0 ? missed : time != 0 ? time : calls;
    bool is_choice = missed <= 0 && (time < 0 || calls < 0);

    CHECK_FROM(seed, has(text, "As good, but for chance: ", c->name) ==
                         (missed == 0 && time == 0 && calls == 0));
    CHECK_FROM(seed, has(text, "Over all runs ", c->name) == is_choice);
    CHECK_FROM(seed, has(text, "Over all runs fewer calls", c->name) ==
                         (is_choice && calls < 0));
    CHECK_FROM(seed,
               !has(text, "Over all runs fewer calls, but later", c->name) ||
                   time > 0);
    CHECK_FROM(seed,
               !has(text, "Over all runs fewer calls, and sooner", c->name) ||
                   time < 0);
    CHECK_FROM(seed,
               !has(text, "Over all runs sooner, by more calls", c->name) ||
                   calls > 0);
    CHECK_FROM(seed, has(text, "With ", c->name) ==
                         (c->is_plain && order > 0 && !is_choice));
    if (has(text, "Spread the starts", c->name))
        CHECK_FROM(seed, order > 0 && c->start == 0);
    if (has(text, "Begin at once", c->name))
        CHECK_FROM(seed, order > 0 && c->start > 0);
    CHECK_FROM(seed, !has(text, "Each client", c->name) &&
                         !has(text, "Done", c->name));
}

TEST(drain_words, make_no_claim_that_the_numbers_do_not_support)
{
    for (uint64_t seed = 0; seed < seeds(2000); seed++) {
        scene s;
        const char *text;
        bool is_whole;

        begin_any(&s, seed);
        text = say(&s);
        is_whole = s.verdicts[0].unfinished == 0;
        CHECK_FROM(seed, is_whole == (strstr(text,
                                             "Each client succeeds, in "
                                             "all") != NULL));
        CHECK_FROM(seed, is_whole == (strstr(text, "Not each client") == NULL));
        CHECK_FROM(seed, (s.cases[0].start > 0) ==
                             (strstr(text, "Spread the starts") != NULL));
        for (size_t i = 1; i < s.report.count; i++)
            check_other(text, &s.cases[i], seed);
    }
}
