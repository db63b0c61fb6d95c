/* stagger sink: a target to test with. Here are its options; replies.c decides
 * what a request gets, server.c receives it.
 *
 * --reply, --random, --hang and --reset all make the one list of answers, and
 * exclude each other; without any of them the list is "200". The answers are
 * written out in run() after all options are read, since --retry-after may
 * stand before or behind them. */
#include "cli/sink/sink.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"

static const char who[] = "stagger sink";

enum { EXIT_FAILED = 1 };

enum { RANDOM = 256, SEED, AFTER, HANG, RESET, CLOSE, LOG, CERT, KEY, VERIFY };

static const stg_option options[] = {
    {"-l, --listen [A:]P",
     "address and port (127.0.0.1:9000), or unix:/path; port 0 is "
     "any free one, which the first line printed names",
     0, NULL},
    {"-r, --reply LIST",
     "the answers to the attempts of a message, in order: 503x2,200 "
     "is 503 twice, then 200. An item is a status, reset or hang; "
     "the last one repeats",
     0, NULL},
    {"--random LIST", "random answers, with weights: 200:95,503:4,reset:1",
     RANDOM, NULL},
    {"--seed N", "seed of --random and --delay (1)", SEED, NULL},
    {"-d, --delay D[-D]", "wait before each answer: 10ms, or 5ms-50ms", 0,
     NULL},
    {"--retry-after W",
     "with 429 and 503: seconds, date:SECONDS for a date so far "
     "ahead, or an HTTP date",
     AFTER, NULL},
    {"--hang", "read the request and never answer: --reply hang", HANG, NULL},
    {"--reset", "read it and reset the connection: --reply reset", RESET, NULL},
    {"--tls-cert FILE", "serve HTTPS with this certificate and its chain, PEM",
     CERT, NULL},
    {"--tls-key FILE", "and this key, PEM", KEY, NULL},
    {"--verify SECRET",
     "check signatures (Webhook-Signature, X-Hub-Signature-256, "
     "Stripe-Signature, Signature of RFC 9421): SECRET is a file with one, or "
     "with a key in PEM, or begins with whsec_, whsk_ or whpk_; of several any will do. What does not hold gets 401, and "
     "why",
     VERIFY, NULL},
    {"--close", "close the connection after each answer", CLOSE, NULL},
    {"-n, --count N", "end after N requests", 0, NULL},
    {"--log FILE", "append a JSON object for each request, one a line", LOG,
     NULL},
    {"-q, --quiet", "no counts on the terminal", 0, NULL},
    {.flag = NULL},
};

static const stg_usage usage = {
    .head =
        "usage: stagger sink [OPTIONS]\n"
        "\n"
        "A test target: it receives HTTP requests and answers them as the options say.\n"
        "Bodies of any size are read and not kept, but with --verify until they are\n"
        "whole. Without options every request gets 200.\n"
        "\n",
    .options = options,
    .tail =
        "\n"
        "Attempts are counted by path and Stagger-Message, or Idempotency-Key;\n"
        "requests with neither count as one message. The last 1000000 messages are\n"
        "remembered. SIGINT and SIGTERM end it, with a summary.\n"
        "\n"
        "Exit code: 0; 1 if it cannot listen, or write the log; 2 for bad options.\n"
        "\n"
        "  stagger sink --reply 503x2,200\n"
        "  stagger sink --listen 0 --random 200:95,503:5 --delay 5ms-50ms\n"
        "  stagger sink --reply 429 --retry-after 3 --log receipts.jsonl\n"
        "  stagger sink --verify shop.secret\n",
};

static int refuse(const char *option, const char *found, const char *expected)
{
    stg_options_complain(who, "--%s=%s: %s", option, found, expected);
    return STG_EXIT_USAGE;
}

/* One time, or two with the shorter first. */
static bool read_delay(const char *text, sink_options *o)
{
    stg_reader rest = {text, text + strlen(text)};
    stg_reader least = stg_read_until(&rest, '-');
    bool is_range = least.end != rest.end;

    if (!stg_read_duration(&least, &o->delay_min) ||
        !stg_reader_is_empty(&least))
        return false;
    o->delay_max = o->delay_min;
    return !is_range ||
           (stg_read_duration(&rest, &o->delay_max) &&
            stg_reader_is_empty(&rest) && o->delay_min <= o->delay_max);
}

/* What decides about the answers; once only. */
static int read_replies(sink *s, const char *option, const char *text)
{
    const char *wrong;

    if (s->replies.count > 0)
        return refuse(option, text,
                      "--reply, --random, --hang and --reset exclude each "
                      "other");
    wrong =
        stg_sink_replies_read(&s->replies, text, strcmp(option, "random") == 0);
    return wrong == NULL ? 0 : refuse(option, text, wrong);
}

static int read_number(const char *option, uint64_t least, uint64_t *number)
{
    uint32_t read;

    if (!stg_options_read_int(optarg, (uint32_t)least, UINT32_MAX, &read))
        return refuse(option, optarg,
                      least == 0 ? "expected 0 to 4294967295"
                                 : "expected 1 to 4294967295");
    *number = read;
    return 0;
}

/* A file that is there and cannot be read is another thing than a bad option. */
static int read_verify(sink *s)
{
    stg_error err;
    stg_status status = stg_sink_verify_with(s, optarg, &err);

    if (status == STG_OK)
        return 0;
    stg_options_complain(who, "%s", err.text);
    return status == STG_INVALID ? STG_EXIT_USAGE : EXIT_FAILED;
}

static int read_after(sink *s)
{
    const char *wrong = stg_sink_replies_after(&s->replies, optarg);

    return wrong == NULL ? 0 : refuse("retry-after", optarg, wrong);
}

/* Only checks and notes: what needs several options is done in run(). 'q' is
 * the last, as getopt gives nothing that the table does not have. */
static int read_option(void *ctx, int option)
{
    sink *s = ctx;
    sink_options *o = s->o;
    uint64_t seed = 0;

    switch (option) {
    case 'l':
        o->listen = optarg;
        return 0;
    case 'r':
        return read_replies(s, "reply", optarg);
    case RANDOM:
        return read_replies(s, "random", optarg);
    case HANG:
        return read_replies(s, "hang", "hang");
    case RESET:
        return read_replies(s, "reset", "reset");
    case SEED:
        if (read_number("seed", 0, &seed) != 0)
            return STG_EXIT_USAGE;
        s->rng = stg_rng_seed(seed);
        return 0;
    case 'd':
        if (read_delay(optarg, o))
            return 0;
        return refuse("delay", optarg,
                      "expected a time, such as 10ms, or a range, such as "
                      "5ms-50ms");
    case AFTER:
        return read_after(s);
    case VERIFY:
        return read_verify(s);
    case CLOSE:
        o->is_closing = true;
        return 0;
    case 'n':
        return read_number("count", 1, &o->count);
    case CERT:
        o->tls_cert = optarg;
        return 0;
    case KEY:
        o->tls_key = optarg;
        return 0;
    case LOG:
        o->log = optarg;
        return 0;
    default: // 'q'
        o->is_quiet = true;
        return 0;
    }
}

static int read_arguments(sink *s, int argc, char **argv)
{
    stg_arguments none;
    int code = stg_options_read(&usage, argc, argv, read_option, s, &none);

    if (code != 0)
        return code;
    if ((s->o->tls_cert == NULL) != (s->o->tls_key == NULL))
        return stg_options_refuse(who,
                                  "--tls-cert and --tls-key need each other");
    return s->replies.count > 0 ? 0 : read_replies(s, "reply", "200");
}

/* The summary is printed after an error, too, since what was received until
 * then is true. */
static int finish(sink *s, stg_status status, const stg_error *err)
{
    stg_sink_tally_finish(&s->tally);
    if (status != STG_OK)
        stg_options_complain(who, "%s", err->text);
    stg_sink_tally_sum(&s->tally, s->seen.count, stdout);
    return stg_options_finish(who, status == STG_OK ? 0 : EXIT_FAILED);
}

/* STG_INVALID is an option that is wrong, anything else a port or a file that
 * cannot be used now: the exit codes differ. */
static int serve(sink *s)
{
    stg_error err;
    stg_status status = stg_sink_server_open(s, &err);
    int code;

    if (status != STG_OK) {
        stg_options_complain(who, "%s", err.text);
        return status == STG_INVALID ? STG_EXIT_USAGE : EXIT_FAILED;
    }
    code = finish(s, stg_sink_server_run(s, &err), &err);
    stg_sink_server_close(s);
    return code;
}

/* The log is opened before the port, so that nothing is received that could not
 * be logged. */
static int run(sink *s)
{
    int error = stg_sink_log_open(&s->log, s->o->log), code;

    if (error != 0) {
        stg_options_complain(who, "--log=%s: %s", s->o->log, strerror(error));
        return EXIT_FAILED;
    }
    if (!stg_sink_seen_init(&s->seen)) {
        stg_options_complain(who, "out of memory");
        code = EXIT_FAILED;
    } else {
        stg_sink_replies_make(&s->replies);
        code = serve(s);
    }
    stg_sink_log_close(&s->log);
    stg_sink_seen_close(&s->seen);
    return code;
}

/* Random draws have seed 1 unless --seed says otherwise: a run can be
 * repeated. */
int stg_cli_sink(int argc, char **argv)
{
    sink_options o = {.listen = "127.0.0.1:9000", .count = UINT64_MAX};
    sink *s = calloc(1, sizeof *s); // large: buffers are inside
    int code;

    if (s == NULL) {
        stg_options_complain(who, "out of memory");
        return EXIT_FAILED;
    }
    s->o = &o;
    s->rng = stg_rng_seed(1);
    code = read_arguments(s, argc, argv);
    if (code == 0)
        code = run(s);
    stg_sink_verify_close(s);
    free(s);
    return code;
}
