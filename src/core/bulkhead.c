#include <stagger/bulkhead.h>

#include "core/word.h"
#include "core/writer.h"

stg_status stg_bulkhead_check(const stg_bulkhead_options *o, stg_error *err)
{
    if (o == NULL)
        return stg_refuse(err, "bulkhead options are NULL");
    if (o->max > 1000000)
        return stg_refuse_number(err, "bulkhead", o->max,
                                 "1 to 1000000 attempts at once, or none");
    if (o->max == 0 && o->wait != 0)
        return stg_refuse_duration(err, "bulkhead wait", o->wait,
                                   "0 without a limit");
    if (o->wait > 365 * STG_DAY)
        return stg_refuse_duration(err, "bulkhead wait", o->wait, "0 to 365d");
    return STG_OK;
}

stg_status stg_bulkhead_init(stg_bulkhead *b, const stg_bulkhead_options *o)
{
    if (b == NULL || stg_bulkhead_check(o, NULL) != STG_OK)
        return STG_INVALID;
    *b = (stg_bulkhead){.options = *o};
    return STG_OK;
}

static bool take_one(uint64_t seen, uint64_t *next, void *max)
{
    *next = seen + 1;
    return seen < *(uint32_t *)max;
}

bool stg_bulkhead_enter(stg_bulkhead *b)
{
    return b == NULL || b->options.max == 0 ||
           stg_word_change(&b->taken, take_one, &b->options.max);
}

static bool return_one(uint64_t seen, uint64_t *next, void *none)
{
    (void)none;
    *next = seen - 1;
    return seen != 0;
}

void stg_bulkhead_leave(stg_bulkhead *b)
{
    if (b != NULL)
        stg_word_change(&b->taken, return_one, NULL);
}

uint32_t stg_bulkhead_taken(const stg_bulkhead *b)
{
    return b == NULL ? 0 : (uint32_t)stg_word_read(&b->taken);
}
