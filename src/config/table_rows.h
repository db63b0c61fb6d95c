/* table_rows.h - how a row of the table of settings is written: for table.c,
 * table_target.c and table_inbound.c. */
#ifndef STAGGER_CONFIG_TABLE_ROWS_H
#define STAGGER_CONFIG_TABLE_ROWS_H

#include <stddef.h>

#include "config/table.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (MIB * KIB)
#define TIB (GIB * KIB)

/* `field` may be inside of another: store.path. A list has its place and that
 * of its count. */
#define ROW(where, type, name, what, field)                         \
    .path = (name), .in = STG_IN_##where, .kind = &stg_kind_##what, \
    .at = offsetof(type, field),                                    \
    .size = (uint16_t)sizeof(((type *)NULL)->field)
#define LIST(where, type, name, what, field, count)                 \
    .path = (name), .in = STG_IN_##where, .kind = &stg_kind_##what, \
    .at = offsetof(type, field), .count_at = offsetof(type, count)
#define HUB(name, what, field) ROW(HUB, stg_settings, name, what, field)
#define TARGET(name, what, field) \
    ROW(TARGET, stg_target_settings, name, what, field)
#define COMMON(name, what, field) \
    ROW(TARGET, stg_target_common, name, what, field), .is_common = true
#define RECEIVER(name, what, field) \
    ROW(RECEIVER, stg_alert_receiver_options, name, what, field)
#define INBOUND(name, what, field) \
    ROW(INBOUND, stg_inbound_settings, name, what, field)
#define INBOUND_LIST(name, what, field, count) \
    LIST(INBOUND, stg_inbound_settings, name, what, field, count)
#define HUB_LIST(name, what, field, count) \
    LIST(HUB, stg_settings, name, what, field, count)
#define TARGET_LIST(name, what, field, count) \
    LIST(TARGET, stg_target_settings, name, what, field, count)
#define COMMON_LIST(name, what, field, count) \
    LIST(TARGET, stg_target_common, name, what, field, count), .is_common = true
#define RECEIVER_LIST(name, what, field, count) \
    LIST(RECEIVER, stg_alert_receiver_options, name, what, field, count)
#define SECTION(where, name) \
    .path = (name), .in = (where), .kind = &stg_kind_section
#define RANGE(a, b) .least = (a), .most = (b)

/* Those of inbound webhooks and of a target; they stand between those of the hub
 * and of its alerts. */
const stg_setting *stg_setting_inbound_rows(size_t *count);
const stg_setting *stg_setting_target_rows(size_t *count);

#endif
