/* Where the results of a simulation go. Files are opened before a long run, so
 * that a path that cannot be written is told at once. The page has the command
 * that makes it again, quoted for a shell. */
#include "cli/sim/output.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chart/chart.h"
#include "cli/options.h"
#include "cli/sim/sim.h"
#include "cli/terminal.h"

enum { PATH = 4096 };

int stg_sim_number(const char *who, const char *option, uint32_t least,
                   uint32_t most, uint32_t *number)
{
    if (stg_options_read_int(optarg, least, most, number))
        return 0;
    stg_options_complain(who, "%s=%s: expected %u to %u", option, optarg, least,
                         most);
    return STG_EXIT_USAGE;
}

int stg_sim_option(stg_sim_output *o, stg_sim_run *run, const char *who,
                   int option)
{
    switch (option) {
    case STG_SIM_SEED:
        return stg_sim_number(who, "--seed", 0, UINT32_MAX, &run->seed);
    case STG_SIM_THREADS:
        return stg_sim_number(who, "--threads", 1, 1024, &run->threads);
    case STG_SIM_JSON:
        o->is_json = true;
        o->json = optarg;
        return 0;
    case STG_SIM_CSV:
        o->csv = optarg;
        return 0;
    case STG_SIM_HTML:
        o->html = optarg;
        return 0;
    default: // STG_SIM_SVG
        o->svg = optarg;
        return 0;
    }
}

/* Callers ask before they draw charts. */
bool stg_sim_output_has_pictures(const stg_sim_output *o)
{
    return o->html != NULL || o->svg != NULL;
}

/* -- files */

static int fail(const char *who, const char *path)
{
    stg_options_complain(who, "cannot write %s: %s", path, strerror(errno));
    return STG_EXIT_USAGE;
}

static int refuse_nothing(const char *who)
{
    stg_options_complain(who,
                         "the name of an output is empty: expected a path");
    return STG_EXIT_USAGE;
}

/* Opens to append, so that a file that exists keeps its bytes until the results
 * are there. */
static int try_file(const char *path, const char *who)
{
    FILE *out = path == NULL ? NULL : fopen(path, "ae");

    if (path == NULL)
        return 0;
    if (path[0] == '\0')
        return refuse_nothing(who);
    if (out == NULL)
        return fail(who, path);
    fclose(out);
    return 0;
}

static int try_folder(const char *path, const char *who)
{
    struct stat found;

    if (path != NULL && path[0] == '\0')
        return refuse_nothing(who);
    if (path == NULL || mkdir(path, 0777) == 0)
        return 0;
    if (errno != EEXIST)
        return fail(who, path);
    if (stat(path, &found) == 0 && !S_ISDIR(found.st_mode)) {
        stg_options_complain(who, "--svg=%s: expected a folder", path);
        return STG_EXIT_USAGE;
    }
    return access(path, W_OK) == 0 ? 0 : fail(who, path);
}

/* A folder for pictures is made here; one that exists is used. */
int stg_sim_output_check(const stg_sim_output *o, const char *who)
{
    int code = try_file(o->json, who);

    if (code == 0)
        code = try_file(o->csv, who);
    if (code == 0)
        code = try_file(o->series, who);
    if (code == 0)
        code = try_file(o->events, who);
    if (code == 0)
        code = try_file(o->html, who);
    if (code == 0)
        code = try_folder(o->svg, who);
    return code;
}

static int write_file(const char *path, const char *who,
                      const stg_text_buffer *buffer)
{
    FILE *out = fopen(path, "we");
    bool is_ok = out != NULL;

    if (is_ok) {
        is_ok = fwrite(buffer->text, 1, buffer->length, out) == buffer->length;
        is_ok = fclose(out) == 0 && is_ok;
    }
    return is_ok ? 0 : fail(who, path);
}

/* -- what is written */

typedef struct writing {
    const stg_sim_output *output;
    const char *who;
    const stg_sim_report *report;
    int argc;
    char *const *argv;
    stg_text_buffer buffer;
} writing;

/* Writes the buffer to path, or stdout if it is NULL, and clears it. */
static int deliver(writing *job, const char *path)
{
    int code = 0;

    if (job->buffer.is_short) {
        stg_options_complain(job->who, "out of memory");
        code = STG_EXIT_USAGE;
    } else if (path != NULL) {
        code = write_file(path, job->who, &job->buffer);
    } else {
        fwrite(job->buffer.text, 1, job->buffer.length, stdout);
        code = stg_options_finish(job->who, 0);
    }
    stg_text_buffer_clear(&job->buffer);
    return code;
}

/* `partial` comes first, so that a program sees it before any number. */
static int write_json(writing *job, const char *path)
{
    stg_text_buffer_form(&job->buffer, "{\"partial\": %s,\n  \"results\": ",
                         job->report->is_partial ? "true" : "false");
    stg_table_json(job->report->table, &job->buffer);
    if (job->report->series != NULL)
        stg_text_buffer_form(&job->buffer, ",\n  \"series\": %s",
                             job->report->series);
    if (job->report->members != NULL)
        stg_text_buffer_put(&job->buffer, job->report->members);
    stg_text_buffer_put(&job->buffer, "}\n");
    return deliver(job, path);
}

/* A file or a pipe takes lines of any length. */
static int show_table(writing *job)
{
    stg_terminal terminal = stg_terminal_look();
    bool is_terminal = isatty(STDOUT_FILENO) == 1;

    stg_text_buffer_form(&job->buffer, "%s\n\n", job->report->lead);
    stg_table_text(job->report->table, is_terminal ? terminal.width : INT_MAX,
                   terminal.is_utf8, &job->buffer);
    return deliver(job, NULL);
}

static bool is_plain(const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        "-_=.,:/+%@";

    return word[0] != '\0' && word[strspn(word, plain)] == '\0';
}

/* A word as a shell reads it. */
static void put_word(stg_text_buffer *buffer, const char *word)
{
    if (is_plain(word)) {
        stg_text_buffer_put(buffer, word);
        return;
    }
    stg_text_buffer_put_char(buffer, '\'');
    for (; *word != '\0'; word++)
        if (*word == '\'')
            stg_text_buffer_put(buffer, "'\\''");
        else
            stg_text_buffer_put_char(buffer, *word);
    stg_text_buffer_put_char(buffer, '\'');
}

/* The command has the options as they were given; with the seed it gives the
 * same numbers again. */
static int write_page(writing *job, const char *path)
{
    const stg_sim_report *report = job->report;
    stg_text_buffer command = stg_text_buffer_on(job->buffer.memory);
    stg_page page = {
        .title = report->title,
        .lead = report->lead,
        .warning = report->is_partial
                       ? "It was interrupted: the results are incomplete."
                       : NULL,
        .tables = report->table,
        .table_count = 1,
        .tiles_title = report->tiles_title,
        .tiles = report->tiles,
        .tile_count = report->tile_count,
        .charts = report->charts->charts,
        .chart_count = report->charts->count,
    };

    stg_text_buffer_put(&command, job->who);
    for (int i = 1; i < job->argc; i++) {
        stg_text_buffer_put_char(&command, ' ');
        put_word(&command, job->argv[i]);
    }
    page.command = command.text;
    stg_page_html(&page, &job->buffer);
    stg_text_buffer_free(&command);
    return deliver(job, path);
}

static int write_pictures(writing *job, const char *folder)
{
    stg_svg_options options = stg_svg_options_default();
    const stg_chart_set *charts = job->report->charts;
    int code = 0;

    for (size_t i = 0; i < charts->count && code == 0; i++) {
        char path[PATH];

        snprintf(path, sizeof path, "%s/%s.svg", folder,
                 charts->charts[i]->name);
        stg_chart_svg(charts->charts[i], &options, &job->buffer);
        code = deliver(job, path);
    }
    return code;
}

int stg_sim_output_write(const stg_sim_output *o, const char *who,
                         const stg_sim_report *report, int argc,
                         char *const *argv)
{
    stg_memory memory = stg_sim_memory();
    writing job = {o, who, report, argc, argv, stg_text_buffer_on(&memory)};
    int code = o->json != NULL ? write_json(&job, o->json) : 0;

    // Files first: who reads the table may not read it to its end.
    if (code == 0 && o->csv != NULL) {
        stg_table_csv(report->table, &job.buffer);
        code = deliver(&job, o->csv);
    }
    if (code == 0 && o->series != NULL && report->series_table != NULL) {
        stg_table_csv(report->series_table, &job.buffer);
        code = deliver(&job, o->series);
    }
    if (code == 0 && o->html != NULL && report->charts != NULL)
        code = write_page(&job, o->html);
    if (code == 0 && o->svg != NULL && report->charts != NULL)
        code = write_pictures(&job, o->svg);
    if (code == 0)
        code = o->is_json && o->json == NULL ? write_json(&job, NULL)
                                             : show_table(&job);
    stg_text_buffer_free(&job.buffer);
    return code;
}
