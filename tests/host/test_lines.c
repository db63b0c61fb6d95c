/* Lines that are appended to a file which others rename, remove, replace, truncate,
 * or fill the disk under. */
#include "host/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/harness.h"

static const char begins[] = "{\"id\": #, \"of\": \"";

typedef struct fixture {
    char folder[40], path[64], other[64];
    stg_lines lines;
    const char *text;                /* lines of the batch */
    void (*acts)(struct fixture *f); /* behind its lines, once */
    int times, error;
} fixture;

static void fixture_make(fixture *f)
{
    *f = (fixture){.folder = "/tmp/stagger-lines-XXXXXX"};
    CHECK(mkdtemp(f->folder) != NULL);
    snprintf(f->path, sizeof f->path, "%s/lines", f->folder);
    snprintf(f->other, sizeof f->other, "%s/other", f->folder);
    f->lines = (stg_lines){.path = f->path, .begins = begins};
}

static void fixture_end(fixture *f)
{
    stg_lines_close(&f->lines);
    (void)unlink(f->path);
    (void)unlink(f->other);
    CHECK(rmdir(f->folder) == 0);
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* The text of a file; "-" where there is none. Static. */
static const char *text_of(const char *path)
{
    static char text[4096];
    FILE *file = fopen(path, "r");
    size_t size;

    if (file == NULL)
        return "-";
    size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    fclose(file);
    return text;
}

/* Each line of the batch by itself. */
static void write_text(void *ctx)
{
    fixture *f = ctx;
    void (*acts)(fixture *) = f->acts;

    f->times++;
    f->error = 0;
    for (const char *at = f->text, *end; *at != '\0' && f->error == 0;
         at = end) {
        end = strchr(at, '\n') + 1;
        if (!stg_lines_write(&f->lines, (stg_span){at, (size_t)(end - at)}))
            f->error = errno;
    }
    f->acts = NULL;
    if (acts != NULL)
        acts(f);
}

static bool append(fixture *f, const char *text)
{
    f->text = text;
    f->times = 0;
    return stg_lines_append(&f->lines, true, write_text, f);
}

/* -- what others do -------------------------------------------------------- */

static void move_away(fixture *f)
{
    CHECK(rename(f->path, f->other) == 0);
}

static void remove_it(fixture *f)
{
    CHECK(unlink(f->path) == 0);
}

static void replace(fixture *f)
{
    put(f->other, "theirs\n");
    CHECK(rename(f->other, f->path) == 0);
}

static void cut(fixture *f)
{
    CHECK(truncate(f->path, 0) == 0);
}

/* Does what logrotate's `create` does. */
static void rotate(fixture *f)
{
    move_away(f);
    put(f->path, "");
}

static void link_elsewhere(fixture *f)
{
    remove_it(f);
    put(f->other, "");
    CHECK(symlink(f->other, f->path) == 0);
}

static void put_a_folder(fixture *f)
{
    remove_it(f);
    CHECK(mkdir(f->path, 0700) == 0);
}

static void (*const acts[])(fixture *) = {move_away, remove_it, replace,
                                          cut,       rotate,    link_elsewhere};

enum { ACTS = sizeof acts / sizeof *acts };

TEST(lines, go_to_the_file_of_the_path_after_whatever_is_done_to_it)
{
    for (size_t i = 0; i < ACTS; i++) {
        fixture f;

        fixture_make(&f);
        CHECK(append(&f, "a\nb\n"));
        acts[i](&f);
        CHECK(append(&f, "c\n"));
        CHECK_INT(f.times, 1);
        CHECK_STR(text_of(f.path), acts[i] == replace ? "theirs\nc\n" : "c\n");
        fixture_end(&f);
    }
}

TEST(lines, are_written_again_where_their_file_went_meanwhile)
{
    for (size_t i = 0; i < ACTS; i++) {
        fixture f;

        fixture_make(&f);
        f.acts = acts[i];
        CHECK(append(&f, "a\nb\n"));
        CHECK_INT(f.times, 2);
        CHECK_STR(text_of(f.path),
                  acts[i] == replace ? "theirs\na\nb\n" : "a\nb\n");
        fixture_end(&f);
    }
}

/* Between two lines of a batch: only their places tell. */
static void write_around_a_cut(void *ctx)
{
    fixture *f = ctx;

    CHECK(stg_lines_write(&f->lines, (stg_span){"a\n", 2}));
    if (f->times++ == 0)
        cut(f);
    CHECK(stg_lines_write(&f->lines, (stg_span){"b, and more\n", 12}));
}

TEST(lines, are_written_again_where_some_were_cut_off)
{
    fixture f;

    fixture_make(&f);
    CHECK(stg_lines_append(&f.lines, false, write_around_a_cut, &f));
    CHECK_STR(text_of(f.path), "b, and more\na\nb, and more\n");
    fixture_end(&f);
}

static void write_and_remove(void *ctx)
{
    fixture *f = ctx;

    f->times++;
    CHECK(stg_lines_write(&f->lines, (stg_span){"a\n", 2}));
    remove_it(f);
}

TEST(lines, that_never_stay_are_an_error)
{
    fixture f;

    fixture_make(&f);
    CHECK(!stg_lines_append(&f.lines, false, write_and_remove, &f));
    CHECK(strstr(stg_lines_error(errno), "was replaced") != NULL);
    CHECK_INT(f.times, 3);
    f.acts = put_a_folder;
    CHECK(!append(&f, "a\n"));
    CHECK_INT(errno, EISDIR);
    CHECK(rmdir(f.path) == 0);
    CHECK(append(&f, "a\n"));
    fixture_end(&f);
}

/* -- an unfinished line at the end ----------------------------------------- */

TEST(lines, of_ours_are_cut_off_where_a_crash_has_left_a_part)
{
    static const char whole[] = "{\"id\": 17, \"of\": \"me\"}\n";
    char text[128];

    // After each byte of the second line.
    for (size_t size = 1; size < sizeof whole - 1; size++) {
        fixture f;

        fixture_make(&f);
        snprintf(text, sizeof text, "%s%.*s", whole, (int)size, whole);
        put(f.path, text);
        CHECK(append(&f, whole));
        snprintf(text, sizeof text, "%s%s", whole, whole);
        CHECK_STR(text_of(f.path), text);
        fixture_end(&f);
    }
}

TEST(lines, of_others_are_ended_and_never_cut)
{
    static const char *const foreign[] = {
        "a",
        "{",
        "no line at all, as in a database",
        "{\"id\": 1",
        "{\"id\": x, \"of\": \"them\"",
        "one\ntwo",
        "one\n{\"id\": 1, \"of\": \"them\"",
        "{\"id\": 1, \"of\": \"us\"}\n{\"id\": x",
        "{\"id\": 1, \"of\": \"us\"}\n\n{\"id\": 1",
        "\n{\"id\": 1",
    };
    char text[128];

    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        fixture f;

        fixture_make(&f);
        put(f.path, foreign[i]);
        CHECK(stg_lines_check(&f.lines));
        snprintf(text, sizeof text, "%s\n", foreign[i]);
        CHECK_STR(text_of(f.path), text);
        fixture_end(&f);
    }
}

/* Another process may write to the file just now. */
TEST(lines, are_not_cut_in_a_file_that_was_open_before)
{
    static const char part[] =
        "{\"id\": 1, \"of\": \"us\"}\n{\"id\": 2, \"of\": \"o";
    char text[128];
    fixture f;

    fixture_make(&f);
    CHECK(append(&f, "{\"id\": 0, \"of\": \"us\"}\n"));
    put(f.path, part);
    CHECK(append(&f, "{\"id\": 3, \"of\": \"us\"}\n"));
    snprintf(text, sizeof text, "%s\n{\"id\": 3, \"of\": \"us\"}\n", part);
    CHECK_STR(text_of(f.path), text);
    fixture_end(&f);
}

/* -- what cannot be written ------------------------------------------------ */

static void limit_files(rlim_t size)
{
    struct rlimit most;

    CHECK_INT(getrlimit(RLIMIT_FSIZE, &most), 0);
    most.rlim_cur = size;
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &most), 0);
}

TEST(lines, are_there_whole_or_not_at_all_on_a_full_disk)
{
    fixture f;

    fixture_make(&f);
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t size = 0; size < 15; size++) {
        put(f.path, "");
        limit_files(size);
        CHECK(append(&f, "first\nsecond\n")); // no line is half there
        limit_files(RLIM_INFINITY);
        CHECK_INT(f.error, size < 13 ? EFBIG : 0);
        CHECK_STR(text_of(f.path), size < 6    ? ""
                                   : size < 13 ? "first\n"
                                               : "first\nsecond\n");
    }
    fixture_end(&f);
}

static bool is_mine(void *ctx, const struct stat *file)
{
    struct stat mine;

    return stat(ctx, &mine) == 0 && mine.st_ino == file->st_ino;
}

TEST(lines, do_not_go_to_a_file_that_is_taken)
{
    fixture f;

    fixture_make(&f);
    f.lines.is_taken = is_mine;
    f.lines.taken_ctx = f.other;
    CHECK(append(&f, "a\n"));
    put(f.other, "mine");
    CHECK(unlink(f.path) == 0 && link(f.other, f.path) == 0);
    CHECK(!append(&f, "b\n"));
    CHECK(strstr(stg_lines_error(errno), "file of the store") != NULL);
    CHECK(unlink(f.path) == 0 && symlink(f.other, f.path) == 0);
    CHECK(!stg_lines_check(&f.lines));
    CHECK_STR(text_of(f.other), "mine");
    fixture_end(&f);
}

/* -- pipes ----------------------------------------------------------------- */

TEST(lines, wait_for_no_reader_of_a_pipe)
{
    char text[8] = "";
    fixture f;
    int fd;

    fixture_make(&f);
    signal(SIGPIPE, SIG_IGN);
    CHECK(mkfifo(f.path, 0600) == 0);
    alarm(10); // a test that hangs ends
    CHECK(stg_lines_check(&f.lines));
    CHECK(!append(&f, "a\n"));
    fd = open(f.path, O_RDONLY | O_NONBLOCK);
    CHECK(append(&f, "b\n") && append(&f, "c\n"));
    CHECK(read(fd, text, sizeof text) == 4 && memcmp(text, "b\nc\n", 4) == 0);
    CHECK(read(fd, text, sizeof text) < 0); // the writer stays open
    CHECK(close(fd) == 0);
    CHECK(append(&f, "d\n"));
    CHECK_INT(f.error, EPIPE);
    alarm(0);
    fixture_end(&f);
}
