/* connection.h - what `stagger sink` does with a request: it is counted as a
 * receipt, and answered by the replies. */
#ifndef STAGGER_CLI_SINK_CONNECTION_H
#define STAGGER_CLI_SINK_CONNECTION_H

#include "cli/sink/sink.h"

/* Of sink.http, whose ctx is the sink. */
extern const stg_httpd_hooks stg_sink_hooks;

#endif
