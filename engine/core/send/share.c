#include "send/share.h"

#include <stddef.h>

#include "base/moment.h"

enum { PORTION_PACKETS = 2 };

/* A stream loses its turn when it has not asked for this time while others asked this often.  Time
 * alone does not count: the engine itself may have paused. */
#define PATIENCE_NS HELIO_MILLISECOND
#define PATIENCE_ASKS 256

void helio_tx_share_init(helio_tx_share *share, uint64_t rate, int64_t now_ns) {
    *share = (helio_tx_share){0};
    helio_tx_limit_init(&share->limit, rate, 0, 0, now_ns);
}

static void give_turn(helio_tx_share *share, helio_tx_place *place) {
    share->turn = place;
    share->asked_in_vain = 0;
    place->left += (int64_t)(PORTION_PACKETS * share->limit.packet);
}

static void join(helio_tx_share *share, helio_tx_place *place) {
    if (place->next) {
        return;
    }
    place->left = 0;
    if (!share->turn) {
        place->next = place->before = place;
        give_turn(share, place);
        return;
    }
    place->next = share->turn;
    place->before = share->turn->before;
    place->before->next = place->next->before = place;
}

void helio_tx_share_leave(helio_tx_share *share, helio_tx_place *place) {
    if (!place->next) {
        return;
    }
    if (share->turn == place) {
        share->turn = NULL;
        if (place->next != place) {
            give_turn(share, place->next);
        }
    }
    place->before->next = place->next;
    place->next->before = place->before;
    place->next = place->before = NULL;
}

bool helio_tx_share_takes(helio_tx_share *share, helio_tx_place *place, int64_t now_ns) {
    if (!helio_tx_limit_is_on(&share->limit)) {
        return true;
    }
    place->asked_ns = now_ns;
    if (!helio_tx_limit_takes(&share->limit, now_ns)) {
        join(share, place);
        return false;
    }
    if (share->turn == place) {
        share->asked_in_vain = 0;
        if (place->left <= 0) {
            give_turn(share, place->next);
        }
    }
    if (!share->turn || share->turn == place) {
        return true;
    }
    join(share, place);
    if (++share->asked_in_vain > PATIENCE_ASKS && now_ns - share->turn->asked_ns > PATIENCE_NS) {
        helio_tx_share_leave(share, share->turn);
    }
    return false;
}

void helio_tx_share_charge(helio_tx_share *share, helio_tx_place *place, uint64_t bytes) {
    helio_bucket_charge(&share->limit.bucket, bytes);
    place->left -= (int64_t)bytes;
}
