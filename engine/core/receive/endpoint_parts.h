/* The state of a receive endpoint and what its files share: endpoint.c (packets, subscriptions,
 * replays, time), fast_path.c (the common packet) and tracking.c (which streams it tracks). */
#ifndef HELIO_RECEIVE_ENDPOINT_PARTS_H
#define HELIO_RECEIVE_ENDPOINT_PARTS_H

#include "base/map.h"
#include "receive/absent.h"
#include "receive/discovery.h"
#include "receive/endpoint.h"
#include "receive/repairs.h"
#include "receive/replay.h"
#include "receive/stream.h"

enum {
    HELIO_RX_ENDED_KEPT = 64,
    HELIO_RX_EXPELLED_KEPT = 16, /* when full, the oldest is dropped until its next notice */
};

/* A stream that its source has ended, kept so that its last packets do not open it again. */
typedef struct helio_rx_ended {
    uint64_t key;
    int64_t until_ns;
    helio_address source;
    bool is_exact; /* the port of the source is part of its identity */
    uint32_t end;  /* the last packet there was */
} helio_rx_ended;

/* A stream whose source has expelled this receiver. */
typedef struct helio_rx_expelled {
    uint64_t key; /* 0: free */
    helio_address source;
    bool is_exact;
    int64_t until_ns;
} helio_rx_expelled;

/* Packets of the last stream that the fast path passed during a batch and that are not in the
 * statistics yet.  All their messages went to one subscription. */
typedef struct helio_rx_run {
    bool is_on;                  /* there is a batch */
    helio_delivery_topic *topic; /* NULL: there are no such packets */
    /* The first packet, and the number of its first message. */
    uint64_t first_sequence, first_message;
    uint64_t packet_bytes;
    int64_t heard_wall_ns; /* the last of them */
    uint64_t message_bytes;
} helio_rx_run;

struct helio_rx_endpoint {
    helio_rx_stream *last; /* the stream of the previous packet: most packets come in runs */
    helio_replay *replays;
    int64_t deadline_ns; /* earliest of all streams that are not blocked */
    helio_rx_shared shared;
    helio_rx_run run;
    char *instance_name;
    char *endpoint;
    helio_map by_tsi;
    helio_rx_stream *streams;
    uint32_t count;
    int64_t create_after_ns; /* no stream is created before: memory ran out */
    helio_rx_absents absents;
    helio_rx_ended ended[HELIO_RX_ENDED_KEPT];
    uint32_t ended_next;
    helio_rx_expelled expelled[HELIO_RX_EXPELLED_KEPT];
    uint32_t expelled_next;
    helio_rx_discovery discovery; /* streams that are discovered and not tracked */
    helio_rx_repairs repairs;
};

/* Puts the run into the statistics. */
void helio_rx_publish_run(helio_rx_endpoint *endpoint);

/* The packet belongs to no stream that is tracked.  Returns its stream when it is tracked from now
 * on, else NULL. */
helio_rx_stream *helio_rx_endpoint_discover(helio_rx_endpoint *endpoint,
                                            const helio_pgm_packet *packet,
                                            const helio_address *from, helio_moment moment);

/* Stops tracking a stream for the reason in `state`: reports it and frees its memory.  The endpoint
 * keeps what it needs to continue the stream if it may come back (absent.h). */
void helio_rx_endpoint_end_stream(helio_rx_endpoint *endpoint, helio_rx_stream *stream,
                                  helio_rx_stream_state state, helio_moment moment);

static inline void helio_rx_endpoint_set_deadline(helio_rx_endpoint *endpoint,
                                                  const helio_rx_stream *stream) {
    const int64_t deadline_ns = helio_rx_stream_next_deadline_ns(stream);
    if (deadline_ns < endpoint->deadline_ns) {
        endpoint->deadline_ns = deadline_ns;
    }
}

#endif
