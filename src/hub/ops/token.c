#include "hub/ops/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

enum {
    HASH_SIZE = 32,
    TOKEN_MIN = 16, /* shorter ones can be guessed */
    TOKEN_MAX = 512,
    FILE_MAX = STG_TOKENS_MAX * (TOKEN_MAX + 2),
};

struct stg_tokens {
    size_t count;
    unsigned char hashes[STG_TOKENS_MAX][HASH_SIZE];
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

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static stg_span trim(stg_span text)
{
    while (text.size > 0 && is_blank(text.at[0]))
        text = (stg_span){text.at + 1, text.size - 1};
    while (text.size > 0 && is_blank(text.at[text.size - 1]))
        text.size--;
    return text;
}

/* The line at the start of text, which moves behind it. */
static stg_span take_line(stg_span *text)
{
    const char *end = memchr(text->at, '\n', text->size);
    size_t size = end == NULL ? text->size : (size_t)(end - text->at);
    size_t whole = end == NULL ? size : size + 1;
    stg_span line = {text->at, size};

    *text = (stg_span){text->at + whole, text->size - whole};
    return line;
}

static stg_status add_line(stg_tokens *t, stg_span line, const char *name,
                           size_t number, stg_error *err)
{
    if (line.size == 0 || line.at[0] == '#')
        return STG_OK;
    if (!is_token(line))
        return refuse(err, STG_INVALID, name, number,
                      "wanted a token a line, of %d to %d letters, digits and "
                      "-._~+/=, like the output of: openssl rand -hex 32",
                      TOKEN_MIN, TOKEN_MAX);
    if (t->count == STG_TOKENS_MAX)
        return refuse(err, STG_INVALID, name, number, "more than %d tokens",
                      STG_TOKENS_MAX);
    if (!hash_token(line, t->hashes[t->count]))
        return refuse(err, STG_IO, name, number, "OpenSSL has no SHA-256");
    t->count++;
    return STG_OK;
}

static stg_status add_lines(stg_tokens *t, stg_span text, const char *name,
                            stg_error *err)
{
    stg_status status = STG_OK;

    for (size_t i = 1; text.size > 0 && status == STG_OK; i++)
        status = add_line(t, trim(take_line(&text)), name, i, err);
    if (status == STG_OK && t->count == 0)
        return refuse(err, STG_INVALID, name, 0,
                      "no token in it; to make one: (umask 077; openssl rand "
                      "-hex 32 > %.80s)",
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

static stg_status check_file(int fd, const char *path, stg_error *err)
{
    struct stat s;

    if (fstat(fd, &s) != 0)
        return refuse(err, STG_IO, path, 0, "%s", strerror(errno));
    if (S_ISDIR(s.st_mode))
        return refuse(err, STG_INVALID, path, 0, "it is a directory");
    if ((s.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return refuse(err, STG_INVALID, path, 0,
                      "group or others may read or write it (mode %03o); to "
                      "keep it for its owner: chmod 600 %.80s",
                      (unsigned)(s.st_mode & 0777), path);
    return STG_OK;
}

static stg_status read_file(int fd, const char *path, char *text, size_t *size,
                            stg_error *err)
{
    ssize_t got;

    *size = 0;
    do {
        got = read(fd, text + *size, FILE_MAX - *size);
        if (got < 0 && errno != EINTR)
            return refuse(err, STG_IO, path, 0, "%s", strerror(errno));
        *size += got > 0 ? (size_t)got : 0;
    } while (got != 0 && *size < FILE_MAX);
    if (*size == FILE_MAX)
        return refuse(err, STG_INVALID, path, 0, "more than %d bytes",
                      FILE_MAX);
    return STG_OK;
}

static stg_status load(stg_tokens **tokens, int fd, const char *path,
                       stg_error *err)
{
    stg_status status = check_file(fd, path, err);
    char *text;
    size_t size;

    if (status != STG_OK)
        return status;
    text = malloc(FILE_MAX);
    if (text == NULL)
        return refuse(err, STG_IO, path, 0, "no memory");
    status = read_file(fd, path, text, &size, err);
    if (status == STG_OK)
        status = stg_tokens_parse(tokens, (stg_span){text, size}, path, err);
    OPENSSL_cleanse(text, FILE_MAX);
    free(text);
    return status;
}

stg_status stg_tokens_load(stg_tokens **tokens, const char *path,
                           stg_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    stg_status status;

    if (fd < 0)
        return refuse(err, STG_IO, path, 0, "%s", strerror(errno));
    status = load(tokens, fd, path, err);
    close(fd);
    return status;
}

void stg_tokens_free(stg_tokens *t)
{
    if (t == NULL)
        return;
    OPENSSL_cleanse(t, sizeof *t);
    free(t);
}

bool stg_tokens_allow(const stg_tokens *t, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    unsigned char hash[HASH_SIZE];
    stg_span token;
    bool is_allowed = false;

    if (authorization == NULL ||
        strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return false;
    authorization += sizeof scheme - 1;
    token = trim((stg_span){authorization, strlen(authorization)});
    if (!is_token(token) || !hash_token(token, hash))
        return false;
    for (size_t i = 0; i < t->count; i++)
        if (CRYPTO_memcmp(hash, t->hashes[i], HASH_SIZE) == 0)
            is_allowed = true;
    return is_allowed;
}
