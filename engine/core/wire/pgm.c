/* Decoding of PGM packets.  Layouts: RFC 3208 section 8 (options: pgm_options.c); the flag bits are
 * those all implementations use. */
#include "wire/pgm.h"

#include <string.h>

#include "base/endian.h"
#include "stats/stats.h"
#include "wire/checksum.h"
#include "wire/pgm_options.h"

/* What is left to read of a packet. */
typedef struct cursor {
    const uint8_t *at;
    const uint8_t *end;
} cursor;

static size_t left(const cursor *c) {
    return (size_t)(c->end - c->at);
}

/* Bytes of the type's header after the common one, before addresses; -1: no such type. */
static int type_header_bytes(uint8_t type) {
    switch (type) {
    case HELIO_PGM_TYPE_SPM:
        return 12;
    case HELIO_PGM_TYPE_ODATA:
    case HELIO_PGM_TYPE_RDATA:
    case HELIO_PGM_TYPE_POLR:
    case HELIO_PGM_TYPE_POLL:
    case HELIO_PGM_TYPE_ACK:
        return 8;
    case HELIO_PGM_TYPE_NAK:
    case HELIO_PGM_TYPE_NNAK:
    case HELIO_PGM_TYPE_NCF:
        return 4;
    case HELIO_PGM_TYPE_SPMR:
        return 0;
    default:
        return -1;
    }
}

/* These go from receivers to the source, so their ports are swapped. */
static bool is_upstream(uint8_t type) {
    return type == HELIO_PGM_TYPE_NAK || type == HELIO_PGM_TYPE_NNAK ||
           type == HELIO_PGM_TYPE_SPMR || type == HELIO_PGM_TYPE_POLR || type == HELIO_PGM_TYPE_ACK;
}

static bool is_data(uint8_t type) {
    return type == HELIO_PGM_TYPE_ODATA || type == HELIO_PGM_TYPE_RDATA;
}

static bool is_nak(uint8_t type) {
    return type == HELIO_PGM_TYPE_NAK || type == HELIO_PGM_TYPE_NNAK || type == HELIO_PGM_TYPE_NCF;
}

/* Reads AFI, reserved and NLA. */
static helio_pgm_refusal read_address(cursor *c, helio_address *out) {
    if (left(c) < 8) {
        return HELIO_PGM_BAD_SIZE;
    }
    const uint16_t afi = helio_get16(c->at);
    if (afi != HELIO_PGM_AFI_IPV4 && afi != HELIO_PGM_AFI_IPV6) {
        return HELIO_PGM_BAD_ADDRESS;
    }
    const size_t bytes = afi == HELIO_PGM_AFI_IPV4 ? 4 : 16;
    if (left(c) < 4 + bytes) {
        return HELIO_PGM_BAD_SIZE;
    }
    *out = (helio_address){.family = afi == HELIO_PGM_AFI_IPV4 ? 4 : 6};
    memcpy(out->ip, c->at + 4, bytes);
    c->at += 4 + bytes;
    return HELIO_PGM_ACCEPTED;
}

static helio_pgm_refusal read_addresses(cursor *c, helio_pgm_packet *out) {
    helio_pgm_refusal refusal = HELIO_PGM_ACCEPTED;
    if (out->type == HELIO_PGM_TYPE_SPM) {
        return read_address(c, &out->path);
    }
    if (is_nak(out->type)) {
        refusal = read_address(c, &out->source);
        if (!refusal) {
            refusal = read_address(c, &out->group);
        }
        if (!refusal && out->source.family != out->group.family) {
            refusal = HELIO_PGM_BAD_ADDRESS;
        }
    } else if (out->type == HELIO_PGM_TYPE_POLL) {
        refusal = read_address(c, &out->path);
        if (!refusal) {
            if (left(c) < 12) {
                return HELIO_PGM_BAD_SIZE;
            }
            out->poll.backoff_us = helio_get32(c->at);
            out->poll.random = helio_get32(c->at + 4);
            out->poll.mask = helio_get32(c->at + 8);
            c->at += 12;
        }
    }
    return refusal;
}

static void read_type_header(const uint8_t *at, helio_pgm_packet *out) {
    switch (out->type) {
    case HELIO_PGM_TYPE_SPM:
        out->lead = helio_get32(at + 8);
        /* fall through */
    case HELIO_PGM_TYPE_ODATA:
    case HELIO_PGM_TYPE_RDATA:
        out->trail = helio_get32(at + 4);
        /* fall through */
        break;
    case HELIO_PGM_TYPE_POLL:
        out->poll.subtype = helio_get16(at + 6);
        /* fall through */
    case HELIO_PGM_TYPE_POLR:
        out->poll.round = helio_get16(at + 4);
        break;
    case HELIO_PGM_TYPE_ACK:
        out->bitmap = helio_get32(at + 4);
        break;
    default:
        break;
    }
    if (out->type != HELIO_PGM_TYPE_SPMR) {
        out->sequence = helio_get32(at);
    }
}

static helio_pgm_refusal read_rest(cursor *c, size_t tsdu_bytes, helio_pgm_packet *out) {
    helio_pgm_refusal refusal = read_addresses(c, out);
    if (!refusal && (out->flags & HELIO_PGM_FLAG_OPTIONS)) {
        refusal = helio_pgm_read_options(&c->at, c->end, out);
    }
    if (refusal) {
        return refusal;
    }
    if (left(c) != tsdu_bytes || (tsdu_bytes && !is_data(out->type))) {
        return HELIO_PGM_BAD_SIZE;
    }
    if ((out->options & HELIO_PGM_HAS_FRAGMENT) &&
        tsdu_bytes > out->fragment.length - out->fragment.offset) {
        return HELIO_PGM_BAD_OPTIONS;
    }
    out->tsdu = c->at;
    out->tsdu_bytes = (uint32_t)tsdu_bytes;
    return HELIO_PGM_ACCEPTED;
}

void helio_pgm_sum_data(void *packet, size_t length) {
    uint8_t *bytes = packet;
    if (length >= HELIO_PGM_DATA_HEADER && bytes[6] == 0 && bytes[7] == 0 &&
        (bytes[4] == HELIO_PGM_TYPE_ODATA || bytes[4] == HELIO_PGM_TYPE_RDATA)) {
        const uint16_t sum = helio_checksum_finish(helio_checksum_part(packet, length));
        memcpy(bytes + 6, &sum, sizeof sum);
    }
}

static helio_pgm_refusal decode(const void *datagram, size_t length, bool has_sum,
                                helio_pgm_packet *out) {
    const uint8_t *packet = datagram;
    if (length < HELIO_PGM_HEADER) {
        return HELIO_PGM_BAD_SIZE;
    }
    if (packet[4] & 0xF0) {
        return HELIO_PGM_BAD_VERSION;
    }
    const uint8_t type = packet[4];
    const int header = type_header_bytes(type);
    if (header < 0) {
        return HELIO_PGM_BAD_TYPE;
    }
    if (length < HELIO_PGM_HEADER + (size_t)header) {
        return HELIO_PGM_BAD_SIZE;
    }
    if (!helio_pgm_has_right_sum(packet, length, has_sum && is_data(type))) {
        return HELIO_PGM_BAD_CHECKSUM;
    }

    const bool upstream = is_upstream(type);
    memcpy(out->tsi.gsi, packet + 8, HELIO_GSI_BYTES);
    out->tsi.port = helio_get16(packet + (upstream ? HELIO_PGM_PORT_BYTES : 0));
    out->destination_port = helio_get16(packet + (upstream ? 0 : HELIO_PGM_PORT_BYTES));
    out->type = type;
    out->flags = packet[5];
    out->options = 0;
    out->list_count = 0;
    out->notices_count = 0;
    out->grants_count = 0;
    read_type_header(packet + HELIO_PGM_HEADER, out);
    cursor c = {packet + HELIO_PGM_HEADER + header, packet + length};
    return read_rest(&c, helio_get16(packet + 14), out);
}

helio_pgm_refusal helio_pgm_decode(const void *datagram, size_t length, helio_pgm_packet *out) {
    return decode(datagram, length, true, out);
}

helio_pgm_refusal helio_pgm_decode_unsummed(const void *datagram, size_t length,
                                            helio_pgm_packet *out) {
    return decode(datagram, length, false, out);
}

void helio_pgm_count_refusal(helio_instance_stats *instance, helio_pgm_refusal refusal) {
    switch (refusal) {
    case HELIO_PGM_ACCEPTED:
        break;
    case HELIO_PGM_BAD_SIZE:
        helio_count(&instance->invalid_packets_size, 1);
        break;
    case HELIO_PGM_BAD_VERSION:
        helio_count(&instance->invalid_packets_version, 1);
        break;
    case HELIO_PGM_BAD_TYPE:
        helio_count(&instance->invalid_packets_type, 1);
        break;
    case HELIO_PGM_BAD_CHECKSUM:
        helio_count(&instance->invalid_packets_checksum, 1);
        break;
    case HELIO_PGM_BAD_OPTIONS:
        helio_count(&instance->invalid_packets_options, 1);
        break;
    case HELIO_PGM_BAD_ADDRESS:
        helio_count(&instance->invalid_packets_address, 1);
        break;
    case HELIO_PGM_BAD_PAYLOAD:
        helio_count(&instance->invalid_packets_payload, 1);
        break;
    }
}

bool helio_pgm_peek_port(const uint8_t *packet, size_t length, uint16_t *port) {
    if (length < HELIO_PGM_HEADER) {
        return false;
    }
    *port = helio_get16(packet + (is_upstream(packet[4]) ? HELIO_PGM_PORT_BYTES : 0));
    return true;
}
