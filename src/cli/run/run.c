/* stagger run: an adapter of the library's loop to a command. An attempt is a
 * process, its outcome an exit code or a timeout, and a wait is a sleep that
 * signals end. Whatever the policy says of exit codes is kept; a policy that does
 * not name them retries all but 126 and 127. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stagger/load.h>
#include <stagger/loop.h>

#include "base/json.h"
#include "base/suggest.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/run/child.h"
#include "plan/plan.h"

enum { EXIT_TIMEOUT = 124, EXIT_OWN = 125, EXIT_CODES = 256 };

enum { JSON = 256 };

static const stg_option options[] = {
    {"-p, --policy P",
     "a preset, a policy text, or a name in --file; every exit code "
     "but 126 and 127 is retried unless it says otherwise (default: "
     "attempts=3, exponential from 200ms with full jitter, "
     "deadline=2m)",
     0, NULL},
    {"-f, --file FILE", "named policies, one a line", 0, NULL},
    {"-o, --on CODES",
     "retry only these exit codes: 1,75-78. A command that signal N "
     "ended has 128 + N, one that ran out of time 124",
     0, NULL},
    {"-t, --timeout D",
     "end an attempt after D: send TERM to the process group of "
     "COMMAND",
     0, NULL},
    {"-k, --kill-after D",
     "send KILL to what is left of the group D later (default: 5s)", 0, NULL},
    {"-v, --verbose",
     "for each retry also a line \"Retry 1 after 131 ms\"; with -q "
     "nothing but these",
     0, NULL},
    {"-q, --quiet", "print nothing", 0, NULL},
    {"--json", "JSON objects on stderr instead of sentences, one a line", JSON,
     NULL},
    {.flag = NULL},
};

static const stg_usage usage = {
    .head =
        "usage: stagger run [OPTIONS] [--] COMMAND [ARGUMENT]...\n"
        "\n"
        "Runs COMMAND until it succeeds (exit code 0) or the policy gives up. COMMAND\n"
        "has stagger's own input and output; what stagger waits for, and why, it prints\n"
        "to stderr. Signals are passed on to COMMAND, and end the retries.\n"
        "\n",
    .options = options,
    .tail =
        "\n"
        "COMMAND finds STAGGER_ATTEMPT (1, 2, ...) and STAGGER_ATTEMPTS_MAX in its\n"
        "environment. A stagger run inside another one makes one attempt, unless its\n"
        "policy says nested=full.\n"
        "\n"
        "Exit code: the last one of COMMAND; 124 if it ran out of time, 126 if it could\n"
        "not be executed, 127 if it was not found, 128 + N if signal N ended it or the\n"
        "wait; 125 for an error of stagger itself.\n"
        "\n"
        "  stagger run -- curl -fsS https://example.org/health\n"
        "  stagger run -p 'attempts=10 fixed base=5s deadline=none' -- make deploy\n"
        "  stagger run -o 75 -t 30s -- sendmail -q\n",
    .arguments_max = INT_MAX,
    .stops_at_word = true,
};

/* The options, and the state of the loop. Its flags are options that can be given together,
 * and two facts about the end: no state hides in them. */
typedef struct run {
    stg_policy policy;
    const char *policy_text;
    const char *file;
    bool retried_codes[EXIT_CODES]; /* of --on */
    stg_ns timeout;                 /* of --timeout; STG_NEVER: none given */
    stg_ns kill_after;              /* from TERM to KILL */
    bool is_quiet;
    bool is_verbose;
    bool is_json;
    char **command;
    child child;
    stg_cancel cancel;
    stg_outcome last;        /* the last failure */
    bool is_left_out;        /* the last exit code, by --on */
    bool is_stopped_waiting; /* by a signal, with no command running */
} run;

static int refuse(const char *what, const char *found, const char *expected)
{
    stg_options_complain("stagger run", "%s%s: %s", what, found, expected);
    return EXIT_OWN;
}

/* The value of an option called `option`. Returns 0 or an exit code. */
static int read_duration(const char *option, stg_ns *duration)
{
    if (stg_options_read_duration(optarg, duration) && *duration > 0)
        return 0;
    return refuse(option, optarg, "expected a time up to 365d, such as 30s");
}

/* 1 or 75-78; moves *at behind it. */
static bool read_range(const char **at, long *first, long *last)
{
    char *end;

    if (**at < '0' || **at > '9')
        return false;
    *first = *last = strtol(*at, &end, 10);
    if (*end == '-' && end[1] >= '0' && end[1] <= '9')
        *last = strtol(end + 1, &end, 10);
    *at = end;
    return *first >= 1 && *first <= *last && *last < EXIT_CODES;
}

/* All or nothing: a list with a mistake selects no code. */
static bool read_codes(const char *text, bool codes[EXIT_CODES])
{
    long first, last;

    memset(codes, 0, EXIT_CODES * sizeof *codes);
    for (;; text++) {
        if (!read_range(&text, &first, &last))
            return false;
        for (long code = first; code <= last; code++)
            codes[code] = true;
        if (*text != ',')
            return *text == '\0';
    }
}

/* The file has named the one of its own that is meant, if any. */
static void hint_preset(const char *name, stg_error *err)
{
    stg_suggestion s = stg_suggestion_begin(name, strlen(name));
    const stg_preset *preset;
    size_t size = strlen(err->text);
    bool has_suggestion = size > 0 && err->text[size - 1] == '?';

    for (size_t i = 0; (preset = stg_preset_at(i)) != NULL; i++)
        stg_suggestion_try(&s, preset->name);
    if (s.name == NULL)
        return;
    size -= has_suggestion;
    snprintf(err->text + size, sizeof err->text - size,
             has_suggestion ? ", or the preset %s?"
                            : ", did you mean the preset %s?",
             s.name);
}

/* A preset or a text; a name in the file first, if there is one. */
static stg_status find_policy(const run *r, stg_policy *policy, stg_error *err)
{
    stg_status status;

    if (r->file == NULL)
        return stg_policy_parse(policy, r->policy_text, err);
    status = stg_policy_load(policy, r->file, r->policy_text, err);
    if (status == STG_NOT_FOUND &&
        stg_policy_parse(policy, r->policy_text, NULL) == STG_OK)
        return STG_OK;
    if (status == STG_NOT_FOUND)
        hint_preset(r->policy_text, err);
    return status;
}

/* The default policy knows nothing of exit codes: a rule that retries them is
 * added, unless the text has one. */
static int read_policy(run *r)
{
    stg_error err;

    r->policy = stg_policy_default();
    if (r->file != NULL && r->policy_text == NULL)
        return refuse("--file without --policy", "",
                      "expected the name of a policy in it");
    if (r->policy_text != NULL && find_policy(r, &r->policy, &err) != STG_OK) {
        stg_options_complain("stagger run", "%s", err.text);
        if (r->file == NULL)
            stg_options_point(r->policy_text, err.column);
        return EXIT_OWN;
    }
    if (r->timeout != STG_NEVER)
        r->policy.attempt_timeout = r->timeout;
    if (stg_exit_rule_add(&r->policy))
        return 0;
    return refuse("the policy has 64 rules and none of them on exit", "",
                  "expected exit in retry= or never=");
}

static int read_option(void *ctx, int option)
{
    run *r = ctx;

    switch (option) {
    case 'p':
        r->policy_text = optarg;
        return 0;
    case 'f':
        r->file = optarg;
        return 0;
    case 'o':
        if (read_codes(optarg, r->retried_codes))
            return 0;
        return refuse("--on=", optarg, "expected exit codes, such as 1,75-78");
    case 't':
        return read_duration("--timeout=", &r->timeout);
    case 'k':
        return read_duration("--kill-after=", &r->kill_after);
    case 'v':
        r->is_verbose = true;
        return 0;
    case 'q':
        r->is_quiet = true;
        return 0;
    default: // JSON
        r->is_json = true;
        return 0;
    }
}

static int read_arguments(run *r, int argc, char **argv)
{
    stg_arguments command;
    int code;

    memset(r->retried_codes, 1, sizeof r->retried_codes);
    code = stg_options_read(&usage, argc, argv, read_option, r, &command);
    if (code != 0) // 2 may be COMMAND's own
        return code == STG_EXIT_USAGE ? EXIT_OWN : code;
    if (command.count == 0)
        return refuse("no command to run", "", "see stagger run --help");
    r->command = command.at;
    return read_policy(r);
}

static const char *name_of(stg_next next)
{
    return next == STG_WAIT ? "wait" : next == STG_DONE ? "done" : "give-up";
}

static void tell_json(run *r, const stg_event *e)
{
    stg_json j = {.to = stderr};
    char cause[STG_CAUSE_MAX];

    stg_json_open_row(&j, NULL);
    stg_json_number(&j, "attempt", e->retry->attempts);
    stg_json_limit(&j, "attempts_max", r->policy.attempts_max);
    if (r->last.fault != STG_FAULT_NONE && e->decision.next != STG_DONE) {
        stg_outcome_cause(&r->last, cause);
        stg_json_string(&j, "cause", cause);
    } else {
        stg_json_null(&j, "cause");
    }
    stg_json_string(&j, "next", name_of(e->decision.next));
    stg_json_string(&j, "why", stg_why_name(e->decision.why));
    if (e->decision.next == STG_WAIT)
        stg_json_number(&j, "wait_ms",
                        stg_ns_sub(e->decision.due_at, e->at) / STG_MS);
    else
        stg_json_null(&j, "wait_ms");
    stg_json_close(&j, '}');
}

static void tell_wait(const run *r, const stg_event *e)
{
    char name[STG_CAUSE_MAX], wait[STG_NS_TEXT_MAX], of[32] = "";

    if (r->policy.attempts_max != STG_UNLIMITED)
        snprintf(of, sizeof of, " of %" PRIu64, r->policy.attempts_max);
    fprintf(stderr, "stagger: attempt %" PRIu32 "%s: %s; next in %s (%s)\n",
            e->retry->attempts, of,
            e->outcome == NULL ? "held back"
                               : stg_outcome_name(e->outcome, name),
            stg_ns_text(stg_ns_sub(e->decision.due_at, e->at), wait),
            stg_why_name(e->decision.why));
}

/* Each wait and the end. As a sentence the end is told by finish(), which knows
 * how long it all took. */
static void tell(run *r, const stg_event *e)
{
    bool is_wait = e->decision.next == STG_WAIT;

    if (r->is_quiet || (!is_wait && e->kind != STG_EVENT_END))
        return;
    if (r->is_json)
        tell_json(r, e);
    else if (is_wait)
        tell_wait(r, e);
}

/* An event may come without an outcome: tell_json() then still has the cause of
 * the last failure. */
static void on_event(void *ctx, const stg_event *e)
{
    run *r = ctx;

    if (e->outcome != NULL && e->outcome->fault != STG_FAULT_NONE)
        r->last = *e->outcome;
    tell(r, e);
    if (r->is_verbose && !r->is_json)
        stg_event_to_stderr(NULL, e);
}

static stg_ns now(void *ctx)
{
    (void)ctx;
    return stg_env_system()->now(NULL);
}

/* A signal in a wait ends the run with 128 + its number; during an attempt the
 * command gets it and its exit code counts. */
static bool sleep_until(void *ctx, stg_ns until_at, const stg_cancel *cancel)
{
    run *r = ctx;

    (void)cancel; // ours, and set below
    if (stg_child_sleep(&r->child, until_at))
        return true;
    r->is_stopped_waiting = true;
    stg_cancel_set(&r->cancel);
    return false;
}

/* A command can see which attempt it is, and a `stagger run` inside it finds
 * out that it is repeated (find_around). */
static void set_environment(const run *r, uint32_t attempt)
{
    char number[24];

    snprintf(number, sizeof number, "%" PRIu32, attempt);
    setenv("STAGGER_ATTEMPT", number, 1);
    snprintf(number, sizeof number, "%" PRIu64,
             stg_ns_min(r->policy.attempts_max, UINT32_MAX));
    setenv("STAGGER_ATTEMPTS_MAX", number, 1);
}

static void tell_not_started(const char *command, int error)
{
    stg_options_complain("stagger run", "%s: %s", command, strerror(error));
    if (strchr(command, '=') != NULL)
        fputs(
            "Quote a policy of several words: --policy 'attempts=3 "
            "base=1s'.\n",
            stderr);
}

/* Runs the command once; *code is what this process would exit with. --on makes
 * codes permanent that it does not list, also that of a timeout. */
static stg_outcome attempt(run *r, const stg_loop *l, int *code)
{
    stg_ns timeout = stg_loop_timeout(l);
    child_end end;
    stg_outcome outcome;

    set_environment(r, l->op.retry.attempts);
    end = stg_child_run(&r->child, r->command,
                        timeout == STG_NEVER ? STG_NEVER
                                             : stg_ns_add(now(NULL), timeout));
    if (end.error != 0 && !r->is_json)
        tell_not_started(r->command[0], end.error);
    if (r->child.stopped_by != 0)
        stg_cancel_set(&r->cancel);
    *code = end.is_timeout ? EXIT_TIMEOUT : end.code;
    outcome = stg_failed_exit(end.code);
    if (end.is_timeout)
        outcome = stg_failed(STG_FAULT_TIMEOUT);
    r->is_left_out = !r->retried_codes[*code] && *code != 0;
    outcome.permanent = outcome.permanent || r->is_left_out;
    return outcome;
}

/* A success at the first attempt says nothing: the output is the command's. */
static void finish(const run *r, stg_loop *l)
{
    bool is_at_once =
        l->op.decision.next == STG_DONE && l->op.retry.attempts == 1;

    if (!r->is_quiet && !r->is_json && !is_at_once)
        fprintf(stderr, "stagger: %s%s\n", stg_loop_text(l),
                r->is_left_out ? ", which --on leaves out" : "");
}

/* A whole number from the environment, 1 to 2^32 - 1; 0 for what is none. */
static uint32_t read_number(const char *name)
{
    const char *text = getenv(name);
    unsigned long long number;
    char *end;

    if (text == NULL || *text < '0' || *text > '9')
        return 0;
    errno = 0;
    number = strtoull(text, &end, 10);
    return *end != '\0' || errno != 0 || number > UINT32_MAX ? 0
                                                             : (uint32_t)number;
}

/* The `stagger run` around this one, which its two variables tell of: one that
 * repeats everything as long as it has attempts left. Else one that is none. */
static stg_retry find_around(stg_policy *repeats)
{
    uint32_t attempt = read_number("STAGGER_ATTEMPT");
    uint32_t attempts_max = read_number("STAGGER_ATTEMPTS_MAX");
    stg_retry around = {.policy = NULL};

    if (attempt == 0 || attempt >= attempts_max)
        return around;
    (void)stg_policy_parse(repeats,
                           "attempts=2 deadline=none "
                           "retry=default,any,local,exit,error",
                           NULL);
    (void)stg_retry_start(&around, repeats, NULL, 0);
    return around;
}

/* The code is that of the last attempt, as if the command had been run alone. A
 * signal that came in a wait replaces it. */
static int run_command(run *r)
{
    stg_policy repeats;
    stg_retry around = find_around(&repeats);
    stg_hook hook = {.on = on_event, .ctx = r};
    stg_env env = {.now = now, .sleep = sleep_until, .ctx = r};
    stg_peer peer;
    stg_loop l;
    int code = EXIT_OWN;

    stg_peer_init(&peer, &r->policy);
    stg_child_init(&r->child, r->kill_after);
    stg_loop_begin(&l, &r->policy,
                   &(stg_with){.peer = &peer,
                               .cancel = &r->cancel,
                               .hook = &hook,
                               .env = &env,
                               .parent = &around});
    while (stg_loop_again(&l))
        stg_loop_report(&l, attempt(r, &l, &code));
    finish(r, &l);
    return r->is_stopped_waiting ? 128 + r->child.stopped_by : code;
}

int stg_cli_run(int argc, char **argv)
{
    run r = {.timeout = STG_NEVER, .kill_after = 5 * STG_S};
    int code = read_arguments(&r, argc, argv);

    return code != 0 ? code : run_command(&r);
}
