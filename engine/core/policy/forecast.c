#include "policy/forecast.h"

#include <math.h>

enum {
    HALF = HELIO_TRACK_SIGHTINGS / 2,
    GROWTH_PART = 50, /* growth below this part of the source's speed is none */
};

static const helio_sighting *back(const helio_track *track, uint32_t steps) {
    return &track->sightings[(track->count - 1 - steps) % HELIO_TRACK_SIGHTINGS];
}

void helio_track_add(helio_track *track, const helio_sighting *sighting) {
    if (track->count && helio_track_last(track)->at_ns >= sighting->at_ns) {
        track->count--;
    }
    track->sightings[track->count++ % HELIO_TRACK_SIGHTINGS] = *sighting;
    if (track->count == 4 * HELIO_TRACK_SIGHTINGS) { /* only its remainder matters from here on */
        track->count -= HELIO_TRACK_SIGHTINGS;
    }
}

static double seconds(int64_t ns) {
    return (double)ns / (double)HELIO_SECOND;
}

static double apart(uint64_t a, uint64_t b) {
    return a >= b ? (double)(a - b) : -(double)(b - a);
}

/* Where it is behind the source. */
static double behind(const helio_sighting *sighting) {
    return apart(sighting->lead, sighting->position);
}

static double growth(const helio_sighting *older, const helio_sighting *newer) {
    return (behind(newer) - behind(older)) / seconds(newer->at_ns - older->at_ns);
}

helio_speed helio_track_speed(const helio_track *track) {
    helio_speed speed = {0};
    if (track->count < 2) {
        return speed;
    }
    const uint32_t steps = track->count <= HALF ? track->count - 1 : HALF;
    const helio_sighting *newer = back(track, 0), *older = back(track, steps);
    const double length = seconds(newer->at_ns - older->at_ns);
    speed.receiver = apart(newer->position, older->position) / length;
    speed.source = apart(newer->lead, older->lead) / length;
    speed.growth = speed.source - speed.receiver;
    if (track->count < HELIO_TRACK_SIGHTINGS) {
        return speed;
    }
    const helio_sighting *middle = back(track, HALF - 1), *oldest = back(track, 2 * HALF - 1);
    const double recent = growth(middle, newer), before = growth(oldest, back(track, HALF));
    /* From the middle of the older half to the middle of the newer one. */
    const double between = (seconds(newer->at_ns - oldest->at_ns) +
                            seconds(middle->at_ns - back(track, HALF)->at_ns)) /
                           2;
    speed.acceleration = (recent - before) / between;
    return speed;
}

bool helio_track_step(const helio_track *track, int64_t *length_ns, uint64_t *receiver,
                      uint64_t *source) {
    if (track->count < 2) {
        return false;
    }
    const helio_sighting *newer = back(track, 0), *older = back(track, 1);
    *length_ns = newer->at_ns - older->at_ns;
    *receiver = newer->position > older->position ? newer->position - older->position : 0;
    *source = newer->lead > older->lead ? newer->lead - older->lead : 0;
    return true;
}

int64_t helio_track_forecast(const helio_track *track, const helio_speed *speed,
                             uint64_t history_packets, int64_t now_ns) {
    if (track->count < 2) {
        return HELIO_NEVER;
    }
    const helio_sighting *last = helio_track_last(track);
    const double room = (double)history_packets - apart(last->lead + 1, last->needs);
    if (room <= 0 && last->needs <= last->lead) {
        return 0;
    }
    const uint32_t steps = track->count <= HALF ? track->count - 1 : HALF;
    /* The growth was that of the middle of the steps it was measured over. */
    const double since = seconds(last->at_ns - back(track, steps)->at_ns) / 2;
    const double acceleration = speed->acceleration > 0 ? speed->acceleration : 0;
    const double now = speed->growth + acceleration * since;
    if (speed->growth <= speed->source / GROWTH_PART) {
        return HELIO_NEVER;
    }
    const double time = acceleration * room > now * now * 1e-6
                            ? (sqrt(now * now + 2 * acceleration * room) - now) / acceleration
                            : room / now;
    const double ns = time * (double)HELIO_SECOND - (double)(now_ns - last->at_ns);
    if (ns <= 0) {
        return 0;
    }
    return ns < (double)(HELIO_NEVER / 2) ? (int64_t)ns : HELIO_NEVER;
}
