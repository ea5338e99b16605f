/* Whether feedback in the name of a receiver comes from that receiver.  Acknowledgements and
 * reports are judged here, by one rule:
 *
 * A receiver is bound to the address, IP and port, it was first heard at.  What comes from another
 * one is refused until the receiver has said goodbye or has been silent for `silence_ns`: then it
 * may have moved.  An earlier life (a smaller incarnation) is refused, unless the later one has
 * been silent for so long that it may be the one that never was.  Incarnations are times of the
 * receiver's clock, so between two lives they grow by no more than the time between them; a life
 * further in the future than that would shut out all that follow, and is refused while the one
 * before is heard.
 *
 * It is no authentication: who speaks first in a name has it, and who can forge the source address
 * of a packet can speak for the receiver there. */
#ifndef HELIO_RECEIVERS_IDENTITY_H
#define HELIO_RECEIVERS_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/moment.h"

#define HELIO_IDENTITY_TOLERANCE_NS (10 * HELIO_SECOND) /* a clock may be set by as much */
enum { HELIO_IDENTITY_FORGOTTEN = 3 };                  /* silences after which any life may come */

/* What is known of a receiver. */
typedef struct helio_identity {
    const helio_address *address;
    uint64_t incarnation;
    int64_t began_ns; /* when this life was first heard of */
    int64_t heard_ns; /* when it was last heard */
    bool has_left;
} helio_identity;

typedef enum helio_identity_verdict {
    HELIO_IDENTITY_SAME,
    HELIO_IDENTITY_MOVED,      /* it is at another address now */
    HELIO_IDENTITY_ELSEWHERE,  /* it is known at another address: maybe forged */
    HELIO_IDENTITY_IMPOSSIBLE, /* no life of it can begin so late */
    HELIO_IDENTITY_STALE,      /* an earlier life */
} helio_identity_verdict;

/* It is at another address than `from`, and cannot have moved. */
static inline bool helio_identity_is_elsewhere(const helio_identity *known,
                                               const helio_address *from, int64_t silence_ns,
                                               int64_t now_ns) {
    return !known->has_left && now_ns - known->heard_ns < silence_ns &&
           !helio_address_equal(known->address, from);
}

static inline helio_identity_verdict helio_identity_judge(const helio_identity *known,
                                                          const helio_address *from,
                                                          uint64_t incarnation, int64_t silence_ns,
                                                          int64_t now_ns) {
    const bool has_moved = !helio_address_equal(known->address, from);
    const int64_t silent_ns = now_ns - known->heard_ns;
    if (helio_identity_is_elsewhere(known, from, silence_ns, now_ns)) {
        return HELIO_IDENTITY_ELSEWHERE;
    }
    if (incarnation < known->incarnation &&
        (!has_moved || silent_ns < HELIO_IDENTITY_FORGOTTEN * silence_ns)) {
        return HELIO_IDENTITY_STALE;
    }
    if (!has_moved && incarnation > known->incarnation && silent_ns < silence_ns &&
        incarnation - known->incarnation >
            (uint64_t)(now_ns - known->began_ns + HELIO_IDENTITY_TOLERANCE_NS)) {
        return HELIO_IDENTITY_IMPOSSIBLE;
    }
    return has_moved ? HELIO_IDENTITY_MOVED : HELIO_IDENTITY_SAME;
}

#endif
