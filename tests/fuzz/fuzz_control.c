/* Fuzz target for libFuzzer: what a client of the command ring writes: the words of a command, and
 * the slots themselves. */
#include <stdlib.h>
#include <string.h>

#include "options/control_text.h"
#include "stats/control_ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_words(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    helio_control_request request;
    if (!text) {
        return;
    }
    memcpy(text, data, size);
    text[size] = 0;
    if (helio_control_parse(text, size, &request) == 0) {
        if (!helio_control_is_text(text, size) || request.verb >= HELIO_CONTROL_VERBS_COUNT ||
            request.for_ns < 0 || request.for_ns > HELIO_CONTROL_FOR_MAX_NS ||
            request.rate > HELIO_CONTROL_RATE_MAX || request.level < 0 || request.level > 3) {
            abort();
        }
        for (int key = 0; key < HELIO_CONTROL_KEYS_COUNT; key++) {
            const char *value = request.text[key];
            const size_t length = strnlen(value, HELIO_CONTROL_VALUE_BYTES);
            if (length == HELIO_CONTROL_VALUE_BYTES || !helio_control_is_text(value, length)) {
                abort();
            }
        }
    }
    free(text);
}

static void read_slots(const uint8_t *data, size_t size) {
    helio_control_ring *ring = calloc(1, sizeof *ring);
    helio_control_copy command;
    if (!ring) {
        return;
    }
    memcpy(ring->slots, data, size < sizeof ring->slots ? size : sizeof ring->slots);
    ring->bell = 1;
    int taken = 0;
    while (helio_control_take(ring, &command)) {
        if (++taken > HELIO_CONTROL_SLOTS || command.text_bytes > HELIO_CONTROL_TEXT_BYTES ||
            command.text[command.text_bytes] != 0) {
            abort();
        }
        read_words((const uint8_t *)command.text, command.text_bytes);
        helio_control_answer(&command, -1, command.text);
    }
    if (helio_control_rung(ring)) {
        abort();
    }
    free(ring);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_words(data, size);
    read_slots(data, size);
    return 0;
}
