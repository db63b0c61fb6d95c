/* Candidates for many clients that begin together: waits from a five-hundredth of
 * the time that all of them take at best to twice that time, and starts that are
 * spread over as much. */
#include "sim/drain.h"

#include <string.h>

#include "core/writer.h"

#define COUNT_OF(list) (sizeof(list) / sizeof *(list))

enum { WAITS = 11 }; // from 1/512 on, each twice the one before

static const uint32_t caps[] = {1, 4, 16, 64};
static const stg_jitter jitters[] = {STG_JITTER_NONE, STG_JITTER_EQUAL,
                                     STG_JITTER_FULL, STG_JITTER_DECORRELATED};
static const uint64_t attempts[] = {STG_UNLIMITED, 20, 10, 5};
// Of the usual time, in thousandths.
static const uint32_t starts[] = {0, 250, 500, 750, 1000, 1200, 1500, 2000};

static const uint8_t choices[STG_DRAIN_GENES] = {
    [STG_DRAIN_WAIT] = WAITS,
    [STG_DRAIN_CAP] = COUNT_OF(caps),
    [STG_DRAIN_JITTER] = COUNT_OF(jitters),
    [STG_DRAIN_ATTEMPTS] = COUNT_OF(attempts),
    [STG_DRAIN_START] = COUNT_OF(starts),
};

/* In two digits and zeros, a millisecond to thirty days. */
static stg_ns round_time(double ns)
{
    stg_ns time = ns < (double)(30 * STG_DAY) ? (stg_ns)ns : 30 * STG_DAY;
    stg_ns unit = STG_US;

    while (unit <= time / 100)
        unit *= 10;
    return stg_ns_max(time / unit * unit, STG_MS);
}

/* All that is not searched: unlimited but for the patience, and a refusal is
 * tried again whatever it is. */
static stg_policy policy_for(const stg_drain_question *q)
{
    stg_policy p = stg_policy_default();

    p.attempts_max = STG_UNLIMITED;
    p.deadline = q->patience;
    p.attempt_timeout = stg_drain_timeout(q);
    if (stg_policy_retries(&p, &q->resource.fault, NULL) != STG_ALWAYS) {
        p.default_rules = false;
        p.rules[0] =
            (stg_rule){.link = STG_LINK_ANY, .retries_max = STG_ALWAYS};
        p.rule_count = 1;
    }
    return p;
}

static void build(const stg_drain_question *q, stg_drain_candidate *c)
{
    uint8_t *genes = c->genes;
    double usual = stg_drain_usual(q, q->clients);
    stg_policy p = policy_for(q);

    if (genes[STG_DRAIN_CAP] == 0 && genes[STG_DRAIN_JITTER] == 3)
        genes[STG_DRAIN_JITTER] = 2; // decorrelated needs a cap above its base
    p.attempts_max = attempts[genes[STG_DRAIN_ATTEMPTS]];
    p.backoff.base =
        round_time(usual * (double)(1U << genes[STG_DRAIN_WAIT]) / 512);
    p.backoff.cap =
        round_time((double)p.backoff.base * caps[genes[STG_DRAIN_CAP]]);
    p.backoff.growth = genes[STG_DRAIN_CAP] == 0 ? STG_FIXED : STG_EXPONENTIAL;
    p.backoff.jitter = jitters[genes[STG_DRAIN_JITTER]];
    c->policy = p;
    c->start = genes[STG_DRAIN_START] == 0
                   ? 0
                   : round_time(usual / 1000 * starts[genes[STG_DRAIN_START]]);
    if (c->start > q->start_max)
        c->start = q->start_max;
}

/* The library's own backoff, from 200 ms to 30 s. */
static void build_plain(const stg_drain_question *q, size_t i,
                        stg_drain_candidate *c)
{
    c->policy = policy_for(q);
    if (i == 0)
        c->policy.backoff.jitter = STG_JITTER_NONE;
}

bool stg_drain_make(const stg_drain_question *q, size_t i,
                    stg_drain_candidate *c)
{
    static const uint8_t cap[] = {0, 2}, jitter[] = {0, 1, 2}, start[] = {0, 4};
    size_t n = i - STG_DRAIN_PLAIN;

    memset(c, 0, sizeof *c);
    if (i < STG_DRAIN_PLAIN) {
        build_plain(q, i, c);
        return true;
    }
    c->genes[STG_DRAIN_WAIT] = (uint8_t)(n % WAITS);
    n /= WAITS;
    c->genes[STG_DRAIN_CAP] = cap[n % COUNT_OF(cap)];
    n /= COUNT_OF(cap);
    c->genes[STG_DRAIN_JITTER] = jitter[n % COUNT_OF(jitter)];
    n /= COUNT_OF(jitter);
    c->genes[STG_DRAIN_START] = start[n % COUNT_OF(start)];
    if (n >= COUNT_OF(start))
        return false;
    build(q, c);
    return true;
}

bool stg_drain_near(const stg_drain_question *q,
                    const stg_drain_candidate *from, size_t i,
                    stg_drain_candidate *c)
{
    size_t gene = i / 2;
    uint8_t value = from->genes[gene];

    if (i % 2 == 0 ? value == 0 : value + 1 == choices[gene])
        return false;
    memset(c, 0, sizeof *c);
    memcpy(c->genes, from->genes, sizeof c->genes);
    c->genes[gene] = (uint8_t)(i % 2 == 0 ? value - 1 : value + 1);
    build(q, c);
    return true;
}

const char *stg_drain_name(const stg_drain_candidate *c,
                           char text[STG_DRAIN_NAME_MAX])
{
    static const char *const words[] = {[STG_JITTER_NONE] = " no jitter",
                                        [STG_JITTER_FULL] = " full",
                                        [STG_JITTER_EQUAL] = " equal",
                                        [STG_JITTER_DECORRELATED] =
                                            " decorrelated"};
    const stg_backoff *b = &c->policy.backoff;
    stg_writer w = stg_writer_on(text, STG_DRAIN_NAME_MAX);

    stg_write_text(&w, b->growth == STG_FIXED ? "fixed=" : "base=");
    stg_write_duration(&w, b->base);
    if (b->growth != STG_FIXED) {
        stg_write_text(&w, " cap=");
        stg_write_duration(&w, b->cap);
    }
    stg_write_text(&w, words[b->jitter]);
    if (c->policy.attempts_max != STG_UNLIMITED) {
        stg_write_text(&w, " attempts=");
        stg_write_number(&w, c->policy.attempts_max);
    }
    if (c->start > 0) {
        stg_write_text(&w, " start=");
        stg_write_duration(&w, c->start);
    }
    return text;
}
