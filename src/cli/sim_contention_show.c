/* What `stagger sim contention` prints. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "cli/sim_contention.h"
#include "cli/time_text.h"

static const char who[] = "stagger sim contention";

/* -- a table for people */

static const char *time_of(double ms, char text[STG_NS_TEXT_MAX])
{
    return stg_ns_text((stg_ns)(ms * 1e6), text);
}

static void show_row(const stg_study_cell *cell, const stg_study_result *r)
{
    char completion[STG_NS_TEXT_MAX], half[STG_NS_TEXT_MAX],
        most[STG_NS_TEXT_MAX], nearly[STG_NS_TEXT_MAX];
    const stg_sim_tally *done = &cell->book.done;

    printf("%9" PRIu32
           "  %-14.14s %12.1f %12.1f %10s %8.1f %8.1f  %8s %8s "
           "%8s\n",
           cell->clients, cell->policy->name, r->calls.mean, r->wasted.mean,
           time_of(r->completion_ms.mean, completion), r->peak.mean,
           r->given_up.mean,
           stg_ns_text(stg_sim_tally_quantile(done, 0.5), half),
           stg_ns_text(stg_sim_tally_quantile(done, 0.95), nearly),
           stg_ns_text(stg_sim_tally_quantile(done, 1), most));
}

static void show_table(const stg_study *study)
{
    char text[STG_RESOURCE_TEXT_MAX];

    printf("%s, %" PRIu32
           " repetitions, seed %ju\n\n"
           "  clients  policy                calls       wasted completion "
           "in 100ms  gave up       p50      p95      max\n",
           stg_resource_print(&study->options.each.resource, text),
           study->options.reps, (uintmax_t)study->options.each.seed);
    for (size_t i = 0; i < study->count; i++) {
        stg_study_result r;

        if (study->cells[i].reps > 0 &&
            stg_study_judge(study, &study->cells[i], &r))
            show_row(&study->cells[i], &r);
    }
}

/* -- for programs */

static void put_estimate(FILE *out, const char *key, stg_estimate e)
{
    fprintf(out, ",\n     \"%s\": {\"mean\": %.6f, \"se\": %.6f}", key, e.mean,
            e.se);
}

static void put_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++)
        fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
}

static void put_cell(FILE *out, const stg_study *study,
                     const stg_study_cell *cell)
{
    const stg_sim_tally *done = &cell->book.done;
    stg_study_result r;

    if (!stg_study_judge(study, cell, &r))
        return;
    fputs("    {\"policy\": \"", out);
    put_text(out, cell->policy->name);
    fprintf(out,
            "\", \"text\": \"%s\", \"clients\": %" PRIu32 ", \"reps\": %" PRIu32
            ", \"seed\": %ju",
            cell->policy->text, cell->clients, cell->reps,
            (uintmax_t)study->options.each.seed);
    put_estimate(out, "calls", r.calls);
    put_estimate(out, "wasted", r.wasted);
    put_estimate(out, "successes", r.successes);
    put_estimate(out, "given_up", r.given_up);
    put_estimate(out, "completion_ms", r.completion_ms);
    put_estimate(out, "peak_100ms", r.peak);
    fprintf(out,
            ",\n     \"client_ms\": {\"p50\": %.6f, \"p95\": %.6f, "
            "\"max\": %.6f}",
            (double)stg_sim_tally_quantile(done, 0.5) / 1e6,
            (double)stg_sim_tally_quantile(done, 0.95) / 1e6,
            (double)stg_sim_tally_quantile(done, 1) / 1e6);
    fprintf(out, ", \"cut\": %" PRIu32 "}", r.cut);
}

static void put_json(FILE *out, const stg_study *study)
{
    bool is_first = true;

    fprintf(out, "{\"partial\": %s,\n \"results\": [",
            study->is_partial ? "true" : "false");
    for (size_t i = 0; i < study->count; i++) {
        if (study->cells[i].reps == 0)
            continue;
        fputs(is_first ? "\n" : ",\n", out);
        put_cell(out, study, &study->cells[i]);
        is_first = false;
    }
    fputs("\n ]}\n", out);
}

static void put_csv(FILE *out, const stg_study *study)
{
    fputs(
        "policy,clients,reps,seed,calls,calls_se,wasted,wasted_se,"
        "completion_ms,completion_ms_se,peak_100ms,given_up\n",
        out);
    for (size_t i = 0; i < study->count; i++) {
        const stg_study_cell *cell = &study->cells[i];
        stg_study_result r;

        if (cell->reps == 0 || !stg_study_judge(study, cell, &r))
            continue;
        fprintf(out,
                "\"%s\",%" PRIu32 ",%" PRIu32
                ",%ju,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f\n",
                cell->policy->name, cell->clients, cell->reps,
                (uintmax_t)study->options.each.seed, r.calls.mean, r.calls.se,
                r.wasted.mean, r.wasted.se, r.completion_ms.mean,
                r.completion_ms.se, r.peak.mean, r.given_up.mean);
    }
}

static int write_file(const char *path, const stg_study *study,
                      void (*put)(FILE *out, const stg_study *study))
{
    FILE *out = fopen(path, "we");
    bool is_ok = out != NULL;

    if (is_ok) {
        put(out, study);
        is_ok = !ferror(out);
        is_ok = fclose(out) == 0 && is_ok;
    }
    if (!is_ok)
        stg_options_complain(who, "cannot write %s: %s", path, strerror(errno));
    return is_ok ? 0 : STG_EXIT_USAGE;
}

int stg_contention_show(const stg_contention_settings *s,
                        const stg_study *study)
{
    int code = 0;

    if (s->is_json && s->json == NULL)
        put_json(stdout, study);
    else
        show_table(study);
    code = stg_options_finish(who, code);
    if (code == 0 && s->json != NULL)
        code = write_file(s->json, study, put_json);
    if (code == 0 && s->csv != NULL)
        code = write_file(s->csv, study, put_csv);
    return code;
}
