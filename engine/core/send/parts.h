/* The state of a stream being sent and what its files share: stream.c (life, data, repairs, time),
 * control.c (SPMs and polls), feedback.c (what receivers report), choice.c (streams and receivers
 * by name), act.c (actions on receivers).  Everybody else includes send/stream.h. */
#ifndef HELIO_SEND_PARTS_H
#define HELIO_SEND_PARTS_H

#include "repair/repairer.h"
#include "send/acks.h"
#include "send/batcher.h"
#include "send/blame.h"
#include "send/clock.h"
#include "send/follow.h"
#include "send/govern.h"
#include "send/heartbeat.h"
#include "send/history.h"
#include "send/log.h"
#include "send/notices.h"
#include "send/pace.h"
#include "send/polling.h"
#include "send/reports.h"
#include "send/slow.h"
#include "send/stream.h"
#include "send/topics.h"
#include "window/txw.h"
#include "wire/pgm.h"

enum { HELIO_TX_DESTINATIONS_MAX = 64 };

struct helio_tx_stream {
    /* Read or written for each data packet; kept together, so that few cache lines are touched. */
    /* Longest message of the fast path; less than 0: it takes none. */
    int64_t lone_bytes;
    helio_pgm_data_head data_head;
    uint32_t data_since_repair;
    bool has_opened;
    bool is_closed;
    /* Since the last announcement data was sent, or somebody came who has received nothing. */
    bool has_news;
    /* Within append: fragments are neighbours, so nothing else may be numbered. */
    bool is_cutting;
    helio_outlet outlet;
    helio_instance_stats *instance;
    helio_heartbeat heartbeat;
    helio_txw txw;
    /* Where packets are built if the outlet copies them; NULL: in the history. */
    uint8_t *workspace;
    helio_tx_traffic traffic;
    helio_batcher batcher;
    /* Of this, the record. */
    helio_stats_object object;

    bool is_aborted;
    /* Poll saw the end of the linger time: nothing is due any more. */
    bool has_finished;
    helio_tx_stream_config config;
    helio_stats *stats;
    char *instance_name;
    char *endpoint;
    helio_pgm_session session;
    bool is_group; /* the group is multicast, so NLAs of NAKs are checked */
    helio_address destinations[HELIO_TX_DESTINATIONS_MAX]; /* fan-out */
    uint32_t destinations_count;                           /* fan-out; else 0 */

    helio_tx_acks acks;
    size_t memory; /* of it, as counted */
    helio_tx_pace pace;
    helio_repairer repairer;
    helio_tx_history history;
    helio_polling polling;
    helio_tx_reports reports;
    helio_tx_notices notices;
    helio_tx_clock clocks;
    helio_tx_govern govern;
    helio_tx_log log;
    helio_tx_slow slow;
    helio_tx_follow follow;
    helio_tx_blame blame;
    helio_tx_topics topics;

    uint32_t repairs_in_turn; /* sent since the last poll, but for those among data */
    uint32_t spm_sequence;
    helio_moment moment;      /* of the last poll, or wait: for what happens where none is given */
    int64_t cutting_since_ns; /* the long message being cut was begun */
    int64_t announce_due_ns;
    int64_t announce_after_ns; /* no announcement is hastened before */
    uint32_t credit_waits;     /* topics whose messages wait for credit */
    int64_t tend_receivers_ns; /* when to look after what is known of receivers */
    int64_t answer_after_ns;   /* no SPMR is answered before */
    int64_t finish_ns;
};

_Static_assert(offsetof(helio_tx_stream, txw) <= 128, "two lines before the history");
_Static_assert(offsetof(helio_tx_stream, object.record) + sizeof(void *) <= 640,
               "ten lines for each data packet");

static inline helio_tx_stream_stats *helio_tx_stats(helio_tx_stream *stream) {
    return stream->object.record;
}

/* A packet of any type leaves. */
static inline void helio_tx_count_packet(helio_tx_stream *stream, size_t length) {
    helio_count(&stream->instance->packets_sent, 1);
    helio_count(&stream->instance->packet_bytes_sent, length);
}

/* As helio_tx_send_to, of a packet that is counted elsewhere. */
static inline void helio_tx_send_counted(helio_tx_stream *stream, const helio_address *to,
                                         const void *packet, size_t length, bool is_stable) {
    if (stream->pace.is_on) {
        helio_tx_pace_charge(&stream->pace, length, to ? 1 : stream->pace.config.copies);
    }
    stream->outlet.send(stream->outlet.context, to, packet, length, is_stable);
}

static inline void helio_tx_send_to(helio_tx_stream *stream, const helio_address *to,
                                    const void *packet, size_t length, bool is_stable) {
    helio_tx_count_packet(stream, length);
    helio_tx_send_counted(stream, to, packet, length, is_stable);
}

static inline void helio_tx_send(helio_tx_stream *stream, const void *packet, size_t length,
                                 bool is_stable) {
    helio_tx_send_to(stream, NULL, packet, length, is_stable);
}

/* Sends to these destinations of a fan-out; without one, to all there are. */
static inline void helio_tx_send_to_askers(helio_tx_stream *stream, uint64_t destinations,
                                           const void *packet, size_t length, bool is_stable) {
    if (stream->destinations_count == 0) {
        helio_tx_send(stream, packet, length, is_stable);
        return;
    }
    for (uint32_t i = 0; i < stream->destinations_count; i++) {
        if (destinations >> i & 1) {
            helio_tx_send_to(stream, &stream->destinations[i], packet, length, is_stable);
        }
    }
}

/* What receivers are advised to hold NAKs back for; where nobody hears another's there is nothing
 * to hold back. */
static inline uint32_t helio_tx_advised_us(const helio_tx_stream *stream) {
    return stream->is_group ? (uint32_t)(stream->repairer.advice.interval_ns / HELIO_MICROSECOND)
                            : 0;
}

/* What SPMs carry for round trips; never 0, which says that there is none. */
static inline uint32_t helio_tx_stamp(int64_t now_ns) {
    const uint32_t stamp = (uint32_t)(now_ns / HELIO_MICROSECOND);
    return stamp ? stamp : 1;
}

static inline bool helio_tx_announces(const helio_tx_stream *stream) {
    return stream->has_news && !stream->is_closed && !stream->is_cutting;
}

/* The announcement is due and can be numbered; it may still have to wait for the rate. */
static inline bool helio_tx_announcement_is_due(const helio_tx_stream *stream, int64_t now_ns) {
    return helio_tx_announces(stream) && now_ns >= stream->announce_due_ns &&
           helio_txw_has_room(&stream->txw);
}

/* ---- send/admit.c ---- */

/* Whether the data packet with this number may be begun now, as far as rate and send limit go. */
helio_admission helio_tx_admit_packet(helio_tx_stream *stream, uint64_t sequence,
                                      helio_moment moment);
/* How many of these messages may join the open packet when the first of them may: credit and the
 * limits of what is not stable are of messages, all else is of packets. */
size_t helio_tx_admit_run(const helio_tx_stream *stream, const helio_tx_topic *topic, size_t count);

/* ---- send/packets.c ---- */

/* The stream as its batcher sees it. */
helio_packet_door helio_tx_packet_door(helio_tx_stream *stream);
/* 0 or NOMEM.  There is none where packets are built in the history. */
int helio_tx_open_workspace(helio_tx_stream *stream);
void helio_tx_close_workspace(helio_tx_stream *stream);
size_t helio_tx_workspace_bytes(const helio_tx_stream *stream);

/* ---- send/stream.c ---- */

/* Sends the repair that is next, if the rate permits one; false: it sent none. */
bool helio_tx_send_repair(helio_tx_stream *stream, helio_moment moment);
/* Sends repairs that wait, as many as the rate permits and at most 32 from one poll to the next.  Returns
 * how many. */
int helio_tx_send_repairs(helio_tx_stream *stream, helio_moment moment);

/* ---- send/control.c ---- */

/* Says where the stream is.  `now_ns` is told back by receivers, for round trips; 0: not known. */
void helio_tx_send_spm(helio_tx_stream *stream, int64_t now_ns);
/* SPMs before the first data: receivers that are there learn where the stream begins.  Returns how
 * many; 0 when it has opened already. */
int helio_tx_open(helio_tx_stream *stream, int64_t now_ns);
/* Sends the announcement, the heartbeat, the notices and the poll that are due.  Returns how
 * many. */
int helio_tx_tell(helio_tx_stream *stream, helio_moment moment);

/* ---- send/feedback.c ---- */

/* Looks after what is known of receivers, and how often they are to report. */
void helio_tx_tend_reports(helio_tx_stream *stream, int64_t now_ns);

/* ---- send/act.c ---- */

/* Ends what is over of what was done to receivers, and tells what was refused. */
void helio_tx_end_actions(helio_tx_stream *stream, helio_moment moment);
/* When there is something to end. */
int64_t helio_tx_actions_deadline_ns(const helio_tx_stream *stream);
/* A packet is of a receiver that is expelled. */
bool helio_tx_is_expelled(const helio_tx_stream *stream, const helio_pgm_packet *packet,
                          const helio_address *from);

#endif
