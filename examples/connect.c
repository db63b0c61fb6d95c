/* connect.c - a connection to a server that is not there yet.
 *
 * The server is a thread of this program, which begins to listen late, as a
 * database does that is started together with its clients. The loop tries
 * until it is there, and the waits in between get longer. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <stagger/stagger.h>

static void *listen_late(void *server)
{
    nanosleep(&(struct timespec){.tv_nsec = 150000000}, NULL);
    listen(*(int *)server, 1);
    return NULL;
}

static int connect_to(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), error;

    if (fd < 0 ||
        connect(fd, (const struct sockaddr *)address, sizeof *address) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

int main(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM, 0), fd = -1;
    pthread_t thread;
    stg_policy policy;
    stg_error err;
    stg_loop r;

    if (stg_policy_parse(&policy,
                         "base=20ms cap=500ms attempts=unlimited deadline=10s",
                         &err) != STG_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK); // and any free port
    if (bind(server, (struct sockaddr *)&address, length) != 0 ||
        getsockname(server, (struct sockaddr *)&address, &length) != 0 ||
        pthread_create(&thread, NULL, listen_late, &server) != 0) {
        perror("the server");
        return 2;
    }

    stg_loop_begin(&r, &policy, NULL);
    while (stg_loop_again(&r)) {
        fd = connect_to(&address);
        stg_loop_report(&r, fd >= 0 ? stg_ok() : stg_failed_errno(errno));
    }
    printf("port %d: %s\n", ntohs(address.sin_port), stg_loop_text(&r));

    pthread_join(thread, NULL);
    close(server);
    return fd >= 0 && close(fd) == 0 ? 0 : 1;
}
