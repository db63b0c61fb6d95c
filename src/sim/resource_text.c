/* A resource as a line of text, both ways. */
#include <string.h>

#include "core/reader.h"
#include "core/writer.h"
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

static stg_status refuse_word(const stg_reader *word, const char *wanted,
                              stg_error *err)
{
    stg_writer w = stg_writer_on_error(err);

    stg_write_text(&w, "resource: ");
    stg_write_part(&w, word->at, (size_t)(word->end - word->at));
    stg_write_text(&w, ": wanted ");
    stg_write_text(&w, wanted);
    return STG_INVALID;
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

static bool read_law(stg_reader *value, stg_law *law)
{
    char text[STG_LAW_TEXT_MAX];
    size_t length = (size_t)(value->end - value->at);

    if (length >= sizeof text)
        return false;
    memcpy(text, value->at, length);
    text[length] = '\0';
    return stg_law_parse(law, text, NULL) == STG_OK;
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

static bool read_fault(stg_reader *value, stg_outcome *fault)
{
    stg_reader number = *value;
    uint32_t status;

    if (stg_read_int(&number, &status) && stg_reader_is_empty(&number)) {
        *fault = stg_answered((int)status);
        return status >= 300 && status <= 599;
    }
    for (int i = STG_FAULT_REFUSED; i < STG_FAULT_COUNT; i++)
        if (stg_reader_equals(value, stg_fault_about((stg_fault)i)->name) &&
            stg_fault_about((stg_fault)i)->category != STG_CATEGORY_OWN) {
            *fault = stg_failed((stg_fault)i);
            return true;
        }
    return false;
}

/* One setting of a kind that is known. */
static stg_status read_setting(stg_resource *r, const stg_reader *word,
                               stg_error *err)
{
    stg_reader value = *word;
    bool has_service =
        r->kind == STG_RESOURCE_LOCK || r->kind == STG_RESOURCE_WORKERS;

    if (stg_read_text(&value, "fault="))
        return read_fault(&value, &r->fault)
                   ? STG_OK
                   : refuse_word(word,
                                 "an HTTP status from 300 to 599 or the "
                                 "name of a fault, as fault=503",
                                 err);
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
        return read_law(&value, &r->service)
                   ? STG_OK
                   : refuse_word(word,
                                 "a time, as 10ms, uniform:5ms:15ms, "
                                 "normal:10ms:2ms or exponential:10ms",
                                 err);
    return refuse_word(word,
                       "a setting of this resource: fault= for all, "
                       "hold= for lock, retry-after= for rate, service= "
                       "and queue= for workers",
                       err);
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
    return refuse_word(word,
                       "optimistic, lock, rate=100/1s, workers=8 or "
                       "round=40ms to begin with",
                       err);
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

static void write_law(stg_writer *w, const char *key, const stg_law *law)
{
    char text[STG_LAW_TEXT_MAX];

    stg_write_text(w, key);
    stg_write_text(w, stg_law_print(law, text));
}

static void write_kind(stg_writer *w, const stg_resource *r)
{
    stg_write_text(w, kinds[r->kind].name);
    switch (r->kind) {
    case STG_RESOURCE_OPTIMISTIC:
        break;
    case STG_RESOURCE_LOCK:
        write_law(w, " hold=", &r->service);
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
        write_law(w, " service=", &r->service);
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

const char *stg_resource_print(const stg_resource *resource,
                               char text[STG_RESOURCE_TEXT_MAX])
{
    stg_writer w = stg_writer_on(text, STG_RESOURCE_TEXT_MAX);
    stg_outcome usual = resource_of(resource->kind).fault;
    char name[STG_CAUSE_MAX];

    write_kind(&w, resource);
    if (resource->fault.fault != usual.fault ||
        resource->fault.code != usual.code) {
        stg_write_text(&w, " fault=");
        stg_write_text(&w, stg_outcome_name(&resource->fault, name));
    }
    return text;
}
