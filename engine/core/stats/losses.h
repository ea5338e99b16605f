/* The losses of an instance: what was given up for good, by stream and cause, kept after the stream
 * is gone (scope loss).
 *
 * An object is opened at the first loss of a stream for a cause and lives until the instance ends.
 * There are at most HELIO_LOSSES_MAX.  One more takes the place of the one whose last loss is
 * longest ago, which losses_replaced counts, at most once a second: streams that come, lose and go,
 * forged ones among them, must not use up the segment.  What comes in between is in the stream's
 * own counts alone, and losses_unrecorded says how often.
 *
 * The memory of all of them is taken at the first loss; without it nothing is kept. */
#ifndef HELIO_STATS_LOSSES_H
#define HELIO_STATS_LOSSES_H

#include <stdint.h>

#include "stats/stats.h"

enum { HELIO_LOSSES_MAX = 64 };

/* Neighbouring packets were given up; the texts are copied. */
typedef struct helio_loss_note {
    const char *instance;
    const char *stream;
    const char *cause;
    const char *source;
    const char *endpoint;
    uint64_t first;   /* number of the first of them */
    uint64_t packets; /* at least 1 */
    uint64_t bytes;   /* by estimate */
} helio_loss_note;

void helio_losses_note(helio_stats *stats, const helio_loss_note *note, int64_t wall_ns);

/* At the end of the instance. */
void helio_losses_destroy(helio_stats *stats);

#endif
