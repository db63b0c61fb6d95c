#include "tests/http/identity.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "tests/harness.h"

static EVP_PKEY *make_key(void)
{
    EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, NULL);
    EVP_PKEY *key = NULL;

    CHECK(c != NULL && EVP_PKEY_keygen_init(c) == 1);
    CHECK(EVP_PKEY_CTX_set_ec_paramgen_curve_nid(c, NID_X9_62_prime256v1) == 1);
    CHECK(EVP_PKEY_keygen(c, &key) == 1);
    EVP_PKEY_CTX_free(c);
    return key;
}

static void extend(X509 *certificate, int nid, const char *value)
{
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

    CHECK(e != NULL && X509_add_ext(certificate, e, -1) == 1);
    X509_EXTENSION_free(e);
}

identity identity_make(const char *names, long until_s, const identity *issuer)
{
    identity i = {make_key(), X509_new()};
    const identity *by = issuer != NULL ? issuer : &i;
    X509_NAME *name = X509_get_subject_name(i.certificate);

    CHECK(X509_set_version(i.certificate, 2) == 1);
    CHECK(ASN1_INTEGER_set(X509_get_serialNumber(i.certificate),
                           names != NULL ? 2 : 1) == 1);
    CHECK(X509_gmtime_adj(X509_getm_notBefore(i.certificate), -7200) != NULL);
    CHECK(X509_gmtime_adj(X509_getm_notAfter(i.certificate), until_s) != NULL);
    CHECK(X509_set_pubkey(i.certificate, i.key) == 1);
    CHECK(X509_NAME_add_entry_by_txt(
              name, "CN", MBSTRING_ASC,
              (const unsigned char *)(names ? "leaf" : "authority"), -1, -1,
              0) == 1);
    CHECK(X509_set_issuer_name(i.certificate,
                               X509_get_subject_name(by->certificate)) == 1);
    extend(i.certificate, NID_basic_constraints,
           names != NULL ? "CA:FALSE" : "critical,CA:TRUE");
    if (names != NULL)
        extend(i.certificate, NID_subject_alt_name, names);
    CHECK(X509_sign(i.certificate, by->key, EVP_sha256()) > 0);
    return i;
}

void identity_free(identity *i)
{
    EVP_PKEY_free(i->key);
    X509_free(i->certificate);
}

static FILE *create(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    return fdopen(fd, "w");
}

void identity_write(const identity *i, const char *certificate_path,
                    const char *key_path)
{
    FILE *certificate = create(certificate_path), *key = create(key_path);

    CHECK(PEM_write_X509(certificate, i->certificate) == 1);
    CHECK(PEM_write_PrivateKey(key, i->key, NULL, NULL, 0, NULL, NULL) == 1);
    CHECK(fclose(certificate) == 0 && fclose(key) == 0);
}
