/* operation.c - stagger.Operation: one call with all its attempts. */
#include "module.h"

PyTypeObject *operation_type;

static operation_object *of(PyObject *self)
{
    return (operation_object *)self;
}

/* With each change: an operation that has ended is counted, once. */
static void settle(operation_object *self)
{
    stg_report report;

    if (self->is_counted || !stg_operation_has_ended(&self->op))
        return;
    self->is_counted = true;
    report = stg_operation_result(&self->op);
    calls_count(self->calls, &report);
}

static void start(operation_object *self)
{
    const calls_object *calls = self->calls;
    stg_with with = {
        .peer = calls->peer == NULL ? NULL : &calls->peer->peer,
        .parent = self->parent == NULL ? NULL : &self->parent->op.retry,
        .env = self->clock == NULL ? NULL : &self->clock->env,
        .has_key = calls->key != Py_False,
    };

    if (calls->peer != NULL)
        peer_use_clock(calls->peer, self->clock);
    if (calls->method != NULL)
        with.method = PyBytes_AsString(calls->method);
    (void)stg_operation_begin(&self->op, &calls->policy->policy, &with);
    stg_operation_admit(&self->op, self->op.begun_at);
    settle(self);
}

PyObject *operation_begin(calls_object *calls, PyObject *parent,
                          PyObject *clock)
{
    operation_object *self;

    if ((parent != Py_None && Py_TYPE(parent) != operation_type) ||
        (clock != Py_None && Py_TYPE(clock) != clock_type)) {
        PyErr_SetString(PyExc_TypeError,
                        "begin(Operation | None, Clock | "
                        "None)");
        return NULL;
    }
    self = PyObject_New(operation_object, operation_type);
    if (self == NULL)
        return NULL;
    self->calls = calls;
    self->parent = parent == Py_None ? NULL : of(parent);
    self->clock = clock == Py_None ? NULL : (clock_object *)clock;
    self->key = NULL;
    self->is_counted = false;
    Py_INCREF(calls);
    Py_XINCREF(self->parent);
    Py_XINCREF(self->clock);
    start(self);
    return (PyObject *)self;
}

/* One that nobody ended gives back what it holds. */
static void operation_free(PyObject *object)
{
    operation_object *self = of(object);

    stg_operation_cancel(&self->op);
    settle(self);
    Py_XDECREF(self->calls);
    Py_XDECREF(self->parent);
    Py_XDECREF(self->clock);
    Py_XDECREF(self->key);
    object_free(object);
}

/* -- what happened */

static PyObject *operation_admit(PyObject *self, PyObject *none)
{
    operation_object *o = of(self);

    (void)none;
    stg_operation_admit(&o->op, stg_operation_now(&o->op));
    settle(o);
    Py_RETURN_NONE;
}

static PyObject *operation_report(PyObject *self, PyObject *outcome)
{
    operation_object *o = of(self);

    if (Py_TYPE(outcome) != outcome_type)
        return PyErr_Format(PyExc_TypeError, "an Outcome is needed, not %R",
                            Py_TYPE(outcome));
    stg_operation_report(&o->op, &((outcome_object *)outcome)->outcome);
    settle(o);
    Py_RETURN_NONE;
}

static PyObject *operation_succeed(PyObject *self, PyObject *none)
{
    const stg_outcome ok = stg_ok();

    (void)none;
    stg_operation_report(&of(self)->op, &ok);
    settle(of(self));
    Py_RETURN_NONE;
}

/* -- several attempts at once */

static PyObject *operation_begin_round(PyObject *self, PyObject *none)
{
    (void)none;
    stg_operation_begin_round(&of(self)->op);
    Py_RETURN_NONE;
}

static PyObject *operation_hedge(PyObject *self, PyObject *none)
{
    stg_operation *op = &of(self)->op;

    (void)none;
    return PyLong_FromUnsignedLong(
        stg_operation_hedge(op, stg_operation_now(op)));
}

static PyObject *operation_report_attempt(PyObject *self, PyObject *args)
{
    PyObject *outcome;
    unsigned index;

    if (!PyArg_ParseTuple(args, "IO!:report_attempt", &index, outcome_type,
                          &outcome))
        return NULL;
    stg_operation_report_attempt(&of(self)->op, index,
                                 &((outcome_object *)outcome)->outcome);
    settle(of(self));
    Py_RETURN_NONE;
}

static PyObject *operation_cancel(PyObject *self, PyObject *none)
{
    (void)none;
    stg_operation_cancel(&of(self)->op);
    settle(of(self));
    Py_RETURN_NONE;
}

/* A value was given in place of a result. */
static PyObject *operation_fall_back(PyObject *self, PyObject *none)
{
    (void)none;
    of(self)->op.fell_back = true;
    atomic_fetch_add(&of(self)->calls->fallbacks, 1);
    Py_RETURN_NONE;
}

/* -- where it stands */

static PyObject *operation_is_next(PyObject *self, void *next)
{
    return PyBool_FromLong((uintptr_t)of(self)->op.decision.next ==
                           (uintptr_t)next);
}

static PyObject *operation_why(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(stg_why_name(of(self)->op.decision.why));
}

static PyObject *operation_reason(PyObject *self, void *closure)
{
    const stg_operation *op = &of(self)->op;

    (void)closure;
    return PyUnicode_FromString(
        op->flaw != NULL ? op->flaw : stg_why_sentence(op->decision.why));
}

static PyObject *operation_due_at(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(of(self)->op.decision.due_at);
}

static PyObject *operation_hedge_due_at(PyObject *self, void *closure)
{
    stg_ns due_at = of(self)->op.hedge.due_at;

    (void)closure;
    if (due_at == STG_NEVER)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(due_at);
}

static PyObject *operation_now(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(stg_operation_now(&of(self)->op));
}

/* From the decision to the end of the wait. */
static PyObject *operation_wait(PyObject *self, void *closure)
{
    const stg_operation *op = &of(self)->op;

    (void)closure;
    return seconds_of(stg_ns_sub(op->decision.due_at, op->changed_at));
}

static PyObject *operation_waited(PyObject *self, void *closure)
{
    (void)closure;
    return seconds_of(of(self)->op.waited);
}

static PyObject *operation_took(PyObject *self, void *closure)
{
    (void)closure;
    return seconds_of(stg_operation_result(&of(self)->op).took);
}

static PyObject *operation_timeout(PyObject *self, void *closure)
{
    const stg_operation *op = &of(self)->op;
    stg_ns left = stg_retry_timeout(&op->retry, stg_operation_now(op));

    (void)closure;
    if (left == STG_NEVER)
        Py_RETURN_NONE;
    return seconds_of(left);
}

static PyObject *operation_attempt(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLong(of(self)->op.retry.attempts);
}

static PyObject *operation_hedges(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLong(of(self)->op.hedges);
}

static PyObject *operation_last(PyObject *self, void *closure)
{
    const stg_operation *op = &of(self)->op;

    (void)closure;
    if (op->last.fault == STG_FAULT_NONE)
        Py_RETURN_NONE;
    return outcome_new(op->last);
}

static PyObject *operation_key(PyObject *self, void *closure)
{
    operation_object *o = of(self);
    char text[STG_KEY_MAX];

    (void)closure;
    if (o->key == NULL && PyUnicode_Check(o->calls->key)) {
        o->key = o->calls->key;
        Py_INCREF(o->key);
    } else if (o->key == NULL) {
        o->key = PyUnicode_FromString(stg_key_new(text));
    }
    Py_XINCREF(o->key);
    return o->key;
}

static PyObject *operation_text(PyObject *self, void *closure)
{
    char text[STG_REPORT_TEXT_MAX];
    stg_report report = stg_operation_result(&of(self)->op);

    (void)closure;
    return PyUnicode_FromString(stg_report_text(&report, text));
}

#define NEXT(next) (void *)(uintptr_t)STG_##next

static PyGetSetDef getters[] = {
    {"is_trying", operation_is_next, NULL, "an attempt is under way", NEXT(GO)},
    {"is_waiting", operation_is_next, NULL, "until due_at", NEXT(WAIT)},
    {"is_done", operation_is_next, NULL, "it succeeded", NEXT(DONE)},
    {"gave_up", operation_is_next, NULL, "it failed: why", NEXT(GIVE_UP)},
    {"why", operation_why, NULL, "the reason of the last decision", NULL},
    {"reason", operation_reason, NULL, "the same as a sentence", NULL},
    {"due_at", operation_due_at, NULL, "the end of the wait, as now is", NULL},
    {"hedge_due_at", operation_hedge_due_at, NULL,
     "when to ask for the next hedge; None: there is none", NULL},
    {"now", operation_now, NULL, "nanoseconds of its clock", NULL},
    {"wait", operation_wait, NULL, "the whole wait, in seconds", NULL},
    {"waited", operation_waited, NULL, "all waits so far, in seconds", NULL},
    {"took", operation_took, NULL, "from begin to end, in seconds", NULL},
    {"timeout", operation_timeout, NULL,
     "seconds that the attempt may take from now; None: no limit", NULL},
    {"number", operation_attempt, NULL, "of the attempt, from 1", NULL},
    {"hedges", operation_hedges, NULL, "made so far, in all attempts", NULL},
    {"last", operation_last, NULL, "the last failure, or None", NULL},
    {"key", operation_key, NULL,
     "an idempotency key, the same for all attempts", NULL},
    {"text", operation_text, NULL, "how it went, as a sentence", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"admit", operation_admit, METH_NOARGS, "the wait is over"},
    {"report", operation_report, METH_O, "what the attempt came to"},
    {"succeed", operation_succeed, METH_NOARGS, "the attempt succeeded"},
    {"begin_round", operation_begin_round, METH_NOARGS,
     "the attempt may have hedges"},
    {"hedge", operation_hedge, METH_NOARGS,
     "which hedge of the attempt may start now, from 1; 0: none"},
    {"report_attempt", operation_report_attempt, METH_VARARGS,
     "what a hedge of the attempt came to, or the attempt itself: 0"},
    {"fall_back", operation_fall_back, METH_NOARGS,
     "the fallback has answered, after it gave up"},
    {"cancel", operation_cancel, METH_NOARGS, "ends it as cancelled"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "One call with all its attempts."},
    {Py_tp_new, object_refuse},
    {Py_tp_dealloc, operation_free},
    {Py_tp_getset, getters},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec operation_spec = {"stagger.Operation", sizeof(operation_object), 0,
                              Py_TPFLAGS_DEFAULT, slots};
