/* loading.h - what the files of the loader share. Private to them.
 *
 *     complete.c     what settings are given that they do not say themselves
 *     load.c         the file
 *     load_target.c  a target without a file
 *     load_map.c     keys and their values
 *     kinds/         values, a file for each family
 *     validate.c        what contradicts, and what is unwise
 *     validate_target.c the same of a target
 *     validate_sign.c   the same of a target's signatures
 *     validate_oauth.c  and of its token
 *     validate_inbound.c the same of inbound webhooks
 *     validate_kafka.c  the same of Kafka, PostgreSQL and shards
 *     validate_files.c  files that the hub writes, and others name
 *     files.c        secrets and certificates */
#ifndef STAGGER_CONFIG_LOADING_H
#define STAGGER_CONFIG_LOADING_H

#include "base/hash.h"
#include "config/diagnostics.h"
#include "config/kinds/kinds.h"
#include "config/settings.h"
#include "config/table.h"
#include "config/yaml.h"
#include "http/url.h"

/* -- inside of the settings ------------------------------------------------- */

typedef struct stg_settings_chunk stg_settings_chunk;

/* An option of the command, which goes before the file. */
typedef struct stg_settings_override_note stg_settings_override_note;
struct stg_settings_override_note {
    stg_settings_override_note *next;
    const struct stg_setting *setting;
    const char *text;
};

/* A file that a setting of the file names and that is read. */
typedef struct stg_settings_file_note stg_settings_file_note;
struct stg_settings_file_note {
    stg_settings_file_note *next;
    const struct stg_setting *setting;
    const char *path; /* kept with the settings */
    stg_file_place place;
};

struct stg_settings_inside {
    stg_settings_chunk *chunks; /* the newest first */
    size_t target_room;
    const struct stg_settings_inside
        *base; /* stg_settings_beside(): whose policies are taken; or NULL */
    stg_text_table compiled; /* policies by text and timeout: the number is a
                                policy's address */
    stg_file_place
        *places; /* of the hub's settings, by number; NULL: no file */
    stg_settings_override_note *overrides; /* in their order */
    stg_settings_file_note *files;         /* the newest first */
    stg_signer **signers;
    size_t signer_count;
    stg_pattern **patterns;
    size_t pattern_count;
    stg_verifier **verifiers;
    size_t verifier_count;
    stg_target_common *call; /* of a target that a call adds with no more than
                                its name and its URL; complete */
    bool is_complete;
};

/* The first target, with all that it points to; the rest of s is freed. NULL: there is
 * no memory, and s is as it was. */
stg_target_settings *stg_settings_take_target(stg_settings *s);

/* diff.c: gives `to` what the command's options say. */
void stg_settings_take_overrides(const stg_settings *options, stg_settings *to,
                                 stg_diagnostics *c);

/* diff.c: whether all rows of the table that are common are the same. */
bool stg_settings_same_common(const stg_target_common *a,
                              const stg_target_common *b);

/* inbound.c: s->webhooks of s->inbound. */
stg_status stg_settings_make_webhooks(stg_settings *s, stg_error *err);

/* -- a file that is loaded -------------------------------------------------- */

enum { STG_SHARED_LOOKED_AT = 8 };

struct stg_loading {
    stg_settings *s;
    stg_diagnostics *c;
    const char *path;            /* of the file */
    const stg_settings *options; /* the command's; NULL: it has none */
    bool is_exposed;             /* others may read the file */
    bool is_call; /* it is no file: a call has brought the text */
    /* Where each setting was written, by its number in the table. */
    stg_file_place *places; /* of the map that is read now */
    stg_file_place *defaults;
    stg_file_place **targets; /* one for each of s->targets */
    stg_file_place **receivers;
    stg_file_place **inbounds;
    size_t receiver_count, inbound_count; /* that were read so far */
    size_t target_total;                  /* that the file has */
    stg_target_common own;                /* of the target that is read now */
    stg_target_common *shared
        [STG_SHARED_LOOKED_AT]; /* of those before, the newest, by turns */
    size_t shared_count;
    stg_text_table policies; /* names, to s->policies */
    stg_text_table files;    /* certificates that were looked at, by path */
    bool has_checked_sign, has_checked_proxy,
        has_checked_source; /* of the defaults */
};

/* -- load.c, load_map.c --------------------------------------------------- */

/* Room for a place of each setting, zeroed; NULL: complained. To be freed. */
stg_file_place *stg_load_add_places(stg_loading *l);

/* The number of a setting that is there. */
size_t stg_load_number(stg_setting_in in, const char *path);

/* One map: its keys are the settings in `in` whose paths go on from prefix. */
void stg_load_map(stg_loading *l, stg_setting_in in, const char *prefix,
                  const stg_yaml_node *map, void *base, stg_file_place *places);

/* "PATH: WHAT; expected ...": a value of another kind than the setting's. */
void stg_load_refuse_kind(stg_loading *l, const stg_setting *s,
                          const stg_yaml_node *n);

/* Memory that goes with the settings; NULL: complained. */
void *stg_load_keep(stg_loading *l, size_t size);
const char *stg_load_keep_text(stg_loading *l, const char *text);

/* A path of the file's, as the process can open it. */
const char *stg_load_keep_path(stg_loading *l, const char *path);

/* Where a target's setting was written, or that of the defaults. */
stg_file_place stg_load_target_place(const stg_loading *l, size_t target,
                                     const char *path);

/* Whether somebody wrote it: in the target itself; in it or in the defaults. A
 * value that nobody wrote is ours, and is not warned of. */
bool stg_load_is_own(const stg_loading *l, size_t target, const char *path);
bool stg_load_is_written(const stg_loading *l, size_t target, const char *path);

/* Notes that a setting names a file, kept, for stg_settings_check_files(): whoever
 * adds a kind of value that names one calls this. */
void stg_load_note_file(stg_loading *l, const stg_setting *s,
                        stg_file_place place, const char *path);

/* Where a setting of the hub was. */
stg_file_place stg_load_hub_place(const stg_loading *l, const char *path);

/* Whether an option of the command says the hub's setting. */
bool stg_load_is_option(const stg_loading *l, const char *path);

/* "a map", "an empty list" */
const char *stg_load_kind(const stg_yaml_node *n);

/* -- kinds/lists.c --------------------------------------------------------- */

/* A text that is not empty; NULL: complained. */
const char *stg_load_text(stg_loading *l, const stg_setting *s,
                          const stg_yaml_node *n);

/* A secret, or {file: PATH} of one, kept. False: complained. */
bool stg_load_secret_value(stg_loading *l, const stg_setting *s,
                           const stg_yaml_node *n, stg_sign_secret *secret);

/* Those of a list, or of one text. */
stg_texts stg_load_texts(stg_loading *l, const stg_setting *s,
                         const stg_yaml_node *n);

/* -- kinds/patterns.c ------------------------------------------------------ */

/* The pattern that map n says, of the body; the settings own it. NULL:
 * complained. */
stg_pattern *stg_load_pattern(stg_loading *l, const stg_yaml_node *n);

/* Whether a list has conditions among its values; and the pattern of a header that
 * it says, whose values are texts. NULL: complained. */
bool stg_load_has_conditions(const stg_yaml_node *list);
stg_pattern *stg_load_conditions(stg_loading *l, const char *header,
                                 const stg_yaml_node *list);

/* What headers ce-* of a match say of a CloudEvent in structured mode, as a part
 * more. False: there are none, or complained. */
bool stg_load_event(stg_loading *l, stg_file_place place,
                    const stg_match_setting *match, size_t count,
                    stg_match_setting *event);

/* -- kinds/maps.c ---------------------------------------------------------- */

/* PATH of {file: PATH}; NULL: it is another map. */
const stg_yaml_node *stg_load_file_node(const stg_yaml_node *map);

/* -- files.c --------------------------------------------------------------- */

/* The content of a secret's file, without an end of line at its end; kept.
 * NULL: complained. */
const char *stg_load_secret(stg_loading *l, stg_file_place place,
                            const char *name, const char *path);

/* Complains of a secret's file that is missing, empty, or not private. */
bool stg_load_check_secret(stg_loading *l, stg_file_place place,
                           const char *name, const char *path);

/* Certificates and keys of a target, and those of the hub. */
void stg_load_check_tls(stg_loading *l, size_t target);
void stg_load_check_listen_tls(stg_loading *l);

/* Whether a file can be made or added to. */
void stg_load_check_output(stg_loading *l, const char *name, const char *path);

/* -- validate.c, validate_target.c ----------------------------------------- */

void stg_validate(stg_loading *l);
void stg_validate_target(stg_loading *l, size_t target);

/* Complains, of `name` at place, where url has an address that the hub may not
 * connect to. Names are checked when they are resolved. */
void stg_validate_egress(stg_loading *l, stg_file_place place, const char *name,
                         const stg_url *url);

/* By its text alone: an address of a private network, localhost, or a name without
 * a dot. */
bool stg_validate_is_private(const stg_url *url);

/* -- validate_sign.c ------------------------------------------------------- */

void stg_validate_sign(stg_loading *l, size_t target);

/* -- validate_oauth.c, complete.c ------------------------------------------- */

void stg_validate_oauth(stg_loading *l, size_t target);

/* Makes c->token, of settings that may be wrong. Returns what stg_oauth_check()
 * does. */
stg_status stg_settings_make_token(stg_settings *s, stg_target_common *c,
                                   stg_error *err);

/* -- validate_route.c ------------------------------------------------------ */

void stg_validate_route(stg_loading *l, size_t target);

/* -- validate_inbound.c ---------------------------------------------------- */

void stg_validate_inbound(stg_loading *l);

/* -- validate_kafka.c ------------------------------------------------------ */

void stg_validate_kafka(stg_loading *l);

/* -- validate_files.c ------------------------------------------------------ */

/* Complains where a target by itself, l->s, names a file that a hub with the
 * settings base writes. */
void stg_validate_target_files(stg_loading *l, const stg_settings *base);

/* Whether the hub reads a topic: by its name, or as all that a pattern matches. */
bool stg_validate_has_topic(const stg_texts *topics, const char *name);

/* A target's choice of topics. */
void stg_validate_topics(stg_loading *l, size_t target);

#endif
