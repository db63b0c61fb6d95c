#include "store/cause.h"

#include <stdio.h>

#include "tests/harness.h"

/* "PATTERN", "category X", or "no: NEAR". Static. */
static const char *read_word(const char *word)
{
    static char text[3 * STG_CAUSE_MAX];
    char near[STG_CAUSE_MAX];
    stg_cause cause;

    if (!stg_cause_read(&cause, word, near))
        snprintf(text, sizeof text, "no: %s", near);
    else if (cause.category[0] != '\0')
        snprintf(text, sizeof text, "category %s%s", cause.category,
                 cause.pattern);
    else
        snprintf(text, sizeof text, "%s", cause.pattern);
    return text;
}

TEST(cause, reads_what_policies_and_records_write)
{
    static const struct {
        const char *word, *means;
    } rows[] = {
        {"503", "HTTP_503"},
        {"HTTP_503", "HTTP_503"},
        {"http_404", "HTTP_404"},
        {"refused", "CONNECTION_REFUSED"},
        {"ECONNREFUSED", "CONNECTION_REFUSED"},
        {"connect-timeout", "CONNECT_TIMEOUT"},
        // The causes of bulk rows, in any letters.
        {"SHED", "SHED"},
        {"paused", "PAUSED"},
        {"Slow", "SLOW"},
        {"expired", "EXPIRED"},
        {"CANCELLED", "CANCELLED"},
        // Families and categories.
        {"3xx", "HTTP_3*"},
        {"4xx", "HTTP_4*"},
        {"5XX", "HTTP_5*"},
        {"grpc", "GRPC_*"},
        {"A", "category A"},
        {"connect", "category A"},
        {"B", "category B"},
        {"C", "category C"},
        {"D", "category D"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_STR(read_word(rows[i].word), rows[i].means);
}

TEST(cause, suggests_what_was_meant_in_the_letters_of_records)
{
    static const struct {
        const char *word, *said;
    } rows[] = {
        {"any", "no: "},
        {"", "no: "},
        {"200", "no: "},
        // What ends with a status was meant to be one.
        {"HTP_503", "no: HTTP_503"},
        {"status-404", "no: HTTP_404"},
        {"abc5039", "no: "},
        {"x50", "no: "},
        {"pausd", "no: PAUSED"},
        {"refusd", "no: CONNECTION_REFUSED"},
        {"connect-timeot", "no: CONNECT_TIMEOUT"},
        {"conection_refused", "no: CONNECTION_REFUSED"},
        // Categories and families stay the words that they are.
        {"overlaod", "no: OVERLOAD"},
        {"serverr", "no: SERVER"},
        {"grpc-eror", "no: GRPC_ERROR"},
        {"quite another word", "no: "},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_STR(read_word(rows[i].word), rows[i].said);
}

TEST(cause, fits_a_pattern_whole_or_by_its_beginning)
{
    CHECK(stg_cause_fits("HTTP_503", "HTTP_503"));
    CHECK(!stg_cause_fits("HTTP_503", "HTTP_50"));
    CHECK(!stg_cause_fits("HTTP_50", "HTTP_503"));
    CHECK(stg_cause_fits("HTTP_5*", "HTTP_503"));
    CHECK(stg_cause_fits("HTTP_5*", "HTTP_5"));
    CHECK(!stg_cause_fits("HTTP_5*", "HTTP_404"));
    CHECK(!stg_cause_fits("HTTP_5*", "HTTP_"));
    CHECK(stg_cause_fits("*", "SLOW"));
    CHECK(stg_cause_fits("", ""));
    CHECK(!stg_cause_fits("", "SLOW"));
}

TEST(cause, has_a_letter_for_what_is_about_the_target)
{
    char letters[STG_CATEGORY_OTHER + 2] = "";

    for (int i = 0; i <= STG_CATEGORY_OTHER; i++) {
        const char *letter = stg_category_letter((stg_category)i);

        letters[i] = letter == NULL ? '-' : letter[0];
    }
    CHECK_STR(letters, "-ABCD-----");
}

/* How it was settled and for what cause: cancelled and expired say more than the
 * reason. */
TEST(cause, of_a_bulk_row_is_its_end_before_its_reason)
{
    static const struct {
        bool is_cancelled, is_expired;
        stg_shed_reason reason;
        const char *how, *cause;
    } rows[] = {
        {false, false, STG_SHED_OPEN, "shed", "SHED"},
        {false, false, STG_SHED_PAUSED, "retention", "PAUSED"},
        {false, false, STG_SHED_SLOW, "retention", "SLOW"},
        {false, true, STG_SHED_PAUSED, "expired", "EXPIRED"},
        {true, false, STG_SHED_SLOW, "cancelled", "CANCELLED"},
        {true, true, STG_SHED_OPEN, "cancelled", "CANCELLED"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stg_change c = {.is_cancelled = rows[i].is_cancelled,
                        .is_expired = rows[i].is_expired,
                        .reason = rows[i].reason};

        CHECK_STR(stg_shed_how_name(stg_shed_how_of(&c)), rows[i].how);
        CHECK_STR(stg_shed_cause_name(stg_shed_cause_of(&c)), rows[i].cause);
    }
}
