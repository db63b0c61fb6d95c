#include "store/letter.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/harness.h"

/* A letter whose every column is told: numbers are 7, texts and bytes `text`. */
static stg_letter letter_of(const char *text)
{
    stg_letter l = {.is_evicted = true};

    for (stg_letter_column c = 0; c < STG_LETTER_COLUMNS; c++) {
        stg_letter_set(
            &l, c,
            (stg_letter_value){.number = 7, .span = {text, strlen(text)}});
    }
    return l;
}

TEST(letter, gives_each_column_that_it_was_told)
{
    stg_letter l = letter_of("word");

    for (stg_letter_column c = 0; c < STG_LETTER_COLUMNS; c++) {
        stg_letter_value value = stg_letter_get(&l, c);

        CHECK(!value.is_null);
        if (value.is_number)
            CHECK_U64(value.number, 7);
        else
            CHECK(value.span.size == 4 && !memcmp(value.span.at, "word", 4));
    }
    CHECK(l.has_payload && !l.is_evicted);
}

/* Of numbers only those that a letter may lack. */
TEST(letter, has_null_where_it_was_told_so)
{
    char nulls[STG_LETTER_COLUMNS + 1] = "";
    stg_letter l = letter_of("word");

    for (stg_letter_column c = 0; c < STG_LETTER_COLUMNS; c++)
        stg_letter_set(&l, c, (stg_letter_value){.is_null = true});
    for (stg_letter_column c = 0; c < STG_LETTER_COLUMNS; c++)
        nulls[c] = stg_letter_get(&l, c).is_null     ? '-'
                   : stg_letter_get(&l, c).is_number ? '0'
                                                     : '?';
    // id, attempts, count and replay.
    CHECK_STR(nulls, "0---------0--------00-------");
    CHECK(l.is_evicted && !l.has_payload);
    CHECK(l.target == NULL && l.payload.at == NULL && l.payload.size == 0);
    CHECK_U64(l.attempts, 0);
}

TEST(letter, of_one_message_is_as_new_as_that_and_a_bulk_row_as_its_last)
{
    stg_letter l = {.created_at = "created", .last_attempt_at = "last"};

    CHECK_STR(stg_letter_newest(&l), "created");
    l.last_position = 9;
    CHECK_STR(stg_letter_newest(&l), "last");
    l.last_position = 0;
    l.is_evicted = true;
    CHECK_STR(stg_letter_newest(&l), "last");
}

TEST(letter, knows_its_states_and_headers)
{
    CHECK(stg_letter_is_state("dead"));
    CHECK(stg_letter_is_state("cancelled"));
    CHECK(!stg_letter_is_state("alive"));
    CHECK(!stg_letter_is_state(""));
    CHECK_STR(stg_letter_header(STG_LETTER_ID), "stagger-dead-letter-id");
    CHECK_STR(stg_letter_header(STG_LETTER_REPLAY), "stagger-replay");
    CHECK(stg_letter_header(STG_LETTER_PAYLOAD) == NULL);
    CHECK_STR(stg_letter_name(STG_LETTER_PARTITION), "partition");
    CHECK(stg_letter_is_bytes(STG_LETTER_ANSWER));
    CHECK(!stg_letter_is_bytes(STG_LETTER_CAUSE));
}

/* What is no text is base64 under another name; what cannot be seen is escaped. */
TEST(letter, is_a_line_of_json)
{
    stg_letter l = {.id = 7, .target = "a\"\\\n\r\t\x01z"};
    stg_text line = {.at = NULL};

    l.payload = (stg_span){"\xff\xfe", 2};
    l.answer = (stg_span){"plain", 5};
    l.count = 3;
    stg_letter_write(&line, &l);
    stg_text_add(&line, "", 1);
    CHECK(!line.is_short);
    CHECK_STR(
        line.at,
        "{\"id\": 7, \"message_id\": null, \"target\": "
        "\"a\\\"\\\\\\n\\r\\t\\u0001z\", \"target_url\": null, \"state\": null, "
        "\"why\": null, \"category\": null, \"cause\": null, \"http_status\": "
        "null, \"detail\": null, \"attempts\": 0, \"first_attempt_at\": null, "
        "\"last_attempt_at\": null, \"created_at\": null, \"changed_at\": null, "
        "\"topic\": null, \"partition\": null, \"position\": 0, "
        "\"last_position\": null, \"count\": 3, \"replay\": 0, "
        "\"payload_size\": null, \"content_type\": null, \"headers\": null, "
        "\"key\": null, \"source_key\": null, \"answer\": \"plain\", "
        "\"payload_base64\": \"//4=\"}\n");
    stg_text_free(&line);
}
