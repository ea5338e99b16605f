/* Reading options.  An option said twice, of another length than its own, or where it has no
 * business makes the whole packet invalid; one that is unknown is skipped by its length. */
#include "wire/pgm_options.h"

#include <string.h>

#include "base/endian.h"
#include "base/sequence.h"

enum {
    CR_BYTES_IPV4 = 24,
    CR_BYTES_IPV6 = 36,
    TG_SIZE_MAX = 1 << 16,
};

static bool is_data(const helio_pgm_packet *packet) {
    return packet->type == HELIO_PGM_TYPE_ODATA || packet->type == HELIO_PGM_TYPE_RDATA;
}

static bool is_nak(const helio_pgm_packet *packet) {
    return packet->type == HELIO_PGM_TYPE_NAK || packet->type == HELIO_PGM_TYPE_NNAK ||
           packet->type == HELIO_PGM_TYPE_NCF;
}

/* Fixed length of an option that has one, 0 for the others. */
static size_t option_bytes(uint8_t option) {
    switch (option) {
    case HELIO_PGM_OPTION_FRAGMENT:
        return HELIO_PGM_FRAGMENT_OPTION;
    case HELIO_PGM_OPTION_JOIN:
    case HELIO_PGM_OPTION_PARITY_PRM:
    case HELIO_PGM_OPTION_PARITY_GRP:
    case HELIO_PGM_OPTION_CURR_TGSIZE:
        return 8;
    case HELIO_PGM_OPTION_NAK_BO_IVL:
    case HELIO_PGM_OPTION_NAK_BO_RNG:
        return 12;
    case HELIO_PGM_OPTION_NBR_UNREACH:
    case HELIO_PGM_OPTION_SYN:
    case HELIO_PGM_OPTION_FIN:
    case HELIO_PGM_OPTION_RST:
    case HELIO_PGM_OPTION_CRQST:
        return 4;
    default:
        return 0;
    }
}

static bool read_fragment(const uint8_t *option, helio_pgm_packet *out) {
    helio_pgm_fragment *fragment = &out->fragment;
    fragment->first = helio_get32(option + 4);
    fragment->offset = helio_get32(option + 8);
    fragment->length = helio_get32(option + 12);
    return is_data(out) && !helio_sequence_before(out->sequence, fragment->first) &&
           fragment->length != 0 && fragment->offset < fragment->length;
}

static bool read_nak_list(const uint8_t *option, size_t bytes, helio_pgm_packet *out) {
    const size_t count = (bytes - 4) / 4;
    if (!is_nak(out) || bytes % 4 != 0 || count == 0 || count > HELIO_PGM_NAK_LIST_MAX) {
        return false;
    }
    /* In any order: OpenPGM puts what it asks for again behind what is new. */
    for (size_t i = 0; i < count; i++) {
        out->list[i] = helio_get32(option + 4 + 4 * i);
    }
    out->list_count = (uint32_t)count;
    return true;
}

static bool read_backoff(const uint8_t *option, helio_pgm_packet *out) {
    out->backoff.interval_us = helio_get32(option + 4);
    out->backoff.poll_sequence = helio_get32(option + 8);
    return out->type == HELIO_PGM_TYPE_SPM || out->type == HELIO_PGM_TYPE_NCF ||
           out->type == HELIO_PGM_TYPE_POLL;
}

static bool read_backoff_range(const uint8_t *option, helio_pgm_packet *out) {
    out->backoff.max_us = helio_get32(option + 4);
    out->backoff.min_us = helio_get32(option + 8);
    return out->type == HELIO_PGM_TYPE_SPM && out->backoff.min_us <= out->backoff.max_us;
}

static bool read_parity(const uint8_t *option, helio_pgm_packet *out) {
    const uint32_t size = helio_get32(option + 4);
    return out->type == HELIO_PGM_TYPE_SPM && size >= 1 && size <= TG_SIZE_MAX &&
           (size & (size - 1)) == 0;
}

static bool read_report(const uint8_t *option, size_t bytes, helio_pgm_packet *out) {
    const uint16_t family = bytes >= CR_BYTES_IPV4 ? helio_get16(option + 16) : 0;
    if (!is_nak(out) || bytes != (family == HELIO_PGM_AFI_IPV6 ? CR_BYTES_IPV6 : CR_BYTES_IPV4) ||
        (family != HELIO_PGM_AFI_IPV4 && family != HELIO_PGM_AFI_IPV6)) {
        return false;
    }
    helio_pgm_report *report = &out->report;
    *report = (helio_pgm_report){
        .fields = option[3] & HELIO_PGM_REPORT_ALL,
        .reference = helio_get32(option + 4),
        .worst_link = helio_get16(option + 8),
        .worst_path = helio_get16(option + 10),
        .receiver_loss = helio_get16(option + 12),
        .receiver.family = family == HELIO_PGM_AFI_IPV4 ? 4 : 6,
    };
    memcpy(report->receiver.ip, option + 20, bytes - 20);
    return true;
}

static bool read_acknowledge(const uint8_t *option, size_t bytes, helio_pgm_packet *out) {
    helio_pgm_acknowledge *acknowledge = &out->acknowledge;
    if (bytes < HELIO_PGM_ACKNOWLEDGE_OPTION ||
        bytes > HELIO_PGM_ACKNOWLEDGE_OPTION + HELIO_PGM_ACKNOWLEDGE_NAME_MAX) {
        return false;
    }
    *acknowledge = (helio_pgm_acknowledge){
        .kind = option[4],
        .flags = option[5],
        .receiver = helio_get64(option + 8),
        .incarnation = helio_get64(option + 16),
        .first = helio_get32(option + 24),
        .position = helio_get32(option + 28),
        .name = (const char *)option + HELIO_PGM_ACKNOWLEDGE_OPTION,
        .name_bytes = bytes - HELIO_PGM_ACKNOWLEDGE_OPTION,
    };
    return (acknowledge->kind == HELIO_PGM_ACK_TRANSPORT ||
            acknowledge->kind == HELIO_PGM_ACK_APPLICATION) &&
           !helio_sequence_before(acknowledge->position + 1, acknowledge->first) &&
           !helio_sequence_before(out->sequence, acknowledge->position);
}

static bool read_told(const uint8_t *option, size_t bytes, helio_pgm_packet *out) {
    helio_pgm_receiver_report *receiver_report = &out->receiver_report;
    if (bytes < HELIO_PGM_REPORT_OPTION ||
        bytes > HELIO_PGM_REPORT_OPTION + HELIO_PGM_REPORT_NAME_MAX) {
        return false;
    }
    *receiver_report = (helio_pgm_receiver_report){
        .flags = option[4],
        .buffer_fill = helio_get16(option + 6),
        .receiver = helio_get64(option + 8),
        .incarnation = helio_get64(option + 16),
        .received = helio_get32(option + 24),
        .lost = helio_get32(option + 28),
        .unrecoverable = helio_get32(option + 32),
        .position = helio_get32(option + 36),
        .window = helio_get32(option + 40),
        .stamp = helio_get32(option + 44),
        .hold_us = helio_get32(option + 48),
        .name = (const char *)option + HELIO_PGM_REPORT_OPTION,
        .name_bytes = bytes - HELIO_PGM_REPORT_OPTION,
    };
    return out->type != HELIO_PGM_TYPE_ACK ||
           !helio_sequence_before(out->sequence, receiver_report->position);
}

static bool read_reporting(const uint8_t *option, size_t bytes, helio_pgm_packet *out) {
    if (bytes != HELIO_PGM_REPORTING_OPTION) {
        return false;
    }
    out->reporting = (helio_pgm_reporting){
        .interval_us = helio_get32(option + 4),
        .stamp = helio_get32(option + 8),
        .progress = helio_get32(option + 12),
        .acker = helio_get64(option + 16),
        .flags = option[3],
    };
    return true;
}

/* There may be several. */
static bool read_notice(const uint8_t *option, size_t bytes, helio_pgm_packet *out) {
    if (out->notices_count == HELIO_PGM_NOTICES_MAX) {
        return false;
    }
    out->notices[out->notices_count++] = (helio_pgm_notice){
        .action = option[4],
        .reason = option[5],
        .serial = helio_get32(option + 8),
        .duration_ms = helio_get32(option + 12),
        .receiver = helio_get64(option + 16),
        .incarnation = helio_get64(option + 24),
        .text = (const char *)option + HELIO_PGM_NOTICE_OPTION,
        .text_bytes = bytes - HELIO_PGM_NOTICE_OPTION,
    };
    return true;
}

static bool read_grants(const uint8_t *option, size_t bytes, helio_pgm_packet *out) {
    const size_t count = (bytes - HELIO_PGM_GRANT_OPTION) / HELIO_PGM_GRANT_ENTRY;
    if (bytes != HELIO_PGM_GRANT_OPTION + count * HELIO_PGM_GRANT_ENTRY || count == 0 ||
        count > HELIO_PGM_GRANTS_MAX) {
        return false;
    }
    out->grants_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *entry = option + HELIO_PGM_GRANT_OPTION + i * HELIO_PGM_GRANT_ENTRY;
        out->grants[i] = (helio_pgm_grant){helio_get64(entry), helio_get64(entry + 8)};
    }
    return true;
}

static bool read_clock(const uint8_t *option, size_t bytes, helio_pgm_packet *out) {
    if (bytes != HELIO_PGM_CLOCK_OPTION) {
        return false;
    }
    out->clock = (helio_pgm_clock){
        .source = option[3],
        .token = helio_get32(option + 4),
        .offset_ns = (int64_t)helio_get64(option + 8),
        .bound_ns = helio_get64(option + 16),
    };
    return true;
}

static bool read_time(const uint8_t *option, size_t bytes, helio_pgm_packet *out) {
    if (bytes < HELIO_PGM_CLOCK_ANSWER_OPTION) {
        return false;
    }
    const size_t rest = bytes - HELIO_PGM_CLOCK_ANSWER_OPTION;
    const size_t count = rest / HELIO_PGM_CLOCK_ANSWER_ENTRY;
    if (rest % HELIO_PGM_CLOCK_ANSWER_ENTRY != 0 || count > HELIO_PGM_CLOCK_ANSWERS_MAX) {
        return false;
    }
    helio_pgm_time *time = &out->time;
    time->sent_ns = helio_get64(option + 4);
    time->wall_ns = helio_get64(option + 12);
    time->answers_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *at =
            option + HELIO_PGM_CLOCK_ANSWER_OPTION + i * HELIO_PGM_CLOCK_ANSWER_ENTRY;
        time->answers[i] =
            (helio_pgm_clock_answer){helio_get64(at), helio_get32(at + 8), helio_get64(at + 12)};
    }
    return true;
}

/* A port is there, and no bytes beyond an IPv4 address.  `may_be_open`: an address may be left
 * out. */
static bool read_store(const uint8_t *at, bool may_be_open, helio_address *out) {
    const uint16_t family = helio_get16(at);
    const size_t ip_bytes = family == HELIO_PGM_AFI_IPV6   ? 16
                            : family == HELIO_PGM_AFI_IPV4 ? 4
                                                           : 0;
    *out = (helio_address){
        .family = ip_bytes == 16 ? 6 : (uint8_t)ip_bytes,
        .port = helio_get16(at + 2),
    };
    memcpy(out->ip, at + 4, ip_bytes);
    if (out->port == 0 || (ip_bytes == 0 && !(may_be_open && family == 0)) ||
        helio_address_is_multicast(out)) {
        return false;
    }
    for (size_t i = ip_bytes; i < sizeof out->ip; i++) {
        if (at[4 + i] != 0) {
            return false;
        }
    }
    return ip_bytes == 0 || !helio_address_is_unspecified(out);
}

static bool read_stores(const uint8_t *option, size_t bytes, helio_pgm_packet *out) {
    const size_t rest = bytes - HELIO_PGM_STORES_OPTION;
    const size_t count = rest / HELIO_PGM_STORE_ENTRY;
    if (rest % HELIO_PGM_STORE_ENTRY != 0 || count == 0 || count > HELIO_PGM_STORES_MAX) {
        return false;
    }
    out->stores_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *entry = option + HELIO_PGM_STORES_OPTION + i * HELIO_PGM_STORE_ENTRY;
        if (!read_store(entry, false, &out->stores[i])) {
            return false;
        }
    }
    return true;
}

/* Reads one option, whose `bytes` are within the chain. */
static bool read_option(const uint8_t *option, size_t bytes, helio_pgm_packet *out) {
    const uint8_t type = option[0] & 0x7F;
    const size_t fixed = option_bytes(type);
    if (fixed && bytes != fixed) {
        return false;
    }
    uint32_t bit = HELIO_PGM_HAS_OTHER;
    bool good = true;
    switch (type) {
    case HELIO_PGM_OPTION_LENGTH: /* only the first may be one */
        return false;
    case HELIO_PGM_OPTION_FRAGMENT:
        bit = HELIO_PGM_HAS_FRAGMENT;
        good = read_fragment(option, out);
        break;
    case HELIO_PGM_OPTION_NAK_LIST:
        bit = HELIO_PGM_HAS_NAK_LIST;
        good = read_nak_list(option, bytes, out);
        break;
    case HELIO_PGM_OPTION_JOIN:
        bit = HELIO_PGM_HAS_JOIN;
        out->join = helio_get32(option + 4);
        break;
    case HELIO_PGM_OPTION_NAK_BO_IVL:
        bit = HELIO_PGM_HAS_NAK_BO_IVL;
        good = read_backoff(option, out);
        break;
    case HELIO_PGM_OPTION_NAK_BO_RNG:
        bit = HELIO_PGM_HAS_NAK_BO_RNG;
        good = read_backoff_range(option, out);
        break;
    case HELIO_PGM_OPTION_PARITY_PRM:
        bit = HELIO_PGM_HAS_PARITY_PRM;
        good = read_parity(option, out);
        break;
    case HELIO_PGM_OPTION_PARITY_GRP:
        good = is_data(out);
        break;
    case HELIO_PGM_OPTION_FIN:
        bit = HELIO_PGM_HAS_FIN;
        break;
    case HELIO_PGM_OPTION_RST:
        bit = HELIO_PGM_HAS_RST;
        good = out->type == HELIO_PGM_TYPE_SPM;
        break;
    case HELIO_PGM_OPTION_SYN:
        bit = HELIO_PGM_HAS_SYN;
        break;
    case HELIO_PGM_OPTION_NBR_UNREACH:
        bit = HELIO_PGM_HAS_NBR_UNREACH;
        break;
    /* Private ones: on other packets they are somebody else's. */
    case HELIO_PGM_OPTION_ACKNOWLEDGE:
        if (out->type == HELIO_PGM_TYPE_ACK) {
            bit = HELIO_PGM_HAS_ACKNOWLEDGE;
            good = read_acknowledge(option, bytes, out);
        }
        break;
    case HELIO_PGM_OPTION_AWAIT:
        if (out->type == HELIO_PGM_TYPE_SPM && bytes == HELIO_PGM_AWAIT_OPTION) {
            bit = HELIO_PGM_HAS_AWAIT;
            out->awaited = helio_get32(option + 4);
        }
        break;
    case HELIO_PGM_OPTION_REPORT:
        if (out->type == HELIO_PGM_TYPE_NAK || out->type == HELIO_PGM_TYPE_ACK) {
            bit = HELIO_PGM_HAS_REPORT;
            good = read_told(option, bytes, out);
        }
        break;
    case HELIO_PGM_OPTION_REPORTING:
        if (out->type == HELIO_PGM_TYPE_SPM) {
            bit = HELIO_PGM_HAS_REPORTING;
            good = read_reporting(option, bytes, out);
        }
        break;
    case HELIO_PGM_OPTION_NOTICE:
        if (out->type == HELIO_PGM_TYPE_SPM && bytes >= HELIO_PGM_NOTICE_OPTION &&
            bytes <= HELIO_PGM_NOTICE_OPTION + HELIO_PGM_NOTICE_TEXT_MAX) {
            bit = HELIO_PGM_HAS_NOTICE;
            good = read_notice(option, bytes, out);
        }
        break;
    case HELIO_PGM_OPTION_GRANT:
        if (out->type == HELIO_PGM_TYPE_ACK) {
            bit = HELIO_PGM_HAS_GRANT;
            good = read_grants(option, bytes, out);
        }
        break;
    case HELIO_PGM_OPTION_CLOCK:
        if (out->type == HELIO_PGM_TYPE_ACK) {
            bit = HELIO_PGM_HAS_CLOCK;
            good = read_clock(option, bytes, out);
        }
        break;
    case HELIO_PGM_OPTION_CLOCK_ANSWER:
        if (out->type == HELIO_PGM_TYPE_SPM) {
            bit = HELIO_PGM_HAS_CLOCK_ANSWER;
            good = read_time(option, bytes, out);
        }
        break;
    case HELIO_PGM_OPTION_SERVICE:
        if (out->options & HELIO_PGM_HAS_ACKNOWLEDGE) { /* it belongs to that option */
            bit = HELIO_PGM_HAS_SERVICE;
            good = bytes == HELIO_PGM_SERVICE_OPTION &&
                   read_store(option + 4, true, &out->acknowledge.service);
        }
        break;
    case HELIO_PGM_OPTION_STORES:
        if (out->type == HELIO_PGM_TYPE_SPM) {
            bit = HELIO_PGM_HAS_STORES;
            good = read_stores(option, bytes, out);
        }
        break;
    case HELIO_PGM_OPTION_CRQST:
        bit = HELIO_PGM_HAS_CRQST;
        good = out->type == HELIO_PGM_TYPE_SPM;
        out->report.fields = option[3] & HELIO_PGM_REPORT_ALL;
        break;
    case HELIO_PGM_OPTION_CR:
        bit = HELIO_PGM_HAS_CR;
        good = read_report(option, bytes, out);
        break;
    default:
        break;
    }
    const uint32_t repeatable = HELIO_PGM_HAS_OTHER | HELIO_PGM_HAS_NOTICE;
    if (out->options & bit & ~repeatable) {
        return false; /* said twice */
    }
    out->options |= bit;
    return good;
}

helio_pgm_refusal helio_pgm_read_options(const uint8_t **at, const uint8_t *end,
                                         helio_pgm_packet *out) {
    const uint8_t *option = *at;
    if (end - option < 4 || option[0] != HELIO_PGM_OPTION_LENGTH || option[1] != 4) {
        return HELIO_PGM_BAD_OPTIONS;
    }
    const size_t total = helio_get16(option + 2);
    if (total < 8 || total > (size_t)(end - option)) {
        return HELIO_PGM_BAD_OPTIONS;
    }
    const uint8_t *chain_end = option + total;
    option += 4;
    for (size_t count = 1;; count++) {
        if (count > HELIO_PGM_OPTIONS_MAX || chain_end - option < 4) {
            return HELIO_PGM_BAD_OPTIONS;
        }
        const size_t bytes = option[1];
        if (bytes < 4 || bytes > (size_t)(chain_end - option) || !read_option(option, bytes, out)) {
            return HELIO_PGM_BAD_OPTIONS;
        }
        const bool last = option[0] & HELIO_PGM_OPTION_END;
        option += bytes;
        if (last) {
            break;
        }
    }
    if (option != chain_end) {
        return HELIO_PGM_BAD_OPTIONS;
    }
    *at = chain_end;
    return HELIO_PGM_ACCEPTED;
}
