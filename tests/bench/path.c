/* The way of one message through the engine's files, to be run under callgrind, which knows who calls whom.
 *
 *   path WAY [MESSAGES]        WAY: queue (mode thread), idle (the same without messages) or direct (mode poll)
 *
 * One thread does both halves: the application's in `submitted`, the engine's in `sent`.  callgrind collects
 * within these two only.  Each message is alone: it leaves in a packet of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <heliograph/heliograph.h>

#include "runtime/instance.h"
#include "runtime/transmitter.h"
#include "runtime/tx_lane.h"

enum { SIZE = 64, QUEUE_BYTES = 1 << 20 };

static helio_instance *instance;
static helio_transmitter *transmitter;

/* callgrind knows them by name. */
__attribute__((noinline)) void submitted(void);
__attribute__((noinline)) void sent(helio_moment moment);

static void fail(const char *what) {
    fprintf(stderr, "path: %s: %s\n", what, helio_error_text());
    exit(1);
}

void submitted(void) {
    static char data[SIZE];
    if (helio_transmitter_send(transmitter, data, SIZE) != 0) {
        fail("send");
    }
}

void sent(helio_moment moment) {
    helio_tx_lane_work(transmitter->lane, moment);
}

static void pass(long messages, char way) {
    for (long i = 0; i < messages; i++) {
        if (way == 'd') {
            instance->polling = true; /* as a listener sends: the cycle comes later */
            submitted();
            instance->polling = false;
            continue;
        }
        instance->mode = HELIO_MODE_THREAD;
        if (way == 'q') {
            submitted();
        }
        instance->mode = HELIO_MODE_POLL;
        sent(helio_clock_read(&instance->clock));
    }
}

int main(int argc, char **argv) {
    const char way = argc > 1 ? argv[1][0] : 0;
    const long messages = argc > 2 ? strtol(argv[2], NULL, 10) : 256;
    char endpoint[64];
    if ((way != 'q' && way != 'i' && way != 'd') || messages < 1) {
        fprintf(stderr, "usage: path queue|idle|direct [MESSAGES]\n");
        return 2;
    }
    snprintf(endpoint, sizeof endpoint, "rmm+unicast://127.0.0.1:%d", 20000 + getpid() % 10000);
    if (helio_instance_create("mode=poll", &instance) != 0 ||
        helio_transmitter_create(instance, endpoint, "BENCH", "linger=0", &transmitter) != 0 ||
        (way != 'd' && helio_submit_queue_init(&transmitter->queue, QUEUE_BYTES) != 0)) {
        fail("instance");
    }
    pass(messages, way);
    printf("{\"messages\": %ld}\n", messages);
    helio_transmitter_destroy(transmitter);
    helio_instance_destroy(instance);
    return 0;
}
