/* stagger sink: a leaf for trying things, which answers as it is told. */
#include "cli/sink/sink.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/sink/server.h"

static const char who[] = "stagger sink";

static const char help[] =
    "usage: stagger sink [OPTIONS]\n"
    "\n"
    "Receives HTTP requests and answers as it is told: a target to try things\n"
    "on, and to measure against. Bodies are read to any size and not kept.\n"
    "Without options every request gets 200.\n"
    "\n"
    "  -l, --listen [A:]P    the address and port (127.0.0.1:9000); port 0 is\n"
    "                        any. The first line printed says which. Or\n"
    "                        unix:/path\n"
    "  -r, --reply LIST      what the attempts of a message get, in order:\n"
    "                        503x2,200 is 503 twice and then 200. An item is a\n"
    "                        status, reset or hang; the last one repeats\n"
    "      --random LIST     or by chance, with weights: 200:95,503:4,reset:1\n"
    "      --seed N          of that chance, and of --delay (1)\n"
    "  -d, --delay D[-D]     wait before each answer: 10ms, or 5ms-50ms\n"
    "      --retry-after W   with 429 and 503: seconds, date:SECONDS for a date\n"
    "                        that far ahead, or a date of HTTP\n"
    "      --hang            read, and never answer: --reply hang\n"
    "      --reset           read, and reset the connection: --reply reset\n"
    "      --tls-cert FILE   serve HTTPS with this certificate and its chain (PEM)\n"
    "      --tls-key FILE    and this key; both are wanted\n"
    "      --close           close the connection behind each answer\n"
    "  -n, --count N         end after N requests\n"
    "      --log FILE        append a JSON object a line for each request\n"
    "  -q, --quiet           no count on the terminal\n"
    "  -h, --help            this text\n"
    "\n"
    "Attempts are counted by path and Stagger-Message, or Idempotency-Key;\n"
    "requests with neither count as one message. The last 1000000 messages are\n"
    "remembered. SIGINT and SIGTERM end it, with a summary.\n"
    "\n"
    "Exit code: 0; 1 if it cannot listen, or write the log; 2 for an option\n"
    "that is wrong.\n"
    "\n"
    "  stagger sink --reply 503x2,200\n"
    "  stagger sink --listen 0 --random 200:95,503:5 --delay 5ms-50ms\n"
    "  stagger sink --reply 429 --retry-after 3 --log receipts.jsonl\n";

enum { EXIT_FAILED = 1 };

static int refuse(const char *option, const char *found, const char *wanted)
{
    stg_options_complain(who, "--%s=%s: %s", option, found, wanted);
    return STG_EXIT_USAGE;
}

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
                      least == 0 ? "wanted 0 to 4294967295"
                                 : "wanted 1 to 4294967295");
    *number = read;
    return 0;
}

static int read_after(sink *s)
{
    const char *wrong = stg_sink_replies_after(&s->replies, optarg);

    return wrong == NULL ? 0 : refuse("retry-after", optarg, wrong);
}

enum { RANDOM = 256, SEED, AFTER, HANG, RESET, CLOSE, LOG, CERT, KEY };

/* Returns 0, an exit code, or -1 where the help was asked for. */
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
                      "wanted a duration, like 10ms, or a range, like "
                      "5ms-50ms");
    case AFTER:
        return read_after(s);
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
    case 'q':
        o->is_quiet = true;
        return 0;
    default: // 'h'
        return -1;
    }
}

static int read_arguments(sink *s, int argc, char **argv)
{
    static const struct option options[] = {
        {"listen", required_argument, NULL, 'l'},
        {"reply", required_argument, NULL, 'r'},
        {"random", required_argument, NULL, RANDOM},
        {"seed", required_argument, NULL, SEED},
        {"delay", required_argument, NULL, 'd'},
        {"retry-after", required_argument, NULL, AFTER},
        {"hang", no_argument, NULL, HANG},
        {"reset", no_argument, NULL, RESET},
        {"close", no_argument, NULL, CLOSE},
        {"count", required_argument, NULL, 'n'},
        {"tls-cert", required_argument, NULL, CERT},
        {"tls-key", required_argument, NULL, KEY},
        {"log", required_argument, NULL, LOG},
        {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int code =
        stg_options_walk(argc, argv, "l:r:d:n:qh", options, read_option, s);

    if (code != 0)
        return code;
    if (optind < argc) {
        stg_options_complain(who, "%s: wanted options only", argv[optind]);
        return STG_EXIT_USAGE;
    }
    if ((s->o->tls_cert == NULL) != (s->o->tls_key == NULL)) {
        stg_options_complain(who,
                             "--tls-cert without --tls-key, or the other "
                             "way round: HTTPS wants both");
        return STG_EXIT_USAGE;
    }
    return s->replies.count > 0 ? 0 : read_replies(s, "reply", "200");
}

static int finish(sink *s, stg_status status, const stg_error *err)
{
    stg_sink_tally_finish(&s->tally);
    if (status != STG_OK)
        stg_options_complain(who, "%s", err->text);
    stg_sink_tally_sum(&s->tally, s->seen.count, stdout);
    return stg_options_finish(who, status == STG_OK ? 0 : EXIT_FAILED);
}

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

static int run(sink *s)
{
    int error = stg_sink_log_open(&s->log, s->o->log), code;

    if (error != 0) {
        stg_options_complain(who, "--log=%s: %s", s->o->log, strerror(error));
        return EXIT_FAILED;
    }
    if (!stg_sink_seen_init(&s->seen)) {
        stg_options_complain(who, "there is no memory");
        code = EXIT_FAILED;
    } else {
        stg_sink_replies_make(&s->replies);
        code = serve(s);
    }
    stg_sink_log_close(&s->log);
    stg_sink_seen_close(&s->seen);
    return code;
}

int stg_cli_sink(int argc, char **argv)
{
    sink_options o = {.listen = "127.0.0.1:9000", .count = UINT64_MAX};
    sink *s = calloc(1, sizeof *s); // large: buffers are inside
    int code;

    if (s == NULL) {
        stg_options_complain(who, "there is no memory");
        return EXIT_FAILED;
    }
    s->o = &o;
    s->rng = stg_rng_seed(1);
    code = read_arguments(s, argc, argv);
    if (code == 0)
        code = run(s);
    else if (code == -1) {
        fputs(help, stdout);
        code = stg_options_finish(who, 0);
    }
    free(s);
    return code;
}
