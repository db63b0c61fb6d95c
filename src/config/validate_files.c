/* Files that the hub writes, and that another setting names, too: a copy in the file
 * of the store would destroy the store, and the audit log in a file of tokens those.
 *
 * Paths are compared by the file that they lead to (host/named_file.h), so that
 * links of both kinds and other spellings count. Written are the store, what SQLite
 * and the lock keep beside it, copies, the audit log and the socket that the hub
 * listens on; read is what stg_load_note_file() has noted, what options of the
 * command name, files of libpq, and the settings file itself. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/from.h"
#include "config/load.h"
#include "config/loading.h"
#include "host/named_file.h"
#include "ingress/address.h"
#include "store/store_names.h"

enum { WRITTEN_MAX = STG_STORE_NAMES + 4 };

/* A file that is written. */
typedef struct written_file {
    const char *setting, *path; /* borrowed of the settings */
    stg_named_file file;
} written_file;

typedef struct written_files {
    written_file at[WRITTEN_MAX];
    size_t count;
    char socket[STG_ADDRESS_TEXT_MAX];
} written_files;

static const char store_setting[] = "store.path";

/* -- what is written ------------------------------------------------------- */

/* Lines may go to a device or a pipe from several sides. */
static bool files_may_share(const stg_named_file *f)
{
    return S_ISCHR(f->mode) || S_ISFIFO(f->mode);
}

static void files_add(written_files *w, const char *setting, const char *path)
{
    written_file *f = &w->at[w->count];

    *f = (written_file){.setting = setting, .path = path};
    if (path != NULL && stg_named_file_look(path, &f->file) &&
        !files_may_share(&f->file))
        w->count++;
}

static void files_add_store(written_files *w, const char *path)
{
    for (size_t i = 0; i < STG_STORE_NAMES; i++) {
        written_file *f = &w->at[w->count];

        *f = (written_file){.setting = store_setting, .path = path};
        if (stg_store_look_file(path, i, &f->file))
            w->count++;
    }
}

static void files_add_socket(written_files *w, const stg_listen_settings *l)
{
    stg_listen_address address;

    if (l->address == NULL ||
        stg_address_parse(&address, l->address, NULL) != STG_OK ||
        !stg_address_is_path(&address))
        return;
    (void)snprintf(w->socket, sizeof w->socket, "%s", address.un.sun_path);
    files_add(w, "listen.address", w->socket);
}

static void files_find(written_files *w, const stg_settings *s,
                       const char *store)
{
    w->count = 0;
    if (store != NULL && !stg_from_is_postgres(store))
        files_add_store(w, store);
    files_add(w, "dead-letters.copy", s->letters.path);
    files_add(w, "receipts.copy", s->receipts.copy.path);
    files_add(w, "audit", s->audit);
    files_add_socket(w, &s->listen);
}

/* -- what is complained of ------------------------------------------------- */

/* The setting that is not the store's: its file is easier to change. */
static void files_refuse_pair(stg_diagnostics *c, const stg_settings *s,
                              const written_file *a, const written_file *b)
{
    stg_file_place place = stg_settings_place(s, b->setting);

    if (a->setting == store_setting)
        stg_complain(
            c, place,
            "`%s`: %.120s is a file of the store (`store.path`), which "
            "it would destroy; expected a file of its own",
            b->setting, b->path);
    else
        stg_complain(
            c, place,
            "`%s`: %.120s is the file of `%s`, too; expected a file of "
            "its own",
            b->setting, b->path, a->setting);
}

/* Once for each setting. */
static void files_check_written(stg_diagnostics *c, const stg_settings *s,
                                const written_files *w)
{
    for (size_t b = 1; b < w->count; b++)
        for (size_t a = 0; a < b; a++)
            if (w->at[a].setting != w->at[b].setting &&
                stg_named_file_is_same(&w->at[a].file, &w->at[b].file)) {
                files_refuse_pair(c, s, &w->at[a], &w->at[b]);
                break;
            }
}

static void files_check_read(stg_diagnostics *c, const written_files *w,
                             const char *setting, const char *path,
                             stg_file_place place)
{
    stg_named_file f;

    if (!stg_named_file_look(path, &f))
        return;
    for (size_t i = 0; i < w->count; i++)
        if (stg_named_file_is_same(&w->at[i].file, &f)) {
            stg_complain(c, place,
                         "`%s`: the hub writes to %.120s (`%s`); expected "
                         "another file there",
                         setting, path, w->at[i].setting);
            return;
        }
}

/* -- what is read ---------------------------------------------------------- */

/* Whether it is the path of a setting that is written, which is noted as well. */
static bool files_is_written(const written_files *w, const char *path)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->at[i].path == path)
            return true;
    return false;
}

static void files_check_notes(stg_diagnostics *c, const written_files *w,
                              const stg_settings *s)
{
    for (const stg_settings_file_note *n = s->inside->files; n != NULL;
         n = n->next)
        if (!files_is_written(w, n->path))
            files_check_read(c, w, n->setting->path, n->path, n->place);
}

static void files_check_options(stg_diagnostics *c, const written_files *w,
                                const stg_settings *s)
{
    for (const stg_settings_override_note *n = s->inside->overrides; n != NULL;
         n = n->next)
        if (n->setting->kind == &stg_kind_file)
            files_check_read(c, w, n->setting->path, n->text,
                             (stg_file_place){0, 0});
}

static int files_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                      : -1;
}

/* Decodes %XX of a URL's parameter, which ends at '&' or with the text. False: it
 * is too long. */
static bool files_decode(const char *from, char to[PATH_MAX])
{
    size_t size = 0;

    for (; *from != '\0' && *from != '&' && size + 1 < PATH_MAX; from++) {
        int high = *from == '%' ? files_hex(from[1]) : -1;
        int low = high >= 0 ? files_hex(from[2]) : -1;

        to[size++] = low >= 0 ? (char)(high * 16 + low) : *from;
        from += low >= 0 ? 2 : 0;
    }
    to[size] = '\0';
    return *from == '\0' || *from == '&';
}

/* Files that libpq reads, or writes, for the URL of a database. */
static void files_check_database(stg_diagnostics *c, const written_files *w,
                                 const stg_settings *s, const char *url)
{
    static const char *const names[] = {
        "passfile=", "sslcert=", "sslkey=", "sslrootcert=", "sslcrl="};
    char path[PATH_MAX];

    for (const char *at = strchr(url, '?'); at != NULL; at = strchr(at, '&')) {
        at++;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strncmp(at, names[i], strlen(names[i])) == 0 &&
                files_decode(at + strlen(names[i]), path))
                files_check_read(c, w, store_setting, path,
                                 stg_settings_place(s, store_setting));
    }
}

static void files_check_own(stg_diagnostics *c, const written_files *w,
                            const stg_settings *s)
{
    stg_named_file f;

    if (s->file == NULL || !stg_named_file_look(s->file, &f))
        return;
    for (size_t i = 0; i < w->count; i++)
        if (stg_named_file_is_same(&w->at[i].file, &f))
            stg_complain(c, stg_settings_place(s, w->at[i].setting),
                         "`%s`: %.120s is the settings file; expected a file "
                         "of its own",
                         w->at[i].setting, w->at[i].path);
}

/* -- all ------------------------------------------------------------------- */

void stg_settings_check_files(const stg_settings *s, const char *store,
                              stg_diagnostics *c)
{
    written_files w;

    files_find(&w, s, store);
    files_check_written(c, s, &w);
    files_check_notes(c, &w, s);
    files_check_options(c, &w, s);
    if (store != NULL && stg_from_is_postgres(store))
        files_check_database(c, &w, s, store);
    files_check_own(c, &w, s);
}

void stg_validate_target_files(stg_loading *l, const stg_settings *base)
{
    written_files w;

    if (l->s->inside->files == NULL)
        return;
    files_find(&w, base, base->store.path);
    files_check_notes(l->c, &w, l->s);
}
