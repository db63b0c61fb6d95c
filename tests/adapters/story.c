#include "tests/adapters/story.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/harness.h"

static stg_ns now(void *ctx)
{
    story *s = ctx;

    s->clocks++;
    return s->now;
}

static bool sleep_until(void *ctx, stg_ns until_at, const stg_cancel *cancel)
{
    story *s = ctx;

    s->sleeps++;
    if (cancel != NULL && stg_cancel_is_set(cancel))
        return false;
    s->now = stg_ns_max(s->now, until_at);
    return true;
}

static uint64_t bits(void *ctx)
{
    story *s = ctx;

    s->draws++;
    return s->bits;
}

/* "go", "wait 100 ms (backoff)", "done", "give up (attempts)" */
static const char *describe(const stg_decision *d, stg_ns now, char text[64])
{
    char wait[STG_NS_TEXT_MAX];

    if (d->next == STG_WAIT)
        snprintf(text, 64, "wait %s (%s)",
                 stg_ns_text(stg_ns_sub(d->due_at, now), wait),
                 stg_why_name(d->why));
    else if (d->next == STG_GIVE_UP)
        snprintf(text, 64, "give up (%s)", stg_why_name(d->why));
    else
        strcpy(text, d->next == STG_DONE ? "done" : "go");
    return text;
}

static void tell(void *ctx, const stg_event *event)
{
    static const char *const kinds[] = {
        [STG_EVENT_ATTEMPT] = "attempt",
        [STG_EVENT_DECISION] = "decision",
        [STG_EVENT_END] = "end",
        [STG_EVENT_FALLBACK] = "fallback",
    };
    char name[STG_CAUSE_MAX], text[64];
    const char *cause =
        event->outcome == NULL ? "-" : stg_outcome_name(event->outcome, name);
    story *s = ctx;

    CHECK_U64(event->at, s->now);
    story_say(s, "| %s, %s: %s", kinds[event->kind], cause,
              describe(&event->decision, s->now, text));
}

void story_begin(story *s, const char *script)
{
    *s = (story){.script = script, .bits = 1};
    s->env =
        (stg_env){.now = now, .sleep = sleep_until, .random = bits, .ctx = s};
    s->hook = (stg_hook){.on = tell, .ctx = s};
}

void story_say(story *s, const char *format, ...)
{
    size_t room = sizeof s->trace - s->length;
    va_list args;
    int n;

    n = snprintf(s->trace + s->length, room, "%6ju ms  ",
                 (uintmax_t)(s->now / STG_MS));
    va_start(args, format);
    n += vsnprintf(s->trace + s->length + n, room - (size_t)n, format, args);
    va_end(args);
    CHECK((size_t)n + 2 < room);
    memcpy(s->trace + s->length + n, "\n", 2);
    s->length += (size_t)n + 1;
}

static stg_ns duration_of(const char *word)
{
    char *unit;
    stg_ns number = strtoull(word, &unit, 10);

    return number * (strncmp(unit, "ms", 2) == 0 ? STG_MS
                     : *unit == 's'              ? STG_S
                                                 : STG_MIN);
}

static stg_outcome outcome_of(const char *word)
{
    const char *delay = strchr(word, ':');
    int status = atoi(word);
    unsigned fault = STG_FAULT_NONE + 1;

    if (status != 0)
        return stg_answered_after(status,
                                  delay == NULL ? 0 : duration_of(delay + 1));
    while (fault < STG_FAULT_COUNT &&
           strcmp(stg_fault_about((stg_fault)fault)->name, word) != 0)
        fault++;
    CHECK(fault < STG_FAULT_COUNT);
    return stg_failed((stg_fault)fault);
}

stg_outcome story_attempt(story *s)
{
    char word[32];
    int length;

    s->attempts++;
    for (;;) {
        CHECK(sscanf(s->script, "%31s%n", word, &length) == 1);
        s->script += length;
        if (*word == '+') {
            s->now += duration_of(word + 1);
        } else if (strcmp(word, "cancel") == 0) {
            story_say(s, "cancel");
            stg_cancel_set(&s->cancel);
        } else {
            story_say(s, "%s", word);
            return outcome_of(word);
        }
    }
}

stg_peer peer_of(const stg_policy *policy)
{
    stg_peer peer;

    CHECK(stg_peer_init(&peer, policy) == STG_OK);
    return peer;
}
