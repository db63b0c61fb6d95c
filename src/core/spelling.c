#include "core/codes.h"

#include <string.h>

#include "core/rule.h"

/* Words for faults, in each spelling that somebody may have at hand: names of
 * policies (refused), causes of records (CONNECTION_REFUSED), categories and
 * their letters, codes with a prefix (grpc:14, GRPC_UNAVAILABLE), bare names
 * (ECONNREFUSED, LOADING) and bare numbers. Case does not matter, nor '_' for
 * '-'.
 *
 * The readers are tried one after the other, and no word is read by two of
 * them but `cancelled`, where the fault comes before gRPC's code. So a name
 * that is added to one table must not be in another. */

/* Kinds of codes whose names are read without their prefix, too. */
static const stg_code_kind named[] = {STG_CODE_GRPC, STG_CODE_REDIS,
                                      STG_CODE_AMQP1, STG_CODE_KAFKA};

enum { NAMED = sizeof named / sizeof *named };

static bool set(stg_rule *rule, stg_link_kind link, uint32_t value)
{
    *rule = (stg_rule){.link = (uint8_t)link, .value = value};
    return true;
}

static bool set_code(stg_rule *rule, stg_code_kind kind, uint32_t value)
{
    *rule = (stg_rule){
        .link = STG_LINK_CODE, .code_kind = (uint8_t)kind, .value = value};
    return true;
}

static bool read_sqlstate(const stg_reader *word, stg_rule *rule)
{
    char letters[6] = "";

    if (word->end - word->at != 5)
        return false;
    memcpy(letters, word->at, 5);
    set_code(rule, STG_CODE_SQLSTATE, stg_sqlstate_pack(letters));
    return rule->value != UINT32_MAX;
}

static bool read_name(const stg_reader *word, stg_code_kind kind,
                      stg_rule *rule)
{
    const stg_code_row *row;

    for (size_t i = 0; (row = stg_code_at(kind, i)) != NULL; i++)
        if (row->fault != STG_FAULT_NONE && row->name != NULL &&
            stg_reader_spells(word, row->name))
            return set_code(rule, kind, (uint32_t)row->code);
    return false;
}

static bool read_number(stg_reader word, stg_code_kind kind, stg_rule *rule)
{
    bool is_negative = kind == STG_CODE_KAFKA && stg_read_text(&word, "-");
    uint32_t number;

    if (!stg_read_int(&word, &number) || !stg_reader_is_empty(&word))
        return false;
    return set_code(rule, kind, is_negative ? 0 - number : number);
}

/* What stands behind "grpc:", "GRPC_" or "grpc-". */
static bool read_prefixed(const stg_reader *word, stg_rule *rule)
{
    for (int i = STG_CODE_STATUS; i <= STG_CODE_KAFKA; i++) {
        stg_code_kind kind = (stg_code_kind)i;
        const char *prefix = stg_code_prefix(kind);
        size_t length = strlen(prefix);
        stg_reader head = {word->at, word->at + length}, code;

        if (length == 0 || (size_t)(word->end - word->at) <= length ||
            strchr(":_-", *head.end) == NULL ||
            !stg_reader_spells(&head, prefix))
            continue;
        code = (stg_reader){head.end + 1, word->end};
        return kind == STG_CODE_SQLSTATE ? read_sqlstate(&code, rule)
                                         : read_name(&code, kind, rule) ||
                                               read_number(code, kind, rule);
    }
    return false;
}

/* AMQP_LINK_STOLEN, as records write what AMQP calls amqp:link:stolen. */
static bool read_cause(const stg_reader *word, stg_rule *rule)
{
    const stg_code_row *row;

    for (size_t i = 0; (row = stg_code_at(STG_CODE_AMQP1, i)) != NULL; i++) {
        char text[STG_CAUSE_MAX];
        stg_writer w = stg_writer_on(text, sizeof text);

        stg_code_write_cause(&w, STG_CODE_AMQP1, (uint32_t)row->code);
        if (stg_reader_spells(word, text))
            return set_code(rule, STG_CODE_AMQP1, (uint32_t)row->code);
    }
    return false;
}

/* A fault that has no name of its own is named after its family. */
static bool read_fault(const stg_reader *word, stg_rule *rule)
{
    for (unsigned i = STG_FAULT_NONE + 1; i < STG_FAULT_COUNT; i++) {
        const stg_fault_info *info = stg_fault_about((stg_fault)i);
        stg_outcome o = {.fault = (stg_fault)i};

        if (!stg_reader_spells(word, info->name) &&
            !stg_reader_spells(word, info->cause))
            continue;
        return stg_fault_has_name(o.fault)
                   ? set(rule, STG_LINK_NAME, i)
                   : set(rule, STG_LINK_FAMILY, stg_outcome_family(&o));
    }
    return false;
}

static bool read_category(const stg_reader *word, stg_rule *rule)
{
    static const char *const letters[] = {
        [STG_CATEGORY_CONNECT] = "A",
        [STG_CATEGORY_SERVER] = "B",
        [STG_CATEGORY_REQUEST] = "C",
        [STG_CATEGORY_OVERLOAD] = "D",
    };

    for (unsigned i = STG_CATEGORY_CONNECT; i <= STG_CATEGORY_LOCAL; i++)
        if ((i != STG_CATEGORY_OWN &&
             stg_reader_spells(word, stg_category_name((stg_category)i))) ||
            (i <= STG_CATEGORY_OVERLOAD && stg_reader_spells(word, letters[i])))
            return set(rule, STG_LINK_CATEGORY, i);
    return false;
}

/* Five letters may be any word: without a prefix a SQLSTATE is told by a digit
 * in its first or third place. */
static bool is_like_sqlstate(const stg_reader *word)
{
    return word->end - word->at == 5 &&
           (stg_is_digit(word->at[0]) || stg_is_digit(word->at[2]));
}

/* Digits alone. Those that are too few or too many for anything else are a
 * status out of range. */
static bool read_digits(const stg_reader *word, stg_rule *rule)
{
    return read_number(
        *word, word->end - word->at == 4 ? STG_CODE_MYSQL : STG_CODE_STATUS,
        rule);
}

static bool read_bare_name(const stg_reader *word, stg_rule *rule)
{
    stg_fault fault;

    for (size_t i = 0; i < NAMED; i++)
        if (read_name(word, named[i], rule))
            return true;
    if (!stg_errno_named(word, &fault))
        return false;
    return set(rule, STG_LINK_NAME, fault);
}

bool stg_spelling_read(stg_reader word, stg_rule *rule)
{
    // No word fits two of these but "cancelled"; numbers are the most frequent.
    if ((is_like_sqlstate(&word) && read_sqlstate(&word, rule)) ||
        read_digits(&word, rule) || read_prefixed(&word, rule) ||
        read_fault(&word, rule) || read_category(&word, rule))
        return true;
    if (stg_reader_spells(&word, "any"))
        return set(rule, STG_LINK_ANY, 0);
    return read_bare_name(&word, rule) || read_cause(&word, rule);
}

/* By way of the classifiers, so that it has the fault and the flags of the
 * real failure. */
static stg_outcome outcome_of_code(stg_code_kind kind, uint32_t code)
{
    const stg_code_row *row = stg_code_about(kind, code);
    char sqlstate[6];

    switch (kind) {
    case STG_CODE_STATUS:
        return stg_answered((int)code);
    case STG_CODE_SQLSTATE:
        stg_sqlstate_unpack(code, sqlstate);
        return stg_failed_sqlstate(sqlstate);
    case STG_CODE_MYSQL:
        return stg_failed_mysql(code);
    case STG_CODE_GRPC:
        return stg_failed_grpc((int)code, NULL);
    case STG_CODE_CURL:
        return stg_failed_curl((int)code);
    case STG_CODE_EXIT:
        return stg_failed_exit((int)code);
    case STG_CODE_REDIS:
        return stg_failed_redis(row == NULL ? NULL : row->name);
    case STG_CODE_AMQP:
        return stg_failed_amqp((int)code);
    case STG_CODE_AMQP1:
        return stg_failed_amqp_condition(row == NULL ? NULL : row->name);
    case STG_CODE_KAFKA:
        return stg_failed_kafka((int)code);
    default:
        return stg_ok();
    }
}

stg_outcome stg_spelling_outcome(const stg_rule *rule)
{
    if (rule->link == STG_LINK_CODE)
        return outcome_of_code((stg_code_kind)rule->code_kind, rule->value);
    return rule->link == STG_LINK_NAME ? stg_failed((stg_fault)rule->value)
                                       : stg_ok();
}

/* The i-th name of the codes, or of the errors of the system behind them. */
static const char *name_at(size_t i)
{
    for (size_t k = 0; k < NAMED; k++) {
        const stg_code_row *row;

        for (size_t j = 0; (row = stg_code_at(named[k], j)) != NULL; j++)
            if (row->fault != STG_FAULT_NONE && i-- == 0)
                return row->name;
    }
    return stg_errno_name_at(i);
}

/* All words, one by one, for suggestions. Not all of them may stand in a
 * policy. */
const char *stg_spelling_word(size_t i)
{
    enum {
        FAULTS = STG_FAULT_COUNT - 1,
        CATEGORIES = STG_CATEGORY_LOCAL - STG_CATEGORY_CONNECT + 1
    };

    if (i == 0)
        return "any";
    i--;
    if (i < FAULTS)
        return stg_fault_about((stg_fault)(i + 1))->name;
    i -= FAULTS;
    if (i < FAULTS)
        return stg_fault_about((stg_fault)(i + 1))->cause;
    i -= FAULTS;
    if (i < CATEGORIES)
        return stg_category_name((stg_category)(i + STG_CATEGORY_CONNECT));
    return name_at(i - CATEGORIES);
}
