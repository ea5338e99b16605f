#include "wire/frame.h"

#include "base/endian.h"

enum { MUST_UNDERSTAND = 0x80 };

/* Places within the head and within the body of HELLO. */
enum { KIND = 0, LENGTH = 2 };
enum {
    MAGIC = 0,
    VERSION = 4,
    ROLE = 5,
    FEATURES = 6,
    MAX_PACKET = 8,
    TIMEOUT = 12,
    INSTANCE = 16
};

static bool is_known(uint8_t kind) {
    return kind == HELIO_RUM_KIND_PACKET || kind == HELIO_RUM_KIND_ALIVE ||
           kind == HELIO_RUM_KIND_HELLO || kind == HELIO_RUM_KIND_CROSS;
}

helio_frame_result helio_frame_decode(const uint8_t *bytes, size_t length, size_t longest,
                                      helio_frame *out) {
    if (length < HELIO_RUM_HEAD) {
        return HELIO_FRAME_PARTIAL;
    }
    const uint8_t kind = bytes[KIND];
    const size_t body = helio_get16(bytes + LENGTH);
    if (!is_known(kind) && (kind & MUST_UNDERSTAND || kind == 0)) {
        return HELIO_FRAME_UNKNOWN;
    }
    if (body > longest) {
        return HELIO_FRAME_TOO_LONG;
    }
    if (length - HELIO_RUM_HEAD < body) {
        return HELIO_FRAME_PARTIAL;
    }
    *out = (helio_frame){.kind = kind, .body = bytes + HELIO_RUM_HEAD, .length = body};
    return HELIO_FRAME_WHOLE;
}

void helio_frame_head(uint8_t out[HELIO_RUM_HEAD], uint8_t kind, size_t length) {
    out[KIND] = kind;
    out[1] = 0;
    helio_put16(out + LENGTH, (uint16_t)length);
}

void helio_hello_encode(uint8_t out[HELIO_FRAME_HELLO_BYTES], const helio_hello *hello) {
    memset(out, 0, HELIO_FRAME_HELLO_BYTES);
    helio_frame_head(out, HELIO_RUM_KIND_HELLO, HELIO_RUM_HELLO_SENT);
    uint8_t *body = out + HELIO_RUM_HEAD;
    helio_put32(body + MAGIC, HELIO_RUM_MAGIC);
    body[VERSION] = hello->version;
    body[ROLE] = hello->role;
    helio_put16(body + FEATURES, hello->features);
    helio_put32(body + MAX_PACKET, hello->max_packet_bytes);
    helio_put32(body + TIMEOUT, hello->timeout_ms);
    helio_put64(body + INSTANCE, hello->instance);
}

bool helio_hello_decode(const helio_frame *frame, helio_hello *out) {
    if (frame->kind != HELIO_RUM_KIND_HELLO || frame->length < HELIO_RUM_HELLO ||
        helio_get32(frame->body + MAGIC) != HELIO_RUM_MAGIC) {
        return false;
    }
    *out = (helio_hello){
        .version = frame->body[VERSION],
        .role = frame->body[ROLE],
        .features = helio_get16(frame->body + FEATURES),
        .max_packet_bytes = helio_get32(frame->body + MAX_PACKET),
        .timeout_ms = helio_get32(frame->body + TIMEOUT),
        .instance = frame->length >= HELIO_RUM_HELLO_SENT ? helio_get64(frame->body + INSTANCE) : 0,
    };
    return true;
}
