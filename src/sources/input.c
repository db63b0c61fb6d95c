#include "sources/input.h"
#include "base/refuse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

struct stg_input {
    uv_loop_t *loop;
    int fd;
    int epoll_fd; /* -1: libuv's threads read it */
    uv_poll_t poll;
    uv_idle_t idle;
    uv_fs_t read;
    bool is_out; /* a thread reads */
    bool is_wanted;
    stg_input_fn *take;
    void *ctx;
    void (*closed)(void *ctx); /* NULL: it is open */
    void *closed_ctx;
    unsigned open; /* while it closes: the handle, and the thread */
    char piece[STG_PIECE_MAX];
};

static void free_input(stg_input *i)
{
    if (i->epoll_fd >= 0)
        close(i->epoll_fd);
    free(i);
}

static void close_part(stg_input *i)
{
    void (*closed)(void *ctx) = i->closed;
    void *ctx = i->closed_ctx;

    if (--i->open > 0)
        return;
    free_input(i);
    closed(ctx);
}

static void handle_closed(uv_handle_t *handle)
{
    close_part(handle->data);
}

/* -- what is ready sometimes ------------------------------------------------- */

static void poll_input(uv_poll_t *poll, int status, int events)
{
    stg_input *i = poll->data;
    ssize_t size = read(i->fd, i->piece, sizeof i->piece);

    (void)status;
    (void)events;
    if (size < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    i->take(i->ctx, i->piece, size > 0 ? (size_t)size : 0,
            size < 0 ? errno : 0);
}

/* -- what is ready always ---------------------------------------------------- */

static void read_file(stg_input *i);

static void read_done(uv_fs_t *request)
{
    stg_input *i = request->data;
    ssize_t size = request->result;

    uv_fs_req_cleanup(request);
    i->is_out = false;
    if (i->closed != NULL) {
        close_part(i);
        return;
    }
    if (size != UV_EINTR && size != UV_EAGAIN)
        i->take(i->ctx, i->piece, size > 0 ? (size_t)size : 0,
                size < 0 ? (int)-size : 0);
    if (i->closed == NULL && i->is_wanted)
        read_file(i);
}

static void read_file(stg_input *i)
{
    uv_buf_t piece = uv_buf_init(i->piece, sizeof i->piece);

    if (i->is_out)
        return;
    // It can fail for want of arguments alone.
    i->is_out =
        uv_fs_read(i->loop, &i->read, i->fd, &piece, 1, -1, read_done) == 0;
}

void stg_input_want(stg_input *i, bool is_wanted)
{
    bool was_wanted = i->is_wanted;

    i->is_wanted = is_wanted;
    if (is_wanted == was_wanted)
        return;
    if (i->epoll_fd < 0) {
        if (is_wanted)
            read_file(i);
    } else if (is_wanted) {
        (void)uv_poll_start(&i->poll, UV_READABLE, poll_input);
    } else {
        (void)uv_poll_stop(&i->poll);
    }
}

/* -- open and close ---------------------------------------------------------- */

static stg_status refuse(stg_error *err, const char *what, int error)
{
    return stg_hub_refuse(err, STG_IO, "standard input: %s%s", what,
                          error == 0 ? "" : strerror(error));
}

static stg_status check_fd(int fd, stg_error *err)
{
    struct stat s;
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fstat(fd, &s) != 0)
        return refuse(err, "it is closed; give it a pipe or a file", 0);
    if (S_ISDIR(s.st_mode))
        return refuse(err, "it is a directory; give it a pipe or a file", 0);
    if ((flags & O_ACCMODE) == O_WRONLY)
        return refuse(err, "it is not open for reading", 0);
    return STG_OK;
}

static stg_status open_epoll(stg_input *i, stg_error *err)
{
    struct epoll_event e = {.events = EPOLLIN};
    int error;

    i->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (i->epoll_fd < 0)
        return refuse(err, "", errno);
    if (epoll_ctl(i->epoll_fd, EPOLL_CTL_ADD, i->fd, &e) == 0) {
        error = uv_poll_init(i->loop, &i->poll, i->epoll_fd);
        return error == 0 ? STG_OK : refuse(err, "", -error);
    }
    if (errno != EPERM)
        return refuse(err, "", errno);
    close(i->epoll_fd);
    i->epoll_fd = -1;
    return STG_OK;
}

stg_status stg_input_open(stg_input **input, uv_loop_t *loop, int fd,
                          stg_input_fn *take, void *ctx, stg_error *err)
{
    stg_status status = check_fd(fd, err);
    stg_input *i;

    if (status != STG_OK)
        return status;
    i = calloc(1, sizeof *i);
    if (i == NULL)
        return refuse(err, "no memory", 0);
    i->loop = loop;
    i->fd = fd;
    i->take = take;
    i->ctx = ctx;
    i->read.data = i->poll.data = i->idle.data = i;
    status = open_epoll(i, err);
    if (status != STG_OK)
        free_input(i);
    else
        *input = i;
    return status;
}

void stg_input_close(stg_input *i, void (*done)(void *ctx), void *ctx)
{
    i->closed = done;
    i->closed_ctx = ctx;
    i->open = i->is_out ? 2 : 1;
    // Threads need no handle: one is made, to be closed in a later turn.
    if (i->epoll_fd < 0)
        (void)uv_idle_init(i->loop, &i->idle); // cannot fail
    uv_close(i->epoll_fd < 0 ? (uv_handle_t *)&i->idle
                             : (uv_handle_t *)&i->poll,
             handle_closed);
}
