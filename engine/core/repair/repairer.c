#include "repair/repairer.h"

#include <stdlib.h>

#include <heliograph/errors.h>

#include "base/sequence.h"

enum { LEAVING_PART = 16 }; /* of a full window leaves next */

int helio_repairer_init(helio_repairer *repairer, const helio_repairer_config *config,
                        helio_txw *txw, helio_tx_stream_stats *stats) {
    *repairer = (helio_repairer){
        .txw = txw, .stats = stats, .linger_ns = config->linger_ns, .behind_ns = INT64_MIN / 2};
    repairer->queue = calloc(helio_txw_capacity(txw), sizeof *repairer->queue);
    if (config->fans_out)
        repairer->fan = calloc(helio_txw_capacity(txw), sizeof *repairer->fan);
    if (!repairer->queue || (config->fans_out && !repairer->fan)) {
        free(repairer->queue);
        free(repairer->fan);
        repairer->queue = NULL;
        return HELIO_ERR_NOMEM;
    }
    const int error = helio_peers_init(&repairer->peers, config->max_peers, config->stats,
                                       config->instance, config->stream);
    if (error) {
        free(repairer->queue);
        free(repairer->fan);
        repairer->queue = NULL;
    }
    return error;
}

void helio_repairer_fini(helio_repairer *repairer, helio_clock clock) {
    helio_peers_fini(&repairer->peers, clock);
    free(repairer->queue);
    free(repairer->fan);
    repairer->queue = NULL;
}

static bool is_recent(int64_t then_ns, int64_t now_ns, int64_t linger_ns) {
    return now_ns - then_ns < linger_ns;
}

/* New data is about to push it out of a full window. */
static bool is_leaving(const helio_txw *txw, uint64_t sequence) {
    const uint64_t count = helio_txw_count(txw);
    return count + 1 >= txw->limit_packets && sequence - txw->trail < count / LEAVING_PART;
}

static bool is_pressing(const helio_txw *txw, uint64_t sequence) {
    return is_leaving(txw, sequence) || txw->lead - sequence < txw->limit_packets / 2;
}

static helio_repair_fan *fan_of(const helio_repairer *repairer, uint64_t sequence) {
    return repairer->fan ? &repairer->fan[sequence & repairer->txw->mask] : NULL;
}

/* All of `destinations` got the last repair; in a group everybody does. */
static bool was_served(const helio_repair_fan *fan, uint64_t destinations) {
    return !fan || (destinations & ~fan->served) == 0;
}

/* Decides what becomes of one sequence asked for. */
static void ask(helio_repairer *repairer, uint64_t sequence, uint32_t asker, uint64_t destinations,
                helio_clock clock) {
    helio_tx_stream_stats *stats = repairer->stats;
    helio_txw *txw = repairer->txw;
    repairer->late_requests += sequence < txw->trail + helio_txw_count(txw) / 4;
    if (sequence > txw->lead) {
        helio_count(&stats->naks_answered_not_sent_yet, 1);
        return;
    }
    helio_peer_stats *peer = helio_peers_stats(&repairer->peers, asker);
    if (!helio_peers_ask(&repairer->peers, asker, sequence, clock.now_ns))
        helio_count(&peer->naks_repeated, 1);
    if (sequence < txw->trail) {
        if (peer) {
            helio_peers_view(&repairer->peers, asker)->naks_late++;
            helio_count(&peer->naks_too_late, 1);
        }
        helio_count(&stats->naks_answered_too_late, 1);
        return;
    }
    if (txw->lead - sequence > txw->limit_packets / 4)
        repairer->behind_ns = clock.now_ns;
    helio_txw_slot *slot = helio_txw_slot_of(txw, sequence);
    helio_repair_fan *fan = fan_of(repairer, sequence);
    if (slot->queued) {
        if (fan)
            fan->waiting |= destinations;
        helio_advice_on_duplicate(&repairer->advice, sequence);
        helio_count(&stats->naks_answered_queued_already, 1);
    } else if (slot->repairs > 0 && was_served(fan, destinations) &&
               is_recent(slot->repaired_ns, clock.now_ns, repairer->linger_ns)) {
        helio_advice_on_duplicate(&repairer->advice, sequence);
        helio_count(&stats->naks_answered_ignored_recent, 1);
    } else if (repairer->end - repairer->first > txw->mask) {
        /* Full of packets trimmed since: as good as queued, the next request will find room. */
        helio_count(&stats->naks_answered_queued_already, 1);
    } else {
        slot->queued = true;
        const bool presses = is_pressing(txw, sequence);
        repairer->pressing += presses;
        slot->asker = asker;
        if (fan)
            fan->waiting = destinations;
        repairer->queue[repairer->end++ & txw->mask] = 2 * sequence + presses;
    }
}

/* A request of theirs for the same first sequence was confirmed a moment ago. */
static bool is_confirmed(helio_repairer *repairer, uint64_t first, uint64_t destinations,
                         int64_t now_ns) {
    if (!helio_txw_has(repairer->txw, first))
        return false;
    helio_txw_slot *slot = helio_txw_slot_of(repairer->txw, first);
    helio_repair_fan *fan = fan_of(repairer, first);
    const bool recent =
        slot->confirms > 0 && is_recent(slot->confirmed_ns, now_ns, repairer->linger_ns);
    if (recent && (!fan || (destinations & ~fan->confirmed) == 0))
        return true;
    if (fan)
        fan->confirmed = recent ? fan->confirmed | destinations : destinations;
    slot->confirms++;
    slot->confirmed_ns = now_ns;
    return false;
}

bool helio_repairer_on_nak(helio_repairer *repairer, const helio_pgm_packet *nak, uint32_t asker,
                           uint64_t destinations, helio_clock clock, size_t *naks) {
    helio_tx_stream_stats *stats = repairer->stats;
    const uint64_t first = helio_sequence_widen(nak->sequence, repairer->txw->lead);
    helio_peer_stats *peer = helio_peers_stats(&repairer->peers, asker);
    const size_t count = 1 + nak->list_count;
    *naks = count;

    helio_stats_begin(stats);
    helio_count(&stats->nak_packets_received, 1);
    helio_count(&stats->naks_received, count);
    helio_set(&stats->peers, repairer->peers.count - repairer->peers.vacant);
    ask(repairer, first, asker, destinations, clock);
    for (size_t i = 0; i < nak->list_count; i++)
        ask(repairer, helio_sequence_widen(nak->list[i], first), asker, destinations, clock);
    helio_set(&stats->repair_queue, repairer->end - repairer->first);
    helio_stats_end(stats);

    if (peer) {
        helio_stats_begin(peer);
        helio_count(&peer->nak_packets_received, 1);
        helio_count(&peer->naks_received, count);
        helio_set(&peer->last_heard, (uint64_t)clock.wall_ns);
        helio_stats_end(peer);
    }
    return nak->list_count > 0 || !is_confirmed(repairer, first, destinations, clock.now_ns);
}

static void count_repair(helio_repairer *repairer, helio_txw_slot *slot) {
    helio_tx_stream_stats *stats = repairer->stats;
    helio_stats_begin(stats);
    helio_count(&stats->naks_answered_repaired, 1);
    helio_count(&stats->repair_packets, 1);
    helio_count(&stats->repair_bytes, slot->length);
    helio_set(&stats->repair_queue, repairer->end - repairer->first);
    helio_stats_end(stats);
    helio_peer_stats *peer = helio_peers_stats(&repairer->peers, slot->asker);
    if (peer) {
        helio_receiver_view *view = helio_peers_view(&repairer->peers, slot->asker);
        view->repairs++;
        view->repair_bytes += slot->length;
        helio_count(&peer->repairs_caused, 1);
        helio_count(&peer->repair_bytes_caused, slot->length);
    }
}

bool helio_repairer_next(helio_repairer *repairer, helio_clock clock, uint64_t *sequence) {
    while (repairer->first != repairer->end) {
        const uint64_t entry = repairer->queue[repairer->first++ & repairer->txw->mask];
        *sequence = entry / 2;
        repairer->pressing -= entry % 2;
        if (!helio_txw_has(repairer->txw, *sequence)) { /* trimmed while it waited */
            helio_count(&repairer->stats->naks_answered_too_late, 1);
            continue;
        }
        helio_txw_slot *slot = helio_txw_slot_of(repairer->txw, *sequence);
        helio_repair_fan *fan = fan_of(repairer, *sequence);
        if (fan)
            fan->served =
                slot->repairs > 0 && is_recent(slot->repaired_ns, clock.now_ns, repairer->linger_ns)
                    ? fan->served | fan->waiting
                    : fan->waiting;
        slot->queued = false;
        slot->repairs++;
        slot->repaired_ns = clock.now_ns;
        helio_advice_on_repair(&repairer->advice);
        count_repair(repairer, slot);
        return true;
    }
    helio_set(&repairer->stats->repair_queue, 0);
    return false;
}
