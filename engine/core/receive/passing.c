#include "receive/passing.h"

#include <inttypes.h>

#include "stats/losses.h"

#define EVENT_INTERVAL_NS (60 * HELIO_SECOND)

/* Packets asked for at once while catching up: few enough that a source does not hold back new data
 * for them, more where the way is long. */
enum { PACE_MIN = 24, PACE_MAX = 1024, SUSPENDED_PART = 4 };
#define PACE_NS (200 * HELIO_MICROSECOND) /* time a repair takes that PACE_MIN is made for */

void helio_rx_set_blocked(helio_rx_stream *stream, bool is_blocked) {
    stream->shared->blocked_streams += (uint32_t)is_blocked - (uint32_t)stream->is_blocked;
    stream->is_blocked = is_blocked;
}

void helio_rx_foreign_event(helio_rx_shared *shared, const helio_address *from, const char *what,
                            helio_moment moment) {
    if (moment.now_ns < shared->foreign_event_after_ns) {
        return;
    }
    shared->foreign_event_after_ns = moment.now_ns + EVENT_INTERVAL_NS;
    char text[HELIO_ADDRESS_TEXT];
    helio_stats_event(shared->stats, moment.wall_ns, HELIO_EVENT_FOREIGN_TRAFFIC,
                      HELIO_STATS_NO_SLOT, NULL, "%s from %s on %s", what,
                      helio_address_format(from, text), shared->config.endpoint);
}

/* ---- the books ---- */

/* What is lost is missing until it is told. */
static uint64_t missing(const helio_rx_stream *stream) {
    const helio_rxw *rxw = &stream->rxw;
    return rxw->lead + 1 - rxw->trail - rxw->held + stream->untold;
}

void helio_rx_show_window(helio_rx_stream *stream) {
    helio_rx_stream_stats *stats = helio_rx_stats(stream);
    helio_set(&stats->held_packets, stream->rxw.held);
    helio_set(&stats->missing_packets, missing(stream));
    helio_set(&stats->window_trail, stream->rxw.trail - stream->untold);
    helio_set(&stats->window_lead, stream->rxw.known);
    helio_set(&stats->outstanding_naks, stream->nak.outstanding);
}

void helio_rx_account(helio_rx_stream *stream, _Atomic uint64_t *fate, size_t bytes) {
    helio_rx_stream_stats *stats = helio_rx_stats(stream);
    helio_stats_begin(stats);
    helio_rx_count_received(stats, 1, bytes);
    helio_count(fate, 1);
    helio_stats_end(stats);
}

void helio_rx_go_back(helio_rx_stream *stream, uint64_t first) {
    helio_rxw *rxw = &stream->rxw;
    helio_rx_stream_stats *stats = helio_rx_stats(stream);
    helio_rx_make_room_before(stream, first);
    const uint64_t were_missing = missing(stream), were_held = rxw->held;
    helio_rxw_go_back(rxw, first);
    stream->ask_from = stream->first = first;
    helio_stats_begin(stats);
    helio_count(&stats->packets_missed, missing(stream) - were_missing);
    helio_count(&stats->overflows, were_held - rxw->held);
    helio_set(&stats->window_first, first);
    helio_rx_show_window(stream);
    helio_stats_end(stats);
}

/* How a packet relates to those seen missing. */
typedef enum found {
    FOUND_NEW,
    FOUND_LATE,      /* seen missing, and not asked for yet */
    FOUND_RECOVERED, /* asked for */
} found;

/* A packet is received: it is in the window, or has just passed it (`is_passed`). */
static void account_taken(helio_rx_stream *stream, bool is_passed, found found, uint8_t place,
                          size_t bytes) {
    helio_rx_stream_stats *stats = helio_rx_stats(stream);
    helio_stats_begin(stats);
    helio_rx_count_received(stats, 1, bytes);
    if (is_passed) {
        helio_count(&stats->packets_delivered, 1);
    }
    if (found != FOUND_NEW) {
        helio_count(found == FOUND_LATE ? &stats->packets_late : &stats->packets_recovered, 1);
    }
    if (found == FOUND_RECOVERED) {
        helio_rx_shares shares = {{0}};
        shares.of[place] = 1;
        helio_rx_locations_count(stream, &shares);
    }
    helio_rx_show_window(stream);
    helio_stats_end(stats);
}

/* Packets that have left the window were passed on; afterwards it is accounted for. */
static void account_passed(helio_rx_stream *stream, uint64_t *packets) {
    if (*packets == 0) {
        return;
    }
    helio_rx_stream_stats *stats = helio_rx_stats(stream);
    helio_stats_begin(stats);
    helio_count(&stats->packets_delivered, *packets);
    helio_rx_show_window(stream);
    helio_stats_end(stats);
    *packets = 0;
}

/* Bursts by length: 1, 2 to 3, 4 to 7, ..., 128 and more; the cells follow each other. */
static unsigned burst_class(uint64_t count) {
    enum { BURST_CLASSES = 8 };
    unsigned class = 0;
    while (count > 1 && class < BURST_CLASSES - 1) {
        count /= 2;
        class ++;
    }
    return class;
}

/* Packets from `first` on are seen missing: they are in the window, or left it just now. */
static void account_gap(helio_rx_stream *stream, uint64_t first, uint64_t count) {
    helio_rx_stream_stats *stats = helio_rx_stats(stream);
    helio_stats_begin(stats);
    helio_count(&stats->packets_missed, count);
    helio_count(&(&stats->gaps_1)[burst_class(count)], 1);
    helio_rx_show_window(stream);
    helio_stats_end(stats);
    const uint64_t end = first + count;
    if (end > stream->joined + 1) {
        stream->missed += first > stream->joined ? count : end - stream->joined - 1;
    }
}

/* ---- passing on ---- */

/* When the packet at trail was in order: the moment the last of it and those before it came.  What
 * it waits from then on is not for the network, but for place with the application. */
static helio_moment in_order(helio_rx_stream *stream, const helio_rxw_packet *packet,
                             helio_moment moment) {
    if (stream->in_order_ns < packet->arrival_ns) {
        stream->in_order_ns = packet->arrival_ns;
    }
    const int64_t waited_ns = moment.now_ns - stream->in_order_ns;
    return (helio_moment){moment.now_ns - waited_ns, moment.wall_ns - waited_ns};
}

/* Offers the packet at trail to the topics.  False: a sink has no room. */
static bool pass(helio_rx_stream *stream, uint64_t sequence, const helio_rxw_packet *packet,
                 helio_moment moment) {
    helio_rx_shared *shared = stream->shared;
    const helio_delivery_result result =
        helio_delivery_pass(&stream->delivery, sequence, packet, in_order(stream, packet, moment));
    if (result == HELIO_DELIVERY_FULL) {
        helio_rx_set_blocked(stream, true);
        return false;
    }
    if (stream->is_blocked) {
        helio_rx_set_blocked(stream, false);
    }
    if (result == HELIO_DELIVERY_FILTERED) {
        helio_rx_stream_stats *stats = helio_rx_stats(stream);
        helio_count(&stats->packets_filtered, 1);
        helio_set(&stats->messages_filtered, stream->delivery.messages_filtered);
    } else if (result == HELIO_DELIVERY_FOREIGN) {
        helio_count(&shared->instance->foreign_packets, 1);
        helio_rx_foreign_event(shared, &stream->source, "another program's data", moment);
    } else if (result == HELIO_DELIVERY_DAMAGED) {
        helio_pgm_count_refusal(shared->instance, HELIO_PGM_BAD_PAYLOAD);
        helio_rx_foreign_event(shared, &stream->source, "a damaged batch", moment);
    }
    return true;
}

/* Neighbouring packets lost for one cause, to be reported as one range. */
typedef struct lost_run {
    uint64_t first;
    uint64_t count;
    helio_rxw_cause cause;
    helio_rx_shares shares;
} lost_run;

/* What of it outlives the stream. */
static void keep_history(helio_rx_stream *stream, const lost_run *run, const char *cause,
                         helio_moment moment) {
    const helio_rx_shared *shared = stream->shared;
    const helio_rx_stream_stats *stats = stream->object.record;
    const uint64_t packets = helio_cell(&stats->packets_received);
    const uint64_t mean = packets ? helio_cell(&stats->bytes_received) / packets : 0;
    char tsi[HELIO_TSI_TEXT], source[HELIO_ADDRESS_TEXT];
    const helio_loss_note note = {
        .instance = shared->config.instance,
        .stream = helio_tsi_format(&stream->tsi, tsi),
        .cause = cause,
        .source = helio_address_format(&stream->source, source),
        .endpoint = shared->config.endpoint,
        .first = run->first,
        .packets = run->count,
        .bytes = run->count * mean,
    };
    helio_losses_note(shared->stats, &note, moment.wall_ns);
}

/* `run` is not empty; afterwards it is. */
static void report_lost(helio_rx_stream *stream, lost_run *run, helio_moment moment) {
    helio_rx_stream_stats *stats = helio_rx_stats(stream);
    _Atomic uint64_t *const cells[] = {
        [HELIO_LOST_WINDOW_ADVANCED] = &stats->packets_lost_window_advanced,
        [HELIO_LOST_NCF_RETRIES] = &stats->packets_lost_ncf_retries,
        [HELIO_LOST_DATA_RETRIES] = &stats->packets_lost_data_retries,
        [HELIO_LOST_DEADLINE] = &stats->packets_lost_deadline,
        [HELIO_LOST_OVERFLOW] = &stats->packets_lost_overflow,
        [HELIO_LOST_RESET] = &stats->packets_lost_reset,
        [HELIO_LOST_NOT_REQUESTED] = &stats->packets_lost_not_requested,
        [HELIO_LOST_SUSPENDED] = &stats->packets_lost_suspended,
    };
    static const char *const names[] = {
        [HELIO_LOST_WINDOW_ADVANCED] = "window_advanced",
        [HELIO_LOST_NCF_RETRIES] = "ncf_retries",
        [HELIO_LOST_DATA_RETRIES] = "data_retries",
        [HELIO_LOST_DEADLINE] = "deadline",
        [HELIO_LOST_OVERFLOW] = "overflow",
        [HELIO_LOST_RESET] = "reset",
        [HELIO_LOST_NOT_REQUESTED] = "not_requested",
        [HELIO_LOST_SUSPENDED] = "suspended",
    };
    stream->untold = 0;
    stream->in_order_ns = moment.now_ns;
    helio_stats_begin(stats);
    helio_count(cells[run->cause], run->count);
    helio_rx_locations_count(stream, &run->shares);
    helio_rx_show_window(stream);
    helio_stats_end(stats);
    keep_history(stream, run, names[run->cause], moment);
    stream->given_up += run->count;
    if (run->first <= stream->joined) { /* what was caught up with is lost all the same */
        const uint64_t past = stream->joined - run->first + 1;
        stream->missed += past < run->count ? past : run->count;
    }
    const uint64_t args[4] = {run->first, run->count, run->cause};
    helio_stats_event(stream->shared->stats, moment.wall_ns, HELIO_EVENT_PACKETS_LOST,
                      stream->object.slot, args, "%" PRIu64 " packets lost from %" PRIu64 ": %s",
                      run->count, run->first, names[run->cause]);
    helio_rx_locations_tell(stream, moment);
    helio_delivery_on_packets_lost(&stream->delivery, run->first, run->count, moment);
    run->count = 0;
}

static void add_lost(helio_rx_stream *stream, lost_run *run, uint64_t first, uint64_t count,
                     helio_rxw_cause cause, const helio_rx_shares *shares, helio_moment moment) {
    if (run->count > 0 && run->cause != cause) {
        report_lost(stream, run, moment);
    }
    if (run->count == 0) {
        *run = (lost_run){.first = first, .cause = cause};
    }
    run->count += count;
    for (int i = 0; i < HELIO_RX_LOCATIONS; i++) {
        run->shares.of[i] += shares->of[i];
    }
    stream->untold += count;
}

/* The window is empty; what is before `sequence` is lost at once, without being walked through. */
static void skip_to(helio_rx_stream *stream, lost_run *run, uint64_t sequence,
                    helio_rxw_cause cause, helio_moment moment) {
    const uint64_t first = stream->rxw.trail, count = sequence - first;
    const helio_rx_shares shares =
        helio_rx_locations_find(stream, first, count, false, moment.now_ns);
    add_lost(stream, run, first, count, cause, &shares, moment);
    helio_rxw_skip(&stream->rxw, sequence);
    account_gap(stream, first, count);
}

void helio_rx_extend(helio_rx_stream *stream, uint64_t sequence, int64_t now_ns) {
    helio_rxw *rxw = &stream->rxw;
    const uint64_t first = rxw->lead + 1;
    helio_rxw_extend(rxw, sequence);
    if (rxw->lead < first) {
        return;
    }
    helio_rx_locations_find(stream, first, rxw->lead - first + 1, true, now_ns);
    account_gap(stream, first, rxw->lead - first + 1);
    if (stream->is_pacing) {
        return;
    }
    const uint64_t wanted = rxw->source_trail > first ? rxw->source_trail : first;
    if (wanted <= rxw->lead) {
        helio_nak_miss(&stream->nak, wanted, rxw->lead - wanted + 1, now_ns);
    }
}

static uint64_t pace_of(const helio_rx_stream *stream) {
    const uint64_t pace = PACE_MIN * (uint64_t)(stream->quickest_ns / PACE_NS);
    return pace < PACE_MIN ? PACE_MIN : pace > PACE_MAX ? PACE_MAX : pace;
}

void helio_rx_pace(helio_rx_stream *stream, int64_t now_ns) {
    const helio_rxw *rxw = &stream->rxw;
    if (!stream->is_pacing || stream->is_waiting) {
        return;
    }
    if (stream->ask_from < rxw->trail) {
        stream->ask_from = rxw->trail;
    }
    const uint64_t pace = pace_of(stream);
    for (; stream->ask_from <= rxw->lead && stream->nak.outstanding < pace; stream->ask_from++) {
        if (helio_rxw_slot_of(rxw, stream->ask_from)->state == HELIO_RXW_WAITING) {
            helio_nak_miss(&stream->nak, stream->ask_from, 1, now_ns);
        }
    }
    stream->is_pacing =
        stream->ask_from <= rxw->lead || rxw->known > rxw->lead || stream->told_lead > rxw->known;
}

void helio_rx_believe(helio_rx_stream *stream, int64_t now_ns) {
    const helio_rxw *rxw = &stream->rxw;
    const uint64_t shown = stream->newest > rxw->trail ? stream->newest : rxw->trail;
    const uint64_t limit = shown + rxw->mask; /* beyond that, data has to show it */
    const uint64_t lead = stream->told_lead < limit ? stream->told_lead : limit;
    /* Data that the window had no room for made newer packets known, and opened no gap for them. */
    if (lead > rxw->lead) {
        helio_rx_extend(stream, lead, now_ns);
    }
}

void helio_rx_drain(helio_rx_stream *stream, helio_moment moment) {
    helio_rxw *rxw = &stream->rxw;
    if (stream->is_waiting) {
        return;
    }
    lost_run run = {0};
    uint64_t passed = 0; /* and not accounted for */
    bool is_stuck = false;
    while (!is_stuck) {
        if (helio_rxw_is_empty(rxw) && rxw->source_trail > rxw->trail) {
            account_passed(stream, &passed);
            skip_to(stream, &run, rxw->source_trail, HELIO_LOST_WINDOW_ADVANCED, moment);
        }
        /* What the source has dropped is skipped at once when the window is empty, not walked
         * through. */
        if (rxw->known > rxw->lead && rxw->lead + 1 >= rxw->source_trail) {
            account_passed(stream, &passed);
            helio_rx_extend(stream, rxw->known, moment.now_ns);
        }
        if (helio_rxw_is_empty(rxw)) {
            break;
        }
        helio_rxw_slot *slot = helio_rxw_slot_of(rxw, rxw->trail);
        helio_rx_shares one = {{0}};
        switch ((helio_rxw_state)slot->state) {
        case HELIO_RXW_LOST:
            account_passed(stream, &passed);
            one.of[slot->place] = 1;
            add_lost(stream, &run, rxw->trail, 1, (helio_rxw_cause)slot->cause, &one, moment);
            helio_rxw_pop(rxw);
            break;
        case HELIO_RXW_HELD:
            if (run.count > 0) {
                report_lost(stream, &run, moment);
            }
            helio_rxw_offer(rxw);
            is_stuck = !pass(stream, rxw->trail, &slot->packet, moment);
            if (!is_stuck) {
                helio_rxw_pop(rxw);
                passed++;
            }
            break;
        case HELIO_RXW_WAITING:
        case HELIO_RXW_EMPTY:
            is_stuck = true;
        }
    }
    account_passed(stream, &passed);
    if (run.count > 0) {
        report_lost(stream, &run, moment);
    }
    if (stream->newest < rxw->trail - 1) {
        stream->newest = rxw->trail - 1;
    }
}

static void lost_to_source(void *context, uint64_t sequence) {
    helio_rx_stream *stream = context;
    helio_nak_remove(&stream->nak, sequence);
}

void helio_rx_advance_source(helio_rx_stream *stream, uint64_t trail, helio_moment moment) {
    if (trail <= stream->rxw.source_trail) {
        return;
    }
    const bool is_ahead = trail > stream->rxw.trail;
    helio_rxw_advance_source(&stream->rxw, trail, lost_to_source, stream);
    if (is_ahead) {
        helio_rx_drain(stream, moment);
    }
}

/* A packet has come: was it missing? */
static found find(helio_rx_stream *stream, uint64_t sequence, helio_rxw_packet *packet) {
    const helio_rxw *rxw = &stream->rxw;
    if (sequence > rxw->lead || sequence < rxw->trail ||
        helio_rxw_slot_of(rxw, sequence)->state != HELIO_RXW_WAITING) {
        return FOUND_NEW;
    }
    if (stream->nak.outstanding == 0) {
        return FOUND_LATE;
    }
    const helio_nak_found asked =
        packet->is_repair
            ? helio_nak_on_repair(&stream->nak, sequence, packet->is_near, packet->arrival_ns)
            : helio_nak_on_data(&stream->nak, sequence, packet->arrival_ns);
    if (!asked.was_asked_for) {
        return FOUND_LATE;
    }
    if (packet->is_repair && !packet->is_near) {
        helio_rx_budget_on_answer(stream, packet->arrival_ns);
    }
    const int64_t took_ns = packet->arrival_ns - asked.seen_ns;
    if (stream->quickest_ns == 0 || took_ns < stream->quickest_ns) {
        stream->quickest_ns = took_ns;
    }
    packet->recovered = true;
    helio_record(stream->object.histogram[HELIO_RX_STREAM_RECOVERY_TIME], took_ns, 1);
    return FOUND_RECOVERED;
}

/* This receiver is suspended: what it misses comes only if others ask for it.  When a quarter of
 * the window waits for that it lets go of what is missing and goes on with what comes, instead of
 * falling as far behind as the history reaches. */
static void catch_up(helio_rx_stream *stream, uint64_t sequence, helio_moment moment) {
    const helio_rxw *rxw = &stream->rxw;
    uint64_t trail = rxw->trail - 1;
    while (sequence > rxw->trail && sequence - rxw->trail > rxw->mask / SUSPENDED_PART &&
           rxw->trail > trail && !stream->is_blocked) {
        trail = rxw->trail;
        helio_rx_extend(stream, sequence - 1, moment.now_ns);
        helio_rx_give_up(stream, HELIO_LOST_SUSPENDED, moment);
    }
}

/* Holds a packet that cannot be passed on now. */
static void hold(helio_rx_stream *stream, uint64_t sequence, const helio_rxw_packet *packet,
                 found found, uint8_t place, size_t bytes, helio_moment moment) {
    helio_rxw *rxw = &stream->rxw;
    if (helio_rxw_look(rxw, sequence) == HELIO_RXW_OVERFLOW) {
        helio_rx_make_room(stream, sequence, moment.now_ns);
    }
    if (helio_rxw_look(rxw, sequence) == HELIO_RXW_OPENED_GAP) {
        helio_rx_extend(stream, sequence - 1, moment.now_ns);
    }
    switch (helio_rxw_insert(rxw, sequence, packet)) {
    case HELIO_RXW_OVERFLOW:
        helio_rx_account(stream, &helio_rx_stats(stream)->overflows, bytes);
        if (!packet->is_repair) {
            helio_rx_locations_turn_away(stream, sequence);
        }
        break;
    case HELIO_RXW_DUPLICATE: /* given up in this very moment */
        helio_rx_account(stream, &helio_rx_stats(stream)->duplicates, bytes);
        break;
    case HELIO_RXW_APPENDED:
    case HELIO_RXW_FILLED_GAP:
    case HELIO_RXW_OPENED_GAP:
        account_taken(stream, false, found, place, bytes);
        if (stream->shared->config.in_arrival_order && !stream->is_blocked) {
            helio_delivery_ahead(&stream->delivery, packet, moment);
        }
    }
}

void helio_rx_hold_rest(helio_rx_stream *stream, uint64_t sequence, const helio_rxw_packet *packet,
                        size_t bytes, helio_moment moment) {
    helio_rx_set_blocked(stream, true);
    hold(stream, sequence, packet, FOUND_NEW, HELIO_RX_LOCATION_LATE, bytes, moment);
}

void helio_rx_take(helio_rx_stream *stream, uint64_t sequence, helio_rxw_packet *packet,
                   size_t bytes, helio_moment moment) {
    helio_rxw *rxw = &stream->rxw;
    if (stream->notices.suspended_until_ns && !stream->is_waiting) {
        catch_up(stream, sequence, moment);
    }
    const found found = find(stream, sequence, packet);
    uint8_t place =
        found == FOUND_NEW ? HELIO_RX_LOCATION_LATE : helio_rxw_slot_of(rxw, sequence)->place;
    if (found != FOUND_NEW && !packet->is_repair) { /* it was not lost */
        helio_rx_locations_take_back(stream, (helio_rx_location)place);
        place = HELIO_RX_LOCATION_LATE;
    }
    if (sequence != rxw->trail || stream->is_blocked || stream->is_waiting) {
        hold(stream, sequence, packet, found, place, bytes, moment);
        return;
    }
    if (pass(stream, sequence, packet, moment)) {
        helio_rxw_pass(rxw);
        account_taken(stream, true, found, place, bytes);
    } else {
        hold(stream, sequence, packet, found, place, bytes, moment);
    }
    if (found == FOUND_RECOVERED) {
        helio_rx_locations_tell(stream, moment);
    }
    if (!stream->is_blocked && (rxw->known > rxw->lead || !helio_rxw_is_empty(rxw))) {
        helio_rx_drain(stream, moment);
    }
}

void helio_rx_take_aside(helio_rx_stream *stream, const helio_rx_arrival *aside,
                         helio_moment moment) {
    const uint64_t sequence = aside->sequence;
    helio_rx_learn_trail(stream, aside->trail, moment);
    if (helio_rxw_look(&stream->rxw, sequence) == HELIO_RXW_DUPLICATE) {
        helio_rx_account(stream, &helio_rx_stats(stream)->duplicates, aside->bytes);
        return;
    }
    const bool is_newest = sequence > stream->newest;
    if (is_newest) {
        helio_rx_move_newest(stream, sequence);
    }
    hold(stream, sequence, &aside->packet, FOUND_NEW, HELIO_RX_LOCATION_LATE, aside->bytes, moment);
    if (is_newest && stream->nak.outstanding > 0) {
        helio_nak_on_newest(&stream->nak, sequence, moment.now_ns);
    }
    if (!stream->is_blocked) {
        helio_rx_drain(stream, moment);
    }
}

void helio_rx_give_up(helio_rx_stream *stream, helio_rxw_cause cause, helio_moment moment) {
    helio_rxw *rxw = &stream->rxw;
    for (uint64_t sequence = rxw->trail; sequence <= rxw->lead; sequence++) {
        if (helio_rxw_slot_of(rxw, sequence)->state == HELIO_RXW_WAITING) {
            helio_nak_remove(&stream->nak, sequence);
            helio_rxw_lose(rxw, sequence, cause);
        }
    }
    if (!stream->is_blocked) {
        helio_rx_drain(stream, moment);
    }
}

void helio_rx_give_up_before(helio_rx_stream *stream, uint64_t sequence, helio_rxw_cause cause,
                             helio_moment moment) {
    if (sequence <= stream->rxw.trail) {
        return;
    }
    lost_run run = {0};
    skip_to(stream, &run, sequence, cause, moment);
    report_lost(stream, &run, moment);
    if (stream->newest < sequence - 1) {
        stream->newest = sequence - 1;
    }
}

void helio_rx_give_up_all(helio_rx_stream *stream, helio_rxw_cause cause, helio_moment moment) {
    const helio_rxw *rxw = &stream->rxw;
    do {
        helio_rx_give_up(stream, cause, moment);
    } while (!stream->is_blocked && !stream->is_waiting && !helio_rxw_is_empty(rxw));
    const uint64_t last = stream->newest > stream->told_lead ? stream->newest : stream->told_lead;
    if (!stream->is_blocked && helio_rxw_is_empty(rxw)) {
        helio_rx_give_up_before(stream, last + 1, cause, moment);
    }
}
