/* outcome.c - stagger.Outcome: what an attempt came to. */
#include "module.h"

#include <time.h>

PyTypeObject *outcome_type;

PyObject *outcome_new(stg_outcome outcome)
{
    outcome_object *self = PyObject_New(outcome_object, outcome_type);

    if (self != NULL)
        self->outcome = outcome;
    return (PyObject *)self;
}

static const stg_outcome *read_outcome(PyObject *self)
{
    return &((outcome_object *)self)->outcome;
}

/* -- making one: static methods, one for whatever a program holds */

static PyObject *outcome_ok(PyObject *none, PyObject *nothing)
{
    (void)none;
    (void)nothing;
    return outcome_new(stg_ok());
}

/* The fault of a name, from `first` on; or a ValueError. */
static bool find_fault(const char *name, int first, stg_fault *fault)
{
    for (int i = first; i < STG_FAULT_COUNT; i++) {
        *fault = (stg_fault)i;
        if (strcmp(stg_fault_about(*fault)->name, name) == 0)
            return true;
    }
    PyErr_Format(PyExc_ValueError, "there is no fault `%s`", name);
    return false;
}

static PyObject *outcome_failed(PyObject *none, PyObject *args)
{
    const char *text;
    stg_fault fault;

    (void)none;
    if (!PyArg_ParseTuple(args, "s:failed", &text) ||
        !find_fault(text, STG_FAULT_NONE + 1, &fault))
        return NULL;
    return outcome_new(stg_failed(fault));
}

/* False, and an exception, for what is no int of C. */
static bool read_code(PyObject *number, int *code)
{
    long value = PyLong_AsLong(number);

    if (value == -1 && PyErr_Occurred())
        return false;
    if (value < INT32_MIN || value > INT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "a code has 32 bits");
        return false;
    }
    *code = (int)value;
    return true;
}

static PyObject *make(PyObject *number, stg_outcome (*from)(int))
{
    int code;

    return read_code(number, &code) ? outcome_new(from(code)) : NULL;
}

static stg_outcome from_mysql(int code)
{
    return stg_failed_mysql(code < 0 ? UINT32_MAX : (unsigned)code);
}

static PyObject *outcome_status(PyObject *none, PyObject *number)
{
    (void)none;
    return make(number, stg_answered);
}

static PyObject *outcome_errno(PyObject *none, PyObject *number)
{
    (void)none;
    return make(number, stg_failed_errno);
}

static PyObject *outcome_resolver(PyObject *none, PyObject *number)
{
    (void)none;
    return make(number, stg_failed_resolver);
}

static PyObject *outcome_mysql(PyObject *none, PyObject *number)
{
    (void)none;
    return make(number, from_mysql);
}

static PyObject *outcome_sqlstate(PyObject *none, PyObject *args)
{
    const char *text;

    (void)none;
    if (!PyArg_ParseTuple(args, "s:sqlstate", &text))
        return NULL;
    return outcome_new(stg_failed_sqlstate(text));
}

static PyObject *outcome_amqp(PyObject *none, PyObject *number)
{
    (void)none;
    return make(number, stg_failed_amqp);
}

static PyObject *outcome_kafka(PyObject *none, PyObject *number)
{
    (void)none;
    return make(number, stg_failed_kafka);
}

static PyObject *outcome_redis(PyObject *none, PyObject *args)
{
    const char *reply;

    (void)none;
    if (!PyArg_ParseTuple(args, "s:redis", &reply))
        return NULL;
    return outcome_new(stg_failed_redis(reply));
}

static PyObject *outcome_grpc(PyObject *none, PyObject *args)
{
    int code;
    const char *pushback_ms = NULL;

    (void)none;
    if (!PyArg_ParseTuple(args, "i|z:grpc", &code, &pushback_ms))
        return NULL;
    return outcome_new(stg_failed_grpc(code, pushback_ms));
}

static PyObject *outcome_but(PyObject *self, PyObject *args, PyObject *names)
{
    static char *keywords[] = {"delay", "permanent", "unsent", NULL};
    stg_outcome o = *read_outcome(self);
    PyObject *delay = NULL;
    int permanent = o.permanent, unsent = o.unsent;

    if (!PyArg_ParseTupleAndKeywords(args, names, "|$Opp:but", keywords, &delay,
                                     &permanent, &unsent))
        return NULL;
    if (delay != NULL && !read_seconds(delay, &o.delay))
        return NULL;
    o.permanent = permanent != 0;
    o.unsent = unsent != 0;
    return outcome_new(o);
}

static PyObject *outcome_after(PyObject *self, PyObject *args)
{
    stg_delay_headers h = {NULL};
    stg_outcome o = *read_outcome(self);

    if (!PyArg_ParseTuple(args, "z|zz:after", &h.retry_after, &h.retry_after_ms,
                          &h.date))
        return NULL;
    o.delay = stg_delay_read(&h, (int64_t)time(NULL));
    return outcome_new(o);
}

/* What look_up has for a name, as bytes; NULL if it has nothing, or raises. The
 * reference is the caller's. */
static PyObject *look_up_header(PyObject *look_up, const char *name)
{
    PyObject *found = PyObject_CallFunction(look_up, "s", name);
    PyObject *bytes = NULL;

    if (found != NULL && found != Py_None)
        bytes = PyUnicode_AsUTF8String(found);
    Py_XDECREF(found);
    return bytes;
}

static PyObject *outcome_told(PyObject *self, PyObject *look_up)
{
    enum { NAMES_MAX = 16 };
    stg_outcome o = *read_outcome(self);
    stg_delay_headers h = {
        .status = o.code_kind == STG_CODE_STATUS ? (int)o.code : 0};
    PyObject *found[NAMES_MAX] = {NULL};
    stg_delay_header header;
    const char *name;

    for (size_t i = 0; i < NAMES_MAX && PyErr_Occurred() == NULL &&
                       (name = stg_delay_name(i, &header)) != NULL;
         i++) {
        found[i] = look_up_header(look_up, name);
        if (found[i] != NULL)
            stg_delay_note(&h, header, PyBytes_AsString(found[i]));
    }
    if (PyErr_Occurred() == NULL)
        o.delay = stg_delay_read(&h, (int64_t)time(NULL));
    for (size_t i = 0; i < NAMES_MAX; i++)
        Py_XDECREF(found[i]);
    return PyErr_Occurred() == NULL ? outcome_new(o) : NULL;
}

/* -- reading one */

static PyObject *outcome_name(PyObject *self, void *closure)
{
    char text[STG_CAUSE_MAX];

    (void)closure;
    return PyUnicode_FromString(stg_outcome_name(read_outcome(self), text));
}

static PyObject *outcome_cause(PyObject *self, void *closure)
{
    char text[STG_CAUSE_MAX];

    (void)closure;
    return PyUnicode_FromString(stg_outcome_cause(read_outcome(self), text));
}

static const stg_fault_info *info_of(PyObject *self)
{
    return stg_fault_about(read_outcome(self)->fault);
}

static PyObject *outcome_fault(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(info_of(self)->name);
}

static PyObject *outcome_category(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(stg_category_name(info_of(self)->category));
}

static PyObject *outcome_sentence(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(info_of(self)->sentence);
}

static PyObject *outcome_is_ok(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(read_outcome(self)->fault == STG_FAULT_NONE);
}

static PyObject *outcome_delay(PyObject *self, void *closure)
{
    (void)closure;
    return seconds_of(read_outcome(self)->delay);
}

static PyObject *outcome_permanent(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(read_outcome(self)->permanent);
}

static PyObject *outcome_unsent(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(read_outcome(self)->unsent);
}

static PyObject *outcome_repr(PyObject *self)
{
    char text[STG_CAUSE_MAX];

    return PyUnicode_FromFormat("<Outcome %s>",
                                stg_outcome_name(read_outcome(self), text));
}

static PyObject *outcome_compare(PyObject *self, PyObject *other, int how)
{
    const stg_outcome *a = read_outcome(self), *b;
    bool is_equal;

    if (Py_TYPE(other) != outcome_type || (how != Py_EQ && how != Py_NE))
        Py_RETURN_NOTIMPLEMENTED;
    b = read_outcome(other);
    is_equal = a->fault == b->fault && a->code_kind == b->code_kind &&
               a->code == b->code && a->permanent == b->permanent &&
               a->unsent == b->unsent && a->delay == b->delay;
    return PyBool_FromLong(is_equal == (how == Py_EQ));
}

/* For pickle: an exception that crosses processes takes its outcome along. */
static PyObject *outcome_reduce(PyObject *self, PyObject *nothing)
{
    const stg_outcome *o = read_outcome(self);

    (void)nothing;
    return Py_BuildValue(
        "N(siIiiK)",
        PyObject_GetAttrString((PyObject *)outcome_type, "_restore"),
        stg_fault_about(o->fault)->name, (int)o->code_kind, (unsigned)o->code,
        (int)o->permanent, (int)o->unsent, (unsigned long long)o->delay);
}

static PyObject *outcome_restore(PyObject *type, PyObject *args)
{
    stg_outcome o = {STG_FAULT_NONE};
    const char *name;
    int kind, permanent, unsent;
    unsigned code;
    unsigned long long delay;

    (void)type;
    if (!PyArg_ParseTuple(args, "siIppK:_restore", &name, &kind, &code,
                          &permanent, &unsent, &delay) ||
        !find_fault(name, STG_FAULT_NONE, &o.fault))
        return NULL;
    // A number that is no kind of codes is read as "none" wherever it is used.
    o.code_kind = (stg_code_kind)kind;
    o.code = code;
    o.permanent = permanent != 0;
    o.unsent = unsent != 0;
    o.delay = delay;
    return outcome_new(o);
}

static PyGetSetDef getters[] = {
    {"name", outcome_name, NULL, "as policies write it: 503, refused", NULL},
    {"cause", outcome_cause, NULL, "as records write it: HTTP_503", NULL},
    {"fault", outcome_fault, NULL, "the fault: 5xx, refused", NULL},
    {"category", outcome_category, NULL, "its category: server, connect", NULL},
    {"sentence", outcome_sentence, NULL, "the fault for people", NULL},
    {"is_ok", outcome_is_ok, NULL, "whether it is a success", NULL},
    {"delay", outcome_delay, NULL, "the wait asked for, in seconds", NULL},
    {"permanent", outcome_permanent, NULL, "never to be retried", NULL},
    {"unsent", outcome_unsent, NULL, "surely not processed", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"ok", outcome_ok, METH_NOARGS | METH_STATIC, "a success"},
    {"failed", outcome_failed, METH_VARARGS | METH_STATIC,
     "a fault by its name, such as \"timeout\""},
    {"status", outcome_status, METH_O | METH_STATIC, "an HTTP status"},
    {"errno", outcome_errno, METH_O | METH_STATIC, "an errno"},
    {"resolver", outcome_resolver, METH_O | METH_STATIC,
     "a code of getaddrinfo()"},
    {"mysql", outcome_mysql, METH_O | METH_STATIC, "a MySQL error number"},
    {"sqlstate", outcome_sqlstate, METH_VARARGS | METH_STATIC, "an SQLSTATE"},
    {"redis", outcome_redis, METH_VARARGS | METH_STATIC,
     "an error reply of Redis"},
    {"amqp", outcome_amqp, METH_O | METH_STATIC, "a reply code of AMQP 0-9-1"},
    {"kafka", outcome_kafka, METH_O | METH_STATIC, "an error code of Kafka"},
    {"grpc", outcome_grpc, METH_VARARGS | METH_STATIC,
     "a gRPC code, and grpc-retry-pushback-ms"},
    {"but", (PyCFunction)(void (*)(void))outcome_but,
     METH_VARARGS | METH_KEYWORDS,
     "the same with delay (seconds), permanent or unsent changed"},
    {"after", outcome_after, METH_VARARGS,
     "the same with the delay of Retry-After, retry-after-ms and Date"},
    {"told", outcome_told, METH_O,
     "the same with the delay of an answer's headers: a function of a name"},
    {"__reduce__", outcome_reduce, METH_NOARGS, "for pickle"},
    {"_restore", outcome_restore, METH_VARARGS | METH_CLASS, "for pickle"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "What an attempt came to. Made by its static methods."},
    {Py_tp_new, object_refuse},
    {Py_tp_dealloc, object_free},
    {Py_tp_repr, outcome_repr},
    {Py_tp_richcompare, outcome_compare},
    {Py_tp_hash, PyObject_HashNotImplemented},
    {Py_tp_getset, getters},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec outcome_spec = {"stagger.Outcome", sizeof(outcome_object), 0,
                            Py_TPFLAGS_DEFAULT, slots};
