/* A scenario's faults as texts, and what is wrong with a scenario. */
#include <string.h>

#include "core/reader.h"
#include "core/writer.h"
#include "sim/delivery/scenario.h"

/* -- a fault as a text ------------------------------------------------------- */

static stg_status refuse_word(stg_error *err, const char *what, stg_reader word)
{
    stg_writer w = stg_writer_on(err == NULL ? NULL : err->text,
                                 err == NULL ? 0 : sizeof err->text);

    stg_write_text(&w, what);
    stg_write_text(&w, ", found ");
    if (stg_reader_is_empty(&word))
        stg_write_text(&w, "nothing");
    for (const char *at = word.at; at < word.end; at++)
        stg_write_char(&w, *at);
    return STG_INVALID;
}

static void skip_blanks(stg_reader *r)
{
    while (!stg_reader_is_empty(r) && stg_is_blank(*r->at))
        r->at++;
}

static stg_reader next_word(stg_reader *r)
{
    stg_reader word = {r->at, r->at};

    skip_blanks(r);
    word.at = r->at;
    while (!stg_reader_is_empty(r) && !stg_is_blank(*r->at))
        r->at++;
    word.end = r->at;
    return word;
}

/* Whether it is whole, and fits. */
static bool keep_word(stg_reader word, char *to, size_t room)
{
    size_t length = (size_t)(word.end - word.at);

    if (length == 0 || length >= room)
        return false;
    memcpy(to, word.at, length);
    to[length] = '\0';
    return true;
}

static bool read_time(stg_reader *r, stg_ns *ns)
{
    return stg_read_duration(r, ns) && stg_reader_is_empty(r);
}

static bool read_share(stg_reader *r, uint32_t *share)
{
    return stg_read_int(r, share) && *share >= 1 && *share <= 100 &&
           stg_read_text(r, "%") && stg_reader_is_empty(r);
}

static stg_status read_more(stg_reader word, stg_world_scenario_fault *f,
                            stg_ns *lasts, stg_error *err)
{
    stg_reader value = word;

    if (stg_read_text(&value, "from="))
        return read_time(&value, &f->from)
                   ? STG_OK
                   : refuse_word(err, "from: expected a time, such as 5m",
                                 word);
    if (stg_read_text(&value, "for="))
        return read_time(&value, lasts) && *lasts > 0
                   ? STG_OK
                   : refuse_word(err, "for: expected a time, such as 10m",
                                 word);
    f->is_timed |= stg_read_text(&value, "took=");
    if (value.at != word.at)
        return read_time(&value, &f->what.took)
                   ? STG_OK
                   : refuse_word(err, "took: expected a time, such as 5s",
                                 word);
    if (stg_read_text(&value, "share="))
        return read_share(&value, &f->share)
                   ? STG_OK
                   : refuse_word(err, "share: expected 1% to 100%", word);
    return refuse_word(err, "expected from=, for=, took= or share=", word);
}

stg_status stg_world_scenario_read_fault(const char *text,
                                         stg_world_scenario_fault *fault,
                                         stg_error *err)
{
    stg_world_scenario_fault f = {.from = STG_MIN, .share = 100};
    stg_reader r = {text, text + strlen(text)}, word = next_word(&r);
    stg_ns lasts = STG_NEVER;
    stg_status status = STG_OK;

    if (!keep_word(word, f.target, sizeof f.target))
        return refuse_word(err, "expected the name of a target, or *", word);
    word = next_word(&r);
    if (!keep_word(word, f.answer, sizeof f.answer) ||
        !stg_world_read_answer(f.answer, strlen(f.answer), &f.what))
        return refuse_word(err,
                           "expected an answer: 503, 429+60, hang, refused, "
                           "timeout, reset, dns ...",
                           word);
    // A refusal is quick; what is answered takes as long as ever.
    if (f.what.took != STG_NEVER && f.what.outcome.code != 0)
        f.what.took = 0;
    for (skip_blanks(&r); status == STG_OK && !stg_reader_is_empty(&r);
         skip_blanks(&r))
        status = read_more(next_word(&r), &f, &lasts, err);
    if (status != STG_OK)
        return status;
    f.until = stg_ns_add(f.from, lasts);
    *fault = f;
    return STG_OK;
}

bool stg_world_scenario_read_rate(const char *text, uint32_t *rate)
{
    stg_reader r = {text, text + strlen(text)};

    return stg_read_decimal(&r, rate) && stg_reader_is_empty(&r) &&
           *rate >= 1 && *rate <= STG_WORLD_SCENARIO_RATE_MAX;
}

/* -- a scenario -------------------------------------------------------------- */

/* Messages by targets. */
static double count_deliveries(const stg_world_scenario *s)
{
    return s->rate / 1000.0 * ((double)s->load / STG_S) *
           (double)s->target_count;
}

static bool is_of(const stg_world_scenario_fault *f, const char *target)
{
    return strcmp(f->target, "*") == 0 || strcmp(f->target, target) == 0;
}

bool stg_world_scenario_holds(const stg_world_scenario *s,
                              const stg_world_scenario_fault *f, size_t target,
                              stg_ns since)
{
    return since >= f->from && since < stg_world_scenario_end(s, f) &&
           is_of(f, s->targets[target].name);
}

static stg_status refuse_fault(stg_error *err, const char *what,
                               const stg_world_scenario_fault *f)
{
    return refuse_word(err, what,
                       (stg_reader){f->target, f->target + strlen(f->target)});
}

stg_status stg_world_scenario_check(const stg_world_scenario *s, stg_error *err)
{
    for (size_t i = 0; i < s->fault_count; i++) {
        bool is_known = false;

        for (size_t t = 0; t < s->target_count; t++)
            is_known |= is_of(&s->faults[i], s->targets[t].name);
        if (!is_known)
            return refuse_fault(err, "a fault is of no target", &s->faults[i]);
    }
    for (size_t i = 0; i < s->fault_count; i++)
        if (s->faults[i].from >= s->load)
            return refuse_fault(err,
                                "a fault begins when the load has ended: of",
                                &s->faults[i]);
    if (s->target_count == 0)
        return stg_refuse(err, "there is no target");
    if (count_deliveries(s) > STG_WORLD_SCENARIO_DELIVERIES_MAX)
        return stg_refuse(err,
                          "more than 10,000,000 deliveries: expected a lower "
                          "rate, or a shorter time");
    return STG_OK;
}
