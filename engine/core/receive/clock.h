/* The offset of this host's wall clock from a source's, its error bound, and how it is known
 * (docs/wire.md 1.5).
 *
 * On one host there is one clock: the offset is 0, and no question is sent.  Otherwise a report
 * carries a question now and then, an SPM of the source answers it, and the stamps of both bound
 * the difference of the two monotonic clocks (clock_bounds.h).  The difference between wall clock
 * and monotonic clock is added on either side.  Only a step of a wall clock changes it: the
 * estimate then follows at once, and reports it (event clock_offset_changed).
 *
 * A question goes with a report that is sent anyway: with the first few, then twice a second, less
 * often while no answers come.  An answer counts once, and only for a question that was sent. */
#ifndef HELIO_RECEIVE_CLOCK_H
#define HELIO_RECEIVE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/moment.h"
#include "receive/clock_bounds.h"
#include "wire/pgm.h"

struct helio_rx_stream;

enum { HELIO_RX_CLOCK_QUESTIONS = 4 }; /* the newest ones, still open */

/* A smaller change is not reported. */
#define HELIO_RX_CLOCK_STEP_NS (100 * HELIO_MICROSECOND)

typedef struct helio_rx_clock_question {
    uint32_t token; /* 0: it has been answered */
    int64_t sent_ns;
} helio_rx_clock_question;

typedef struct helio_clock_offset {
    uint8_t source;    /* HELIO_PGM_CLOCK_*; with UNKNOWN the rest is 0 */
    int64_t ns;        /* this host's wall clock - the source's */
    uint64_t bound_ns; /* the largest error */
} helio_clock_offset;

typedef struct helio_rx_clock {
    bool is_same_host;
    bool has_source_wall;
    int64_t source_wall_ns; /* its wall clock - its monotonic clock */
    int64_t own_wall_ns;    /* the same here */
    helio_clock_bounds bounds;
    helio_rx_clock_question questions[HELIO_RX_CLOCK_QUESTIONS];
    uint32_t asked;           /* questions sent */
    uint32_t token;           /* of the last question */
    uint32_t unanswered;      /* recently; an answer cancels several */
    int64_t ask_ns;           /* no question before */
    helio_clock_offset shown; /* as the statistics have it; the last that was known */
    int64_t shown_ns;
    int64_t shown_own_wall_ns;
    int64_t shown_source_wall_ns;
} helio_rx_clock;

/* `seed`: of the tokens, which must not be guessed. */
void helio_rx_clock_init(helio_rx_clock *clocks, bool is_same_host, uint64_t seed,
                         helio_moment moment);

/* Before a report is sent: whether it carries a question or the known offset. */
bool helio_rx_clock_ask(helio_rx_clock *clocks, helio_pgm_clock *out, int64_t now_ns);

/* A newer SPM came, at `came_ns`. */
void helio_rx_clock_on_spm(struct helio_rx_stream *stream, const helio_pgm_packet *spm,
                           helio_moment moment);

helio_clock_offset helio_rx_clock_read(const helio_rx_clock *clocks, int64_t now_ns);

#endif
