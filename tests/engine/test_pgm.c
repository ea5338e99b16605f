/* PGM packets: the golden ones byte for byte, and a refusal with its name for every rule broken. */
#include "wire/pgm.h"

#include <ctype.h>

#include "base/random.h"
#include "check.h"
#include "wire/checksum.h"

typedef struct vector {
    bool is_exact;
    char name[40];
    uint8_t bytes[512]; /* longer than any golden packet: some are made longer */
    size_t length;
} vector;

static vector vectors[40];
static size_t vector_count;

static int hex_digit(char c) {
    return isdigit((unsigned char)c) ? c - '0' : c - 'a' + 10;
}

static void read_line(const char *line) {
    vector *v = &vectors[vector_count];
    char kind[8];
    int used;
    if (sscanf(line, "%7s %39s %n", kind, v->name, &used) != 2 || kind[0] == '#') {
        return;
    }
    v->is_exact = strcmp(kind, "exact") == 0;
    v->length = 0;
    for (const char *c = line + used; *c && *c != '\n';) {
        if (*c == ' ') {
            c++;
        } else if (*c == '+') { /* so many zero bytes */
            const size_t zeros = strtoul(c + 1, (char **)&c, 10);
            memset(v->bytes + v->length, 0, zeros);
            v->length += zeros;
        } else {
            v->bytes[v->length++] = (uint8_t)(hex_digit(c[0]) << 4 | hex_digit(c[1]));
            c += 2;
        }
    }
    vector_count++;
}

static void read_golden(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s", __FILE__);
    char *slash = strrchr(path, '/');
    snprintf(slash ? slash + 1 : path, 64, "../golden/pgm.txt");
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        exit(2);
    }
    char line[2048];
    while (fgets(line, sizeof line, file)) {
        read_line(line);
    }
    fclose(file);
}

static const vector *golden(const char *name) {
    for (size_t i = 0; i < vector_count; i++) {
        if (strcmp(vectors[i].name, name) == 0) {
            return &vectors[i];
        }
    }
    CHECK_FAIL("no golden packet %s", name);
}

static helio_address ip(const char *text) {
    helio_address address;
    CHECK_EQUAL(helio_address_parse(text, &address), 0);
    return address;
}

static const helio_pgm_session captured = {{{0xb7, 0xc6, 0xd1, 0xbc, 0x03, 0x8a}, 57307}, 7500};
static const helio_pgm_session built = {{{0xa1, 0xb2, 0xc3, 0xd4, 0xe5, 0xf6}, 0x1234}, 7500};

/* Decodes a golden packet. */
static helio_pgm_packet decoded(const char *name) {
    const vector *v = golden(name);
    helio_pgm_packet packet;
    CHECK_EQUAL(helio_pgm_decode(v->bytes, v->length, &packet), HELIO_PGM_ACCEPTED);
    return packet;
}

static size_t encode_data(uint8_t *out, const helio_pgm_packet *packet) {
    const bool is_fragment = packet->options & HELIO_PGM_HAS_FRAGMENT;
    const helio_pgm_session session = {packet->tsi, packet->destination_port};
    memcpy(out + (is_fragment ? HELIO_PGM_FRAGMENT_HEADER : HELIO_PGM_DATA_HEADER), packet->tsdu,
           packet->tsdu_bytes);
    return helio_pgm_encode_data(out, &session, packet->sequence, packet->trail,
                                 is_fragment ? &packet->fragment : NULL, packet->tsdu_bytes,
                                 helio_checksum_part(packet->tsdu, packet->tsdu_bytes));
}

static size_t encode(uint8_t *out, const helio_pgm_packet *packet) {
    const helio_pgm_session session = {packet->tsi, packet->destination_port};
    const helio_pgm_spm spm = {
        .sequence = packet->sequence,
        .trail = packet->trail,
        .lead = packet->lead,
        .fin = packet->options & HELIO_PGM_HAS_FIN,
        .offers_history = packet->options & HELIO_PGM_HAS_JOIN,
        .join = packet->join,
        .backoff_us = packet->options & HELIO_PGM_HAS_NAK_BO_IVL ? packet->backoff.interval_us : 0,
        .takes_reports = packet->options & HELIO_PGM_HAS_REPORTING,
        .reporting = packet->reporting,
        .time = packet->options & HELIO_PGM_HAS_CLOCK_ANSWER ? &packet->time : NULL,
    };
    uint32_t sequences[1 + HELIO_PGM_NAK_LIST_MAX] = {packet->sequence};
    switch (packet->type) {
    case HELIO_PGM_TYPE_SPM:
        return helio_pgm_encode_spm(out, &session, &spm, &packet->path);
    case HELIO_PGM_TYPE_ODATA:
        return encode_data(out, packet);
    case HELIO_PGM_TYPE_SPMR:
        return helio_pgm_encode_spmr(out, &session);
    case HELIO_PGM_TYPE_POLL:
        return helio_pgm_encode_poll(out, &session, packet->sequence, &packet->poll, &packet->path);
    case HELIO_PGM_TYPE_POLR:
        return helio_pgm_encode_polr(out, &session, packet->sequence, packet->poll.round);
    case HELIO_PGM_TYPE_ACK:
        return helio_pgm_encode_ack_with(
            out, &session, packet->sequence, packet->bitmap,
            packet->options & HELIO_PGM_HAS_ACKNOWLEDGE ? &packet->acknowledge : NULL,
            packet->options & HELIO_PGM_HAS_REPORT ? &packet->receiver_report : NULL,
            packet->grants, packet->grants_count,
            packet->options & HELIO_PGM_HAS_CLOCK ? &packet->clock : NULL);
    default:
        memcpy(sequences + 1, packet->list, packet->list_count * sizeof packet->list[0]);
        return helio_pgm_encode_nak_with(
            out, &session, packet->type, sequences, 1 + packet->list_count, &packet->source,
            &packet->group, 0, packet->options & HELIO_PGM_HAS_CR ? &packet->report : NULL,
            packet->options & HELIO_PGM_HAS_REPORT ? &packet->receiver_report : NULL);
    }
}

static void golden_packets_are_encoded_byte_for_byte(void) {
    size_t exact = 0;
    for (size_t i = 0; i < vector_count; i++) {
        const vector *v = &vectors[i];
        if (!v->is_exact) {
            continue;
        }
        uint8_t out[HELIO_PGM_CONTROL_MAX];
        const helio_pgm_packet packet = decoded(v->name);
        if (encode(out, &packet) != v->length || memcmp(out, v->bytes, v->length) != 0) {
            CHECK_FAIL("%s is encoded differently", v->name);
        }
        exact++;
    }
    CHECK_EQUAL(exact, 23);
}

static void golden_packets_are_understood(void) {
    CHECK_EQUAL(vector_count, 31);
    for (size_t i = 0; i < vector_count; i++) {
        const helio_pgm_packet packet = decoded(vectors[i].name);
        const bool is_captured = memcmp(packet.tsi.gsi, captured.tsi.gsi, HELIO_GSI_BYTES) == 0;
        CHECK(is_captured || helio_tsi_equal(&packet.tsi, &built.tsi));
        CHECK_EQUAL(packet.destination_port, 7500);
    }
    helio_pgm_packet packet = decoded("spm_fin");
    CHECK_EQUAL(packet.type, HELIO_PGM_TYPE_SPM);
    CHECK_EQUAL(packet.tsi.port, 57307);
    CHECK_EQUAL(packet.sequence, 9);
    CHECK_EQUAL(packet.lead, 0x12b);
    CHECK_EQUAL(packet.options, HELIO_PGM_HAS_FIN);
    const helio_address source = ip("10.77.0.1"), group = ip("239.192.7.7");
    CHECK(helio_address_same_ip(&packet.path, &source));
    packet = decoded("nak_list");
    CHECK_EQUAL(packet.tsi.port, 57307);
    CHECK_EQUAL(packet.sequence, 0x27);
    CHECK_EQUAL(packet.list_count, 1);
    CHECK_EQUAL(packet.list[0], 0x2a);
    CHECK(helio_address_same_ip(&packet.source, &source));
    CHECK(helio_address_same_ip(&packet.group, &group));
    packet = decoded("spmr_of_peer");
    CHECK_EQUAL(packet.tsi.port, 60075);
    packet = decoded("odata");
    CHECK_EQUAL(packet.tsdu_bytes, 0x68);
    packet = decoded("odata_fragment");
    CHECK_EQUAL(packet.fragment.first, 0xa0);
    CHECK_EQUAL(packet.fragment.offset, 1400);
    CHECK_EQUAL(packet.fragment.length, 2000);
    CHECK_BYTES(packet.tsdu, "abcd", 4);
    packet = decoded("spm_rst");
    CHECK_EQUAL(packet.options, HELIO_PGM_HAS_RST);
    packet = decoded("spm_join");
    CHECK_EQUAL(packet.join, 100);
    packet = decoded("spm_nak_bo_ivl");
    CHECK_EQUAL(packet.options, HELIO_PGM_HAS_NAK_BO_IVL);
    CHECK_EQUAL(packet.backoff.interval_us, 500);
    CHECK_EQUAL(packet.backoff.poll_sequence, 0);
    packet = decoded("spm_crqst");
    CHECK_EQUAL(packet.options, HELIO_PGM_HAS_CRQST);
    CHECK_EQUAL(packet.report.fields, HELIO_PGM_REPORT_RECEIVER);
    packet = decoded("spm_parity_prm");
    CHECK_EQUAL(packet.options, HELIO_PGM_HAS_PARITY_PRM);
    packet = decoded("odata_syn");
    CHECK_EQUAL(packet.options, HELIO_PGM_HAS_SYN);
    packet = decoded("nak_cr");
    CHECK_EQUAL(packet.options, HELIO_PGM_HAS_CR);
    CHECK_EQUAL(packet.report.fields, HELIO_PGM_REPORT_RECEIVER);
    CHECK_EQUAL(packet.report.reference, 0xa3);
    CHECK_EQUAL(packet.report.receiver_loss, 656); /* 1 % */
    const helio_address reporter = ip("10.0.0.9");
    CHECK(helio_address_same_ip(&packet.report.receiver, &reporter));
    packet = decoded("poll");
    CHECK_EQUAL(packet.sequence, 1);
    CHECK_EQUAL(packet.poll.round, 0);
    CHECK_EQUAL(packet.poll.subtype, HELIO_PGM_POLL_GENERAL);
    CHECK_EQUAL(packet.poll.backoff_us, 1000);
    CHECK_EQUAL(packet.poll.random, 0xdeadbeef);
    CHECK_EQUAL(packet.poll.mask, 3);
    packet = decoded("polr");
    CHECK_EQUAL(packet.sequence, 1);
    packet = decoded("nak_parity");
    CHECK_EQUAL(packet.flags, HELIO_PGM_FLAG_PARITY);
}

static void addresses_of_ip_version_6_survive_both_ways(void) {
    const helio_address source = ip("[fe80::1:2]"), group = ip("[ff3e::8000:1]");
    const uint32_t sequences[] = {7, 9, 10};
    uint8_t out[HELIO_PGM_CONTROL_MAX];
    helio_pgm_packet packet;
    size_t length =
        helio_pgm_encode_nak(out, &built, HELIO_PGM_TYPE_NCF, sequences, 3, &source, &group);
    CHECK_EQUAL(length, 16 + 44 + 4 + 12);
    CHECK_EQUAL(helio_pgm_decode(out, length, &packet), HELIO_PGM_ACCEPTED);
    CHECK(helio_address_same_ip(&packet.source, &source));
    CHECK(helio_address_same_ip(&packet.group, &group));
    CHECK_EQUAL(packet.list_count, 2);
    length = helio_pgm_encode_spm(out, &built, &(helio_pgm_spm){1, 2, 3, .fin = false}, &source);
    CHECK_EQUAL(length, 16 + 32);
    CHECK_EQUAL(helio_pgm_decode(out, length, &packet), HELIO_PGM_ACCEPTED);
    CHECK(helio_address_same_ip(&packet.path, &source));
}

static void a_full_nak_list_fits(void) {
    uint32_t sequences[1 + HELIO_PGM_NAK_LIST_MAX];
    for (uint32_t i = 0; i < 1 + HELIO_PGM_NAK_LIST_MAX; i++) {
        sequences[i] = 0xFFFFFFF0u + 2 * i; /* over the wrap */
    }
    const helio_address source = ip("[fe80::1]"), group = ip("[ff3e::1]");
    uint8_t out[HELIO_PGM_CONTROL_MAX];
    helio_pgm_packet packet;
    const size_t length =
        helio_pgm_encode_nak(out, &built, HELIO_PGM_TYPE_NAK, sequences, 63, &source, &group);
    CHECK_EQUAL(length, 16 + 44 + 4 + 252);
    CHECK_EQUAL(helio_pgm_decode(out, length, &packet), HELIO_PGM_ACCEPTED);
    CHECK_EQUAL(packet.list_count, HELIO_PGM_NAK_LIST_MAX);
    CHECK_BYTES(packet.list, sequences + 1, sizeof packet.list);
}

static void a_repair_is_the_same_packet_with_type_and_trail_changed(void) {
    for (int fragment = 0; fragment < 2; fragment++) {
        helio_pgm_packet packet = decoded(fragment ? "odata_fragment" : "odata_wrap");
        const uint32_t sum = helio_checksum_part(packet.tsdu, packet.tsdu_bytes);
        uint8_t out[256];
        const size_t length = encode_data(out, &packet);
        for (uint32_t trail = 5; trail < 7; trail++) {
            helio_pgm_make_repair(out, packet.sequence - trail, sum);
            helio_pgm_packet repair;
            CHECK_EQUAL(helio_pgm_decode(out, length, &repair), HELIO_PGM_ACCEPTED);
            CHECK_EQUAL(repair.type, HELIO_PGM_TYPE_RDATA);
            CHECK_EQUAL(repair.trail, packet.sequence - trail);
            CHECK_EQUAL(repair.sequence, packet.sequence);
            CHECK_BYTES(repair.tsdu, packet.tsdu, packet.tsdu_bytes);
        }
    }
}

static void what_a_receiver_tells_of_itself_is_read(void) {
    const helio_pgm_packet packet = decoded("nak_report");
    const helio_pgm_receiver_report *told = &packet.receiver_report;
    CHECK_EQUAL(packet.options, HELIO_PGM_HAS_REPORT);
    CHECK_EQUAL(told->flags, HELIO_PGM_RECEIVER_REPORT_TAGGED);
    CHECK_EQUAL(told->buffer_fill, 0x8000);
    CHECK_EQUAL(told->receiver, 0x5EED);
    CHECK_EQUAL(told->incarnation, 0x1122334455667788);
    CHECK_EQUAL(told->received, 1000);
    CHECK_EQUAL(told->lost, 20);
    CHECK_EQUAL(told->unrecoverable, 3);
    CHECK_EQUAL(told->position, 0xA1);
    CHECK_EQUAL(told->window, 512);
    CHECK_EQUAL(told->stamp, 123456);
    CHECK_EQUAL(told->hold_us, 789);
    CHECK_EQUAL(told->name_bytes, 6);
    CHECK_BYTES(told->name, "desk 1", 6);
    CHECK_EQUAL(decoded("ack_report").options, HELIO_PGM_HAS_REPORT);
    CHECK_EQUAL(decoded("ack_and_report").options,
                HELIO_PGM_HAS_REPORT | HELIO_PGM_HAS_ACKNOWLEDGE);
    const helio_pgm_packet spm = decoded("spm_reporting");
    CHECK_EQUAL(spm.options, HELIO_PGM_HAS_REPORTING);
    CHECK_EQUAL(spm.reporting.interval_us, 100000);
    CHECK_EQUAL(spm.reporting.stamp, 123456);
    CHECK_EQUAL(spm.reporting.progress, 1024);
    CHECK_EQUAL(spm.reporting.acker, 0x5EED);
    CHECK_EQUAL(spm.reporting.flags, 0);
    CHECK_EQUAL(decoded("spm_awaits_credit").reporting.flags, HELIO_PGM_REPORTING_AWAITS_CREDIT);
    const helio_pgm_packet ack = decoded("ack_grants");
    CHECK_EQUAL(ack.options, HELIO_PGM_HAS_REPORT | HELIO_PGM_HAS_GRANT);
    CHECK_EQUAL(ack.grants_count, 2);
    CHECK_EQUAL(ack.grants[0].topic, 0xFEEDFACECAFEBEEF);
    CHECK_EQUAL(ack.grants[0].limit, 42);
    CHECK_EQUAL(ack.grants[1].topic, 7);
    CHECK_EQUAL(ack.grants[1].limit, 0);
}

static void the_longest_request_with_both_reports_fits(void) {
    const helio_address source = ip("[fe80::1]"), group = ip("[ff3e::1]");
    const helio_pgm_report report = {.fields = HELIO_PGM_REPORT_ALL, .receiver = source};
    char name[80];
    memset(name, 'n', sizeof name);
    const helio_pgm_receiver_report told = {.receiver = 1, .name = name, .name_bytes = sizeof name};
    uint32_t sequences[63] = {0};
    uint8_t out[HELIO_PGM_CONTROL_MAX];
    helio_pgm_packet packet;
    const size_t length = helio_pgm_encode_nak_with(out, &built, HELIO_PGM_TYPE_NAK, sequences, 63,
                                                    &source, &group, 0, &report, &told);
    CHECK_EQUAL(length, HELIO_PGM_CONTROL_MAX);
    CHECK_EQUAL(helio_pgm_decode(out, length, &packet), HELIO_PGM_ACCEPTED);
    CHECK_EQUAL(packet.receiver_report.name_bytes, HELIO_PGM_REPORT_NAME_MAX);
}

/* ---- refusals ---- */

/* Puts a right checksum into a changed packet, so that only the change is refused. */
static helio_pgm_refusal refusal_of(uint8_t *bytes, size_t length) {
    memset(bytes + 6, 0, 2);
    const uint16_t sum = helio_checksum_finish(helio_checksum_part(bytes, length));
    memcpy(bytes + 6, &sum, 2);
    helio_pgm_packet packet;
    return helio_pgm_decode(bytes, length, &packet);
}

/* A golden packet with bytes changed at one place. */
static helio_pgm_refusal changed(const char *name, size_t at, const char *bytes, size_t count) {
    vector v = *golden(name);
    memcpy(v.bytes + at, bytes, count);
    return refusal_of(v.bytes, v.length);
}

static void every_truncation_is_refused(void) {
    for (size_t i = 0; i < vector_count; i++) {
        for (size_t length = 0; length < vectors[i].length; length++) {
            vector v = vectors[i];
            uint8_t *exact =
                malloc(length ? length : 1); /* so that a sanitizer sees reading past the end */
            memcpy(exact, v.bytes, length);
            helio_pgm_packet packet;
            const helio_pgm_refusal refusal =
                length >= 16 ? refusal_of(exact, length) : helio_pgm_decode(exact, length, &packet);
            free(exact);
            if (refusal == HELIO_PGM_ACCEPTED) {
                CHECK_FAIL("%s is accepted with %zu bytes", v.name, length);
            }
        }
    }
}

static void a_wrong_size_is_refused(void) {
    vector v = *golden("spm_empty_window");
    CHECK_EQUAL(refusal_of(v.bytes, v.length + 1), HELIO_PGM_BAD_SIZE);
    CHECK_EQUAL(changed("odata_wrap", 14, "\0\5", 2), HELIO_PGM_BAD_SIZE);
    CHECK_EQUAL(changed("odata_wrap", 14, "\0\3", 2), HELIO_PGM_BAD_SIZE);
    CHECK_EQUAL(changed("odata_wrap", 14, "\xFF\xFF", 2), HELIO_PGM_BAD_SIZE);
    CHECK_EQUAL(changed("nak", 14, "\0\4", 2), HELIO_PGM_BAD_SIZE);
}

static void a_wrong_version_or_type_is_refused(void) {
    CHECK_EQUAL(changed("odata", 4, "\x44", 1), HELIO_PGM_BAD_VERSION);
    CHECK_EQUAL(changed("odata", 4, "\x14", 1), HELIO_PGM_BAD_VERSION);
    for (const char *type = "\x03\x06\x07\x0b\x0e\x0f"; *type; type++) {
        CHECK_EQUAL(changed("odata", 4, type, 1), HELIO_PGM_BAD_TYPE);
    }
}

static void a_wrong_checksum_is_refused_and_data_without_one_too(void) {
    helio_pgm_packet packet;
    vector v = *golden("odata");
    v.bytes[40] ^= 1;
    CHECK_EQUAL(helio_pgm_decode(v.bytes, v.length, &packet), HELIO_PGM_BAD_CHECKSUM);
    v = *golden("odata");
    memset(v.bytes + 6, 0, 2);
    CHECK_EQUAL(helio_pgm_decode(v.bytes, v.length, &packet), HELIO_PGM_BAD_CHECKSUM);
    v = *golden("spmr");
    memset(v.bytes + 6, 0, 2);
    CHECK_EQUAL(helio_pgm_decode(v.bytes, v.length, &packet), HELIO_PGM_ACCEPTED);
}

static void a_wrong_address_family_is_refused(void) {
    CHECK_EQUAL(changed("spm_empty_window", 28, "\0\0", 2), HELIO_PGM_BAD_ADDRESS);
    CHECK_EQUAL(changed("spm_empty_window", 28, "\0\3", 2), HELIO_PGM_BAD_ADDRESS);
    CHECK_EQUAL(changed("nak", 20, "\0\3", 2), HELIO_PGM_BAD_ADDRESS);
    CHECK_EQUAL(changed("nak", 28, "\0\0", 2), HELIO_PGM_BAD_ADDRESS);
    CHECK_EQUAL(changed("spm_empty_window", 28, "\0\2", 2), HELIO_PGM_BAD_SIZE);
}

static void a_broken_chain_of_options_is_refused(void) {
    const size_t at = 36; /* of an SPM's or NAK's options */
    CHECK_EQUAL(changed("spm_fin", at, "\x01", 1), HELIO_PGM_BAD_OPTIONS); /* no OPT_LENGTH first */
    CHECK_EQUAL(changed("spm_fin", at + 1, "\x05", 1), HELIO_PGM_BAD_OPTIONS); /* its length */
    CHECK_EQUAL(changed("spm_fin", at + 2, "\0\4", 2),
                HELIO_PGM_BAD_OPTIONS); /* total: no option */
    CHECK_EQUAL(changed("spm_fin", at + 2, "\0\7", 2), HELIO_PGM_BAD_OPTIONS); /* total: cut */
    CHECK_EQUAL(changed("spm_fin", at + 2, "\0\x0c", 2),
                HELIO_PGM_BAD_OPTIONS); /* total: past the end */
    CHECK_EQUAL(changed("spm_fin", at + 4, "\x0e", 1), HELIO_PGM_BAD_OPTIONS); /* no last option */
    static const char lengths[] = {0, 1, 2, 3, 5, 8, 127};
    for (size_t i = 0; i < sizeof lengths; i++) {
        CHECK_EQUAL(changed("spm_fin", at + 5, &lengths[i], 1), HELIO_PGM_BAD_OPTIONS);
    }
    CHECK_EQUAL(changed("spm_fin", at + 4, "\x80", 1),
                HELIO_PGM_BAD_OPTIONS); /* OPT_LENGTH again */
    CHECK_EQUAL(changed("spm_fin", at + 4, "\x82", 1),
                HELIO_PGM_BAD_OPTIONS); /* a NAK list on an SPM */
    CHECK_EQUAL(changed("spm_join", at + 5, "\x04", 1),
                HELIO_PGM_BAD_OPTIONS); /* too short for JOIN */
}

/* An SPM with `count` options of 4 bytes of the given type. */
static helio_pgm_refusal with_options(uint8_t type, size_t count) {
    vector v = *golden("spm_fin");
    uint8_t *at = v.bytes + 36;
    at[2] = 0;
    at[3] = (uint8_t)(4 + 4 * count);
    for (size_t i = 0; i < count; i++) {
        memcpy(at + 4 + 4 * i, (uint8_t[]){(uint8_t)(i + 1 == count ? type | 0x80 : type), 4, 0, 0},
               4);
    }
    return refusal_of(v.bytes, 36 + 4 + 4 * count);
}

static void at_most_sixteen_options_are_accepted(void) {
    CHECK_EQUAL(with_options(HELIO_PGM_OPTION_INVALID, 16), HELIO_PGM_ACCEPTED);
    CHECK_EQUAL(with_options(HELIO_PGM_OPTION_INVALID, 17), HELIO_PGM_BAD_OPTIONS);
    CHECK_EQUAL(with_options(HELIO_PGM_OPTION_FIN, 2), HELIO_PGM_BAD_OPTIONS); /* said twice */
    CHECK_EQUAL(with_options(0x60, 1), HELIO_PGM_ACCEPTED); /* unknown: skipped */
}

static void options_where_they_have_no_business_are_refused(void) {
    const size_t at = 40; /* the option of an SPM */
    CHECK_EQUAL(changed("spm_parity_prm", at + 7, "\x03", 1), HELIO_PGM_BAD_OPTIONS);
    CHECK_EQUAL(changed("spm_parity_prm", at + 7, "\x00", 1), HELIO_PGM_BAD_OPTIONS);
    CHECK_EQUAL(changed("spm_nak_bo_ivl", at + 1, "\x08", 1), HELIO_PGM_BAD_OPTIONS);
    /* a range from 0 to 500 us is one; the other way round it is none */
    CHECK_EQUAL(changed("spm_nak_bo_ivl", at, "\x85", 1), HELIO_PGM_ACCEPTED);
    CHECK_EQUAL(changed("spm_nak_bo_ivl", at, "\x85\x0c\0\0\0\0\0\1\0\0\0\2", 12),
                HELIO_PGM_BAD_OPTIONS);
    CHECK_EQUAL(changed("spm_join", at, "\x89", 1), HELIO_PGM_BAD_OPTIONS);  /* a group of parity */
    CHECK_EQUAL(changed("odata_syn", 28, "\x8f", 1), HELIO_PGM_BAD_OPTIONS); /* a reset by data */
    CHECK_EQUAL(changed("odata_syn", 28, "\x91", 1), HELIO_PGM_BAD_OPTIONS); /* a CRQST by data */
    CHECK_EQUAL(changed("nak_cr", at + 17, "\x03", 1), HELIO_PGM_BAD_OPTIONS); /* its family */
    CHECK_EQUAL(changed("nak_cr", at + 17, "\x02", 1), HELIO_PGM_BAD_OPTIONS); /* and length */
}

static void reports_of_a_wrong_length_or_place_are_refused(void) {
    const size_t at = 40; /* of the report in a NAK */
    const vector *v = golden("nak_report");
    CHECK_EQUAL(v->bytes[at], HELIO_PGM_OPTION_REPORT | HELIO_PGM_OPTION_END);
    for (size_t bytes = 4; bytes < 256; bytes++) { /* its own length says something else */
        uint8_t packet[40 + 256];
        memset(packet, 'x', sizeof packet);
        memcpy(packet, v->bytes, v->length);
        packet[at + 1] = (uint8_t)bytes;
        packet[at - 2] = (uint8_t)((4 + bytes) >> 8);
        packet[at - 1] = (uint8_t)(4 + bytes);
        CHECK_EQUAL(refusal_of(packet, at + bytes),
                    bytes >= 52 && bytes <= 99 ? HELIO_PGM_ACCEPTED : HELIO_PGM_BAD_OPTIONS);
    }
    CHECK_EQUAL(changed("spm_reporting", 41, "\x08", 1), HELIO_PGM_BAD_OPTIONS);
    /* nothing was passed on that is newer than the newest received */
    CHECK_EQUAL(changed("ack_report", 16, "\0\0\0\xa1", 4), HELIO_PGM_ACCEPTED);
    CHECK_EQUAL(changed("ack_report", 16, "\0\0\0\xa0", 4), HELIO_PGM_BAD_OPTIONS);
    CHECK_EQUAL(changed("ack_report", 4, "\x0b", 1), HELIO_PGM_BAD_TYPE);
    /* on other packets the numbers are somebody else's options */
    vector spm = *golden("spm_reporting");
    spm.bytes[40] = HELIO_PGM_OPTION_REPORT | HELIO_PGM_OPTION_END;
    CHECK_EQUAL(refusal_of(spm.bytes, spm.length), HELIO_PGM_ACCEPTED);
}

static void grants_of_a_wrong_length_or_place_are_refused(void) {
    const size_t at = 80; /* of the grants, behind the report */
    CHECK_EQUAL(golden("ack_grants")->bytes[at], HELIO_PGM_OPTION_GRANT | HELIO_PGM_OPTION_END);
    for (int bytes = 4; bytes < 160; bytes++) { /* its own length says something else */
        vector v = *golden("ack_grants");
        const size_t longer = bytes > 36 ? (size_t)bytes - 36 : 0;
        memset(v.bytes + v.length, 'x', longer);
        v.bytes[at + 1] = (uint8_t)bytes;
        v.bytes[27] = (uint8_t)(56 + bytes);
        v.bytes[26] = (uint8_t)((56 + bytes) >> 8);
        const bool is_whole = bytes % 16 == 4 && bytes > 4 && bytes <= 4 + 8 * 16;
        CHECK_EQUAL(refusal_of(v.bytes, at + (size_t)bytes),
                    is_whole ? HELIO_PGM_ACCEPTED : HELIO_PGM_BAD_OPTIONS);
    }
    /* on other packets the number is somebody else's option */
    vector v = *golden("spm_reporting");
    v.bytes[40] = HELIO_PGM_OPTION_GRANT | HELIO_PGM_OPTION_END;
    CHECK_EQUAL(refusal_of(v.bytes, v.length), HELIO_PGM_ACCEPTED);
}

static void questions_for_the_time_and_answers_are_read(void) {
    const helio_pgm_packet ack = decoded("ack_clock");
    CHECK_EQUAL(ack.options, HELIO_PGM_HAS_REPORT | HELIO_PGM_HAS_CLOCK);
    CHECK_EQUAL(ack.clock.source, HELIO_PGM_CLOCK_EXCHANGE);
    CHECK_EQUAL(ack.clock.token, 0xC0FFEE42);
    CHECK_EQUAL(ack.clock.offset_ns, -1500000);
    CHECK_EQUAL(ack.clock.bound_ns, 20000);
    const helio_pgm_packet spm = decoded("spm_time");
    CHECK_EQUAL(spm.options, HELIO_PGM_HAS_CLOCK_ANSWER);
    CHECK_EQUAL(spm.time.sent_ns, 5000000000);
    CHECK_EQUAL(spm.time.wall_ns, 1800000000000000000);
    CHECK_EQUAL(spm.time.answers_count, 2);
    CHECK_EQUAL(spm.time.answers[0].receiver, 0x5EED);
    CHECK_EQUAL(spm.time.answers[0].token, 0xC0FFEE42);
    CHECK_EQUAL(spm.time.answers[0].came_ns, 4999999000);
    CHECK_EQUAL(spm.time.answers[1].came_ns, 1);
}

static void questions_and_answers_of_a_wrong_length_or_place_are_refused(void) {
    const size_t asked = 80, told = 40; /* where the options are */
    for (int bytes = 4; bytes < 160; bytes++) {
        vector ack = *golden("ack_clock"), spm = *golden("spm_time");
        memset(ack.bytes + ack.length, 'x', bytes > 24 ? (size_t)bytes - 24 : 0);
        memset(spm.bytes + spm.length, 'x', bytes > 60 ? (size_t)bytes - 60 : 0);
        ack.bytes[asked + 1] = spm.bytes[told + 1] = (uint8_t)bytes;
        ack.bytes[27] = (uint8_t)(56 + bytes);
        spm.bytes[39] = (uint8_t)(4 + bytes);
        CHECK_EQUAL(refusal_of(ack.bytes, asked + (size_t)bytes),
                    bytes == 24 ? HELIO_PGM_ACCEPTED : HELIO_PGM_BAD_OPTIONS);
        CHECK_EQUAL(refusal_of(spm.bytes, told + (size_t)bytes),
                    bytes % 20 == 0 && bytes <= 100 ? HELIO_PGM_ACCEPTED : HELIO_PGM_BAD_OPTIONS);
    }
    /* on other packets the numbers are somebody else's options */
    vector spm = *golden("spm_reporting");
    spm.bytes[40] = HELIO_PGM_OPTION_CLOCK | HELIO_PGM_OPTION_END;
    CHECK_EQUAL(refusal_of(spm.bytes, spm.length), HELIO_PGM_ACCEPTED);
    vector ack = *golden("ack_report");
    ack.bytes[28] = HELIO_PGM_OPTION_CLOCK_ANSWER | HELIO_PGM_OPTION_END;
    CHECK_EQUAL(refusal_of(ack.bytes, ack.length), HELIO_PGM_ACCEPTED);
}

static void what_a_source_says_of_itself_survives_both_ways(void) {
    for (int family = 4; family <= 6; family += 2) {
        const helio_address path = ip(family == 4 ? "10.0.0.1" : "[fe80::1]");
        const helio_address group = ip(family == 4 ? "239.192.0.1" : "[ff3e::1]");
        uint8_t out[HELIO_PGM_CONTROL_MAX];
        helio_pgm_packet packet;
        const helio_pgm_spm spm = {.sequence = 1, .lead = 5, .rst = true, .backoff_us = 800};
        size_t length = helio_pgm_encode_spm(out, &built, &spm, &path);
        CHECK_EQUAL(helio_pgm_decode(out, length, &packet), HELIO_PGM_ACCEPTED);
        CHECK_EQUAL(packet.options, HELIO_PGM_HAS_RST | HELIO_PGM_HAS_NAK_BO_IVL);
        CHECK_EQUAL(packet.flags, HELIO_PGM_FLAG_OPTIONS | HELIO_PGM_FLAG_NETWORK);
        CHECK_EQUAL(packet.backoff.interval_us, 800);
        const helio_pgm_report report = {.fields = HELIO_PGM_REPORT_ALL, .receiver = path};
        uint32_t sequences[63];
        for (uint32_t i = 0; i < 63; i++) {
            sequences[i] = i;
        }
        length = helio_pgm_encode_nak_with(out, &built, HELIO_PGM_TYPE_NAK, sequences, 63, &path,
                                           &group, 0, &report, NULL);
        CHECK(length <= HELIO_PGM_CONTROL_MAX);
        CHECK_EQUAL(helio_pgm_decode(out, length, &packet), HELIO_PGM_ACCEPTED);
        CHECK_EQUAL(packet.list_count, 62);
        CHECK_EQUAL(packet.report.fields, HELIO_PGM_REPORT_ALL);
        CHECK(helio_address_same_ip(&packet.report.receiver, &path));
        const helio_pgm_poll poll = {1, HELIO_PGM_POLL_DLR, 2, 3, 4};
        length = helio_pgm_encode_poll(out, &built, 9, &poll, &path);
        CHECK_EQUAL(helio_pgm_decode(out, length, &packet), HELIO_PGM_ACCEPTED);
        CHECK_EQUAL(packet.poll.subtype, HELIO_PGM_POLL_DLR);
        CHECK_EQUAL(packet.poll.mask, 4);
        CHECK(helio_address_same_ip(&packet.path, &path));
    }
}

static void a_nak_list_holds_1_to_62_in_any_order(void) {
    const helio_address source = ip("10.0.0.1"), group = ip("239.192.0.1");
    uint32_t sequences[63];
    for (uint32_t i = 0; i < 63; i++) {
        sequences[i] = i;
    }
    uint8_t out[512];
    size_t length =
        helio_pgm_encode_nak(out, &built, HELIO_PGM_TYPE_NAK, sequences, 63, &source, &group);
    CHECK_EQUAL(refusal_of(out, length), HELIO_PGM_ACCEPTED);
    memset(out + length, 0, 4); /* one more */
    out[length + 3] = 63;
    out[39] += 4;
    out[41] += 4;
    CHECK_EQUAL(refusal_of(out, length + 4), HELIO_PGM_BAD_OPTIONS);
    CHECK_EQUAL(changed("nak_list", 44, "\0\0\0\x27", 4), HELIO_PGM_ACCEPTED);
    CHECK_EQUAL(changed("nak_list", 44, "\0\0\0\x26", 4), HELIO_PGM_ACCEPTED);
}

static void an_impossible_fragment_is_refused(void) {
    const size_t at = 28 + 4; /* first sequence, offset, length */
    CHECK_EQUAL(changed("odata_fragment", at, "\0\0\0\xa2", 4), HELIO_PGM_BAD_OPTIONS);
    CHECK_EQUAL(changed("odata_fragment", at + 8, "\0\0\0\0", 4), HELIO_PGM_BAD_OPTIONS);
    CHECK_EQUAL(changed("odata_fragment", at + 8, "\0\0\5\x78", 4), HELIO_PGM_BAD_OPTIONS);
    CHECK_EQUAL(changed("odata_fragment", at + 4, "\0\0\x07\xd1", 4), HELIO_PGM_BAD_OPTIONS);
    CHECK_EQUAL(changed("odata_fragment", at + 4, "\0\0\x07\xcd", 4), HELIO_PGM_BAD_OPTIONS);
    CHECK_EQUAL(changed("odata_fragment", at + 8, "\xff\xff\xff\xff", 4), HELIO_PGM_ACCEPTED);
}

static void no_bytes_whatever_break_the_decoder(void) {
    helio_random random;
    helio_random_init(&random, 42);
    size_t accepted = 0;
    for (int i = 0; i < 200000; i++) {
        vector v = vectors[helio_random_below(&random, vector_count)];
        if (i % 2) {
            v.length = helio_random_below(&random, sizeof v.bytes);
            for (size_t k = 0; k < v.length; k++) {
                v.bytes[k] = (uint8_t)helio_random_next(&random);
            }
            if (v.length > 4) {
                v.bytes[4] &= 0x0F;
            }
        } else {
            for (int changes = 1 + (int)helio_random_below(&random, 4); changes > 0; changes--) {
                v.bytes[4 + helio_random_below(&random, v.length - 4)] =
                    (uint8_t)helio_random_next(&random);
            }
            if (helio_random_below(&random, 4) == 0) {
                v.length = helio_random_below(&random, v.length + 1);
            }
        }
        uint8_t *exact = malloc(v.length + 1);
        memcpy(exact, v.bytes, v.length);
        helio_pgm_packet packet;
        const helio_pgm_refusal refusal = v.length >= 16
                                              ? refusal_of(exact, v.length)
                                              : helio_pgm_decode(exact, v.length, &packet);
        free(exact);
        CHECK(refusal <= HELIO_PGM_BAD_ADDRESS);
        accepted += refusal == HELIO_PGM_ACCEPTED;
    }
    CHECK(accepted > 1000);
}

/* ---- checksum ---- */

static uint16_t plain_checksum(const uint8_t *data, size_t length) {
    uint32_t sum = 0;
    for (size_t i = 0; i < length; i++) {
        sum += i % 2 ? data[i] : (uint32_t)data[i] << 8;
    }
    while (sum >> 16) {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    return (uint16_t)sum;
}

static void the_fast_checksum_is_the_plain_one_in_any_parts(void) {
    helio_random random;
    helio_random_init(&random, 1);
    uint8_t data[2000];
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = helio_random_below(&random, 3) ? (uint8_t)helio_random_next(&random) : 0xFF;
    }
    for (int i = 0; i < 3000; i++) {
        const size_t start = helio_random_below(&random, 8);
        const size_t length = helio_random_below(&random, sizeof data - start);
        const size_t cut = helio_random_below(&random, length / 2 + 1) * 2;
        const uint32_t part =
            helio_checksum_add(helio_checksum_part(data + start, cut),
                               helio_checksum_part(data + start + cut, length - cut));
        const uint16_t folded = helio_checksum_fold(part);
        uint8_t big_endian[2];
        memcpy(big_endian, &folded, 2);
        CHECK_EQUAL(big_endian[0] << 8 | big_endian[1], plain_checksum(data + start, length));
    }
}

int main(void) {
    read_golden();
    RUN(golden_packets_are_understood);
    RUN(golden_packets_are_encoded_byte_for_byte);
    RUN(addresses_of_ip_version_6_survive_both_ways);
    RUN(a_full_nak_list_fits);
    RUN(a_repair_is_the_same_packet_with_type_and_trail_changed);
    RUN(what_a_receiver_tells_of_itself_is_read);
    RUN(the_longest_request_with_both_reports_fits);
    RUN(every_truncation_is_refused);
    RUN(a_wrong_size_is_refused);
    RUN(a_wrong_version_or_type_is_refused);
    RUN(a_wrong_checksum_is_refused_and_data_without_one_too);
    RUN(a_wrong_address_family_is_refused);
    RUN(a_broken_chain_of_options_is_refused);
    RUN(at_most_sixteen_options_are_accepted);
    RUN(options_where_they_have_no_business_are_refused);
    RUN(reports_of_a_wrong_length_or_place_are_refused);
    RUN(grants_of_a_wrong_length_or_place_are_refused);
    RUN(questions_for_the_time_and_answers_are_read);
    RUN(questions_and_answers_of_a_wrong_length_or_place_are_refused);
    RUN(what_a_source_says_of_itself_survives_both_ways);
    RUN(a_nak_list_holds_1_to_62_in_any_order);
    RUN(an_impossible_fragment_is_refused);
    RUN(no_bytes_whatever_break_the_decoder);
    RUN(the_fast_checksum_is_the_plain_one_in_any_parts);
    return check_result();
}
