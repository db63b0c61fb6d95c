/* A letter to an owner has a receiver of its own, and a copy of all that its
 * options point to: a reload may end what they were made of. It is freed when its
 * receiver is idle, which is after it was sent or given up. */
#include "alerts/owner.h"

#include <stdlib.h>
#include <string.h>

typedef struct letter {
    stg_link link;
    stg_alert_receiver *receiver;
    char *texts[7]; /* that the options point to */
    size_t text_count;
    const char *to[1];
} letter;

static void free_letter(letter *l)
{
    stg_list_remove(&l->link);
    stg_alert_receiver_free(l->receiver);
    for (size_t i = 0; i < l->text_count; i++)
        free(l->texts[i]);
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

/* False: no memory. */
static bool keep(letter *l, const char **text)
{
    if (*text == NULL)
        return true;
    *text = l->texts[l->text_count] = strdup(*text);
    l->text_count += *text != NULL;
    return *text != NULL;
}

static bool keep_all(letter *l, stg_alert_receiver_options *o)
{
    bool is_kept = keep(l, &o->name) && keep(l, &o->url) &&
                   keep(l, &o->ca_file) && keep(l, &o->user) &&
                   keep(l, &o->password_file) && keep(l, &o->from);

    if (o->type == STG_RECEIVER_MAIL) {
        o->to = l->to;
        o->to_count = 1;
    }
    return is_kept;
}

static void log_lost(const stg_alert_owners *all, const char *target,
                     const char *why)
{
    STG_LOG(all->world.log, STG_LOG_ERROR, "owner-not-told",
            stg_field_text("target", target), stg_field_text("detail", why));
}

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
    l->to[0] = owner;
    stg_list_push(&all->letters, &l->link);
    if (!keep_all(l, &made) ||
        (made.type == STG_RECEIVER_MAIL && !keep(l, &l->to[0]))) {
        log_lost(all, target, "there is no memory");
        free_letter(l);
        return;
    }
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
