/* blocking_socket.c - a request on a blocking socket, to a server that hangs.
 *
 * The server is a thread of this program. It takes the first connection and says
 * nothing, as a process does that is stuck: a plain recv() would wait for ever.
 * The attempt has 100 ms, and connecting, sending and receiving share them. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <stagger/socket.h>
#include <stagger/stagger.h>

static void *serve(void *server)
{
    int stuck = accept(*(int *)server, NULL, NULL);
    int fd = accept(*(int *)server, NULL, NULL);

    if (write(fd, "12:00", 5) < 0)
        perror("the server");
    close(fd);
    close(stuck);
    return NULL;
}

static stg_outcome ask(const struct sockaddr_in *address, char text[16],
                       stg_ns end_at)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    size_t size = 15;
    stg_outcome o = stg_socket_connect(fd, (const struct sockaddr *)address,
                                       sizeof *address, end_at);

    if (o.fault == STG_FAULT_NONE)
        o = stg_socket_send(fd, "time?", 5, end_at);
    if (o.fault == STG_FAULT_NONE)
        o = stg_socket_receive(fd, text, &size, end_at);
    if (o.fault == STG_FAULT_NONE)
        text[size] = '\0';
    close(fd);
    return o;
}

int main(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    char text[16] = "";
    pthread_t thread;
    stg_policy policy;
    stg_loop r;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK); // and any free port
    if (bind(server, (struct sockaddr *)&address, length) != 0 ||
        listen(server, 4) != 0 ||
        getsockname(server, (struct sockaddr *)&address, &length) != 0 ||
        pthread_create(&thread, NULL, serve, &server) != 0) {
        perror("the server");
        return 2;
    }
    if (stg_policy_parse(&policy, "client base=10ms attempt-timeout=100ms",
                         NULL) != STG_OK)
        return 2;

    stg_loop_begin(&r, &policy, NULL);
    while (stg_loop_again(&r)) {
        stg_ns end_at = stg_socket_end_at(stg_loop_timeout(&r));

        stg_loop_report(&r, ask(&address, text, end_at));
    }
    printf("\"%s\": %s\n", text, stg_loop_text(&r));

    pthread_join(thread, NULL);
    close(server);
    return stg_loop_result(&r).next == STG_DONE ? 0 : 1;
}
