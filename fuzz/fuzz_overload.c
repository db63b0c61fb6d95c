/* Any settings, a line each: what is refused leaves all as it was, and is told;
 * what is accepted is printed as it reads, and a short run of it ends in order
 * with counts that agree. "resource" is one of contention, "policy" is that of
 * both, "rates" a file of rates; all other names are settings of an overload. */
#include <stagger/text.h>

#include <string.h>

#include "fuzz/fuzz.h"
#include "sim/contention.h"
#include "sim/overload.h"
#include "tests/malloc_memory.h"

enum { EVENTS = 3000, SLOTS = 500 };

static const stg_memory memory = STG_MALLOC_MEMORY;

typedef struct scene {
    stg_overload_options o;
    stg_resource resource;
} scene;

static void check_words(const stg_error *err)
{
    HOLDS(memchr(err->text, '\0', sizeof err->text) != NULL);
    HOLDS(err->text[0] != '\0');
}

/* What was read is printed so that it reads the same. */
static void check_texts(const scene *s)
{
    char law[STG_DISTRIBUTION_TEXT_MAX], trigger[STG_TRIGGER_TEXT_MAX];
    char resource[STG_RESOURCE_TEXT_MAX];
    stg_overload_options o = s->o;
    stg_resource r;

    HOLDS(stg_overload_set(&o, "service",
                           stg_distribution_print(&o.service.time, law),
                           NULL) == STG_OK);
    HOLDS(stg_overload_set(&o, "network",
                           stg_distribution_print(&o.network, law),
                           NULL) == STG_OK);
    HOLDS(stg_overload_set(&o, "trigger",
                           stg_trigger_print(&o.trigger, trigger),
                           NULL) == STG_OK);
    HOLDS(memcmp(&o.trigger, &s->o.trigger, sizeof o.trigger) == 0);
    HOLDS(stg_resource_parse(&r, stg_resource_print(&s->resource, resource),
                             NULL) == STG_OK);
    HOLDS(r.kind == s->resource.kind && r.count == s->resource.count &&
          r.width == s->resource.width && r.queue == s->resource.queue);
}

/* A file of rates, with blanks for the ends of lines. */
static void set_rates(scene *s, char *value)
{
    static stg_load_point points[STG_LOAD_POINTS_MAX];
    stg_error err = {.text = ""};
    uint32_t count;

    for (char *at = value; *at != '\0'; at++)
        if (*at == ' ')
            *at = '\n';
    if (stg_load_parse(value, strlen(value), points, &count, &err) != STG_OK) {
        check_words(&err);
        return;
    }
    s->o.load.is_closed = false;
    s->o.load.points = points;
    s->o.load.point_count = count;
}

static void set(scene *s, const char *name, char *value)
{
    scene before = *s;
    stg_error err = {.text = ""};
    stg_status status;

    if (strcmp(name, "rates") == 0) {
        set_rates(s, value);
        return;
    }
    if (strcmp(name, "policy") == 0)
        status = stg_policy_parse(&s->o.policy, value, &err);
    else if (strcmp(name, "resource") == 0)
        status = stg_resource_parse(&s->resource, value, &err);
    else
        status = stg_overload_set(&s->o, name, value, &err);
    if (status == STG_OK)
        return;
    HOLDS(status == STG_NOT_FOUND || status == STG_INVALID);
    HOLDS(memcmp(&before, s, sizeof before) == 0);
    if (status == STG_INVALID)
        check_words(&err);
}

/* A line is a name, "=" and a value. */
static void read_lines(scene *s, char *text)
{
    char *rest = NULL;

    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *value = strchr(line, '=');

        if (value == NULL)
            continue;
        *value++ = '\0';
        set(s, line, value);
    }
}

static void check_result(const stg_overload_options *o,
                         const stg_overload_result *r)
{
    uint64_t begun = 0, sent = 0;

    HOLDS(r->bin_count <= o->end_at / o->bin);
    HOLDS(r->saved + r->lost <= r->begun);
    HOLDS(r->retried <= r->sent);
    HOLDS(r->events <= EVENTS);
    for (uint32_t i = 0; i < r->bin_count; i++) {
        const stg_overload_bin *b = &r->bins[i];

        HOLDS(b->saved + b->lost <= b->begun);
        HOLDS(b->queue >= 0 && b->queue <= (double)o->service.queue_max + 1);
        begun += b->begun;
        sent += b->sent;
    }
    HOLDS(begun <= EVENTS * 2 + (uint64_t)SLOTS);
    HOLDS(sent <= EVENTS * 4 + (uint64_t)SLOTS);
}

static void run_overload(scene *s)
{
    stg_overload_options o = s->o;
    stg_overload_result r;
    stg_error err;

    o.live_max = SLOTS;
    o.events_max = EVENTS;
    o.processes = o.processes > SLOTS ? SLOTS : o.processes;
    stg_overload_settle(&o);
    if (stg_overload_check(&o, &err) != STG_OK) {
        check_words(&err);
        return;
    }
    (void)stg_overload_memory(&o);
    HOLDS(stg_overload_run(&o, 1, 0, NULL, &memory, &r) == STG_OK);
    check_result(&o, &r);
    stg_overload_free(&r, &memory);
}

static void run_contention(const scene *s)
{
    enum { CLIENTS = 20 };
    stg_contention_options o = stg_contention_options_default();
    stg_contention *c;
    stg_contention_run run;
    stg_error err;

    o.clients = CLIENTS;
    o.policy = &s->o.policy;
    o.resource = s->resource;
    o.network = s->o.network;
    o.calls_max = EVENTS;
    if (o.resource.count > SLOTS)
        return;
    if (stg_contention_new(&c, &memory, &o, &err) != STG_OK) {
        check_words(&err);
        return;
    }
    HOLDS(stg_contention_repeat(c, 0, &run, NULL));
    HOLDS(run.calls <= EVENTS + CLIENTS);
    HOLDS(run.successes + run.given_up <= CLIENTS);
    HOLDS(run.peak <= run.calls);
    HOLDS(run.end != STG_END_EMPTY || run.successes + run.given_up == CLIENTS);
    stg_contention_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    scene s;

    HOLDS(text != NULL);
    memset(&s, 0, sizeof s); // the bytes between the fields, too
    s.o = stg_overload_default();
    s.o.warmup = STG_NEVER; // as the command leaves them open
    s.o.bin = 0;
    s.resource = stg_resource_default();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    read_lines(&s, text);
    check_texts(&s);
    run_overload(&s);
    run_contention(&s);
    free(text);
    return 0;
}
