/* A range of message numbers requested again: a second, private view of a stream that is being
 * received, which does not affect the first one.
 *
 * It requests packets of the source's history as a receiver requests missing ones, so nothing is
 * new on the wire.  First it searches: NAKs for packets spread over the history, whose repairs show
 * by their numbers where the range is.  Then it fetches that part through a window, a delivery and
 * records of its own, at the pace of a late joiner, and passes the messages of the range to its
 * sink.  Messages that the history does not have (no longer, or not yet) are reported lost.  The
 * sink gets everything from `first` to `last` once and in order, and then on_stream_end.
 *
 * One thread uses it.  It knows nothing of sockets, threads or clocks. */
#ifndef HELIO_RECEIVE_REPLAY_H
#define HELIO_RECEIVE_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "receive/stream.h"

typedef struct helio_replay_config {
    const char *topic;
    uint64_t first, last; /* numbers of messages */
    helio_sink sink;      /* on_stream, with number 0, is called by create */
} helio_replay_config;

/* `stream` is the one being received; the replay uses its outlet and addresses.  Errors: TOPIC,
 * NOMEM; free with helio_replay_destroy. */
int helio_replay_create(const helio_rx_stream *stream, const helio_replay_config *config,
                        helio_moment moment, helio_replay **out);
/* Calls the sink's on_stream_end if it was not called yet, and nothing else.  Accepts NULL. */
void helio_replay_destroy(helio_replay *replay, helio_moment moment);

/* A packet of the stream. */
void helio_replay_on_packet(helio_replay *replay, const helio_pgm_packet *packet, size_t bytes,
                            int64_t receive_ns, helio_moment moment);
/* The stream has ended: the rest is lost. */
void helio_replay_give_up(helio_replay *replay, helio_moment moment);
/* Its receiver must not request repairs before `until_ns`; 0: it may. */
void helio_replay_hold(helio_replay *replay, int64_t until_ns, int64_t now_ns);
int helio_replay_poll(helio_replay *replay, helio_moment moment);
int64_t helio_replay_next_deadline_ns(const helio_replay *replay);

const helio_tsi *helio_replay_tsi(const helio_replay *replay);
/* It needs more of the stream's packets. */
bool helio_replay_is_waiting(const helio_replay *replay);
/* Its sink has no room. */
bool helio_replay_is_blocked(const helio_replay *replay);

/* Links the replays of an endpoint. */
helio_replay **helio_replay_link(helio_replay *replay);

#endif
