#include "module.h"

PyObject *object_refuse(PyTypeObject *type, PyObject *args, PyObject *names)
{
    (void)args;
    (void)names;
    return PyErr_Format(PyExc_TypeError, "%R is not made by a call", type);
}

void object_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_Free(self);
    Py_DECREF(type);
}

bool read_seconds(PyObject *number, stg_ns *ns)
{
    const double longest = 365.0 * 24 * 3600;
    double seconds = PyFloat_AsDouble(number);

    if (seconds == -1 && PyErr_Occurred())
        return false;
    if (!(seconds > 0))
        *ns = 0; // and what is no number
    else if (seconds > longest)
        *ns = 365 * STG_DAY;
    else
        *ns = (stg_ns)(seconds * 1e9 + 0.5);
    return true;
}

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "stagger._core",
    .m_doc = "The library of C, as thin types.",
    .m_size = -1,
};

static bool add_type(PyObject *module, const char *name, PyType_Spec *spec,
                     PyTypeObject **type)
{
    if (*type == NULL)
        *type = (PyTypeObject *)PyType_FromSpec(spec);
    if (*type == NULL)
        return false;
    Py_INCREF(*type);
    if (PyModule_AddObject(module, name, (PyObject *)*type) == 0)
        return true;
    Py_DECREF(*type);
    return false;
}

PyMODINIT_FUNC PyInit__core(void)
{
    PyObject *module = PyModule_Create(&definition);

    if (module != NULL &&
        add_type(module, "Policy", &policy_spec, &policy_type) &&
        add_type(module, "Outcome", &outcome_spec, &outcome_type) &&
        add_type(module, "Peer", &peer_spec, &peer_type) &&
        add_type(module, "Clock", &clock_spec, &clock_type) &&
        add_type(module, "Calls", &calls_spec, &calls_type) &&
        add_type(module, "Operation", &operation_spec, &operation_type) &&
        PyModule_AddStringConstant(module, "version", STG_VERSION) == 0)
        return module;
    Py_XDECREF(module);
    return NULL;
}
