/* Whether feedback under the id of a receiver comes from that receiver.  Acknowledgements and
 * reports are judged by one rule:
 *
 * A receiver is bound to the address, IP and port, of its first feedback.  Feedback from another
 * address is refused until the receiver has left or has been silent for `silence_ns`: then it may
 * have moved.  An earlier life (a smaller incarnation) is refused, unless the later one has been
 * silent for so long that it may be forged.  Incarnations are times of the receiver's clock, so from
 * one life to the next they grow by no more than the time between them.  A life further in the
 * future would exclude all later ones, so it is refused while the receiver is heard.
 *
 * This is no authentication.  The first sender under an id has it, and a sender that forges the
 * source address of a receiver can speak for it. */
#ifndef HELIO_RECEIVERS_IDENTITY_H
#define HELIO_RECEIVERS_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/moment.h"

#define HELIO_IDENTITY_TOLERANCE_NS (10 * HELIO_SECOND) /* a clock may be set by this much */
enum { HELIO_IDENTITY_FORGOTTEN = 3 };                  /* silences after which any life may come */

/* A receiver as it is known. */
typedef struct helio_identity {
    const helio_address *address;
    uint64_t incarnation;
    /* Time of the first feedback of this life. */
    int64_t began_ns;
    /* Time of the last feedback. */
    int64_t heard_ns;
    bool has_left;
} helio_identity;

typedef enum helio_identity_verdict {
    HELIO_IDENTITY_SAME,
    /* It is at another address now. */
    HELIO_IDENTITY_MOVED,
    /* Refused: it is known at another address, so this may be forged. */
    HELIO_IDENTITY_ELSEWHERE,
    /* Refused: no life of it can begin so late. */
    HELIO_IDENTITY_IMPOSSIBLE,
    /* Refused: an earlier life. */
    HELIO_IDENTITY_STALE,
} helio_identity_verdict;

/* The receiver is at another address than `from`, and cannot have moved. */
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
