/* options.h - who is told what, how often, and how.
 *
 * Plain values: the settings fill them in, stg_alert_options_check() judges
 * them once, and whoever uses them trusts them from then on. Strings and lists
 * are borrowed. Secrets are named by their files, and read when alerts are
 * opened. */
#ifndef STAGGER_ALERTS_OPTIONS_H
#define STAGGER_ALERTS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stagger/ns.h>
#include <stagger/status.h>

#include "http/sign.h"

/* What people are told about. */
typedef enum stg_alert {
    STG_ALERT_DEAD,        /* `dead-letters`: more of them than the threshold */
    STG_ALERT_BREAKER,     /* `breaker`: it opened */
    STG_ALERT_GONE,        /* `gone`: the target answered 410 */
    STG_ALERT_DISABLED,    /* `disabled`: it only failed for too long */
    STG_ALERT_TOKEN,       /* `token`: it cannot be sent to for want of one */
    STG_ALERT_STORE,       /* `store`: it is full, or in trouble */
    STG_ALERT_LAG,         /* `lag`: a lane is far behind */
    STG_ALERT_CERTIFICATE, /* `certificate`: a target's is about to expire */
    STG_ALERT_RETENTION,   /* `retention`: what a lane holds back has reached
                              half of the retention, or of the quota */
} stg_alert;

enum { STG_ALERT_COUNT = STG_ALERT_RETENTION + 1 };

/* Its word in the settings. */
const char *stg_alert_name(stg_alert a);
/* STG_NOT_FOUND: no such word. */
stg_status stg_alert_find(const char *name, stg_alert *a);

#define STG_ALERT_BIT(alert) (1u << (alert))
enum { STG_ALERT_ALL = (1 << STG_ALERT_COUNT) - 1 };

/* `10 failures in 5m`: so many dead letters in so long. */
typedef struct stg_alert_threshold {
    uint32_t failures; /* 1 to 10^9; 0: never */
    stg_ns window;     /* 1 s to 1 d */
} stg_alert_threshold;

/* Reads `10 failures in 5m`, `1 failure in 10s` or `off`. Returns STG_INVALID
 * with what was found and what was expected. */
stg_status stg_alert_threshold_read(const char *text, stg_alert_threshold *t,
                                    stg_error *err);

/* -- receivers: the ways to tell ------------------------------------------- */

typedef enum stg_receiver_type {
    STG_RECEIVER_SLACK,     /* `slack`: an incoming webhook of Slack */
    STG_RECEIVER_MAIL,      /* `mail`: SMTP */
    STG_RECEIVER_WEBHOOK,   /* `webhook`: JSON by POST */
    STG_RECEIVER_TEAMS,     /* `teams`: an incoming webhook of its Workflows */
    STG_RECEIVER_PAGERDUTY, /* `pagerduty`: its Events API v2 */
    STG_RECEIVER_OPSGENIE,  /* `opsgenie`: its Alert API */
    STG_RECEIVER_TEMPLATE,  /* `template`: a POST of a body of one's own */
} stg_receiver_type;

enum { STG_RECEIVER_TYPES = STG_RECEIVER_TEMPLATE + 1 };

/* Whether it is told each alert by itself (alerts/event.h). */
static inline bool stg_receiver_is_of_events(stg_receiver_type type)
{
    return type >= STG_RECEIVER_PAGERDUTY;
}

typedef enum stg_alert_starttls {
    STG_STARTTLS_REQUIRED, /* `required`: no mail without it */
    STG_STARTTLS_OPTIONAL, /* `optional`: where the server offers it */
    STG_STARTTLS_NONE,     /* `none`: in the clear */
} stg_alert_starttls;

typedef struct stg_alert_header {
    const char *name;
    const char *value; /* or: */
    const char *file;  /* the file that has the value, a secret */
} stg_alert_header;

typedef struct stg_alert_tag {
    const char *name, *value;
} stg_alert_tag;

typedef struct stg_alert_receiver_options {
    const char *name; /* 1 to 64 of A-Z a-z 0-9 . _ -, its own */
    stg_receiver_type type;

    const char *url; /* smtp://HOST[:PORT], smtps://...; the others: http(s)://.
                        Those of Slack and Teams are secrets: only by file.
                        PagerDuty, Opsgenie: NULL is the service's own */
    const char *url_file;
    const char *key_file; /* pagerduty: routing key; opsgenie: API key */
    const char *body;     /* template: with {field}s, see alerts/event.h */
    const char *ca_file;  /* PEM; NULL: the system's */
    const char *proxy;    /* http://[user:password@]host:port; NULL: none */
    stg_ns timeout;       /* of one attempt, 1 s to 1 m: 10 s */

    /* -- webhook, template */
    const stg_alert_header *headers;
    size_t header_count;

    stg_sign_options sign;
    const stg_sign_secret *secrets;
    size_t secret_count;

    /* -- mail */
    stg_alert_starttls starttls;      /* of smtp:// */
    const char *user, *password_file; /* NULL: no login */
    const char *from;
    const char *const *to;
    size_t to_count; /* 1 to 100 */

    /* -- which of them */
    uint32_t alerts; /* STG_ALERT_BIT()s: all. What is in no target of its own
                        (the store, all targets together) is not filtered by
                        targets and tags */
    const char *const *targets; /* names; none: of every target */
    size_t target_count;
    const stg_alert_tag *tags; /* the target has one of them; none: any */
    size_t tag_count;
} stg_alert_receiver_options;

/* The URL, where it is in no file. */
const char *stg_receiver_url(const stg_alert_receiver_options *o);

/* Whether its body is JSON: no header of it has another Content-Type. */
bool stg_receiver_is_json(const stg_alert_receiver_options *o);

/* The header of that name; NULL: it has none of its own. */
const stg_alert_header *stg_receiver_header(const stg_alert_receiver_options *o,
                                            const char *name);

/* 10 s, STARTTLS required, all alerts. */
stg_alert_receiver_options
stg_alert_receiver_options_default(stg_receiver_type type);

/* -- all of it ------------------------------------------------------------- */

typedef struct stg_alert_options {
    stg_alert_threshold threshold;     /* of one target: 10 failures in 5m */
    stg_alert_threshold threshold_all; /* of all together: the same */
    uint32_t alerts;        /* STG_ALERT_BIT()s that are told at all: all */
    uint64_t lag_messages;  /* a lane is this far behind; 0: never: 100000 */
    stg_ns lag_time;        /* or its oldest message is this old; STG_NEVER:
                               10 m */
    stg_ns certificate;     /* is valid for less than this: 14 d; 0: never */
    stg_ns interval;        /* between two messages of one alert of one target,
                               1 m to 7 d: 15 m */
    stg_ns repeat_interval; /* of what goes on unchanged, interval to 365 d;
                               STG_NEVER: not again: 4 h */
    stg_ns group_wait;      /* what comes in this time goes in one message, 0 to
                               10 m: 5 s */
    stg_ns min_interval;  /* between messages to one receiver, 0 to 1 h: 1 m */
    stg_ns resolve_after; /* it is over when nothing came for so long, 0 to
                               1 d: 1 m */
    bool send_resolved;   /* that it is over: true */
    const char *hub_name; /* in messages; NULL: the machine's name */
    const stg_alert_receiver_options *receivers;
    size_t receiver_count; /* 0 to 32: none, and nobody is told */
} stg_alert_options;

enum { STG_ALERT_RECEIVERS_MAX = 32 };

/* The values above. */
stg_alert_options stg_alert_options_default(void);

/* What is wrong with them. */
typedef struct stg_alert_flaw {
    char path[64];   /* "interval", "receivers[1].to" */
    stg_error error; /* "expected 1m to 7d" */
} stg_alert_flaw;

/* Checks the ranges above, and what a receiver needs and cannot use. Opens no
 * file. Returns STG_OK, or STG_INVALID with the first flaw, which may be
 * NULL. */
stg_status stg_alert_options_check(const stg_alert_options *o,
                                   stg_alert_flaw *flaw);

/* The receiver of a message to the owner of a target, which is a mail address,
 * or an http(s) URL for JSON. A mail goes as those of the first receiver of type
 * mail in o; to is left out, and all texts are lent. Returns STG_INVALID with words
 * for what is neither, and for a mail where there is no such receiver. */
stg_status stg_alert_owner_options(const stg_alert_options *o,
                                   const char *owner,
                                   stg_alert_receiver_options *made,
                                   stg_error *err);

/* -- secrets out of files: the URL of a webhook, a password ---------------- */

enum { STG_SECRET_MAX = 4096 };

/* The file's text without blanks and ends of lines around it, to be given to
 * stg_secret_free(). Returns STG_IO or STG_INVALID with words that name the
 * file and never what is in it: it cannot be read, is empty, longer than
 * STG_SECRET_MAX, of several lines, or has control bytes. */
stg_status stg_secret_read(const char *path, char **secret, stg_error *err);

/* Wipes it first. NULL is none. */
void stg_secret_free(char *secret);

#endif
