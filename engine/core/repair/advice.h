/* The back-off interval that a source advises its receivers for NAKs: RFC 3208 15.2.1, adjusted by
 * the duplicate requests it receives.
 *
 * NAKs for one packet from several receivers cannot all be avoided, and a few of them cost less
 * than the delay that avoids them.  The interval therefore doubles, at most once per packet, in two
 * cases: one packet gets HELIO_ADVICE_BURST duplicate requests, or packets are requested three
 * times on average.  It halves when HELIO_ADVICE_PROBE repairs had few duplicates.  Nothing is
 * advised before the first doubling. */
#ifndef HELIO_REPAIR_ADVICE_H
#define HELIO_REPAIR_ADVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/moment.h"

enum {
    HELIO_ADVICE_PROBE = 16, /* repairs: NAK_PROBE_NUM */
    HELIO_ADVICE_BURST = 8,  /* duplicate requests for one packet that double the interval */
};
#define HELIO_ADVICE_MIN_NS (100 * HELIO_MICROSECOND)
#define HELIO_ADVICE_MAX_NS (50 * HELIO_MILLISECOND)

typedef struct helio_advice {
    int64_t interval_ns; /* 0: none is advised */
    uint32_t repairs;    /* in this probe */
    uint32_t duplicates; /* in this probe */
    uint64_t sequence;   /* packet of the last duplicate request */
    uint32_t burst;      /* duplicates for it */
} helio_advice;

static inline void helio_advice_double(helio_advice *advice) {
    const int64_t now_ns = advice->interval_ns ? advice->interval_ns : HELIO_ADVICE_MIN_NS;
    advice->interval_ns =
        2 * now_ns < HELIO_ADVICE_MAX_NS ? 2 * now_ns : (int64_t)HELIO_ADVICE_MAX_NS;
    advice->repairs = advice->duplicates = 0;
}

/* A request for a packet that was already requested. */
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
