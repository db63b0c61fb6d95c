/* output.h - where the results of a simulation go: a table to the terminal,
 * and JSON, CSV, a page and pictures to files. The same four options for every
 * second word. */
#ifndef STAGGER_CLI_SIM_OUTPUT_H
#define STAGGER_CLI_SIM_OUTPUT_H

#include "chart/chart_set.h"
#include "chart/table.h"

typedef struct stg_sim_output {
    bool is_json;     /* --json, to stdout if there is no file */
    const char *json; /* files; NULL: not wanted */
    const char *csv;
    const char *html;
    const char *svg; /* a folder, which is made */
} stg_sim_output;

/* getopt's values, and what its table has for them. */
enum {
    STG_SIM_JSON = 512,
    STG_SIM_CSV,
    STG_SIM_HTML,
    STG_SIM_SVG,
};
#define STG_SIM_OUTPUT_OPTIONS                           \
    {"json", optional_argument, NULL, STG_SIM_JSON},     \
        {"csv", required_argument, NULL, STG_SIM_CSV},   \
        {"html", required_argument, NULL, STG_SIM_HTML}, \
    {                                                    \
        "svg", required_argument, NULL, STG_SIM_SVG      \
    }

/* Takes one of them; false: it is another option. argument is kept. */
bool stg_sim_output_option(stg_sim_output *o, int option, const char *argument);

/* Whether there are pictures to make. */
bool stg_sim_output_has_pictures(const stg_sim_output *o);

/* Whether all of it can be written, before a long run: 0, or it complains in
 * the name of who and returns an exit code. Makes the files, and the folder. */
int stg_sim_output_check(const stg_sim_output *o, const char *who);

typedef struct stg_sim_report {
    const char *title;      /* of the page */
    const char *lead;       /* what was simulated, in sentences */
    const stg_table *table; /* "results" */
    const char *series;     /* "series" of the JSON; NULL: there are none */
    const stg_chart_set *charts; /* NULL: no pictures */
    bool is_partial;
} stg_sim_report;

/* Writes it all. argc and argv: the command that makes the page again, for the
 * page. Returns 0, or complains and returns an exit code. */
int stg_sim_output_write(const stg_sim_output *o, const char *who,
                         const stg_sim_report *report, int argc,
                         char *const *argv);

#endif
