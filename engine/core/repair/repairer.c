#include "repair/repairer.h"

#include <stdio.h>
#include <stdlib.h>

#include <heliograph/errors.h>

#include "base/sequence.h"

enum {
    LEAVING_PART = 16, /* of a full window leaves next */
    MUCH_LONGER = 4,   /* a line than another */
    UNICASTS = 2,      /* repairs of a packet before it goes to the group */
};

int helio_repairer_init(helio_repairer *repairer, const helio_repairer_config *config,
                        helio_txw *txw, helio_tx_stream_stats *stats) {
    *repairer = (helio_repairer){
        .txw = txw,
        .stats = stats,
        .linger_ns = config->linger_ns,
        .behind_ns = INT64_MIN / 2,
        .share = config->share,
        .sent = config->sent,
    };
    const size_t capacity = helio_txw_capacity(txw);
    repairer->entries = calloc(capacity, sizeof *repairer->entries);
    if (config->fans_out) {
        repairer->fan = calloc(capacity, sizeof *repairer->fan);
    }
    int error = repairer->entries && (repairer->fan || !config->fans_out) ? 0 : HELIO_ERR_NOMEM;
    if (!error) {
        error = helio_queue_init(&repairer->queue, (uint32_t)capacity, config->max_receivers + 1);
    }
    if (!error) {
        error = helio_receivers_init(&repairer->receivers, config->max_receivers,
                                     config->receiver_bytes, config->stats, config->instance,
                                     config->stream);
    }
    helio_allowances_init(&repairer->receivers.allowances, &config->limits);
    repairer->receivers.stream = stats;
    repairer->receivers.refusals = config->refusals;
    repairer->receivers.hosts.destinations = config->destinations;
    repairer->receivers.hosts.destinations_count = config->destinations_count;
    if (error) {
        helio_repairer_fini(repairer, (helio_moment){0});
    }
    return error;
}

void helio_repairer_fini(helio_repairer *repairer, helio_moment moment) {
    helio_receivers_fini(&repairer->receivers, moment);
    helio_queue_fini(&repairer->queue);
    free(repairer->entries);
    free(repairer->fan);
    repairer->entries = NULL;
    repairer->fan = NULL;
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

/* ---- lines ---- */

/* The receiver and its request. */
typedef struct request {
    uint32_t asker;
    helio_allowance *allowance;
    helio_budget *budget; /* NULL: there is no limit */
    uint32_t copies;      /* of each repair that are sent */
    uint64_t destinations;
    helio_moment moment;
} request;

static void charge(const request *who, const helio_txw_slot *slot) {
    helio_allowance_charge(who->allowance, slot->length);
    helio_budget_charge(who->budget, (uint64_t)slot->length * who->copies);
}

static uint32_t line_of(const helio_repairer *repairer, uint32_t asker) {
    return asker == HELIO_RECEIVER_NONE ? repairer->receivers.capacity : asker;
}

/* The packet waits in the line of whoever asked first; in a much shorter one it goes sooner. */
static void hasten(helio_repairer *repairer, uint64_t sequence, helio_txw_slot *slot,
                   const request *who) {
    const uint32_t asker = who->asker;
    const helio_queue *queue = &repairer->queue;
    const uint32_t from = line_of(repairer, slot->asker), to = line_of(repairer, asker);
    if (helio_queue_waiting(queue, from) <= MUCH_LONGER * (helio_queue_waiting(queue, to) + 1)) {
        return;
    }
    helio_queue_move(&repairer->queue, repairer->entries[sequence & repairer->txw->mask], from, to);
    charge(who, slot);
    slot->asker = asker;
}

/* False: the queue is full. */
static bool enqueue(helio_repairer *repairer, uint64_t sequence, helio_txw_slot *slot,
                    const request *who) {
    const bool presses = is_pressing(repairer->txw, sequence);
    const uint32_t entry =
        helio_queue_push(&repairer->queue, line_of(repairer, who->asker), 2 * sequence + presses);
    if (entry == HELIO_QUEUE_NONE) {
        return false;
    }
    charge(who, slot);
    repairer->entries[sequence & repairer->txw->mask] = entry;
    repairer->pressing += presses;
    slot->queued = true;
    slot->asker = who->asker;
    return true;
}

/* ---- requests ---- */

static void note_request(helio_repairer *repairer, uint64_t sequence, const request *who) {
    helio_tx_receiver_stats *cells = helio_receivers_stats(&repairer->receivers, who->asker);
    const bool is_first =
        helio_receivers_ask(&repairer->receivers, who->asker, sequence, who->moment.now_ns);
    if (cells && !is_first) {
        helio_count(&cells->naks_repeated, 1);
    }
}

static void count_too_late(helio_repairer *repairer, uint32_t asker) {
    helio_tx_receiver_stats *cells = helio_receivers_stats(&repairer->receivers, asker);
    if (cells) {
        helio_receivers_view(&repairer->receivers, asker)->naks_late++;
        helio_count(&cells->naks_too_late, 1);
    }
    helio_count(&repairer->stats->naks_answered_too_late, 1);
}

static void count_shed(helio_repairer *repairer, uint32_t asker) {
    helio_tx_receiver_stats *cells = helio_receivers_stats(&repairer->receivers, asker);
    if (cells) {
        helio_receivers_view(&repairer->receivers, asker)->naks_shed++;
        helio_count(&cells->naks_shed, 1);
    }
    helio_count(&repairer->stats->naks_answered_shed, 1);
}

/* Its host's budget is used up. */
static void refuse(helio_repairer *repairer, const request *who) {
    const helio_receivers *receivers = &repairer->receivers;
    char text[128], at[HELIO_ADDRESS_TEXT];
    if (who->asker < receivers->count && receivers->entries[who->asker].is_proven) {
        snprintf(text, sizeof text, "receivers at %s request more repairs than their share",
                 helio_address_format_ip(&receivers->entries[who->asker].address, at));
    } else {
        snprintf(text, sizeof text, "unproven receivers request more repairs than their share");
    }
    helio_refuse(&receivers->refusals, HELIO_REFUSAL_REPAIRS, 1, &repairer->over_budget, text,
                 who->moment);
}

/* Decides what becomes of one sequence asked for.  False: it is shed. */
static bool ask(helio_repairer *repairer, uint64_t sequence, const request *who) {
    helio_tx_stream_stats *stats = repairer->stats;
    helio_txw *txw = repairer->txw;
    const int64_t now_ns = who->moment.now_ns;
    repairer->late_requests += sequence < txw->trail + helio_txw_count(txw) / 4;
    if (sequence > txw->lead) {
        helio_count(&stats->naks_answered_not_sent_yet, 1);
        return true;
    }
    note_request(repairer, sequence, who);
    if (sequence < txw->trail) {
        count_too_late(repairer, who->asker);
        return true;
    }
    if (!helio_budget_grants(who->budget)) {
        count_shed(repairer, who->asker);
        refuse(repairer, who);
        return false;
    }
    if (!helio_allowance_grants_nak(&repairer->receivers.allowances, who->allowance, now_ns)) {
        count_shed(repairer, who->asker);
        return false;
    }
    if (txw->lead - sequence > txw->limit_packets / 4) {
        repairer->behind_ns = now_ns;
    }
    helio_txw_slot *slot = helio_txw_slot_of(txw, sequence);
    helio_repair_fan *fan = fan_of(repairer, sequence);
    if (slot->queued) {
        if (fan) {
            fan->waiting |= who->destinations;
        }
        if (slot->asker != who->asker) {
            hasten(repairer, sequence, slot, who);
        }
        helio_advice_on_duplicate(&repairer->advice, sequence);
        helio_count(&stats->naks_answered_queued_already, 1);
    } else if (slot->repairs > 0 && was_served(fan, who->destinations) &&
               is_recent(slot->repaired_ns, now_ns, repairer->linger_ns)) {
        helio_advice_on_duplicate(&repairer->advice, sequence);
        helio_count(&stats->naks_answered_ignored_recent, 1);
    } else if (enqueue(repairer, sequence, slot, who)) {
        if (fan) {
            fan->waiting = who->destinations;
        }
    } else {
        /* Full of packets trimmed since: as good as queued, the next request will find room. */
        helio_count(&stats->naks_answered_queued_already, 1);
    }
    return true;
}

/* A request of theirs for the same first sequence was confirmed a moment ago. */
static bool is_confirmed(helio_repairer *repairer, uint64_t first, uint64_t destinations,
                         int64_t now_ns) {
    if (!helio_txw_has(repairer->txw, first)) {
        return false;
    }
    helio_txw_slot *slot = helio_txw_slot_of(repairer->txw, first);
    helio_repair_fan *fan = fan_of(repairer, first);
    const bool recent =
        slot->confirms > 0 && is_recent(slot->confirmed_ns, now_ns, repairer->linger_ns);
    if (recent && (!fan || (destinations & ~fan->confirmed) == 0)) {
        return true;
    }
    if (fan) {
        fan->confirmed = recent ? fan->confirmed | destinations : destinations;
    }
    slot->confirms++;
    slot->confirmed_ns = now_ns;
    return false;
}

/* The budget that repairs for a receiver come from; NULL: there is no limit.  Who speaks over a
 * connection is limited by what that takes. */
static helio_budget *budget_of(helio_repairer *repairer, helio_receiver_index index,
                               int64_t now_ns) {
    helio_receivers *receivers = &repairer->receivers;
    if (repairer->share == 0 || receivers->are_pinned) {
        return NULL;
    }
    const helio_budget_terms terms = {
        .share = repairer->share,
        .sent = repairer->sent ? *repairer->sent : 0,
        .history = repairer->txw->bytes,
        .now_ns = now_ns,
    };
    helio_receiver_entry *entry = index < receivers->count ? &receivers->entries[index] : NULL;
    if (entry && entry->brings) {
        entry->brings = false;
        helio_hosts_bring(&receivers->hosts, entry->host, &terms);
    }
    return helio_hosts_budget(&receivers->hosts, entry ? entry->host : HELIO_HOST_NONE,
                              entry && entry->is_proven, &terms);
}

/* To how many hosts of a fan-out a repair for these goes. */
static uint32_t copies_of(const helio_repairer *repairer, uint64_t destinations) {
    const uint32_t count = repairer->receivers.hosts.destinations_count;
    if (!repairer->fan || count == 0) {
        return 1;
    }
    if (count < 64) {
        destinations &= (UINT64_C(1) << count) - 1;
    }
    const uint32_t copies = (uint32_t)__builtin_popcountll(destinations);
    return copies > 0 ? copies : 1;
}

/* A group: the receiver's address when it is the only known one and reads its own socket. */
static const helio_address *only_receiver(const helio_repairer *repairer, uint32_t asker) {
    const helio_receivers *receivers = &repairer->receivers;
    if (repairer->fan || asker >= receivers->count || receivers->count - receivers->vacant != 1) {
        return NULL;
    }
    const helio_receiver_entry *entry = &receivers->entries[asker];
    return entry->is_proven && entry->takes_unicast ? &entry->address : NULL;
}

/* Asks for a sequence, and notes how it is to be answered. */
static void answer_one(helio_repairer *repairer, uint64_t sequence, const request *who,
                       helio_repair_answer *answer) {
    const helio_txw *txw = repairer->txw;
    if (helio_txw_has(txw, sequence) && helio_txw_slot_of(txw, sequence)->repairs >= UNICASTS) {
        answer->only = NULL;
    }
    if (ask(repairer, sequence, who)) {
        answer->confirmed[answer->confirmed_count++] = (uint32_t)sequence;
    } else {
        answer->shed[answer->shed_count++] = (uint32_t)sequence;
    }
}

void helio_repairer_on_nak(helio_repairer *repairer, const helio_pgm_packet *nak, uint32_t asker,
                           uint64_t destinations, helio_moment moment,
                           helio_repair_answer *answer) {
    helio_tx_stream_stats *stats = repairer->stats;
    const uint64_t first = helio_sequence_widen(nak->sequence, repairer->txw->lead);
    const request who = {
        .asker = asker,
        .allowance = helio_receivers_allowance(&repairer->receivers, asker),
        .budget = budget_of(repairer, asker, moment.now_ns),
        .copies = copies_of(repairer, destinations),
        .destinations = destinations,
        .moment = moment,
    };
    helio_tx_receiver_stats *cells = helio_receivers_stats(&repairer->receivers, asker);
    const size_t count = 1 + nak->list_count;
    answer->naks = count;
    answer->confirmed_count = answer->shed_count = 0;
    answer->only = only_receiver(repairer, asker);

    helio_stats_begin(stats);
    helio_count(&stats->nak_packets_received, 1);
    helio_count(&stats->naks_received, count);
    helio_receivers_count_asked(&repairer->receivers, asker, count);
    helio_set(&stats->receivers, repairer->receivers.count - repairer->receivers.vacant);
    answer_one(repairer, first, &who, answer);
    for (size_t i = 0; i < nak->list_count; i++) {
        answer_one(repairer, helio_sequence_widen(nak->list[i], first), &who, answer);
    }
    helio_set(&stats->repair_queue, repairer->queue.count);
    helio_stats_end(stats);

    if (cells) {
        helio_stats_begin(cells);
        helio_count(&cells->nak_packets_received, 1);
        helio_set(&cells->last_feedback, (uint64_t)moment.wall_ns);
        helio_stats_end(cells);
    }
    if (count == 1 && answer->confirmed_count == 1 &&
        is_confirmed(repairer, first, destinations, moment.now_ns)) {
        answer->confirmed_count = 0;
    }
}

static void count_repair(helio_repairer *repairer, helio_txw_slot *slot) {
    helio_tx_stream_stats *stats = repairer->stats;
    helio_stats_begin(stats);
    helio_count(&stats->naks_answered_repaired, 1);
    helio_count(&stats->repair_packets, 1);
    helio_count(&stats->repair_bytes, slot->length);
    helio_set(&stats->repair_queue, repairer->queue.count);
    helio_stats_end(stats);
    helio_tx_receiver_stats *cells = helio_receivers_stats(&repairer->receivers, slot->asker);
    if (cells) {
        helio_receiver_view *view = helio_receivers_view(&repairer->receivers, slot->asker);
        view->repairs++;
        view->repair_bytes += slot->length;
        helio_count(&cells->repairs_caused, 1);
        helio_count(&cells->repair_bytes_caused, slot->length);
    }
}

bool helio_repairer_next(helio_repairer *repairer, helio_moment moment, uint64_t *sequence) {
    uint64_t entry;
    while (helio_queue_pop(&repairer->queue, &entry)) {
        *sequence = entry / 2;
        repairer->pressing -= entry % 2;
        if (!helio_txw_has(repairer->txw, *sequence)) { /* trimmed while it waited */
            helio_stats_begin(repairer->stats);
            helio_count(&repairer->stats->naks_answered_too_late, 1);
            helio_set(&repairer->stats->repair_queue, repairer->queue.count);
            helio_stats_end(repairer->stats);
            continue;
        }
        helio_txw_slot *slot = helio_txw_slot_of(repairer->txw, *sequence);
        helio_repair_fan *fan = fan_of(repairer, *sequence);
        if (fan) {
            fan->served = slot->repairs > 0 &&
                                  is_recent(slot->repaired_ns, moment.now_ns, repairer->linger_ns)
                              ? fan->served | fan->waiting
                              : fan->waiting;
        }
        slot->queued = false;
        slot->repairs++;
        slot->repaired_ns = moment.now_ns;
        helio_advice_on_repair(&repairer->advice);
        count_repair(repairer, slot);
        return true;
    }
    return false;
}

const helio_address *helio_repairer_only_receiver(const helio_repairer *repairer,
                                                  uint64_t sequence) {
    const helio_txw_slot *slot = helio_txw_slot_of(repairer->txw, sequence);
    return slot->repairs <= UNICASTS ? only_receiver(repairer, slot->asker) : NULL;
}
