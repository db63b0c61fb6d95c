/* filter.c - what filters by content cost a message: 1,000 targets, each with a
 * pattern of its own that asks for three fields. `make bench` runs it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/meter.h"
#include "filter/verdicts.h"

enum { TARGETS = 1000, BODIES = 64, SIZE = 1024 };

static stg_verdicts *verdicts;
static stg_pattern *pattern;
static uint32_t numbers[TARGETS];
static char bodies[BODIES][SIZE + 1];
static json_t *parsed[BODIES];
static uint64_t position, wanted;

static stg_pattern *compile(int i)
{
    json_t *source =
        json_pack("{s[s] s{s[i{s[si]}] s[{ss}]}}", "type", "order.changed",
                  "order", "customer", i, "numeric", "<", -i, "state", "prefix",
                  i % 2 == 0 ? "paid" : "sent");
    stg_pattern_flaw flaw;
    stg_pattern *p;

    if (source == NULL || stg_pattern_new(&p, source, &flaw) != STG_OK) {
        fputs("filter: no pattern\n", stderr);
        exit(1);
    }
    json_decref(source);
    return p;
}

/* An order with lines, 1 KB. */
static void fill(char *body, int i)
{
    size_t size = (size_t)snprintf(
        body, SIZE,
        "{\"id\": %d, \"type\": \"order.changed\", \"order\": {\"customer\": "
        "%d, \"state\": \"%s\", \"total\": 12.5, \"lines\": [",
        i, i * 7 % TARGETS, i % 2 == 0 ? "paid" : "sent");

    while (size < SIZE - 80)
        size += (size_t)snprintf(
            body + size, SIZE - size,
            "{\"sku\": \"A-%04d\", \"count\": %d, \"price\": 1.25}, ", i, i);
    memcpy(body + size - 2, "]}}", 3);
    memset(body + size + 1, ' ', SIZE - size - 1);
}

static void parse(size_t n)
{
    for (size_t i = 0; i < n; i++)
        json_decref(stg_pattern_parse((stg_span){bodies[i % BODIES], SIZE}));
}

static void match(size_t n)
{
    for (size_t i = 0; i < n; i++)
        wanted += stg_pattern_matches(pattern, parsed[i % BODIES]);
}

static void decide(size_t n)
{
    for (size_t i = 0; i < n; i++, position++)
        for (size_t k = 0; k < TARGETS; k++)
            wanted += stg_verdicts_ask(
                verdicts, numbers[k],
                &(stg_asked){.position = position,
                             .body = {bodies[position % BODIES], SIZE}});
}

int main(void)
{
    verdicts = stg_verdicts_new();
    for (int i = 0; i < TARGETS; i++) {
        stg_pattern_unref(pattern);
        pattern = compile(i);
        numbers[i] = stg_verdicts_add(verdicts, pattern);
    }
    for (int i = 0; i < BODIES; i++) {
        fill(bodies[i], i);
        parsed[i] = stg_pattern_parse((stg_span){bodies[i], SIZE});
        if (parsed[i] == NULL)
            return fputs("filter: no body\n", stderr), 1;
    }
    meter_begin("filters by content, of bodies of 1 KB");
    meter_compare("a body parsed", 30000, NULL, parse);
    meter_compare("a pattern of three fields matched", 300, NULL, match);
    meter_compare("a message for 1,000 targets with filters", 200000, NULL,
                  decide);
    for (int i = 0; i < BODIES; i++)
        json_decref(parsed[i]);
    stg_pattern_unref(pattern);
    stg_verdicts_free(verdicts);
    return wanted == 0;
}
