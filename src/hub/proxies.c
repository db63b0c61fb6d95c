/* What the hub knows of proxies that fail: the words of the last failure of each,
 * and whether flow has found it down (see flow/lane.h), for log, alert and status.
 *
 * A proxy is known by its URL, with user and password: what one of these is refused
 * says nothing about another. It is named without them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/proxy.h"
#include "hub/hub_internal.h"

static stg_hub_proxy *find(const stg_hub *h, uint64_t number)
{
    for (stg_link *at = stg_list_first(&h->proxies); at != NULL;
         at = stg_list_next(&h->proxies, at)) {
        stg_hub_proxy *p = STG_HOLDER(at, stg_hub_proxy, link);

        if (p->number == number)
            return p;
    }
    return NULL;
}

/* "10.0.0.1:3128" */
static void print_name(const char *text, char *name, size_t size)
{
    stg_proxy p;

    if (stg_proxy_parse(&p, text, NULL) != STG_OK)
        return; // it was checked
    (void)stg_url_print_peer(&p.url, true, name, size);
    stg_proxy_free(&p);
}

static stg_hub_proxy *add(stg_hub *h, const stg_target_settings *s)
{
    stg_hub_proxy *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    p->number = stg_settings_proxy(s);
    print_name(s->common->proxy, p->name, sizeof p->name);
    stg_list_push(&h->proxies, &p->link);
    return p;
}

static void drop(stg_hub_proxy *p)
{
    stg_list_remove(&p->link);
    free(p);
}

void stg_proxies_note(stg_hub *h, const stg_target *t,
                      const stg_outcome *outcome, const char *detail)
{
    stg_hub_proxy *p;

    if (t->settings == NULL || t->settings->common->proxy == NULL ||
        (outcome->fault != STG_FAULT_PROXY &&
         outcome->fault != STG_FAULT_CONNECT_TIMEOUT))
        return;
    p = find(h, stg_settings_proxy(t->settings));
    if (p == NULL)
        p = add(h, t->settings);
    if (p != NULL)
        (void)snprintf(p->why, sizeof p->why, "%s", detail);
}

/* -- what flow tells ------------------------------------------------------- */

/* The alert has one of those that are down, the first. */
static void alert(stg_hub *h, stg_ns now)
{
    const stg_hub_proxy *p = stg_proxies_next(h, NULL);

    stg_watch_store(&h->watch, STG_TROUBLE_PROXY, p != NULL ? p->why : NULL,
                    now);
}

static void tell_down(stg_hub *h, stg_hub_proxy *p, const stg_action *a)
{
    p->is_down = true;
    p->down_at = stg_deadlines_now();
    STG_LOG_REPEAT(h->log, STG_LOG_ERROR, "proxy-down", 1,
                   stg_field_text("proxy", p->name),
                   stg_field_number("targets", a->tell.count),
                   stg_field_text("detail", p->why),
                   stg_field_text("next",
                                  "deliveries wait, uncounted; one connection "
                                  "a second is tried"));
}

static void tell_up(stg_hub *h, stg_hub_proxy *p, const stg_action *a,
                    stg_ns now)
{
    STG_LOG_REPEAT(h->log, STG_LOG_INFO, "proxy-up", 1,
                   stg_field_text("proxy", p->name),
                   stg_field_number("targets", a->tell.count),
                   stg_field_time("took", stg_ns_sub(now, a->tell.until_at)),
                   stg_field_text("detail",
                                  "it let a connection through, or no "
                                  "target has it any more"));
    drop(p);
}

/* Without memory for what is down, nothing is known of it here. */
void stg_proxies_tell(stg_hub *h, const stg_action *a, stg_ns now)
{
    stg_hub_proxy *p = a->tell.proxy == 0 ? NULL : find(h, a->tell.proxy);

    if (p == NULL)
        return; // it is about something else
    if (a->tell.what == STG_TELL_PROXY_DOWN)
        tell_down(h, p, a);
    else
        tell_up(h, p, a, now);
    alert(h, now);
}

void stg_proxies_begin_round(stg_hub *h)
{
    for (stg_link *at = stg_list_first(&h->proxies); at != NULL;
         at = stg_list_next(&h->proxies, at))
        STG_HOLDER(at, stg_hub_proxy, link)->is_used = false;
}

void stg_proxies_see(stg_hub *h, const stg_target *t)
{
    stg_hub_proxy *p = stg_list_is_empty(&h->proxies)
                           ? NULL
                           : find(h, stg_settings_proxy(t->settings));

    if (p != NULL)
        p->is_used = true;
}

/* Nobody finds out whether a proxy is back whose targets are paused. */
void stg_proxies_end_round(stg_hub *h, stg_ns now)
{
    const stg_hub_proxy *p = stg_proxies_next(h, NULL);

    while (p != NULL && !p->is_used)
        p = stg_proxies_next(h, p);
    stg_watch_store(&h->watch, STG_TROUBLE_PROXY, p != NULL ? p->why : NULL,
                    now);
}

const stg_hub_proxy *stg_proxies_next(const stg_hub *h, const stg_hub_proxy *p)
{
    stg_link *at = p == NULL ? stg_list_first(&h->proxies)
                             : stg_list_next(&h->proxies, &p->link);

    while (at != NULL && !STG_HOLDER(at, stg_hub_proxy, link)->is_down)
        at = stg_list_next(&h->proxies, at);
    return at == NULL ? NULL : STG_HOLDER(at, stg_hub_proxy, link);
}

void stg_proxies_close(stg_hub *h)
{
    stg_link *at;

    while ((at = stg_list_shift(&h->proxies)) != NULL)
        free(STG_HOLDER(at, stg_hub_proxy, link));
}
