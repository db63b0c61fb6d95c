/* message_id.h - the id of a message of the queue as text: "<epoch, 16 hex
 * digits>-<position>"; stg_store_id() has that of any message.
 *
 * The epoch is the log's, so an id names one message for all time. */
#ifndef STAGGER_STORE_MESSAGE_ID_H
#define STAGGER_STORE_MESSAGE_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STG_ID_TEXT_MAX 40 /* with the '\0' */

/* Returns text: "00c0ffee00c0ffee-42". */
const char *stg_id_print(uint64_t epoch, uint64_t position,
                         char text[STG_ID_TEXT_MAX]);

/* Reads what print writes, and nothing else: lower case, no leading zeros. */
bool stg_id_parse(const char *text, size_t size, uint64_t *epoch,
                  uint64_t *position);

#endif
