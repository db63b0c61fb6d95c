/* One fault, every spelling: what a word is read as, whoever reads it, and what
 * a policy prints it as. */
#include "core/codes.h"

#include <string.h>

#include <stagger/text.h>

#include "core/rule.h"
#include "tests/harness.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

typedef struct row {
    const char *word, *canonical;
} row;

static const row rows[] = {
    // An HTTP status.
    {"503", "503"},
    {"HTTP_503", "503"},
    {"http_503", "503"},
    {"http-503", "503"},
    {"http:503", "503"},
    // A fault by its name and by its cause.
    {"refused", "refused"},
    {"Refused", "refused"},
    {"CONNECTION_REFUSED", "refused"},
    {"connection-refused", "refused"},
    {"timeout", "timeout"},
    {"DNS_TEMPORARY_FAILURE", "dns-temporary"},
    {"connect_timeout", "connect-timeout"},
    {"CONNECT_TIMEOUT", "connect-timeout"},
    {"SERIALIZATION_FAILURE", "serialization"},
    {"SQL_ERROR", "sql"},
    {"EXIT", "exit"},
    {"pushback", "pushback"},
    {"transient", "transient"},
    {"REJECTED", "rejected"},
    // The names of errno and of resolvers.
    {"ECONNREFUSED", "refused"},
    {"econnrefused", "refused"},
    {"ECONNRESET", "reset"},
    {"EPIPE", "reset"},
    {"ETIMEDOUT", "timeout"},
    {"EWOULDBLOCK", "timeout"},
    {"EHOSTUNREACH", "unreachable"},
    {"EMFILE", "no-files"},
    {"EADDRNOTAVAIL", "no-ports"},
    {"EINTR", "interrupted"},
    {"EAI_AGAIN", "dns-temporary"},
    {"eai-noname", "dns"},
    // SQLSTATEs.
    {"40001", "sqlstate:40001"},
    {"40P01", "sqlstate:40P01"},
    {"40p01", "sqlstate:40P01"},
    {"HV00A", "sqlstate:HV00A"},
    {"sqlstate:40001", "sqlstate:40001"},
    {"SQLSTATE_40001", "sqlstate:40001"},
    {"sqlstate:abcde", "sqlstate:ABCDE"},
    // MySQL.
    {"1213", "mysql:1213"},
    {"mysql:1213", "mysql:1213"},
    {"MYSQL_1062", "mysql:1062"},
    // gRPC.
    {"grpc:14", "grpc:14"},
    {"GRPC_14", "grpc:14"},
    {"UNAVAILABLE", "grpc:14"},
    {"unavailable", "grpc:14"},
    {"GRPC_UNAVAILABLE", "grpc:14"},
    {"grpc:UNAVAILABLE", "grpc:14"},
    {"grpc:unavailable", "grpc:14"},
    {"DEADLINE_EXCEEDED", "grpc:4"},
    {"deadline-exceeded", "grpc:4"},
    {"GRPC_RESOURCE_EXHAUSTED", "grpc:8"},
    {"grpc:CANCELLED", "grpc:1"},
    // libcurl.
    {"curl:28", "curl:28"},
    {"CURL_28", "curl:28"},
    // Redis.
    {"redis:LOADING", "redis:LOADING"},
    {"redis:loading", "redis:LOADING"},
    {"REDIS_LOADING", "redis:LOADING"},
    {"LOADING", "redis:LOADING"},
    {"ClusterDown", "redis:CLUSTERDOWN"},
    {"redis:busy", "redis:BUSY"},
    // AMQP.
    {"amqp:320", "amqp:320"},
    {"AMQP_320", "amqp:320"},
    {"amqp:connection:forced", "amqp:connection:forced"},
    {"AMQP:Connection:Forced", "amqp:connection:forced"},
    {"AMQP_CONNECTION_FORCED", "amqp:connection:forced"},
    {"amqp:not-found", "amqp:not-found"},
    {"amqp:not_found", "amqp:not-found"},
    {"com.microsoft:server-busy", "com.microsoft:server-busy"},
    {"COM_MICROSOFT_SERVER_BUSY", "com.microsoft:server-busy"},
    // Kafka.
    {"kafka:7", "kafka:7"},
    {"KAFKA_REQUEST_TIMED_OUT", "kafka:7"},
    {"kafka:request-timed-out", "kafka:7"},
    {"REQUEST_TIMED_OUT", "kafka:7"},
    {"NOT_LEADER_OR_FOLLOWER", "kafka:6"},
    {"NOT_LEADER_FOR_PARTITION", "kafka:6"},
    {"INVALID_MSG", "kafka:2"},
    {"UNKNOWN_TOPIC_OR_PART", "kafka:3"},
    {"INVALID_MSG_SIZE", "kafka:4"},
    {"STALE_CTRL_EPOCH", "kafka:11"},
    {"TOPIC_EXCEPTION", "kafka:17"},
    {"MSG_SIZE_TOO_LARGE", "kafka:10"},
    {"kafka:-195", "kafka:-195"},
    {"kafka:_TRANSPORT", "kafka:-195"},
    {"KAFKA__TRANSPORT", "kafka:-195"},
    // Families and categories.
    {"5xx", "5xx"},
    {"5XX", "5xx"},
    {"HTTP_5XX", "5xx"},
    {"HTTP_4XX", "4xx"},
    {"3xx", "3xx"},
    {"grpc", "grpc"},
    {"GRPC_ERROR", "grpc"},
    {"connect", "connect"},
    {"Server", "server"},
    {"A", "connect"},
    {"b", "server"},
    {"C", "request"},
    {"d", "overload"},
    {"LOCAL", "local"},
    {"ANY", "any"},
};

static stg_reader over(const char *text)
{
    return (stg_reader){text, text + strlen(text)};
}

/* A policy of one rule, and what the rule prints as. */
static stg_policy parse_rule(const char *key, const char *word,
                             char printed[100])
{
    char text[100];
    stg_policy p;
    stg_error err = {.text = ""};
    stg_writer w = stg_writer_on(text, sizeof text);

    if (strcmp(key, "retry=") != 0)
        stg_write_text(&w, "retry=none ");
    stg_write_text(&w, key);
    stg_write_text(&w, word);
    stg_policy_parse(&p, text, &err);
    CHECK_STR(err.text, "");
    CHECK_INT(p.rule_count, 1);
    w = stg_writer_on(printed, 100);
    stg_rule_write(&w, &p.rules[0]);
    return p;
}

TEST(spelling, is_any_and_a_policy_prints_the_one)
{
    static const char *const keys[] = {
        "retry=", "once=", "never=", "at-most=3:"};

    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t k = 0; k < COUNT(keys); k++) {
            char first[100], second[100];
            stg_policy p = parse_rule(keys[k], rows[i].word, first);
            stg_policy same = parse_rule(keys[k], first, second);

            CHECK_STR(first, rows[i].canonical);
            CHECK_STR(second, first);
            CHECK(stg_policy_equal(&p, &same));
        }
}

/* Two spellings of one fault are one fault. */
TEST(spelling, may_not_stand_beside_another_of_the_same_fault)
{
    stg_policy p;
    stg_error err;

    stg_policy_parse(&p, "retry=503,refused,HTTP_503", &err);
    CHECK_STR(err.text,
              "policy:1:19: HTTP_503: a second rule on it, the first "
              "is at 1:7");
    stg_policy_parse(&p, "retry=none once=40001 never=sqlstate:40001", &err);
    CHECK_STR(err.text,
              "policy:1:29: sqlstate:40001: a second rule on it, the "
              "first is at 1:17");
}

/* What a slip makes of a word is no fault: an error, and not another rule. */
TEST(spelling, is_no_guess)
{
    static const char *const words[] = {
        "",
        "reset-",
        "resat",
        "timeouts",
        "grpc4",
        "curl7",
        "http",
        "HTTP_",
        "HTTP_x",
        "HTTP 503",
        "5x",
        "xx",
        "E",
        "own",
        "other",
        "ok",
        "OK",
        "none",
        "default",
        "grpc:OK",
        "grpc:_",
        "KAFKA_NONE",
        "kafka:--1",
        "amqp:connection-forced",
        "redis:1x",
        "redis",
        "sqlstate:4000",
        "sqlstate",
        "121x",
        "ECONN",
        "EAI",
        "mysql:deadlock",
        "GRPC",
        "amqp:",
        "sqlstate:40-01",
        "kafka:",
        "curl:-1",
        "grpc:-1",
        "amqp",
        "redis:LOADINGS",
    };

    for (size_t i = 0; i < COUNT(words); i++) {
        stg_rule rule;
        bool is_read = stg_spelling_read(over(words[i]), &rule);

        // The family of gRPC is one in any case.
        if (is_read != (strcmp(words[i], "GRPC") == 0))
            CHECK_STR(words[i], "read as it should be");
    }
}

/* A word of one table is not in another, so that the order of the tables is
 * nobody's surprise. */
TEST(spelling, is_of_one_fault_only)
{
    static const char *const shared[] = {
        "cancelled", // gRPC's is grpc:CANCELLED
        "GRPC_RESOURCE_EXHAUSTED",
    };
    const char *word;

    for (size_t i = 0; (word = stg_spelling_word(i)) != NULL; i++) {
        stg_reader r = over(word);
        stg_rule rule, other;
        const char *before;
        bool is_shared = false;

        if (strcmp(word, "own") == 0)
            continue;
        CHECK(stg_spelling_read(r, &rule));
        for (size_t s = 0; s < COUNT(shared); s++)
            is_shared |= stg_reader_spells(&r, shared[s]);
        for (size_t j = 0; j < i && !is_shared; j++) {
            before = stg_spelling_word(j);
            if (!stg_reader_spells(&r, before))
                continue;
            CHECK(stg_spelling_read(over(before), &other));
            // The name and the cause of one fault, or of its family.
            if (j < 1 || j > 2 * (STG_FAULT_COUNT - 1) || i < j)
                CHECK_STR(word, before);
            CHECK(stg_rule_same_link(&rule, &other));
        }
    }
}

TEST(spelling, of_the_errors_of_the_system_has_an_end)
{
    size_t count = 0;

    while (stg_errno_name_at(count) != NULL)
        count++;
    CHECK(count > 40);
    CHECK(stg_errno_name_at(count + 1) == NULL);
    CHECK(stg_errno_name_at(SIZE_MAX) == NULL);
}

/* The numbers of AMQP 0-9-1 are those of its reference. Kafka's, its own and
 * librdkafka's, have no gaps; some have a second name. */
TEST(spelling, of_codes_has_the_numbers_of_their_protocols)
{
    static const int amqp[] = {200, 311, 312, 313, 320, 402, 403, 404, 405, 406,
                               501, 502, 503, 504, 505, 506, 530, 540, 541};
    const stg_code_row *code;
    int last = -200;
    size_t i;

    for (i = 0; (code = stg_code_at(STG_CODE_AMQP, i)) != NULL; i++)
        CHECK_INT(code->code, amqp[i]);
    CHECK_INT(i, COUNT(amqp));
    for (i = 0; (code = stg_code_at(STG_CODE_KAFKA, i)) != NULL; i++) {
        int next = last == -137 ? -1 : last == -1 ? 1 : last + 1;

        CHECK(code->code == next || (code->code == last && last > 0));
        last = code->code;
    }
    CHECK_INT(last, 133);
}

static bool is_word(const char *name)
{
    const char *word;
    size_t i = 0;

    while ((word = stg_spelling_word(i)) != NULL && strcmp(word, name) != 0)
        i++;
    return word != NULL;
}

TEST(spelling, has_every_fault_and_category_among_its_words)
{
    CHECK(is_word("any"));
    for (unsigned f = 1; f < STG_FAULT_COUNT; f++) {
        CHECK(is_word(stg_fault_about((stg_fault)f)->name));
        CHECK(is_word(stg_fault_about((stg_fault)f)->cause));
    }
    for (unsigned c = STG_CATEGORY_CONNECT; c <= STG_CATEGORY_LOCAL; c++)
        CHECK(is_word(stg_category_name((stg_category)c)));
    // The causes come right behind the names.
    CHECK_STR(stg_spelling_word(STG_FAULT_COUNT),
              stg_fault_about((stg_fault)1)->cause);
}

/* A suggestion is looked for among all that is read, but for numbers. */
TEST(spelling, has_every_name_among_its_words)
{
    static const stg_code_kind kinds[] = {STG_CODE_GRPC, STG_CODE_REDIS,
                                          STG_CODE_AMQP1, STG_CODE_KAFKA};

    for (size_t k = 0; k < COUNT(kinds); k++) {
        const stg_code_row *code;

        for (size_t i = 0; (code = stg_code_at(kinds[k], i)) != NULL; i++) {
            const char *word;
            size_t at = 0;

            while ((word = stg_spelling_word(at)) != NULL && word != code->name)
                at++;
            CHECK((word == NULL) == (code->fault == STG_FAULT_NONE));
        }
    }
}

/* Every code that has a name, in each of its spellings. */
TEST(spelling, of_a_code_is_its_number_its_name_and_its_cause)
{
    static const stg_code_kind kinds[] = {STG_CODE_GRPC, STG_CODE_REDIS,
                                          STG_CODE_AMQP, STG_CODE_AMQP1,
                                          STG_CODE_KAFKA};

    for (size_t k = 0; k < COUNT(kinds); k++) {
        const stg_code_row *code;

        for (size_t i = 0; (code = stg_code_at(kinds[k], i)) != NULL; i++) {
            const stg_rule expected = {.link = STG_LINK_CODE,
                                       .code_kind = (uint8_t)kinds[k],
                                       .value = (uint32_t)code->code};
            char text[STG_CAUSE_MAX];
            stg_rule found;
            stg_writer w = stg_writer_on(text, sizeof text);
            stg_outcome o;

            if (code->fault == STG_FAULT_NONE)
                continue;
            CHECK_INT(stg_rule_check(&expected, NULL), STG_OK);
            stg_code_write(&w, kinds[k], expected.value);
            CHECK(stg_spelling_read(over(text), &found));
            CHECK(stg_rule_same_link(&found, &expected));
            o = stg_spelling_outcome(&expected);
            CHECK_INT(o.fault, code->fault);
            CHECK_INT(o.code_kind, kinds[k]);
            CHECK_U64(o.code, expected.value);
            stg_outcome_cause(&o, text);
            CHECK(strlen(text) < STG_CAUSE_MAX - 1);
            CHECK(stg_spelling_read(over(text), &found));
            CHECK(stg_rule_same_link(&found, &expected));
        }
    }
}

TEST(spelling, of_a_link_stands_for_an_outcome)
{
    static const struct {
        const char *word, *name;
    } outcomes[] = {
        {"503", "503"},
        {"40001", "serialization"},
        {"1213", "deadlock"},
        {"1062", "mysql:1062"},
        {"curl:28", "timeout"},
        {"exit:3", "exit 3"},
        {"refused", "refused"},
        {"amqp:320", "amqp:320"},
        {"kafka:-195", "kafka:-195"},
        {"UNAVAILABLE", "grpc:14"},
        {"5xx", "ok"},
        {"server", "ok"},
        {"any", "ok"},
    };

    for (size_t i = 0; i < COUNT(outcomes); i++) {
        stg_rule rule;
        stg_outcome o;
        char text[STG_CAUSE_MAX];

        CHECK(stg_spelling_read(over(outcomes[i].word), &rule));
        o = stg_spelling_outcome(&rule);
        CHECK_STR(stg_outcome_name(&o, text), outcomes[i].name);
    }
    for (int kind = -1; kind <= STG_CODE_KAFKA + 1; kind++) {
        const stg_rule none = {.link = STG_LINK_CODE,
                               .code_kind = (uint8_t)kind,
                               .value = UINT32_MAX - 5};
        stg_outcome o = stg_spelling_outcome(&none);

        CHECK(o.fault < STG_FAULT_COUNT);
    }
}

/* Whatever the bytes are. */
TEST(spelling, reads_any_bytes_within_them)
{
    static const char letters[] = "abcEGHKRS_:-.0145xXP";

    for (uint64_t seed = 0; seed < seeds(20000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        size_t length = (size_t)stg_rng_upto(&rng, 8);
        char text[9] = "";
        stg_rule rule;

        for (size_t i = 0; i < length; i++)
            text[i] = letters[stg_rng_upto(&rng, sizeof letters - 2)];
        if (stg_spelling_read((stg_reader){text, text + length}, &rule)) {
            CHECK_FROM(seed, rule.retries_max == 0);
            CHECK_FROM(seed, rule.link <= STG_LINK_ANY);
        }
    }
}
