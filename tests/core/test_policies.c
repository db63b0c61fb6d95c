/* A file of named policies. */
#include <stagger/policies.h>

#include <stdio.h>
#include <stdlib.h>

#include "tests/harness.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

static stg_policies over(const char *text)
{
    return (stg_policies){.text = text, .size = strlen(text)};
}

/* What is in a file, a line each: "2 db: <the policy>". The error ends it. */
static const char *list(const char *text)
{
    static char out[8192];
    stg_policies walk = over(text);
    char name[STG_NAME_MAX], printed[STG_POLICY_TEXT_MAX];
    stg_policy p;
    stg_error err;
    stg_status status;
    size_t at = 0;

    out[0] = '\0';
    while ((status = stg_policies_next(&walk, name, &p, &err)) == STG_OK) {
        CHECK_INT(stg_policy_print(&p, printed), STG_OK);
        at += (size_t)snprintf(out + at, sizeof out - at, "%u %s: %s\n",
                               (unsigned)walk.line, name, printed);
    }
    if (status == STG_INVALID)
        snprintf(out + at, sizeof out - at, "%s\n", err.text);
    return out;
}

#define NONE                                                             \
    "exponential base=200ms cap=30s jitter=full attempts=1 deadline=2m " \
    "retry=default\n"
#define AWS                                                           \
    "exponential base=1s cap=20s jitter=full attempts=3 deadline=2m " \
    "retry=default budget=aws\n"

TEST(policies, are_read_line_by_line)
{
    CHECK_TRACE(list("# who calls the database\n"
                     "db: backend deadline=10s\n"
                     "\n"
                     "hooks: webhook attempts=4   # the partner asked\n"),
                "2 db: exponential base=200ms cap=30s jitter=full attempts=5 "
                "deadline=10s retry=default budget=tokens:100:10/s\n"
                "4 hooks: list=5s,5m,30m,2h,5h,10h,10h jitter=20% attempts=4 "
                "deadline=none attempt-timeout=30s retry=any never=410 "
                "breaker=20:200ms-30s breaker-connect=3\n");
}

TEST(policies, may_be_none)
{
    static const char *const texts[] = {
        "",        "\n",        "\n\n\n",     " ",    "\t \n",
        "#",       "# x",       "  # x\n",    "\r\n", " \r\n\r\n",
        "# x\r\n", "#\n#\n\n#", "##: none\n", "\r",   "# db: bogus\n"};

    for (size_t i = 0; i < COUNT(texts); i++)
        CHECK_STR(list(texts[i]), "");
}

/* Of each line only what says something counts. */
TEST(policies, stand_among_blanks_and_comments)
{
    static const char *const texts[] = {
        "db: none\n",         "db: none",      "db:none\n",
        "db:\t none\n",       "  db: none\n",  "\tdb: none\n",
        "db: none  \n",       "db: none\t",    "db: none\r\n",
        "db: none\r",         "db: none \r\n", "db: none # why\n",
        "db: none # why\r\n", "db: none#why",  "db: none ## why # and",
        "db: none #",
    };

    for (size_t i = 0; i < COUNT(texts); i++)
        CHECK_STR(list(texts[i]), "1 db: " NONE);
    CHECK_TRACE(list("a: none\r\nb: aws\r\n"), "1 a: " NONE "2 b: " AWS);
    CHECK_TRACE(list("a: none\n\n# x\n \nb: aws"), "1 a: " NONE "5 b: " AWS);
}

TEST(policies, have_names_of_letters_digits_and_some_signs)
{
    static const char *const names[] = {
        "a",
        "Z",
        "db2",
        "a-b_c.d",
        "A.",
        "a--",
        "backends",
        "Backend",
        "any",
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"};

    for (size_t i = 0; i < COUNT(names); i++) {
        char text[128], expected[256];

        snprintf(text, sizeof text, "%s: none", names[i]);
        snprintf(expected, sizeof expected, "1 %s: %s", names[i], NONE);
        CHECK_STR(list(text), expected);
    }
}

#define NAME \
    ": expected `name: policy`, with a name that starts with a letter\n"
#define COLON ": expected a colon behind the name\n"
#define PRESET ": is the name of a preset, expected another\n"

TEST(policies, are_refused_with_the_place)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {": none", "policies:1:1: : none" NAME},
        {"1db: none", "policies:1:1: 1db: none" NAME},
        {"-db: none", "policies:1:1: -db: none" NAME},
        {".db: none", "policies:1:1: .db: none" NAME},
        {"_db: none", "policies:1:1: _db: none" NAME},
        {"  =: none", "policies:1:3: =: none" NAME},
        {"@db: none", "policies:1:1: @db: none" NAME},
        {"[db: none", "policies:1:1: [db: none" NAME},
        {"`db: none", "policies:1:1: `db: none" NAME},
        {"{db: none", "policies:1:1: {db: none" NAME},
        {"d{: none", "policies:1:2: {: none" COLON},
        {"\xc3\xa4: none", "policies:1:1: ??: none" NAME},
        {"\n\n \t9", "policies:3:3: 9" NAME},
        {"db none", "policies:1:3:  none" COLON},
        {"db : none", "policies:1:3:  : none" COLON},
        {"db", "policies:1:3: nothing" COLON},
        {"db # : none", "policies:1:3:  " COLON},
        {"db=none", "policies:1:3: =none" COLON},
        {"d\xc3\xa4: none", "policies:1:2: ??: none" COLON},
        {"attempts=3", "policies:1:9: =3" COLON},
        {"backend: none", "policies:1:1: backend" PRESET},
        {"none: none", "policies:1:1: none" PRESET},
        {" webhook: none", "policies:1:2: webhook" PRESET},
        {"broadcast-wide: none", "policies:1:1: broadcast-wide" PRESET},
        {"a123456789012345678901234567890123456789012345678901234567890123: "
         "none",
         "1 a123456789012345678901234567890123456789012345678901234567890123: " NONE},
        {"a1234567890123456789012345678901234567890123456789012345678901234: "
         "none",
         "policies:1:1: a123456789012345678901234567890123456789...: too long, "
         "expected a name of at most 64\n"},
        // What the policy says of itself, in its line and column.
        {"db: attempts=0",
         "policies:1:5: attempts=0 is out of range, expected 1 "
         "to 4294967295, or unlimited\n"},
        {"db:attempts=0",
         "policies:1:4: attempts=0 is out of range, expected 1 "
         "to 4294967295, or unlimited\n"},
        {"\n  db:\t backend unsafe=x",
         "policies:2:16: unsafe=x: expected yes or "
         "no\n"},
        {"# x\r\n\r\ndb: aws base=30s",
         "policies:3:9: cap=20s is below base=30s\n"},
        {"db: none nested=x\r\n",
         "policies:1:10: nested=x: expected once or full\n"},
        {"db: retry=503 once=503",
         "policies:1:20: 503: a second rule on it, the first is at 1:11\n"},
        {"\ndb: retry=503,503",
         "policies:2:15: 503: a second rule on it, the first is at 2:11\n"},
        {"db: unsafe=\r\r\n", "policies:1:5: unsafe=: expected yes or no\n"},
        {"db: unsafe=yes\fx\n",
         "policies:1:5: unsafe=yes?x: expected yes or no\n"},
        {"db: unsafe=#yes", "policies:1:5: unsafe=: expected yes or no\n"},
        // A name twice: both places are told.
        {"a: none\nb: none\na: aws",
         "1 a: " NONE "2 b: " NONE
         "policies:3:1: a: has a policy already, in line 1\n"},
        {"# x\n\n  a: none\n a: none",
         "3 a: " NONE "policies:4:2: a: has a policy already, in line 3\n"},
        {"ab: none\na: none\nabc: none\nab:none",
         "1 ab: " NONE "2 a: " NONE "3 abc: " NONE
         "policies:4:1: ab: has a policy already, in line 1\n"},
        {"# a: none\na: none\n#a: none", "2 a: " NONE},
        {"a: none\nA: none", "1 a: " NONE "2 A: " NONE},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        CHECK_TRACE(list(rows[i].text), rows[i].message);
}

TEST(policies, are_refused_under_the_name_of_any_preset)
{
    const stg_preset *preset;

    for (size_t i = 0; (preset = stg_preset_at(i)) != NULL; i++) {
        char text[64], message[128];

        snprintf(text, sizeof text, "%s: none", preset->name);
        snprintf(message, sizeof message, "policies:1:1: %s" PRESET,
                 preset->name);
        CHECK_STR(list(text), message);
    }
}

TEST(policies, are_refused_without_a_policy)
{
    stg_policies walk = over("ok: none\n\n  db:  # to do\n");
    char name[STG_NAME_MAX];
    stg_policy p;
    stg_error err;
    static const char place[] = "policies:3:8: nothing: expected a preset";

    CHECK_INT(stg_policies_next(&walk, name, &p, &err), STG_OK);
    CHECK_INT(stg_policies_next(&walk, name, &p, &err), STG_INVALID);
    err.text[sizeof place - 1] = '\0';
    CHECK_STR(err.text, place);
    CHECK_INT(err.line, 3);
    CHECK_INT(err.column, 8);
}

TEST(policies, are_refused_where_they_are_too_long)
{
    char text[1200];
    const size_t start = 4; // "db: "

    memset(text, ' ', sizeof text);
    memcpy(text, "db: attempts=1", 14);
    text[start + 1023] = '\0';
    CHECK_STR(list(text), "1 db: " NONE);
    text[start + 1023] = ' ';
    text[start + 1024] = '\0';
    CHECK_STR(list(text),
              "policies:1:5: attempts=1                            "
              "  ...: too long, expected at most 1023 bytes\n");
    // What stands behind a # is no part of it.
    text[20] = '#';
    CHECK_STR(list(text), "1 db: " NONE);
}

/* A zero byte is a byte like another. */
TEST(policies, end_at_their_size_and_at_nothing_else)
{
    static const char text[] = "a: none\nb: no\0ne\nc: none";
    stg_policies walk = {
        .source = "my.conf", .text = text, .size = sizeof text - 1};
    char name[STG_NAME_MAX];
    stg_policy p;
    stg_error err;

    CHECK_INT(stg_policies_next(&walk, name, &p, &err), STG_OK);
    CHECK_INT(stg_policies_next(&walk, name, &p, &err), STG_INVALID);
    CHECK_INT(strncmp(err.text, "my.conf:2:4: no?ne: did you ", 28), 0);

    walk = (stg_policies){.text = text, .size = 6};
    CHECK_INT(stg_policies_next(&walk, name, &p, &err), STG_INVALID);
    CHECK_INT(strncmp(err.text, "policies:1:4: non: did you ", 27), 0);
    walk = (stg_policies){.text = text, .size = 7};
    CHECK_INT(stg_policies_next(&walk, name, &p, &err), STG_OK);
    CHECK_INT(stg_policies_next(&walk, name, &p, &err), STG_NOT_FOUND);
}

TEST(policies, stay_at_what_is_wrong)
{
    stg_policies walk = over("a: none\n\nb: bogus\nc: none\n"), before;
    char name[STG_NAME_MAX] = "before";
    stg_policy p = stg_policy_default(), untouched = p;
    stg_error err;

    walk.source = "my.conf";
    CHECK_INT(stg_policies_next(&walk, name, &p, &err), STG_OK);
    CHECK_STR(name, "a");
    before = walk;
    p = untouched;
    for (int i = 0; i < 3; i++) {
        CHECK_INT(stg_policies_next(&walk, name, &p, &err), STG_INVALID);
        CHECK_INT(strncmp(err.text, "my.conf:3:4: bogus: expected a", 28), 0);
        CHECK_INT(err.line, 3);
        CHECK_INT(err.column, 4);
        CHECK(walk.at == before.at && walk.line == before.line);
        CHECK(stg_policy_equal(&p, &untouched));
        CHECK_INT(stg_policies_next(&walk, name, &p, NULL), STG_INVALID);
    }
}

TEST(policies, stay_at_the_end)
{
    stg_policies walk = over("a: none\n# the end\n");
    char name[STG_NAME_MAX];
    stg_policy p;
    stg_error err = {.text = "as it was"};

    CHECK_INT(stg_policies_next(&walk, name, &p, &err), STG_OK);
    CHECK_INT(walk.line, 1);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(stg_policies_next(&walk, name, &p, &err), STG_NOT_FOUND);
        CHECK_U64(walk.at, walk.size);
        CHECK_INT(walk.line, 2);
        CHECK_STR(name, "a");
    }
    CHECK_STR(err.text, "as it was");
}

TEST(policies, are_found_by_name)
{
    const stg_policies file = over("a: none\nb: aws\nab: client\n");
    static const char *const presets[][2] = {
        {"a", "none"}, {"b", "aws"}, {"ab", "client"}};
    stg_policy p, expected;
    stg_error err = {.text = "as it was"};

    for (size_t i = 0; i < COUNT(presets); i++) {
        stg_policy_parse(&expected, presets[i][1], NULL);
        CHECK_INT(stg_policies_find(&file, presets[i][0], &p, &err), STG_OK);
        CHECK(stg_policy_equal(&p, &expected));
        CHECK_STR(err.text, "as it was");
    }
    CHECK_U64(file.at, 0);
}

TEST(policies, are_not_found_by_another_name)
{
    stg_policies file = over("a: none\nb: aws\nab: client\n");
    static const char *const names[] = {"", "c", "A", "a??", "none"};
    stg_policy p = stg_policy_default(), untouched = p;
    stg_error err;

    for (size_t i = 0; i < COUNT(names); i++) {
        char words[64];

        snprintf(words, sizeof words, "policies: has no policy called %s",
                 names[i]);
        CHECK_INT(stg_policies_find(&file, names[i], &p, &err), STG_NOT_FOUND);
        CHECK_STR(err.text, words);
        CHECK(err.line == 0 && err.column == 0);
        CHECK_INT(stg_policies_find(&file, names[i], &p, NULL), STG_NOT_FOUND);
        CHECK(stg_policy_equal(&p, &untouched));
    }
    file.source = "/etc/my.conf";
    CHECK_INT(stg_policies_find(&file, "c", &p, &err), STG_NOT_FOUND);
    CHECK_STR(err.text, "/etc/my.conf: has no policy called c");
}

/* An error anywhere is told, before the policy or behind it. */
TEST(policies, are_not_found_in_a_file_with_an_error)
{
    static const char *const texts[] = {
        "a: none\nb: nested=x\n",
        "c: none\nb: nested=x\na: none\n",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        const stg_policies file = over(texts[i]);
        stg_policy p;
        stg_error err;

        CHECK_INT(stg_policies_find(&file, "a", &p, &err), STG_INVALID);
        CHECK_STR(err.text, "policies:2:4: nested=x: expected once or full");
        CHECK_INT(err.line, 2);
        CHECK_INT(err.column, 4);
        CHECK_INT(stg_policies_find(&file, "d", &p, &err), STG_INVALID);
    }
}

TEST(policies, need_all_their_arguments)
{
    stg_policies walk = over("a: none\n"), empty = {0};
    char name[STG_NAME_MAX];
    stg_policy p;
    stg_error err;
    static const char words[] = "policies: an argument is NULL";

    CHECK_INT(stg_policies_next(NULL, name, &p, &err), STG_INVALID);
    CHECK_STR(err.text, words);
    CHECK_INT(stg_policies_next(&walk, NULL, &p, &err), STG_INVALID);
    CHECK_INT(stg_policies_next(&walk, name, NULL, &err), STG_INVALID);
    CHECK_INT(stg_policies_next(&empty, name, &p, &err), STG_INVALID);
    CHECK_INT(stg_policies_next(NULL, name, &p, NULL), STG_INVALID);
    CHECK_U64(walk.at, 0);

    CHECK_INT(stg_policies_find(NULL, "a", &p, &err), STG_INVALID);
    CHECK_STR(err.text, words);
    CHECK_INT(stg_policies_find(&walk, NULL, &p, &err), STG_INVALID);
    CHECK_INT(stg_policies_find(&walk, "a", NULL, &err), STG_INVALID);
    CHECK_INT(stg_policies_find(&empty, "a", &p, &err), STG_INVALID);
}

TEST(policies, may_be_many)
{
    enum { MANY = 500 };
    char *text = malloc(MANY * 32), name[STG_NAME_MAX];
    size_t at = 0;
    stg_policies walk;
    stg_policy p;

    CHECK(text != NULL);
    for (unsigned i = 1; i <= MANY; i++)
        at += (size_t)snprintf(text + at, 32, "p%u: attempts=%u\n", i, i);
    walk = (stg_policies){.text = text, .size = at};
    for (unsigned i = 1; i <= MANY; i++) {
        CHECK_INT(stg_policies_next(&walk, name, &p, NULL), STG_OK);
        CHECK_U64(strtoul(name + 1, NULL, 10), i);
        CHECK_U64(p.attempts_max, i);
        CHECK_INT(walk.line, i);
    }
    CHECK_INT(stg_policies_next(&walk, name, &p, NULL), STG_NOT_FOUND);
    free(text);
}

TEST(policies, may_not_be_called_as_any_preset_is)
{
    const stg_preset *preset;

    for (size_t i = 0; (preset = stg_preset_at(i)) != NULL; i++) {
        char text[64], name[STG_NAME_MAX];
        stg_policies walk = {.text = text};
        stg_policy policy;

        walk.size =
            (size_t)snprintf(text, sizeof text, "%s: client", preset->name);
        CHECK_FROM(i, stg_policies_next(&walk, name, &policy, NULL) ==
                          STG_INVALID);
    }
}

TEST(policies, are_told_of_with_a_path_that_leaves_room)
{
    char path[102];
    stg_policies file = {.source = path, .text = "", .size = 0};
    stg_policy policy;
    stg_error err;

    memset(path, 'p', sizeof path);
    path[100] = '\0';
    CHECK_INT(stg_policies_find(&file, "a", &policy, &err), STG_NOT_FOUND);
    CHECK(strncmp(err.text, path, 100) == 0 && err.text[100] == ':');
    path[100] = 'p';
    path[101] = '\0';
    CHECK_INT(stg_policies_find(&file, "a", &policy, &err), STG_NOT_FOUND);
    CHECK(strncmp(err.text, "...p", 4) == 0 && err.text[103] == ':');
}

/* Whatever a name or a path has in it, an error is one line. */
TEST(policies, are_suggested_where_a_name_is_like_theirs)
{
    stg_policies file = over("orders: none\nbilling: aws\nbillings: none\n");
    stg_policy p;
    stg_error err;

    stg_policies_find(&file, "biling", &p, &err);
    CHECK_STR(err.text,
              "policies: has no policy called biling, did you mean billing?");
    stg_policies_find(&file, "odrers", &p, &err);
    CHECK_STR(err.text,
              "policies: has no policy called odrers, did you mean orders?");
    stg_policies_find(&file, "billingss", &p, &err);
    CHECK_STR(
        err.text,
        "policies: has no policy called billingss, did you mean billings?");
    stg_policies_find(&file, "a name that has more letters than forty of them",
                      &p, &err);
    CHECK_STR(err.text,
              "policies: has no policy called a name that has more letters "
              "than forty ...");
}

TEST(policies, are_told_of_in_one_line)
{
    char path[300];
    stg_policies file = {.source = path, .text = "", .size = 0};
    stg_policy policy;
    stg_error err;

    memset(path, 'p', sizeof path);
    path[299] = '\0';
    path[298] = '\n';
    CHECK_INT(stg_policies_find(&file, "a\nb", &policy, &err), STG_NOT_FOUND);
    CHECK(strchr(err.text, '\n') == NULL);
    CHECK(strstr(err.text, "p?: has no policy called a?b") != NULL);
    CHECK(strncmp(err.text, "...ppp", 6) == 0);
}
