/* Many open TCP ports, for scanners to find: listens, accepts, and never speaks first.
 *
 *   doors FIRST LAST
 *
 * Prints "ready" once all listen. A connection is kept until the peer ends it and then closed by a
 * reset, so that no TIME_WAIT of one run is in the way of the next. Ends at the end of its input.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_EVENTS 1024

static char *is_door;

static void watch(int poll, int fd)
{
    struct epoll_event wanted = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(poll, EPOLL_CTL_ADD, fd, &wanted);
}

static int door(int number)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(number)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof here) || listen(fd, 64)) {
        perror("doors");
        exit(1);
    }
    is_door[fd] = 1;
    return fd;
}

int main(int argc, char **argv)
{
    static struct epoll_event events[MOST_EVENTS];
    struct linger reset = {1, 0};
    struct rlimit files;
    char byte[256];
    int poll = epoll_create1(0);
    (void)argc;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    is_door = calloc(files.rlim_max, 1);
    for (int number = atoi(argv[1]); number <= atoi(argv[2]); number++)
        watch(poll, door(number));
    watch(poll, 0);
    puts("ready");
    fflush(stdout);
    for (;;) {
        int ready = epoll_wait(poll, events, MOST_EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd, peer;
            if (fd == 0)
                return 0;
            if (!is_door[fd]) {
                ssize_t got = read(fd, byte, sizeof byte);
                if (got == 0 || (got < 0 && errno != EAGAIN))
                    close(fd);
                continue;
            }
            while ((peer = accept4(fd, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                setsockopt(peer, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
                watch(poll, peer);
            }
        }
    }
}
