/* Texts that the store keeps encrypted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/seal.h"
#include "tests/harness.h"

#define HEX_A "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F"
#define BASE_A "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
#define HEX_B "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static stg_status parse(stg_seal_keys **keys, const char *text, stg_error *err)
{
    return stg_seal_keys_parse(keys, (stg_span){text, strlen(text)}, "f", err);
}

static stg_seal_keys *keys_of(const char *text)
{
    stg_seal_keys *keys = NULL;

    CHECK_INT(parse(&keys, text, NULL), STG_OK);
    return keys;
}

/* What it says; "": err has why not. */
static const char *opened(const char *file, const char *name,
                          const char *sealed, stg_error *err)
{
    static char text[200];
    stg_seal_keys *keys = *file == '\0' ? NULL : keys_of(file);
    char *plain = NULL;

    text[0] = '\0';
    if (stg_seal_take(keys, name, sealed, &plain, err) == STG_OK)
        snprintf(text, sizeof text, "%s", plain);
    free(plain);
    stg_seal_keys_free(keys);
    return text;
}

static char *sealed_by(const char *file, const char *name, const char *text)
{
    stg_seal_keys *keys = keys_of(file);
    char *sealed = stg_seal_put(keys, name, text);

    stg_seal_keys_free(keys);
    return sealed;
}

TEST(seal, gives_the_text_back_to_its_name_and_key)
{
    stg_error err;
    char *one = sealed_by(HEX_A, "a", "hush"),
         *two = sealed_by(BASE_A "\n", "a", "hush"),
         *none = sealed_by(HEX_A, "a", "");

    CHECK_STR(opened(BASE_A, "a", one, &err), "hush");
    CHECK_STR(opened("# old\n\n  " HEX_B "\r\n" HEX_A, "a", two, &err), "hush");
    CHECK_STR(opened(HEX_A, "b", one, &err), "");
    CHECK_STR(err.text,
              "it was changed, or is of another name: it cannot be decrypted");
    err.text[0] = '\0';
    CHECK_STR(opened(HEX_A, "a", none, &err), "");
    CHECK_STR(err.text, "");
    CHECK(strcmp(one, two) != 0);
    CHECK(strstr(one, "hush") == NULL);
    free(one);
    free(two);
    free(none);
}

TEST(seal, names_the_key_that_is_missing)
{
    stg_error err;
    char *sealed = sealed_by(HEX_A, "a", "hush");

    CHECK_STR(opened("", "a", sealed, &err), "");
    CHECK_STR(err.text,
              "it is encrypted with the key 630dcd29, and the hub has "
              "none; expected its file as `secrets.key`");
    CHECK_STR(opened(HEX_B, "a", sealed, &err), "");
    CHECK_STR(err.text,
              "it is encrypted with the key 630dcd29, and the hub has "
              "others; expected that, too, in the file of "
              "`secrets.key`");
    free(sealed);
}

TEST(seal, refuses_a_text_with_any_character_changed_or_cut)
{
    stg_error err;
    char *sealed = sealed_by(HEX_A, "a", "hush");

    for (size_t i = 0; i < strlen(sealed); i++) {
        char was = sealed[i];

        sealed[i] = was == 'A' ? 'B' : 'A';
        CHECK_FROM(i, !stg_seal_is(sealed) ||
                          *opened(HEX_A, "a", sealed, &err) == '\0');
        sealed[i] = was;
    }
    for (size_t size = strlen(sealed); size-- > sizeof "sealed:1:" - 1;) {
        sealed[size] = '\0';
        CHECK_FROM(size, *opened(HEX_A, "a", sealed, &err) == '\0');
    }
    free(sealed);
}

TEST(seal, knows_whether_a_text_has_the_first_key)
{
    stg_seal_keys *keys = keys_of(HEX_B "\n" HEX_A);
    char *old = sealed_by(HEX_A, "a", "x"), *new = sealed_by(HEX_B, "a", "x");

    CHECK(stg_seal_is_current(keys, new));
    CHECK(!stg_seal_is_current(keys, old));
    CHECK(!stg_seal_is_current(keys, "{}"));
    CHECK(!stg_seal_is("{\"sealed:1:\":1}"));
    free(old);
    free(new);
    stg_seal_keys_free(keys);
}

TEST(seal, takes_files_of_keys_and_quotes_no_line_of_others)
{
    static const char *const wrong[] = {
        "",
        "# none\n",
        "hush",
        HEX_A "0",
        BASE_A "A",
        "g00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"};
    stg_seal_keys *keys;
    stg_error err;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_FROM(i, parse(&keys, wrong[i], &err) == STG_INVALID);
        CHECK_FROM(i, strstr(err.text, "openssl rand -hex 32") != NULL);
        CHECK_FROM(i, strstr(err.text, "hush") == NULL);
    }
    CHECK_INT(parse(&keys, HEX_A "\n" BASE_A, &err), STG_INVALID);
    CHECK_STR(err.text, "key file f:2: this key is there already");
}

TEST(seal, reads_a_file_of_keys_that_nobody_else_may_read)
{
    char path[] = "/tmp/stagger-keys-XXXXXX", text[17 * 66 + 1] = "";
    int fd = mkstemp(path);
    stg_seal_keys *keys = NULL, *same = keys_of(HEX_B "\n" HEX_A);
    stg_error err;

    CHECK(fd >= 0 && write(fd, HEX_B "\n" HEX_A "\n", 130) == 130);
    CHECK_INT(stg_seal_keys_load(&keys, path, &err), STG_OK);
    CHECK_STR(stg_seal_key(keys), stg_seal_key(same));
    stg_seal_keys_free(keys);
    stg_seal_keys_free(same);
    CHECK_INT(fchmod(fd, 0644), 0);
    CHECK_INT(stg_seal_keys_load(&keys, path, &err), STG_INVALID);
    CHECK(strstr(err.text, path) != NULL);
    CHECK_INT(unlink(path), 0);
    CHECK(stg_seal_keys_load(&keys, path, &err) != STG_OK);
    close(fd);
    for (int i = 0; i < 17; i++)
        snprintf(text + 65 * i, sizeof text - 65 * (size_t)i, "%064x\n", i);
    CHECK_INT(parse(&keys, text, &err), STG_INVALID);
    CHECK_STR(err.text, "key file f:17: more than 16 keys");
    text[65 * 16] = '\0';
    CHECK_INT(parse(&keys, text, &err), STG_OK);
    stg_seal_keys_free(keys);
}
