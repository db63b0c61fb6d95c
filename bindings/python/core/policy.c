/* policy.c - stagger.Policy: a text that was understood. */
#include "module.h"

PyTypeObject *policy_type;

static PyObject *make(const stg_policy *policy)
{
    policy_object *self = PyObject_New(policy_object, policy_type);

    if (self != NULL)
        self->policy = *policy;
    return (PyObject *)self;
}

static PyObject *parse(PyObject *text)
{
    PyObject *bytes = PyUnicode_AsUTF8String(text);
    stg_policy policy;
    stg_error err;
    char *words;

    // ValueError for a NUL in it, too.
    if (bytes == NULL || PyBytes_AsStringAndSize(bytes, &words, NULL) < 0) {
        Py_XDECREF(bytes);
        return NULL;
    }
    if (stg_policy_parse(&policy, words, &err) == STG_OK)
        text = make(&policy);
    else
        text = PyErr_Format(PyExc_ValueError, "%s", err.text);
    Py_DECREF(bytes);
    return text;
}

policy_object *policy_from(PyObject *given)
{
    if (Py_TYPE(given) == policy_type) {
        Py_INCREF(given);
        return (policy_object *)given;
    }
    if (PyUnicode_Check(given))
        return (policy_object *)parse(given);
    PyErr_Format(PyExc_TypeError, "a policy is a str or a Policy, not %R",
                 Py_TYPE(given));
    return NULL;
}

static PyObject *policy_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *keywords[] = {"text", NULL};
    PyObject *text;

    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, names, "O:Policy", keywords, &text))
        return NULL;
    return (PyObject *)policy_from(text);
}

static PyObject *policy_text(PyObject *self, void *closure)
{
    char text[STG_POLICY_TEXT_MAX];

    (void)closure;
    // Cannot fail: whatever is a Policy has passed the check.
    (void)stg_policy_print(&((policy_object *)self)->policy, text);
    return PyUnicode_FromString(text);
}

static PyObject *policy_str(PyObject *self)
{
    return policy_text(self, NULL);
}

static PyObject *policy_repr(PyObject *self)
{
    PyObject *text = policy_text(self, NULL), *repr;

    if (text == NULL)
        return NULL;
    repr = PyUnicode_FromFormat("Policy(%R)", text);
    Py_DECREF(text);
    return repr;
}

static Py_hash_t policy_hash(PyObject *self)
{
    PyObject *text = policy_text(self, NULL);
    Py_hash_t hash = text == NULL ? -1 : PyObject_Hash(text);

    Py_XDECREF(text);
    return hash;
}

static PyObject *policy_compare(PyObject *self, PyObject *other, int how)
{
    bool is_equal;

    if (Py_TYPE(other) != policy_type || (how != Py_EQ && how != Py_NE))
        Py_RETURN_NOTIMPLEMENTED;
    is_equal = stg_policy_equal(&((policy_object *)self)->policy,
                                &((policy_object *)other)->policy);
    return PyBool_FromLong(is_equal == (how == Py_EQ));
}

static PyObject *policy_reduce(PyObject *self, PyObject *none)
{
    (void)none;
    return Py_BuildValue("(O(N))", policy_type, policy_text(self, NULL));
}

static PyObject *policy_attempts_max(PyObject *self, void *closure)
{
    uint64_t most = ((policy_object *)self)->policy.attempts_max;

    (void)closure;
    if (most == STG_UNLIMITED)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(most);
}

static PyObject *policy_hedges_max(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLong(((policy_object *)self)->policy.hedge.max);
}

static PyObject *policy_needs_peer(PyObject *self, void *closure)
{
    const stg_policy *p = &((policy_object *)self)->policy;

    (void)closure;
    return PyBool_FromLong(stg_policy_needs_peer(p));
}

static PyObject *policy_retries(PyObject *self, PyObject *outcome)
{
    uint16_t most;

    if (Py_TYPE(outcome) != outcome_type)
        return PyErr_Format(PyExc_TypeError, "an Outcome is needed");
    most = stg_policy_retries(&((policy_object *)self)->policy,
                              &((outcome_object *)outcome)->outcome, NULL);
    if (most == STG_ALWAYS)
        Py_RETURN_NONE;
    return PyLong_FromLong(most);
}

/* The same, where no rule names `error` itself: and retries it. */
static PyObject *policy_with_errors(PyObject *self, PyObject *none)
{
    stg_policy p = ((policy_object *)self)->policy;
    stg_error err;

    (void)none;
    for (uint32_t i = 0; i < p.rule_count; i++)
        if (p.rules[i].link == STG_LINK_NAME &&
            p.rules[i].value == STG_FAULT_ERROR)
            return make(&p);
    if (p.rule_count < STG_RULES_MAX)
        p.rules[p.rule_count++] = (stg_rule){.link = STG_LINK_NAME,
                                             .retries_max = STG_ALWAYS,
                                             .value = STG_FAULT_ERROR};
    if (stg_policy_check(&p, &err) == STG_OK)
        return make(&p);
    return PyErr_Format(PyExc_ValueError, "%s", err.text);
}

static PyGetSetDef getters[] = {
    {"text", policy_text, NULL, "the canonical text, presets written out",
     NULL},
    {"attempts_max", policy_attempts_max, NULL,
     "first try included; None: unlimited", NULL},
    {"hedges_max", policy_hedges_max, NULL, "of an attempt; 0: none", NULL},
    {"needs_peer", policy_needs_peer, NULL,
     "whether it has a budget, a breaker, a rate ..., which need a Peer", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"retries", policy_retries, METH_O,
     "how often an outcome is retried: 0 never, None always"},
    {"with_errors", policy_with_errors, METH_NOARGS,
     "the same policy, which retries what is not classified, too"},
    {"__reduce__", policy_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "A retry policy: Policy(\"backend attempts=3\"). A text that "
     "cannot be used is a ValueError with the place."},
    {Py_tp_new, policy_new},
    {Py_tp_dealloc, object_free},
    {Py_tp_repr, policy_repr},
    {Py_tp_str, policy_str},
    {Py_tp_hash, policy_hash},
    {Py_tp_richcompare, policy_compare},
    {Py_tp_getset, getters},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec policy_spec = {"stagger.Policy", sizeof(policy_object), 0,
                           Py_TPFLAGS_DEFAULT, slots};
