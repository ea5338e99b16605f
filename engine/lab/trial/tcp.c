/* A TCP flow beside us: NewReno (RFC 5681, 6582) with limited transmit (RFC 3042) and the timeout
 * of RFC 6298, on whole segments.  It always has something to send, and its receiver acknowledges
 * every segment.
 *
 * Two rules bound a recovery, without which a flow that lost hundreds of segments of one window
 * would retransmit one of them per round trip for minutes, and starve whatever it runs beside:
 *
 *   the timer  only the first partial acknowledgement of a recovery restarts it (RFC 6582, section
 *              3.2, step 3), so a long recovery ends in a timeout and slow start;
 *   the flight never exceeds the receiver's window (RFC 5681, section 3.2, step 5), whatever
 *              duplicate acknowledgements have made of the congestion window. */
#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "trial/parts.h"

#include "base/math.h"
#include "base/rtt.h"

enum {
    SEGMENT_BYTES = 1448,
    HEADER_BYTES = 52, /* IP and TCP with timestamps */
    DUPLICATE_ACKS = 3,
    INITIAL_WINDOW = 10,
    RECEIVER_WINDOW = 1024, /* segments; several times what the scenarios' paths and queues hold */
};

#define RTO_MIN_NS (200 * HELIO_MILLISECOND)
#define RTO_MAX_NS (60 * HELIO_SECOND)

typedef struct segment {
    uint64_t number; /* data: of the segment; acknowledgement: the next one wanted */
    int64_t sent_ns; /* echoed */
    bool is_ack;
} segment;

struct helio_trial_tcp {
    helio_trial *trial;
    helio_trial_tcp_config config;
    helio_sim_node *sender;
    helio_sim_node *receiver;
    helio_outlet data;
    helio_outlet acks;
    /* the sender */
    uint64_t unacked; /* first segment not acknowledged */
    uint64_t next;    /* to be sent */
    uint64_t sent_to; /* beyond the last that was ever sent */
    double window;    /* segments */
    double threshold;
    unsigned duplicates;
    bool is_recovering;
    bool has_partial;  /* an acknowledgement within this recovery */
    uint64_t recover;  /* recovery is over when this is acknowledged */
    uint64_t timed_up; /* segment the timer ran out for last; UINT64_MAX: none */
    helio_rtt rtt;
    int64_t timeout_ns;
    int64_t due_ns; /* of the timer; HELIO_NEVER: it is off */
    uint64_t retransmits;
    uint64_t timeouts;
    /* the receiver */
    uint64_t wanted;
    uint8_t held[RECEIVER_WINDOW / 8]; /* a bit for each segment behind a hole */
};

/* ---- the sender ---- */

static void send_segment(helio_trial_tcp *tcp, uint64_t number, int64_t now_ns) {
    uint8_t packet[HEADER_BYTES + SEGMENT_BYTES] = {0};
    const segment head = {.number = number, .sent_ns = now_ns};
    memcpy(packet, &head, sizeof head);
    if (number < tcp->sent_to) {
        tcp->retransmits++;
    } else {
        tcp->sent_to = number + 1;
    }
    if (tcp->due_ns == HELIO_NEVER) {
        tcp->due_ns = now_ns + tcp->timeout_ns;
    }
    tcp->data.send(tcp->data.context, NULL, packet, sizeof packet, false);
}

static bool is_running(const helio_trial_tcp *tcp, int64_t now_ns) {
    return now_ns >= tcp->config.start_ns && now_ns < tcp->config.stop_ns;
}

static uint64_t flight(const helio_trial_tcp *tcp) {
    return tcp->next - tcp->unacked;
}

/* Limited transmit: each of the first two duplicate acknowledgements lets one segment out. */
static unsigned limited(const helio_trial_tcp *tcp) {
    return !tcp->is_recovering && tcp->duplicates < DUPLICATE_ACKS ? tcp->duplicates : 0;
}

static void fill_window(helio_trial_tcp *tcp, int64_t now_ns) {
    while (is_running(tcp, now_ns) && (double)flight(tcp) < tcp->window + limited(tcp) &&
           flight(tcp) < RECEIVER_WINDOW) {
        send_segment(tcp, tcp->next++, now_ns);
    }
}

static void measure(helio_trial_tcp *tcp, int64_t round_trip_ns) {
    helio_rtt_measure(&tcp->rtt, round_trip_ns);
    tcp->timeout_ns = helio_max(helio_rtt_timeout_ns(&tcp->rtt), RTO_MIN_NS);
}

/* The threshold after a loss: at most half of the flight (RFC 5681, equation 4).  What limited
 * transmit and the end of a recovery left beyond the window does not count. */
static double halved(const helio_trial_tcp *tcp) {
    const double sent = (double)flight(tcp);
    const double half = (sent < tcp->window ? sent : tcp->window) / 2;
    return half > 2 ? half : 2;
}

/* Another segment of the same window was lost.  The first time the timer starts afresh, later it
 * goes on. */
static void on_partial_ack(helio_trial_tcp *tcp, uint64_t fresh, int64_t now_ns) {
    if (!tcp->has_partial) {
        tcp->due_ns = now_ns + tcp->timeout_ns;
    }
    tcp->has_partial = true;
    send_segment(tcp, tcp->unacked, now_ns);
    tcp->window -= (double)fresh;
    tcp->window = tcp->window < 1 ? 2 : tcp->window + 1;
}

/* Goes on with the threshold, but without a burst into a path that has run empty. */
static void end_recovery(helio_trial_tcp *tcp) {
    const double sent = (double)flight(tcp) > 1 ? (double)flight(tcp) : 1;
    tcp->is_recovering = false;
    tcp->window = sent + 1 < tcp->threshold ? sent + 1 : tcp->threshold;
}

static void on_new_ack(helio_trial_tcp *tcp, uint64_t wanted, int64_t now_ns) {
    const uint64_t fresh = wanted - tcp->unacked;
    tcp->unacked = wanted;
    if (tcp->next < wanted) {
        tcp->next = wanted;
    }
    tcp->duplicates = 0;
    if (tcp->is_recovering && wanted < tcp->recover) {
        on_partial_ack(tcp, fresh, now_ns);
        return;
    }
    tcp->due_ns = tcp->unacked < tcp->sent_to ? now_ns + tcp->timeout_ns : HELIO_NEVER;
    if (tcp->is_recovering) {
        end_recovery(tcp);
    } else {
        tcp->window += tcp->window < tcp->threshold ? 1 : 1 / tcp->window;
    }
}

static void on_duplicate_ack(helio_trial_tcp *tcp, int64_t now_ns) {
    if (tcp->is_recovering) {
        tcp->window += 1;
        return;
    }
    if (++tcp->duplicates != DUPLICATE_ACKS || tcp->unacked < tcp->recover) {
        return;
    }
    tcp->is_recovering = true;
    tcp->has_partial = false;
    tcp->recover = tcp->next;
    tcp->threshold = halved(tcp);
    tcp->window = tcp->threshold + DUPLICATE_ACKS;
    send_segment(tcp, tcp->unacked, now_ns);
}

static void on_ack(void *context, const void *packet, size_t length, const helio_address *from,
                   helio_moment moment) {
    (void)length, (void)from;
    helio_trial_tcp *tcp = context;
    segment ack;
    memcpy(&ack, packet, sizeof ack);
    measure(tcp, moment.now_ns - ack.sent_ns);
    if (ack.number > tcp->unacked) {
        on_new_ack(tcp, ack.number, moment.now_ns);
    } else if (ack.number == tcp->unacked && tcp->next > tcp->unacked) {
        on_duplicate_ack(tcp, moment.now_ns);
    }
    fill_window(tcp, moment.now_ns);
}

static void on_timeout(helio_trial_tcp *tcp, int64_t now_ns) {
    tcp->timeouts++;
    if (tcp->unacked != tcp->timed_up) { /* twice for one segment: the threshold stays */
        tcp->threshold = halved(tcp);
    }
    tcp->timed_up = tcp->unacked;
    tcp->window = 1;
    tcp->duplicates = 0;
    tcp->is_recovering = false;
    tcp->recover = tcp->sent_to;
    tcp->next = tcp->unacked; /* all later data is sent again */
    tcp->timeout_ns = helio_min(2 * tcp->timeout_ns, RTO_MAX_NS);
    tcp->due_ns = HELIO_NEVER;
    fill_window(tcp, now_ns);
}

static void poll_sender(void *context, helio_moment moment) {
    helio_trial_tcp *tcp = context;
    if (moment.now_ns >= tcp->due_ns) {
        on_timeout(tcp, moment.now_ns);
    } else {
        fill_window(tcp, moment.now_ns);
    }
}

static int64_t sender_deadline_ns(void *context) {
    const helio_trial_tcp *tcp = context;
    return tcp->sent_to == 0 ? tcp->config.start_ns : tcp->due_ns;
}

/* ---- the receiver ---- */

static bool is_held(const helio_trial_tcp *tcp, uint64_t number) {
    return tcp->held[number % RECEIVER_WINDOW / 8] >> (number % 8) & 1;
}

static void on_data(void *context, const void *packet, size_t length, const helio_address *from,
                    helio_moment moment) {
    (void)length, (void)from, (void)moment;
    helio_trial_tcp *tcp = context;
    segment data;
    memcpy(&data, packet, sizeof data);
    if (data.number >= tcp->wanted && data.number < tcp->wanted + RECEIVER_WINDOW) {
        tcp->held[data.number % RECEIVER_WINDOW / 8] |= (uint8_t)(1 << data.number % 8);
    }
    while (is_held(tcp, tcp->wanted)) {
        tcp->held[tcp->wanted % RECEIVER_WINDOW / 8] &= (uint8_t)~(1 << tcp->wanted % 8);
        tcp->wanted++;
    }
    const segment ack = {.number = tcp->wanted, .sent_ns = data.sent_ns, .is_ack = true};
    tcp->acks.send(tcp->acks.context, NULL, &ack, sizeof ack, false);
}

/* ---- life ---- */

int helio_trial_tcp_create(helio_trial *trial, const helio_trial_tcp_config *config,
                           helio_trial_tcp **out) {
    helio_trial_tcp *tcp = calloc(1, sizeof *tcp);
    if (!tcp) {
        return HELIO_ERR_NOMEM;
    }
    tcp->trial = trial;
    tcp->config = *config;
    tcp->window = INITIAL_WINDOW;
    tcp->threshold = RECEIVER_WINDOW;
    tcp->timeout_ns = HELIO_SECOND;
    tcp->timed_up = UINT64_MAX;
    tcp->due_ns = HELIO_NEVER;
    const unsigned number = 2 * (unsigned)trial->tcps_count;
    const helio_address here = helio_trial_address(3, number, 6000);
    const helio_address there = helio_trial_address(3, number + 1, 6000);
    tcp->sender = helio_sim_add_node(trial->sim, &here);
    tcp->receiver = helio_sim_add_node(trial->sim, &there);
    if (!tcp->sender || !tcp->receiver) {
        free(tcp);
        return HELIO_ERR_NOMEM;
    }
    tcp->data = helio_sim_outlet(tcp->sender, &there);
    tcp->acks = helio_sim_outlet(tcp->receiver, &here);
    helio_sim_set_link(tcp->sender, &(helio_sim_link){.delay_ns = config->feedback_ns});
    helio_sim_set_link(tcp->receiver, &(helio_sim_link){.delay_ns = config->delay_ns});
    if (config->pipe != HELIO_TRIAL_NONE) {
        helio_sim_set_uplink(tcp->sender, trial->pipes[config->pipe]);
    }
    helio_sim_attach(tcp->receiver, &(helio_sim_handler){.context = tcp, .on_packet = on_data});
    helio_sim_attach(tcp->sender,
                     &(helio_sim_handler){tcp, on_ack, poll_sender, sender_deadline_ns});
    *out = tcp;
    return 0;
}

void helio_trial_tcp_destroy(helio_trial_tcp *tcp) {
    free(tcp);
}

helio_trial_tcp_state helio_trial_tcp_look(const helio_trial_tcp *tcp) {
    return (helio_trial_tcp_state){
        .acked_bytes = (double)tcp->unacked * (SEGMENT_BYTES + HEADER_BYTES),
        .window_bytes = tcp->window * SEGMENT_BYTES,
        .retransmits = (double)tcp->retransmits,
        .timeouts = (double)tcp->timeouts,
    };
}
