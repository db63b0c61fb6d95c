/* module.h - the types of stagger._core: thin, and each one a struct of the
 * library. Private.
 *
 * An object keeps what its struct points to. None can be a base class, and
 * references go one way only, so that there is nothing to be collected. The
 * types are the process's: the stable ABI of 3.9 has no way from a type to its
 * module. */
#ifndef STAGGER_PYTHON_MODULE_H
#define STAGGER_PYTHON_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdatomic.h>
#include <string.h>

#include <stagger/stagger.h>

typedef struct policy_object {
    PyObject ob_base;
    stg_policy policy;
} policy_object;

typedef struct outcome_object {
    PyObject ob_base;
    stg_outcome outcome;
} outcome_object;

typedef struct peer_object {
    PyObject ob_base;
    stg_peer peer;
    policy_object *policy;
    struct clock_object *clock; /* of its operations; NULL: the system's */
} peer_object;

typedef struct clock_object {
    PyObject ob_base;
    stg_env env;
    bool is_frozen;         /* else it goes on with the system's */
    _Atomic uint64_t ahead; /* what was skipped; frozen: all of the time */
    stg_rng rng;
} clock_object;

/* What the operations of one function share. */
typedef struct calls_object {
    PyObject ob_base;
    policy_object *policy;
    peer_object *peer; /* or NULL */
    PyObject *method;  /* bytes, or NULL */
    PyObject *key;     /* a str, True or False */
    _Atomic uint64_t calls, attempts, hedges, waited;
    _Atomic uint64_t fallbacks;
    _Atomic uint64_t ends[STG_WHY_INVALID + 1];
} calls_object;

typedef struct operation_object {
    PyObject ob_base;
    stg_operation op;
    calls_object *calls;
    struct operation_object *parent; /* or NULL */
    clock_object *clock;             /* or NULL */
    PyObject *key;                   /* made when it is asked for */
    bool is_counted;
} operation_object;

extern PyTypeObject *policy_type, *outcome_type, *peer_type, *clock_type,
    *calls_type, *operation_type;

extern PyType_Spec policy_spec, outcome_spec, peer_spec, clock_spec, calls_spec,
    operation_spec;

/* The policy of a Policy, or of a text. A new reference. */
policy_object *policy_from(PyObject *policy_or_text);

/* A new reference. */
PyObject *outcome_new(stg_outcome outcome);

/* Says on which clock the peer's instants are. */
void peer_use_clock(peer_object *peer, clock_object *clock);

/* Begins an operation, and asks for its first attempt. A new reference. */
PyObject *operation_begin(calls_object *calls, PyObject *parent,
                          PyObject *clock);

/* Of an operation that has ended. */
void calls_count(calls_object *self, const stg_report *report);

/* The tp_new of types that are made by others only. */
PyObject *object_refuse(PyTypeObject *type, PyObject *args, PyObject *names);

/* The memory of an object whose own references are gone. */
void object_free(PyObject *self);

static inline PyObject *seconds_of(stg_ns ns)
{
    return PyFloat_FromDouble((double)ns / 1e9);
}

/* Reads seconds, at least 0, into *ns. False, and an exception, for another
 * type. */
bool read_seconds(PyObject *number, stg_ns *ns);

#endif
