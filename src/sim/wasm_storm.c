/* A storm as a page drives it: overloads beside one another, a run at a time.
 *
 * The series of a storm's first run is kept bin by bin, for a page that moves;
 * all runs are added up in a summary, for its charts and its verdict. */
#include <string.h>

#include "core/reader.h"
#include "sim/wasm_internal.h"

enum { EVENTS_MAX = 40000000 }; /* of a run: some seconds in a browser */

void stg_wasm_storms_forget(stg_wasm *w)
{
    while (w->storm_count > 0) {
        stg_wasm_storm *storm = &w->storms[--w->storm_count];

        stg_overload_summary_close(&storm->summary);
        if (storm->series != NULL)
            w->memory.release(w->memory.ctx, storm->series);
    }
}

/* Sets one setting, a line "name=value" of the page's text. Its name is cut off
 * in a copy, as both must be terminated. */
static stg_status set(stg_overload_options *o, stg_reader line, stg_error *err)
{
    char text[STG_WASM_NAME_MAX];
    size_t length = (size_t)(line.end - line.at);
    char *value;
    stg_status status;

    if (length >= sizeof text)
        return stg_refuse(err, "a setting is too long");
    memcpy(text, line.at, length);
    text[length] = '\0';
    value = strchr(text, '=');
    if (value == NULL)
        return stg_refuse(err, "a setting has no value");
    *value++ = '\0';
    status = stg_overload_set(o, text, value, err);
    return status == STG_NOT_FOUND ? stg_refuse(err, "there is no such setting")
                                   : status;
}

static stg_status read_settings(stg_overload_options *o, const char *settings,
                                stg_error *err)
{
    stg_reader rest = {settings, settings + strlen(settings)};
    stg_status status = STG_OK;

    while (status == STG_OK && !stg_reader_is_empty(&rest)) {
        stg_reader line = stg_read_until(&rest, '\n');

        status = set(o, line, err);
    }
    return status;
}

/* As the command has them, but for an end to what a run may take. */
static stg_status make(stg_wasm *w, stg_wasm_storm *storm, const char *policy,
                       const char *settings, stg_error *err)
{
    stg_overload_options *o = &storm->options;
    stg_status status;

    *o = stg_overload_default();
    o->load.think = (stg_distribution){.a = STG_S};
    o->warmup = STG_NEVER;
    o->bin = 0;
    o->events_max = EVENTS_MAX;
    status = stg_policy_parse(&o->policy, policy, err);
    if (status == STG_OK)
        status = read_settings(o, settings, err);
    if (status != STG_OK)
        return status;
    stg_overload_settle(o);
    status = stg_overload_check(o, err);
    if (status != STG_OK)
        return status;
    status = stg_overload_summary_init(&storm->summary, o, w->storm_runs,
                                       &w->memory);
    if (status != STG_OK)
        (void)stg_refuse(err, "there is no memory for so many runs");
    return status;
}

const char *stg_wasm_storm_begin(stg_wasm *w, uint32_t runs, uint64_t seed)
{
    stg_error err = {0};

    stg_wasm_forget(w);
    w->storm_runs = 0;
    if (runs < 1 || runs > STG_WASM_REPETITIONS_MAX) {
        (void)stg_refuse_number(&err, "reps", runs, "1 to 1000");
        return stg_wasm_refuse(w, &err);
    }
    w->storm_runs = runs;
    w->options.seed = seed;
    (void)stg_wasm_answer(w);
    return w->answer;
}

/* The place is counted only when it is whole. */
const char *stg_wasm_storm_add(stg_wasm *w, const char *name,
                               const char *policy, const char *settings)
{
    stg_wasm_storm *storm = &w->storms[w->storm_count];
    stg_error err = {0};
    stg_writer label;

    if (w->storm_runs == 0 || w->storm_count == STG_WASM_STORMS_MAX) {
        (void)stg_refuse_number(&err, "storms", w->storm_count + 1,
                                "1 to 5, after a beginning");
        return stg_wasm_refuse(w, &err);
    }
    memset(storm, 0, sizeof *storm);
    label = stg_writer_on(storm->name, sizeof storm->name);
    stg_write_text(&label, name);
    if (make(w, storm, policy, settings, &err) != STG_OK)
        return stg_wasm_refuse(w, &err);
    w->storm_count++;
    (void)stg_wasm_answer(w);
    return w->answer;
}

/* -- the series of the first run -------------------------------------------- */

static void put_bin(double row[STG_WASM_BIN_FIELDS], const stg_overload_bin *b)
{
    row[STG_WASM_BIN_BEGUN] = b->begun;
    row[STG_WASM_BIN_SENT] = b->sent;
    row[STG_WASM_BIN_RETRIED] = b->retried;
    row[STG_WASM_BIN_SUCCEEDED] = b->succeeded;
    row[STG_WASM_BIN_GIVEN_UP] = b->given_up;
    row[STG_WASM_BIN_REFUSED] = b->refused;
    row[STG_WASM_BIN_TIMEOUTS] = b->timeouts;
    row[STG_WASM_BIN_FOR_NOBODY] = b->for_nobody;
    row[STG_WASM_BIN_QUEUE] = b->queue;
    row[STG_WASM_BIN_BUSY] = b->busy;
}

static bool keep_series(stg_wasm *w, stg_wasm_storm *storm,
                        const stg_overload_result *r)
{
    size_t count = (size_t)r->bin_count * STG_WASM_BIN_FIELDS;

    storm->series =
        w->memory.allocate(w->memory.ctx, (count + 1) * sizeof(double));
    if (storm->series == NULL)
        return false;
    for (uint32_t i = 0; i < r->bin_count; i++)
        put_bin(storm->series + (size_t)i * STG_WASM_BIN_FIELDS, &r->bins[i]);
    storm->bins = r->bin_count;
    return true;
}

bool stg_wasm_storm_run(stg_wasm *w, uint32_t i)
{
    stg_wasm_storm *storm = &w->storms[i];
    stg_overload_result r;
    bool is = true;

    if (i >= w->storm_count || storm->summary.runs == w->storm_runs ||
        stg_overload_run(&storm->options, w->options.seed, storm->summary.runs,
                         NULL, &w->memory, &r) != STG_OK)
        return false;
    if (storm->summary.runs == 0)
        is = keep_series(w, storm, &r);
    if (is)
        stg_overload_summary_add(&storm->summary, &r);
    stg_overload_free(&r, &w->memory);
    return is;
}

uint32_t stg_wasm_storm_bins(const stg_wasm *w, uint32_t i)
{
    return i < w->storm_count ? w->storms[i].bins : 0;
}

const double *stg_wasm_storm_series(const stg_wasm *w, uint32_t i)
{
    return i < w->storm_count ? w->storms[i].series : NULL;
}

/* -- what the runs came to -------------------------------------------------- */

static double figure(const stg_wasm_storm *storm, stg_figure which)
{
    uint32_t has;
    stg_estimate e = stg_overload_summary_figure(&storm->summary, which, &has);

    return has > 0 ? e.mean : -1;
}

const double *stg_wasm_storm_sums(stg_wasm *w, uint32_t i)
{
    static const stg_figure figures[] = {
        STG_FIGURE_RECOVERY,      STG_FIGURE_BEFORE_GOODPUT,
        STG_FIGURE_IN_GOODPUT,    STG_FIGURE_AFTER_GOODPUT,
        STG_FIGURE_AMPLIFICATION, STG_FIGURE_SUCCESS,
        STG_FIGURE_PEAK};
    const stg_wasm_storm *storm = &w->storms[i];
    double *to = w->storm_sums;

    if (i >= w->storm_count || storm->summary.runs == 0)
        return NULL;
    *to++ = storm->summary.runs;
    *to++ = storm->summary.recovered;
    *to++ = storm->summary.healthy;
    *to++ = storm->summary.is_cut;
    *to++ = (double)storm->options.bin / (double)STG_MS;
    for (size_t k = 0; k < sizeof figures / sizeof *figures; k++)
        *to++ = figure(storm, figures[k]);
    return w->storm_sums;
}

uint32_t stg_wasm_storm_cases(const stg_wasm *w,
                              stg_overload_case cases[STG_WASM_STORMS_MAX])
{
    for (uint32_t i = 0; i < w->storm_count; i++) {
        if (w->storms[i].summary.runs == 0)
            return 0;
        cases[i] = (stg_overload_case){.name = w->storms[i].name,
                                       .summary = &w->storms[i].summary};
    }
    return w->storm_count;
}
