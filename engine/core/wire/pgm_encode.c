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

/* ---- options: OPT_LENGTH, then those of consequence to the network, then the others ---- */

typedef struct chain {
    uint8_t *packet;
    uint8_t *start;
    uint8_t *last; /* option put last; NULL: none yet */
    uint8_t *at;
} chain;

static chain begin_chain(uint8_t *packet, uint8_t *at) {
    return (chain){.packet = packet, .start = at, .at = at};
}

/* Puts an option's head with room for the rest of it. */
static uint8_t *put_option(chain *c, uint8_t option, size_t bytes, uint8_t flags) {
    if (!c->last) {
        c->at += 4;
    }
    uint8_t *at = c->last = c->at;
    memset(at, 0, bytes);
    at[0] = option;
    at[1] = (uint8_t)bytes;
    c->packet[AT_FLAGS] |= HELIO_PGM_FLAG_OPTIONS | flags;
    c->at += bytes;
    return at;
}

/* Returns where the packet goes on. */
static uint8_t *end_chain(chain *c) {
    if (c->last) {
        c->last[0] |= HELIO_PGM_OPTION_END;
        c->start[0] = HELIO_PGM_OPTION_LENGTH;
        c->start[1] = 4;
        helio_put16(c->start + 2, (uint16_t)(c->at - c->start));
    }
    return c->at;
}

static void put_backoff(chain *c, uint32_t interval_us) {
    uint8_t *at = put_option(c, HELIO_PGM_OPTION_NAK_BO_IVL, 12, HELIO_PGM_FLAG_NETWORK);
    helio_put32(at + 4, interval_us); /* not found by a poll: to be used at once */
}

static void put_report(chain *c, const helio_pgm_report *report) {
    const size_t bytes = report->receiver.family == 6 ? 36 : 24;
    uint8_t *at = put_option(c, HELIO_PGM_OPTION_CR, bytes, HELIO_PGM_FLAG_NETWORK);
    at[3] = report->fields;
    helio_put32(at + 4, report->reference);
    helio_put16(at + 8, report->worst_link);
    helio_put16(at + 10, report->worst_path);
    helio_put16(at + 12, report->receiver_loss);
    put_address(at + 16, &report->receiver);
}

static void put_name(uint8_t *at, const char *name, size_t bytes) {
    if (bytes > 0) {
        memcpy(at, name, bytes);
    }
}

static size_t fitting(size_t name_bytes, size_t limit) {
    return name_bytes < limit ? name_bytes : limit;
}

static void put_acknowledge(chain *c, const helio_pgm_acknowledge *acknowledge) {
    const size_t name_bytes = fitting(acknowledge->name_bytes, HELIO_PGM_ACKNOWLEDGE_NAME_MAX);
    uint8_t *at =
        put_option(c, HELIO_PGM_OPTION_ACKNOWLEDGE, HELIO_PGM_ACKNOWLEDGE_OPTION + name_bytes, 0);
    at[4] = acknowledge->kind;
    at[5] = acknowledge->flags;
    helio_put64(at + 8, acknowledge->receiver);
    helio_put64(at + 16, acknowledge->incarnation);
    helio_put32(at + 24, acknowledge->first);
    helio_put32(at + 28, acknowledge->position);
    put_name(at + HELIO_PGM_ACKNOWLEDGE_OPTION, acknowledge->name, name_bytes);
}

static void put_receiver_report(chain *c, const helio_pgm_receiver_report *receiver_report) {
    const size_t name_bytes = fitting(receiver_report->name_bytes, HELIO_PGM_REPORT_NAME_MAX);
    uint8_t *at = put_option(c, HELIO_PGM_OPTION_REPORT, HELIO_PGM_REPORT_OPTION + name_bytes, 0);
    at[4] = receiver_report->flags;
    helio_put16(at + 6, receiver_report->buffer_fill);
    helio_put64(at + 8, receiver_report->receiver);
    helio_put64(at + 16, receiver_report->incarnation);
    helio_put32(at + 24, receiver_report->received);
    helio_put32(at + 28, receiver_report->lost);
    helio_put32(at + 32, receiver_report->unrecoverable);
    helio_put32(at + 36, receiver_report->position);
    helio_put32(at + 40, receiver_report->window);
    helio_put32(at + 44, receiver_report->stamp);
    helio_put32(at + 48, receiver_report->hold_us);
    put_name(at + HELIO_PGM_REPORT_OPTION, receiver_report->name, name_bytes);
}

static void put_reporting(chain *c, const helio_pgm_reporting *reporting) {
    uint8_t *at = put_option(c, HELIO_PGM_OPTION_REPORTING, HELIO_PGM_REPORTING_OPTION, 0);
    at[3] = reporting->flags;
    helio_put32(at + 4, reporting->interval_us);
    helio_put32(at + 8, reporting->stamp);
    helio_put32(at + 12, reporting->progress);
    helio_put64(at + 16, reporting->acker);
}

static void put_notice(chain *c, const helio_pgm_notice *notice) {
    const size_t text_bytes = fitting(notice->text_bytes, HELIO_PGM_NOTICE_TEXT_MAX);
    uint8_t *at = put_option(c, HELIO_PGM_OPTION_NOTICE, HELIO_PGM_NOTICE_OPTION + text_bytes, 0);
    at[4] = notice->action;
    at[5] = notice->reason;
    helio_put32(at + 8, notice->serial);
    helio_put32(at + 12, notice->duration_ms);
    helio_put64(at + 16, notice->receiver);
    helio_put64(at + 24, notice->incarnation);
    put_name(at + HELIO_PGM_NOTICE_OPTION, notice->text, text_bytes);
}

static void put_grants(chain *c, const helio_pgm_grant *grants, uint32_t count) {
    assert(count <= HELIO_PGM_GRANTS_MAX);
    uint8_t *at = put_option(c, HELIO_PGM_OPTION_GRANT,
                             HELIO_PGM_GRANT_OPTION + count * HELIO_PGM_GRANT_ENTRY, 0);
    at += HELIO_PGM_GRANT_OPTION;
    for (uint32_t i = 0; i < count; i++, at += HELIO_PGM_GRANT_ENTRY) {
        helio_put64(at, grants[i].topic);
        helio_put64(at + 8, grants[i].limit);
    }
}

static void put_clock(chain *c, const helio_pgm_clock *clock) {
    uint8_t *at = put_option(c, HELIO_PGM_OPTION_CLOCK, HELIO_PGM_CLOCK_OPTION, 0);
    at[3] = clock->source;
    helio_put32(at + 4, clock->token);
    helio_put64(at + 8, (uint64_t)clock->offset_ns);
    helio_put64(at + 16, clock->bound_ns);
}

static void put_time(chain *c, const helio_pgm_time *time) {
    assert(time->answers_count <= HELIO_PGM_CLOCK_ANSWERS_MAX);
    uint8_t *at = put_option(
        c, HELIO_PGM_OPTION_CLOCK_ANSWER,
        HELIO_PGM_CLOCK_ANSWER_OPTION + time->answers_count * HELIO_PGM_CLOCK_ANSWER_ENTRY, 0);
    helio_put64(at + 4, time->sent_ns);
    helio_put64(at + 12, time->wall_ns);
    at += HELIO_PGM_CLOCK_ANSWER_OPTION;
    for (uint32_t i = 0; i < time->answers_count; i++, at += HELIO_PGM_CLOCK_ANSWER_ENTRY) {
        helio_put64(at, time->answers[i].receiver);
        helio_put32(at + 8, time->answers[i].token);
        helio_put64(at + 12, time->answers[i].came_ns);
    }
}

/* The address of a message store's service; family 0 leaves it open. */
static void put_store(uint8_t *at, const helio_address *store) {
    helio_put16(at, store->family == 4   ? HELIO_PGM_AFI_IPV4
                    : store->family == 6 ? HELIO_PGM_AFI_IPV6
                                         : 0);
    helio_put16(at + 2, store->port);
    memcpy(at + 4, store->ip, sizeof store->ip);
}

static void put_stores(chain *c, const helio_address *stores, uint32_t count) {
    assert(count <= HELIO_PGM_STORES_MAX);
    uint8_t *at = put_option(c, HELIO_PGM_OPTION_STORES,
                             HELIO_PGM_STORES_OPTION + count * HELIO_PGM_STORE_ENTRY, 0);
    at += HELIO_PGM_STORES_OPTION;
    for (uint32_t i = 0; i < count; i++, at += HELIO_PGM_STORE_ENTRY) {
        put_store(at, &stores[i]);
    }
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
    chain options = begin_chain(packet, put_address(packet + 28, path));
    if (spm->backoff_us) {
        put_backoff(&options, spm->backoff_us);
    }
    if (spm->offers_history) {
        helio_put32(put_option(&options, HELIO_PGM_OPTION_JOIN, JOIN_BYTES, 0) + 4, spm->join);
    }
    if (spm->awaits_acks) {
        helio_put32(put_option(&options, HELIO_PGM_OPTION_AWAIT, HELIO_PGM_AWAIT_OPTION, 0) + 4,
                    spm->awaited);
    }
    if (spm->takes_reports) {
        put_reporting(&options, &spm->reporting);
    }
    for (uint32_t i = 0; i < spm->notices_count; i++) {
        put_notice(&options, &spm->notices[i]);
    }
    if (spm->time) {
        put_time(&options, spm->time);
    }
    if (spm->stores_count > 0) {
        put_stores(&options, spm->stores, spm->stores_count);
    }
    if (spm->fin) {
        put_option(&options, HELIO_PGM_OPTION_FIN, 4, 0);
    }
    if (spm->rst) {
        put_option(&options, HELIO_PGM_OPTION_RST, 4, 0)[3] = HELIO_PGM_RST_NO_REPAIRS;
    }
    return seal(packet, end_chain(&options));
}

size_t helio_pgm_encode_nak(void *out, const helio_pgm_session *session, uint8_t type,
                            const uint32_t *sequences, size_t count, const helio_address *source,
                            const helio_address *group) {
    return helio_pgm_encode_nak_with(out, session, type, sequences, count, source, group, 0, NULL,
                                     NULL);
}

size_t helio_pgm_encode_nak_with(void *out, const helio_pgm_session *session, uint8_t type,
                                 const uint32_t *sequences, size_t count,
                                 const helio_address *source, const helio_address *group,
                                 uint32_t backoff_us, const helio_pgm_report *report,
                                 const helio_pgm_receiver_report *receiver_report) {
    assert(count >= 1 && count <= 1 + HELIO_PGM_NAK_LIST_MAX);
    uint8_t *packet = out;
    put_header(packet, session, type, type != HELIO_PGM_TYPE_NCF);
    helio_put32(packet + 16, sequences[0]);
    uint8_t *at = put_address(packet + 20, source);
    chain options = begin_chain(packet, put_address(at, group));
    if (count > 1) {
        at = put_option(&options, HELIO_PGM_OPTION_NAK_LIST, 4 * count, HELIO_PGM_FLAG_NETWORK);
        for (size_t i = 1; i < count; i++) {
            helio_put32(at + 4 * i, sequences[i]);
        }
    }
    if (backoff_us) {
        put_backoff(&options, backoff_us);
    }
    if (report) {
        put_report(&options, report);
    }
    if (receiver_report) {
        put_receiver_report(&options, receiver_report);
    }
    return seal(packet, end_chain(&options));
}

size_t helio_pgm_encode_poll(void *out, const helio_pgm_session *session, uint32_t sequence,
                             const helio_pgm_poll *poll, const helio_address *path) {
    uint8_t *packet = out;
    put_header(packet, session, HELIO_PGM_TYPE_POLL, false);
    helio_put32(packet + 16, sequence);
    helio_put16(packet + 20, poll->round);
    helio_put16(packet + 22, poll->subtype);
    uint8_t *at = put_address(packet + 24, path);
    helio_put32(at, poll->backoff_us);
    helio_put32(at + 4, poll->random);
    helio_put32(at + 8, poll->mask);
    return seal(packet, at + 12);
}

size_t helio_pgm_encode_polr(void *out, const helio_pgm_session *session, uint32_t sequence,
                             uint16_t round) {
    uint8_t *packet = out;
    put_header(packet, session, HELIO_PGM_TYPE_POLR, true);
    helio_put32(packet + 16, sequence);
    helio_put16(packet + 20, round);
    helio_put16(packet + 22, 0);
    return seal(packet, packet + 24);
}

size_t helio_pgm_encode_spmr(void *out, const helio_pgm_session *session) {
    uint8_t *packet = out;
    put_header(packet, session, HELIO_PGM_TYPE_SPMR, true);
    return seal(packet, packet + HELIO_PGM_HEADER);
}

size_t helio_pgm_encode_ack(void *out, const helio_pgm_session *session, uint32_t rx_max,
                            uint32_t bitmap, const helio_pgm_acknowledge *acknowledge,
                            const helio_pgm_receiver_report *receiver_report) {
    return helio_pgm_encode_ack_with(out, session, rx_max, bitmap, acknowledge, receiver_report,
                                     NULL, 0, NULL);
}

size_t helio_pgm_encode_ack_with(void *out, const helio_pgm_session *session, uint32_t rx_max,
                                 uint32_t bitmap, const helio_pgm_acknowledge *acknowledge,
                                 const helio_pgm_receiver_report *receiver_report,
                                 const helio_pgm_grant *grants, uint32_t grants_count,
                                 const helio_pgm_clock *clock) {
    uint8_t *packet = out;
    put_header(packet, session, HELIO_PGM_TYPE_ACK, true);
    helio_put32(packet + 16, rx_max);
    helio_put32(packet + 20, bitmap);
    chain options = begin_chain(packet, packet + 24);
    if (acknowledge) {
        put_acknowledge(&options, acknowledge);
        if (acknowledge->service.port) {
            put_store(put_option(&options, HELIO_PGM_OPTION_SERVICE, HELIO_PGM_SERVICE_OPTION, 0) +
                          4,
                      &acknowledge->service);
        }
    }
    if (receiver_report) {
        put_receiver_report(&options, receiver_report);
    }
    if (grants_count > 0) {
        put_grants(&options, grants, grants_count);
    }
    if (clock) {
        put_clock(&options, clock);
    }
    return seal(packet, end_chain(&options));
}

/* The field is 0 before. */
static void put_data_checksum(uint8_t *packet, size_t header, uint32_t payload_sum) {
    if (payload_sum != HELIO_PGM_NO_SUM) {
        put_checksum(packet, helio_checksum_add(helio_checksum_part(packet, header), payload_sum));
    }
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
        chain options = begin_chain(packet, packet + header);
        uint8_t *at = put_option(&options, HELIO_PGM_OPTION_FRAGMENT, HELIO_PGM_FRAGMENT_OPTION, 0);
        helio_put32(at + 4, fragment->first);
        helio_put32(at + 8, fragment->offset);
        helio_put32(at + 12, fragment->length);
        end_chain(&options);
        header = HELIO_PGM_FRAGMENT_HEADER;
    }
    put_data_checksum(packet, header, payload_sum);
    return header + tsdu_bytes;
}

void helio_pgm_prepare_data(helio_pgm_data_head *head, const helio_pgm_session *session) {
    put_header(head->bytes, session, HELIO_PGM_TYPE_ODATA, false);
    head->sum = helio_checksum_part(head->bytes, sizeof head->bytes);
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

void helio_pgm_relay_repair(void *out, size_t length) {
    uint8_t *packet = out;
    packet[AT_TYPE] = HELIO_PGM_TYPE_RDATA;
    helio_put16(packet + AT_CHECKSUM, 0);
    helio_pgm_sum_data(packet, length);
}
