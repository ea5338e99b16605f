/* When a receiver acknowledges a stream.
 *
 * It acknowledges progress once in `packets` packets or after a random time of at most
 * `interval_ns`, whichever comes first, so that receivers do not speak all at once; at once when
 * the source asked for it (ASK) and everything up to there can be acknowledged.  Nothing
 * acknowledges an acknowledgement: each SPM has it repeated within the interval.  SPMs follow data
 * soon, then ever more rarely, and at the ambient interval for ever.  So a lost acknowledgement is
 * replaced, and the source knows that the receiver lives.
 *
 * It knows nothing of packets, sockets, threads or clocks. */
#ifndef HELIO_RECEIVE_ACKS_H
#define HELIO_RECEIVE_ACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/moment.h"
#include "base/random.h"

typedef struct helio_rx_acks {
    uint32_t packets;
    int64_t interval_ns;
    helio_random random;
    bool is_on;
    uint64_t incarnation;
    uint64_t first;    /* acknowledged from here on */
    uint64_t position; /* can be acknowledged */
    uint64_t told;     /* position of the last acknowledgement sent */
    uint64_t sent;     /* acknowledgements sent since it began */
    uint64_t asked;    /* the source wants an acknowledgement of this packet at once */
    int64_t due_ns;    /* HELIO_NEVER: nothing to acknowledge */
} helio_rx_acks;

void helio_rx_acks_init(helio_rx_acks *acks, uint32_t packets, int64_t interval_ns, uint64_t seed);
/* Begins to acknowledge packets from `first` on.  A later incarnation has a greater number. */
void helio_rx_acks_begin(helio_rx_acks *acks, uint64_t first, uint64_t incarnation);
void helio_rx_acks_end(helio_rx_acks *acks);

/* Packets up to `position` can be acknowledged. */
void helio_rx_acks_advance(helio_rx_acks *acks, uint64_t position, int64_t now_ns);
/* The source asked, with this packet. */
void helio_rx_acks_ask(helio_rx_acks *acks, uint64_t sequence, int64_t now_ns);
/* An SPM came. */
void helio_rx_acks_repeat(helio_rx_acks *acks, int64_t now_ns);
/* An acknowledgement was sent. */
void helio_rx_acks_sent(helio_rx_acks *acks);

static inline int64_t helio_rx_acks_next_deadline_ns(const helio_rx_acks *acks) {
    return acks->is_on ? acks->due_ns : HELIO_NEVER;
}

#endif
