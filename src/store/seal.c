/* Encrypts and decrypts texts by OpenSSL. All that is sealed has the id of its
 * key, so that a missing key is told apart from a text that was changed. */
#include "store/seal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/digits.h"
#include "base/refuse.h"
#include "base/text.h"
#include "host/files.h"

enum { KEY_SIZE = 32, NONCE_SIZE = 12, TAG_SIZE = 16, KEY_TEXT = 44 };

static const char prefix[] = "sealed:1:";
enum { PREFIX_SIZE = sizeof prefix - 1, ID_SIZE = STG_SEAL_ID_MAX - 1 };

typedef struct seal_key {
    unsigned char bytes[KEY_SIZE];
    char id[STG_SEAL_ID_MAX];
} seal_key;

struct stg_seal_keys {
    size_t count;
    seal_key all[STG_SEAL_KEYS_MAX];
};

/* -- keys ------------------------------------------------------------------ */

static bool read_key(unsigned char *to, stg_span text)
{
    char bytes[KEY_TEXT];
    size_t size = 0;
    bool is_key = text.size == KEY_TEXT &&
                  stg_base64_read(bytes, text, &size) && size == KEY_SIZE;

    if (is_key)
        memcpy(to, bytes, KEY_SIZE);
    OPENSSL_cleanse(bytes, sizeof bytes);
    return is_key || (text.size == (size_t)2 * KEY_SIZE &&
                      stg_hex_read(to, KEY_SIZE, text.at));
}

static bool make_id(seal_key *k)
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    bool is_made =
        EVP_Digest(k->bytes, KEY_SIZE, hash, NULL, EVP_sha256(), NULL) == 1;

    for (size_t i = 0; is_made && i < ID_SIZE / 2; i++)
        snprintf(k->id + 2 * i, 3, "%02x", hash[i]);
    return is_made;
}

static stg_status refuse_key(stg_error *err, const char *path, size_t line,
                             const char *why)
{
    return stg_hub_refuse(err, STG_INVALID, "key file %.120s:%zu: %s", path,
                          line, why);
}

static stg_status add_line(stg_seal_keys *k, stg_span line, const char *path,
                           size_t number, stg_error *err)
{
    seal_key *key = &k->all[k->count];

    if (line.size == 0 || line.at[0] == '#')
        return STG_OK;
    if (k->count == STG_SEAL_KEYS_MAX)
        return refuse_key(err, path, number, "more than 16 keys");
    if (!read_key(key->bytes, line))
        return refuse_key(
            err, path, number,
            "expected a key of 32 bytes, as 64 hexadecimal "
            "digits or in Base64; openssl rand -hex 32 makes one");
    if (!make_id(key))
        return stg_hub_refuse(err, STG_IO, "OpenSSL has no SHA-256");
    for (size_t i = 0; i < k->count; i++)
        if (strcmp(k->all[i].id, key->id) == 0)
            return refuse_key(err, path, number, "this key is there already");
    k->count++;
    return STG_OK;
}

static stg_status add_lines(stg_seal_keys *k, stg_span text, const char *path,
                            stg_error *err)
{
    stg_status status = STG_OK;

    for (size_t i = 1; text.size > 0 && status == STG_OK; i++)
        status =
            add_line(k, stg_span_trim(stg_span_take_line(&text)), path, i, err);
    if (status == STG_OK && k->count == 0)
        return stg_hub_refuse(err, STG_INVALID,
                              "key file %.120s: there is no key in it; openssl "
                              "rand -hex 32 makes one",
                              path);
    return status;
}

stg_status stg_seal_keys_parse(stg_seal_keys **keys, stg_span text,
                               const char *path, stg_error *err)
{
    stg_seal_keys *k = calloc(1, sizeof *k);
    stg_status status;

    if (k == NULL)
        return stg_hub_refuse(err, STG_IO, "no memory for keys");
    status = add_lines(k, text, path, err);
    if (status != STG_OK)
        stg_seal_keys_free(k);
    else
        *keys = k;
    return status;
}

stg_status stg_seal_keys_load(stg_seal_keys **keys, const char *path,
                              stg_error *err)
{
    stg_error why;
    char *text;
    size_t size;
    stg_status status = stg_secret_file_read(path, &text, &size, &why);

    if (status != STG_OK)
        return stg_hub_refuse(err, status, "key file %.120s: %s", path,
                              why.text);
    status = stg_seal_keys_parse(keys, (stg_span){text, size}, path, err);
    stg_secret_file_free(text, size);
    return status;
}

void stg_seal_keys_free(stg_seal_keys *k)
{
    if (k == NULL)
        return;
    OPENSSL_cleanse(k, sizeof *k);
    free(k);
}

bool stg_seal_keys_equal(const stg_seal_keys *a, const stg_seal_keys *b)
{
    bool is_equal = a->count == b->count;

    for (size_t i = 0; is_equal && i < a->count; i++)
        is_equal =
            CRYPTO_memcmp(a->all[i].bytes, b->all[i].bytes, KEY_SIZE) == 0;
    return is_equal;
}

const char *stg_seal_key(const stg_seal_keys *keys)
{
    return keys->all[0].id;
}

/* -- what a text is -------------------------------------------------------- */

bool stg_seal_is(const char *text)
{
    return strncmp(text, prefix, PREFIX_SIZE) == 0;
}

/* NULL: none of them. */
static const seal_key *find_key(const stg_seal_keys *keys, const char *sealed)
{
    const char *id = sealed + PREFIX_SIZE;

    for (size_t i = 0; keys != NULL && i < keys->count; i++)
        if (strncmp(id, keys->all[i].id, ID_SIZE) == 0 && id[ID_SIZE] == ':')
            return &keys->all[i];
    return NULL;
}

bool stg_seal_is_current(const stg_seal_keys *keys, const char *text)
{
    return stg_seal_is(text) && find_key(keys, text) == &keys->all[0];
}

/* -- the cipher ------------------------------------------------------------ */

/* Encrypts or decrypts bytes; the tag behind them is made, or compared. */
static bool run(const seal_key *k, const char *name, bool encrypts,
                const unsigned char *nonce, const unsigned char *from,
                size_t size, unsigned char *to, unsigned char *tag)
{
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    unsigned char end[TAG_SIZE];
    int got, size_now = (int)size, name_size = (int)strlen(name);
    bool is_good = c != NULL && size <= INT32_MAX &&
                   EVP_CipherInit_ex(c, EVP_aes_256_gcm(), NULL, k->bytes,
                                     nonce, encrypts) == 1 &&
                   EVP_CipherUpdate(c, NULL, &got, (const unsigned char *)name,
                                    name_size) == 1 &&
                   EVP_CipherUpdate(c, to, &got, from, size_now) == 1 &&
                   got == size_now;

    if (is_good && !encrypts)
        is_good = EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG_SIZE, tag);
    is_good = is_good && EVP_CipherFinal_ex(c, end, &got) == 1;
    if (is_good && encrypts)
        is_good = EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG_SIZE, tag);
    EVP_CIPHER_CTX_free(c);
    return is_good;
}

/* Prefix, id and Base64 of the bytes. */
static char *print(const seal_key *k, stg_span bytes)
{
    size_t head = PREFIX_SIZE + ID_SIZE + 1;
    char *text = malloc(head + stg_base64_size(bytes.size) + 1);

    if (text == NULL)
        return NULL;
    snprintf(text, head + 1, "%s%s:", prefix, k->id);
    *stg_base64_put(text + head, bytes) = '\0';
    return text;
}

char *stg_seal_put(const stg_seal_keys *keys, const char *name,
                   const char *text)
{
    const seal_key *k = &keys->all[0];
    size_t size = strlen(text), whole = NONCE_SIZE + size + TAG_SIZE;
    unsigned char *bytes = malloc(whole);
    char *sealed = NULL;

    if (bytes != NULL && RAND_bytes(bytes, NONCE_SIZE) == 1 &&
        run(k, name, true, bytes, (const unsigned char *)text, size,
            bytes + NONCE_SIZE, bytes + NONCE_SIZE + size))
        sealed = print(k, (stg_span){(const char *)bytes, whole});
    free(bytes);
    return sealed;
}

static stg_status open_bytes(const seal_key *k, const char *name, stg_span in,
                             char **text, stg_error *err)
{
    unsigned char *bytes = malloc(in.size + 1);
    char *plain = malloc(in.size + 1);
    size_t whole = 0, size = 0;
    bool is_good = bytes != NULL && plain != NULL &&
                   stg_base64_read((char *)bytes, in, &whole) &&
                   whole >= NONCE_SIZE + TAG_SIZE;

    if (is_good) {
        size = whole - NONCE_SIZE - TAG_SIZE;
        is_good = run(k, name, false, bytes, bytes + NONCE_SIZE, size,
                      (unsigned char *)plain, bytes + NONCE_SIZE + size);
    }
    free(bytes);
    if (is_good) {
        plain[size] = '\0';
        *text = plain;
        return STG_OK;
    }
    free(plain);
    return plain == NULL ? stg_hub_refuse(err, STG_IO, "there is no memory")
                         : stg_hub_refuse(err, STG_INVALID,
                                          "it was changed, or is of another "
                                          "name: it cannot be decrypted");
}

stg_status stg_seal_take(const stg_seal_keys *keys, const char *name,
                         const char *sealed, char **text, stg_error *err)
{
    const seal_key *k = find_key(keys, sealed);
    const char *id = sealed + PREFIX_SIZE, *data = strchr(id, ':');

    if (data == NULL)
        return stg_hub_refuse(err, STG_INVALID, "it was cut");
    if (k == NULL)
        return stg_hub_refuse(
            err, STG_INVALID, "it is encrypted with the key %.*s, and %s",
            (int)strnlen(id, ID_SIZE), id,
            keys == NULL
                ? "the hub has none; expected its file as `secrets.key`"
                : "the hub has others; expected that, too, in the "
                  "file of `secrets.key`");
    return open_bytes(k, name, (stg_span){data + 1, strlen(data + 1)}, text,
                      err);
}
