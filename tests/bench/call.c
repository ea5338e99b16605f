/* Counts instructions of one call; callgrind runs it, because its counts are exact.
 *
 *   call PART SCHEME [CALLS]
 *
 * PART is send, receive (of one lone message of 64 bytes) or idle (a receive that finds nothing),
 * SCHEME udp, tcp or shm.  Two instances of mode poll in one process, at level 0.  callgrind
 * collects within `measured` only and dumps after each call, so that the least is free of the
 * chores that fall due every millisecond; the other end is polled before. */
#include <heliograph/heliograph.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/instance.h"

enum { SIZE = 64, WARM_UP = 300, TRIES = 1000000 };

static helio_instance *sending, *receiving;
static helio_transmitter *transmitter;
static helio_receiver *receiver;

static void fail(const char *what) {
    fprintf(stderr, "call: %s: %s\n", what, helio_error_text());
    exit(1);
}

static int send_one(void) {
    static const char data[SIZE];
    return helio_transmitter_send(transmitter, data, SIZE);
}

static int receive_one(void) {
    helio_message message;
    return helio_receiver_receive(receiver, &message, 1, 0);
}

/* callgrind knows it by name. */
__attribute__((noinline)) int measured(int (*call)(void));
int measured(int (*call)(void)) {
    const int result = call();
    __asm__ volatile(""); /* no tail call: the function ends after the call */
    return result;
}

static int plain(int (*call)(void)) {
    return call();
}

static void drain(void) {
    for (long tries = 0; receive_one() == 0; tries++) {
        if (tries == TRIES || helio_instance_poll(sending) < 0) {
            fail("a message is missing");
        }
    }
}

static void check(int result, const char *what) {
    if (result < 0) {
        fail(what);
    }
}

static void pass(const char *part, int (*run)(int (*)(void))) {
    for (int i = 0; i < 3; i++) { /* the chores are done, what they left is, and not due again */
        check(receive_one(), "receive");
        check(helio_instance_poll(sending), "poll");
    }
    if (strcmp(part, "idle") == 0) {
        check(run(receive_one), part);
        return;
    }
    if (strcmp(part, "send") == 0) {
        sending->transmit_due_ns = HELIO_NEVER; /* however slowly time passes */
        check(run(send_one), part);
        sending->transmit_due_ns = 0;
        drain();
        return;
    }
    check(send_one(), "send");
    const int got = run(receive_one);
    check(got, part);
    if (got == 0) {
        drain();
    }
}

static void open_all(const char *scheme) {
    char endpoint[64];
    const char *format = strcmp(scheme, "udp") == 0   ? "rmm+unicast://127.0.0.1:%d"
                         : strcmp(scheme, "tcp") == 0 ? "rum://127.0.0.1:%d"
                                                      : "shm://call-%d";
    snprintf(endpoint, sizeof endpoint, format, 20000 + getpid() % 10000);
    if (helio_instance_create("mode=poll&level=0", &receiving) != 0 ||
        helio_instance_create("mode=poll&level=0", &sending) != 0 ||
        helio_receiver_create(receiving, endpoint, "BENCH", NULL, NULL, &receiver) != 0 ||
        helio_transmitter_create(sending, endpoint, "BENCH", "linger=0", &transmitter) != 0) {
        fail("instance");
    }
}

int main(int argc, char **argv) {
    const long calls = argc > 3 ? strtol(argv[3], NULL, 10) : 101;
    if (argc < 3 || calls < 1) {
        fprintf(stderr, "usage: call send|receive|idle udp|tcp|shm [CALLS]\n");
        return 2;
    }
    open_all(argv[2]);
    for (long tries = 0; send_one() != 0; tries++) { /* a connection is being made */
        if (tries == TRIES || receive_one() < 0 || helio_instance_poll(sending) < 0) {
            fail("send");
        }
    }
    drain();
    for (int i = 0; i < WARM_UP; i++) {
        pass(argv[1], plain);
    }
    for (long i = 0; i < calls; i++) {
        pass(argv[1], measured);
    }
    helio_transmitter_destroy(transmitter);
    helio_receiver_destroy(receiver);
    helio_instance_destroy(sending);
    helio_instance_destroy(receiving);
    return 0;
}
