/* A letter to an owner has a receiver of its own. It is freed when that is idle,
 * which is after it was sent or given up. */
#include "alerts/receiver.h"

#include <stdlib.h>
#include <string.h>

typedef struct letter {
    stg_link link;
    stg_alert_receiver *receiver;
} letter;

static void free_letter(letter *l)
{
    stg_list_remove(&l->link);
    stg_alert_receiver_free(l->receiver);
    free(l);
}

static letter *letter_of(const stg_alert_owners *all,
                         const stg_alert_receiver *s)
{
    stg_link *link = stg_list_first(&all->letters);

    while (STG_HOLDER(link, letter, link)->receiver != s)
        link = stg_list_next(&all->letters, link);
    return STG_HOLDER(link, letter, link);
}

static void receiver_is_idle(void *ctx, stg_alert_receiver *s)
{
    stg_alert_owners *all = ctx;

    free_letter(letter_of(all, s));
    if (--all->count == 0)
        all->idle(all->ctx);
}

void stg_alert_owners_init(stg_alert_owners *all, const stg_alert_world *w,
                           void (*idle)(void *ctx), void *ctx)
{
    *all = (stg_alert_owners){.world = *w, .idle = idle, .ctx = ctx};
    all->world.interval = 0;
    all->world.ended = NULL;
    all->world.idle = receiver_is_idle;
    all->world.ctx = all;
    stg_list_init(&all->letters);
}

static void log_lost(const stg_alert_owners *all, const char *target,
                     const char *why)
{
    STG_LOG(all->world.log, STG_LOG_ERROR, "owner-not-told",
            stg_field_text("target", target), stg_field_text("detail", why));
}

/* A receiver for this one message, which goes when it has been sent or given up. */
void stg_alert_owners_tell(stg_alert_owners *all, const stg_alert_options *o,
                           const char *owner, const char *target,
                           const stg_digest *d)
{
    letter *l = all->count < STG_ALERT_OWNERS_MAX ? calloc(1, sizeof *l) : NULL;
    stg_alert_receiver_options made;
    stg_error err;

    if (l == NULL) {
        log_lost(all, target, "too many owners are being told");
        return;
    }
    if (stg_alert_owner_options(o, owner, &made, &err) != STG_OK) {
        log_lost(all, target, err.text);
        free(l);
        return;
    }
    made.name = target;
    if (made.type == STG_RECEIVER_MAIL) {
        made.to = &owner;
        made.to_count = 1;
    }
    stg_list_push(&all->letters, &l->link);
    if (stg_alert_receiver_new(&l->receiver, &all->world, &made, &err) !=
        STG_OK) {
        log_lost(all, target, err.text);
        free_letter(l);
        return;
    }
    all->count++;
    stg_alert_receiver_push(l->receiver, d);
}

void stg_alert_owners_end_soon(stg_alert_owners *all)
{
    stg_link *link = stg_list_first(&all->letters);

    while (link != NULL) {
        letter *l = STG_HOLDER(link, letter, link);

        link = stg_list_next(&all->letters, link);
        stg_alert_receiver_end_soon(l->receiver);
    }
}

void stg_alert_owners_cancel(stg_alert_owners *all)
{
    stg_link *link = stg_list_first(&all->letters);

    while (link != NULL) {
        letter *l = STG_HOLDER(link, letter, link);

        link = stg_list_next(&all->letters, link);
        stg_alert_receiver_cancel(l->receiver);
    }
}
