/* stagger send: publishes a file, or each of its lines, to a hub. */
#include "cli/send.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <stagger/env.h>
#include <stagger/key.h>
#include <stagger/text.h>

#include "cli/options.h"
#include "cli/send_publisher.h"
#include "cli/verbs.h"
#include "hub/ops/batch.h"
#include "hub/ops/ingress_headers.h"

static const char who[] = "stagger send";

static const char policy_default[] =
    "backend cap=5s attempts=20 attempt-timeout=30s";

static const char help[] =
    "usage: stagger send [OPTIONS] [FILE]\n"
    "\n"
    "Publishes FILE, or standard input (also -), to a hub: as one message, or\n"
    "each line as one. Faults of the network, 429, 5xx and the like are retried\n"
    "by the policy, with idempotency keys, so that nothing is published twice.\n"
    "\n"
    "      --hub URL        of the hub: STAGGER_HUB in the environment, or else\n"
    "                       http://127.0.0.1:8080\n"
    "      --lines          each line is a message, in batches; empty ones are\n"
    "                       none\n"
    "      --ndjson         each line is a message as a JSON object, with body,\n"
    "                       body_base64 or json, and maybe key, content_type,\n"
    "                       headers, idempotency_key\n"
    "  -k, --key KEY        the ordering key\n"
    "  -t, --type TYPE      the content type\n"
    "  -H, --header 'N: V'  a header that goes with the message; again for more\n"
    "      --id KEY         the idempotency key; with --lines and --ndjson each\n"
    "                       line has KEY-NUMBER (default: random)\n"
    "      --in-flight N    batches under way at once, 1 to 64 (4, or 1 with\n"
    "                       --key and --ndjson: 1 keeps the order)\n"
    "  -p, --policy P       a preset or a policy text (default: backend cap=5s\n"
    "                       attempts=20 attempt-timeout=30s)\n"
    "      --token-file F   a file with the token that the hub wants\n"
    "  -q, --quiet          print no ids and no sum\n"
    "  -h, --help           this text\n"
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
    "  stagger send --hub http://127.0.0.1:8080 --lines events.log\n";

enum { EXIT_REFUSED = 1 };

typedef struct settings {
    send_options o;
    const char *policy_text;
    bool is_quiet;
    bool is_help;
} settings;

static int refuse(const char *option, const char *found, const char *wanted)
{
    stg_options_complain(who, "%s%s%s: %s", option, found[0] == '\0' ? "" : "=",
                         found, wanted);
    return STG_EXIT_USAGE;
}

static stg_span span_of(const char *text)
{
    return (stg_span){text, strlen(text)};
}

static int read_header(send_options *o, const char *text)
{
    const char *colon = strchr(text, ':');
    send_header *h = &o->headers[o->header_count];

    if (o->header_count == SEND_HEADERS_MAX)
        return refuse("--header", text, "64 are the most");
    if (colon == NULL)
        return refuse("--header", text, "wanted 'Name: value'");
    h->name = (stg_span){text, (size_t)(colon - text)};
    h->value = span_of(colon + 1 + strspn(colon + 1, " \t"));
    if (!stg_header_is_name(h->name) || !stg_header_is_value(h->value))
        return refuse("--header", text,
                      "wanted 'Name: value', as HTTP has them");
    o->header_count++;
    return 0;
}

static int read_id(send_options *o, const char *text)
{
    if (strlen(text) > SEND_ID_MAX || !stg_batch_is_key(span_of(text)))
        return refuse("--id", text,
                      "wanted 1 to 200 bytes that may stand in a header");
    memcpy(o->id, text, strlen(text) + 1);
    o->has_own_id = true;
    return 0;
}

static int read_form(send_options *o, send_form form)
{
    if (o->form != SEND_WHOLE && o->form != form)
        return refuse("--lines and --ndjson", "", "wanted one of them");
    o->form = form;
    return 0;
}

enum { HUB = 256, LINES, NDJSON, ID, IN_FLIGHT, TOKEN };

static int read_option(void *ctx, int option)
{
    settings *s = ctx;
    send_options *o = &s->o;

    switch (option) {
    case HUB:
        o->hub = optarg;
        return 0;
    case LINES:
        return read_form(o, SEND_LINES);
    case NDJSON:
        return read_form(o, SEND_NDJSON);
    case 'k':
        o->key = optarg;
        return stg_batch_is_key(span_of(optarg))
                   ? 0
                   : refuse("--key", optarg,
                            "wanted 1 to 256 bytes that may stand in a "
                            "header");
    case 't':
        o->type = optarg;
        return optarg[0] != '\0' && stg_header_is_value(span_of(optarg))
                   ? 0
                   : refuse("--type", optarg, "wanted a media type");
    case 'H':
        return read_header(o, optarg);
    case ID:
        return read_id(o, optarg);
    case IN_FLIGHT:
        return stg_options_read_int(optarg, 1, SEND_IN_FLIGHT_MAX,
                                    &o->in_flight)
                   ? 0
                   : refuse("--in-flight", optarg, "wanted 1 to 64");
    case 'p':
        s->policy_text = optarg;
        return 0;
    case TOKEN:
        o->token_file = optarg;
        return 0;
    case 'q':
        s->is_quiet = true;
        return 0;
    default: // 'h'
        s->is_help = true;
        return 0;
    }
}

/* What goes with what, and what stands where nothing was said. */
static int check_settings(settings *s)
{
    send_options *o = &s->o;
    stg_error err;

    if (o->form == SEND_NDJSON &&
        (o->key != NULL || o->type != NULL || o->header_count > 0))
        return refuse("--key, --type and --header", "",
                      "with --ndjson they stand in the lines");
    if (o->in_flight == 0)
        o->in_flight = o->key != NULL || o->form == SEND_NDJSON ? 1 : 4;
    if (stg_policy_parse(&o->policy, s->policy_text, &err) == STG_OK)
        return 0;
    stg_options_complain(who, "%s", err.text);
    stg_options_point(s->policy_text, err.column);
    return STG_EXIT_USAGE;
}

static int read_arguments(settings *s, int argc, char **argv)
{
    static const struct option options[] = {
        {"hub", required_argument, NULL, HUB},
        {"lines", no_argument, NULL, LINES},
        {"ndjson", no_argument, NULL, NDJSON},
        {"key", required_argument, NULL, 'k'},
        {"type", required_argument, NULL, 't'},
        {"header", required_argument, NULL, 'H'},
        {"id", required_argument, NULL, ID},
        {"in-flight", required_argument, NULL, IN_FLIGHT},
        {"policy", required_argument, NULL, 'p'},
        {"token-file", required_argument, NULL, TOKEN},
        {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int code =
        stg_options_walk(argc, argv, "k:t:H:p:qh", options, read_option, s);

    if (code != 0)
        return code;
    if (argc - optind > 1)
        return refuse(argv[optind + 1], "", "wanted one file");
    if (optind < argc && strcmp(argv[optind], "-") != 0)
        s->o.file = argv[optind];
    return s->is_help ? 0 : check_settings(s);
}

/* A name for this run that no other has. */
static void make_id(send_options *o)
{
    const stg_env *env = stg_env_system();
    uint64_t random[2] = {env->random(NULL), env->random(NULL)};
    uint8_t bytes[10];
    char key[STG_KEY_MAX];
    struct timespec t;

    memcpy(bytes, random, sizeof bytes);
    clock_gettime(CLOCK_REALTIME, &t);
    stg_key_make(key, (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000,
                 bytes);
    memcpy(o->id, key, sizeof key);
}

static void print_result(const settings *s, const send_result *r)
{
    bool is_whole = s->o.form == SEND_WHOLE;

    if (s->is_quiet)
        return;
    if (is_whole && r->messages > 0)
        printf("%s\n", r->first);
    else if (!is_whole && r->messages == 0)
        puts("0 messages accepted");
    else if (!is_whole)
        printf("%" PRIu64 " messages accepted, %s .. %s\n", r->messages,
               r->first, r->last);
}

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
    if (result.has_failed || result.stopped_by != 0)
        stg_options_complain(who,
                             "to go on without doubles, repeat it with "
                             "--id %s",
                             s->o.id);
    if (result.stopped_by != 0)
        return 128 + result.stopped_by;
    return stg_options_finish(who, result.has_failed ? EXIT_REFUSED : 0);
}

static int run(settings *s)
{
    const char *file = s->o.file == NULL ? "standard input" : s->o.file;
    send_input in;
    int error, code;

    if (!s->o.has_own_id)
        make_id(&s->o);
    error = stg_send_input_open(&in, s->o.file);
    if (error != 0)
        return refuse(file, "", strerror(error));
    code = publish(s, &in);
    stg_send_input_close(&in);
    return code;
}

int stg_cli_send(int argc, char **argv)
{
    const char *hub = getenv("STAGGER_HUB");
    settings s = {.policy_text = policy_default};
    int code;

    s.o.hub = hub != NULL && hub[0] != '\0' ? hub : "http://127.0.0.1:8080";
    code = read_arguments(&s, argc, argv);
    if (code != 0)
        return code;
    if (s.is_help) {
        fputs(help, stdout);
        return stg_options_finish(who, 0);
    }
    return run(&s);
}
