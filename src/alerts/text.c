/* A digest in words: a subject, and a text that has all of its alerts.
 *
 * payload.c puts them into JSON, mail.c into a mail. stg_alert_text() leaves out whole
 * items where there is no room, and counts them. */
#include "alerts/text.h"

#include <string.h>

/* -- the subject ----------------------------------------------------------- */

static const char *name_of(const stg_digest_item *i)
{
    if (i->target[0] != '\0')
        return i->target;
    return i->alert == STG_ALERT_STORE ? "the hub" : "all targets together";
}

/* Shortens to size bytes at most, at the end of a whole UTF-8 character. */
static void cut(char *words, size_t size)
{
    if (strlen(words) <= size)
        return;
    while (size > 0 && ((unsigned char)words[size] & 0xc0) == 0x80)
        size--;
    words[size] = '\0';
}

void stg_alert_subject(const stg_digest *d, char text[STG_ALERT_SUBJECT_MAX])
{
    stg_writer w = stg_writer_on(text, STG_ALERT_SUBJECT_MAX);
    char words[STG_ALERT_WORDS_MAX];

    stg_write_text(&w, "[stagger ");
    stg_write_text(&w, d->hub);
    stg_write_text(&w, "] ");
    if (d->is_test) {
        stg_write_text(&w, "a test: nothing has happened");
        return;
    }
    stg_alert_headline(&d->items[0], words);
    stg_write_text(&w, name_of(&d->items[0]));
    stg_write_text(&w, ": ");
    cut(words, 100);
    stg_write_text(&w, words);
    if (stg_digest_total(d) > 1) {
        stg_write_text(&w, ", and ");
        stg_write_number(&w, stg_digest_total(d) - 1);
        stg_write_text(&w, " more");
    }
}

/* -- the text -------------------------------------------------------------- */

static void write_causes(stg_writer *w, const stg_alert_causes *c)
{
    char cause[STG_CAUSE_MAX];

    for (size_t i = 0; i < STG_ALERT_CAUSES_MAX && c->list[i].count > 0; i++) {
        stg_write_text(w, i == 0 ? "" : ", ");
        stg_write_number(w, c->list[i].count);
        stg_write_char(w, ' ');
        stg_write_text(w, stg_alert_cause_text(c->list[i].cause, cause));
    }
    if (c->others > 0) {
        stg_write_text(w, c->list[0].count > 0 ? ", " : "");
        stg_alert_write_count(w, c->others, "other", "others");
    }
}

static void write_line(stg_writer *w, const char *name, const char *words)
{
    if (words[0] == '\0')
        return;
    stg_write_text(w, "    ");
    stg_write_text(w, name);
    stg_write_text(w, ": ");
    stg_write_text(w, words);
    stg_write_char(w, '\n');
}

static void write_shares(stg_writer *w, const stg_digest *d)
{
    if (d->share_count == 0)
        return;
    stg_write_text(w, "    most of them: ");
    for (size_t i = 0; i < d->share_count; i++) {
        stg_write_text(w, i == 0 ? "" : ", ");
        stg_write_text(w, d->shares[i].target);
        stg_write_char(w, ' ');
        stg_write_number(w, d->shares[i].count);
    }
    stg_write_char(w, '\n');
}

static void write_when(stg_writer *w, const stg_digest_item *i)
{
    stg_write_text(w, "    first: ");
    stg_alert_write_time(w, i->first_at, STG_ALERT_AT);
    stg_write_text(w, ", last: ");
    stg_alert_write_time(w, i->last_at, STG_ALERT_AT);
    stg_write_char(w, '\n');
}

static void write_why(stg_writer *w, const stg_digest_item *i)
{
    char cause[STG_CAUSE_MAX];

    if (i->causes.list[0].count == 0 && !i->has_cause)
        return;
    stg_write_text(w, i->has_cause ? "    last cause: " : "    causes: ");
    if (i->has_cause)
        stg_write_text(w, stg_alert_cause_text(i->cause, cause));
    else
        write_causes(w, &i->causes);
    stg_write_char(w, '\n');
}

static void write_item(stg_writer *w, const stg_digest *d,
                       const stg_digest_item *i)
{
    char words[STG_ALERT_WORDS_MAX];

    stg_alert_headline(i, words);
    stg_write_text(w, name_of(i));
    stg_write_text(w, ": ");
    stg_write_text(w, words);
    stg_write_char(w, '\n');
    write_why(w, i);
    if (i->alert == STG_ALERT_DEAD && i->target[0] == '\0')
        write_shares(w, d);
    write_when(w, i);
    stg_alert_deed(i, words);
    write_line(w, "the hub", words);
    stg_alert_command(i, words);
    write_line(w, "more", words);
}

/* "and 9980 more: 9970 breaker, 10 dead-letters" */
static void write_left(stg_writer *w, const uint64_t left[STG_ALERT_COUNT])
{
    uint64_t total = 0;
    bool is_first = true;

    for (int a = 0; a < STG_ALERT_COUNT; a++)
        total += left[a];
    if (total == 0)
        return;
    stg_write_text(w, "\nand ");
    stg_write_number(w, total);
    stg_write_text(w, " more: ");
    for (int a = 0; a < STG_ALERT_COUNT; a++) {
        if (left[a] == 0)
            continue;
        stg_write_text(w, is_first ? "" : ", ");
        stg_write_number(w, left[a]);
        stg_write_char(w, ' ');
        stg_write_text(w, stg_alert_name((stg_alert)a));
        is_first = false;
    }
    stg_write_text(w, " (stagger status shows all)\n");
}

static void write_end(stg_writer *w, const stg_digest *d,
                      const uint64_t left[STG_ALERT_COUNT])
{
    write_left(w, left);
    if (d->unkept > 0) {
        stg_write_text(w, "\nand ");
        stg_alert_write_count(w, d->unkept, "event", "events");
        stg_write_text(w, " of more targets than are told apart\n");
    }
    if (d->merged > 0) {
        stg_write_text(w, "\n");
        stg_write_number(w, d->merged + 1);
        stg_write_text(w,
                       " messages in one: they could not be sent "
                       "before.\n");
    }
}

static void write_test(const stg_digest *d, char *text, size_t room)
{
    stg_writer w = stg_writer_on(text, room);

    stg_write_text(&w, "This is a test of the alerts of the hub on ");
    stg_write_text(&w, d->hub);
    stg_write_text(&w, ".\nNothing has happened, and nothing is to be done.\n");
}

/* Keeps END_ROOM bytes for the end. An item that does not fit is undone and
 * counted, and the next ones are tried. */
void stg_alert_text(const stg_digest *d, char *text, size_t room)
{
    enum { END_ROOM = 480 }; /* for what is always said */
    uint64_t left[STG_ALERT_COUNT];
    stg_writer w = stg_writer_on(text, room);

    if (d->is_test) {
        write_test(d, text, room);
        return;
    }
    memcpy(left, d->left, sizeof left);
    text[0] = '\0';
    for (size_t i = 0; i < d->item_count; i++) {
        stg_writer before = w;

        stg_write_text(&w, i == 0 ? "" : "\n");
        write_item(&w, d, &d->items[i]);
        if (w.length + END_ROOM < room)
            continue;
        // No room: it is counted instead, whole.
        w = before;
        text[w.length] = '\0';
        left[d->items[i].alert]++;
    }
    write_end(&w, d, left);
}
