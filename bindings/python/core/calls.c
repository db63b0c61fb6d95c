/* calls.c - stagger._core.Calls: what the operations of one function share, and
 * their totals. */
#include "module.h"

PyTypeObject *calls_type;

/* Whether an operation of it can be carried out at all. */
static bool check(calls_object *self)
{
    stg_with with = {.peer = self->peer == NULL ? NULL : &self->peer->peer};
    stg_retry r;

    if (stg_retry_start(&r, &self->policy->policy, &with, 0) == STG_OK) {
        (void)stg_retry_cancel(&r, 0);
        return true;
    }
    PyErr_SetString(PyExc_ValueError, stg_retry_flaw(&r));
    return false;
}

static calls_object *make(policy_object *policy, PyObject *peer,
                          PyObject *method, PyObject *key)
{
    calls_object *self = PyObject_New(calls_object, calls_type);

    if (self == NULL)
        return NULL;
    self->policy = policy;
    self->peer = peer == Py_None ? NULL : (peer_object *)peer;
    self->method = method == Py_None ? NULL : PyUnicode_AsUTF8String(method);
    self->key = key;
    Py_INCREF(policy);
    Py_XINCREF(self->peer);
    Py_INCREF(key);
    atomic_init(&self->calls, 0);
    atomic_init(&self->attempts, 0);
    atomic_init(&self->hedges, 0);
    atomic_init(&self->waited, 0);
    atomic_init(&self->fallbacks, 0);
    for (int why = 0; why <= STG_WHY_INVALID; why++)
        atomic_init(&self->ends[why], 0);
    return self;
}

static PyObject *calls_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *keywords[] = {"policy", "peer", "method", "key", NULL};
    PyObject *policy, *peer, *method, *key;
    calls_object *self;

    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, names, "O!OOO:Calls", keywords,
                                     policy_type, &policy, &peer, &method,
                                     &key))
        return NULL;
    if ((peer != Py_None && Py_TYPE(peer) != peer_type) ||
        (method != Py_None && !PyUnicode_Check(method)) ||
        (!PyBool_Check(key) && !PyUnicode_Check(key))) {
        PyErr_SetString(PyExc_TypeError,
                        "peer is a Peer, method a str, key a bool or a str");
        return NULL;
    }
    self = make((policy_object *)policy, peer, method, key);
    if (self != NULL && (PyErr_Occurred() || !check(self)))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void calls_free(PyObject *object)
{
    calls_object *self = (calls_object *)object;

    Py_XDECREF(self->policy);
    Py_XDECREF(self->peer);
    Py_XDECREF(self->method);
    Py_XDECREF(self->key);
    object_free(object);
}

void calls_count(calls_object *self, const stg_report *r)
{
    stg_why why = r->next == STG_DONE ? STG_WHY_DONE : r->why;

    atomic_fetch_add(&self->calls, 1);
    atomic_fetch_add(&self->attempts, r->attempts);
    atomic_fetch_add(&self->hedges, r->hedges);
    atomic_fetch_add(&self->waited, r->waited);
    atomic_fetch_add(&self->ends[why], 1);
}

static PyObject *calls_begin(PyObject *self, PyObject *args)
{
    PyObject *parent, *clock;

    if (!PyArg_UnpackTuple(args, "begin", 2, 2, &parent, &clock))
        return NULL;
    return operation_begin((calls_object *)self, parent, clock);
}

static bool put(PyObject *totals, const char *name, PyObject *value)
{
    bool is_put =
        value != NULL && PyDict_SetItemString(totals, name, value) == 0;

    Py_XDECREF(value);
    return is_put;
}

static bool put_count(PyObject *totals, const char *name,
                      const _Atomic uint64_t *count)
{
    return put(totals, name, PyLong_FromUnsignedLongLong(atomic_load(count)));
}

static PyObject *ends_of(const calls_object *self)
{
    PyObject *ends = PyDict_New();

    for (int why = 0; ends != NULL && why <= STG_WHY_INVALID; why++)
        if (atomic_load(&self->ends[why]) != 0 &&
            !put_count(ends, stg_why_name((stg_why)why), &self->ends[why]))
            Py_CLEAR(ends);
    return ends;
}

static PyObject *calls_totals(PyObject *object, PyObject *none)
{
    calls_object *self = (calls_object *)object;
    PyObject *totals = PyDict_New();

    (void)none;
    if (totals != NULL && put_count(totals, "calls", &self->calls) &&
        put_count(totals, "attempts", &self->attempts) &&
        put_count(totals, "hedges", &self->hedges) &&
        put_count(totals, "fallbacks", &self->fallbacks) &&
        put(totals, "waited", seconds_of(atomic_load(&self->waited))) &&
        put(totals, "ends", ends_of(self)))
        return totals;
    Py_XDECREF(totals);
    return NULL;
}

static PyObject *calls_policy(PyObject *self, void *closure)
{
    PyObject *policy = (PyObject *)((calls_object *)self)->policy;

    (void)closure;
    Py_INCREF(policy);
    return policy;
}

static PyGetSetDef getters[] = {
    {"policy", calls_policy, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"begin", calls_begin, METH_VARARGS,
     "a new operation, inside parent, on clock; its first attempt was asked "
     "for"},
    {"totals", calls_totals, METH_NOARGS,
     "calls, attempts, hedges, waited, fallbacks and ends by reason, of those "
     "that have ended"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, calls_new},
    {Py_tp_dealloc, calls_free},
    {Py_tp_getset, getters},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec calls_spec = {"stagger._core.Calls", sizeof(calls_object), 0,
                          Py_TPFLAGS_DEFAULT, slots};
