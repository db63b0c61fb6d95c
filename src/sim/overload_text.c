#include "sim/overload.h"

#include <stagger/text.h>

#include <string.h>

#include "base/suggest.h"
#include "core/reader.h"
#include "core/writer.h"
#include "sim/service.h"

/* The settings of an overload by name, and triggers in words.
 *
 * A setting is a row of `settings`: its name, what it takes, and its setter.
 * The setter works on a copy of the options, so that it may leave it half
 * changed. A range stands in three places, which must agree: the setter, the
 * row's `expected`, and stg_overload_check().
 *
 * What depends on two settings is not checked here, as they come in any order:
 * `to` may be set before `from`. Options that were left open (a warm-up of
 * STG_NEVER, a bin of 0) are chosen by stg_overload_settle(), after all are
 * set. Without it a bin of 0 fails the check. */

/* -- values ---------------------------------------------------------------- */

static bool read_yes(stg_reader *r, bool *is_yes)
{
    *is_yes = stg_read_text(r, "yes");
    return *is_yes || stg_read_text(r, "no");
}

/* Takes all that is left: a distribution is its own parser, which wants a
 * terminated text. */
static bool read_distribution(stg_reader *r, stg_distribution *distribution)
{
    char text[STG_DISTRIBUTION_TEXT_MAX];
    size_t length = (size_t)(r->end - r->at);

    if (length >= sizeof text)
        return false;
    memcpy(text, r->at, length);
    text[length] = '\0';
    r->at = r->end;
    return stg_distribution_parse(distribution, text, NULL) == STG_OK;
}

/* A percentage as parts of `whole`, which is 100 % and divides by 100. One that
 * is no whole number of parts is refused, not rounded: what is printed would be
 * another. */
static bool read_percent(stg_reader *r, uint32_t whole, uint32_t *parts)
{
    uint32_t percent; // in thousandths
    uint64_t product;

    if (!stg_read_decimal(r, &percent) || !stg_read_text(r, "%"))
        return false;
    product = (uint64_t)percent * (whole / 100);
    *parts = (uint32_t)(product / 1000);
    return percent <= 100000 && product % 1000 == 0;
}

static bool read_or_none(stg_reader *r, bool *is_none)
{
    *is_none = stg_read_text(r, "none");
    return *is_none;
}

/* -- settings -------------------------------------------------------------- */

/* "/s" is for the reader and may be left out. */
static bool read_rate(stg_reader r, uint64_t *rate)
{
    uint32_t number;

    if (!stg_read_decimal(&r, &number))
        return false;
    (void)stg_read_text(&r, "/s");
    *rate = number;
    return stg_reader_is_empty(&r) && number >= 1 && number <= 4000000000;
}

/* rate= and clients= undo each other, so that the last one of a command line
 * holds. A range is a rate that goes from one end to the other. */
static bool set_rate(stg_overload_options *o, stg_reader *r)
{
    const char *middle = strstr(r->at, "..");
    stg_reader first = {r->at, middle != NULL ? middle : r->end};
    stg_reader last = {middle != NULL ? middle + 2 : r->end, r->end};

    o->load = (stg_overload_load){.is_regular = o->load.is_regular,
                                  .think = o->load.think};
    r->at = r->end;
    return read_rate(first, &o->load.rate) &&
           (middle == NULL || read_rate(last, &o->load.rate_end));
}

static bool set_layers(stg_overload_options *o, stg_reader *r)
{
    return stg_read_int(r, &o->layers) && o->layers >= 1 &&
           o->layers <= STG_LAYERS_MAX;
}

static bool set_propagate(stg_overload_options *o, stg_reader *r)
{
    return read_yes(r, &o->propagates);
}

static bool set_share(stg_overload_options *o, stg_reader *r)
{
    return read_percent(r, 1000000, &o->share);
}

static bool set_arrivals(stg_overload_options *o, stg_reader *r)
{
    o->load.is_regular = stg_read_text(r, "regular");
    return o->load.is_regular || stg_read_text(r, "poisson");
}

static bool set_clients(stg_overload_options *o, stg_reader *r)
{
    o->load.is_closed = true;
    o->load.rate = o->load.rate_end = 0;
    o->load.points = NULL;
    o->load.point_count = 0;
    return stg_read_int(r, &o->load.clients) && o->load.clients >= 1 &&
           o->load.clients <= 10000000;
}

static bool set_think(stg_overload_options *o, stg_reader *r)
{
    return read_distribution(r, &o->load.think);
}

static bool set_processes(stg_overload_options *o, stg_reader *r)
{
    return stg_read_int(r, &o->processes) && o->processes >= 1 &&
           o->processes <= 1000000;
}

static bool set_workers(stg_overload_options *o, stg_reader *r)
{
    return stg_read_int(r, &o->service.workers) && o->service.workers >= 1 &&
           o->service.workers <= 100000;
}

static bool set_service(stg_overload_options *o, stg_reader *r)
{
    o->service.times = NULL;
    return read_distribution(r, &o->service.time);
}

static bool set_queue(stg_overload_options *o, stg_reader *r)
{
    return stg_read_int(r, &o->service.queue_max) &&
           o->service.queue_max <= 10000000;
}

static bool set_order(stg_overload_options *o, stg_reader *r)
{
    return stg_service_read_order(r, &o->service);
}

static bool set_shed(stg_overload_options *o, stg_reader *r)
{
    return stg_service_read_shed(r, &o->service);
}

static bool set_limit(stg_overload_options *o, stg_reader *r)
{
    return stg_service_read_limit(r, &o->service);
}

static bool set_skip_gone(stg_overload_options *o, stg_reader *r)
{
    return read_yes(r, &o->service.skips_gone);
}

static bool set_drag(stg_overload_options *o, stg_reader *r)
{
    return read_percent(r, 1000000, &o->service.drag);
}

static bool set_timeout(stg_overload_options *o, stg_reader *r)
{
    bool is_none;

    if (read_or_none(r, &is_none)) {
        o->timeout = STG_NEVER;
        return true;
    }
    return stg_read_duration(r, &o->timeout) && o->timeout >= STG_US &&
           o->timeout <= STG_DAY;
}

static bool set_network(stg_overload_options *o, stg_reader *r)
{
    return read_distribution(r, &o->network);
}

static bool set_errors(stg_overload_options *o, stg_reader *r)
{
    return read_percent(r, 1000000, &o->errors);
}

static bool set_retry_after(stg_overload_options *o, stg_reader *r)
{
    return stg_read_duration(r, &o->retry_after) && o->retry_after <= STG_DAY;
}

static bool set_throttle(stg_overload_options *o, stg_reader *r)
{
    bool is_none;

    o->throttle = 0;
    if (read_or_none(r, &is_none))
        return true;
    return stg_read_decimal(r, &o->throttle) && o->throttle >= 1000 &&
           o->throttle <= 100000;
}

/* By stg_trigger_kind: those with a colon have a factor behind it. Reader,
 * printer and suggestions use the same words. */
static const char *const triggers[] = {
    "none", "outage", "stall", "slow:", "spike:", "errors:", NULL};

static bool set_trigger(stg_overload_options *o, stg_reader *r)
{
    stg_trigger *t = &o->trigger;
    size_t kind = 0, count = sizeof triggers / sizeof *triggers - 1;

    while (kind < count && !stg_read_text(r, triggers[kind]))
        kind++;
    if (kind == count)
        return false;
    t->kind = (stg_trigger_kind)kind;
    t->factor = 0;
    if (t->kind == STG_TRIGGER_ERRORS)
        return read_percent(r, 1000, &t->factor) && t->factor >= 1;
    if (t->kind >= STG_TRIGGER_SLOW)
        return stg_read_decimal(r, &t->factor) && t->factor >= 1 &&
               t->factor <= 1000000;
    return true;
}

static bool set_return(stg_overload_options *o, stg_reader *r)
{
    bool is_none;

    o->return_steps = 0;
    o->return_step = 0;
    if (read_or_none(r, &is_none))
        return true;
    return stg_read_int(r, &o->return_steps) && o->return_steps >= 2 &&
           o->return_steps <= 1000 && stg_read_text(r, ":") &&
           stg_read_duration(r, &o->return_step) && o->return_step >= STG_US &&
           o->return_step <= STG_DAY;
}

/* A number of requests, or a time: only that has a unit. */
static bool set_cold(stg_overload_options *o, stg_reader *r)
{
    stg_sim_cold *c = &o->cold;
    stg_reader time;
    bool is_none;

    *c = (stg_sim_cold){0};
    if (read_or_none(r, &is_none))
        return true;
    if (!stg_read_decimal(r, &c->factor) || c->factor < 1000 ||
        c->factor > 1000000 || !stg_read_text(r, ":"))
        return false;
    time = *r;
    if (stg_read_duration(&time, &c->time) && stg_reader_is_empty(&time)) {
        *r = time;
        return c->time >= STG_US && c->time <= STG_DAY;
    }
    c->time = 0;
    return stg_read_int(r, &c->starts) && c->starts >= 1 &&
           c->starts <= 1000000000;
}

static bool set_from(stg_overload_options *o, stg_reader *r)
{
    return stg_read_duration(r, &o->trigger.from_at);
}

static bool set_to(stg_overload_options *o, stg_reader *r)
{
    return stg_read_duration(r, &o->trigger.until_at);
}

static bool set_duration(stg_overload_options *o, stg_reader *r)
{
    return stg_read_duration(r, &o->end_at) && o->end_at >= STG_MS &&
           o->end_at <= 30 * STG_DAY;
}

static bool set_warmup(stg_overload_options *o, stg_reader *r)
{
    return stg_read_duration(r, &o->warmup);
}

static bool set_bin(stg_overload_options *o, stg_reader *r)
{
    return stg_read_duration(r, &o->bin) && o->bin > 0;
}

/* The words of each setting, for suggestions only: the setters have their
 * own. */
static const char *const arrivals[] = {"poisson", "regular", NULL};
static const char *const orders[] = {"fifo", "lifo", "adaptive-lifo", NULL};
static const char *const sheds[] = {"none", "wait:", "codel:", NULL};
static const char *const limits[] = {"none", "aimd:", NULL};
static const char *const answers[] = {"yes", "no", NULL};
static const char *const none[] = {"none", NULL};

#define TIMES "a time as 10ms, exponential:10ms, normal:10ms:2ms, up to 365d"

/* A row without `set` is read by another parser, which says more. */
static const struct {
    stg_overload_setting about;
    bool (*set)(stg_overload_options *o, stg_reader *r);
    const char *const *words; /* those that it knows, or NULL */
} settings[] = {
    {{"rate", "operations a second, 0.001 to 4000000, or as 200..900"},
     set_rate,
     NULL},
    {{"arrivals", "poisson or regular"}, set_arrivals, arrivals},
    {{"clients", "1 to 10000000"}, set_clients, NULL},
    {{"think", TIMES}, set_think, stg_distribution_words},
    {{"processes", "1 to 1000000"}, set_processes, NULL},
    {{"layers", "1 to 4"}, set_layers, NULL},
    {{"inner", "1 to 3 policies with | between them, or none"}, NULL, none},
    {{"propagate", "yes or no"}, set_propagate, answers},
    {{"others", "a policy, or none"}, NULL, none},
    {{"share", "0% to 100%, to 0.0001%"}, set_share, NULL},
    {{"workers", "1 to 100000"}, set_workers, NULL},
    {{"service", TIMES}, set_service, stg_distribution_words},
    {{"queue", "0 to 10000000"}, set_queue, NULL},
    {{"order", "fifo, lifo, adaptive-lifo or adaptive-lifo:100ms"},
     set_order,
     orders},
    {{"shedding",
      "wait:1s, wait:5ms:100ms or codel:5ms:100ms (1us to 1d each), or none"},
     set_shed,
     sheds},
    {{"limit", "aimd:100ms (1us to 1d), or none"}, set_limit, limits},
    {{"skip-gone", "yes or no"}, set_skip_gone, answers},
    {{"drag", "0% to 100%, to 0.0001%"}, set_drag, NULL},
    {{"timeout", "1us to 1d, or none"}, set_timeout, none},
    {{"network", TIMES}, set_network, stg_distribution_words},
    {{"errors", "0% to 100%, to 0.0001%"}, set_errors, NULL},
    {{"retry-after", "0 to 1d"}, set_retry_after, NULL},
    {{"throttle", "1 to 100, or none"}, set_throttle, none},
    {{"trigger",
      "outage, stall, slow:FACTOR or spike:FACTOR (0.001 to 1000), "
      "errors:PERCENT (0.1% to 100%) or none"},
     set_trigger,
     triggers},
    {{"return", "STEPS:TIME as 4:10s (2 to 1000 steps, 1us to 1d), or none"},
     set_return,
     none},
    {{"cold",
      "FACTOR:REQUESTS or FACTOR:TIME as 10:5000 or 10:30s (1 to 1000; 1 to "
      "1000000000, or 1us to 1d), or none"},
     set_cold,
     none},
    {{"from", "a time up to 365d"}, set_from, NULL},
    {{"to", "a time up to 365d"}, set_to, NULL},
    {{"duration", "1ms to 30d"}, set_duration, NULL},
    {{"warmup", "a time up to 365d"}, set_warmup, NULL},
    {{"bin", "a time above 0"}, set_bin, NULL},
};

const stg_overload_setting *stg_overload_setting_at(size_t i)
{
    return i < sizeof settings / sizeof *settings ? &settings[i].about : NULL;
}

/* words: those that the setting knows, or NULL. The suggestion compares the
 * value up to its colon, and with it: "slwo:3" is near "slow:". */
static stg_status refuse(const stg_overload_setting *about, const char *value,
                         const char *const *words, stg_error *err)
{
    stg_writer w = stg_writer_on_error(err);
    stg_reader rest = {value, value + strlen(value)};
    stg_suggestion near;

    stg_write_text(&w, about->name);
    stg_write_char(&w, '=');
    stg_write_word(&w, value, strlen(value));
    stg_write_text(&w, ": expected ");
    stg_write_text(&w, about->expected);
    (void)stg_read_until(&rest, ':');
    near = stg_suggestion_begin(value, (size_t)(rest.at - value));
    for (; words != NULL && *words != NULL; words++)
        stg_suggestion_try(&near, *words);
    if (near.name != NULL) {
        stg_write_text(&w, "; did you mean ");
        stg_write_text(&w, near.name);
        stg_write_char(&w, '?');
    }
    return STG_INVALID;
}

/* Reads policies with | between them, at most `most`; *count is 0 for "none".
 * The parser's words stand behind ours. */
static stg_status read_policies(const stg_overload_setting *about,
                                const char *value, stg_policy *policies,
                                uint32_t most, uint32_t *count, stg_error *err)
{
    stg_reader rest = {value, value + strlen(value)};
    stg_error words = {.text = ""};
    stg_writer w;
    uint32_t n = 0;

    *count = 0;
    if (strcmp(value, "none") == 0)
        return STG_OK;
    for (bool is_good = value[0] != '\0'; is_good && n < most; n++) {
        stg_reader piece = stg_read_until(&rest, '|');
        char text[STG_POLICY_TEXT_MAX];

        stg_writer each = stg_writer_on(text, sizeof text);
        stg_write_part(&each, piece.at, (size_t)(piece.end - piece.at));
        is_good = each.length < sizeof text &&
                  stg_policy_parse(&policies[n], text, &words) == STG_OK;
        if (is_good && stg_reader_is_empty(&rest)) {
            *count = n + 1;
            return STG_OK;
        }
    }
    (void)refuse(about, value, NULL, err);
    if (err == NULL || words.text[0] == '\0')
        return STG_INVALID;
    w = (stg_writer){err->text, sizeof err->text, strlen(err->text)};
    stg_write_text(&w, ": ");
    stg_write_text(&w, words.text);
    return STG_INVALID;
}

static stg_status set_policies(stg_overload_options *o,
                               const stg_overload_setting *about,
                               const char *value, stg_error *err)
{
    bool is_inner = strcmp(about->name, "inner") == 0;
    stg_policy policies[STG_LAYERS_MAX - 1];
    uint32_t count;
    stg_status status = read_policies(
        about, value, policies, is_inner ? STG_LAYERS_MAX - 1 : 1, &count, err);

    if (status != STG_OK)
        return status;
    if (is_inner) {
        memset(o->inner, 0, sizeof o->inner);
        memcpy(o->inner, policies, count * sizeof *policies);
        o->inner_count = count;
        return STG_OK;
    }
    o->has_others = count > 0;
    memset(&o->others, 0, sizeof o->others);
    if (count > 0)
        o->others = policies[0];
    return STG_OK;
}

/* What a trace says. */
static bool is_of_load(bool (*set)(stg_overload_options *o, stg_reader *r))
{
    return set == set_rate || set == set_arrivals || set == set_clients ||
           set == set_think;
}

stg_status stg_overload_set(stg_overload_options *o, const char *name,
                            const char *value, stg_error *err)
{
    stg_overload_options changed = *o;
    stg_reader r = {value, value + strlen(value)};
    size_t i = 0, count = sizeof settings / sizeof *settings;

    while (i < count && strcmp(settings[i].about.name, name) != 0)
        i++;
    if (i == count)
        return STG_NOT_FOUND;
    if (settings[i].set == NULL)
        return set_policies(o, &settings[i].about, value, err);
    if (o->load.trace != NULL && is_of_load(settings[i].set))
        return stg_refuse(err, "operations begin as in the trace");
    if (!settings[i].set(&changed, &r) || !stg_reader_is_empty(&r))
        return refuse(&settings[i].about, value, settings[i].words, err);
    *o = changed;
    return STG_OK;
}

/* -- what was left open ---------------------------------------------------- */

/* The narrowest width of 1, 2, 2.5 or 5 times a power of ten (of ns, from 100)
 * that divides the duration into 400 bins at most; where none divides it, the
 * most bins up to 400 that do, or one bin. */
static stg_ns find_bin(stg_ns end_at)
{
    static const uint32_t steps[] = {10, 20, 25, 50};

    for (stg_ns unit = 100; unit < STG_DAY; unit *= 10)
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            stg_ns bin = unit * steps[i] / 10;

            if (end_at / bin <= 400 && end_at % bin == 0)
                return bin;
        }
    for (stg_ns bins = 400; bins > 1; bins--)
        if (end_at % bins == 0)
            return end_at / bins;
    return end_at;
}

/* A trigger of no kind loses its times, too, which settings may have left
 * there. */
void stg_overload_settle(stg_overload_options *o)
{
    if (o->layers == 0)
        o->layers = o->inner_count + 1;
    if (o->share == STG_SHARE_OPEN)
        o->share = o->has_others ? 500000 : 0;
    if (o->trigger.kind == STG_TRIGGER_NONE)
        o->trigger = (stg_trigger){.kind = STG_TRIGGER_NONE};
    if (o->warmup == STG_NEVER)
        o->warmup = o->trigger.kind == STG_TRIGGER_NONE
                        ? o->end_at / 10
                        : stg_ns_min(o->trigger.from_at, o->end_at) / 2;
    if (o->bin == 0)
        o->bin = find_bin(o->end_at);
}

const char *stg_trigger_print(const stg_trigger *t,
                              char text[STG_TRIGGER_TEXT_MAX])
{
    stg_writer w = stg_writer_on(text, STG_TRIGGER_TEXT_MAX);

    stg_write_text(&w, triggers[t->kind]);
    if (t->kind == STG_TRIGGER_ERRORS) {
        stg_write_thousandths(&w, (uint64_t)t->factor * 100);
        stg_write_char(&w, '%');
    } else if (t->kind >= STG_TRIGGER_SLOW) {
        stg_write_thousandths(&w, t->factor);
    }
    return text;
}

const char *stg_trigger_say(const stg_trigger *t,
                            char text[STG_TRIGGER_TEXT_MAX])
{
    static const char *const words[] = {"nothing wrong",      "the outage",
                                        "the stall",          "the slow-down ",
                                        "the spike of load ", "the errors "};
    stg_writer w = stg_writer_on(text, STG_TRIGGER_TEXT_MAX);

    stg_write_text(&w, words[t->kind]);
    if (t->kind == STG_TRIGGER_ERRORS) {
        stg_write_char(&w, '(');
        stg_write_thousandths(&w, (uint64_t)t->factor * 100);
        stg_write_text(&w, " %)");
    } else if (t->kind >= STG_TRIGGER_SLOW) {
        stg_write_char(&w, '(');
        stg_write_thousandths(&w, t->factor);
        stg_write_text(&w, " times)");
    }
    return text;
}
