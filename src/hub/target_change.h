/* target_change.h - targets that calls add, change and remove, while a hub runs.
 *
 * Such a target is kept in the store, as the text of its settings (JSON), and
 * otherwise it is as one of the settings file: what is in the file's `defaults`,
 * `policies` and `egress` holds for it, also after a reload, which loads it
 * again. One change is the work of one target, however many there are.
 *
 * A change is checked, written to the store, then made: what is answered is
 * durable, and a restart finds it. One that cannot be made any more, as a reload
 * has come in between, is taken back from the store before it is refused. A removal first writes that the target goes,
 * so that one which a restart cuts short is carried on; the row goes last, when
 * all that waited is cancelled.
 *
 * On the loop's thread. */
#ifndef STAGGER_HUB_TARGET_CHANGE_H
#define STAGGER_HUB_TARGET_CHANGE_H

#include "config/diagnostics.h"
#include "hub/hub.h"
#include "hub/target.h"

typedef enum stg_target_changed {
    STG_TARGET_MADE,      /* durable, and in effect */
    STG_TARGET_OTHER,     /* it has another version than was expected */
    STG_TARGET_NO_ROOM,   /* the store is full */
    STG_TARGET_REFUSED,   /* why says it; it is not in effect, nor stored */
    STG_TARGET_UNCERTAIN, /* the hub stops first, or the store has no room to
                             take it back: the next start shows it */
} stg_target_changed;

/* why: "" but for STG_TARGET_REFUSED. */
typedef void stg_target_changed_fn(void *ctx, stg_target_changed how,
                                   const char *why);

/* Whether text can be a target beside those that there are: c has what is wrong,
 * and what is unwise, with pointers; to be freed in any case. name: what the text
 * says, or what is made of its URL; "": it has none. */
bool stg_hub_check_target(stg_hub *h, const char *text,
                          char name[STG_TARGET_NAME_MAX], stg_diagnostics *c);

/* Whether the store keeps settings of targets encrypted: secrets are to be
 * refused where it does not. */
bool stg_hub_has_secrets_key(const stg_hub *h);

/* Adds the target, or gives it other settings. expected: the version that it has
 * now; 0: it is not there. text was loaded by stg_settings_load_target(), and has
 * this name. done is called once, not from within this call. Returns
 * STG_INVALID with words, and never calls it, where the name is the settings
 * file's, or is being forgotten; STG_IO: the hub is stopping. */
stg_status stg_hub_write_target(stg_hub *h, const char *name, const char *text,
                                uint64_t expected, stg_target_changed_fn *done,
                                void *ctx, stg_error *err);

/* Removes a target that a call has added, with all that waits for it; it sends
 * nothing any more once the store has written that. Else as above. */
stg_status stg_hub_remove_target(stg_hub *h, const char *name,
                                 uint64_t expected, stg_target_changed_fn *done,
                                 void *ctx, stg_error *err);

#endif
