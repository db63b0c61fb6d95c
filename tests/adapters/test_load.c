#include <stagger/load.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/adapters/story.h"
#include "tests/harness.h"

/* A file of this test, with such a content; the next one replaces it. */
static const char *file_with(const char *content, size_t size)
{
    static char path[] = "/tmp/stagger-load-XXXXXX";
    static int fd = -1;

    if (fd < 0)
        CHECK((fd = mkstemp(path)) >= 0);
    CHECK(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    CHECK(write(fd, content, size) == (ssize_t)size);
    return path;
}

static const char *file_of(const char *content)
{
    return file_with(content, strlen(content));
}

__attribute__((destructor)) static void remove_file(void)
{
    unlink(file_of(""));
}

/* Checks that reading fails with this status and the words "PATH<rest>". */
static void check_fails(const char *path, const char *name, stg_status status,
                        const char *rest)
{
    stg_policy policy = policy_of("none"), before = policy;
    stg_error err = {.line = 99, .column = 99};
    char text[sizeof err.text];

    CHECK_INT(stg_policy_load(&policy, path, name, &err), status);
    snprintf(text, sizeof text, "%s%s", path, rest);
    CHECK_STR(err.text, text);
    CHECK(stg_policy_equal(&policy, &before));
    CHECK_INT(stg_policy_load(&policy, path, name, NULL), status);
}

TEST(load, reads_a_policy_by_its_name)
{
    const char *path = file_of(
        "# two of them\n"
        "db: backend deadline=10s\n"
        "\n"
        "hooks:webhook attempts=4 # less");
    stg_policy policy, db = policy_of("backend deadline=10s");
    stg_policy hooks = policy_of("webhook attempts=4");
    stg_error err = {.text = "untouched"};

    CHECK(stg_policy_load(&policy, path, "db", &err) == STG_OK);
    CHECK(stg_policy_equal(&policy, &db));
    CHECK(stg_policy_load(&policy, path, "hooks", NULL) == STG_OK);
    CHECK(stg_policy_equal(&policy, &hooks));
    CHECK_STR(err.text, "untouched");
}

TEST(load, says_when_there_is_no_such_name)
{
    check_fails(file_of("db: backend\n"), "cache", STG_NOT_FOUND,
                ": has no policy called cache");
    check_fails(file_of(""), "db", STG_NOT_FOUND, ": has no policy called db");
}

TEST(load, says_where_the_file_is_wrong)
{
    const char *path = file_of("db: backend\nweb: client attempts=0\n");
    char place[128];
    stg_policy policy;
    stg_error err;

    CHECK(stg_policy_load(&policy, path, "db", &err) == STG_INVALID);
    CHECK_INT(err.line, 2);
    CHECK_INT(err.column, 13);
    snprintf(place, sizeof place, "%s:2:13: attempts=0 ", path);
    CHECK(strncmp(err.text, place, strlen(place)) == 0);

    path = file_of("\n\n  db backend\n");
    CHECK(stg_policy_load(&policy, path, "db", &err) == STG_INVALID);
    CHECK_INT(err.line, 3);
    CHECK_INT(err.column, 5);
}

TEST(load, says_why_a_file_cannot_be_read)
{
    check_fails("/nonexistent/policies", "db", STG_IO,
                ": No such file or directory");
    check_fails("/", "db", STG_IO, ": Is a directory");
}

TEST(load, says_when_it_may_not_read)
{
    const char *path = file_of("db: backend\n");
    stg_policy policy;
    stg_error err;
    stg_status status;
    bool is_root = geteuid() == 0;

    CHECK(chmod(path, 0) == 0);
    CHECK(!is_root || seteuid(65534) == 0);
    status = stg_policy_load(&policy, path, "db", &err);
    CHECK(!is_root || seteuid(0) == 0);
    CHECK(chmod(path, 0600) == 0);
    CHECK_INT(status, STG_IO);
    CHECK(strstr(err.text, ": Permission denied") != NULL);
    CHECK_INT(err.line, 0);
    CHECK_INT(err.column, 0);
}

TEST(load, reads_a_file_of_a_mebibyte_and_not_a_byte_more)
{
    size_t most = STG_FILE_MAX;
    char *text = malloc(most + 1), *read;
    size_t size;
    stg_policy policy;

    CHECK(text != NULL);
    memset(text, '\n', most + 1);
    memcpy(text, "db: client", 10);
    CHECK(stg_policy_load(&policy, file_with(text, most), "db", NULL) ==
          STG_OK);
    CHECK(stg_file_read(file_with(text, most), &read, &size, NULL) == STG_OK);
    CHECK_U64(size, most);
    CHECK(memcmp(read, text, size) == 0 && read[size] == '\0');
    free(read);
    check_fails(file_with(text, most + 1), "db", STG_INVALID,
                ": too long, expected at most 1 MiB");
    free(text);
}

TEST(load, does_not_read_for_ever)
{
    check_fails("/dev/zero", "db", STG_INVALID,
                ": too long, expected at most 1 MiB");
}

/* Whatever the size around that of its blocks. */
TEST(load, reads_every_byte_and_terminates_them)
{
    for (size_t length = 0; length < 20000; length += 1 + length / 40) {
        char *text = malloc(length + 1), *read;
        size_t size;

        CHECK(text != NULL);
        for (size_t i = 0; i < length; i++)
            text[i] = (char)i; // zeros too
        CHECK(stg_file_read(file_with(text, length), &read, &size, NULL) ==
              STG_OK);
        CHECK_FROM(length, size == length);
        CHECK_FROM(length, memcmp(read, text, length) == 0);
        CHECK_FROM(length, read[length] == '\0');
        free(read);
        free(text);
    }
}

TEST(load, leaves_no_text_where_it_fails)
{
    char *text = NULL;
    size_t size;

    CHECK(stg_file_read("/", &text, &size, NULL) == STG_IO);
    CHECK(text == NULL);
}

TEST(load, refuses_null)
{
    const char *path = file_of("db: client\n");
    stg_policy policy;
    stg_error err;
    char *text;
    size_t size;

    CHECK(stg_policy_load(NULL, path, "db", &err) == STG_INVALID);
    CHECK_STR(err.text, "policies: an argument is NULL");
    CHECK(stg_policy_load(&policy, NULL, "db", NULL) == STG_INVALID);
    CHECK(stg_policy_load(&policy, path, NULL, NULL) == STG_INVALID);
    CHECK(stg_file_read(NULL, &text, &size, NULL) == STG_INVALID);
    CHECK(stg_file_read(path, NULL, &size, NULL) == STG_INVALID);
    CHECK(stg_file_read(path, &text, NULL, NULL) == STG_INVALID);
}
