/* status.h - what the parts of `stagger status` share: a look at a hub.
 *
 *   status        options; once, or again and again
 *   status_look   two calls, and what they say
 *   status_fault  what failed last, and when; when it is tried again
 *   status_table  the table, as wide and as high as there is room
 *   status_json   the same for programs */
#ifndef STAGGER_CLI_STATUS_STATUS_H
#define STAGGER_CLI_STATUS_STATUS_H

#include "cli/remote.h"
#include "cli/terminal.h"

/* For what is not known, or is not there. */
#define STATUS_NONE UINT64_MAX

enum { STATUS_CAUSE_MAX = 160 };

typedef struct status_row {
    char name[72], state[16], cause[STATUS_CAUSE_MAX], breaker[12];
    bool is_known, is_catching_up, is_lag_exact;
    bool lacks_token; /* and cause says why */
    uint64_t delivered, in_flight, in_flight_limit, parked, dead, waiting;
    uint64_t lag;         /* messages; STATUS_NONE */
    stg_ns age;           /* of the oldest that is not settled; STATUS_NONE */
    stg_ns p50, p99;      /* STATUS_NONE */
    stg_ns failed_ago;    /* the last attempt that failed; STATUS_NONE */
    stg_ns probe_in;      /* of an open breaker; STATUS_NONE */
    uint64_t budget;      /* retries that are left, thousandths; STATUS_NONE */
    uint64_t rate;        /* deliveries, thousandths a second; STATUS_NONE */
    const json_t *target; /* as the hub said it */
} status_row;

typedef struct status_look {
    json_t *hub;   /* as the hub said it */
    json_t *pages; /* answers of /v1/targets; rows point into them */
    stg_ns at;     /* by the hub's clock, since 1970 */
    stg_ns up;     /* since it was started */
    status_row *rows;
    size_t count;
} status_look;

/* Asks the hub; before: an earlier look, for the rates, or NULL. False: see
 * stg_remote_why(). */
bool status_look_take(status_look *look, stg_remote *r,
                      const status_look *before);
void status_look_free(status_look *look);

/* An attempt failed within the last minute. */
bool status_is_failing(const status_row *row);

/* "HTTP_401 3s ago", or "HTTP_503 probe in 12s" while a breaker is open; without
 * room "HTTP_503 probe 12s"; "token: ..." where none can be got. Returns text. */
enum { STATUS_FAULT_MAX = STATUS_CAUSE_MAX + 32 };
const char *status_fault(const status_row *row, bool is_roomy,
                         char text[STATUS_FAULT_MAX]);

/* The worst first, to be shown; and by name again, as status_look_take() wants
 * an earlier look. */
void status_look_sort(status_look *look);
void status_look_order(status_look *look);

/* The lines of the table, at most `lines` of them with what it says of the rest
 * (0: all); notice: a line for the end, or NULL. Each ends as `end` says. */
typedef struct status_print_options {
    stg_terminal terminal;
    const char *end;
    unsigned lines;
} status_print_options;
unsigned status_table_print(const status_print_options *options,
                            const char *hub, const status_look *look,
                            const char *notice);

/* Below the table: each policy as the hub applies it, once. */
void status_policies_print(const status_look *look);

/* "1.2k", of 4 letters at most; STATUS_NONE: "-". */
const char *status_count(uint64_t number, char text[8]);

/* "823us" and "1.5s", of 5 letters at most up to 99999 d, or whole seconds and
 * more, of 4 letters up to 999 d: "0s", "4m". STATUS_NONE: "-". */
typedef enum status_form { STATUS_TENTHS, STATUS_WHOLE } status_form;
const char *status_time(stg_ns time, status_form form, char text[8]);

#endif
