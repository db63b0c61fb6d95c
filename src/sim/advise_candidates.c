/* Candidates: policies that are made of a few choices, by the question. The first
 * round has some hundred of them, spread over all kinds; later ones look at what
 * stands beside the best.
 *
 * Times are parts of the patience, and budgets shares of the capacity that all
 * processes divide among themselves. */
#include <string.h>

#include "core/writer.h"
#include "sim/advise.h"

typedef struct wait_choice {
    stg_growth growth;
    stg_jitter jitter;
    uint32_t base; /* thousandths of the patience; of a list the first wait */
    uint32_t next; /* of a list, the others */
} wait_choice;

/* The last ones fill the patience: they leave time for one more attempt, or, as
 * lists, for some that come quickly. */
static const wait_choice waits[] = {
    {STG_EXPONENTIAL, STG_JITTER_FULL, 10, 0},
    {STG_EXPONENTIAL, STG_JITTER_FULL, 33, 0},
    {STG_EXPONENTIAL, STG_JITTER_FULL, 125, 0},
    {STG_FIXED, STG_JITTER_FULL, 250, 0},
    {STG_FIXED, STG_JITTER_FULL, 500, 0},
    {STG_FIXED, STG_JITTER_FULL, 800, 0},
    {STG_FIXED, STG_JITTER_EQUAL, 800, 0},
    {STG_LIST, STG_JITTER_EQUAL, 900, 30},
    {STG_LIST, STG_JITTER_EQUAL, 900, 100},
    {STG_LIST, STG_JITTER_FULL, 900, 30},
};

static const uint64_t attempts[] = {1, 2, 3, 5, 8, 20};

typedef struct budget_choice {
    stg_budget_kind kind;
    uint32_t ratio; /* thousandths */
    uint32_t share; /* of the capacity, thousandths */
} budget_choice;

static const budget_choice budgets[] = {
    {STG_BUDGET_NONE, 0, 0},      {STG_BUDGET_RATIO, 100, 0},
    {STG_BUDGET_TOKENS, 0, 20},   {STG_BUDGET_TOKENS, 0, 50},
    {STG_BUDGET_RATIO, 100, 50},  {STG_BUDGET_TOKENS, 0, 150},
    {STG_BUDGET_RATIO, 300, 150}, {STG_BUDGET_TOKENS, 0, 300},
};

/* Failures in a row; the last one is half of ten calls and more. */
static const uint32_t failures[] = {0, 1, 2, 3, 5, 10, 20, 50};

enum { BREAKER_SHARE = 7 };

typedef struct open_choice {
    uint32_t open, open_max; /* thousandths of the patience */
} open_choice;

static const open_choice opens[] = {{20, 100},  {50, 200},  {100, 500},
                                    {200, 500}, {500, 500}, {800, 800}};

#define COUNT_OF(list) (sizeof(list) / sizeof *(list))

static const uint8_t choices[STG_GENES] = {
    [STG_GENE_WAIT] = COUNT_OF(waits),
    [STG_GENE_ATTEMPTS] = COUNT_OF(attempts),
    [STG_GENE_TIMEOUT] = 3,
    [STG_GENE_BUDGET] = COUNT_OF(budgets),
    [STG_GENE_EMPTY] = 2,
    [STG_GENE_BREAKER] = COUNT_OF(failures),
    [STG_GENE_OPEN] = COUNT_OF(opens),
    [STG_GENE_DENIED] = 2,
};

/* -- from choices to a policy ---------------------------------------------- */

/* A part of the patience in two digits and zeros, at least a millisecond. */
static stg_ns part_of(const stg_question *q, uint32_t thousandths)
{
    stg_ns ns = q->patience / 1000 * thousandths, unit = STG_US;

    while (unit <= ns / 100)
        unit *= 10;
    return stg_ns_max(ns / unit * unit, STG_MS);
}

static void set_backoff(stg_policy *p, const stg_question *q, wait_choice wait)
{
    p->backoff.growth = wait.growth;
    p->backoff.jitter = wait.jitter;
    if (wait.growth == STG_LIST) {
        p->backoff.list_count = 2;
        p->backoff.list[0] = part_of(q, wait.base);
        p->backoff.list[1] = part_of(q, wait.next);
        return;
    }
    p->backoff.base = part_of(q, wait.base);
    if (wait.growth == STG_EXPONENTIAL)
        p->backoff.cap = part_of(q, 500);
    p->backoff.cap = stg_ns_max(p->backoff.cap, p->backoff.base);
}

/* Thousandths of a retry a second for each process, if all of them together
 * may ask for a share of the capacity, in thousandths: 1 at least. */
static uint32_t rate_of(const stg_question *q, uint32_t share)
{
    double rate = (double)q->capacity * (share / 1000.0) / (double)q->processes;

    if (rate < 1)
        return 1;
    return rate > 1e9 ? 1000000000 : (uint32_t)rate;
}

/* A bucket holds what comes in ten seconds, and one at least. */
static void set_budget(stg_policy *p, const stg_question *q,
                       budget_choice budget)
{
    uint32_t rate = budget.share > 0 ? rate_of(q, budget.share) : 0;
    uint32_t capacity = rate / 100;

    capacity = capacity < 1 ? 1 : capacity > 1000000 ? 1000000 : capacity;
    p->budget = (stg_budget_options){
        .kind = budget.kind, .ratio = budget.ratio, .rate = rate};
    if (budget.kind == STG_BUDGET_TOKENS)
        p->budget.capacity = capacity;
}

static void set_breaker(stg_policy *p, const stg_question *q, uint8_t breaker,
                        open_choice open)
{
    stg_breaker_options *b = &p->breaker;

    if (breaker == 0)
        return;
    *b = (stg_breaker_options){.rule = STG_BREAKER_ROW,
                               .failures = failures[breaker],
                               .open = part_of(q, open.open),
                               .open_max = part_of(q, open.open_max)};
    if (breaker == BREAKER_SHARE) {
        b->rule = STG_BREAKER_SHARE;
        b->failures = 0;
        b->percent = failures[breaker];
        b->calls = 10;
        b->window = 10 * STG_S;
    }
}

static void wait_for_breaker(stg_policy *p)
{
    p->rules[0] = (stg_rule){.link = STG_LINK_NAME,
                             .retries_max = STG_ALWAYS,
                             .value = STG_FAULT_CIRCUIT_OPEN};
    p->rule_count = 1;
}

/* Genes that do nothing are 0, so that no two candidates differ in them alone. */
static void normalize(uint8_t genes[STG_GENES])
{
    if (genes[STG_GENE_ATTEMPTS] == 0)
        genes[STG_GENE_WAIT] = genes[STG_GENE_BUDGET] = genes[STG_GENE_DENIED] =
            0;
    if (genes[STG_GENE_BUDGET] == 0)
        genes[STG_GENE_EMPTY] = 0;
    if (genes[STG_GENE_BREAKER] == 0)
        genes[STG_GENE_OPEN] = genes[STG_GENE_DENIED] = 0;
}

/* A process that makes many calls has so many errors in a row by chance, as one of
 * the model does not where it has fewer calls than those that it stands for. So
 * there a breaker must wait for as many of them as have it open, by chance, for a
 * hundredth of the time at most. */
static uint8_t least_breaker(const stg_question *q, stg_ns open)
{
    double is_open = stg_question_rate(q) / q->processes * ((double)open / 1e9);
    uint32_t in_row = 0;
    uint8_t least = 1;

    if (stg_question_scale(q) <= q->processes)
        return least;
    for (; is_open > 0.01; in_row++)
        is_open *= STG_QUESTION_ERRORS / 1e6;
    while (failures[least] < in_row)
        least++;
    return least;
}

static void build(const stg_question *q, stg_candidate *c)
{
    const uint8_t *genes = c->genes;
    uint8_t least =
        least_breaker(q, part_of(q, opens[genes[STG_GENE_OPEN]].open));
    stg_policy p = stg_policy_default();

    if (genes[STG_GENE_BREAKER] > 0 && genes[STG_GENE_BREAKER] < least)
        c->genes[STG_GENE_BREAKER] = least;
    normalize(c->genes);
    p.deadline = q->patience;
    p.attempt_timeout = stg_question_timeout(q) >> genes[STG_GENE_TIMEOUT];
    p.attempts_max = attempts[genes[STG_GENE_ATTEMPTS]];
    if (p.attempts_max > 1)
        set_backoff(&p, q, waits[genes[STG_GENE_WAIT]]);
    set_budget(&p, q, budgets[genes[STG_GENE_BUDGET]]);
    p.budget_waits = genes[STG_GENE_EMPTY] == 1;
    set_breaker(&p, q, genes[STG_GENE_BREAKER], opens[genes[STG_GENE_OPEN]]);
    if (genes[STG_GENE_DENIED] == 1)
        wait_for_breaker(&p);
    c->policy = p;
}

/* -- the first round ------------------------------------------------------- */

static const uint8_t plain[][STG_GENES] = {
    {[STG_GENE_ATTEMPTS] = 0},
    {[STG_GENE_WAIT] = 1, [STG_GENE_ATTEMPTS] = 4},
    {[STG_GENE_TIMEOUT] = 1},
    {[STG_GENE_BREAKER] = 2, [STG_GENE_OPEN] = 1},
    {[STG_GENE_BREAKER] = 4, [STG_GENE_OPEN] = 1},
};

/* Takes the lowest digit of *number off, which has as many values as the list,
 * and returns the list's. */
static uint8_t digit(size_t *number, const uint8_t *list, size_t count)
{
    uint8_t value = list[*number % count];

    *number /= count;
    return value;
}

/* Budgets without a breaker: 84. */
static bool choose_budget(size_t number, uint8_t genes[STG_GENES])
{
    static const uint8_t wait[] = {1, 3, 5, 7}, often[] = {1, 2, 4},
                         size[] = {0, 1, 3, 5}, empty[] = {0, 1};

    genes[STG_GENE_WAIT] = digit(&number, wait, sizeof wait);
    genes[STG_GENE_ATTEMPTS] = digit(&number, often, sizeof often);
    genes[STG_GENE_BUDGET] = digit(&number, size, sizeof size);
    genes[STG_GENE_EMPTY] = digit(&number, empty, sizeof empty);
    return number == 0;
}

/* Breakers with no budget, of those that retry often and wait for them. */
static bool choose_breaker(size_t number, uint8_t genes[STG_GENES])
{
    static const uint8_t wait[] = {1, 5, 7}, breaker[] = {1, 2, 4, 7},
                         open[] = {0, 2, 4}, denied[] = {0, 1};

    genes[STG_GENE_ATTEMPTS] = 4;
    genes[STG_GENE_WAIT] = digit(&number, wait, sizeof wait);
    genes[STG_GENE_BREAKER] = digit(&number, breaker, sizeof breaker);
    genes[STG_GENE_OPEN] = digit(&number, open, sizeof open);
    genes[STG_GENE_DENIED] = digit(&number, denied, sizeof denied);
    return number == 0;
}

enum { BUDGETED = 4 * 3 * 4 * 2 };

bool stg_candidate_make(const stg_question *q, size_t i, stg_candidate *c)
{
    bool is_one = true;

    memset(c, 0, sizeof *c);
    if (i < COUNT_OF(plain))
        memcpy(c->genes, plain[i], sizeof c->genes);
    else if (i - COUNT_OF(plain) < BUDGETED)
        is_one = choose_budget(i - COUNT_OF(plain), c->genes);
    else
        is_one = choose_breaker(i - COUNT_OF(plain) - BUDGETED, c->genes);
    if (is_one)
        build(q, c);
    return is_one;
}

bool stg_candidate_near(const stg_question *q, const stg_candidate *from,
                        size_t i, stg_candidate *c)
{
    size_t gene = i / 2;
    uint8_t value = from->genes[gene];

    if (i % 2 == 0 ? value == 0 : value + 1 == choices[gene])
        return false;
    memset(c, 0, sizeof *c);
    memcpy(c->genes, from->genes, sizeof c->genes);
    c->genes[gene] = (uint8_t)(i % 2 == 0 ? value - 1 : value + 1);
    build(q, c);
    return memcmp(c->genes, from->genes, sizeof c->genes) != 0;
}

/* -- names ----------------------------------------------------------------- */

static void put_wait(stg_writer *w, const stg_backoff *b)
{
    if (b->growth == STG_LIST) {
        stg_write_text(w, "list=");
        stg_write_duration(w, b->list[0]);
        stg_write_text(w, ",");
        stg_write_duration(w, b->list[1]);
    } else {
        stg_write_text(w, b->growth == STG_EXPONENTIAL ? "base=" : "fixed=");
        stg_write_duration(w, b->base);
    }
    if (b->jitter == STG_JITTER_EQUAL)
        stg_write_text(w, "/2");
}

static void put_budget(stg_writer *w, const stg_policy *p)
{
    const stg_budget_options *b = &p->budget;

    if (b->kind == STG_BUDGET_RATIO) {
        stg_write_text(w, " ratio:");
        stg_write_thousandths(w, b->ratio);
    } else if (b->kind == STG_BUDGET_TOKENS) {
        stg_write_text(w, " tokens:");
        stg_write_number(w, b->capacity);
    } else {
        return;
    }
    if (b->rate > 0) {
        stg_write_text(w, b->kind == STG_BUDGET_TOKENS ? ":" : "+");
        stg_write_thousandths(w, b->rate);
        stg_write_text(w, "/s");
    }
    if (p->budget_waits)
        stg_write_text(w, " waits");
}

static void put_breaker(stg_writer *w, const stg_policy *p)
{
    const stg_breaker_options *b = &p->breaker;

    if (b->rule == STG_BREAKER_NONE)
        return;
    stg_write_text(w, " breaker=");
    if (b->rule == STG_BREAKER_ROW)
        stg_write_number(w, b->failures);
    else
        stg_write_text(w, "50%");
    stg_write_text(w, ":");
    stg_write_duration(w, b->open);
    if (b->open_max != b->open) {
        stg_write_text(w, "-");
        stg_write_duration(w, b->open_max);
    }
    if (p->rule_count > 0)
        stg_write_text(w, " waits");
}

const char *stg_candidate_name(const stg_candidate *c,
                               char text[STG_CANDIDATE_NAME_MAX])
{
    const stg_policy *p = &c->policy;
    stg_writer w = stg_writer_on(text, STG_CANDIDATE_NAME_MAX);

    if (p->attempts_max == 1) {
        stg_write_text(&w, "no retries");
    } else {
        put_wait(&w, &p->backoff);
        stg_write_text(&w, " attempts=");
        stg_write_number(&w, p->attempts_max);
    }
    put_budget(&w, p);
    put_breaker(&w, p);
    if (c->genes[STG_GENE_TIMEOUT] > 0) {
        stg_write_text(&w, " timeout=");
        stg_write_duration(&w, p->attempt_timeout);
    }
    return text;
}

uint32_t stg_candidate_kind(const stg_candidate *c)
{
    const uint8_t *genes = c->genes;

    return (uint32_t)budgets[genes[STG_GENE_BUDGET]].kind * 100 +
           (uint32_t)(genes[STG_GENE_ATTEMPTS] > 0) * 50 +
           (uint32_t)c->policy.breaker.rule * 10 + genes[STG_GENE_EMPTY] * 2U +
           genes[STG_GENE_DENIED];
}
