/* Other traffic: small datagrams at a steady rate, as many a second as are asked for.
 *
 *   flood ADDRESS PORT PACKETS_PER_SECOND SECONDS
 *
 * Sends a batch every millisecond. Prints how many packets went.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define MOST_BATCH 1024
#define BYTES 100

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    static char bytes[BYTES];
    static struct mmsghdr batch[MOST_BATCH];
    struct iovec piece = {bytes, BYTES};
    struct sockaddr_in to = {.sin_family = AF_INET};
    if (argc != 5 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1)
        return 2;
    to.sin_port = htons(atoi(argv[2]));
    double rate = atof(argv[3]), begun = now(), end = begun + atof(argv[4]);
    long sent = 0;
    for (int i = 0; i < MOST_BATCH; i++) {
        batch[i].msg_hdr.msg_name = &to;
        batch[i].msg_hdr.msg_namelen = sizeof to;
        batch[i].msg_hdr.msg_iov = &piece;
        batch[i].msg_hdr.msg_iovlen = 1;
    }
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    for (double at; (at = now()) < end;) {
        long due = (long)((at - begun) * rate) - sent;
        int count = due > MOST_BATCH ? MOST_BATCH : (int)due;
        if (count > 0) {
            int done = sendmmsg(fd, batch, count, 0);
            sent += done > 0 ? done : 0;
        }
        if (due <= MOST_BATCH) {
            struct timespec pause = {0, 1000000};
            nanosleep(&pause, NULL);
        }
    }
    printf("%ld\n", sent);
    return 0;
}
