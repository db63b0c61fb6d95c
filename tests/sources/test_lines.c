#include "sources/lines.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sources/line_buffer.h"
#include "tests/harness.h"

enum { TEXT_MAX = 1 << 22 };

/* Standard input of a hub whose store is told what to answer. What it appended
 * is a text, "a|b|c|". */
typedef struct scene {
    uv_loop_t loop;
    stg_lines *lines;
    stg_lines_options options;
    stg_error err;
    int in; /* the other end */
    char *text;
    size_t size, appends, messages;

    bool holds;
    stg_appended answer;
    unsigned fulls; /* so often it is full, then not any more */
    stg_append_fn *done;
    void *done_ctx;
    const stg_append *held;
    size_t held_count;

    bool has_ended, is_stopped, is_closed;
    uint64_t ended_messages;
} scene;

static void keep(scene *s, const stg_append *messages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        stg_span body = messages[i].parcel.body;

        CHECK(s->size + body.size + 2 < TEXT_MAX);
        memcpy(s->text + s->size, body.at, body.size);
        s->size += body.size;
        s->text[s->size++] = '|';
    }
    s->text[s->size] = '\0';
    s->messages += count;
}

static void settle(scene *s)
{
    stg_append_answer answers[1000] = {{0}};
    stg_append_fn *done = s->done;

    CHECK(done != NULL);
    s->done = NULL;
    if (s->answer == STG_APPENDED)
        keep(s, s->held, s->held_count);
    done(s->done_ctx, s->answer, answers, 0);
}

static void append(void *ctx, const stg_append *messages, size_t count,
                   stg_append_fn *done, void *done_ctx)
{
    scene *s = ctx;

    CHECK(s->done == NULL); // one at a time
    CHECK(count > 0 && count <= s->options.batch_max);
    s->appends++;
    s->done = done;
    s->done_ctx = done_ctx;
    s->held = messages;
    s->held_count = count;
    s->answer = s->fulls > 0 ? STG_APPEND_FULL : s->answer;
    if (s->holds)
        return;
    if (s->fulls > 0) {
        s->fulls--;
        settle(s);
        s->answer = STG_APPENDED;
        return;
    }
    settle(s);
}

static void ended(void *ctx, uint64_t messages)
{
    scene *s = ctx;

    CHECK(!s->has_ended);
    s->has_ended = true;
    s->ended_messages = messages;
}

static void set(void *ctx)
{
    *(bool *)ctx = true;
}

static void begin(scene *s)
{
    memset(s, 0, sizeof *s);
    CHECK_INT(uv_loop_init(&s->loop), 0);
    s->text = calloc(1, TEXT_MAX);
    CHECK(s->text != NULL);
    s->in = -1;
    s->options = stg_lines_options_default();
    s->options.append = append;
    s->options.ended = ended;
    s->options.ctx = s;
    s->options.backoff.base = s->options.backoff.cap = STG_MS;
}

static void open_fd(scene *s, int fd)
{
    s->options.fd = fd;
    if (stg_lines_open(&s->lines, &s->loop, &s->options, &s->err) != STG_OK)
        harness_fail(__FILE__, __LINE__, "%s", s->err.text);
}

static void open_pipe(scene *s)
{
    int ends[2];

    CHECK(pipe(ends) == 0);
    s->in = ends[1];
    open_fd(s, ends[0]);
}

static void run_until(scene *s, const bool *what)
{
    uint64_t end_at = uv_hrtime() + 20 * STG_S;

    while (!*what) {
        CHECK(uv_run(&s->loop, UV_RUN_ONCE) != 0 || *what);
        CHECK(uv_hrtime() < end_at);
    }
}

static void run(scene *s)
{
    for (int i = 0; i < 20; i++)
        (void)uv_run(&s->loop, UV_RUN_NOWAIT);
}

static void say(scene *s, const char *text)
{
    CHECK(write(s->in, text, strlen(text)) == (ssize_t)strlen(text));
    run(s);
}

static void hang_up(scene *s)
{
    close(s->in);
    s->in = -1;
    run_until(s, &s->has_ended);
}

static void end(scene *s)
{
    if (s->lines != NULL) {
        stg_lines_close(s->lines, set, &s->is_closed);
        run_until(s, &s->is_closed);
        close(s->options.fd);
    }
    if (s->done != NULL)
        settle(s);
    CHECK_INT(uv_run(&s->loop, UV_RUN_DEFAULT), 0);
    CHECK_INT(uv_loop_close(&s->loop), 0);
    if (s->in >= 0)
        close(s->in);
    free(s->text);
}

TEST(lines, makes_a_message_of_each_line)
{
    scene s;

    begin(&s);
    open_pipe(&s);
    say(&s, "one\ntwo and more\r\n\n\r\nthr");
    CHECK_STR(s.text, "one|two and more|");
    say(&s, "ee\nlast");
    CHECK_STR(s.text, "one|two and more|three|");
    CHECK(!s.has_ended);
    hang_up(&s);
    CHECK_STR(s.text, "one|two and more|three|last|");
    CHECK_U64(s.ended_messages, 4);
    end(&s);
}

TEST(lines, says_what_they_are)
{
    scene s;

    begin(&s);
    open_pipe(&s);
    s.holds = true;
    say(&s, "one\n");
    CHECK(s.done != NULL);
    CHECK_INT(s.held[0].parcel.content_type.size, 25);
    CHECK(memcmp(s.held[0].parcel.content_type.at, "text/plain; charset=utf-8",
                 25) == 0);
    CHECK_INT(s.held[0].idempotency_key.size, 0);
    settle(&s);
    end(&s);
}

TEST(lines, ends_an_empty_input)
{
    scene s;

    begin(&s);
    open_pipe(&s);
    hang_up(&s);
    CHECK_U64(s.ended_messages, 0);
    CHECK_INT(s.appends, 0);
    end(&s);
}

TEST(lines, reads_a_file_to_its_end)
{
    char path[] = "/tmp/stagger-lines-XXXXXX";
    int fd = mkstemp(path);
    FILE *f = fdopen(dup(fd), "w");
    scene s;

    CHECK(f != NULL && unlink(path) == 0);
    for (int i = 0; i < 100000; i++)
        CHECK(fprintf(f, "line %d\n", i) > 0);
    CHECK(fclose(f) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    begin(&s);
    open_fd(&s, fd);
    run_until(&s, &s.has_ended);
    CHECK_U64(s.ended_messages, 100000);
    CHECK(strncmp(s.text, "line 0|line 1|", 14) == 0);
    CHECK_STR(s.text + s.size - 11, "line 99999|");
    end(&s);
}

TEST(lines, ends_where_there_is_nothing)
{
    scene s;

    begin(&s);
    open_fd(&s, open("/dev/null", O_RDONLY | O_CLOEXEC));
    run_until(&s, &s.has_ended);
    CHECK_U64(s.ended_messages, 0);
    end(&s);
}

TEST(lines, reads_a_socket)
{
    int ends[2];
    scene s;

    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    begin(&s);
    s.in = ends[1];
    open_fd(&s, ends[0]);
    say(&s, "one\n");
    hang_up(&s);
    CHECK_STR(s.text, "one|");
    end(&s);
}

TEST(lines, leaves_the_flags_of_its_input_alone)
{
    scene s;

    begin(&s);
    open_pipe(&s);
    say(&s, "one\n");
    CHECK_INT(fcntl(s.options.fd, F_GETFL) & O_NONBLOCK, 0);
    end(&s);
}

TEST(lines, skips_a_line_that_is_too_long)
{
    scene s;
    stg_lines_view view;
    char *huge = malloc(30001);

    CHECK(huge != NULL);
    memset(huge, 'x', 30000);
    huge[30000] = '\0';
    begin(&s);
    s.options.message_max = 10;
    open_pipe(&s);
    say(&s, "0123456789\r\n01234567890\nshort\n");
    say(&s, huge);
    say(&s, huge);
    say(&s, "\n0123456789\n");
    CHECK_STR(s.text, "0123456789|short|0123456789|");
    say(&s, huge);
    hang_up(&s);
    stg_lines_look(s.lines, &view);
    CHECK_U64(view.skipped, 3);
    CHECK_U64(view.messages, 3);
    CHECK_U64(view.lines, 6);
    free(huge);
    end(&s);
}

TEST(lines, puts_what_came_meanwhile_into_one_append)
{
    scene s;

    begin(&s);
    s.options.batch_max = 3;
    open_pipe(&s);
    s.holds = true;
    say(&s, "1\n");
    say(&s, "2\n3\n4\n5\n");
    CHECK_INT(s.appends, 1);
    settle(&s);
    CHECK_INT(s.held_count, 3);
    s.holds = false;
    settle(&s);
    CHECK_STR(s.text, "1|2|3|4|5|");
    CHECK_INT(s.appends, 3);
    end(&s);
}

/* I6. */
TEST(lines, stops_reading_while_much_waits)
{
    char text[4096];
    scene s;
    stg_lines_view view;
    size_t sent = 0;

    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\n';
    begin(&s);
    s.options.message_max = 10000;
    s.options.pending_max = 200000;
    open_pipe(&s);
    CHECK(fcntl(s.in, F_SETFL, O_NONBLOCK) == 0);
    s.holds = true;
    for (int i = 0; i < 1000; i++) {
        ssize_t n = write(s.in, text, sizeof text);

        sent += n > 0 ? (size_t)n : 0;
        run(&s);
    }
    stg_lines_look(s.lines, &view);
    CHECK(view.pending >= 200000 && view.pending <= 200000 + 65536);
    CHECK(sent < 1000 * sizeof text);
    s.holds = false;
    settle(&s);
    hang_up(&s);
    CHECK_U64(s.ended_messages, sent / sizeof text);
    end(&s);
}

TEST(lines, asks_a_full_store_again_until_it_takes_them)
{
    scene s;
    stg_lines_view view;

    begin(&s);
    s.fulls = 5;
    open_pipe(&s);
    say(&s, "one\n");
    say(&s, "two\n");
    hang_up(&s);
    CHECK_STR(s.text, "one|two|");
    CHECK(s.appends >= 6);
    stg_lines_look(s.lines, &view);
    CHECK(!view.is_waiting);
    end(&s);
}

/* It could be there twice. */
TEST(lines, sends_nothing_again_that_may_be_there)
{
    scene s;

    begin(&s);
    s.answer = STG_APPEND_UNKNOWN;
    open_pipe(&s);
    say(&s, "one\n");
    say(&s, "two\n");
    CHECK_INT(s.appends, 1);
    CHECK(!s.has_ended);
    stg_lines_stop(s.lines, set, &s.is_stopped);
    run_until(&s, &s.is_stopped);
    end(&s);
}

TEST(lines, stops_when_what_waits_is_durable)
{
    scene s;

    begin(&s);
    open_pipe(&s);
    s.holds = true;
    say(&s, "one\n");
    say(&s, "two\n");
    stg_lines_stop(s.lines, set, &s.is_stopped);
    run(&s);
    CHECK(!s.is_stopped);
    settle(&s);
    CHECK(!s.is_stopped);
    // What was read meanwhile, too.
    settle(&s);
    run_until(&s, &s.is_stopped);
    CHECK_STR(s.text, "one|two|");
    CHECK_INT(s.appends, 2);
    end(&s);
}

TEST(lines, stops_while_the_store_is_full)
{
    scene s;

    begin(&s);
    s.options.backoff.base = s.options.backoff.cap = STG_HOUR;
    s.fulls = 1;
    open_pipe(&s);
    say(&s, "one\n");
    CHECK_INT(s.appends, 1);
    // It has room when it is asked for the last time.
    stg_lines_stop(s.lines, set, &s.is_stopped);
    run_until(&s, &s.is_stopped);
    CHECK(!s.has_ended);
    CHECK_STR(s.text, "one|");
    end(&s);
}

TEST(lines, counts_what_a_stop_drops)
{
    stg_lines_view view;
    scene s;

    begin(&s);
    s.options.backoff.base = s.options.backoff.cap = STG_HOUR;
    s.fulls = 9;
    open_pipe(&s);
    say(&s, "one\n");
    say(&s, "two\n\nthree\nfo");
    stg_lines_stop(s.lines, set, &s.is_stopped);
    run_until(&s, &s.is_stopped);
    stg_lines_look(s.lines, &view);
    CHECK_U64(view.messages, 0);
    CHECK_U64(view.dropped, 3);
    CHECK_U64(view.cut, 2);
    CHECK_INT(s.appends, 2);
    end(&s);
}

/* end() answers it when the lines are gone. */
TEST(lines, closes_while_an_append_is_under_way)
{
    scene s;

    begin(&s);
    open_pipe(&s);
    s.holds = true;
    say(&s, "one\n");
    CHECK(s.done != NULL);
    end(&s);
}

TEST(lines, refuses_what_cannot_be_read)
{
    scene s;
    int ends[2];

    begin(&s);
    s.options.fd = open("/", O_RDONLY | O_CLOEXEC);
    CHECK_INT(stg_lines_open(&s.lines, &s.loop, &s.options, &s.err), STG_IO);
    CHECK(strstr(s.err.text, "it is a directory") != NULL);
    close(s.options.fd);
    CHECK_INT(stg_lines_open(&s.lines, &s.loop, &s.options, &s.err), STG_IO);
    CHECK(strstr(s.err.text, "it is closed") != NULL);
    CHECK(pipe(ends) == 0);
    s.options.fd = ends[1];
    CHECK_INT(stg_lines_open(&s.lines, &s.loop, &s.options, &s.err), STG_IO);
    CHECK(strstr(s.err.text, "not open for reading") != NULL);
    close(ends[0]);
    close(ends[1]);
    end(&s);
}

/* However the bytes are cut into pieces, the lines are the same. */
TEST(lines, are_the_same_in_any_pieces)
{
    static const char text[] =
        "a\r\n\n0123456\n01234567\r\nlong line\n\rb\r\n"
        "01234567\r\r\n\n\nend";
    static const char expected[] =
        "1:a 3:0123456 4:01234567 5:! 6:\rb 7:! "
        "10:end ";

    for (uint64_t seed = 0; seed < seeds(1000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_line_buffer b;
        char found[256] = "";
        size_t at = 0, size = sizeof text - 1;
        stg_span line;

        stg_line_buffer_init(&b, 8);
        while (at <= size) {
            size_t piece = (size_t)stg_rng_upto(&rng, 12);
            stg_line what;

            piece = piece < size - at ? piece : size - at;
            CHECK(stg_line_buffer_add(&b, text + at, piece));
            at += piece;
            while ((what = stg_line_buffer_next(&b, at == size, &line)) !=
                   STG_LINE_NONE)
                snprintf(found + strlen(found), sizeof found - strlen(found),
                         "%d:%.*s ", (int)b.number,
                         what == STG_LINE ? (int)line.size : 1,
                         what == STG_LINE ? line.at : "!");
            if (at == size)
                break;
        }
        if (strcmp(found, expected) != 0)
            CHECK_STR(found, expected);
        stg_line_buffer_free(&b);
    }
}
