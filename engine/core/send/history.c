#include "send/history.h"

#include "base/math.h"

#include <heliograph/errors.h>

enum {
    PART = 16, /* of its limits a dynamic history begins with */
    PACKETS_MIN = 16,
    MARGIN = 8, /* part of a full history that new data may push out while somebody joins */
};

#define QUIET_NS (5 * HELIO_SECOND)

static uint64_t budget_left(const helio_history_budget *budget) {
    if (!budget || budget->limit_bytes == 0) {
        return UINT64_MAX;
    }
    return budget->limit_bytes - helio_umin(budget->used_bytes, budget->limit_bytes);
}

static void set_limits(helio_tx_history *history, uint64_t packets, uint64_t bytes) {
    helio_txw *txw = history->txw;
    if (history->budget) {
        history->budget->used_bytes += bytes - txw->limit_bytes;
    }
    helio_txw_set_limits(txw, packets, bytes);
}

int helio_tx_history_init(helio_tx_history *history, helio_txw *txw, const helio_repairer *repairer,
                          helio_history_budget *budget, bool is_dynamic, int64_t now_ns) {
    const uint64_t least = PACKETS_MIN * txw->packet_bytes;
    *history = (helio_tx_history){
        .txw = txw,
        .repairer = repairer,
        .is_dynamic = is_dynamic,
        .max_packets = txw->limit_packets,
        .max_bytes = txw->limit_bytes,
        .quiet_since_ns = now_ns,
    };
    history->first_packets = helio_umax(history->max_packets / PART, PACKETS_MIN);
    history->first_bytes =
        helio_umin(helio_umax(history->max_bytes / PART, least), history->max_bytes);
    if (budget_left(budget) < (is_dynamic ? history->first_bytes : history->max_bytes)) {
        return HELIO_ERR_OPTION;
    }
    history->budget = budget;
    if (budget) {
        budget->used_bytes += history->max_bytes;
    }
    if (is_dynamic) {
        set_limits(history, history->first_packets, history->first_bytes);
    }
    return 0;
}

void helio_tx_history_fini(helio_tx_history *history) {
    if (history->budget) {
        history->budget->used_bytes -= history->txw->limit_bytes;
    }
    history->budget = NULL;
}

/* Since the last look somebody needed more than there is. */
static bool is_in_need(helio_tx_history *history) {
    const uint64_t late = history->repairer->late_requests;
    const bool was_asked = late != history->late_seen;
    history->late_seen = late;
    return was_asked || !helio_txw_has_room(history->txw);
}

/* What it keeps is bounded by its limits, not by how little was sent. */
static bool is_at_its_limits(const helio_txw *txw) {
    return helio_txw_count(txw) + PACKETS_MIN >= txw->limit_packets ||
           txw->taken_bytes + PACKETS_MIN * txw->packet_bytes >= txw->limit_bytes;
}

uint64_t helio_tx_history_offer(const helio_tx_history *history) {
    const helio_txw *txw = history->txw;
    const bool is_moving = txw->age_ns > 0 || is_at_its_limits(txw);
    return txw->trail + (is_moving ? helio_txw_count(txw) / MARGIN : 0);
}

static bool grow(helio_tx_history *history) {
    helio_txw *txw = history->txw;
    /* Chunks take somewhat more than the packets in them. */
    const uint64_t memory = helio_account_left(history->account);
    const uint64_t left = helio_umin(budget_left(history->budget), memory - memory / PART);
    const uint64_t packets = helio_umin(2 * txw->limit_packets, history->max_packets);
    uint64_t bytes = helio_umin(2 * txw->limit_bytes, history->max_bytes);
    if (bytes - txw->limit_bytes > left) {
        bytes = txw->limit_bytes + left;
    }
    if (packets == txw->limit_packets && bytes == txw->limit_bytes) {
        return false;
    }
    set_limits(history, packets, bytes);
    return true;
}

static bool shrink(helio_tx_history *history) {
    helio_txw *txw = history->txw;
    const uint64_t packets = helio_umax(txw->limit_packets / 2, history->first_packets);
    const uint64_t bytes = helio_umax(txw->limit_bytes / 2, history->first_bytes);
    if (packets == txw->limit_packets && bytes == txw->limit_bytes) {
        return false;
    }
    set_limits(history, packets, bytes);
    helio_txw_release(txw);
    return true;
}

bool helio_tx_history_tend(helio_tx_history *history, int64_t now_ns) {
    if (!history->is_dynamic) {
        return false;
    }
    if (is_in_need(history)) {
        history->quiet_since_ns = now_ns;
        return is_at_its_limits(history->txw) && grow(history);
    }
    if (now_ns - history->quiet_since_ns < QUIET_NS) {
        return false;
    }
    history->quiet_since_ns = now_ns;
    return shrink(history);
}
