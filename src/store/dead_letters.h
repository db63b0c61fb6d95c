/* dead_letters.h - dead letters for people: lists of them, one whole, what
 * became of a message, and what can be done about them: replay, drop.
 *
 * Asked on the loop's thread, looked up on a thread of its own (the query
 * thread), so that neither appends nor flow's reads wait; changes are made by
 * the writer, in small transactions with pauses between them. Answers come on
 * the loop; what they are given is lent for their time. When the store breaks
 * no answer comes: the hub ends.
 *
 * A letter is in one of these states:
 *
 *   dead        it ended badly, and waits for somebody to decide
 *   replayed    it was parked again, under the same message id; what comes of
 *               that is a delivery, or another letter
 *   dropped     somebody gave it up; its payload is gone
 *   expired     a bulk row whose bodies the log no longer has
 *   cancelled   its target was removed
 *
 * Only a dead letter can be replayed or dropped: the second of two calls finds
 * nothing to do (I13). */
#ifndef STAGGER_STORE_DEAD_LETTERS_H
#define STAGGER_STORE_DEAD_LETTERS_H

#include "store/store.h"

/* Their names, ended by NULL; the same for people; and whether a word is one. */
extern const char *const stg_letter_states[];
#define STG_LETTER_STATES_EXPECTED \
    "dead, replayed, dropped, expired or cancelled"
bool stg_letter_is_state(const char *word);

/* -- which ones ------------------------------------------------------------ */

/* All that is given must hold; all zeros: every letter. Copied by the call. */
typedef struct stg_letter_filter {
    const uint64_t *ids; /* these only */
    size_t id_count;
    const char *target;   /* NULL: any; so are the others */
    const char *cause;    /* a pattern of cause.h: "HTTP_503", "HTTP_5*" */
    const char *category; /* "A" connect, B server, C request, D overload */
    const char *state;
    stg_ns since, until; /* when it was made, since 1970; until: before then.
                            0: no bound. A bulk row takes messages for a while:
                            since is of its newest one */
    bool is_unreached; /* never replayed, and never reached the target: connect
                          letters, and bulk rows */
    uint64_t
        messages_max;  /* of a replay: it ends after so many, and takes those
                              of this hub's partitions only; 0: no bound */
    bool has_position; /* about one message; bulk rows that have it, too */
    uint32_t partition;
    uint64_t position;
} stg_letter_filter;

/* A letter. Texts end with a zero; NULL: nothing to say. */
typedef struct stg_letter {
    uint64_t id;
    const char *message_id; /* a bulk row's: of the first message; NULL: of a
                               bulk row of evicted letters */
    const char *target, *target_url;
    const char *state, *why;
    const char *category, *cause, *detail;
    uint64_t http_status; /* 0: none */
    uint64_t attempts;    /* in all, replays counted */
    const char *first_attempt_at, *created_at;
    const char *last_attempt_at; /* of a bulk row: when its newest message came
                                    into it */
    const char *changed_at;      /* its state; NULL: as it was made */
    const char *topic;           /* NULL: of the queue */
    uint64_t topic_partition;    /* of the topic */
    uint32_t lane, partition;    /* as the store numbers them */
    uint64_t replay;
    uint64_t position;
    uint64_t last_position; /* of a bulk row; 0: one message */
    uint64_t count;         /* messages it stands for */
    bool is_evicted; /* it counts evicted letters of its target and cause:
                               nothing of it can be sent again */
    bool has_payload;
    uint64_t payload_size;
    /* Only of stg_store_letter(); else empty. */
    const char *content_type, *headers, *key;
    stg_span source_key, source_headers; /* as in stg_parcel */
    stg_span answer, payload;
} stg_letter;

/* -- looking --------------------------------------------------------------- */

/* A page: letters behind the one with the id `after` (0: from the first), in
 * the order they were made or, newest first, in the reverse. What is made
 * meanwhile moves no page. next: `after` of the next page; 0: that was the last
 * one. A page may be short, or empty, and not the last: where few of many
 * letters are wanted, a call looks at so many only. rows_max: 1 to 1000. */
typedef void stg_letters_fn(void *ctx, const stg_letter *letters, size_t count,
                            uint64_t next);
void stg_store_letters(stg_store *s, const stg_letter_filter *f, uint64_t after,
                       uint32_t rows_max, bool is_newest_first,
                       stg_letters_fn *done, void *ctx);

/* One, whole. NULL: there is none with this id. */
typedef void stg_letter_fn(void *ctx, const stg_letter *letter);
void stg_store_letter(stg_store *s, uint64_t id, stg_letter_fn *done,
                      void *ctx);

/* What became of a message for one lane. */
typedef enum stg_delivery_status_kind {
    STG_DELIVERY_STATUS_WAITING, /* not settled: it waits, or is being tried */
    STG_DELIVERY_STATUS_PARKED,  /* tried, or replayed, or not sent before its
                                    time, and waits */
    STG_DELIVERY_STATUS_LETTER,  /* `letter` is its last: see `state` */
    STG_DELIVERY_STATUS_DELIVERED, /* settled without a row: delivered, or
                                      (has_filter) the
                           target did not want it */
    STG_DELIVERY_STATUS_BEFORE,    /* the target came after the message */
    STG_DELIVERY_STATUS_UNKNOWN,   /* nothing is left to tell by */
} stg_delivery_status_kind;

typedef struct stg_delivery_status {
    uint32_t lane;
    const char *target;
    bool is_forgotten; /* the target was removed */
    stg_delivery_status_kind kind;
    uint64_t letter;   /* its last letter; 0: none */
    const char *state; /* of it; NULL: none */
    const char *cause; /* of the letter, or of what is parked; NULL: none */
    bool is_range;     /* the letter is a bulk row */
    uint32_t replay;
    uint64_t attempts; /* of PARKED and LETTER, in all */
    stg_ns due_at;     /* PARKED */
} stg_delivery_status;

typedef struct stg_receipt stg_receipt; /* receipts.h */

typedef struct stg_message_status {
    bool is_known; /* the id is one of this store: else nothing follows */
    char id[STG_MESSAGE_ID_MAX];
    uint32_t partition;
    uint64_t position;
    bool is_kept;       /* in the log: these three are known */
    stg_ns accepted_at; /* since 1970 */
    uint64_t size;      /* of the body */
    const char *key;    /* the ordering key; NULL: none */
    const stg_delivery_status *deliveries; /* by lane */
    size_t count;
    const stg_receipt *receipts; /* by lane, and as attempts ended */
    size_t receipt_count;
    stg_ns receipts_since; /* the oldest receipt of all messages; 0: none */
} stg_message_status;

/* id: as publishing gave it. */
typedef void stg_message_status_fn(void *ctx, const stg_message_status *m);
void stg_store_message(stg_store *s, const char *id,
                       stg_message_status_fn *done, void *ctx);

/* -- doing ----------------------------------------------------------------- */

typedef enum stg_letters_end {
    STG_LETTERS_DONE, /* all that could be */
    STG_LETTERS_HELD, /* the lane `held` has as many parked rows as a replay may
                         make, and did not get on: the rest stays dead */
    STG_LETTERS_AWAY, /* the log did not give the messages of bulk rows of the
                         lane `held` now (no broker, or another hub has their
                         partition): those stay dead, the others were taken */
    STG_LETTERS_FULL, /* the store is: the rest stays dead */
    STG_LETTERS_STOPPED, /* the hub stops */
} stg_letters_end;

typedef struct stg_letters_sum {
    stg_letters_end end;
    const char *held;   /* a target; HELD, AWAY */
    uint64_t letters;   /* replayed or dropped; bulk rows, in part too */
    uint64_t messages;  /* that they stand for: parked again, or given up */
    uint64_t expired;   /* messages whose bodies are gone: not replayable */
    uint64_t forgotten; /* letters whose target was removed: not replayable */
    uint64_t orphaned; /* letters whose target is not in the settings: they stay
                           dead, and can be replayed when it is there again */
    uint64_t paused;   /* of `messages`, those that wait for a resume */
} stg_letters_sum;

/* Sends again the letters of a filter that are dead now, in the order they were
 * made: each becomes a parked row, due now. A message that fails again becomes a
 * new letter, which this call does not replay. Waits while a lane has as many
 * replays parked as it may. f->state is ignored. is_dry: changes nothing, and
 * says what it would do (at most, where a log that was trimmed in the middle of a
 * bulk row cannot be counted). Any number at once: a letter is replayed by
 * one. */
typedef void stg_letters_sum_fn(void *ctx, const stg_letters_sum *sum);
void stg_store_replay(stg_store *s, const stg_letter_filter *f, bool is_dry,
                      stg_letters_sum_fn *done, void *ctx);

/* The same, not dry, and *so_far has the sum of each step that is done; it must
 * be there until done. */
void stg_store_replay_watched(stg_store *s, const stg_letter_filter *f,
                              stg_letters_sum *so_far, stg_letters_sum_fn *done,
                              void *ctx);

/* Discards the letters of the filter that are dead: they get the state
 * dropped, their payloads are deleted, and the log need not keep their
 * messages any more. f->state is ignored. Asynchronous: done is called once,
 * on the loop, with the totals. */
void stg_store_drop(stg_store *s, const stg_letter_filter *f, bool is_dry,
                    stg_letters_sum_fn *done, void *ctx);

#endif
