#include "ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST = 20000, BLOCKS = 96 }; /* below the ephemeral ports */

static unsigned block;

static int claim(int holder, unsigned first) {
    const struct sockaddr_in last = {.sin_family = AF_INET,
                                     .sin_port = htons((uint16_t)(first + TEST_PORTS)),
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return bind(holder, (const struct sockaddr *)&last, sizeof last);
}

/* Before main, because tests count their descriptors. */
__attribute__((constructor)) static void take_block(void) {
    const int holder = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (unsigned i = 0; i < BLOCKS; i++) {
        block = FIRST + ((unsigned)getpid() + i) % BLOCKS * (TEST_PORTS + 1);
        if (claim(holder, block) == 0) {
            return;
        }
    }
    fprintf(stderr, "all %d blocks of test ports are in use\n", BLOCKS);
    exit(1);
}

uint16_t test_port(unsigned n) {
    return (uint16_t)(block + n);
}
