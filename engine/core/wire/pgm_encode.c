/* Encoding of the PGM packets that a source and a receiver send. */
#include <assert.h>
#include <string.h>

#include "base/endian.h"
#include "wire/checksum.h"
#include "wire/pgm.h"

/* Offsets within the common header. */
enum { AT_TYPE = 4, AT_FLAGS = 5, AT_CHECKSUM = 6, AT_GSI = 8, AT_TSDU_LENGTH = 14, AT_TRAIL = 20 };

enum { JOIN_BYTES = 8 };

static void put_header(uint8_t *out, const helio_pgm_session *session, uint8_t type,
                       bool upstream) {
    helio_put16(out, upstream ? session->destination_port : session->tsi.port);
    helio_put16(out + HELIO_PGM_PORT_BYTES,
                upstream ? session->tsi.port : session->destination_port);
    out[AT_TYPE] = type;
    out[AT_FLAGS] = 0;
    helio_put16(out + AT_CHECKSUM, 0);
    memcpy(out + AT_GSI, session->tsi.gsi, HELIO_GSI_BYTES);
    helio_put16(out + AT_TSDU_LENGTH, 0);
}

static uint8_t *put_address(uint8_t *at, const helio_address *address) {
    const bool six = address->family == 6;
    const size_t bytes = six ? 16 : 4;
    helio_put16(at, six ? HELIO_PGM_AFI_IPV6 : HELIO_PGM_AFI_IPV4);
    helio_put16(at + 2, 0);
    memcpy(at + 4, address->ip, bytes);
    return at + 4 + bytes;
}

static uint8_t *put_options_length(uint8_t *at, size_t options_bytes) {
    at[0] = HELIO_PGM_OPTION_LENGTH;
    at[1] = 4;
    helio_put16(at + 2, (uint16_t)(4 + options_bytes));
    return at + 4;
}

static void put_option(uint8_t *at, uint8_t option, size_t bytes) {
    at[0] = option | HELIO_PGM_OPTION_END; /* one that others follow has it taken off again */
    at[1] = (uint8_t)bytes;
    at[2] = 0;
    at[3] = 0;
}

static void put_checksum(uint8_t *packet, uint32_t part) {
    const uint16_t checksum = helio_checksum_finish(part);
    memcpy(packet + AT_CHECKSUM, &checksum, sizeof checksum);
}

static size_t seal(uint8_t *packet, const uint8_t *end) {
    const size_t length = (size_t)(end - packet);
    put_checksum(packet, helio_checksum_part(packet, length));
    return length;
}

size_t helio_pgm_encode_spm(void *out, const helio_pgm_session *session, const helio_pgm_spm *spm,
                            const helio_address *path) {
    uint8_t *packet = out;
    put_header(packet, session, HELIO_PGM_TYPE_SPM, false);
    helio_put32(packet + 16, spm->sequence);
    helio_put32(packet + 20, spm->trail);
    helio_put32(packet + 24, spm->lead);
    uint8_t *at = put_address(packet + 28, path);
    if (spm->fin || spm->offers_history) {
        packet[AT_FLAGS] = HELIO_PGM_FLAG_OPTIONS;
        at = put_options_length(at, (spm->offers_history ? JOIN_BYTES : 0) + (spm->fin ? 4 : 0));
    }
    if (spm->offers_history) {
        put_option(at, HELIO_PGM_OPTION_JOIN, JOIN_BYTES);
        helio_put32(at + 4, spm->join);
        if (spm->fin)
            at[0] &= (uint8_t)~HELIO_PGM_OPTION_END;
        at += JOIN_BYTES;
    }
    if (spm->fin) {
        put_option(at, HELIO_PGM_OPTION_FIN, 4);
        at += 4;
    }
    return seal(packet, at);
}

size_t helio_pgm_encode_nak(void *out, const helio_pgm_session *session, uint8_t type,
                            const uint32_t *sequences, size_t count, const helio_address *source,
                            const helio_address *group) {
    assert(count >= 1 && count <= 1 + HELIO_PGM_NAK_LIST_MAX);
    uint8_t *packet = out;
    put_header(packet, session, type, type != HELIO_PGM_TYPE_NCF);
    helio_put32(packet + 16, sequences[0]);
    uint8_t *at = put_address(packet + 20, source);
    at = put_address(at, group);
    if (count > 1) {
        const size_t bytes = 4 + 4 * (count - 1);
        packet[AT_FLAGS] = HELIO_PGM_FLAG_OPTIONS | HELIO_PGM_FLAG_NETWORK;
        at = put_options_length(at, bytes);
        put_option(at, HELIO_PGM_OPTION_NAK_LIST, bytes);
        for (size_t i = 1; i < count; i++)
            helio_put32(at + 4 * i, sequences[i]);
        at += bytes;
    }
    return seal(packet, at);
}

size_t helio_pgm_encode_spmr(void *out, const helio_pgm_session *session) {
    uint8_t *packet = out;
    put_header(packet, session, HELIO_PGM_TYPE_SPMR, true);
    return seal(packet, packet + HELIO_PGM_HEADER);
}

/* The field is 0 before. */
static void put_data_checksum(uint8_t *packet, size_t header, uint32_t payload_sum) {
    if (payload_sum != HELIO_PGM_NO_SUM)
        put_checksum(packet, helio_checksum_add(helio_checksum_part(packet, header), payload_sum));
}

size_t helio_pgm_encode_data(void *out, const helio_pgm_session *session, uint32_t sequence,
                             uint32_t trail, const helio_pgm_fragment *fragment, size_t tsdu_bytes,
                             uint32_t payload_sum) {
    uint8_t *packet = out;
    size_t header = HELIO_PGM_DATA_HEADER;
    put_header(packet, session, HELIO_PGM_TYPE_ODATA, false);
    helio_put16(packet + AT_TSDU_LENGTH, (uint16_t)tsdu_bytes);
    helio_put32(packet + 16, sequence);
    helio_put32(packet + AT_TRAIL, trail);
    if (fragment) {
        packet[AT_FLAGS] = HELIO_PGM_FLAG_OPTIONS;
        uint8_t *at = put_options_length(packet + header, HELIO_PGM_FRAGMENT_OPTION);
        put_option(at, HELIO_PGM_OPTION_FRAGMENT, HELIO_PGM_FRAGMENT_OPTION);
        helio_put32(at + 4, fragment->first);
        helio_put32(at + 8, fragment->offset);
        helio_put32(at + 12, fragment->length);
        header = HELIO_PGM_FRAGMENT_HEADER;
    }
    put_data_checksum(packet, header, payload_sum);
    return header + tsdu_bytes;
}

void helio_pgm_make_repair(void *out, uint32_t trail, uint32_t payload_sum) {
    uint8_t *packet = out;
    const size_t header = packet[AT_FLAGS] & HELIO_PGM_FLAG_OPTIONS ? HELIO_PGM_FRAGMENT_HEADER
                                                                    : HELIO_PGM_DATA_HEADER;
    packet[AT_TYPE] = HELIO_PGM_TYPE_RDATA;
    helio_put32(packet + AT_TRAIL, trail);
    helio_put16(packet + AT_CHECKSUM, 0);
    put_data_checksum(packet, header, payload_sum);
}
