/* One alert in words: a headline, what the hub does about it, and the command that
 * shows more.
 *
 * All receivers use the same words, in plain text. Texts of digests have been cleaned
 * (stg_digest_take_text()); who embeds them has to escape them. Writers never
 * overflow: text that does not fit is cut. */
#include "alerts/text.h"

#include <time.h>

const char *stg_alert_phase_name(stg_alert_phase phase)
{
    static const char *const names[] = {[STG_ALERT_BEGAN] = "began",
                                        [STG_ALERT_MORE] = "more",
                                        [STG_ALERT_STILL] = "still",
                                        [STG_ALERT_WAS] = "was",
                                        [STG_ALERT_ENDED] = "ended"};

    return names[phase];
}

/* -- pieces ---------------------------------------------------------------- */

void stg_alert_write_count(stg_writer *w, uint64_t count, const char *one,
                           const char *many)
{
    stg_write_number(w, count);
    stg_write_char(w, ' ');
    stg_write_text(w, count == 1 ? one : many);
}

/* As people say it: "3.1 s". */
static void write_length(stg_writer *w, stg_ns length)
{
    char text[STG_NS_TEXT_MAX];

    stg_write_text(w, stg_ns_text(length, text));
}

void stg_alert_write_time(stg_writer *w, uint64_t utc, const char *format)
{
    time_t seconds = (time_t)(utc / STG_S);
    char text[32] = "?";
    struct tm tm;

    if (gmtime_r(&seconds, &tm) != NULL &&
        strftime(text, sizeof text, format, &tm) == 0)
        text[0] = '\0';
    stg_write_text(w, text);
}

#define DAY "%Y-%m-%d"

/* For a command line: no later than it was. */
#define STAMP "%Y-%m-%dT%H:%M:%SZ"

/* -- headlines ------------------------------------------------------------- */

static bool is_over(const stg_digest_item *i)
{
    return i->phase == STG_ALERT_ENDED || i->phase == STG_ALERT_WAS;
}

/* An alert that goes on states both numbers: since the last message, and since
 * it began. */
static void write_dead(stg_writer *w, const stg_digest_item *i)
{
    if (i->phase == STG_ALERT_MORE || i->phase == STG_ALERT_STILL) {
        stg_write_number(w, i->fresh);
        stg_write_text(w, " more dead letters, ");
        stg_write_number(w, i->count);
        stg_write_text(w, " in ");
        write_length(w, stg_ns_sub(i->last_at, i->first_at));
        return;
    }
    stg_alert_write_count(w, i->count, "dead letter", "dead letters");
    if (stg_ns_sub(i->last_at, i->first_at) >= STG_MS) {
        stg_write_text(w, " in ");
        write_length(w, stg_ns_sub(i->last_at, i->first_at));
    }
}

static bool words_has_left(const stg_digest_item *i)
{
    return i->is_gone || (i->has_lane && (i->state == STG_LANE_PAUSED ||
                                          i->state == STG_LANE_REMOVING));
}

/* Writes why an alert of a target has ended: by what the target did, or since
 * nothing is sent to the target any more. */
static void words_end(stg_writer *w, const stg_digest_item *i,
                      const char *recovered)
{
    if (i->phase == STG_ALERT_ENDED)
        stg_write_text(w, words_has_left(i)
                              ? ", and the target is paused or has left"
                              : recovered);
}

static void write_breaker(stg_writer *w, const stg_digest_item *i)
{
    if (i->phase == STG_ALERT_STILL) {
        stg_write_text(w, "the breaker is still open");
    } else {
        stg_write_text(w, "the breaker opened");
        if (i->phase == STG_ALERT_MORE)
            stg_write_text(w, " again");
        if (i->count > 1) {
            stg_write_text(w, ", ");
            stg_alert_write_count(w, i->count, "time", "times");
            stg_write_text(w, i->phase == STG_ALERT_MORE ? " by now" : "");
        }
    }
    words_end(w, i, ", and closed");
    if (i->phase == STG_ALERT_ENDED && !words_has_left(i)) {
        stg_write_text(w, " after ");
        write_length(w, stg_ns_sub(i->ended_at, i->first_at));
    }
}

static void write_gone(stg_writer *w, const stg_digest_item *i)
{
    stg_write_text(w, "it answered 410 Gone");
    words_end(w, i, ", and takes messages again, or has another URL");
}

static void write_disabled(stg_writer *w, const stg_digest_item *i)
{
    stg_write_text(w, i->phase == STG_ALERT_STILL
                          ? "it is still disabled"
                          : "it is disabled: all attempts have failed for as "
                            "long as disable-after allows");
    words_end(w, i, ", and was resumed");
}

static void write_detail(stg_writer *w, const stg_digest_item *i)
{
    if (i->text[0] == '\0')
        return;
    stg_write_text(w, ": ");
    stg_write_text(w, i->text);
}

static void write_token(stg_writer *w, const stg_digest_item *i)
{
    stg_write_text(w, i->phase == STG_ALERT_STILL
                          ? "still nothing can be sent, "
                          : "nothing can be sent, ");
    stg_write_text(w, "for want of an access token");
    write_detail(w, i);
}

static void write_store(stg_writer *w, const stg_digest_item *i)
{
    static const char *const words[] = {
        [STG_TROUBLE_FULL] = "the store takes no messages",
        [STG_TROUBLE_LETTERS] = "the file of dead letters cannot be written",
        [STG_TROUBLE_BUSY] = ("another process writes to the store, and does "
                              "not end"),
        [STG_TROUBLE_AWAY] = "the database does not answer",
        [STG_TROUBLE_LOG] = "the source cannot be read, or not all of it",
        [STG_TROUBLE_HALF] = "dead letters have half of the room they may have",
        [STG_TROUBLE_NEARLY] =
            "dead letters have nine tenths of the room they may have",
        [STG_TROUBLE_UNCOPIED] = "dead letters are evicted without a copy",
        [STG_TROUBLE_UPLINK] =
            ("no connection can be made to any target: it is the network or the "
             "name server of this machine"),
        [STG_TROUBLE_PROXY] = "a proxy of the hub is away, or refuses it",
        [STG_TROUBLE_HELD] =
            ("another process reads the store, and holds back its write-ahead "
             "log"),
        [STG_TROUBLE_BROKEN] = "the store is broken"};

    stg_write_text(w, words[i->trouble]);
    write_detail(w, i);
}

static void write_lag(stg_writer *w, const stg_digest_item *i)
{
    if (i->phase == STG_ALERT_STILL)
        stg_write_text(w, "still ");
    else if (i->phase == STG_ALERT_MORE)
        stg_write_text(w, "now ");
    stg_alert_write_count(w, i->number, "message", "messages");
    stg_write_text(w, " behind");
    if (i->time > 0 && !is_over(i)) {
        stg_write_text(w, ", the oldest waits for ");
        write_length(w, i->time);
    }
}

static void write_certificate(stg_writer *w, const stg_digest_item *i)
{
    stg_write_text(w, "its certificate is valid until ");
    stg_alert_write_time(w, i->time, DAY);
}

static void write_retention(stg_writer *w, const stg_digest_item *i)
{
    stg_write_text(w, "it holds back ");
    stg_write_number(w, i->number);
    stg_write_text(w, " % of what the log may keep");
}

/* An alert that has ended says so first, because a subject may be cut at its end; one
 * that ended before it could be told says so last. */
void stg_alert_headline(const stg_digest_item *i,
                        char text[STG_ALERT_WORDS_MAX])
{
    static void (*const words[STG_ALERT_COUNT])(stg_writer * w,
                                                const stg_digest_item *i) = {
        [STG_ALERT_DEAD] = write_dead,
        [STG_ALERT_BREAKER] = write_breaker,
        [STG_ALERT_GONE] = write_gone,
        [STG_ALERT_DISABLED] = write_disabled,
        [STG_ALERT_TOKEN] = write_token,
        [STG_ALERT_STORE] = write_store,
        [STG_ALERT_LAG] = write_lag,
        [STG_ALERT_CERTIFICATE] = write_certificate,
        [STG_ALERT_RETENTION] = write_retention,
    };
    stg_writer w = stg_writer_on(text, STG_ALERT_WORDS_MAX);

    if (i->phase == STG_ALERT_ENDED)
        stg_write_text(&w, "over: ");
    words[i->alert](&w, i);
    if (i->phase == STG_ALERT_WAS)
        stg_write_text(&w, ", and has ended");
}

/* -- what the hub does ----------------------------------------------------- */

static void write_circuit_open(stg_writer *w, const stg_digest_item *i)
{
    bool is_idle = i->waiting == 0 && i->parked == 0;

    stg_write_text(w, "circuit open: ");
    if (is_idle) {
        stg_write_text(w, "no message waits, and the next one is the probe");
    } else if (i->waiting == 0) {
        stg_write_text(w, "what is parked goes out by itself");
    } else {
        stg_alert_write_count(w, i->waiting, "message waits", "messages wait");
        stg_write_text(w, " in the log, and go");
        stg_write_text(w, i->waiting == 1 ? "es out by itself"
                                          : " out by themselves");
    }
    stg_write_text(w, is_idle ? "" : " when a probe succeeds");
    if (i->gate_until > 0) {
        stg_write_text(w, is_idle ? ", after " : "; the next probe is at ");
        stg_alert_write_time(w, i->gate_until, STG_ALERT_AT);
    }
}

/* Waiting messages go out when the circuit closes, and dead letters do not. */
static void write_dead_end(stg_writer *w, const stg_digest_item *i)
{
    bool is_open =
        i->state == STG_LANE_CIRCUIT_OPEN || i->state == STG_LANE_SHEDDING;

    if (i->alert != STG_ALERT_DEAD || !is_open)
        return;
    stg_write_text(w, i->is_replaying
                          ? "; dead letters that never reached the target are "
                            "sent again then, the others only by a replay"
                          : "; dead letters are sent again only by a replay");
}

static void write_state(stg_writer *w, const stg_digest_item *i)
{
    switch (i->state) {
    case STG_LANE_LIVE:
        stg_write_text(w,
                       "delivering: what fails is parked or becomes a dead "
                       "letter, the rest goes on");
        break;
    case STG_LANE_THROTTLED:
        stg_write_text(w, "waiting, as the target asked or a limit says");
        if (i->waiting > 0) {
            stg_write_text(w, ", with ");
            stg_alert_write_count(w, i->waiting, "message", "messages");
        }
        break;
    case STG_LANE_CIRCUIT_OPEN:
        write_circuit_open(w, i);
        break;
    case STG_LANE_SHEDDING:
        stg_write_text(w,
                       "shedding: what comes becomes a dead letter, in a "
                       "bulk row, until a probe succeeds");
        break;
    case STG_LANE_PAUSED:
        stg_write_text(w, "paused: nothing is sent until it is resumed");
        break;
    case STG_LANE_REMOVING:
        stg_write_text(w, "removing it: what waits is cancelled");
        break;
    }
    if (i->parked > 0) {
        stg_write_text(w, "; ");
        stg_alert_write_count(w, i->parked, "delivery is parked",
                              "deliveries are parked");
    }
    write_dead_end(w, i);
}

static void write_store_deed(stg_writer *w, const stg_digest_item *i)
{
    static const char *const words[] = {
        [STG_TROUBLE_FULL] =
            "targets with a failure to store wait, the others "
            "go on; new messages are answered 503",
        [STG_TROUBLE_LETTERS] = "trying again; the rows are in the store",
        [STG_TROUBLE_BUSY] =
            "waiting; nothing is stored meanwhile, and new "
            "messages have no answer",
        [STG_TROUBLE_AWAY] =
            "trying again; nothing is stored or committed meanwhile, and "
            "reading stops when memory is at its limit",
        [STG_TROUBLE_LOG] =
            "trying again; what was read goes on, and nothing is lost that "
            "the source still has",
        [STG_TROUBLE_HALF] =
            "going on; at the end of it the oldest are evicted: a bulk row "
            "counts them, and their bodies are gone. Replay or drop some",
        [STG_TROUBLE_NEARLY] =
            "going on; soon the oldest are evicted: a bulk row counts them, "
            "and their bodies are gone. Replay or drop some",
        [STG_TROUBLE_UNCOPIED] =
            "going on, so that new messages are taken: mend the place of the "
            "copy (dead-letters.copy)",
        [STG_TROUBLE_UPLINK] =
            "waiting; no attempt is counted, and one connection a second is "
            "tried",
        [STG_TROUBLE_PROXY] =
            "waiting with the targets of this proxy; no attempt is counted, and "
            "one connection a second is tried",
        [STG_TROUBLE_HELD] =
            "going on, until log and file have filled the quota",
        [STG_TROUBLE_BROKEN] =
            "ending, for nothing can be kept any more; it finds what it could "
            "not store when it is started again"};

    stg_write_text(w, words[i->trouble]);
}

static void write_token_deed(stg_writer *w, const stg_digest_item *i)
{
    stg_write_text(w,
                   "asking for one again; no attempt is counted, and nothing "
                   "becomes a dead letter for it");
    if (i->waiting > 0) {
        stg_write_text(w, "; ");
        stg_alert_write_count(w, i->waiting, "message waits", "messages wait");
    }
}

/* Answers the first question of a reader: does anything have to be done at
 * once? Nothing is said of a condition that is over. */
void stg_alert_deed(const stg_digest_item *i, char text[STG_ALERT_WORDS_MAX])
{
    stg_writer w = stg_writer_on(text, STG_ALERT_WORDS_MAX);

    text[0] = '\0';
    if (is_over(i) && i->alert != STG_ALERT_DEAD)
        return;
    if (i->alert == STG_ALERT_STORE)
        write_store_deed(&w, i);
    else if (i->alert == STG_ALERT_CERTIFICATE)
        stg_write_text(&w,
                       "delivering until then; afterwards every attempt "
                       "fails at the handshake");
    else if (i->alert == STG_ALERT_RETENTION)
        stg_write_text(&w,
                       "keeping it; at 100 % the oldest becomes dead "
                       "letters, in a bulk row, and its bodies go");
    else if (i->alert == STG_ALERT_TOKEN)
        write_token_deed(&w, i);
    else if (i->has_lane)
        write_state(&w, i);
}

/* -- the command that shows more ------------------------------------------- */

/* The command can be pasted as it is: names of targets have no character that a
 * shell reads, and STAMP is rounded down. */
void stg_alert_command(const stg_digest_item *i, char text[STG_ALERT_WORDS_MAX])
{
    stg_writer w = stg_writer_on(text, STG_ALERT_WORDS_MAX);

    if (i->alert != STG_ALERT_DEAD) {
        stg_write_text(&w, "stagger status");
        return;
    }
    stg_write_text(&w, "stagger dead list");
    if (i->target[0] != '\0') {
        stg_write_text(&w, " --target ");
        stg_write_text(&w, i->target);
    }
    stg_write_text(&w, " --since ");
    stg_alert_write_time(&w, i->first_at, STAMP);
}
