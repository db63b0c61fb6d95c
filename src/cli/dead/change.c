/* stagger dead replay and drop. A dry run first shows what would change, and on a
 * terminal asks; then the hub does it. Without any condition it is refused,
 * unless --all says that all are meant. A replay is followed to its end, since
 * it may stop early: where too many deliveries of a target wait already, or the
 * store is full. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "cli/dead/dead.h"
#include "cli/options.h"
#include "cli/remote.h"
#include "cli/say.h"
#include "cli/terminal.h"

enum { EXIT_NO = 1, POLL_MS = 200 };

typedef struct change {
    const char *name; /* of the command, and of the path */
    const char *would, *question, *nothing;
} change;

static const change replay = {"replay", "would be sent again", "Send",
                              "nothing was sent again"};
static const change drop = {"drop", "would be dropped", "Drop",
                            "nothing was dropped"};

static const char who[] = "stagger dead";

/* -- which ----------------------------------------------------------------- */

static json_t *time_of(stg_ns wall)
{
    char text[STG_SQL_TIME_MAX];

    return json_string(stg_sql_time(wall, text));
}

static json_t *ids_of(const dead_options *o)
{
    json_t *ids = json_array();

    for (size_t i = 0; i < o->id_count; i++)
        (void)json_array_append_new(ids, json_integer((json_int_t)o->ids[i]));
    return ids;
}

/* The hub refuses a choice without a condition; "all" is sent only when no
 * other condition is, which check() has made sure the user said. */
static json_t *choice_of(const dead_options *o, bool is_dry_run)
{
    json_t *c = json_object();

    if (o->id_count > 0)
        (void)json_object_set_new(c, "ids", ids_of(o));
    if (o->filter.target != NULL)
        (void)json_object_set_new(c, "target", json_string(o->filter.target));
    if (o->cause_word != NULL)
        (void)json_object_set_new(c, "cause", json_string(o->cause_word));
    if (o->filter.since > 0)
        (void)json_object_set_new(c, "since", time_of(o->filter.since));
    if (o->filter.until > 0)
        (void)json_object_set_new(c, "until", time_of(o->filter.until));
    if (json_object_size(c) == 0)
        (void)json_object_set_new(c, "all", json_true());
    (void)json_object_set_new(c, "dry_run", json_boolean(is_dry_run));
    return c;
}

/* The dry run and the change are the same request but for one field, so that
 * both choose the same letters. */
static bool call(stg_remote *r, const change *c, const dead_options *o,
                 bool is_dry_run, json_t **answer)
{
    json_t *choice = choice_of(o, is_dry_run);
    char path[64];
    bool is_well;

    snprintf(path, sizeof path, "/v1/dead-letters/%s", c->name);
    is_well = stg_remote_call(r, "POST", path, choice, answer);
    json_decref(choice);
    return is_well;
}

/* -- what there is --------------------------------------------------------- */

/* Cut, with a mark. */
static void put_cell(const char *text, int width, bool is_last)
{
    int size = (int)strlen(text), shown = size > width ? width - 2 : size;

    stg_say_text(stdout, text, (size_t)shown, STG_VISIBLE_IN_COLUMN);
    if (size > width)
        fputs("..", stdout);
    else if (!is_last)
        printf("%*s", width - size, "");
    fputs(is_last ? "\n" : "  ", stdout);
}

/* The hub's text is untrusted: every cell goes through stg_say(). */
static void put_letter(const json_t *letter, int target, int rest, bool is_wide)
{
    const char *detail = stg_json_text_of(letter, "detail");
    char time[20];

    snprintf(time, sizeof time, "%.19s",
             stg_json_text_of(letter, "created_at"));
    if (strlen(time) > 10)
        time[10] = ' ';
    stg_say(stdout, "%8" PRIu64 "  %-19s  ", stg_json_count_of(letter, "id"),
            time);
    put_cell(stg_json_text_of(letter, "target"), target, false);
    printf("%8" PRIu64 "  ", stg_json_count_of(letter, "count"));
    put_cell(stg_json_text_of(letter, "cause"), is_wide ? 21 : rest, !is_wide);
    if (is_wide)
        put_cell(detail[0] != '\0' ? detail : "-", rest - 23, true);
}

/* The hub sends some letters as a sample; the count is that of all. Below 100
 * columns the detail is left out. */
static void put_sample(const json_t *answer, uint64_t letters)
{
    const json_t *sample = json_object_get(answer, "sample");
    int width = stg_terminal_look().width;
    bool is_wide = width >= 100;
    int target = is_wide ? 24 : 16, rest = width - 43 - target;
    size_t count = json_array_size(sample);

    if (count == 0)
        return;
    if (rest < 8)
        rest = 8;
    printf("%8s  %-19s  %-*s  %8s  %s\n", "id", "time (UTC)", target, "target",
           "messages", is_wide ? "cause                  detail" : "cause");
    for (size_t i = 0; i < count; i++)
        put_letter(json_array_get(sample, i), target, rest, is_wide);
    if (letters > count)
        printf("and %" PRIu64 " more\n", letters - count);
}

/* The dead letters that are not sent again, or not yet, a line each. */
static void put_exceptions(const json_t *answer)
{
    uint64_t expired = stg_json_count_of(answer, "expired");
    uint64_t forgotten = stg_json_count_of(answer, "forgotten");
    uint64_t orphaned = stg_json_count_of(answer, "orphaned");
    uint64_t paused = stg_json_count_of(answer, "paused");

    if (paused > 0)
        printf("%" PRIu64
               " message%s until the target is resumed: it is paused\n",
               paused, paused == 1 ? " waits" : "s wait");
    if (orphaned > 0)
        printf("%" PRIu64
               " dead letter%s cannot be sent again: the settings do not have "
               "the target\n",
               orphaned, stg_plural(orphaned));
    if (expired > 0)
        printf("%" PRIu64
               " message%s cannot be sent again: the bodies are "
               "gone\n",
               expired, stg_plural(expired));
    if (forgotten > 0)
        printf("%" PRIu64
               " dead letter%s cannot be sent again: the target "
               "was forgotten\n",
               forgotten, stg_plural(forgotten));
}

/* Letters and messages differ where one row stands for many messages. */
static void put_counts(const change *c, const json_t *answer, const char *end)
{
    uint64_t letters = stg_json_count_of(answer, "letters");
    uint64_t messages = stg_json_count_of(answer, "messages");

    printf("%" PRIu64 " dead letter%s, %" PRIu64 " message%s: %s\n", letters,
           stg_plural(letters), messages, stg_plural(messages), end);
    if (c == &replay)
        put_exceptions(answer);
}

static void put_json(const json_t *answer)
{
    stg_say_json(stdout, answer, false);
}

/* -- nothing --------------------------------------------------------------- */

/* Both must be 0: letters that are replayed may have no messages left, if their
 * bodies are gone. */
static bool is_nothing(const json_t *answer)
{
    return stg_json_count_of(answer, "letters") == 0 &&
           stg_json_count_of(answer, "messages") == 0;
}

/* Of the ids that were asked for: whether there is each, and what became of it.
 * Returns the exit code. */
static int check_ids(stg_remote *r, const dead_options *o)
{
    int code = 0;

    for (size_t i = 0; i < o->id_count; i++) {
        json_t *letter = NULL;
        char path[64];

        snprintf(path, sizeof path, "/v1/dead-letters/%" PRIu64, o->ids[i]);
        if (stg_remote_call(r, "GET", path, NULL, &letter)) {
            const char *state = stg_json_text_of(letter, "state");

            if (strcmp(state, "dead") != 0)
                stg_options_complain(who, "dead letter %" PRIu64 " is %s",
                                     o->ids[i], state);
        } else if (stg_remote_status(r) == 404) {
            stg_options_complain(who, "there is no dead letter %" PRIu64,
                                 o->ids[i]);
            code = EXIT_NO;
        }
        json_decref(letter);
    }
    return code;
}

/* A name or an id that there is not is a slip. Returns the exit code. */
static int tell_nothing(stg_remote *r, const change *c, const dead_options *o,
                        const json_t *answer)
{
    int code = o->filter.target != NULL
                   ? dead_check_target_of(r, o->filter.target)
                   : check_ids(r, o);

    if (code != 0 || o->form == DEAD_JSON)
        return code;
    // Some do, and cannot be sent again.
    if (stg_json_count_of(answer, "forgotten") +
                stg_json_count_of(answer, "orphaned") >
            0 &&
        c == &replay)
        printf("%s\n", c->nothing);
    else
        printf("no dead letter fits: %s\n", c->nothing);
    if (c == &replay)
        put_exceptions(answer);
    return 0;
}

/* -- replay, to its end ---------------------------------------------------- */

/* Asks until it is over. *state: given and taken. */
static bool await(stg_remote *r, json_t **state)
{
    struct timespec pause = {0, POLL_MS * 1000000L};
    char path[64];

    snprintf(path, sizeof path, "/v1/replays/%" PRIu64,
             stg_json_count_of(*state, "id"));
    while (strcmp(stg_json_text_of(*state, "state"), "running") == 0) {
        json_t *next = NULL;

        nanosleep(&pause, NULL);
        if (!stg_remote_call(r, "GET", path, NULL, &next))
            return false;
        json_decref(*state);
        *state = next;
    }
    return true;
}

/* Why it ended before its time. */
static void complain(const json_t *state)
{
    const char *how = stg_json_text_of(state, "state");

    if (strcmp(how, "held") == 0)
        stg_options_complain(
            who,
            "500 of a replay wait at once, and %.128s does not "
            "take them: mend it, then ask again; what is left "
            "is dead as before",
            stg_json_text_of(state, "held"));
    else if (strcmp(how, "away") == 0)
        stg_options_complain(
            who,
            "bulk rows of %.128s stay dead: the hub's source does not give "
            "their messages now; ask again when it can be reached and this hub "
            "reads their partitions",
            stg_json_text_of(state, "held"));
    else if (strcmp(how, "full") == 0)
        stg_options_complain(who,
                             "the store is full; what is left is dead as "
                             "before");
    else
        stg_options_complain(who,
                             "the hub was stopped; what is left is dead "
                             "as before");
}

/* stdout is flushed before the complaint goes to stderr, so that they appear in
 * this order in one file. */
static int tell_replay(stg_remote *r, const dead_options *o,
                       const json_t *state)
{
    uint64_t count = stg_json_count_of(state, "messages");
    uint64_t going = stg_ns_sub(count, stg_json_count_of(state, "paused"));
    bool is_done = strcmp(stg_json_text_of(state, "state"), "done") == 0;

    if (is_done && is_nothing(state))
        return tell_nothing(r, &replay, o, state);
    if (count == 0)
        printf("nothing was sent again\n");
    else if (going > 0)
        printf("%" PRIu64
               " message%s on the way again; stagger status shows how "
               "they fare\n",
               going, going == 1 ? " is" : "s are");
    put_exceptions(state);
    fflush(stdout);
    if (is_done)
        return 0;
    complain(state);
    return EXIT_NO;
}

/* The replay is the hub's: a command that is interrupted here does not stop
 * it. */
static int finish_replay(stg_remote *r, const dead_options *o, json_t **state)
{
    if (!await(r, state)) {
        stg_options_complain(who,
                             "the replay goes on in the hub, or has ended "
                             "with it");
        return stg_remote_complain(r);
    }
    if (o->form != DEAD_JSON)
        return tell_replay(r, o, *state);
    put_json(*state);
    if (strcmp(stg_json_text_of(*state, "state"), "done") != 0)
        return EXIT_NO;
    return is_nothing(*state) ? tell_nothing(r, &replay, o, *state) : 0;
}

/* -- first dry, then not --------------------------------------------------- */

/* The condition is sent again, not the rows that the dry run showed: letters
 * that came in between are changed, too. */
static int carry_out(stg_remote *r, const change *c, const dead_options *o)
{
    json_t *answer = NULL;
    int code = 0;

    if (!call(r, c, o, false, &answer))
        return stg_remote_complain(r);
    if (c == &replay)
        code = finish_replay(r, o, &answer);
    else if (o->form == DEAD_JSON)
        put_json(answer);
    else if (!is_nothing(answer))
        put_counts(c, answer, "dropped");
    if (c != &replay && is_nothing(answer))
        code = tell_nothing(r, c, o, answer);
    json_decref(answer);
    return code;
}

/* The question has the number, so that a condition that chose too much is
 * seen. */
static bool ask(const change *c, const json_t *dry)
{
    uint64_t messages = stg_json_count_of(dry, "messages");
    char question[128];

    snprintf(question, sizeof question, "%s %s%" PRIu64 " message%s%s?",
             c->question, messages == 1 ? "this " : "these ", messages,
             stg_plural(messages), c == &replay ? " again" : "");
    return stg_confirm(question);
}

/* Shows what there is, and goes on if it is to be. */
static int look_first(stg_remote *r, const change *c, const dead_options *o)
{
    json_t *dry = NULL;
    uint64_t letters;
    bool is_to_be;
    int code = 0;

    if (!call(r, c, o, true, &dry))
        return stg_remote_complain(r);
    letters = stg_json_count_of(dry, "letters");
    if (o->form == DEAD_JSON) {
        put_json(dry);
    } else if (letters > 0) {
        put_sample(dry, letters);
        put_counts(c, dry, c->would);
    }
    if (letters == 0)
        code = tell_nothing(r, c, o, dry);
    is_to_be = !o->is_dry_run && letters > 0 && ask(c, dry);
    json_decref(dry);
    if (is_to_be)
        return carry_out(r, c, o);
    return o->is_dry_run || letters == 0 ? code : EXIT_NO;
}

/* All of them is said, or nobody thought of it. */
static int check(const change *c, const dead_options *o)
{
    bool has_some = o->id_count > 0 || o->filter.target != NULL ||
                    o->cause_word != NULL || o->filter.since > 0 ||
                    o->filter.until > 0;
    const char *wrong = NULL;

    if (!has_some && !o->is_all)
        wrong =
            "which ones? Say --target, --cause, --since, --until, --id, or "
            "--all";
    else if (has_some && o->is_all)
        wrong = "--all has no other condition";
    else if (o->is_dry_run && o->is_sure)
        wrong = "--dry-run and --yes exclude each other";
    else if (!o->is_dry_run && !o->is_sure && o->form == DEAD_JSON)
        wrong = "--json asks for no confirmation: add --yes, or --dry-run";
    else if (!o->is_dry_run && !o->is_sure && !stg_confirm_can())
        wrong = "not a terminal: add --yes to confirm, or --dry-run";
    if (wrong == NULL)
        return 0;
    stg_options_complain(who, "%s: %s", c->name, wrong);
    fputs("See stagger dead --help.\n", stderr);
    return STG_EXIT_USAGE;
}

/* With --yes there is no dry run. */
static int run(const change *c, const dead_options *o)
{
    int code = check(c, o);
    stg_remote *r;

    if (code != 0)
        return code;
    r = stg_remote_open(who, &o->remote);
    if (r == NULL)
        return STG_EXIT_USAGE;
    code = o->is_sure ? carry_out(r, c, o) : look_first(r, c, o);
    stg_remote_close(r);
    return stg_options_finish(who, code);
}

int dead_replay(const dead_options *o)
{
    return run(&replay, o);
}

int dead_drop(const dead_options *o)
{
    return run(&drop, o);
}
