/* The fold of the log, in virtual time: lines that are admitted and folds that
 * are written are kept with their instants, and events are counted apart. */
#include "host/log_fold.h"

#include <stdio.h>
#include <stdlib.h>

#include <stagger/rng.h>

#include "tests/harness.h"

enum { LINES_MAX = 20000 };

typedef struct line {
    stg_ns at;
    size_t kind; /* a number of the test's own */
} line;

typedef struct world {
    stg_log_fold *fold;
    stg_ns now;
    bool is_full;  /* folds cannot be written */
    uint64_t told; /* events that lines and folds stand for */
    uint64_t folds, targets;
    stg_log_level level;
    char text[512]; /* the last fold, as its fields say */
    line *lines;
    size_t count;
} world;

static void note_line(world *w, size_t kind)
{
    CHECK(w->count < LINES_MAX);
    w->lines[w->count++] = (line){w->now, kind};
}

static void print_field(char *text, size_t room, const stg_field *f)
{
    size_t size = strlen(text);

    if (f->kind == STG_FIELD_TEXT)
        snprintf(text + size, room - size, " %s=%.*s", f->name,
                 (int)f->text.size, f->text.at);
    else
        snprintf(text + size, room - size, " %s=%ju", f->name,
                 (uintmax_t)f->number);
}

static bool write_fold(void *ctx, const stg_log_folded *f, stg_log_now now)
{
    world *w = ctx;
    size_t kind = 0;

    CHECK_U64(now.now, w->now);
    if (w->is_full)
        return false;
    w->folds++;
    w->level = f->level;
    snprintf(w->text, sizeof w->text, "%s", f->event);
    for (size_t i = 0; i < f->count; i++) {
        const stg_field *one = &f->fields[i];

        print_field(w->text, sizeof w->text, one);
        if (strcmp(one->name, "folded") == 0)
            w->told += one->number;
        if (strcmp(one->name, "targets") == 0)
            w->targets = one->number;
        if (strcmp(one->name, "cause") == 0)
            sscanf(one->text.at, "C%zu", &kind);
    }
    note_line(w, kind);
    return true;
}

static void begin(world *w)
{
    const stg_hash_seed seed = {{1, 2}};

    memset(w, 0, sizeof *w);
    w->lines = calloc(LINES_MAX, sizeof *w->lines);
    w->fold = stg_log_fold_new(&seed, write_fold, w);
    CHECK(w->lines != NULL && w->fold != NULL);
}

static void end(world *w)
{
    stg_log_fold_free(w->fold);
    free(w->lines);
}

static stg_log_now now_of(const world *w)
{
    return (stg_log_now){w->now, 1772366400250 * STG_MS + w->now};
}

/* An event of a target with a cause, which stands for `events`. */
static bool fail(world *w, size_t cause, size_t target, uint64_t events)
{
    char name[24], why[24];
    stg_field fields[2];
    stg_log_fact fact;

    snprintf(name, sizeof name, "t%zu", target);
    snprintf(why, sizeof why, "C%zu", cause);
    fields[0] = stg_field_text("target", name);
    fields[1] = stg_field_text("cause", why);
    fact = stg_log_fact_of(STG_LOG_WARN, "attempt-failed", fields, 2);
    fact.events = events;
    if (!stg_log_fold_admit(w->fold, &fact, now_of(w)))
        return false;
    w->told += events;
    note_line(w, cause);
    return true;
}

static void fail_all(world *w, size_t targets)
{
    for (size_t i = 0; i < targets; i++)
        (void)fail(w, 1, i, 1);
}

/* No second has more than ten lines of a kind, wherever it begins. */
static void check_pace(const world *w, uint64_t seed, size_t kinds)
{
    for (size_t kind = 0; kind < kinds; kind++) {
        stg_ns last[10];
        size_t count = 0;

        for (size_t i = 0; i < w->count; i++) {
            if (w->lines[i].kind != kind)
                continue;
            if (count >= 10)
                CHECK_FROM(seed, w->lines[i].at - last[count % 10] >= STG_S);
            last[count++ % 10] = w->lines[i].at;
        }
    }
}

TEST(log_fold, tells_an_outage_of_many_targets_in_ten_lines)
{
    world w;

    begin(&w);
    fail_all(&w, 5000);
    CHECK_U64(w.count, 9);
    CHECK_U64(stg_log_fold_tick(w.fold, now_of(&w)), STG_S);
    w.now = STG_S - 1;
    CHECK_U64(stg_log_fold_tick(w.fold, now_of(&w)), STG_S);
    CHECK_U64(w.count, 9);
    w.now = STG_S;
    CHECK_U64(stg_log_fold_tick(w.fold, now_of(&w)), STG_NEVER);
    CHECK_U64(w.count, 10);
    CHECK_STR(w.text,
              "attempt-failed cause=C1 folded=4991 "
              "since=2026-03-01T12:00:00.250Z targets=4991 "
              "names=t9, t10, t11");
    CHECK_U64(w.told, 5000);
    end(&w);
}

TEST(log_fold, writes_single_lines_as_they_are)
{
    world w;

    begin(&w);
    for (size_t i = 0; i < 1000; i++) {
        CHECK(fail(&w, 1, i, 1));
        w.now += STG_S / 9 + 1;
    }
    CHECK_U64(w.folds, 0);
    CHECK_U64(stg_log_fold_tick(w.fold, now_of(&w)), STG_NEVER);
    end(&w);
}

/* Random bursts and silences, ticks that are late or missing, lines that stand
 * for many: the pace holds, and nothing is lost. */
TEST(log_fold, keeps_its_pace_and_counts_exactly)
{
    for (uint64_t seed = 0; seed < seeds(200); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint64_t events = 0;
        world w;

        begin(&w);
        for (size_t i = 0; i < 2000; i++) {
            uint64_t more =
                stg_rng_upto(&rng, 9) == 0 ? stg_rng_upto(&rng, 50) + 1 : 1;

            (void)fail(&w, stg_rng_upto(&rng, 4),
                       (size_t)stg_rng_upto(&rng, 300), more);
            events += more;
            if (stg_rng_upto(&rng, 20) == 0)
                (void)stg_log_fold_tick(w.fold, now_of(&w));
            w.now += stg_rng_upto(
                &rng, stg_rng_upto(&rng, 100) == 0 ? 2 * STG_S : 10 * STG_MS);
        }
        stg_log_fold_flush(w.fold, now_of(&w));
        CHECK_FROM(seed, w.folds > 0);
        CHECK_FROM(seed, w.told == events);
        check_pace(&w, seed, 5);
        end(&w);
    }
}

TEST(log_fold, goes_on_in_each_second_of_a_long_outage)
{
    world w;

    begin(&w);
    for (size_t i = 0; i < 30000; i++) {
        (void)fail(&w, 1, i % 700, 1);
        w.now += STG_MS;
        if (i % 100 == 0)
            (void)stg_log_fold_tick(w.fold, now_of(&w));
    }
    CHECK_U64(w.folds, 29);
    CHECK_U64(w.count, 9 + 29 * 9);
    CHECK_U64(w.targets, 700);
    check_pace(&w, 0, 2);
    stg_log_fold_flush(w.fold, now_of(&w));
    CHECK_U64(w.told, 30000);
    end(&w);
}

TEST(log_fold, counts_each_target_once)
{
    world w;

    begin(&w);
    for (size_t round = 0; round < 3; round++)
        for (size_t i = 0; i < 100000; i++)
            (void)fail(&w, 1, i, 1);
    stg_log_fold_flush(w.fold, now_of(&w));
    CHECK_U64(w.targets, 100000);
    CHECK_U64(w.told, 300000);
    CHECK(strstr(w.text, "at_least") == NULL);
    end(&w);
}

TEST(log_fold, says_at_least_where_there_are_too_many_targets)
{
    world w;

    begin(&w);
    for (size_t i = 0; i < 200000; i++)
        (void)fail(&w, 1, i, 1);
    stg_log_fold_flush(w.fold, now_of(&w));
    CHECK_U64(w.told, 200000);
    CHECK_U64(w.targets, STG_LOG_FOLD_TARGETS);
    CHECK(strstr(w.text, " at_least=1 names=t9, t10, t11") != NULL);
    // A told fold gives its room to the next one.
    w.now = 2 * STG_S;
    fail_all(&w, 20);
    stg_log_fold_flush(w.fold, now_of(&w));
    CHECK_U64(w.targets, 11);
    CHECK(strstr(w.text, "at_least") == NULL);
    end(&w);
}

/* A target may answer with any status: the lines are bounded, another event is
 * not disturbed, and causes of the next second are told apart again. */
TEST(log_fold, has_one_fold_for_causes_beyond_its_room)
{
    const size_t causes = 5000;
    world w;

    begin(&w);
    for (size_t round = 0; round < 20; round++)
        for (size_t i = 0; i < causes; i++)
            (void)fail(&w, i + 1, i, 1);
    CHECK(w.count <= (STG_LOG_FOLD_CAUSES + 1) * STG_LOG_FOLD_LINES);
    w.now = STG_S;
    (void)stg_log_fold_tick(w.fold, now_of(&w));
    CHECK(strstr(w.text, "attempt-failed cause=other ") != NULL);
    CHECK_U64(w.told, 20 * causes);
    w.now = 3 * STG_S;
    for (size_t i = 0; i < 20; i++)
        (void)fail(&w, 4999, i, 1);
    stg_log_fold_flush(w.fold, now_of(&w));
    CHECK(strstr(w.text, "attempt-failed cause=C4999 folded=11 ") != NULL);
    end(&w);
}

static bool tell(world *w, stg_log_level level, const char *event,
                 const stg_field *fields, size_t count)
{
    stg_log_fact fact = stg_log_fact_of(level, event, fields, count);

    return stg_log_fold_admit(w->fold, &fact, now_of(w));
}

TEST(log_fold, keeps_the_highest_level)
{
    stg_field name = stg_field_text("receiver", "mail");
    world w;

    begin(&w);
    for (int i = 0; i < 30; i++)
        (void)tell(&w, i == 20 ? STG_LOG_ERROR : STG_LOG_WARN, "alert-failed",
                   &name, 1);
    stg_log_fold_flush(w.fold, now_of(&w));
    CHECK_INT(w.level, STG_LOG_ERROR);
    CHECK_STR(w.text,
              "alert-failed folded=21 "
              "since=2026-03-01T12:00:00.250Z receivers=1 names=mail");
    end(&w);
}

TEST(log_fold, takes_a_status_for_a_cause_and_tells_events_apart)
{
    stg_field fields[] = {stg_field_text("from", "::1"),
                          stg_field_number("status", 404)};
    stg_field none = stg_field_number("n", 1);
    world w;

    begin(&w);
    for (int i = 0; i < 10; i++) {
        bool is_first = i < 9;

        fields[1].number = 404;
        CHECK(tell(&w, STG_LOG_WARN, "a", fields, 2) == is_first);
        fields[1].number = 503;
        CHECK(tell(&w, STG_LOG_WARN, "a", fields, 2) == is_first);
        CHECK(tell(&w, STG_LOG_WARN, "b", &none, 1) == is_first);
        CHECK(tell(&w, STG_LOG_WARN, "c", NULL, 0) == is_first);
    }
    stg_log_fold_flush(w.fold, now_of(&w));
    CHECK_U64(w.folds, 4);
    CHECK_STR(w.text, "c folded=1 since=2026-03-01T12:00:00.250Z");
    end(&w);
}

TEST(log_fold, keeps_a_fold_that_cannot_be_written)
{
    world w;

    begin(&w);
    fail_all(&w, 100);
    w.is_full = true;
    w.now = STG_S;
    CHECK_U64(stg_log_fold_tick(w.fold, now_of(&w)), 2 * STG_S);
    fail_all(&w, 100);
    w.is_full = false;
    w.now = 2 * STG_S;
    CHECK_U64(stg_log_fold_tick(w.fold, now_of(&w)), STG_NEVER);
    CHECK_U64(w.told, 200);
    CHECK_U64(w.targets, 100);
    end(&w);
}
