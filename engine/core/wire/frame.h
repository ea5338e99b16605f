/* The bytes of a TCP connection (docs/wire.md section 6): frames, each a head of 4 bytes and a
 * body.  Both ends begin with HELLO; then come PACKET, a PGM packet each, and ALIVE.
 *
 * Decoding trusts nothing: a length is checked before anything is read or waited for. */
#ifndef HELIO_WIRE_FRAME_H
#define HELIO_WIRE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "generated/protocol.h"

enum { HELIO_FRAME_HELLO_BYTES = HELIO_RUM_HEAD + HELIO_RUM_HELLO_SENT };

typedef struct helio_frame {
    uint8_t kind; /* HELIO_RUM_KIND_*, or one not known that may be skipped */
    const uint8_t *body;
    size_t length;
} helio_frame;

typedef enum helio_frame_result {
    HELIO_FRAME_WHOLE,
    HELIO_FRAME_PARTIAL,  /* more is to come */
    HELIO_FRAME_TOO_LONG, /* the body is longer than the reader takes */
    HELIO_FRAME_UNKNOWN,  /* a kind that must be understood and is not, or no frame at all */
} helio_frame_result;

/* Reads the frame at the start of `bytes`; `longest`: of the bodies taken.  Only WHOLE sets *out,
 * which points into `bytes`; the next frame begins HELIO_RUM_HEAD + out->length further on. */
helio_frame_result helio_frame_decode(const uint8_t *bytes, size_t length, size_t longest,
                                      helio_frame *out);

/* Writes the head of a frame; `length` at most 65535. */
void helio_frame_head(uint8_t out[HELIO_RUM_HEAD], uint8_t kind, size_t length);

/* The first frame of each end. */
typedef struct helio_hello {
    uint8_t version;
    uint8_t role;              /* HELIO_RUM_ROLE_* */
    uint16_t features;         /* HELIO_RUM_FEATURE_* */
    uint64_t instance;         /* its number, the same on all connections; 0: none */
    uint32_t max_packet_bytes; /* largest PGM packet it sends and takes */
    uint32_t timeout_ms;       /* it breaks off when it hears nothing for as long */
} helio_hello;

void helio_hello_encode(uint8_t out[HELIO_FRAME_HELLO_BYTES], const helio_hello *hello);
/* False: the frame is no hello of any version. */
bool helio_hello_decode(const helio_frame *frame, helio_hello *out);

#endif
