/* control.h - changes of a hub that runs: reload; pause, resume and forget.
 *
 * On the loop's thread. A call that is refused returns at once, with words;
 * else done is called, once. */
#ifndef STAGGER_HUB_CONTROL_H
#define STAGGER_HUB_CONTROL_H

#include "config/diagnostics.h"
#include "hub/hub.h"
#include "hub/target.h"

/* -- other settings: reload.c ---------------------------------------------- */

/* All of them, or none (I15).
 *
 * The file is read again and checked whole; then everything that can fail is
 * made, and only then is anything changed. From the return of the call that
 * changes (which is in a later turn of the loop) no attempt to a target starts
 * that is gone or paused (I7). A target is its name: one that is gone keeps
 * what it has, and goes on when its name comes back; a new one begins with the
 * next message, or with the oldest of the log. Budgets and breakers keep their
 * levels where a policy has the same.
 *
 * Reading the file blocks, for as long as a small file takes. */

#define STG_GONE_NAMED_MAX 5

/* What became of it. */
typedef struct stg_reloaded {
    stg_status status;  /* STG_OK: done. STG_INVALID: the settings cannot be
                           used, nothing has changed. STG_IO: nothing has for
                           want of memory; or the hub was stopped meanwhile,
                           and reads the file at its next start */
    const char *detail; /* why not: a line for each mistake; lent. "": done */
    const stg_diagnostics *diagnostics; /* of the file: mistakes, and warnings
                                         also where it is done; lent, NULL:
                                         it was not read */
    const char *file;                   /* that they are of; lent */
    size_t added, changed, gone, same;  /* targets */
    char gone_names[STG_GONE_NAMED_MAX]
                   [STG_TARGET_NAME_MAX]; /* the first of `gone` */
} stg_reloaded;

typedef void stg_reload_fn(void *ctx, const stg_reloaded *r);

/* Reads the file again that the hub was opened with, and logs what became of
 * it. done is called once, not from within this call, when it has been refused,
 * or when the beginning of each new lane is durable; NULL is none. Returns
 * STG_INVALID with words, and never calls done, when it cannot begin: another
 * one is under way, or the hub is stopping. One that was opened without a file reads
 * those that its options name, of tokens and certificates. */
stg_status stg_hub_reload(stg_hub *h, stg_reload_fn *done, void *ctx,
                          stg_error *err);

/* The same for SIGHUP: one that cannot begin is logged. */
void stg_hub_reload_by_signal(stg_hub *h);

/* -- a target: target_control.c -------------------------------------------- */

/* Names are those of targets. done is called when the change is durable
 * (is_full: the store is, and the change holds until a restart only), or when
 * the hub ends first. */
typedef void stg_target_control_fn(void *ctx, bool is_full);

/* The number of the target for stg_hub_look_target(). STG_NOT_FOUND: there is
 * none of that name. */
stg_status stg_hub_find_target(const stg_hub *h, const char *name, size_t *i);

/* That there is none of this name, with the name that it is most like. Returns
 * STG_NOT_FOUND. */
stg_status stg_hub_refuse_name(const stg_hub *h, const char *name,
                               stg_error *err);

/* No attempt starts from the return of this call on; or again. Returns
 * STG_NOT_FOUND, or STG_INVALID where the settings forbid it: a target that
 * they pause, or that they have no more, cannot be resumed by a call. */
stg_status stg_hub_pause(stg_hub *h, const char *name, bool is_paused,
                         stg_target_control_fn *done, void *ctx,
                         stg_error *err);

/* The next probe of a target whose circuit is open starts at once. Where no message
 * waits for it, the probe is the oldest message that `replay: on-recovery` would
 * send again. Returns STG_INVALID with words, and never calls done, when its
 * circuit is not open, it is paused, or there is no access token for it. done may be called from within this call.
 * STG_INVALID: there is no message to probe with; STG_IO: the hub is stopping. */
typedef void stg_probe_fn(void *ctx, stg_status status);
stg_status stg_hub_probe(stg_hub *h, const char *name, stg_probe_fn *done,
                         void *ctx, stg_error *err);

/* The lane of a target that may get messages again: see store/rewinds.h.
 * STG_NOT_FOUND: there is none of that name; STG_INVALID: it is not in the
 * settings; STG_IO: the hub stops. */
stg_status stg_hub_find_sent(const stg_hub *h, const char *name, uint32_t *lane,
                             stg_error *err);

/* Whether it may be forgotten, and what waits for it. */
stg_status stg_hub_check_forget(const stg_hub *h, const char *name,
                                stg_lane_view *v, stg_error *err);

/* False: the hub stops first. What was cancelled until then stays so, and the
 * next hub has the target again, to be forgotten anew. */
typedef void stg_forgotten_fn(void *ctx, bool is_forgotten);

/* Ends the lane of a target that the settings have no more: what waits for it
 * is cancelled, and its name is new again. Returns STG_NOT_FOUND; STG_INVALID
 * for a target of the settings, and for one that is being forgotten. */
stg_status stg_hub_forget(stg_hub *h, const char *name, stg_forgotten_fn *done,
                          void *ctx, stg_error *err);

/* -- targets of calls ---------------------------------------------------- */

/* Targets that calls add, change and remove, while a hub runs.
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
