/* The input of `stagger send`: read in pieces of 256 KB into a buffer that grows, out
 * of which lines are lent until the next piece is read. */
#include "cli/send/send.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_MAX = 256 * 1024 };

/* Opens a FIFO as it does a file: open() waits until somebody writes to it. */
int stg_send_input_open(send_input *in, const char *path)
{
    struct stat about;

    *in = (send_input){.file = STDIN_FILENO};
    if (path != NULL)
        in->file = open(path, O_RDONLY | O_CLOEXEC);
    if (in->file < 0 || fstat(in->file, &about) != 0)
        return errno;
    if (S_ISDIR(about.st_mode))
        return EISDIR;
    in->is_regular = S_ISREG(about.st_mode);
    if (in->is_regular)
        in->total = (uint64_t)about.st_size;
    return 0;
}

void stg_send_input_close(send_input *in)
{
    free(in->bytes);
    in->bytes = NULL;
    if (in->file > STDIN_FILENO)
        close(in->file);
}

/* An error of poll() counts as ready: the read that follows reports it. */
bool stg_send_input_is_ready(const send_input *in)
{
    struct pollfd p = {.fd = in->file, .events = POLLIN};

    return in->is_regular || poll(&p, 1, 0) != 0;
}

/* Room for one more read behind what is there, which moves to the front: a span
 * that was lent is void after it. */
static int make_room(send_input *in)
{
    char *grown;

    if (in->at > 0) {
        memmove(in->bytes, in->bytes + in->at, in->size - in->at);
        in->size -= in->at;
        in->searched -= in->at;
        in->at = 0;
    }
    if (in->size > SEND_INPUT_MAX)
        return EFBIG;
    if (in->room - in->size >= READ_MAX)
        return 0;
    grown = realloc(in->bytes, 2 * in->room + READ_MAX);
    if (grown == NULL)
        return ENOMEM;
    in->bytes = grown;
    in->room = 2 * in->room + READ_MAX;
    return 0;
}

/* A descriptor that somebody else made non-blocking is waited for, until a signal
 * comes. */
int stg_send_input_fill(send_input *in)
{
    int error = make_room(in);
    ssize_t got;

    if (error != 0)
        return error;
    do
        got = read(in->file, in->bytes + in->size, READ_MAX);
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN) {
        (void)poll(&(struct pollfd){.fd = in->file, .events = POLLIN}, 1, -1);
        return 0;
    }
    if (got < 0)
        return errno;
    in->size += (size_t)got;
    in->has_ended = got == 0;
    return 0;
}

/* `searched` keeps a long line from being searched again from its start at each
 * read. Only at the end of the input is a line complete without a newline. */
bool stg_send_input_line(send_input *in, stg_span *line)
{
    char *end = NULL, *start = in->bytes + in->at;

    if (in->searched < in->size)
        end = memchr(in->bytes + in->searched, '\n', in->size - in->searched);
    if (end == NULL) {
        in->searched = in->size;
        if (!in->has_ended || in->at == in->size)
            return false;
        end = in->bytes + in->size;
    }
    *line = (stg_span){start, (size_t)(end - start)};
    if (line->size > 0 && end[-1] == '\r')
        line->size--;
    in->given = in->at;
    in->at = (size_t)(end - in->bytes);
    in->at += in->at < in->size;
    in->searched = in->at;
    in->lines++;
    return true;
}

/* Works once, for the line that was given out last, and before the next
 * fill. */
void stg_send_input_return(send_input *in)
{
    in->at = in->searched = in->given;
    in->lines--;
}

stg_span stg_send_input_whole(const send_input *in)
{
    return (stg_span){in->bytes + in->at, in->size - in->at};
}
