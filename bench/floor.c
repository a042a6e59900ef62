/* The least that a connect scan costs: non-blocking connects over one epoll descriptor, in C.
 *
 *   floor WINDOW SOURCE FIRST LAST ADDRESS...
 *
 * Where SOURCE is an address, each socket is bound to it and to a port of its own; "-": the kernel
 * chooses both, connect by connect.
 * A refused socket is asked for its result by connect(), which also leaves it as good as new, so it
 * is used again. Prints "closed N other N". It reads no error queue and gives up on what is silent
 * for two seconds: it is a floor for closed ports, not a scanner.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#define MOST_EVENTS 4096
#define OWN_PORT 40001

static struct sockaddr_in targets[64], *at, *flights;
static int target_count, first, last, port, target;
static long closed, other;

static int next_flow(struct sockaddr_in *to)
{
    if (target >= target_count)
        return 0;
    *to = targets[target];
    to->sin_port = htons(port);
    if (++port > last) {
        port = first;
        target++;
    }
    return 1;
}

/* Start the next flow on a socket; 1 while it is out, 0 when there is nothing left. */
static int start(int fd)
{
    struct sockaddr_in to;
    while (next_flow(&to)) {
        if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0 && errno == EINPROGRESS) {
            flights[fd] = to;
            return 1;
        }
        other++;
    }
    close(fd);
    return 0;
}

static void bind_to(int fd, const char *source, int own)
{
    struct sockaddr_in me = {.sin_family = AF_INET, .sin_port = htons(own)};
    if (inet_pton(AF_INET, source, &me.sin_addr) == 1 &&
        bind(fd, (struct sockaddr *)&me, sizeof me) < 0) {
        perror("bind");
        exit(1);
    }
}

int main(int argc, char **argv)
{
    static struct epoll_event events[MOST_EVENTS];
    struct rlimit files;
    int window = atoi(argv[1]), out = 0, poll = epoll_create1(0);
    first = port = atoi(argv[3]);
    last = atoi(argv[4]);
    for (int i = 5; i < argc && target_count < 64; i++) {
        at = &targets[target_count++];
        at->sin_family = AF_INET;
        inet_pton(AF_INET, argv[i], &at->sin_addr);
    }
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    flights = calloc(window + 64, sizeof *flights);
    for (int i = 0; i < window; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        bind_to(fd, argv[2], OWN_PORT + 2 * i);
        struct epoll_event wanted = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.fd = fd};
        epoll_ctl(poll, EPOLL_CTL_ADD, fd, &wanted);
        out += start(fd);
    }
    while (out > 0) {
        int ready = epoll_wait(poll, events, MOST_EVENTS, 2000);
        if (ready <= 0)
            break;
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            struct sockaddr *to = (struct sockaddr *)&flights[fd];
            if (connect(fd, to, sizeof(struct sockaddr_in)) < 0 && errno == EINPROGRESS)
                continue;
            if (errno == ECONNREFUSED)
                closed++;
            else
                other++;
            out -= 1 - start(fd);
        }
    }
    printf("closed %ld other %ld\n", closed, other + out);
    return 0;
}
