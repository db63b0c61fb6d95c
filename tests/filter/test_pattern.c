#include "filter/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"

/* -- what several tests share ---------------------------------------------- */

/* In JSON, with ' for ". */
static json_t *read_json(const char *text)
{
    char *copy = strdup(text);
    json_t *v;

    for (char *at = copy; *at != '\0'; at++)
        if (*at == '\'')
            *at = '"';
    v = json_loads(copy, JSON_DECODE_ANY, NULL);
    if (v == NULL)
        harness_fail(__FILE__, __LINE__, "not JSON: %s", copy);
    free(copy);
    return v;
}

static stg_pattern *compile(const char *text)
{
    json_t *source = read_json(text);
    stg_pattern_flaw flaw;
    stg_pattern *p = NULL;

    if (stg_pattern_new(&p, source, &flaw) != STG_OK)
        harness_fail(__FILE__, __LINE__, "%s: `%s`: %s", text, flaw.path,
                     flaw.what);
    json_decref(source);
    return p;
}

static bool matches(const char *pattern, const char *body)
{
    stg_pattern *p = compile(pattern);
    json_t *v = read_json(body);
    bool does = stg_pattern_matches(p, v);

    json_decref(v);
    stg_pattern_unref(p);
    return does;
}

#define MATCHES(pattern, body) \
    (matches(pattern, body)    \
         ? (void)0             \
         : harness_fail(__FILE__, __LINE__, "%s: not %s", pattern, body))
#define MISSES(pattern, body) \
    (!matches(pattern, body)  \
         ? (void)0            \
         : harness_fail(__FILE__, __LINE__, "%s: but %s", pattern, body))

/* -- the examples of EventBridge ------------------------------------------- */

/* The event of its documentation. */
#define EC2                                                          \
    "{'version': '0', 'id': '6a7e8feb-b491-4cf7-a9f1-bf3703467718'," \
    " 'detail-type': 'EC2 Instance State-change Notification',"      \
    " 'source': 'aws.ec2', 'account': '111122223333',"               \
    " 'time': '2017-12-22T18:43:48Z', 'region': 'us-west-1',"        \
    " 'resources': ['arn:aws:ec2:us-west-1:123456789012:instance/i-1234'],"

#define DETAIL(rest) EC2 " 'detail': {" rest "}}"

static const struct example {
    const char *pattern, *matches, *misses;
} examples[] = {
    // Event patterns
    {"{'source': ['aws.ec2'],"
     " 'detail-type': ['EC2 Instance State-change Notification'],"
     " 'detail': {'state': ['terminated']}}",
     DETAIL("'state': 'terminated'"), DETAIL("'state': 'running'")},
    {"{'detail': {'state': ['initializing', 'running']}}",
     DETAIL("'state': 'running'"), DETAIL("'state': 'stopped'")},
    {"{'resources': [{'prefix': 'arn:aws:ec2:us-west-1'}]}", DETAIL(""),
     "{'resources': ['arn:aws:s3']}"},
    // Null values and empty strings
    {"{'detail': {'eventVersion': ['']}}", DETAIL("'eventVersion': ''"),
     DETAIL("'eventVersion': null")},
    {"{'detail': {'responseElements': [null]}}",
     DETAIL("'responseElements': null"), DETAIL("'responseElements': ''")},
    {"{'UserID': [null]}", "{'UserID': null}", "{'Other': null}"},
    // Arrays
    {"{'resources': ['arn:aws:ec2:us-east-1:123456789012:instance/i-b188560f',"
     " 'arn:aws:ec2:us-east-1:111122223333:instance/i-b188560f']}",
     "{'resources': ['arn:aws:autoscaling:us-east-1:123456789012:x',"
     " 'arn:aws:ec2:us-east-1:111122223333:instance/i-b188560f']}",
     "{'resources': ['arn:aws:autoscaling:us-east-1:123456789012:x']}"},
    // Prefix
    {"{'time': [{'prefix': '2017-12-22'}]}", DETAIL(""),
     "{'time': '2017-12-23T00:00:00Z'}"},
    {"{'service': [{'prefix': {'equals-ignore-case': 'EventB'}}]}",
     "{'service': 'EVENTBRIDGE'}", "{'service': 'event-bridge'}"},
    // Suffix
    {"{'FileName': [{'suffix': '.png'}]}", "{'FileName': 'a.png'}",
     "{'FileName': 'a.png2'}"},
    {"{'FileName': [{'suffix': {'equals-ignore-case': '.png'}}]}",
     "{'FileName': 'a.PNG'}", "{'FileName': 'png'}"},
    // Anything-but
    {"{'detail': {'state': [{'anything-but': 'initializing'}]}}",
     DETAIL("'state': 'running'"), DETAIL("'state': 'initializing'")},
    {"{'detail': {'x-limit': [{'anything-but': 123}]}}",
     DETAIL("'x-limit': 124"), DETAIL("'x-limit': 123")},
    {"{'detail': {'state': [{'anything-but': ['stopped', 'overloaded']}]}}",
     DETAIL("'state': 'running'"), DETAIL("'state': 'overloaded'")},
    {"{'detail': {'x-limit': [{'anything-but': [100, 200, 300]}]}}",
     DETAIL("'x-limit': 301"), DETAIL("'x-limit': 300")},
    {"{'detail': {'state': [{'anything-but': {'equals-ignore-case':"
     " ['initializing', 'stopped']}}]}}",
     DETAIL("'state': 'Running'"), DETAIL("'state': 'STOPPED'")},
    {"{'detail': {'state': [{'anything-but': {'prefix': 'init'}}]}}",
     DETAIL("'state': 'running'"), DETAIL("'state': 'initializing'")},
    {"{'detail': {'state': [{'anything-but': {'prefix': ['init', 'error']}}]}}",
     DETAIL("'state': 'running'"), DETAIL("'state': 'error: disk'")},
    {"{'detail': {'FileName': [{'anything-but': {'suffix': '.txt'}}]}}",
     DETAIL("'FileName': 'a.rtf'"), DETAIL("'FileName': 'a.txt'")},
    {"{'detail': {'FileName': [{'anything-but': {'suffix':"
     " ['.txt', '.rtf']}}]}}",
     DETAIL("'FileName': 'a.png'"), DETAIL("'FileName': 'a.rtf'")},
    {"{'detail': {'file-path': [{'anything-but': {'wildcard':"
     " '*/lib/*'}}]}}",
     DETAIL("'file-path': '/usr/bin/x'"), DETAIL("'file-path': '/usr/lib/x'")},
    {"{'detail': {'file-path': [{'anything-but': {'wildcard':"
     " ['*/lib/*', '*/bin/*']}}]}}",
     DETAIL("'file-path': '/usr/sbin'"), DETAIL("'file-path': '/usr/bin/x'")},
    // Numeric
    {"{'detail': {'c-count': [{'numeric': ['>', 0, '<=', 5]}],"
     " 'd-count': [{'numeric': ['<', 10]}],"
     " 'x-limit': [{'numeric': ['=', 3.018e2]}]}}",
     DETAIL("'c-count': 5, 'd-count': 3, 'x-limit': 301.8"),
     DETAIL("'c-count': 0, 'd-count': 3, 'x-limit': 301.8")},
    // Addresses
    {"{'detail': {'sourceIPAddress': [{'cidr': '10.0.0.0/24'}]}}",
     DETAIL("'sourceIPAddress': '10.0.0.255'"),
     DETAIL("'sourceIPAddress': '10.0.1.0'")},
    {"{'ip': [{'cidr': '2001:db8::/33'}]}", "{'ip': '2001:db8:7fff::1'}",
     "{'ip': '2001:db8:8000::1'}"},
    // Exists
    {"{'detail': {'state': [{'exists': true}]}}", DETAIL("'state': 'running'"),
     DETAIL("'c-count': 5")},
    {"{'detail': {'state': [{'exists': false}]}}", DETAIL("'c-count': 5"),
     DETAIL("'state': 'running'")},
    {"{'detail': {'c-count': [{'exists': false}]}}",
     DETAIL("'c-count': {'c1': 100}"), DETAIL("'c-count': 100")},
    // Equals, ignoring case
    {"{'detail-type': [{'equals-ignore-case': 'ec2 instance state-change"
     " notification'}]}",
     DETAIL(""), "{'detail-type': 'ec2 instance'}"},
    // Wildcards
    {"{'EventBusArn': [{'wildcard': 'arn:aws:events:us-east-1:*:event-bus/*'}]}",
     "{'EventBusArn': 'arn:aws:events:us-east-1:1:event-bus/b'}",
     "{'EventBusArn': 'arn:aws:events:us-east-2:1:event-bus/b'}"},
    {"{'FileName': [{'wildcard': 'dir/*.png'}]}", "{'FileName': 'dir/a/b.png'}",
     "{'FileName': 'dir/a.jpg'}"},
    {"{'Price': [{'wildcard': 'a\\\\*b\\\\\\\\*'}]}", "{'Price': 'a*b\\\\c'}",
     "{'Price': 'axb\\\\c'}"},
    // Several
    {"{'time': [{'prefix': '2017-12-22'}], 'detail': {"
     " 'state': [{'anything-but': 'initializing'}],"
     " 'c-count': [{'numeric': ['>', 0, '<=', 5]}],"
     " 'd-count': [{'numeric': ['<', 10]}],"
     " 'x-limit': [{'anything-but': [100, 200, 300]}]}}",
     DETAIL("'state': 'running', 'c-count': 1, 'd-count': 9, 'x-limit': 301.8"),
     DETAIL("'state': 'running', 'c-count': 1, 'd-count': 10, 'x-limit': 9")},
    {"{'detail': {'$or': [{'c-count': [{'numeric': ['>', 0, '<=', 5]}]},"
     " {'d-count': [{'numeric': ['<', 10]}]},"
     " {'x-limit': [{'numeric': ['=', 3.018e2]}]}]}}",
     DETAIL("'c-count': 6, 'd-count': 10, 'x-limit': 301.8"),
     DETAIL("'c-count': 6, 'd-count': 10, 'x-limit': 302")},
    // Event Ruler's own
    {"{'source': ['aws.cloudwatch'], '$or': ["
     " {'metricName': ['CPUUtilization', 'ReadLatency']},"
     " {'metricType': ['MetricType'], 'namespace': ['AWS/EC2', 'AWS/ES'],"
     "  '$or': [{'metricId': [1234]}, {'spaceId': [1000]}]},"
     " {'scope': ['Service']}]}",
     "{'source': 'aws.cloudwatch', 'metricType': 'MetricType',"
     " 'namespace': 'AWS/ES', 'spaceId': 1000}",
     "{'source': 'aws.cloudwatch', 'metricType': 'MetricType',"
     " 'namespace': 'AWS/ES', 'spaceId': 1001}"},
    {"{'employees': {'firstName': ['Anna'], 'lastName': ['Jones']}}",
     "{'employees': [{'firstName': 'Anna', 'lastName': 'Jones'}]}",
     "{'employees': [{'firstName': 'Anna', 'lastName': 'Smith'},"
     " {'firstName': 'Peter', 'lastName': 'Jones'}]}"},
};

TEST(pattern, has_the_examples_of_eventbridge)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        MATCHES(examples[i].pattern, examples[i].matches);
        MISSES(examples[i].pattern, examples[i].misses);
    }
}

/* -- what the documentation leaves open ------------------------------------ */

TEST(pattern, compares_kinds_and_numbers)
{
    MATCHES("{'a': [5]}", "{'a': 5.0}");
    MATCHES("{'a': [5.0]}", "{'a': 5}");
    MATCHES("{'a': [3e2]}", "{'a': 300}");
    MISSES("{'a': ['5']}", "{'a': 5}");
    MISSES("{'a': [5]}", "{'a': '5'}");
    MATCHES("{'a': [true]}", "{'a': true}");
    MISSES("{'a': [true]}", "{'a': false}");
    MISSES("{'a': [true]}", "{'a': 'true'}");
    MISSES("{'a': [{'numeric': ['=', 5]}]}", "{'a': '5'}");
    MATCHES("{'a': [9007199254740993]}", "{'a': 9007199254740993}");
    MISSES("{'a': [9007199254740993]}", "{'a': 9007199254740992}");
    MATCHES("{'a': [{'numeric': ['>=', -1, '<', 0]}]}", "{'a': -1}");
    MISSES("{'a': [{'numeric': ['>=', -1, '<', 0]}]}", "{'a': 0}");
    MISSES("{'a': [{'prefix': '5'}]}", "{'a': 5}");
    MISSES("{'a': [{'cidr': '10.0.0.0/8'}]}", "{'a': 'here'}");
    MISSES("{'a': [{'cidr': '10.0.0.0/8'}]}", "{'a': '::ffff:10.0.0.1'}");
    MATCHES("{'a': [{'cidr': '0.0.0.0/0'}]}", "{'a': '192.0.2.1'}");
    MATCHES("{'a': [{'cidr': '192.0.2.1/32'}]}", "{'a': '192.0.2.1'}");
}

/* A value must be there for anything-but, of any kind. */
TEST(pattern, wants_a_value_for_anything_but)
{
    MISSES("{'a': [{'anything-but': 'x'}]}", "{}");
    MISSES("{'a': [{'anything-but': 'x'}]}", "{'a': {'b': 1}}");
    MISSES("{'a': [{'anything-but': 'x'}]}", "{'a': []}");
    MATCHES("{'a': [{'anything-but': 'x'}]}", "{'a': 1}");
    MATCHES("{'a': [{'anything-but': 'x'}]}", "{'a': null}");
    MATCHES("{'a': [{'anything-but': 'x'}]}", "{'a': ['x', 'y']}");
    MATCHES("{'a': [{'anything-but': {'prefix': 'x'}}]}", "{'a': true}");
}

TEST(pattern, looks_for_a_value_that_exists)
{
    MATCHES("{'a': {'b': [{'exists': false}]}}", "{}");
    MATCHES("{'a': {'b': [{'exists': false}]}}", "{'a': 5}");
    MATCHES("{'a': {'b': [{'exists': false}]}}", "{'a': []}");
    MATCHES("{'a': [{'exists': true}]}", "{'a': null}");
    MISSES("{'a': [{'exists': true}]}", "{'a': []}");
    MISSES("{'a': [{'exists': true}]}", "{'a': {}}");
    MATCHES("{'a': ['x', {'exists': false}]}", "{}");
    MATCHES("{'a': ['x', {'exists': false}]}", "{'a': 'x'}");
    MISSES("{'a': ['x', {'exists': false}]}", "{'a': 'y'}");
}

TEST(pattern, matches_one_item_of_a_list_as_a_whole)
{
    MATCHES("{'a': [3]}", "{'a': [1, [2, [3]]]}");
    MATCHES("{'a': {'b': [1]}}", "{'a': [5, [{'b': 2}, {'b': 1}]]}");
    MATCHES("{'a': {'b': [1], 'c': [2]}}", "{'a': [{'b': 1, 'c': 2}]}");
    MISSES("{'a': {'b': [1], 'c': [2]}}", "{'a': [{'b': 1}, {'c': 2}]}");
    MATCHES("{'a': {'b': [1], 'c': [{'exists': false}]}}",
            "{'a': [{'b': 1}, {'c': 2}]}");
    MISSES("{'a': {'c': [{'exists': false}]}}", "{'a': [{'c': 2}, 1]}");
    MATCHES("{'b': [1]}", "[{'b': 2}, {'b': 1}]");
    MISSES("{'b': [1]}", "5");
}

TEST(pattern, finds_the_pieces_of_wildcards)
{
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {
        {"*", "", true},         {"a", "a", true},
        {"a", "ab", false},      {"a*", "a", true},
        {"*a", "ba", true},      {"*a", "ab", false},
        {"a*a", "a", false},     {"a*a", "aa", true},
        {"*ab*ab", "ab", false}, {"*ab*ab", "abab", true},
        {"*ab*b", "abb", true},  {"a*b*c", "aXbYc", true},
        {"a*b*c", "acb", false}, {"*b*", "abc", true},
        {"", "", true},          {"", "a", false},
        {"*aab", "aaab", true},  {"a*bc*c", "abc", false},
    };
    char pattern[64], body[64];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(pattern, sizeof pattern, "{'a': [{'wildcard': '%s'}]}",
                 cases[i].pattern);
        snprintf(body, sizeof body, "{'a': '%s'}", cases[i].text);
        if (cases[i].matches)
            MATCHES(pattern, body);
        else
            MISSES(pattern, body);
    }
}

/* -- texts that are no bodies ---------------------------------------------- */

static bool takes(const char *pattern, const char *text)
{
    stg_pattern *p = compile(pattern);
    bool does = text == NULL
                    ? stg_pattern_takes_nothing(p)
                    : stg_pattern_takes_text(p, (stg_span){text, strlen(text)});

    stg_pattern_unref(p);
    return does;
}

TEST(pattern, takes_the_value_of_a_header)
{
    static const char any[] = "{'h': ['a', {'prefix': 'b'}]}";
    static const char but[] = "{'h': [{'anything-but': {'suffix': ['x']}}]}";
    static const char range[] = "{'h': [{'numeric': ['>', 4]}]}";
    static const char none[] = "{'h': [{'exists': false}]}";
    static const char there[] = "{'h': [{'exists': true}]}";

    CHECK(takes(any, "a") && takes(any, "bc") && !takes(any, "ab"));
    CHECK(!takes(any, NULL) && !takes(any, ""));
    CHECK(takes(but, "xy") && !takes(but, "yx") && !takes(but, NULL));
    CHECK(takes(range, "5") && takes(range, "4.5") && !takes(range, "4"));
    CHECK(!takes(range, "five") && !takes(range, ""));
    CHECK(takes(none, NULL) && !takes(none, "a"));
    CHECK(!takes(there, NULL) && takes(there, "a"));
    CHECK(!takes("{'h': [5, null]}", "5"));
    CHECK(!takes("{'$or': [{'h': ['a']}]}", "a"));
}

/* -- mistakes -------------------------------------------------------------- */

static const char *flaw_of(const char *text)
{
    static char line[400];
    json_t *source = read_json(text);
    stg_pattern_flaw flaw;
    stg_pattern *p = NULL;

    CHECK_INT(stg_pattern_new(&p, source, &flaw), STG_INVALID);
    snprintf(line, sizeof line, "%s: %s", flaw.path, flaw.what);
    json_decref(source);
    return line;
}

TEST(pattern, says_what_is_wrong_and_where)
{
    CHECK_STR(flaw_of("[]"), ": an empty list; expected a map of fields");
    CHECK_STR(flaw_of("{}"), ": an empty map; expected a field at least");
    CHECK_STR(flaw_of("{'a': {'b': 'c'}}"),
              "a.b: a text; expected a list of values, such as [a, b], or a "
              "map of fields");
    CHECK_STR(flaw_of("{'a': {'prefix': 'c'}}"),
              "a.prefix: a text; expected conditions in a list, such as "
              "[{prefix: TEXT}]");
    CHECK_STR(flaw_of("{'a': []}"),
              "a: an empty list; expected a value or a condition at least");
    CHECK_STR(flaw_of("{'a': [[1]]}"),
              "a[0]: a list; expected a value, or a condition such as {prefix: "
              "TEXT}");
    CHECK_STR(flaw_of("{'a': [1, {'prefx': 'c'}]}"),
              "a[1].prefx: no such condition; expected prefix, suffix, "
              "equals-ignore-case, wildcard, numeric, cidr, exists or "
              "anything-but");
    CHECK_STR(flaw_of("{'a': [{'prefix': 'c', 'suffix': 'd'}]}"),
              "a[0]: a map; expected a condition, such as {prefix: TEXT}, and "
              "one a map");
    CHECK_STR(flaw_of("{'a': [{'prefix': 5}]}"),
              "a[0].prefix: a number; expected a text");
    CHECK_STR(flaw_of("{'a': [{'suffix': {'x': 'y'}}]}"),
              "a[0].suffix: a map; expected a text, or {equals-ignore-case: "
              "TEXT}");
    CHECK_STR(flaw_of("{'a': [{'exists': 1}]}"),
              "a[0].exists: a number; expected true or false");
    CHECK_STR(flaw_of("{'a': [{'numeric': ['>']}]}"),
              "a[0].numeric: a list; expected a sign and a number, or two of "
              "both, such as [\">\", 0, \"<=\", 5]");
    CHECK_STR(flaw_of("{'a': [{'numeric': ['!', 5]}]}"),
              "a[0].numeric[0]: a text; expected one of = < <= > >=, in "
              "quotes");
    CHECK_STR(flaw_of("{'a': [{'numeric': ['>', '5']}]}"),
              "a[0].numeric[1]: a text; expected a number");
    CHECK_STR(flaw_of("{'a': [{'cidr': '10.0.0/8'}]}"),
              "a[0].cidr: no address; expected an address and how many of its "
              "bits count, such as 10.0.0.0/24");
    CHECK_STR(flaw_of("{'a': [{'cidr': '10.0.0.0/33'}]}"),
              "a[0].cidr: no number of bits; expected an address and how many "
              "of its bits count, such as 10.0.0.0/24");
    CHECK_STR(flaw_of("{'a': [{'wildcard': 'a**'}]}"),
              "a[0].wildcard: two `*` in a row; expected one, or `\\*` for a "
              "star");
    CHECK_STR(flaw_of("{'a': [{'wildcard': 'a\\\\b'}]}"),
              "a[0].wildcard: a lone backslash; expected `\\*` or `\\\\`");
    CHECK_STR(
        flaw_of("{'a': [{'anything-but': ['a', 1]}]}"),
        "a[0].anything-but[1]: a number; expected texts alone, or numbers "
        "alone, in one list");
    CHECK_STR(flaw_of("{'a': [{'anything-but': true}]}"),
              "a[0].anything-but: true or false; expected a text or a number");
    CHECK_STR(flaw_of("{'a': [{'anything-but': {'numeric': ['=', 1]}}]}"),
              "a[0].anything-but: a map; expected one of prefix, suffix, "
              "equals-ignore-case and wildcard, and no more in this map");
    CHECK_STR(flaw_of("{'$or': {'a': [1]}}"),
              "$or: a map; expected a list of maps");
    CHECK_STR(flaw_of("{'$or': [{'a': [1]}, 5]}"),
              "$or[1]: a number; expected a map of fields");
    CHECK_STR(flaw_of("{'a\\u0007': 5}"),
              "a?: a number; expected a list of values, such as [a, b], or a "
              "map of fields");
}

TEST(pattern, has_a_limit_of_levels_and_values)
{
    json_t *v = json_pack("[s]", "x"), *list = json_array();
    stg_pattern_flaw flaw;
    stg_pattern *p = NULL;

    for (int i = 1; i < STG_PATTERN_DEPTH; i++)
        v = json_pack("{so}", "a", v);
    CHECK_INT(stg_pattern_new(&p, v, &flaw), STG_OK);
    stg_pattern_unref(p);
    v = json_pack("{so}", "a", v);
    CHECK_INT(stg_pattern_new(&p, v, &flaw), STG_INVALID);
    CHECK_STR(flaw.what, "more than 24 levels; expected fewer");
    json_decref(v);
    for (int i = 0; i < STG_PATTERN_VALUES - 2; i++)
        json_array_append_new(list, json_integer(i));
    v = json_pack("{sO}", "a", list);
    CHECK_INT(stg_pattern_new(&p, v, &flaw), STG_OK);
    stg_pattern_unref(p);
    json_array_append_new(list, json_integer(0));
    CHECK_INT(stg_pattern_new(&p, v, &flaw), STG_INVALID);
    CHECK_STR(flaw.what, "more than 4,096 values; expected fewer");
    json_decref(v);
    json_decref(list);
}

TEST(pattern, equals_another_whatever_the_order_of_its_keys)
{
    stg_pattern *a = compile("{'a': [1], 'b': [2]}");
    stg_pattern *b = compile("{'b': [2], 'a': [1]}");
    stg_pattern *c = compile("{'b': [2], 'a': ['1']}");

    CHECK(stg_pattern_equal(a, b));
    CHECK(!stg_pattern_equal(a, c));
    stg_pattern_unref(a);
    stg_pattern_unref(b);
    stg_pattern_unref(c);
}

/* -- bodies ---------------------------------------------------------------- */

static bool is_json(const char *text, size_t size)
{
    json_t *v = stg_pattern_parse((stg_span){text, size});

    json_decref(v);
    return v != NULL;
}

TEST(pattern, parses_bodies)
{
    stg_pattern *p = compile("{'a': [{'numeric': ['>', 1e30]}]}");
    json_t *v;

    CHECK(is_json("{}", 2));
    CHECK(is_json("\"\\u0000\"", 8));
    CHECK(!is_json(NULL, 0));
    CHECK(!is_json("", 0));
    CHECK(!is_json("{", 1));
    CHECK(!is_json("{} {}", 5));
    CHECK(!is_json("\"\xff\"", 3));
    // More than 64 bits hold.
    for (size_t i = 0; i < 2; i++) {
        static const char *const large[] = {
            "{\"a\": 100000000000000000000}",
            "{\"a\": 9000000000000000000000000000000}"};

        v = stg_pattern_parse((stg_span){large[i], strlen(large[i])});
        CHECK(v != NULL);
        CHECK_INT(stg_pattern_matches(p, v), i);
        json_decref(v);
    }
    CHECK(!stg_pattern_matches(p, NULL));
    stg_pattern_unref(p);
}

/* Fills text with "[x,x,x]". */
static stg_span repeat(char *text, const char *x, size_t count)
{
    char *to = text;

    *to++ = '[';
    for (size_t i = 0; i < count; i++) {
        memcpy(to, x, strlen(x));
        to += strlen(x);
        *to++ = ',';
    }
    to[-1] = ']';
    return (stg_span){text, (size_t)(to - text)};
}

TEST(pattern, parses_no_more_values_than_memory_is_for)
{
    char *text = malloc(8 * STG_PATTERN_BODY_MAX);
    stg_span body = repeat(text, "1", STG_PATTERN_BODY_MAX);

    CHECK(is_json(body.at, body.size)); // the list and its commas
    body = repeat(text, "1", STG_PATTERN_BODY_MAX + 1);
    CHECK(!is_json(body.at, body.size));
    body = repeat(text, "{}", STG_PATTERN_BODY_MAX / 2);
    CHECK(is_json(body.at, body.size));
    body = repeat(text, "{}", STG_PATTERN_BODY_MAX / 2 + 1);
    CHECK(!is_json(body.at, body.size));
    // In a text they are none.
    memset(text, ',', STG_PATTERN_BODY_MAX * 2);
    memcpy(text, "\"\\\"", 3);
    text[STG_PATTERN_BODY_MAX * 2] = '"';
    CHECK(is_json(text, STG_PATTERN_BODY_MAX * 2 + 1));
    CHECK(!is_json(text, STG_PATTERN_BODY_MAX * 2));
    free(text);
}

TEST(pattern, takes_a_body_with_a_number_beyond_doubles_for_none)
{
    CHECK(is_json("{\"a\": 1e300}", 12));
    CHECK(!is_json("{\"a\": 1e400}", 12));
}

/* -- why not --------------------------------------------------------------- */

static const char *explain(const char *pattern, const char *body)
{
    static char line[1000];
    stg_pattern *p = compile(pattern);
    json_t *v = body != NULL ? read_json(body) : NULL;
    stg_text why = {.size = 0};

    stg_pattern_explain(p, v, "body", &why);
    snprintf(line, sizeof line, "%.*s", (int)why.size, why.at);
    stg_text_free(&why);
    json_decref(v);
    stg_pattern_unref(p);
    return line;
}

TEST(pattern, explains_what_does_not_match)
{
    CHECK_STR(explain("{'a': [1]}", "{'a': 1}"), "");
    CHECK_STR(explain("{'a': [1]}", NULL), "body is not JSON");
    CHECK_STR(explain("{'detail': {'state': ['terminated']}}",
                      "{'detail': {'state': 'running'}}"),
              "body.detail.state: \"running\" is not \"terminated\"");
    CHECK_STR(explain("{'a': [1, {'prefix': 'x'}]}", "{'a': [2, 3]}"),
              "body.a: [2,3] is none of 1, {\"prefix\":\"x\"}");
    CHECK_STR(explain("{'a': {'b': [1]}}", "{}"),
              "body.a.b is not there; expected 1");
    CHECK_STR(explain("{'a': [1]}", "{'a': {'b': 2}}"),
              "body.a: {\"b\":2}, a map; expected 1");
    CHECK_STR(explain("{'a': [{'exists': false}]}", "{'a': 5}"),
              "body.a: 5 is not {\"exists\":false}");
    CHECK_STR(explain("{'a': [1], '$or': [{'b': [1]}, {'c': [1]}]}",
                      "{'a': 1, 'b': 2}"),
              "body.$or: none of 2; the first: body.b: 2 is not 1");
    CHECK_STR(
        explain("{'a': {'b': [1], 'c': [2]}}", "{'a': [{'b': 1}, {'c': 2}]}"),
        "body.a: none of 2 items; the first: body.a.c is not there; "
        "expected 2");
    CHECK_STR(explain("{'a': [1]}", "{'a': '\\u001b[31m'}"),
              "body.a: \"\\u001B[31m\" is not 1");
}
