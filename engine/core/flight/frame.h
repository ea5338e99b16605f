/* A frame of a flight recording as it is put together (docs/flight.md 3): numbers of 7 bits a byte,
 * differences, texts.  What does not fit any more makes it full, and then it is worth nothing. */
#ifndef HELIO_FLIGHT_FRAME_H
#define HELIO_FLIGHT_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { HELIO_FLIGHT_NUMBER_BYTES = 10 }; /* of the longest number */

/* What a frame is made of. */
typedef enum helio_flight_item {
    HELIO_FLIGHT_OBJECT = 1,
    HELIO_FLIGHT_CHANGED = 2,
    HELIO_FLIGHT_GONE = 3,
    HELIO_FLIGHT_EVENT = 4,
    HELIO_FLIGHT_TRIGGER = 5,
    HELIO_FLIGHT_EVENTS_MISSED = 6,
    HELIO_FLIGHT_LEFT_OUT = 7,
    HELIO_FLIGHT_TORN = 0x80, /* beside OBJECT and CHANGED */
} helio_flight_item;

enum { HELIO_FLIGHT_KEY = 1 }; /* flags of a frame */

typedef struct helio_flight_frame {
    uint8_t *bytes;
    size_t used, limit;
    bool is_full;
} helio_flight_frame;

static inline void helio_flight_put(helio_flight_frame *frame, uint64_t number) {
    if (frame->limit - frame->used < HELIO_FLIGHT_NUMBER_BYTES) {
        frame->is_full = true;
        return;
    }
    for (; number >= 0x80; number >>= 7) {
        frame->bytes[frame->used++] = (uint8_t)(number | 0x80);
    }
    frame->bytes[frame->used++] = (uint8_t)number;
}

/* A difference, modulo 2^64: small ones are short, whichever way they go. */
static inline void helio_flight_put_change(helio_flight_frame *frame, uint64_t difference) {
    helio_flight_put(frame, difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0));
}

static inline void helio_flight_put_text(helio_flight_frame *frame, const char *text) {
    const size_t length = strlen(text);
    helio_flight_put(frame, length);
    if (frame->is_full || frame->limit - frame->used < length) {
        frame->is_full = true;
        return;
    }
    memcpy(frame->bytes + frame->used, text, length);
    frame->used += length;
}

#endif
