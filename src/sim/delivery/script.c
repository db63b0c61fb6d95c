#include "sim/delivery/script.h"

#include <string.h>

#include "core/reader.h"
#include "core/writer.h"

/* The words of a script: a table of kinds, and of each kind's numbers. Numbers
 * are printed where they are not 0, so that a line says what is special. */

typedef enum number_kind { NUMBER, TIME, WORD } number_kind;

typedef struct named {
    const char *name;
    number_kind kind;
    const char *const *words; /* WORD: by number, NULL behind the last */
} named;

static const char *const groups[] = {"none", "own", "shared", NULL};
static const char *const budgets[] = {"none", "tokens", "share", NULL};
static const char *const orders[] = {"none", "key", "strict", NULL};
static const char *const leaf_faults[] = {
    [STG_LEAF_REFUSED] = "refused",
    [STG_LEAF_DNS] = "dns",
    [STG_LEAF_DNS_TEMPORARY] = "dns-temporary",
    [STG_LEAF_NO_PORTS] = "no-ports",
    [STG_LEAF_NO_FILES] = "no-files",
    [STG_LEAF_CONNECT_TIMEOUT] = "connect-timeout",
    [STG_LEAF_TLS] = "tls",
    [STG_LEAF_PROXY] = "proxy",
    [STG_LEAF_RESET] = "reset",
    [STG_LEAF_PROTOCOL] = "protocol",
    [STG_LEAF_HANG] = "hang",
    [STG_LEAF_SLOW] = "slow",
    [STG_LEAF_LIE] = "lie",
    [STG_LEAF_401] = "401",
    [STG_LEAF_404] = "404",
    [STG_LEAF_429] = "429",
    [STG_LEAF_500] = "500",
    [STG_LEAF_503] = "503",
    [STG_LEAF_COUNT] = NULL,
};
static const char *const answers[] = {"any", "refused", "hang", "503", NULL};

#define LANE_NUMBERS                                                  \
    {                                                                 \
        {"lane", NUMBER, NULL}, {"policy", NUMBER, NULL},             \
            {"order", WORD, orders}, {"in-flight", NUMBER, NULL},     \
            {"parked-max", NUMBER, NULL}, {"shed-after", TIME, NULL}, \
            {"burst", NUMBER, NULL}, {"batch", TIME, NULL},           \
            {"filter", NUMBER, NULL}, {"ignores", NUMBER, NULL},      \
            {"proxy", NUMBER, NULL}, {"dials", NUMBER, NULL},         \
            {"signs-in", NUMBER, NULL}, {"earliest", NUMBER, NULL},   \
    }
#define OF_LANE                   \
    {                             \
        {"lane", NUMBER, NULL},   \
        {                         \
            "count", NUMBER, NULL \
        }                         \
    }
#define SET_LANE                \
    {                           \
        {"lane", NUMBER, NULL}, \
        {                       \
            "on", NUMBER, NULL  \
        }                       \
    }
#define OF_PARTITION                 \
    {                                \
        {"partition", NUMBER, NULL}, \
        {                            \
            "count", NUMBER, NULL    \
        }                            \
    }
#define OF_MESSAGE                  \
    {                               \
        {                           \
            "message", NUMBER, NULL \
        }                           \
    }

static const struct {
    const char *name;
    named numbers[STG_STEP_NUMBERS];
} kinds[STG_STEP_COUNT] = {
    [STG_STEP_WORLD] = {"world",
                        {{"seed", NUMBER, NULL},
                         {"partitions", NUMBER, NULL},
                         {"group", WORD, groups},
                         {"size", NUMBER, NULL},
                         {"keys", NUMBER, NULL},
                         {"times", TIME, NULL},
                         {"too-large", NUMBER, NULL},
                         {"ask-events", NUMBER, NULL},
                         {"ask-ends", NUMBER, NULL},
                         {"checks", NUMBER, NULL}}},
    [STG_STEP_FLOW] = {"flow",
                       {{"memory-kib", NUMBER, NULL},
                        {"in-flight", NUMBER, NULL},
                        {"drain", TIME, NULL},
                        {"budget", WORD, budgets},
                        {"capacity", NUMBER, NULL},
                        {"rate", NUMBER, NULL},
                        {"waits", NUMBER, NULL}}},
    [STG_STEP_LANE] = {"lane", LANE_NUMBERS},
    [STG_STEP_JOIN] = {"join", LANE_NUMBERS},
    [STG_STEP_CHANGE] = {"change", LANE_NUMBERS},
    [STG_STEP_FAULT] = {"fault",
                        {{"kind", WORD, leaf_faults},
                         {"every", NUMBER, NULL},
                         {"took", TIME, NULL},
                         {"wait", TIME, NULL},
                         {"processed", NUMBER, NULL}}},
    [STG_STEP_PUBLISH] = {"publish", OF_PARTITION},
    [STG_STEP_START] = {"start", {{NULL, NUMBER, NULL}}},
    [STG_STEP_EVENTS] = {"events", {{"count", NUMBER, NULL}}},
    [STG_STEP_ACTIONS] = {"actions", {{"count", NUMBER, NULL}}},
    [STG_STEP_RUN] = {"run", {{"for", TIME, NULL}}},
    [STG_STEP_CRASH] = {"crash", {{"after", TIME, NULL}}},
    [STG_STEP_STOP] = {"stop", {{"after", TIME, NULL}}},
    [STG_STEP_CLOCK] = {"clock",
                        {{"forward", TIME, NULL}, {"back", TIME, NULL}}},
    [STG_STEP_STORE] = {"store",
                        {{"full", NUMBER, NULL},
                         {"room", NUMBER, NULL},
                         {"lost-answers", NUMBER, NULL},
                         {"delay", TIME, NULL},
                         {"fetch-delay", TIME, NULL}}},
    [STG_STEP_UNREAD] = {"unread", {{"count", NUMBER, NULL}}},
    [STG_STEP_MEMORY] = {"memory",
                         {{"fails-one-in", NUMBER, NULL},
                          {"fails-at", NUMBER, NULL}}},
    [STG_STEP_PAUSE] = {"pause", SET_LANE},
    [STG_STEP_GATE] = {"gate", SET_LANE},
    [STG_STEP_PROBE] = {"probe", {{"lane", NUMBER, NULL}}},
    [STG_STEP_TARGET] = {"target",
                         {{"lane", NUMBER, NULL}, {"answers", WORD, answers}}},
    [STG_STEP_REMOVE] = {"remove", {{"lane", NUMBER, NULL}}},
    [STG_STEP_REPLAY] = {"replay", OF_LANE},
    [STG_STEP_REWIND] = {"rewind", OF_LANE},
    [STG_STEP_RETAIN] = {"retain", OF_MESSAGE},
    [STG_STEP_ASSIGN] = {"assign", {{"partition", NUMBER, NULL}}},
    [STG_STEP_REVOKE] = {"revoke",
                         {{"partition", NUMBER, NULL}, {"drain", TIME, NULL}}},
    [STG_STEP_LOSE] = {"lose", {{"partition", NUMBER, NULL}}},
    [STG_STEP_FENCE] = {"fence", {{"partition", NUMBER, NULL}}},
    [STG_STEP_ELSEWHERE] = {"elsewhere", OF_PARTITION},
    [STG_STEP_EXPIRE] = {"expire", OF_MESSAGE},
};

void stg_script_add(stg_script *s, const stg_step *e)
{
    if (s->count < STG_SCRIPT_MAX)
        s->steps[s->count++] = *e;
}

/* -- printing -------------------------------------------------------------- */

/* The last one where the number is beyond it. */
static const char *find_word(const char *const *words, uint64_t number)
{
    while (number > 0 && words[1] != NULL) {
        words++;
        number--;
    }
    return *words;
}

const char *stg_step_print(const stg_step *e, char text[STG_STEP_TEXT_MAX])
{
    stg_writer to = stg_writer_on(text, STG_STEP_TEXT_MAX);
    const named *n = kinds[e->kind].numbers;

    stg_write_text(&to, kinds[e->kind].name);
    for (size_t i = 0; i < STG_STEP_NUMBERS && n[i].name != NULL; i++) {
        if (e->at[i] == 0 && !(i == 0 && n[i].kind == WORD))
            continue;
        stg_write_char(&to, ' ');
        stg_write_text(&to, n[i].name);
        stg_write_char(&to, '=');
        if (n[i].kind == TIME)
            stg_write_duration(&to, e->at[i]);
        else if (n[i].kind == WORD)
            stg_write_text(&to, find_word(n[i].words, e->at[i]));
        else
            stg_write_number(&to, e->at[i]);
    }
    return text;
}

/* -- reading --------------------------------------------------------------- */

/* The next word of the line, without the blanks before it. */
static stg_reader next_word(stg_reader *line)
{
    while (!stg_reader_is_empty(line) && stg_is_blank(*line->at))
        line->at++;
    return stg_read_until(line, ' ');
}

static bool read_value(const named *n, stg_reader *word, uint64_t *value)
{
    uint32_t whole;
    stg_ns ns;

    if (n->kind == WORD) {
        for (size_t i = 0; n->words[i] != NULL; i++)
            if (stg_reader_equals(word, n->words[i])) {
                *value = i;
                return true;
            }
        return false;
    }
    if (n->kind == TIME) {
        if (!stg_read_duration(word, &ns) || !stg_reader_is_empty(word))
            return false;
        *value = ns;
        return true;
    }
    if (!stg_read_int(word, &whole) || !stg_reader_is_empty(word))
        return false;
    *value = whole;
    return true;
}

static bool read_number(stg_step *e, stg_reader word)
{
    const named *n = kinds[e->kind].numbers;
    stg_reader name = stg_read_until(&word, '=');

    for (size_t i = 0; i < STG_STEP_NUMBERS && n[i].name != NULL; i++)
        if (stg_reader_equals(&name, n[i].name))
            return read_value(&n[i], &word, &e->at[i]);
    return false;
}

static stg_status refuse(stg_error *err, uint32_t line, const stg_reader *word)
{
    stg_writer to = stg_writer_on_error(err);

    stg_write_word(&to, word->at, (size_t)(word->end - word->at));
    stg_write_text(&to, ": not a word of an event script, or not its value");
    if (err != NULL)
        err->line = line;
    return STG_INVALID;
}

static stg_status read_line(stg_script *s, stg_reader line, uint32_t number,
                            stg_error *err)
{
    stg_step e = {.kind = STG_STEP_COUNT};
    stg_reader word = next_word(&line);

    if (stg_reader_is_empty(&word))
        return STG_OK;
    for (size_t k = 0; k < STG_STEP_COUNT; k++)
        if (stg_reader_equals(&word, kinds[k].name))
            e.kind = (stg_step_kind)k;
    if (e.kind == STG_STEP_COUNT || s->count == STG_SCRIPT_MAX)
        return refuse(err, number, &word);
    for (word = next_word(&line); !stg_reader_is_empty(&word);
         word = next_word(&line))
        if (!read_number(&e, word))
            return refuse(err, number, &word);
    stg_script_add(s, &e);
    return STG_OK;
}

stg_status stg_script_read(stg_script *s, const char *text, size_t size,
                           stg_error *err)
{
    stg_reader all = {text, text + size};
    stg_status status = STG_OK;

    s->count = 0;
    for (uint32_t number = 1; status == STG_OK && !stg_reader_is_empty(&all);
         number++) {
        stg_reader line = stg_read_until(&all, '\n');

        status = read_line(s, stg_read_until(&line, '#'), number, err);
    }
    return status;
}

/* -- policies -------------------------------------------------------------- */

typedef struct choice {
    size_t count;
    const char *words[8];
} choice;

/* Each digit of the number chooses of one list. New words go behind the old
 * lists, as a list of their own, so that old scripts keep their policies. */
static const choice choices[] = {
    {4,
     {"fixed base=100ms", "exponential base=50ms", "fixed base=1s",
      "exponential base=200ms cap=5s"}},
    {3, {" jitter=full", " jitter=none", " jitter=50%"}},
    {6,
     {" attempts=3", " attempts=1", " attempts=2", " attempts=4", " attempts=6",
      " attempts=9"}},
    {4,
     {" attempt-timeout=1s", " attempt-timeout=300ms", " attempt-timeout=500ms",
      " attempt-timeout=2s"}},
    {3, {" deadline=none", " deadline=20s", " deadline=3s"}},
    {4,
     {"", " retry=any", " retry=5xx,429,timeout,reset", " retry=any once=404"}},
    {7,
     {"", " budget=ratio:0.2+10/s", " budget=tokens:5:1/s",
      " budget=aws:40:5:10:3", " budget=share:30%+1",
      " budget=ratio:0.2+10/s budget-empty=wait",
      " budget=share:50%+2 budget-empty=wait"}},
    {7,
     {"", " breaker=5:1s-4s", " breaker=50%/10/5s:500ms-2s",
      " breaker=3:300ms-2s", " breaker=4:300ms-2s breaker-probes=2/3",
      " breaker=50%/4/2s:300ms-2s breaker-probes=2/3 breaker-slow=60%/200ms",
      " breaker=20:200ms-30s"}},
    {3, {"", " rate=20/s", " rate=200/s"}},
};

const char *stg_script_policy(uint64_t number, char text[STG_DRAWN_POLICY_MAX])
{
    stg_writer to = stg_writer_on(text, STG_DRAWN_POLICY_MAX);

    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        stg_write_text(&to, choices[i].words[number % choices[i].count]);
        number /= choices[i].count;
    }
    return text;
}
