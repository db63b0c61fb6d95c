/* The trace-event format of Chrome: an array of objects, each in a line of its own.
 * A policy is a process, a client a thread, an attempt a span; what lies between
 * two spans of a client is its wait. Times are microseconds.
 *
 * A viewer takes some hundred thousand events at most, so each process has a share
 * of STG_SIM_EVENTS_MAX, and a label that says how many attempts it lacks.
 */
#include "cli/sim/output.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "chart/table.h"
#include "cli/options.h"
#include "cli/sim/sim.h"

static int fail(const char *path, const char *who)
{
    stg_options_complain(who, "cannot write %s: %s", path, strerror(errno));
    return STG_EXIT_USAGE;
}

int stg_sim_events_open(stg_sim_events *e, const char *path, size_t processes,
                        const char *who)
{
    *e = (stg_sim_events){.file = fopen(path, "we"),
                          .most = STG_SIM_EVENTS_MAX / processes};
    if (e->file == NULL)
        return fail(path, who);
    fputs("[\n", e->file);
    return 0;
}

/* An object before this one wants its comma. */
static void put_head(stg_sim_events *e, const char *kind)
{
    fprintf(e->file, "{\"ph\":\"%s\",\"pid\":%u", kind, e->process);
}

static void put_name(stg_sim_events *e, const char *name)
{
    stg_memory memory = stg_sim_memory();
    stg_text_buffer text = stg_text_buffer_on(&memory);

    stg_text_buffer_put_json(&text, name);
    put_head(e, "M");
    fprintf(e->file,
            ",\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":%s}}",
            text.is_short ? "\"\"" : text.text);
    stg_text_buffer_free(&text);
}

/* What a process lacks. */
static void end(stg_sim_events *e)
{
    if (e->cut == 0)
        return;
    fputs(",\n", e->file);
    put_head(e, "M");
    fprintf(
        e->file,
        ",\"tid\":0,\"name\":\"process_labels\",\"args\":{\"labels\":\"cut: %" PRIu64
        " more attempts\"}}",
        e->cut);
}

void stg_sim_events_begin(stg_sim_events *e, const char *name)
{
    end(e);
    if (e->process > 0)
        fputs(",\n", e->file);
    e->process++;
    e->left = e->most;
    e->cut = 0;
    put_name(e, name);
}

static void put_time(stg_sim_events *e, const char *name, stg_ns ns)
{
    fprintf(e->file, ",\"%s\":%" PRIu64 ".%03u", name, ns / 1000,
            (unsigned)(ns % 1000));
}

void stg_sim_events_attempt(stg_sim_events *e, uint32_t client,
                            uint32_t attempt, stg_ns begun_at, stg_ns ended_at,
                            const stg_outcome *outcome)
{
    char name[STG_CAUSE_MAX];
    bool is_success = outcome->fault == STG_FAULT_NONE;

    if (e->left == 0) {
        e->cut++;
        return;
    }
    e->left--;
    fputs(",\n", e->file);
    put_head(e, "X");
    fprintf(e->file, ",\"tid\":%" PRIu32, client + 1);
    put_time(e, "ts", begun_at);
    put_time(e, "dur", stg_ns_sub(ended_at, begun_at));
    fprintf(
        e->file,
        ",\"name\":\"%s\",\"cat\":\"attempt\",\"args\":{\"attempt\":%" PRIu32
        "}}",
        is_success ? "success" : stg_outcome_name(outcome, name), attempt);
}

int stg_sim_events_close(stg_sim_events *e, const char *path, const char *who)
{
    bool is_bad;

    end(e);
    fputs("\n]\n", e->file);
    is_bad = ferror(e->file) != 0;
    if (fclose(e->file) != 0 || is_bad)
        return fail(path, who);
    return 0;
}
