/* errno.h - the names that core sorts, with numbers of no system: in a browser
 * nothing fails with one. */
#ifndef STAGGER_WASM_ERRNO_H
#define STAGGER_WASM_ERRNO_H

enum {
    EADDRNOTAVAIL = 1,
    EAFNOSUPPORT,
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
    EINTR,
    EINVAL,
    EMFILE,
    EMSGSIZE,
    ENETDOWN,
    ENETRESET,
    ENETUNREACH,
    ENFILE,
    ENOBUFS,
    ENOMEM,
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
