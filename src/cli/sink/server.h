/* server.h - the listener and the loop of `stagger sink`. */
#ifndef STAGGER_CLI_SINK_SERVER_H
#define STAGGER_CLI_SINK_SERVER_H

#include <stagger/status.h>

#include "cli/sink/sink.h"

/* Listens where the options say, and says so on stdout; SIGINT and SIGTERM are
 * the loop's from now on. Returns STG_INVALID or STG_IO with words. */
stg_status stg_sink_server_open(sink *s, stg_error *err);

/* Serves until a signal comes, the receipts are counted, or the log cannot be
 * written (STG_IO). */
stg_status stg_sink_server_run(sink *s, stg_error *err);

void stg_sink_server_close(sink *s);

#endif
