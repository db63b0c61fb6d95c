/* peer.c - stagger.Peer: what the calls of one remote share. */
#include "module.h"

PyTypeObject *peer_type;

static PyObject *make(policy_object *policy, unsigned burst)
{
    peer_object *self = PyObject_New(peer_object, peer_type);
    uint32_t rate = policy->policy.rate;
    stg_error err;

    if (self == NULL)
        return NULL;
    Py_INCREF(policy);
    self->policy = policy;
    self->clock = NULL;
    (void)stg_peer_init(&self->peer, &policy->policy);
    if (stg_peer_limit(&self->peer, rate, burst, &err) == STG_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return PyErr_Format(PyExc_ValueError, "%s", err.text);
}

static PyObject *peer_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *keywords[] = {"policy", "burst", NULL};
    PyObject *given, *self;
    policy_object *policy;
    unsigned burst = 0;

    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, names, "O|$I:Peer", keywords, &given,
                                     &burst))
        return NULL;
    policy = policy_from(given);
    if (policy == NULL)
        return NULL;
    self = make(policy, burst);
    Py_DECREF(policy);
    return self;
}

static void peer_free(PyObject *self)
{
    Py_XDECREF(((peer_object *)self)->policy);
    Py_XDECREF(((peer_object *)self)->clock);
    object_free(self);
}

void peer_use_clock(peer_object *peer, clock_object *clock)
{
    clock_object *before = peer->clock;

    if (before == clock)
        return;
    Py_XINCREF(clock);
    peer->clock = clock;
    Py_XDECREF(before);
}

static stg_ns read_now(const peer_object *self)
{
    return self->clock == NULL ? stg_env_system()->now(NULL)
                               : self->clock->env.now(self->clock);
}

static PyObject *peer_policy(PyObject *self, void *closure)
{
    PyObject *policy = (PyObject *)((peer_object *)self)->policy;

    (void)closure;
    Py_INCREF(policy);
    return policy;
}

static PyObject *peer_breaker(PyObject *self, void *closure)
{
    static const char *const names[] = {
        [STG_BREAKER_CLOSED] = "closed",
        [STG_BREAKER_OPEN] = "open",
        [STG_BREAKER_HALF_OPEN] = "half-open",
    };
    const peer_object *peer = (peer_object *)self;

    (void)closure;
    return PyUnicode_FromString(
        names[stg_breaker_look(&peer->peer.breaker, read_now(peer), NULL)]);
}

static PyObject *peer_budget(PyObject *self, void *closure)
{
    const peer_object *peer = (peer_object *)self;
    uint64_t left = stg_budget_left(&peer->peer.budget, read_now(peer));

    (void)closure;
    if (left == UINT64_MAX)
        Py_RETURN_NONE;
    return PyFloat_FromDouble((double)left / 1000);
}

static PyObject *peer_repr(PyObject *self)
{
    PyObject *text = PyObject_Str((PyObject *)((peer_object *)self)->policy);
    PyObject *repr =
        text == NULL ? NULL : PyUnicode_FromFormat("Peer(%R)", text);

    Py_XDECREF(text);
    return repr;
}

static PyGetSetDef getters[] = {
    {"policy", peer_policy, NULL, "the policy that it was made from", NULL},
    {"breaker", peer_breaker, NULL, "closed, open or half-open", NULL},
    {"budget", peer_budget, NULL, "what is left of it; None: no budget", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "The budget, the breaker, the rate limit, the bulkhead and the throttle "
     "that all calls of one remote share, from any thread and task."},
    {Py_tp_new, peer_new},
    {Py_tp_dealloc, peer_free},
    {Py_tp_repr, peer_repr},
    {Py_tp_getset, getters},
    {0, NULL},
};

PyType_Spec peer_spec = {"stagger.Peer", sizeof(peer_object), 0,
                         Py_TPFLAGS_DEFAULT, slots};
