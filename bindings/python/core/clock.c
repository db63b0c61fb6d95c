/* clock.c - stagger.testing's time and chance: an stg_env that is skipped ahead
 * where a program would wait. */
#include "module.h"

PyTypeObject *clock_type;

static stg_ns read_now(void *ctx)
{
    clock_object *self = ctx;
    stg_ns origin = self->is_frozen ? 0 : stg_env_system()->now(NULL);

    return stg_ns_add(origin, atomic_load(&self->ahead));
}

static void skip_to(clock_object *self, stg_ns at)
{
    uint64_t ahead = atomic_load(&self->ahead), next;

    do {
        stg_ns now = read_now(self);

        if (at <= now)
            return;
        next = stg_ns_add(ahead, at - now);
    } while (!atomic_compare_exchange_weak(&self->ahead, &ahead, next));
}

static bool skip(void *ctx, stg_ns until_at, const stg_cancel *cancel)
{
    (void)cancel;
    skip_to(ctx, until_at);
    return true;
}

static uint64_t draw(void *ctx)
{
    return stg_rng_next(&((clock_object *)ctx)->rng);
}

static PyObject *clock_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *keywords[] = {"frozen", "seed", NULL};
    int frozen = 0;
    PyObject *seed = Py_None;
    clock_object *self;
    uint64_t bits = 0;

    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, names, "|$pO:Clock", keywords,
                                     &frozen, &seed))
        return NULL;
    if (seed != Py_None) {
        bits = PyLong_AsUnsignedLongLong(seed);
        if (PyErr_Occurred())
            return NULL;
    }
    self = PyObject_New(clock_object, clock_type);
    if (self == NULL)
        return NULL;
    self->is_frozen = frozen != 0;
    atomic_init(&self->ahead, 0);
    self->rng = stg_rng_seed(bits);
    self->env = (stg_env){.now = read_now,
                          .sleep = skip,
                          .random = seed == Py_None ? NULL : draw,
                          .ctx = self};
    return (PyObject *)self;
}

static PyObject *clock_now(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(read_now(self));
}

static PyObject *clock_skip_to(PyObject *self, PyObject *at)
{
    stg_ns ns = PyLong_AsUnsignedLongLong(at);

    if (PyErr_Occurred())
        return NULL;
    skip_to((clock_object *)self, ns);
    Py_RETURN_NONE;
}

static PyGetSetDef getters[] = {
    {"now", clock_now, NULL, "nanoseconds from an origin of its own", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"skip_to", clock_skip_to, METH_O, "no earlier than that from here on"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Time that is skipped instead of slept through."},
    {Py_tp_new, clock_new},
    {Py_tp_dealloc, object_free},
    {Py_tp_getset, getters},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec clock_spec = {"stagger._core.Clock", sizeof(clock_object), 0,
                          Py_TPFLAGS_DEFAULT, slots};
