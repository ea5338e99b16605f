/* How long a source advises its receivers to hold NAKs back: RFC 3208 15.2.1, tuned by what comes.
 *
 * NAKs for one packet from several receivers cannot all be avoided, and few of them are cheaper
 * than the time it takes to avoid them.  So the interval doubles, at most once per packet, when one
 * packet is asked for by many, or when packets are asked for three times on average; it halves when
 * PROBE repairs met hardly a duplicate.  Until the first doubling nothing is advised. */
#ifndef HELIO_REPAIR_ADVICE_H
#define HELIO_REPAIR_ADVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/moment.h"

enum {
    HELIO_ADVICE_PROBE = 16, /* repairs: NAK_PROBE_NUM */
    HELIO_ADVICE_BURST = 8,  /* duplicates for one packet that are too many */
};
#define HELIO_ADVICE_MIN_NS (100 * HELIO_MICROSECOND)
#define HELIO_ADVICE_MAX_NS (50 * HELIO_MILLISECOND)

typedef struct helio_advice {
    int64_t interval_ns; /* 0: none is given */
    uint32_t repairs;    /* of this probe */
    uint32_t duplicates; /* of this probe */
    uint64_t sequence;   /* asked for last in duplicate */
    uint32_t burst;      /* duplicates for it */
} helio_advice;

static inline void helio_advice_double(helio_advice *advice) {
    const int64_t now_ns = advice->interval_ns ? advice->interval_ns : HELIO_ADVICE_MIN_NS;
    advice->interval_ns =
        2 * now_ns < HELIO_ADVICE_MAX_NS ? 2 * now_ns : (int64_t)HELIO_ADVICE_MAX_NS;
    advice->repairs = advice->duplicates = 0;
}

/* A packet was asked for that another request had been made for. */
static inline void helio_advice_on_duplicate(helio_advice *advice, uint64_t sequence) {
    if (sequence != advice->sequence) {
        advice->burst = 0;
    }
    advice->sequence = sequence;
    advice->duplicates++;
    if (++advice->burst == HELIO_ADVICE_BURST) {
        helio_advice_double(advice);
    }
}

static inline void helio_advice_on_repair(helio_advice *advice) {
    if (++advice->repairs < HELIO_ADVICE_PROBE) {
        return;
    }
    if (advice->duplicates > 2 * HELIO_ADVICE_PROBE) {
        helio_advice_double(advice);
        return;
    }
    if (advice->duplicates < HELIO_ADVICE_PROBE / 4 && advice->interval_ns > HELIO_ADVICE_MIN_NS) {
        advice->interval_ns /= 2;
    }
    advice->repairs = advice->duplicates = 0;
}

#endif
