/* service_text.h - settings of a service as texts. Private to sim. */
#ifndef STAGGER_SIM_SERVICE_TEXT_H
#define STAGGER_SIM_SERVICE_TEXT_H

#include "core/reader.h"
#include "sim/service.h"

/* Read what stands there; false for what is none, and then *o may be half
 * changed. */
bool stg_service_read_order(stg_reader *r, stg_sim_service_options *o);
bool stg_service_read_shed(stg_reader *r, stg_sim_service_options *o);
bool stg_service_read_limit(stg_reader *r, stg_sim_service_options *o);

#define STG_SERVICE_TEXT_MAX 64

/* As they are read: "fifo", "wait:1s", "aimd:100ms". Return text. */
const char *stg_service_print_order(const stg_sim_service_options *o,
                                    char text[STG_SERVICE_TEXT_MAX]);
const char *stg_service_print_shed(const stg_sim_service_options *o,
                                   char text[STG_SERVICE_TEXT_MAX]);
const char *stg_service_print_limit(const stg_sim_service_options *o,
                                    char text[STG_SERVICE_TEXT_MAX]);

#endif
