/* errno.h - the names that core sorts, with numbers of no system: in a browser
 * nothing fails with one. */
#ifndef STAGGER_WASM_ERRNO_H
#define STAGGER_WASM_ERRNO_H

enum {
    EAFNOSUPPORT = 1,
    EALREADY,
    EBADF,
    EBADMSG,
    ECANCELED,
    ECONNABORTED,
    ECONNREFUSED,
    ECONNRESET,
    EDESTADDRREQ,
    EFAULT,
    EHOSTUNREACH,
    EINPROGRESS,
    EINVAL,
    EMSGSIZE,
    ENETDOWN,
    ENETRESET,
    ENETUNREACH,
    ENOTCONN,
    ENOTSOCK,
    EPIPE,
    EPROTO,
    EPROTONOSUPPORT,
    ETIMEDOUT,
};

/* The preprocessor compares these two. */
#define EAGAIN 100
#define EWOULDBLOCK EAGAIN

#endif
