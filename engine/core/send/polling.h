/* Finding out how many receivers there are: POLL and POLR, RFC 3208 14.
 *
 * The source asks those receivers whose number matches a random one in some bits, and takes the
 * answers times 2^bits for the population.  The more answers there were, the fewer are asked next
 * time, so that answers stay a handful however many receivers come.
 *
 * A receiver answers the newest question only, once, after a random time of at most what the
 * question allows, and not more often than every 10 ms, whatever the mask says.
 *
 * It knows nothing of packets, sockets, threads or clocks. */
#ifndef HELIO_SEND_POLLING_H
#define HELIO_SEND_POLLING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "wire/pgm.h"

/* ---- the source's half ---- */

typedef struct helio_polling {
    int64_t interval_ns; /* 0: nobody is asked */
    int64_t due_ns;
    uint32_t sequence; /* of the newest question; 0: none yet */
    uint32_t bits;     /* of its mask */
    uint64_t answers;  /* to it */
    helio_random random;
} helio_polling;

void helio_polling_init(helio_polling *polling, int64_t interval_ns, uint64_t seed, int64_t now_ns);
/* True when it is time to ask: *question is new, with polling->sequence; *population is what the
 * answers to the one before say. */
bool helio_polling_ask(helio_polling *polling, int64_t now_ns, helio_pgm_poll *question,
                       uint64_t *population);
/* An answer came.  False: to no question that is open. */
bool helio_polling_on_answer(helio_polling *polling, uint32_t sequence, uint16_t round);

/* ---- the receiver's half ---- */

typedef struct helio_polled {
    uint32_t node; /* this receiver's number: random */
    bool has_heard;
    uint32_t sequence; /* of the newest question heard */
    uint16_t round;
    int64_t due_ns;  /* HELIO_NEVER: nothing to answer */
    int64_t free_ns; /* no answer before */
} helio_polled;

void helio_polled_init(helio_polled *polled, uint32_t node);
/* A question came; the answer to an older one, if it still waits, is dropped. */
void helio_polled_on_poll(helio_polled *polled, uint32_t sequence, const helio_pgm_poll *poll,
                          helio_random *random, int64_t now_ns);
/* True when the newest question is to be answered now. */
bool helio_polled_answer(helio_polled *polled, int64_t now_ns);

#endif
