/* How far a receiver is behind, and when the packets it needs leave the history.
 *
 * A track keeps the last eight sightings of a receiver: the time, its position and the newest
 * packet of the source.  They give its speed, the speed of the source, the growth of the distance
 * between them, and the acceleration of that growth (a receiver slows down, a source speeds up).
 *
 * The first packet it needs is the one after the packets it has or has room for, or the oldest one
 * it requested.  The end of the history follows the newest packet at a distance, so the forecast
 * is the time until
 *
 *     distance behind = packets the history keeps,
 *
 * if the growth continues.  A receiver that keeps up or catches up has no forecast.
 *
 * A pure function of its inputs. */
#ifndef HELIO_POLICY_FORECAST_H
#define HELIO_POLICY_FORECAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/moment.h"

enum { HELIO_TRACK_SIGHTINGS = 8 }; /* a power of two */

typedef struct helio_sighting {
    int64_t at_ns;
    uint64_t position; /* newest packet passed on in order */
    uint64_t lead;     /* newest packet sent, at that time */
    uint64_t needs;    /* oldest packet that may still have to be repaired for it */
} helio_sighting;

typedef struct helio_track {
    helio_sighting sightings[HELIO_TRACK_SIGHTINGS];
    uint32_t count; /* of all that were ever added */
} helio_track;

/* Packets per second; all 0 until there are two sightings. */
typedef struct helio_speed {
    double receiver;
    double source;
    double growth;       /* of the distance between them; below 0: it catches up */
    double acceleration; /* of the growth, per second; 0 until the track is full */
} helio_speed;

static inline void helio_track_init(helio_track *track) {
    track->count = 0;
}

/* Sightings come in order of time; one at the time of the last replaces it. */
void helio_track_add(helio_track *track, const helio_sighting *sighting);

/* The last; NULL: none. */
static inline const helio_sighting *helio_track_last(const helio_track *track) {
    return track->count ? &track->sightings[(track->count - 1) % HELIO_TRACK_SIGHTINGS] : NULL;
}

/* Over the newer half of the track, so that one odd sighting is not a trend. */
helio_speed helio_track_speed(const helio_track *track);

/* Over the last step alone: packets the receiver and the source went.  False: there was none. */
bool helio_track_step(const helio_track *track, int64_t *length_ns, uint64_t *receiver,
                      uint64_t *source);

/* ns from `now_ns` until what it needs leaves a history of that many packets; 0: it has,
 * HELIO_NEVER: it will not at the current speeds. */
int64_t helio_track_forecast(const helio_track *track, const helio_speed *speed,
                             uint64_t history_packets, int64_t now_ns);

#endif
