/* The small files that settings name: secrets, which nobody else may read,
 * certificates with their keys, and files that the hub writes. All are opened
 * while the settings are checked, so that a mistake is told before the hub
 * depends on it. A hash of the state of a target's files makes a reload see that
 * one of them has changed. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/load.h"
#include "config/loading.h"
#include "host/files.h"
#include "host/process.h"
#include "store/parcel.h"

/* -- secrets --------------------------------------------------------------- */

enum { SECRET_MAX = 64 << 10 };

/* Root reads any file, and the hub may be another user's. */
static void files_note_root(const stg_loading *l, const char *path,
                            const struct stat *status)
{
    bool is_shared = (status->st_mode & S_IROTH) != 0 ||
                     ((status->st_mode & S_IRGRP) != 0 && status->st_gid != 0);

    if (geteuid() != 0 || status->st_uid != 0 || is_shared)
        return;
    if (l->s->root_file == NULL)
        l->s->root_file = stg_settings_keep_text(l->s, path, strlen(path));
    else
        l->s->root_file_count += strcmp(l->s->root_file, path) != 0;
}

/* An open secret, or -1: complained. Never blocks on a pipe. */
static int open_secret(stg_loading *l, stg_file_place place, const char *name,
                       const char *path, off_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) != 0) {
        stg_complain(l->c, place,
                     "`%s`: the file %.120s cannot be read: %s; "
                     "expected one that can",
                     name, path, strerror(errno));
    } else if (!S_ISREG(status.st_mode)) {
        stg_complain(l->c, place,
                     "`%s`: %.120s is not a regular file; expected one", name,
                     path);
    } else if (!stg_secret_is_private(path, &status)) {
        stg_complain(
            l->c, place,
            "`%s`: others may use the file %.120s (mode %04o); expected "
            "0600, or 0440 of a group of the hub: chmod 600 %.120s",
            name, path, (unsigned)(status.st_mode & 07777), path);
    } else if (status.st_size == 0) {
        stg_complain(l->c, place,
                     "`%s`: the file %.120s is empty; expected a "
                     "secret in it",
                     name, path);
    } else if (status.st_size > SECRET_MAX) {
        stg_complain(l->c, place,
                     "`%s`: the file %.120s is too large; expected "
                     "64 KiB at most",
                     name, path);
    } else {
        *size = status.st_size;
        files_note_root(l, path, &status);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Only looks: the file is read by whoever needs it, when it does. */
bool stg_load_check_secret(stg_loading *l, stg_file_place place,
                           const char *name, const char *path)
{
    off_t size;
    int fd = open_secret(l, place, name, path, &size);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Without the end of line that editors add. */
static size_t trim(const char *text, size_t size)
{
    if (size > 0 && text[size - 1] == '\n')
        size--;
    if (size > 0 && text[size - 1] == '\r')
        size--;
    return size;
}

/* Kept with the settings; NULL: complained. The mode is checked on the open
 * file, so that no other file can take its place in between. */
const char *stg_load_secret(stg_loading *l, stg_file_place place,
                            const char *name, const char *path)
{
    off_t size = 0;
    int fd = open_secret(l, place, name, path, &size);
    char *text = fd >= 0 ? stg_load_keep(l, (size_t)size + 1) : NULL;
    ssize_t got = text != NULL ? read(fd, text, (size_t)size) : 0;

    if (fd >= 0)
        close(fd);
    if (text == NULL)
        return NULL;
    size = (off_t)trim(text, got > 0 ? (size_t)got : 0);
    text[size] = '\0';
    if (size > 0)
        return text;
    stg_complain(l->c, place,
                 "`%s`: the file %.120s has nothing in it; expected a secret",
                 name, path);
    return NULL;
}

/* -- what is written to ---------------------------------------------------- */

/* A warning only. A store that is not there yet is fine. */
void stg_settings_check_store(stg_diagnostics *c, stg_file_place place,
                              const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) ||
        stg_file_is_private(&status))
        return;
    stg_warn(c, place,
             "`store.path`: others may use the store %.120s (mode %04o), which "
             "has the messages and their headers; expected 0600: chmod 600 "
             "%.120s",
             path, (unsigned)(status.st_mode & 07777), path);
}

/* Whether the file can be written, or made in its folder; makes nothing. */
void stg_load_check_output(stg_loading *l, const char *name, const char *path)
{
    stg_file_place place = stg_load_hub_place(l, name);
    char *copy;
    const char *folder;
    struct stat status;

    if (stat(path, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            stg_complain(l->c, place,
                         "`%s`: %.120s is a directory; expected a file in one",
                         name, path);
        else if (access(path, W_OK) != 0)
            stg_complain(l->c, place,
                         "`%s`: %.120s cannot be written: %s; expected a file "
                         "that can",
                         name, path, strerror(errno));
        return;
    }
    copy = strdup(path);
    if (copy == NULL)
        return;
    folder = dirname(copy);
    if (access(folder, W_OK | X_OK) != 0)
        stg_complain(l->c, place,
                     "`%s`: no file can be made in %.120s: %s; expected a "
                     "directory where one can",
                     name, folder, strerror(errno));
    free(copy);
}

/* -- certificates and keys -------------------------------------------------- */

static const int SOON_DAYS = 14;

/* A file that needs another passphrase cannot be used: nobody is asked. */
static char no_passphrase[] = "";

/* NULL: there is no such file, or it is none that can be read at once. */
static BIO *open_file(const stg_loading *l, const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return NULL;
    files_note_root(l, path, &status);
    return BIO_new_file(path, "r");
}

/* The file's first certificate; NULL: none. *can_open: there is such a file. */
static X509 *read_certificate(const stg_loading *l, const char *path,
                              bool *can_open)
{
    BIO *file = open_file(l, path);
    X509 *certificate = NULL;

    *can_open = file != NULL;
    if (file != NULL)
        certificate = PEM_read_bio_X509(file, NULL, NULL, no_passphrase);
    BIO_free(file);
    ERR_clear_error();
    return certificate;
}

static EVP_PKEY *read_key(const stg_loading *l, const char *path)
{
    BIO *file = open_file(l, path);
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
        stg_complain(
            l->c, place,
            "the certificate %.120s is not valid yet; expected one that "
            "is",
            path);
    if (ASN1_TIME_diff(&days, &seconds, NULL,
                       X509_get0_notAfter(certificate)) != 1)
        return;
    if (days < 0 || seconds < 0)
        stg_complain(l->c, place,
                     "the certificate %.120s has expired; expected one that is "
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
    X509 *certificate = read_certificate(l, path, &can_open);

    if (certificate == NULL)
        stg_complain(l->c, place,
                     can_open
                         ? "`%s`: %.120s has no certificate; expected one "
                           "in PEM"
                         : "`%s`: the file %.120s cannot be read; expected "
                           "a certificate in PEM",
                     name, path);
    return certificate;
}

/* Many targets may name one file: it is looked at, and complained of, once. */
static bool is_new(stg_loading *l, const char *path)
{
    size_t before = l->files.count;

    return stg_text_table_add(&l->files, path, 0, NULL) &&
           l->files.count > before;
}

/* Only the first certificate of a bundle is looked at. */
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

/* Both files are read whole before they are compared, so that each mistake is told. */
static void check_files(stg_loading *l, const named *c, const named *k)
{
    X509 *certificate = check_certificate(l, c->place, c->name, c->path);
    EVP_PKEY *key = read_key(l, k->path);

    if (certificate != NULL)
        check_age(l, c->place, c->path, certificate);
    if (key == NULL)
        stg_complain(l->c, k->place,
                     "`%s`: %.120s has no key that can be used; expected "
                     "one in PEM, without a passphrase",
                     k->name, k->path);
    else if (certificate != NULL &&
             X509_check_private_key(certificate, key) != 1)
        stg_complain(l->c, k->place,
                     "`%s`: the key %.120s is not that of the certificate "
                     "%.120s; expected the two that belong together",
                     k->name, k->path, c->path);
    ERR_clear_error();
    X509_free(certificate);
    EVP_PKEY_free(key);
}

/* Both, or neither. A pair that many targets name is looked at once, by its
 * key. */
static void check_pair(stg_loading *l, const named *c, const named *k)
{
    const named *one = c->path != NULL ? c : k, *other = one == c ? k : c;

    if (one->path != NULL && other->path == NULL)
        stg_complain(l->c, one->place, "`%s` without `%s`; expected both",
                     one->name, other->name);
    else if (one->path != NULL && is_new(l, k->path))
        check_files(l, c, k);
}

/* Of time, size and inode, not of the bytes: files are not read for it. 0: the
 * target has no files. */
static uint64_t stamp_of(const stg_target_common *c)
{
    const char *const paths[] = {c->ca_file, c->certificate_file, c->key_file,
                                 c->oauth.ca_file};
    uint64_t stamps[4][4] = {{0}};
    struct stat status;
    bool has_any = false;

    for (size_t i = 0; i < 4; i++)
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
    stg_target_common *c = l->s->targets[target].common;

    c->files_stamp = stamp_of(c);
    if (c->ca_file != NULL && is_new(l, c->ca_file))
        check_ca(l, stg_load_target_place(l, target, "tls.ca"), "tls.ca",
                 c->ca_file);
    if (c->oauth.ca_file != NULL && is_new(l, c->oauth.ca_file))
        check_ca(l, stg_load_target_place(l, target, "oauth2.ca"), "oauth2.ca",
                 c->oauth.ca_file);
    check_pair(l,
               &(named){"tls.certificate", c->certificate_file,
                        stg_load_target_place(l, target, "tls.certificate")},
               &(named){"tls.key", c->key_file,
                        stg_load_target_place(l, target, "tls.key")});
}

void stg_load_check_listen_tls(stg_loading *l)
{
    static const char certificate[] = "listen.tls.certificate",
                      key[] = "listen.tls.key", ca[] = "listen.tls.client-ca";
    const stg_listen_settings *s = &l->s->listen;

    if (s->client_ca_file != NULL && s->certificate_file == NULL)
        stg_complain(l->c, stg_load_hub_place(l, ca),
                     "`%s` without `%s`; expected both, for only TLS asks for "
                     "certificates",
                     ca, certificate);
    else if (s->client_ca_file != NULL && is_new(l, s->client_ca_file))
        check_ca(l, stg_load_hub_place(l, ca), ca, s->client_ca_file);
    check_pair(l,
               &(named){certificate, s->certificate_file,
                        stg_load_hub_place(l, certificate)},
               &(named){key, s->key_file, stg_load_hub_place(l, key)});
}
