/* stagger send: publishes a file, or each of its lines, to a hub.
 *
 * Here are the options, their checks, and what is said at the end; publisher.c
 * does the work. The id of the run exists before anything is sent, given or
 * random, so that a run that failed can name the --id that makes a repetition
 * safe.
 *
 * The trap is that the idempotency key of a line is the id and the line's
 * number. A change that numbers lines otherwise, such as one that does not
 * count empty lines, makes the repetition of an older run publish its lines
 * twice. */
#include "cli/send/send.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stagger/key.h>
#include <stagger/text.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/say.h"
#include "host/wall.h"
#include "http/header.h"
#include "ingress/batch.h"
#include "kafka/topic.h"
#include "store/parcel.h"

static const char who[] = "stagger send";

static const char policy_of_whole[] =
    "backend cap=5s attempts=20 attempt-timeout=30s";

/* A pipe cannot be read twice: while the hub is away or full, its producer
 * waits. */
static const char policy_of_lines[] =
    "backend cap=5s attempts=unlimited deadline=none budget=none "
    "attempt-timeout=30s";

enum {
    LINES = STG_REMOTE_NEXT,
    NDJSON,
    TOPIC,
    ID,
    NO_ID,
    NOT_BEFORE,
    EXPIRES,
    IN_FLIGHT,
    EXIT_REFUSED = 1
};

static const stg_option options[] = {
    STG_REMOTE_OPTIONS(NULL),
    {"--lines", "each line is a message, in batches; empty lines are skipped",
     LINES, NULL},
    {"--ndjson",
     "each line is a message as a JSON object: body, body_base64 or json, and "
     "optionally key, content_type, headers, idempotency_key, not_before, expires",
     NDJSON, NULL},
    {"--topic NAME", "of a hub that reads several topics of Kafka: which one",
     TOPIC, NULL},
    {"-k, --key KEY", "the ordering key", 0, NULL},
    {"-t, --type TYPE", "the content type", 0, NULL},
    {"-H, --header 'N: V'",
     "a header that goes with the message; again for more; what the hub would "
     "drop is refused",
     0, NULL},
    {"--not-before TIME",
     "no target gets it before 2026-03-01T12:00:00Z, or before some time from "
     "now, like 10m; 30d at most",
     NOT_BEFORE, NULL},
    {"--expires TIME",
     "no attempt begins from then on: what is not delivered is a dead letter",
     EXPIRES, NULL},
    {"--id KEY",
     "the idempotency key; with --lines and --ndjson each line has KEY-NUMBER "
     "(default: random)",
     ID, NULL},
    {"--no-id",
     "no idempotency keys, which a hub with Kafka and a file as its store does "
     "not take: a retry may publish a message twice",
     NO_ID, NULL},
    {"--in-flight N",
     "batches under way at once, 1 to 64 (4, or 1 with --key and --ndjson: 1 "
     "keeps the order)",
     IN_FLIGHT, NULL},
    {"-p, --policy P",
     "a preset or a policy text (default: backend cap=5s attempt-timeout=30s, "
     "and attempts=20; with --lines and --ndjson for as long as the hub is "
     "away or full)",
     0, NULL},
    {"-q, --quiet", "print no ids and no sum", 0, NULL},
    {.flag = NULL},
};

static const stg_usage usage = {
    .head =
        "usage: stagger send [OPTIONS] [FILE]\n"
        "\n"
        "Publishes FILE, or standard input (also -), to a hub: as one message, or\n"
        "each line as one. Faults of the network, 429, 5xx and the like are retried\n"
        "by the policy, with idempotency keys, so that nothing is published twice.\n"
        "\n",
    .options = options,
    .tail =
        "\n"
        "Prints the id of the message, or how many messages were accepted, with the\n"
        "ids of the first and the last line. A run that failed may be repeated with\n"
        "the --id that it names: what was accepted before is not published again.\n"
        "\n"
        "Exit code: 0 if all was accepted; 1 if something was refused or given up;\n"
        "2 for an option or a file that is wrong; 128 + N if signal N ended it.\n"
        "\n"
        "  stagger send --type application/json order.json\n"
        "  echo hello | stagger send --key greetings\n"
        "  journalctl -f | stagger send --lines\n"
        "  stagger send --hub http://127.0.0.1:8080 --lines events.log\n",
    .arguments_max = 1,
};

typedef struct settings {
    send_options o;
    const char *policy_text;
    bool is_quiet;
} settings;

static int refuse(const char *option, const char *found, const char *expected)
{
    stg_options_complain(who, "%s%s%s: %s", option, found[0] == '\0' ? "" : "=",
                         found, expected);
    return STG_EXIT_USAGE;
}

/* Without the value, which may be a secret. */
static int refuse_header(stg_span name)
{
    static const struct {
        const char *name, *instead;
    } own[] = {
        {"Content-Type", "say --type"},
        {"Stagger-Key", "say --key"},
        {"Idempotency-Key", "say --id"},
        {STG_NOT_BEFORE, "say --not-before"},
        {STG_EXPIRES, "say --expires"},
        {"Authorization", "name a file with the token: --token-file"},
    };
    const char *why =
        "no hub keeps this header: it belongs to the connection, to the "
        "sender or to the hub";
    char text[80];

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (stg_header_equal(name, own[i].name))
            why = own[i].instead;
    snprintf(text, sizeof text, "%.*s", (int)name.size, name.at);
    return refuse("--header", text, why);
}

/* A header that no hub ever keeps is refused here, before anything is sent. The
 * spans point into argv, which lives as long as the process. */
static int read_header(send_options *o, const char *text)
{
    const char *colon = strchr(text, ':');
    send_header *h = &o->headers[o->header_count];

    if (o->header_count == SEND_HEADERS_MAX)
        return refuse("--header", text, "64 are the most");
    if (colon == NULL)
        return refuse("--header", text, "expected 'Name: value'");
    h->name = (stg_span){text, (size_t)(colon - text)};
    h->value = stg_span_of(colon + 1 + strspn(colon + 1, " \t"));
    if (!stg_header_is_name(h->name) || !stg_header_is_value(h->value))
        return refuse("--header", text,
                      "expected 'Name: value', as HTTP has them");
    if (stg_header_is_never_kept(h->name))
        return refuse_header(h->name);
    o->header_count++;
    return 0;
}

/* 200 bytes, not the 256 of a key: the number of the line is added to it. */
static int read_id(send_options *o, const char *text)
{
    if (strlen(text) > SEND_ID_MAX || !stg_parcel_is_key(stg_span_of(text)))
        return refuse("--id", text,
                      "expected 1 to 200 bytes that may stand in a header");
    memcpy(o->id, text, strlen(text) + 1);
    o->has_own_id = true;
    return 0;
}

static int read_form(send_options *o, send_form form)
{
    if (o->form != SEND_WHOLE && o->form != form)
        return refuse("--lines and --ndjson", "", "expected one of them");
    o->form = form;
    return 0;
}

static int read_option(void *ctx, int option)
{
    settings *s = ctx;
    send_options *o = &s->o;

    switch (option) {
    case LINES:
        return read_form(o, SEND_LINES);
    case NDJSON:
        return read_form(o, SEND_NDJSON);
    case TOPIC:
        o->topic = optarg;
        return stg_topic_is_name(stg_span_of(optarg))
                   ? 0
                   : refuse("--topic", optarg,
                            "expected 1 to 249 of A-Z a-z 0-9 . _ -");
    case 'k':
        o->key = optarg;
        return stg_parcel_is_key(stg_span_of(optarg))
                   ? 0
                   : refuse("--key", optarg,
                            "expected 1 to 256 bytes that may stand in a "
                            "header");
    case 't':
        o->type = optarg;
        return optarg[0] != '\0' && stg_header_is_value(stg_span_of(optarg))
                   ? 0
                   : refuse("--type", optarg, "expected a media type");
    case 'H':
        return read_header(o, optarg);
    case NOT_BEFORE:
        o->not_before = optarg;
        return 0;
    case EXPIRES:
        o->expires = optarg;
        return 0;
    case ID:
        return read_id(o, optarg);
    case NO_ID:
        o->has_no_id = true;
        return 0;
    case IN_FLIGHT:
        return stg_options_read_int(optarg, 1, SEND_IN_FLIGHT_MAX,
                                    &o->in_flight)
                   ? 0
                   : refuse("--in-flight", optarg, "expected 1 to 64");
    case 'p':
        s->policy_text = optarg;
        return 0;
    case 'q':
        s->is_quiet = true;
        return 0;
    default:
        return stg_remote_take(&o->remote, option, optarg) ? 0 : STG_EXIT_USAGE;
    }
}

/* The hub reads them when they come: a time from now is one from then. */
static int check_times(const send_options *o)
{
    stg_span not_before = {NULL, 0}, expires = {NULL, 0};
    const char *expected, *found;
    bool is_expires;
    stg_times t;

    if (o->not_before != NULL)
        not_before = stg_span_of(o->not_before);
    if (o->expires != NULL)
        expires = stg_span_of(o->expires);
    expected = stg_times_read_both(&t, not_before, expires, stg_wall_now(),
                                   &is_expires);
    found = is_expires ? o->expires : o->not_before;
    if (expected == NULL || found == NULL)
        return 0;
    return refuse(is_expires ? "--expires" : "--not-before", found, expected);
}

/* Checks which options go together, and fills in the defaults. */
static int check_settings(settings *s)
{
    send_options *o = &s->o;
    stg_error err;

    if (o->form == SEND_NDJSON &&
        (o->key != NULL || o->type != NULL || o->header_count > 0 ||
         o->not_before != NULL || o->expires != NULL))
        return refuse("--key, --type, --header, --not-before and --expires", "",
                      "with --ndjson they stand in the lines");
    if (check_times(o) != 0)
        return STG_EXIT_USAGE;
    if (o->has_no_id && o->has_own_id)
        return refuse("--id and --no-id", "", "only one of them");
    if (o->in_flight == 0)
        o->in_flight = o->key != NULL || o->form == SEND_NDJSON ? 1 : 4;
    if (s->policy_text == NULL)
        s->policy_text =
            o->form == SEND_WHOLE ? policy_of_whole : policy_of_lines;
    if (stg_policy_parse(&o->policy, s->policy_text, &err) == STG_OK)
        return 0;
    stg_options_complain(who, "%s", err.text);
    stg_options_point(s->policy_text, err.column);
    return STG_EXIT_USAGE;
}

static int read_arguments(settings *s, int argc, char **argv)
{
    stg_arguments files;
    int code = stg_options_read(&usage, argc, argv, read_option, s, &files);

    if (code != 0)
        return code;
    if (files.count > 0 && strcmp(files.at[0], "-") != 0)
        s->o.file = files.at[0];
    return check_settings(s);
}

static void print_result(const settings *s, const send_result *r)
{
    bool is_whole = s->o.form == SEND_WHOLE;

    if (s->is_quiet)
        return;
    if (is_whole && r->messages > 0)
        stg_say(stdout, "%s\n", r->first);
    else if (!is_whole && r->messages == 0)
        puts("0 messages accepted");
    else if (!is_whole)
        stg_say(stdout, "%" PRIu64 " messages accepted, %s .. %s\n",
                r->messages, r->first, r->last);
}

/* Prints the next step: a refusal is to be mended first, and where nothing was
 * accepted there is nothing to go on with. */
static void advise(const settings *s, const send_result *r)
{
    const char *token =
        stg_token_advice(r->refused, s->o.remote.token_file != NULL);

    if ((!r->has_failed && r->stopped_by == 0) || s->o.has_no_id)
        return;
    if (token[0] != '\0')
        stg_options_complain(who, "%s", token);
    else if (r->refused == 413)
        stg_options_complain(who,
                             "the same again is refused again: publish a "
                             "smaller message, or give the hub more "
                             "memory, of which a message may have 1/32");
    if (r->refused == 0 || r->stopped_by != 0)
        stg_options_complain(who,
                             "to go on without duplicates, repeat it with "
                             "--id %s",
                             s->o.id);
    else if (r->messages > 0)
        stg_options_complain(who,
                             "then repeat it with --id %s: what was accepted "
                             "is not published again",
                             s->o.id);
}

/* A signal comes before a refusal in the exit code, as for a shell. What was
 * accepted is printed in either case. */
static int publish(settings *s, send_input *in)
{
    send_result result;
    stg_error err;
    stg_status status = stg_send_publish(&s->o, in, &result, &err);

    if (status != STG_OK) {
        stg_options_complain(who, "%s", err.text);
        return STG_EXIT_USAGE;
    }
    print_result(s, &result);
    advise(s, &result);
    if (result.stopped_by != 0)
        return 128 + result.stopped_by;
    return stg_options_finish(who, result.has_failed ? EXIT_REFUSED : 0);
}

/* The file is opened before the connection is, so that a wrong name sends
 * nothing. */
static int run(settings *s)
{
    const char *file = s->o.file == NULL ? "standard input" : s->o.file;
    send_input in;
    int error, code;

    if (!s->o.has_own_id && !s->o.has_no_id)
        (void)stg_key_new(s->o.id);
    error = stg_send_input_open(&in, s->o.file);
    if (error != 0)
        return refuse(file, "", strerror(error));
    code = publish(s, &in);
    stg_send_input_close(&in);
    return code;
}

int stg_cli_send(int argc, char **argv)
{
    settings s = {.policy_text = NULL};
    int code = read_arguments(&s, argc, argv);

    return code != 0 ? code : run(&s);
}
