/* PGM packets (RFC 3208): decoding everything that may come, encoding what a source and a receiver
 * send.
 *
 * Decoding trusts nothing: each length is checked before the bytes behind it are read, and a packet
 * that breaks a rule is refused with the rule's name.  What is decoded points into the packet. */
#ifndef HELIO_WIRE_PGM_H
#define HELIO_WIRE_PGM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <heliograph/actions.h>

#include "base/address.h"
#include "base/endian.h"
#include "base/tsi.h"
#include "generated/protocol.h"
#include "generated/statistics.h"
#include "wire/checksum.h"

enum {
    HELIO_PGM_PORT_BYTES = 2,
    /* Bounds of an endpoint's largest packet: the least any path carries, and the most one
     * datagram holds. */
    HELIO_PGM_PACKET_MIN = 548,
    HELIO_PGM_PACKET_MAX = 65507,
    /* Header, OPT_LENGTH and OPT_FRAGMENT of a fragment. */
    HELIO_PGM_FRAGMENT_HEADER = HELIO_PGM_DATA_HEADER + 4 + HELIO_PGM_FRAGMENT_OPTION,
    /* The largest packet without data: a NAK with IPv6 addresses, a full list and both reports. */
    HELIO_PGM_CONTROL_MAX = HELIO_PGM_HEADER + 44 + 4 + 4 + 4 * HELIO_PGM_NAK_LIST_MAX + 36 +
                            HELIO_PGM_REPORT_OPTION + HELIO_PGM_REPORT_NAME_MAX,
};

/* Why a packet is refused: the values of instance.invalid_packets. */
typedef enum helio_pgm_refusal {
    HELIO_PGM_ACCEPTED,
    HELIO_PGM_BAD_SIZE,     /* shorter than its header, or TSDU length and datagram disagree */
    HELIO_PGM_BAD_VERSION,  /* version or reserved bits */
    HELIO_PGM_BAD_TYPE,     /* no such packet type */
    HELIO_PGM_BAD_CHECKSUM, /* wrong, or absent on data */
    HELIO_PGM_BAD_OPTIONS,  /* the chain breaks a rule */
    HELIO_PGM_BAD_ADDRESS,  /* address family unknown or families differ */
    HELIO_PGM_BAD_PAYLOAD,  /* the batch is damaged (wire/tsdu.h) */
} helio_pgm_refusal;

/* Counts a refusal in the instance's statistics. */
void helio_pgm_count_refusal(helio_instance_stats *instance, helio_pgm_refusal refusal);

/* Options found, as bits of helio_pgm_packet.options. */
enum {
    HELIO_PGM_HAS_FRAGMENT = 1 << 0,
    HELIO_PGM_HAS_NAK_LIST = 1 << 1,
    HELIO_PGM_HAS_FIN = 1 << 2,
    HELIO_PGM_HAS_RST = 1 << 3,
    HELIO_PGM_HAS_SYN = 1 << 4,
    HELIO_PGM_HAS_JOIN = 1 << 5,
    HELIO_PGM_HAS_NBR_UNREACH = 1 << 6,
    HELIO_PGM_HAS_OTHER = 1 << 7, /* valid, and of no consequence to this engine */
    HELIO_PGM_HAS_NAK_BO_IVL = 1 << 8,
    HELIO_PGM_HAS_NAK_BO_RNG = 1 << 9,
    HELIO_PGM_HAS_CRQST = 1 << 10,
    HELIO_PGM_HAS_CR = 1 << 11,
    HELIO_PGM_HAS_PARITY_PRM = 1 << 12,
    HELIO_PGM_HAS_ACKNOWLEDGE = 1 << 13,
    HELIO_PGM_HAS_AWAIT = 1 << 14,
    HELIO_PGM_HAS_REPORT = 1 << 15,
    HELIO_PGM_HAS_REPORTING = 1 << 16,
    HELIO_PGM_HAS_NOTICE = 1 << 17,
    HELIO_PGM_HAS_GRANT = 1 << 18,
    HELIO_PGM_HAS_CLOCK = 1 << 19,
    HELIO_PGM_HAS_CLOCK_ANSWER = 1 << 20,
    HELIO_PGM_HAS_SERVICE = 1 << 21,
    HELIO_PGM_HAS_STORES = 1 << 22,
};

typedef struct helio_pgm_fragment {
    uint32_t first;  /* sequence of the APDU's first packet */
    uint32_t offset; /* of this packet's data within the APDU */
    uint32_t length; /* of the APDU */
} helio_pgm_fragment;

/* An acknowledgement (docs/wire.md 1.1): the private option of an ACK. */
typedef struct helio_pgm_acknowledge {
    uint8_t kind;         /* HELIO_PGM_ACK_TRANSPORT or _APPLICATION */
    uint8_t flags;        /* HELIO_PGM_ACK_LEAVING, HELIO_PGM_ACK_STORE */
    uint64_t receiver;    /* the same in each of its lives */
    uint64_t incarnation; /* greater in a later life */
    uint32_t first;       /* where it joined */
    uint32_t position;    /* newest sequence acknowledged, with all from `first`; first - 1: none */
    const char *name;     /* for people; not NUL-terminated */
    size_t name_bytes;    /* at most HELIO_PGM_ACKNOWLEDGE_NAME_MAX */
    /* HAS_SERVICE: of a message store (docs/wire.md 1.7).  Port 0: it does not say; family 0: at the
     * address that the packet comes from. */
    helio_address service;
} helio_pgm_acknowledge;

/* A receiver's report (docs/wire.md 1.2): the private option of NAKs and ACKs.  Counts are
 * circular. */
typedef struct helio_pgm_receiver_report {
    uint8_t flags;          /* HELIO_PGM_RECEIVER_REPORT_* */
    uint16_t buffer_fill;   /* how full its buffers are, in 65535ths */
    uint64_t receiver;      /* the same in each of its lives */
    uint64_t incarnation;   /* greater in a later life */
    uint32_t received;      /* data packets, each once */
    uint32_t lost;          /* data packets first seen missing, whether or not they came later */
    uint32_t unrecoverable; /* of these, given up for good */
    uint32_t position;      /* newest sequence passed on in order */
    uint32_t window;        /* packets beyond `position` it has room for */
    uint32_t stamp;         /* of the newest SPM with one; meaningful with a hold time */
    uint32_t hold_us;       /* since then; HELIO_PGM_RECEIVER_REPORT_NO_ECHO: none was heard */
    const char *name;       /* for people; not NUL-terminated */
    size_t name_bytes;      /* at most HELIO_PGM_REPORT_NAME_MAX; 0: not told this time */
} helio_pgm_receiver_report;

/* When receivers are to report: the private option of SPMs. */
typedef struct helio_pgm_reporting {
    uint32_t interval_us; /* 0: only together with what is sent anyway */
    uint32_t stamp;       /* to be told back; 0: none */
    uint32_t progress;    /* report at once after this many packets passed on; 0: off */
    uint64_t acker;       /* this receiver: at once for each packet; 0: nobody */
    uint8_t flags;        /* HELIO_PGM_REPORTING_* */
} helio_pgm_reporting;

/* Sources and receivers both rely on these: a report without news waits this many intervals,
 * and a topic's credit is granted again after this long at the latest. */
enum { HELIO_PGM_REPORT_REST = 10 };
#define HELIO_PGM_GRANT_REPEAT_NS HELIO_SECOND

/* A notice: an action of the source at a receiver, and why (docs/wire.md 1.3). */
typedef struct helio_pgm_notice {
    uint8_t action; /* helio_action; a later version may know more */
    uint8_t reason; /* HELIO_PGM_REASON_*, BY_HAND included */
    uint32_t serial;
    uint32_t duration_ms; /* how much longer; at most HELIO_PGM_NOTICE_TIME_MAX when sent */
    uint64_t receiver;    /* 0: everybody */
    uint64_t incarnation; /* 0: any */
    const char *text;     /* for people; not NUL-terminated */
    size_t text_bytes;    /* at most HELIO_PGM_NOTICE_TEXT_MAX */
} helio_pgm_notice;

/* How far a receiver lets its source go on with a topic (docs/wire.md 1.4). */
typedef struct helio_pgm_grant {
    uint64_t topic; /* identifier */
    uint64_t limit; /* number of the first message that may not be sent yet */
} helio_pgm_grant;
#define HELIO_PGM_GRANT_UNBOUND UINT64_MAX /* the receiver no longer holds the source back */

/* A receiver asks its source for the time, and tells what it knows (docs/wire.md 1.5). */
typedef struct helio_pgm_clock {
    uint8_t
        source; /* HELIO_PGM_CLOCK_*: what the offset is known by; a later version may know more */
    uint32_t token;    /* to be told back; 0: nothing is asked */
    int64_t offset_ns; /* how far the receiver's wall clock is ahead of the source's */
    uint64_t bound_ns; /* it is off by no more */
} helio_pgm_clock;

/* That a receiver's question came. */
typedef struct helio_pgm_clock_answer {
    uint64_t receiver;
    uint32_t token;
    uint64_t came_ns; /* on the source's monotonic clock */
} helio_pgm_clock_answer;

/* The source's time when an SPM is sent, and answers. */
typedef struct helio_pgm_time {
    uint64_t sent_ns;       /* monotonic, any origin */
    uint64_t wall_ns;       /* the same moment, since 1970 */
    uint32_t answers_count; /* at most HELIO_PGM_CLOCK_ANSWERS_MAX */
    helio_pgm_clock_answer answers[HELIO_PGM_CLOCK_ANSWERS_MAX];
} helio_pgm_time;

/* How long NAKs are to be held back. */
typedef struct helio_pgm_backoff {
    uint32_t interval_us;   /* HAS_NAK_BO_IVL */
    uint32_t poll_sequence; /* HAS_NAK_BO_IVL: the poll it was found by; 0: none */
    uint32_t min_us;        /* HAS_NAK_BO_RNG */
    uint32_t max_us;        /* HAS_NAK_BO_RNG; not below min_us */
} helio_pgm_backoff;

/* A congestion report; shares of lost packets are in 65535ths. */
typedef struct helio_pgm_report {
    uint8_t fields;         /* HELIO_PGM_REPORT_*, also those HAS_CRQST asks for */
    uint32_t reference;     /* newest sequence when it was made */
    uint16_t worst_link;    /* of the network elements on the way */
    uint16_t worst_path;    /* of the network elements on the way */
    uint16_t receiver_loss; /* of the receiver */
    helio_address receiver; /* port 0 */
} helio_pgm_report;

/* A question to those receivers whose number matches `random` in the bits of `mask`, and the answer
 * to it (POLR: round only). */
typedef struct helio_pgm_poll {
    uint16_t round;
    uint16_t subtype;
    uint32_t backoff_us; /* answers come after a random time up to this */
    uint32_t random;
    uint32_t mask;
} helio_pgm_poll;

typedef struct helio_pgm_packet {
    helio_tsi tsi;             /* of the stream, whichever way the packet goes */
    uint16_t destination_port; /* data-destination port, whichever way the packet goes */
    uint8_t type;              /* HELIO_PGM_TYPE_* */
    uint8_t flags;             /* HELIO_PGM_FLAG_* */
    uint32_t options;          /* HELIO_PGM_HAS_* */
    uint32_t sequence;         /* SPM_SQN, data SQN, first NAK SQN, POLL_SQN, RX_MAX of an ACK */
    uint32_t trail;            /* SPM and data */
    uint32_t lead;             /* SPM */
    const uint8_t *tsdu;       /* data */
    uint32_t tsdu_bytes;
    uint32_t join;                             /* HAS_JOIN: minimum sequence */
    helio_pgm_fragment fragment;               /* HAS_FRAGMENT */
    helio_address path;                        /* SPM, POLL: port 0 */
    helio_address source;                      /* NAK, NNAK, NCF: port 0 */
    helio_address group;                       /* NAK, NNAK, NCF: port 0 */
    uint32_t bitmap;                           /* ACK: bit i is set when RX_MAX - i was received */
    helio_pgm_acknowledge acknowledge;         /* HAS_ACKNOWLEDGE */
    helio_pgm_receiver_report receiver_report; /* HAS_REPORT */
    helio_pgm_reporting reporting;             /* HAS_REPORTING */
    uint32_t grants_count;                     /* HAS_GRANT */
    helio_pgm_grant grants[HELIO_PGM_GRANTS_MAX];
    helio_pgm_clock clock;     /* HAS_CLOCK */
    helio_pgm_time time;       /* HAS_CLOCK_ANSWER */
    uint32_t awaited;          /* HAS_AWAIT: oldest packet that needs more acknowledgements */
    helio_pgm_poll poll;       /* POLL, POLR */
    helio_pgm_backoff backoff; /* HAS_NAK_BO_IVL, HAS_NAK_BO_RNG */
    helio_pgm_report report;   /* HAS_CR; HAS_CRQST: the fields asked for */
    uint32_t stores_count;     /* HAS_STORES */
    helio_address stores[HELIO_PGM_STORES_MAX];
    uint32_t notices_count; /* HAS_NOTICE */
    helio_pgm_notice notices[HELIO_PGM_NOTICES_MAX];
    uint32_t list_count;                   /* sequences in `list`, at most 62 */
    uint32_t list[HELIO_PGM_NAK_LIST_MAX]; /* HAS_NAK_LIST: the sequences after the first */
} helio_pgm_packet;

/* Reads a datagram.  Fields that the packet's type or options do not give are undefined, but for
 * options and list_count.  The checksum is verified unless it is 0 on a packet that may go without.
 */
helio_pgm_refusal helio_pgm_decode(const void *datagram, size_t length, helio_pgm_packet *out);
/* The same for packets from memory, where also data may go without a checksum. */
helio_pgm_refusal helio_pgm_decode_unsummed(const void *datagram, size_t length,
                                            helio_pgm_packet *out);

/* Whole data (ODATA) without options. */
typedef struct helio_pgm_plain {
    uint32_t sequence;
    uint32_t trail;
    const uint8_t *tsdu;
    uint32_t tsdu_bytes;
} helio_pgm_plain;

/* Reads a datagram of whole data without options and flags.  False: it is something else.  The
 * checksum is not verified.  Inline, so that what is read stays in registers. */
static inline bool helio_pgm_read_plain(const void *datagram, size_t length, helio_pgm_plain *out) {
    const uint8_t *packet = datagram;
    if (length < HELIO_PGM_DATA_HEADER || helio_get16(packet + 4) != HELIO_PGM_TYPE_ODATA << 8 ||
        helio_get16(packet + 14) != length - HELIO_PGM_DATA_HEADER) {
        return false;
    }
    out->sequence = helio_get32(packet + HELIO_PGM_HEADER);
    out->trail = helio_get32(packet + HELIO_PGM_HEADER + 4);
    out->tsdu = packet + HELIO_PGM_DATA_HEADER;
    out->tsdu_bytes = (uint32_t)(length - HELIO_PGM_DATA_HEADER);
    return true;
}
/* Data with a whole header belongs to this stream.  Its parts are compared where they are: a word
 * put together of them would wait until their stores are done. */
static inline bool helio_pgm_is_of(const void *datagram, const helio_tsi *tsi) {
    const uint8_t *packet = datagram;
    return memcmp(packet + 8, tsi->gsi, HELIO_GSI_BYTES) == 0 && helio_get16(packet) == tsi->port;
}
/* The checksum of a packet is right.  `must_have`: a packet without one is refused. */
static inline bool helio_pgm_has_right_sum(const void *datagram, size_t length, bool must_have) {
    uint16_t checksum;
    memcpy(&checksum, (const uint8_t *)datagram + 6, sizeof checksum);
    return checksum ? helio_checksum_fold(helio_checksum_part(datagram, length)) == 0xFFFF
                    : !must_have;
}

/* Gives a data packet the checksum that it goes without; other packets stay as they are. */
void helio_pgm_sum_data(void *packet, size_t length);

/* The data-source port of a packet, which tells the streams of one source apart; nothing else of it
 * is looked at. False: it is too short to have one. */
bool helio_pgm_peek_port(const uint8_t *packet, size_t length, uint16_t *port);

/* ---- encoding: `out` must have room for HELIO_PGM_CONTROL_MAX; returns the packet's length ----
 */

/* Which stream, and the endpoint's port. */
typedef struct helio_pgm_session {
    helio_tsi tsi;
    uint16_t destination_port;
} helio_pgm_session;

typedef struct helio_pgm_spm {
    uint32_t sequence;
    uint32_t trail;
    uint32_t lead;
    bool fin;
    bool offers_history; /* OPT_JOIN: receivers that come late may ask for packets from `join` on */
    uint32_t join;
    bool rst;            /* given up, requests will not be answered (OPT_RST with N) */
    uint32_t backoff_us; /* NAK_BO_IVL; 0: none */
    bool awaits_acks;    /* receivers that acknowledge are to begin with `awaited` */
    uint32_t awaited;
    bool takes_reports; /* receivers may tell of themselves, as `reporting` says */
    helio_pgm_reporting reporting;
    const helio_pgm_notice *notices;
    uint32_t notices_count;      /* at most HELIO_PGM_NOTICES_MAX */
    const helio_pgm_time *time;  /* NULL: none */
    const helio_address *stores; /* services of message stores */
    uint32_t stores_count;       /* at most HELIO_PGM_STORES_MAX; 0 on an SPM with notices */
} helio_pgm_spm;

size_t helio_pgm_encode_spm(void *out, const helio_pgm_session *session, const helio_pgm_spm *spm,
                            const helio_address *path);
/* type: NAK, NNAK or NCF.  sequences: 1 to 63, what we ask for oldest first.  `source` and `group`
 * are of one family. */
size_t helio_pgm_encode_nak(void *out, const helio_pgm_session *session, uint8_t type,
                            const uint32_t *sequences, size_t count, const helio_address *source,
                            const helio_address *group);
/* The same with an NCF's advice how long to hold NAKs back (0: none), and a NAK's congestion report
 * and the report of its receiver (NULL: none). */
size_t helio_pgm_encode_nak_with(void *out, const helio_pgm_session *session, uint8_t type,
                                 const uint32_t *sequences, size_t count,
                                 const helio_address *source, const helio_address *group,
                                 uint32_t backoff_us, const helio_pgm_report *report,
                                 const helio_pgm_receiver_report *receiver_report);
size_t helio_pgm_encode_poll(void *out, const helio_pgm_session *session, uint32_t sequence,
                             const helio_pgm_poll *poll, const helio_address *path);
size_t helio_pgm_encode_polr(void *out, const helio_pgm_session *session, uint32_t sequence,
                             uint16_t round);
size_t helio_pgm_encode_spmr(void *out, const helio_pgm_session *session);
/* NULL: nothing is acknowledged, or no report.  Names longer than fit are cut. */
size_t helio_pgm_encode_ack(void *out, const helio_pgm_session *session, uint32_t rx_max,
                            uint32_t bitmap, const helio_pgm_acknowledge *acknowledge,
                            const helio_pgm_receiver_report *receiver_report);
/* The same with credit that is granted, at most HELIO_PGM_GRANTS_MAX, and a question for the time
 * (NULL: none). */
size_t helio_pgm_encode_ack_with(void *out, const helio_pgm_session *session, uint32_t rx_max,
                                 uint32_t bitmap, const helio_pgm_acknowledge *acknowledge,
                                 const helio_pgm_receiver_report *receiver_report,
                                 const helio_pgm_grant *grants, uint32_t grants_count,
                                 const helio_pgm_clock *clock);

/* Writes the header of a data packet in front of `tsdu_bytes` that are in place at
 * HELIO_PGM_DATA_HEADER, or with a fragment at HELIO_PGM_FRAGMENT_HEADER, of `packet`.
 * `payload_sum` is their partial checksum; HELIO_PGM_NO_SUM: the packet goes without a checksum.
 * Returns the packet's length. */
#define HELIO_PGM_NO_SUM UINT32_MAX
size_t helio_pgm_encode_data(void *packet, const helio_pgm_session *session, uint32_t sequence,
                             uint32_t trail, const helio_pgm_fragment *fragment, size_t tsdu_bytes,
                             uint32_t payload_sum);

/* The header of a stream's whole data packets: what is the same in all of them, and its sum. */
typedef struct helio_pgm_data_head {
    uint8_t bytes[HELIO_PGM_HEADER];
    uint32_t sum;
} helio_pgm_data_head;

void helio_pgm_prepare_data(helio_pgm_data_head *head, const helio_pgm_session *session);
/* As helio_pgm_encode_data, of a packet without a fragment. */
static inline size_t helio_pgm_put_data(uint8_t *packet, const helio_pgm_data_head *head,
                                        uint32_t sequence, uint32_t trail, size_t tsdu_bytes,
                                        uint32_t payload_sum) {
    enum { AT_CHECKSUM = 6, AT_TSDU_LENGTH = 14, AT_SEQUENCE = 16, AT_TRAIL = 20 };
    uint16_t length;
    uint32_t numbers[2];
    memcpy(packet, head->bytes, sizeof head->bytes);
    helio_put16(packet + AT_TSDU_LENGTH, (uint16_t)tsdu_bytes);
    helio_put32(packet + AT_SEQUENCE, sequence);
    helio_put32(packet + AT_TRAIL, trail);
    if (payload_sum != HELIO_PGM_NO_SUM) {
        helio_put16(&length, (uint16_t)tsdu_bytes);
        helio_put32(numbers, sequence);
        helio_put32(numbers + 1, trail);
        const uint64_t sum = (uint64_t)head->sum + length + numbers[0] + numbers[1] + payload_sum;
        const uint16_t checksum =
            helio_checksum_finish(helio_checksum_add((uint32_t)sum, (uint32_t)(sum >> 32)));
        memcpy(packet + AT_CHECKSUM, &checksum, sizeof checksum);
    }
    return HELIO_PGM_DATA_HEADER + tsdu_bytes;
}

/* Turns an encoded data packet into its repair, or renews a repair: type, trail and checksum
 * change. */
void helio_pgm_make_repair(void *packet, uint32_t trail, uint32_t payload_sum);

/* Turns a data packet as it came from its source, or its repair, into the repair that somebody else
 * sends: type and checksum change. */
void helio_pgm_relay_repair(void *packet, size_t length);

#endif
