/* A resource as a line of text, both ways.
 *
 * The first word is the kind; it decides which settings are known and what they
 * are by default (resource_of()). Settings follow in any order, and the last of
 * two wins. What is printed reads back as the same resource: all settings of
 * the kind are written, but for a usual fault and a retry-after of no.
 *
 * A new kind needs a row in `kinds` and `keys`, its default in resource_of()
 * and a case in read_kind(): a kind with a value that has none there is read as
 * a round, a width of time. */
#include <string.h>

#include "base/suggest.h"
#include "core/codes.h"
#include "core/reader.h"
#include "core/rule.h"
#include "sim/resource.h"

enum { COUNT_MAX = 1000000 };

static const struct {
    const char *name;
    const char *key; /* the word that begins with it, or NULL: the name is it */
} kinds[] = {
    [STG_RESOURCE_OPTIMISTIC] = {"optimistic", NULL},
    [STG_RESOURCE_LOCK] = {"lock", NULL},
    [STG_RESOURCE_RATE] = {"rate", "rate="},
    [STG_RESOURCE_WORKERS] = {"workers", "workers="},
    [STG_RESOURCE_ROUND] = {"round", "round="},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

stg_resource stg_resource_default(void)
{
    return (stg_resource){
        .kind = STG_RESOURCE_OPTIMISTIC,
        .fault = stg_failed(STG_FAULT_SERIALIZATION),
    };
}

/* Refuses a word, and suggests the key that is nearest to what stands before
 * its "=" (or ":", of a value such as normal:10ms:2ms). keys NULL: suggests
 * nothing. */
static stg_status refuse_key(const stg_reader *word, const char *expected,
                             const char *const *keys, stg_error *err)
{
    stg_writer w = stg_writer_on_error(err);
    stg_reader rest = *word;
    stg_suggestion near;

    (void)stg_read_until(&rest, '=');
    if (stg_reader_is_empty(&rest)) { // no key: a value
        rest = *word;
        (void)stg_read_until(&rest, ':');
    }
    near = stg_suggestion_begin(word->at, (size_t)(rest.at - word->at));
    stg_write_text(&w, "resource: ");
    stg_write_word(&w, word->at, (size_t)(word->end - word->at));
    stg_write_text(&w, ": expected ");
    stg_write_text(&w, expected);
    for (; keys != NULL && *keys != NULL; keys++)
        stg_suggestion_try(&near, *keys);
    if (near.name != NULL) {
        stg_write_text(&w, "; did you mean ");
        stg_write_text(&w, near.name);
        stg_write_char(&w, '?');
    }
    return STG_INVALID;
}

static stg_status refuse_word(const stg_reader *word, const char *expected,
                              stg_error *err)
{
    return refuse_key(word, expected, NULL, err);
}

/* Suggests from all names of stg_spelling_word(), for what stands after the
 * key. */
static stg_status refuse_fault(const stg_reader *word, stg_error *err)
{
    enum { WORDS_MAX = 512 };
    const char *names[WORDS_MAX + 1] = {NULL};
    stg_reader value = *word;
    size_t count = 0;

    (void)stg_read_text(&value, "fault=");
    while (count < WORDS_MAX &&
           (names[count] = stg_spelling_word(count)) != NULL)
        count++;
    return refuse_key(
        &value,
        "an HTTP status from 300 to 599, or the name or code of a "
        "fault, as fault=503",
        names, err);
}

/* -- reading: each of these has its key's value before it */

static bool read_whole(stg_reader *value, uint32_t least, uint32_t *number)
{
    return stg_read_int(value, number) && *number >= least &&
           *number <= COUNT_MAX && stg_reader_is_empty(value);
}

static bool read_width(stg_reader *value, stg_ns *width)
{
    return stg_read_duration(value, width) && *width > 0 &&
           stg_reader_is_empty(value);
}

static bool read_rate(stg_resource *r, stg_reader *value)
{
    return stg_read_int(value, &r->count) && r->count >= 1 &&
           r->count <= COUNT_MAX && stg_read_text(value, "/") &&
           read_width(value, &r->width);
}

static bool read_distribution(stg_reader *value, stg_distribution *distribution)
{
    char text[STG_DISTRIBUTION_TEXT_MAX];
    size_t length = (size_t)(value->end - value->at);

    if (length >= sizeof text)
        return false;
    memcpy(text, value->at, length);
    text[length] = '\0';
    return stg_distribution_parse(distribution, text, NULL) == STG_OK;
}

static bool read_queue(stg_resource *r, stg_reader *value)
{
    if (stg_reader_equals(value, "unlimited")) {
        r->queue = UINT32_MAX;
        return true;
    }
    return read_whole(value, 0, &r->queue);
}

static bool read_answer(stg_reader *value, bool *is_yes)
{
    *is_yes = stg_reader_equals(value, "yes");
    return *is_yes || stg_reader_equals(value, "no");
}

/* A code or a name, for what the resource answered with. A success is no fault,
 * and what only the client can make (STG_CATEGORY_OWN) is nothing that a server
 * answers. */
static bool read_fault(const stg_reader *value, stg_outcome *fault)
{
    stg_rule rule;
    bool is_code;

    if (!stg_spelling_read(*value, &rule) ||
        (rule.link != STG_LINK_CODE && rule.link != STG_LINK_NAME))
        return false;
    is_code = rule.link == STG_LINK_CODE;
    *fault = stg_spelling_outcome(&rule);
    return fault->fault != STG_FAULT_NONE &&
           stg_fault_about(fault->fault)->category != STG_CATEGORY_OWN &&
           (!is_code || (fault->code_kind != STG_CODE_NONE &&
                         stg_rule_check(&rule, NULL) == STG_OK));
}

/* One setting of a kind that is known. `keys` is for suggestions only, and must
 * have what the questions below ask for. */
static stg_status read_setting(stg_resource *r, const stg_reader *word,
                               stg_error *err)
{
    stg_reader value = *word;
    bool has_service =
        r->kind == STG_RESOURCE_LOCK || r->kind == STG_RESOURCE_WORKERS;
    static const char *const keys[KINDS][4] = {
        [STG_RESOURCE_OPTIMISTIC] = {"fault="},
        [STG_RESOURCE_LOCK] = {"fault=", "hold="},
        [STG_RESOURCE_RATE] = {"fault=", "retry-after="},
        [STG_RESOURCE_WORKERS] = {"fault=", "service=", "queue="},
        [STG_RESOURCE_ROUND] = {"fault="},
    };

    if (stg_read_text(&value, "fault="))
        return read_fault(&value, &r->fault) ? STG_OK : refuse_fault(word, err);
    if (r->kind == STG_RESOURCE_RATE && stg_read_text(&value, "retry-after="))
        return read_answer(&value, &r->says_when)
                   ? STG_OK
                   : refuse_word(word, "retry-after=yes or no", err);
    if (r->kind == STG_RESOURCE_WORKERS && stg_read_text(&value, "queue="))
        return read_queue(r, &value)
                   ? STG_OK
                   : refuse_word(word, "queue=0 to 1000000 or unlimited", err);
    if (has_service &&
        stg_read_text(&value,
                      r->kind == STG_RESOURCE_LOCK ? "hold=" : "service="))
        return read_distribution(&value, &r->service)
                   ? STG_OK
                   : refuse_key(&value,
                                "a time, as 10ms, uniform:5ms:15ms, "
                                "normal:10ms:2ms or exponential:10ms",
                                stg_distribution_words, err);
    return refuse_key(word,
                      "a setting of this resource: fault= for all, "
                      "hold= for lock, retry-after= for rate, service= "
                      "and queue= for workers",
                      keys[r->kind], err);
}

/* What the kind is without a word on it. */
static stg_resource resource_of(stg_resource_kind kind)
{
    stg_resource r = stg_resource_default();

    r.kind = kind;
    if (kind == STG_RESOURCE_LOCK) {
        r.service.a = 10 * STG_MS;
        r.fault = stg_failed(STG_FAULT_LOCK_TIMEOUT);
    } else if (kind == STG_RESOURCE_RATE) {
        r.fault = stg_answered(429);
    } else if (kind == STG_RESOURCE_WORKERS) {
        r.service.a = 10 * STG_MS;
        r.queue = UINT32_MAX;
        r.fault = stg_answered(503);
    } else if (kind == STG_RESOURCE_ROUND) {
        r.fault = stg_answered(503);
    }
    return r;
}

/* The first word: the kind, and for most of them a value. */
static stg_status read_kind(stg_resource *r, const stg_reader *word,
                            stg_error *err)
{
    const char *names[KINDS + 1] = {NULL};

    for (int kind = 0; kind < KINDS; kind++) {
        stg_reader value = *word;

        *r = resource_of((stg_resource_kind)kind);
        if (kinds[kind].key == NULL) {
            if (stg_reader_equals(word, kinds[kind].name))
                return STG_OK;
            continue;
        }
        if (!stg_read_text(&value, kinds[kind].key))
            continue;
        if (kind == STG_RESOURCE_RATE)
            return read_rate(r, &value)
                       ? STG_OK
                       : refuse_word(word,
                                     "1 to 1000000 in up to 365d, as "
                                     "rate=100/1s",
                                     err);
        if (kind == STG_RESOURCE_WORKERS)
            return read_whole(&value, 1, &r->count)
                       ? STG_OK
                       : refuse_word(word, "workers=1 to 1000000", err);
        return read_width(&value, &r->width)
                   ? STG_OK
                   : refuse_word(word, "a time up to 365d, as round=40ms", err);
    }
    for (int kind = 0; kind < KINDS; kind++)
        names[kind] =
            kinds[kind].key != NULL ? kinds[kind].key : kinds[kind].name;
    return refuse_key(word,
                      "optimistic, lock, rate=100/1s, workers=8 or "
                      "round=40ms to begin with",
                      names, err);
}

stg_status stg_resource_parse(stg_resource *resource, const char *text,
                              stg_error *err)
{
    stg_reader rest = {text, text + strlen(text)}, word;
    stg_resource found;
    stg_status status;

    word = stg_read_until(&rest, ' ');
    status = read_kind(&found, &word, err);
    while (status == STG_OK && !stg_reader_is_empty(&rest)) {
        word = stg_read_until(&rest, ' ');
        status = read_setting(&found, &word, err);
    }
    if (status == STG_OK)
        *resource = found;
    return status;
}

/* -- writing */

static void write_distribution(stg_writer *w, const char *key,
                               const stg_distribution *distribution)
{
    char text[STG_DISTRIBUTION_TEXT_MAX];

    stg_write_text(w, key);
    stg_write_text(w, stg_distribution_print(distribution, text));
}

static void write_kind(stg_writer *w, const stg_resource *r)
{
    stg_write_text(w, kinds[r->kind].name);
    switch (r->kind) {
    case STG_RESOURCE_OPTIMISTIC:
        break;
    case STG_RESOURCE_LOCK:
        write_distribution(w, " hold=", &r->service);
        break;
    case STG_RESOURCE_RATE:
        stg_write_char(w, '=');
        stg_write_number(w, r->count);
        stg_write_char(w, '/');
        stg_write_duration(w, r->width);
        stg_write_text(w, r->says_when ? " retry-after=yes" : "");
        break;
    case STG_RESOURCE_WORKERS:
        stg_write_char(w, '=');
        stg_write_number(w, r->count);
        write_distribution(w, " service=", &r->service);
        stg_write_text(w, " queue=");
        if (r->queue == UINT32_MAX)
            stg_write_text(w, "unlimited");
        else
            stg_write_number(w, r->queue);
        break;
    case STG_RESOURCE_ROUND:
        stg_write_char(w, '=');
        stg_write_duration(w, r->width);
        break;
    }
}

/* Leaves the fault out where it is the usual one of the kind, code included. */
const char *stg_resource_print(const stg_resource *resource,
                               char text[STG_RESOURCE_TEXT_MAX])
{
    stg_writer w = stg_writer_on(text, STG_RESOURCE_TEXT_MAX);
    stg_outcome usual = resource_of(resource->kind).fault;
    const stg_outcome *o = &resource->fault;

    write_kind(&w, resource);
    if (o->fault == usual.fault && o->code_kind == usual.code_kind &&
        o->code == usual.code)
        return text;
    stg_write_text(&w, " fault=");
    // The code, for the name alone would lose it: 40001 is serialization, too.
    if (o->code_kind != STG_CODE_NONE)
        stg_code_write(&w, o->code_kind, o->code);
    else
        stg_write_text(&w, stg_fault_about(o->fault)->name);
    return text;
}
