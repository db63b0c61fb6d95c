/* Certificates and keys that the settings name. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "config/loading.h"
#include "store/parcel.h"

static const int SOON_DAYS = 14;

/* A file that needs another passphrase cannot be used: nobody is asked. */
static char no_passphrase[] = "";

/* NULL: there is no such file, or it is none that can be read at once. */
static BIO *open_file(const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return NULL;
    return BIO_new_file(path, "r");
}

/* The file's first certificate; NULL: none. *can_open: there is such a file. */
static X509 *read_certificate(const char *path, bool *can_open)
{
    BIO *file = open_file(path);
    X509 *certificate = NULL;

    *can_open = file != NULL;
    if (file != NULL)
        certificate = PEM_read_bio_X509(file, NULL, NULL, no_passphrase);
    BIO_free(file);
    ERR_clear_error();
    return certificate;
}

static EVP_PKEY *read_key(const char *path)
{
    BIO *file = open_file(path);
    EVP_PKEY *key = NULL;

    if (file != NULL)
        key = PEM_read_bio_PrivateKey(file, NULL, NULL, no_passphrase);
    BIO_free(file);
    ERR_clear_error();
    return key;
}

/* Days and seconds from now to the end of it. */
static void check_age(stg_loading *l, stg_file_place place, const char *path,
                      const X509 *certificate)
{
    int days = 0, seconds = 0;

    if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0)
        stg_complain(l->c, place,
                     "the certificate %.120s is not valid yet; wanted one that "
                     "is",
                     path);
    if (ASN1_TIME_diff(&days, &seconds, NULL,
                       X509_get0_notAfter(certificate)) != 1)
        return;
    if (days < 0 || seconds < 0)
        stg_complain(l->c, place,
                     "the certificate %.120s has expired; wanted one that is "
                     "valid",
                     path);
    else if (days < SOON_DAYS)
        stg_warn(l->c, place, "the certificate %.120s expires in %d days", path,
                 days);
}

/* NULL: complained. */
static X509 *check_certificate(stg_loading *l, stg_file_place place,
                               const char *name, const char *path)
{
    bool can_open;
    X509 *certificate = read_certificate(path, &can_open);

    if (certificate == NULL)
        stg_complain(l->c, place,
                     can_open ? "`%s`: %.120s has no certificate; wanted one "
                                "in PEM"
                              : "`%s`: the file %.120s cannot be read; wanted "
                                "a certificate in PEM",
                     name, path);
    return certificate;
}

/* A file of many targets is looked at once. */
static bool is_new(stg_loading *l, const char *path)
{
    size_t before = l->files.count;

    return stg_text_table_add(&l->files, path, 0, NULL) &&
           l->files.count > before;
}

static void check_ca(stg_loading *l, stg_file_place place, const char *name,
                     const char *path)
{
    X509 *certificate = check_certificate(l, place, name, path);

    if (certificate != NULL)
        check_age(l, place, path, certificate);
    X509_free(certificate);
}

/* A setting that names a file. */
typedef struct named {
    const char *name, *path; /* path NULL: none */
    stg_file_place place;
} named;

static void check_files(stg_loading *l, const named *c, const named *k)
{
    X509 *certificate = check_certificate(l, c->place, c->name, c->path);
    EVP_PKEY *key = read_key(k->path);

    if (certificate != NULL)
        check_age(l, c->place, c->path, certificate);
    if (key == NULL)
        stg_complain(l->c, k->place,
                     "`%s`: %.120s has no key that can be used; wanted "
                     "one in PEM, without a passphrase",
                     k->name, k->path);
    else if (certificate != NULL &&
             X509_check_private_key(certificate, key) != 1)
        stg_complain(l->c, k->place,
                     "`%s`: the key %.120s is not that of the certificate "
                     "%.120s; wanted the two that belong together",
                     k->name, k->path, c->path);
    ERR_clear_error();
    X509_free(certificate);
    EVP_PKEY_free(key);
}

/* Both, or neither. */
static void check_pair(stg_loading *l, const named *c, const named *k)
{
    const named *one = c->path != NULL ? c : k, *other = one == c ? k : c;

    if (one->path != NULL && other->path == NULL)
        stg_complain(l->c, one->place, "`%s` without `%s`; wanted both",
                     one->name, other->name);
    else if (one->path != NULL && is_new(l, k->path))
        check_files(l, c, k);
}

/* Other bytes in a file of the same name are another file. */
static uint64_t stamp_of(const stg_target_settings *t)
{
    const char *const paths[] = {t->ca_file, t->certificate_file, t->key_file};
    uint64_t stamps[3][4] = {{0}};
    struct stat status;
    bool has_any = false;

    for (size_t i = 0; i < 3; i++)
        if (paths[i] != NULL && stat(paths[i], &status) == 0) {
            has_any = true;
            stamps[i][0] = (uint64_t)status.st_mtim.tv_sec;
            stamps[i][1] = (uint64_t)status.st_mtim.tv_nsec;
            stamps[i][2] = (uint64_t)status.st_size;
            stamps[i][3] = (uint64_t)status.st_ino;
        }
    return has_any ? stg_parcel_hash(
                         (stg_span){(const char *)stamps, sizeof stamps})
                   : 0;
}

void stg_load_check_tls(stg_loading *l, size_t target)
{
    stg_target_settings *t = &l->s->targets[target];

    t->files_stamp = stamp_of(t);
    if (t->ca_file != NULL && is_new(l, t->ca_file))
        check_ca(l, stg_load_target_place(l, target, "tls.ca"), "tls.ca",
                 t->ca_file);
    check_pair(l,
               &(named){"tls.certificate", t->certificate_file,
                        stg_load_target_place(l, target, "tls.certificate")},
               &(named){"tls.key", t->key_file,
                        stg_load_target_place(l, target, "tls.key")});
}

void stg_load_check_listen_tls(stg_loading *l)
{
    static const char certificate[] = "listen.tls.certificate",
                      key[] = "listen.tls.key", ca[] = "listen.tls.client-ca";
    const stg_listen_settings *s = &l->s->listen;

    if (s->client_ca_file != NULL && s->certificate_file == NULL)
        stg_complain(l->c, stg_load_hub_place(l, ca),
                     "`%s` without `%s`; wanted both, for only TLS asks for "
                     "certificates",
                     ca, certificate);
    else if (s->client_ca_file != NULL && is_new(l, s->client_ca_file))
        check_ca(l, stg_load_hub_place(l, ca), ca, s->client_ca_file);
    check_pair(l,
               &(named){certificate, s->certificate_file,
                        stg_load_hub_place(l, certificate)},
               &(named){key, s->key_file, stg_load_hub_place(l, key)});
}
