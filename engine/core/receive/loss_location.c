#include "receive/loss_location.h"

#include <inttypes.h>

#include "receive/stream.h"

/* Evidence no gap was found for is forgotten after this time: a stream that goes on shows its gaps
 * sooner, and one that pauses tells its lead by a heartbeat. */
#define FORGET_NS (500 * HELIO_MILLISECOND)

/* The kernel is not asked again sooner: a gap for every packet would mean a call for every
 * packet. */
#define READ_AGAIN_NS (20 * HELIO_MICROSECOND)

#define TELL_NS HELIO_SECOND

void helio_rx_drops_note(helio_rx_drops *drops, uint64_t total, int64_t now_ns) {
    if (now_ns - drops->rose_ns > FORGET_NS) {
        drops->unexplained = 0;
    }
    if (total <= drops->seen) {
        return;
    }
    drops->unexplained += total - drops->seen;
    drops->seen = total;
    drops->rose_ns = now_ns;
}

/* Packets of a gap that the kernel dropped.  One that had joined datagrams when it dropped them
 * counts them as one, so there any number explains the gap. */
static uint64_t take_drops(helio_rx_shared *shared, uint64_t most, int64_t now_ns) {
    const helio_rx_endpoint_config *config = &shared->config;
    helio_rx_drops *drops = &shared->drops;
    if (most == 0 || !config->dropped) {
        return 0;
    }
    if (now_ns - drops->read_ns >= READ_AGAIN_NS) {
        drops->read_ns = now_ns;
        helio_rx_drops_note(drops, config->dropped(shared->outlet.context), now_ns);
    }
    if (drops->unexplained == 0) {
        return 0;
    }
    const uint64_t taken =
        most < drops->unexplained || config->drops_are_joined ? most : drops->unexplained;
    drops->unexplained -= taken < drops->unexplained ? taken : drops->unexplained;
    return taken;
}

void helio_rx_locations_turn_away(helio_rx_stream *stream, uint64_t sequence) {
    helio_rx_turned_away *away = &stream->turned_away;
    if (sequence <= away->newest) {
        return; /* a double: it was counted */
    }
    away->newest = sequence;
    if (stream->is_blocked) {
        away->for_queue++;
    } else {
        away->for_window++;
    }
}

static uint64_t take(uint64_t *of, uint64_t most) {
    const uint64_t taken = *of < most ? *of : most;
    *of -= taken;
    return taken;
}

helio_rx_shares helio_rx_locations_find(helio_rx_stream *stream, uint64_t first, uint64_t count,
                                        bool in_window, int64_t now_ns) {
    helio_rx_turned_away *away = &stream->turned_away;
    helio_rx_shares shares = {{0}};
    uint64_t left = count;
    if (first <= stream->joined) {
        const uint64_t past = stream->joined - first + 1;
        shares.of[HELIO_RX_LOCATION_HISTORY] = past < left ? past : left;
        left -= shares.of[HELIO_RX_LOCATION_HISTORY];
    }
    if (left > 0 && first <= away->newest) {
        const uint64_t reach = away->newest - first + 1;
        const uint64_t most = reach < left ? reach : left;
        shares.of[HELIO_RX_LOCATION_QUEUE] = take(&away->for_queue, most);
        shares.of[HELIO_RX_LOCATION_WINDOW] =
            take(&away->for_window, most - shares.of[HELIO_RX_LOCATION_QUEUE]);
        left -= shares.of[HELIO_RX_LOCATION_QUEUE] + shares.of[HELIO_RX_LOCATION_WINDOW];
    }
    shares.of[HELIO_RX_LOCATION_SOCKET] = take_drops(stream->shared, left, now_ns);
    shares.of[HELIO_RX_LOCATION_OUTSIDE] = left - shares.of[HELIO_RX_LOCATION_SOCKET];
    if (first + count > away->newest) { /* all of them were found missing, or came again */
        away->for_queue = away->for_window = 0;
    }
    if (!in_window) {
        return shares;
    }
    uint64_t sequence = first;
    for (uint8_t place = 0; place < HELIO_RX_LOCATIONS; place++) {
        for (uint64_t i = 0; i < shares.of[place]; i++) {
            helio_rxw_slot_of(&stream->rxw, sequence++)->place = place;
        }
    }
    return shares;
}

void helio_rx_locations_take_back(helio_rx_stream *stream, helio_rx_location place) {
    if (place == HELIO_RX_LOCATION_SOCKET) {
        stream->shared->drops.unexplained++;
    }
}

void helio_rx_locations_count(helio_rx_stream *stream, const helio_rx_shares *shares) {
    _Atomic uint64_t *cells = &((helio_rx_stream_stats *)stream->object.record)
                                   ->losses_located_history; /* the others follow */
    for (int i = 0; i < HELIO_RX_LOCATIONS; i++) {
        helio_count(&cells[i], shares->of[i]);
        stream->located.of[i] += shares->of[i];
    }
}

void helio_rx_locations_tell(helio_rx_stream *stream, helio_moment moment) {
    uint64_t news[HELIO_RX_LOCATIONS], total = 0;
    if (moment.now_ns < stream->locate_after_ns) {
        return;
    }
    for (int i = 0; i < HELIO_RX_LOCATIONS; i++) {
        news[i] = stream->located.of[i] - stream->located_told.of[i];
        total += i <= HELIO_RX_LOCATION_LATE ? 0 : news[i];
    }
    if (total == 0) {
        return;
    }
    stream->located_told = stream->located;
    stream->locate_after_ns = moment.now_ns + TELL_NS;
    const uint64_t args[4] = {news[HELIO_RX_LOCATION_OUTSIDE], news[HELIO_RX_LOCATION_SOCKET],
                              news[HELIO_RX_LOCATION_WINDOW], news[HELIO_RX_LOCATION_QUEUE]};
    helio_stats_event(stream->shared->stats, moment.wall_ns, HELIO_EVENT_LOSSES_LOCATED,
                      stream->object.slot, args,
                      "%" PRIu64 " packets were not received: %" PRIu64 " never reached this host, "
                      "%" PRIu64 " were dropped by its socket, %" PRIu64
                      " had no room in the window, %" PRIu64 " while the receive queue was full",
                      total, args[0], args[1], args[2], args[3]);
}
