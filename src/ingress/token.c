/* Reads, checks, finds and makes bearer tokens. The file and the memory of the
 * hub hold SHA-256 hashes only, never a token.
 *
 * stg_tokens_find() compares all hashes, in constant time. Errors name the
 * line of the file and never quote it, for it may be a token that was pasted
 * by mistake. Also the words of roles. */
#include "ingress/token.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/digits.h"
#include "host/files.h"

enum {
    HASH_SIZE = 32,
    TOKEN_MIN = 16, /* shorter ones can be guessed */
    TOKEN_MAX = 512,
    RANDOM_SIZE = 32,
};

struct stg_tokens {
    size_t count;
    struct {
        unsigned char hash[HASH_SIZE];
        stg_token token;
    } all[STG_TOKENS_MAX];
};

__attribute__((format(printf, 5, 6))) static stg_status
refuse(stg_error *err, stg_status status, const char *name, size_t line,
       const char *format, ...)
{
    char why[256], place[24] = "";
    va_list arguments;

    if (err == NULL)
        return status;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    if (line > 0)
        snprintf(place, sizeof place, ":%zu", line);
    err->line = (uint32_t)line;
    err->column = 0;
    snprintf(err->text, sizeof err->text, "token file %.80s%s: %s", name, place,
             why);
    return status;
}

static bool hash_token(stg_span token, unsigned char hash[HASH_SIZE])
{
    return EVP_Digest(token.at, token.size, hash, NULL, EVP_sha256(), NULL) ==
           1;
}

/* RFC 6750's b64token; '=' may stand anywhere. */
static bool is_token(stg_span text)
{
    for (size_t i = 0; i < text.size; i++) {
        char c = text.at[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
            !(c >= '0' && c <= '9') &&
            (c == '\0' || strchr("-._~+/=", c) == NULL))
            return false;
    }
    return text.size >= TOKEN_MIN && text.size <= TOKEN_MAX;
}

/* The word at the start of text, which moves behind it and its blanks. */
static stg_span take_word(stg_span *text)
{
    stg_span word = {text->at, 0};

    while (word.size < text->size && !stg_span_is_blank(text->at[word.size]))
        word.size++;
    *text =
        stg_span_trim((stg_span){text->at + word.size, text->size - word.size});
    return word;
}

/* -- a line ------------------------------------------------------------------ */

bool stg_token_is_name(const char *name)
{
    static const char bytes[] =
        "abcdefghijklmnopqrstuvwxyz"
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-";
    size_t size = strlen(name);

    return size < STG_TOKEN_NAME_MAX && strspn(name, bytes) == size;
}

static bool read_hash(stg_span text, unsigned char hash[HASH_SIZE])
{
    static const char kind[] = "sha256:";
    size_t kind_size = sizeof kind - 1;

    return text.size == kind_size + 2 * HASH_SIZE &&
           memcmp(text.at, kind, kind_size) == 0 &&
           stg_hex_read(hash, HASH_SIZE, text.at + kind_size);
}

static bool read_name(stg_span text, char name[STG_TOKEN_NAME_MAX])
{
    if (text.size >= STG_TOKEN_NAME_MAX ||
        (text.size > 0 && memchr(text.at, '\0', text.size) != NULL))
        return false;
    memcpy(name, text.at, text.size);
    name[text.size] = '\0';
    return stg_token_is_name(name);
}

/* One token has one line: with two, nobody could say which name and roles it
 * has. */
static const char *find_flaw(const stg_tokens *t, unsigned all, bool has_hash,
                             const unsigned char hash[HASH_SIZE], bool has_name)
{
    if (all == 0 || !has_hash)
        return "expected ROLE[,ROLE] sha256:HASH [NAME], of the roles publish, "
               "view and operate; stagger token new makes such a line";
    if (!has_name)
        return "expected a name of 64 letters, digits and . _ @ - at most";
    for (size_t i = 0; i < t->count; i++)
        if (CRYPTO_memcmp(hash, t->all[i].hash, HASH_SIZE) == 0)
            return "this token is there already";
    return NULL;
}

/* An error never quotes the line: it may be a token. */
static stg_status add_line(stg_tokens *t, stg_span line, const char *name,
                           size_t number, stg_error *err)
{
    unsigned char hash[HASH_SIZE] = {0};
    stg_token token = {0};
    bool has_hash, has_name;
    const char *flaw;

    if (line.size == 0 || line.at[0] == '#')
        return STG_OK;
    token.roles = stg_roles_parse(take_word(&line));
    has_hash = read_hash(take_word(&line), hash);
    has_name = read_name(line, token.name);
    flaw = find_flaw(t, token.roles, has_hash, hash, has_name);
    if (flaw != NULL)
        return refuse(err, STG_INVALID, name, number, "%s", flaw);
    if (t->count == STG_TOKENS_MAX)
        return refuse(err, STG_INVALID, name, number, "more than %d tokens",
                      STG_TOKENS_MAX);
    // Who operates must see what it does.
    if ((token.roles & STG_ROLE_OPERATE) != 0)
        token.roles |= STG_ROLE_VIEW;
    memcpy(t->all[t->count].hash, hash, HASH_SIZE);
    t->all[t->count++].token = token;
    return STG_OK;
}

static stg_status add_lines(stg_tokens *t, stg_span text, const char *name,
                            stg_error *err)
{
    stg_status status = STG_OK;

    for (size_t i = 1; text.size > 0 && status == STG_OK; i++)
        status =
            add_line(t, stg_span_trim(stg_span_take_line(&text)), name, i, err);
    if (status == STG_OK && t->count == 0)
        return refuse(err, STG_INVALID, name, 0,
                      "no token in it; to make one: stagger token new %.80s "
                      "--role publish",
                      name);
    return status;
}

stg_status stg_tokens_parse(stg_tokens **tokens, stg_span text,
                            const char *name, stg_error *err)
{
    stg_tokens *t = calloc(1, sizeof *t);
    stg_status status;

    if (t == NULL)
        return refuse(err, STG_IO, name, 0, "no memory");
    status = add_lines(t, text, name, err);
    if (status != STG_OK)
        stg_tokens_free(t);
    else
        *tokens = t;
    return status;
}

/* -- the file ---------------------------------------------------------------- */

/* The text may have a token in it that was pasted by mistake: it is wiped. */
stg_status stg_tokens_load(stg_tokens **tokens, const char *path,
                           stg_error *err)
{
    stg_error why;
    char *text;
    size_t size;
    stg_status status = stg_secret_file_read(path, &text, &size, &why);

    if (status != STG_OK)
        return refuse(err, status, path, 0, "%s", why.text);
    status = stg_tokens_parse(tokens, (stg_span){text, size}, path, err);
    stg_secret_file_free(text, size);
    return status;
}

void stg_tokens_free(stg_tokens *t)
{
    if (t == NULL)
        return;
    OPENSSL_cleanse(t, sizeof *t);
    free(t);
}

/* Walks to the end also where the token is found: how long it takes tells
 * nothing. */
const stg_token *stg_tokens_find(const stg_tokens *t, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    unsigned char hash[HASH_SIZE];
    const stg_token *found = NULL;
    stg_span token;

    if (authorization == NULL ||
        strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return NULL;
    authorization += sizeof scheme - 1;
    token = stg_span_trim((stg_span){authorization, strlen(authorization)});
    if (!is_token(token) || !hash_token(token, hash))
        return NULL;
    for (size_t i = 0; i < t->count; i++)
        if (CRYPTO_memcmp(hash, t->all[i].hash, HASH_SIZE) == 0)
            found = &t->all[i].token;
    return found;
}

/* -- a new one --------------------------------------------------------------- */

static void print_hex(const unsigned char *bytes, size_t size, char *text)
{
    for (size_t i = 0; i < size; i++)
        sprintf(text + 2 * i, "%02x", bytes[i]);
}

/* 256 random bits, in hexadecimal. */
stg_status stg_token_make(char token[STG_TOKEN_TEXT_MAX], stg_error *err)
{
    static const char prefix[] = "stagger_";
    unsigned char bytes[RANDOM_SIZE];

    if (RAND_priv_bytes(bytes, sizeof bytes) != 1)
        return refuse(err, STG_IO, "", 0, "OpenSSL has no random numbers");
    memcpy(token, prefix, sizeof prefix);
    print_hex(bytes, sizeof bytes, token + sizeof prefix - 1);
    OPENSSL_cleanse(bytes, sizeof bytes);
    return STG_OK;
}

bool stg_token_print(const char *token, unsigned all, const char *name,
                     char line[STG_TOKEN_LINE_MAX])
{
    unsigned char hash[HASH_SIZE];
    char hex[2 * HASH_SIZE + 1], words[STG_ROLES_TEXT_MAX];

    if (!hash_token((stg_span){token, strlen(token)}, hash))
        return false;
    print_hex(hash, sizeof hash, hex);
    snprintf(line, STG_TOKEN_LINE_MAX, "%s sha256:%s%s%s\n",
             stg_roles_print(all, words), hex, *name == '\0' ? "" : " ", name);
    return true;
}

/* -- roles, as words ------------------------------------------------------- */

static const struct {
    const char *name;
    unsigned role;
} roles[] = {{"publish", STG_ROLE_PUBLISH},
             {"view", STG_ROLE_VIEW},
             {"operate", STG_ROLE_OPERATE}};

enum { ROLES = sizeof roles / sizeof *roles };

static unsigned find_role(stg_span name)
{
    for (size_t i = 0; i < ROLES; i++)
        if (name.size == strlen(roles[i].name) &&
            memcmp(name.at, roles[i].name, name.size) == 0)
            return roles[i].role;
    return 0;
}

unsigned stg_roles_parse(stg_span text)
{
    unsigned all = 0;

    for (;;) {
        const char *comma =
            text.size == 0 ? NULL : memchr(text.at, ',', text.size);
        size_t size = comma == NULL ? text.size : (size_t)(comma - text.at);
        unsigned role = find_role((stg_span){text.at, size});

        if (role == 0)
            return 0;
        all |= role;
        if (comma == NULL)
            return all;
        text = (stg_span){comma + 1, text.size - size - 1};
    }
}

const char *stg_roles_print(unsigned all, char text[STG_ROLES_TEXT_MAX])
{
    char *out = text;

    *out = '\0';
    for (size_t i = 0; i < ROLES; i++)
        if ((all & roles[i].role) != 0)
            out += sprintf(out, "%s%s", out == text ? "" : ",", roles[i].name);
    return text;
}
