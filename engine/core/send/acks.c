#include "send/acks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <heliograph/errors.h>

#include "base/bits.h"
#include "base/sequence.h"

enum {
    RESERVE = 2,         /* packets of the history reserved for announcements of topics */
    ACKERS_AT_ONCE = 16, /* with more, questions are rarer */
    NAMED_MAX = 3,       /* receivers that are behind named in an event */
};

#define ASK_AGAIN_NS (10 * HELIO_MILLISECOND) /* an older question counts as lost */
#define ASK_NS_PER_ACKER (60 * HELIO_MICROSECOND)

static helio_tx_stream_stats *stats_of(const helio_tx_acks *acks) {
    return acks->config.object->record;
}

/* ---- create, destroy ---- */

static void show(helio_tx_acks *acks) {
    helio_tx_stream_stats *stats = stats_of(acks);
    helio_set(&stats->receivers_acknowledging, acks->registry.count);
    if (acks->config.wanted) {
        helio_set(&stats->history_unacked, acks->txw->lead - acks->stable);
        helio_set(&stats->quorum_present, helio_acks_live(&acks->registry));
        helio_set(&stats->unstable_messages, acks->stability.sent - acks->stability.done);
        helio_set(&stats->unstable_bytes, acks->unacked_bytes);
    }
}

int helio_tx_acks_init(helio_tx_acks *acks, const helio_tx_acks_config *config, helio_txw *txw) {
    *acks = (helio_tx_acks){
        .config = *config,
        .txw = txw,
        .needed = config->wanted,
        .stable = txw->lead,
        .stability = {.limits = config->unstable,
                      .txw = txw,
                      .stats = config->stats,
                      .object = config->object,
                      .label = config->label},
    };
    helio_acks_init(&acks->registry, HELIO_ACKERS_MAX, config->expiry_ns);
    if (config->silence_ns > 0 && config->silence_ns < config->expiry_ns) {
        acks->registry.silence_ns = config->silence_ns;
    }
    if (config->wanted > 0) {
        txw->floor = acks->stable + 1;
        helio_set(&stats_of(acks)->quorum_required, config->wanted);
    }
    if (helio_tx_stability_init(&acks->stability, config->wanted > 0)) {
        return HELIO_ERR_NOMEM;
    }
    acks->marks = calloc(helio_txw_capacity(txw), sizeof *acks->marks);
    return acks->marks ? 0 : HELIO_ERR_NOMEM;
}

size_t helio_tx_acks_memory(const helio_tx_acks *acks) {
    return (acks->marks ? helio_txw_capacity(acks->txw) * sizeof *acks->marks : 0) +
           helio_tx_stability_memory(&acks->stability);
}

void helio_tx_acks_fini(helio_tx_acks *acks) {
    helio_acks_fini(&acks->registry);
    helio_tx_stability_fini(&acks->stability);
    free(acks->marks);
    acks->marks = NULL;
}

/* ---- release from the history ---- */

static size_t taken_bytes(const helio_tx_acks *acks, uint64_t sequence) {
    return helio_txw_taken(helio_txw_slot_of(acks->txw, sequence));
}

static void advance(helio_tx_acks *acks, uint64_t stable, bool is_stable, int64_t now_ns) {
    if (stable <= acks->stable) {
        return;
    }
    while (acks->stable < stable) {
        acks->unacked_bytes -= taken_bytes(acks, ++acks->stable);
        helio_tx_stability_release(&acks->stability, acks->stable, is_stable, now_ns);
    }
    acks->txw->floor = stable + 1;
}

static void find_stable(helio_tx_acks *acks, int64_t now_ns) {
    if (acks->config.wanted == 0) {
        return;
    }
    const uint64_t before = acks->stable;
    const uint64_t stable = acks->needed == 0
                                ? acks->txw->lead
                                : helio_acks_stable(&acks->registry, acks->needed, before);
    advance(acks, stable, acks->needed == acks->config.wanted, now_ns);
    if (acks->needed < acks->config.wanted) {
        helio_count(&stats_of(acks)->history_unacked_dropped, acks->stable - before);
    }
}

/* The receivers that are behind: "a (10.0.0.1:40000) by 12 packets, ...". */
static void name_those_behind(const helio_tx_acks *acks, char *text, size_t size) {
    const uint64_t lead = acks->txw->lead;
    size_t used = 0;
    uint32_t named = 0;
    text[0] = '\0';
    for (uint32_t i = acks->registry.count; i > 0 && named < NAMED_MAX; i--, named++) {
        const helio_acker *acker = helio_acks_at(&acks->registry, i - 1);
        if (acker->position >= lead || used >= size) {
            return;
        }
        char address[HELIO_ADDRESS_TEXT];
        const int length =
            snprintf(text + used, size - used, "%s%s (%s) by %" PRIu64 " packets",
                     named ? ", " : "; behind: ", acker->name,
                     helio_address_format(&acker->address, address), lead - acker->position);
        used += length > 0 ? (size_t)length : 0;
    }
}

static void tell(helio_tx_acks *acks, helio_event_id event, uint64_t first, const char *what,
                 helio_moment moment) {
    char behind[200];
    const uint64_t waiting = acks->txw->lead - acks->stable;
    name_those_behind(acks, behind, sizeof behind);
    helio_stats_event(
        acks->config.stats, moment.wall_ns, event, acks->config.object->slot,
        (const uint64_t[4]){first, acks->config.wanted, waiting},
        "%s: %s; %" PRIu32 " of %" PRIu32 " receivers acknowledge, %" PRIu64 " packets wait%s",
        acks->config.label, what, acks->registry.count, acks->config.wanted, waiting, behind);
}

static void tell_quorum(helio_tx_acks *acks, helio_event_id event, const char *what,
                        helio_moment moment) {
    const uint32_t present = helio_acks_live(&acks->registry), wanted = acks->config.wanted;
    const uint64_t waiting = acks->txw->lead - acks->stable;
    helio_stats_event(acks->config.stats, moment.wall_ns, event, acks->config.object->slot,
                      (const uint64_t[4]){present, wanted, waiting},
                      "%s: the quorum %s; %" PRIu32 " of %" PRIu32 " %s acknowledge, %" PRIu64
                      " packets wait",
                      acks->config.label, what, present, wanted,
                      acks->config.of_stores ? "stores" : "receivers", waiting);
}

static void judge_quorum(helio_tx_acks *acks, helio_moment moment) {
    const bool has_quorum = helio_acks_live(&acks->registry) >= acks->config.wanted;
    if (acks->config.wanted == 0 || has_quorum == acks->has_quorum) {
        return;
    }
    acks->has_quorum = has_quorum;
    if (has_quorum) {
        tell_quorum(acks, HELIO_EVENT_QUORUM_REACHED, "is complete", moment);
    } else {
        helio_count(&stats_of(acks)->quorum_losses, 1);
        tell_quorum(acks, HELIO_EVENT_QUORUM_LOST, "is lost", moment);
    }
}

/* To be called when the number of receivers that count has changed. */
static void set_needed(helio_tx_acks *acks, helio_moment moment) {
    const uint32_t wanted = acks->config.wanted, live = helio_acks_live(&acks->registry);
    judge_quorum(acks, moment);
    if (acks->config.missing != HELIO_ACKS_MISSING_DEGRADE) {
        return;
    }
    const uint32_t needed = live < wanted ? live : wanted;
    if (needed == acks->needed) {
        return;
    }
    acks->needed = needed;
    tell(acks, HELIO_EVENT_ACKS_DEGRADED, needed,
         needed < wanted ? "packets wait for fewer acknowledgements than required"
                         : "packets wait for all required acknowledgements again",
         moment);
}

/* ---- receivers ---- */

static void tell_acker(helio_tx_acks *acks, helio_event_id event, const helio_acker *acker,
                       const char *what, helio_moment moment) {
    char address[HELIO_ADDRESS_TEXT];
    const uint64_t sequence = event == HELIO_EVENT_ACKS_STARTED ? acker->first : acker->position;
    helio_stats_event(acks->config.stats, moment.wall_ns, event, acks->config.object->slot,
                      (const uint64_t[4]){acker->receiver, sequence, acks->registry.count},
                      "%s: receiver %s (%s) %s at packet %" PRIu64 "; %" PRIu32 " acknowledge",
                      acks->config.label, acker->name,
                      helio_address_format(&acker->address, address), what, sequence,
                      acks->registry.count);
}

static void part(helio_tx_acks *acks, helio_acker *acker, const char *why, helio_moment moment) {
    const helio_acker gone = *acker;
    helio_acks_remove(&acks->registry, acker);
    tell_acker(acks, HELIO_EVENT_ACKS_STOPPED, &gone, why, moment);
    set_needed(acks, moment);
}

/* Where a store can be read: what it left open is where its acknowledgement comes from. */
static helio_address service_of(const helio_pgm_packet *ack, const helio_address *from) {
    if (!(ack->options & HELIO_PGM_HAS_SERVICE) ||
        !(ack->acknowledge.flags & HELIO_PGM_ACK_STORE)) {
        return (helio_address){0};
    }
    helio_address service = ack->acknowledge.service;
    if (service.family == 0) {
        const uint16_t port = service.port;
        service = *from;
        service.port = port;
    }
    return service;
}

/* Converts an ACK to sequences of this stream; false: impossible. */
static bool read_ack(const helio_tx_acks *acks, const helio_pgm_packet *ack,
                     const helio_tx_acks_sender *sender, int64_t now_ns, helio_acker *heard) {
    const helio_pgm_acknowledge *said = &ack->acknowledge;
    *heard = (helio_acker){
        .receiver = said->receiver,
        .incarnation = said->incarnation,
        .position = helio_sequence_widen(said->position, acks->txw->lead),
        .heard_ns = now_ns,
        .address = *sender->from,
        .service = service_of(ack, sender->from),
        .kind = said->kind,
        .is_store = said->flags & HELIO_PGM_ACK_STORE,
        .is_out = sender->is_out,
        .is_outside = acks->config.of_stores && !(said->flags & HELIO_PGM_ACK_STORE),
    };
    heard->first = helio_sequence_widen(said->first, heard->position);
    for (size_t i = 0; i < said->name_bytes; i++) { /* it goes into texts and labels */
        heard->name[i] = said->name[i] < ' ' && said->name[i] >= 0 ? '?' : said->name[i];
    }
    return heard->position <= acks->txw->lead && heard->first <= heard->position + 1;
}

static void count_refusal(helio_tx_stream_stats *stats, helio_acks_result result) {
    if (result == HELIO_ACKS_ELSEWHERE) {
        helio_count(&stats->acks_refused_elsewhere, 1);
    } else if (result == HELIO_ACKS_IMPOSSIBLE) {
        helio_count(&stats->acks_refused_impossible, 1);
    } else if (result == HELIO_ACKS_STALE) {
        helio_count(&stats->acks_refused_stale, 1);
    } else if (result == HELIO_ACKS_FULL) {
        helio_count(&stats->acks_refused_no_room, 1);
    }
}

/* Validates an acknowledgement and passes it to the registry. */
static helio_acks_result take(helio_tx_acks *acks, const helio_pgm_packet *ack,
                              const helio_tx_acks_sender *sender, int64_t now_ns,
                              helio_acker *heard, helio_acker **out) {
    const helio_acker *known = helio_acks_find(&acks->registry, ack->acknowledge.receiver);
    if (!read_ack(acks, ack, sender, now_ns, heard)) {
        return HELIO_ACKS_IMPOSSIBLE;
    }
    if (sender->is_elsewhere) {
        return HELIO_ACKS_ELSEWHERE;
    }
    if ((ack->acknowledge.flags & HELIO_PGM_ACK_LEAVING) &&
        (!known || known->incarnation != heard->incarnation)) {
        return HELIO_ACKS_GONE; /* it never joined, or is in its next life */
    }
    return helio_acks_hear(&acks->registry, heard, sender->is_vouched, out);
}

helio_acks_result helio_tx_acks_on_ack(helio_tx_acks *acks, const helio_pgm_packet *ack,
                                       const helio_tx_acks_sender *sender, helio_moment moment,
                                       helio_acker *heard) {
    helio_acker *acker = NULL;
    helio_tx_stream_stats *stats = stats_of(acks);
    helio_count(&stats->acks_received, 1);
    const bool is_leaving = ack->acknowledge.flags & HELIO_PGM_ACK_LEAVING;
    const uint32_t live = helio_acks_live(&acks->registry);
    const helio_acks_result result = take(acks, ack, sender, moment.now_ns, heard, &acker);
    if (!helio_acks_is_taken(result)) {
        count_refusal(stats, result);
        return result;
    }
    if (result == HELIO_ACKS_JOINED || result == HELIO_ACKS_RESTARTED) {
        tell_acker(acks, HELIO_EVENT_ACKS_STARTED, acker,
                   result == HELIO_ACKS_JOINED ? "joined" : "joined again", moment);
        set_needed(acks, moment);
    } else if (live != helio_acks_live(&acks->registry)) { /* it is a store now, or no longer */
        set_needed(acks, moment);
    }
    if (acks->config.wanted > 0 && !helio_acker_counts(acker)) {
        helio_count(&stats->acks_not_counted, 1);
    }
    find_stable(acks, moment.now_ns);
    if (is_leaving) {
        part(acks, acker, "left", moment);
        find_stable(acks, moment.now_ns);
    }
    helio_stats_begin(stats);
    show(acks);
    helio_stats_end(stats);
    return result;
}

const helio_acker *helio_tx_acks_awaited(const helio_tx_acks *acks) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < acks->registry.count; i++) {
        const helio_acker *acker = helio_acks_at(&acks->registry, i);
        if (helio_acker_counts(acker) && acker->first <= acks->stable + 1 &&
            ++found == acks->needed) {
            return acker;
        }
    }
    return NULL;
}

void helio_tx_acks_on_action(helio_tx_acks *acks, const helio_receivers *receivers,
                             helio_receiver_index index, helio_action action, helio_moment moment) {
    const bool is_out = helio_action_leaves_out(action);
    for (uint32_t i = acks->registry.count; i > 0; i--) {
        helio_acker *acker = helio_acks_at(&acks->registry, i - 1);
        if (acker->is_out == is_out && action != HELIO_ACTION_EXPEL) {
            continue;
        }
        if (helio_receivers_acknowledging(receivers, acker->receiver, &acker->address) != index) {
            continue;
        }
        if (action == HELIO_ACTION_EXPEL) {
            part(acks, acker, "was expelled", moment);
        } else {
            helio_acks_set_out(&acks->registry, acker, is_out);
            set_needed(acks, moment);
        }
        find_stable(acks, moment.now_ns);
        show(acks);
    }
}

/* ---- sending ---- */

void helio_tx_acks_on_sent(helio_tx_acks *acks, helio_tx_topic *topic, uint64_t first_message) {
    const uint64_t sequence = acks->txw->lead;
    if (acks->config.wanted > 0) {
        acks->unacked_bytes += taken_bytes(acks, sequence);
        if (acks->needed == 0) { /* not stable, so no time is measured */
            find_stable(acks, 0);
        }
        show(acks);
    }
    if (!topic) {
        return;
    }
    helio_tx_acks_note(acks, topic, first_message);
}

uint64_t helio_tx_acks_capacity(const helio_tx_acks *acks) {
    const helio_txw *txw = acks->txw;
    const uint64_t by_bytes = txw->limit_bytes / txw->packet_bytes;
    const uint64_t packets = by_bytes < txw->limit_packets ? by_bytes : txw->limit_packets;
    return packets > RESERVE + 1 ? packets - RESERVE : 1;
}

static bool takes(const helio_tx_acks *acks, uint64_t packets) {
    const helio_txw *txw = acks->txw;
    const uint64_t unacked = txw->lead - acks->stable, with_reserve = packets + RESERVE;
    return unacked == 0 ||
           (unacked + with_reserve <= txw->limit_packets &&
            acks->unacked_bytes + with_reserve * txw->packet_bytes <= txw->limit_bytes);
}

static void set_blocked(helio_tx_acks *acks, bool is_blocked, int64_t now_ns) {
    helio_tx_stream_stats *stats = stats_of(acks);
    if (acks->blocked_ns) {
        helio_count(&stats->ack_blocked_time, (uint64_t)(now_ns - acks->blocked_ns));
    } else if (is_blocked) {
        helio_count(&stats->ack_blocks, 1);
    }
    acks->blocked_ns = is_blocked ? now_ns : 0;
}

bool helio_tx_acks_has_room(helio_tx_acks *acks, uint64_t packets, helio_moment moment) {
    if (acks->config.wanted == 0) {
        return true;
    }
    const bool has_room = takes(acks, packets);
    if (!has_room || acks->blocked_ns) {
        set_blocked(acks, !has_room, moment.now_ns);
    }
    return has_room;
}

void helio_tx_acks_let_go(helio_tx_acks *acks, uint64_t sequence, helio_moment moment) {
    if (acks->config.wanted == 0 || sequence <= acks->stable) {
        return;
    }
    if (moment.now_ns >= acks->let_go_after_ns) {
        acks->let_go_after_ns = moment.now_ns + HELIO_SECOND;
        tell(acks, HELIO_EVENT_ACKS_DEGRADED, acks->needed,
             "a transmitter ended with packets unacknowledged", moment);
    }
    helio_count(&stats_of(acks)->history_unacked_dropped, sequence - acks->stable);
    advance(acks, sequence, false, moment.now_ns);
    show(acks);
}

bool helio_tx_acks_should_ask(const helio_tx_acks *acks, int64_t now_ns) {
    const uint32_t live = acks->registry.count;
    if (live == 0) {
        return false;
    }
    if (live > ACKERS_AT_ONCE && now_ns - acks->asked_ns < live * ASK_NS_PER_ACKER) {
        return false;
    }
    return now_ns - acks->asked_ns >= ASK_AGAIN_NS ||
           helio_acks_at(&acks->registry, 0)->position >= acks->asked;
}

void helio_tx_acks_on_asked(helio_tx_acks *acks, int64_t now_ns) {
    acks->asked = acks->txw->lead + 1;
    acks->asked_ns = now_ns;
}

/* ---- time ---- */

/* The source waits for receivers, or for acknowledgements to go on. */
static bool is_short(const helio_tx_acks *acks) {
    return acks->config.wanted > 0 &&
           ((helio_acks_live(&acks->registry) < acks->needed && acks->stable < acks->txw->lead) ||
            acks->blocked_ns);
}

static void warn(helio_tx_acks *acks, helio_moment moment) {
    if (!is_short(acks)) {
        acks->short_ns = 0;
        acks->has_warned = false;
        return;
    }
    if (acks->short_ns == 0) {
        acks->short_ns = moment.now_ns;
    }
    if (acks->has_warned || moment.now_ns - acks->short_ns < acks->config.warn_ns) {
        return;
    }
    acks->has_warned = true;
    tell(acks, HELIO_EVENT_ACKS_MISSING, acks->registry.count,
         acks->blocked_ns ? "the history is full of packets not acknowledged, and sending waits"
                          : "packets wait for receivers that have not joined",
         moment);
}

void helio_tx_acks_poll(helio_tx_acks *acks, helio_moment moment) {
    helio_acker *silent;
    bool has_lost = false;
    while ((silent = helio_acks_expired(&acks->registry, moment.now_ns)) != NULL) {
        part(acks, silent, "fell silent", moment);
        has_lost = true;
    }
    if (has_lost) {
        find_stable(acks, moment.now_ns);
        show(acks);
    }
    if (acks->blocked_ns && takes(acks, 1)) {
        set_blocked(acks, false, moment.now_ns); /* the caller that waited may not try again */
    }
    if (acks->stability.at != HELIO_ADMIT_GO) {
        helio_tx_stability_admit(&acks->stability, helio_tx_acks_in_flight(acks, 0, 0),
                                 acks->stability.length, moment);
    }
    warn(acks, moment);
}

int64_t helio_tx_acks_next_deadline_ns(const helio_tx_acks *acks) {
    int64_t deadline_ns = acks->registry.expiry_due_ns;
    if (is_short(acks) && !acks->has_warned) {
        const int64_t warn_ns = acks->short_ns ? acks->short_ns + acks->config.warn_ns : 0;
        if (warn_ns < deadline_ns) {
            deadline_ns = warn_ns;
        }
    }
    return deadline_ns;
}

/* ---- messages ---- */

bool helio_tx_acks_is_stable(const helio_tx_acks *acks, uint64_t sequence) {
    const uint32_t wanted = acks->config.wanted;
    return wanted > 0 && sequence <= acks->stable &&
           (sequence > acks->stability.unconfirmed ||
            helio_acks_quorum(&acks->registry, sequence) >= wanted);
}

bool helio_tx_acks_has_sent(const helio_tx_acks *acks, const helio_tx_topic *topic, uint64_t number,
                            uint64_t *sequence) {
    if (number >= topic->position.next_message) {
        return false;
    }
    *sequence = topic->newest;
    while (*sequence >= acks->txw->trail) {
        const helio_tx_mark *mark = &acks->marks[*sequence & acks->txw->mask];
        if (mark->first_message <= number) {
            break;
        }
        *sequence = mark->previous;
    }
    return true;
}

bool helio_tx_acks_message(const helio_tx_acks *acks, const helio_tx_topic *topic,
                           const helio_acker *acker, uint64_t *number) {
    uint64_t next = topic->position.next_message;
    uint64_t packet = topic->newest;
    while (packet > acker->position) {
        if (packet < acks->txw->trail) {
            return false;
        }
        const helio_tx_mark *mark = &acks->marks[packet & acks->txw->mask];
        next = mark->first_message;
        packet = mark->previous;
    }
    if (packet < acker->first || next == 0) {
        return false;
    }
    *number = next - 1;
    return true;
}
