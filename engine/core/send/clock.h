/* The questions of receivers for a source's time, until an SPM answers them (docs/wire.md 1.5).
 *
 * An SPM answers HELIO_PGM_CLOCK_ANSWERS_MAX of them, oldest first, and says when each came and
 * when it leaves itself, so they may lie for as long as it takes.  No packet is sent for a few of
 * them; when an SPM's worth waits one is sent, at most every HELIO_TX_CLOCK_GAP_NS, however many
 * ask; and of SPMs that are sent anyway one every HELIO_TX_CLOCK_REST_NS has answers.  Who knows
 * nothing of the clocks yet comes before those who have had answers, and takes their room when
 * there is no other.  A question that finds no room goes unanswered, and its receiver asks again,
 * after a longer time.
 *
 * It knows nothing of packets on their way, sockets, threads or clocks. */
#ifndef HELIO_SEND_CLOCK_H
#define HELIO_SEND_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/moment.h"
#include "wire/pgm.h"

enum { HELIO_TX_CLOCK_WAITING = 64 };

#define HELIO_TX_CLOCK_GAP_NS (100 * HELIO_MILLISECOND)
#define HELIO_TX_CLOCK_REST_NS (10 * HELIO_MILLISECOND)

typedef struct helio_tx_clock {
    /* Those who know nothing, oldest first, then the others, oldest first. */
    helio_pgm_clock_answer waiting[HELIO_TX_CLOCK_WAITING];
    uint32_t count;
    uint32_t newcomers; /* of these, who know nothing */
    int64_t seen_ns;    /* the latest moment known, monotonic */
    int64_t wall_ns;    /* wall clock - monotonic clock then */
    int64_t told_wall_ns;
    int64_t said_ns; /* the last SPM with the time */
    bool has_said;
} helio_tx_clock;

/* The time.  Questions that are told of from here on came no later. */
static inline void helio_tx_clock_see(helio_tx_clock *clocks, helio_moment moment) {
    if (moment.now_ns > clocks->seen_ns) {
        clocks->seen_ns = moment.now_ns;
    }
    clocks->wall_ns = moment.wall_ns - moment.now_ns;
}
/* A receiver asked, which has had answers before or not (is_new); the question came at `clock`, or
 * after that, but not after the latest moment seen. */
void helio_tx_clock_on_question(helio_tx_clock *clocks, uint64_t receiver, uint32_t token,
                                bool is_new, helio_moment moment);
/* What the next SPM says; false: nothing, as nobody asked and nothing is new. */
bool helio_tx_clock_take(helio_tx_clock *clocks, helio_pgm_time *out, int64_t now_ns);

/* When an SPM is to be sent for the answers' sake: when it can answer a question. */
static inline int64_t helio_tx_clock_due_ns(const helio_tx_clock *clocks) {
    if (clocks->count < HELIO_PGM_CLOCK_ANSWERS_MAX) {
        return HELIO_NEVER;
    }
    const int64_t came_ns = (int64_t)clocks->waiting[0].came_ns;
    const int64_t free_ns = clocks->has_said ? clocks->said_ns + HELIO_TX_CLOCK_GAP_NS : came_ns;
    return free_ns > came_ns ? free_ns : came_ns;
}

#endif
