/* What one message costs in instructions, to be run under callgrind, which counts them exactly.
 *
 *   instructions LEVEL [MESSAGES [SCHEME]]
 *
 * One process, mode poll, SCHEME udp (unicast) or tcp on the loopback: messages of 64 bytes are
 * sent in lists of 512 and taken as they come.  callgrind collects within `measured` only: after the
 * warm-up, before anything is closed.  Instructions of the kernel are not counted, nor are chores:
 * they go by the clock, and callgrind makes time pass some fifty times as fast. */
#include <heliograph/heliograph.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/instance.h"

enum { SIZE = 64, LIST = 512 };

static helio_instance *instance;
static helio_transmitter *transmitter;
static helio_receiver *receiver;
static helio_message taken[LIST];
static unsigned long touched;

static void fail(const char *what) {
    fprintf(stderr, "instructions: %s: %s\n", what, helio_error_text());
    exit(1);
}

static long take(void) {
    const int got = helio_receiver_receive(receiver, taken, LIST, 0);
    if (got < 0) {
        fail("receive");
    }
    for (int i = 0; i < got; i++) {
        touched += *(const unsigned char *)taken[i].data;
    }
    return got;
}

static void pass(long messages) {
    static char data[SIZE];
    helio_buffer list[LIST];
    for (int i = 0; i < LIST; i++) {
        list[i] = (helio_buffer){data, SIZE};
    }
    long received = 0;
    for (long sent = 0; sent < messages;) {
        size_t accepted = 0;
        const int status = helio_transmitter_send_many(transmitter, list, LIST, &accepted);
        if (status != 0 && status != HELIO_ERR_WOULD_BLOCK) { /* a connection is being made */
            fail("send");
        }
        sent += (long)accepted;
        long tries = 0;
        do {
            received += take();
            if (++tries > 1000000) {
                fail("messages are missing");
            }
        } while (received < sent);
    }
}

/* callgrind knows it by name. */
__attribute__((noinline)) void measured(long messages);
void measured(long messages) {
    instance->chores_due_ns = HELIO_NEVER; /* under callgrind they would be due with each list */
    pass(messages);
    instance->chores_due_ns = 0;
}

int main(int argc, char **argv) {
    const bool is_tcp = argc > 3 && strcmp(argv[3], "tcp") == 0;
    const long messages = argc > 2 ? strtol(argv[2], NULL, 10) / LIST * LIST : 40 * LIST;
    char options[64], endpoint[64];
    if (argc < 2 || strlen(argv[1]) != 1 || messages < LIST) {
        fprintf(stderr,
                "usage: instructions LEVEL [MESSAGES [udp|tcp]]\n  level 0 to 3, messages at least "
                "%d\n",
                LIST);
        return 2;
    }
    snprintf(options, sizeof options, "mode=poll&level=%s", argv[1]);
    snprintf(endpoint, sizeof endpoint, "%s://127.0.0.1:%d", is_tcp ? "rum" : "rmm+unicast",
             20000 + getpid() % 10000);
    if (helio_instance_create(options, &instance) != 0 ||
        helio_receiver_create(instance, endpoint, "BENCH", NULL, NULL, &receiver) != 0 ||
        helio_transmitter_create(instance, endpoint, "BENCH", "linger=0", &transmitter) != 0) {
        fail("instance");
    }
    pass(4 * LIST);
    measured(messages);
    printf("{\"messages\": %ld}\n", messages);
    helio_transmitter_destroy(transmitter);
    helio_receiver_destroy(receiver);
    helio_instance_destroy(instance);
    return 0;
}
