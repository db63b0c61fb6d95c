/* output.h - where the results of a simulation go: a table to the terminal,
 * and JSON, CSV, a page and pictures to files. The same options for every
 * subcommand of `stagger sim`. */
#ifndef STAGGER_CLI_SIM_OUTPUT_H
#define STAGGER_CLI_SIM_OUTPUT_H

#include <stdint.h>
#include <stdio.h>

#include <stagger/outcome.h>

#include "chart/chart.h"
#include "chart/table.h"

typedef struct stg_sim_output {
    bool is_json;     /* --json, to stdout if there is no file */
    const char *json; /* files; NULL: not wanted */
    const char *csv;
    const char *html;
    const char *svg;    /* a folder, which is made */
    const char *series; /* of contention; CSV */
    const char *events; /* of contention and overload: events.h */
} stg_sim_output;

/* Rows of a table of options: how the runs are made, and where the results go.
 * csv: what a row of that file is. */
enum {
    STG_SIM_SEED = 512,
    STG_SIM_THREADS,
    STG_SIM_JSON,
    STG_SIM_CSV,
    STG_SIM_HTML,
    STG_SIM_SVG,
};
#define STG_SIM_OPTIONS(csv)                                                  \
    {"--seed N", "seed of the random numbers, 0 to 4294967295 (1)",           \
     STG_SIM_SEED, NULL},                                                     \
        {"--threads N",                                                       \
         "how many runs at once (as many as there are cores); the output "    \
         "does not depend on it",                                             \
         STG_SIM_THREADS, NULL},                                              \
        {"--json[=FILE]", "every number, for programs", STG_SIM_JSON, NULL},  \
        {"--csv FILE", csv, STG_SIM_CSV, NULL},                               \
        {"--html FILE", "a page with the charts and the table", STG_SIM_HTML, \
         NULL},                                                               \
    {                                                                         \
        "--svg DIR", "each chart in a file of its own", STG_SIM_SVG, NULL     \
    }

/* Of --seed and --threads. */
typedef struct stg_sim_run {
    uint32_t seed, threads;
} stg_sim_run;

/* Takes an option of STG_SIM_OPTIONS, whose argument is in optarg and is kept.
 * Returns 0, or complains in the name of who and returns an exit code. */
int stg_sim_option(stg_sim_output *o, stg_sim_run *run, const char *who,
                   int option);

/* The number in optarg of "--reps". The same. */
int stg_sim_number(const char *who, const char *option, uint32_t least,
                   uint32_t most, uint32_t *number);

/* Whether there are pictures to make. */
bool stg_sim_output_has_pictures(const stg_sim_output *o);

/* Whether all of it can be written, before a long run: 0, or it complains in
 * the name of who and returns an exit code. Makes the files, and the folder. */
int stg_sim_output_check(const stg_sim_output *o, const char *who);

typedef struct stg_sim_report {
    const char *title;      /* title of the page */
    const char *lead;       /* what was simulated, in sentences */
    const stg_table *table; /* "results" */
    const char *series;     /* "series" of the JSON; NULL: there are none */
    const char *members;    /* more of the JSON: `,"name":...`; NULL: none */
    const stg_table *series_table; /* the same, for CSV; NULL: there is none */
    const stg_chart_set *charts;   /* NULL: no pictures */
    bool is_partial;
    const char *tiles_title;    /* of the page's tiles, below */
    const stg_page_tile *tiles; /* NULL: none */
    size_t tile_count;
} stg_sim_report;

/* Writes it all. argc and argv: the command that makes the page again, for the
 * page. Returns 0, or complains and returns an exit code. */
int stg_sim_output_write(const stg_sim_output *o, const char *who,
                         const stg_sim_report *report, int argc,
                         char *const *argv);

/* -- --events FILE ---------------------------------------------------------- */

enum { STG_SIM_EVENTS_MAX = 100000 }; /* in a file */

typedef struct stg_sim_events {
    FILE *file;
    unsigned process;         /* the one of now, from 1 */
    uint64_t most, left, cut; /* of a process: events, and those beyond */
} stg_sim_events;

/* Begins a file for so many processes, which share the events evenly. Returns 0, or
 * complains in the name of who and returns an exit code. */
int stg_sim_events_open(stg_sim_events *e, const char *path, size_t processes,
                        const char *who);

/* The next process; all that follows is its own. */
void stg_sim_events_begin(stg_sim_events *e, const char *name);

/* An attempt of a client. */
void stg_sim_events_attempt(stg_sim_events *e, uint32_t client,
                            uint32_t attempt, stg_ns begun_at, stg_ns ended_at,
                            const stg_outcome *outcome);

/* Ends the file. The same as of opening. */
int stg_sim_events_close(stg_sim_events *e, const char *path, const char *who);

#endif
