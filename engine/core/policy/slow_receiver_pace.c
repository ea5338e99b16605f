#include "policy/slow_receiver_parts.h"

enum { PACKET_PART = 8, FLOOR_PART = 16 };

#define SMOOTH_NS (250 * HELIO_MILLISECOND)
#define DRAIN 0.75 /* of what it takes: the rest of its speed empties its queue */
#define RAISE 1.1

void helio_slow_receivers_follow_rate(helio_slow_receivers *engine,
                                      const helio_interval *interval) {
    if (interval->length_ns <= 0) {
        return;
    }
    const double rate =
        (double)interval->bytes_sent * (double)HELIO_SECOND / (double)interval->length_ns;
    const double part = (double)interval->length_ns / (double)SMOOTH_NS;
    engine->sent_rate += (rate - engine->sent_rate) * (part < 1 ? part : 1);
    if (interval->packets_sent == 0) {
        return;
    }
    const double bytes = (double)interval->bytes_sent / (double)interval->packets_sent;
    engine->packet_bytes +=
        engine->packet_bytes > 0 ? (bytes - engine->packet_bytes) / PACKET_PART : bytes;
}

uint64_t helio_slow_receivers_pace_to(helio_slow_receivers *engine,
                                      const helio_slow_receiver *receiver) {
    if (engine->ceiling == 0) {
        engine->rate_before = (uint64_t)engine->sent_rate;
    }
    const uint64_t least =
        engine->config.rate_min ? engine->config.rate_min : engine->rate_before / FLOOR_PART + 1;
    const double takes = receiver->watch.symptoms.speed.receiver * engine->packet_bytes;
    uint64_t wanted = takes > 0 ? (uint64_t)(DRAIN * takes) : 0;
    if (wanted < least) {
        wanted = least;
    }
    if (engine->ceiling == 0 || wanted < engine->ceiling) {
        engine->ceiling = wanted;
    }
    return engine->ceiling;
}

void helio_slow_receivers_pace(helio_slow_receivers *engine, const helio_interval *interval,
                               uint32_t entries) {
    if (engine->ceiling == 0) {
        return;
    }
    bool any = false;
    for (helio_receiver_index index = 0; index < entries; index++) {
        const helio_slow_receiver *receiver = &engine->receivers[index];
        const helio_behaviour class = receiver->watch.class;
        if (receiver->rung != HELIO_ACTION_PACE || class == HELIO_BEHAVIOUR_STOPPED) {
            continue;
        }
        any = true;
        /* For a receiver that catches up the rate is low enough; its speed is the rate itself. */
        if (receiver->has_closed && receiver->above > 0 &&
            (class == HELIO_BEHAVIOUR_FALLING_BEHIND || class == HELIO_BEHAVIOUR_STALLED)) {
            helio_slow_receivers_pace_to(engine, receiver);
        }
    }
    if (any) {
        engine->raise_due_ns = interval->now_ns + engine->watch.window_ns;
    } else if (interval->now_ns >= engine->raise_due_ns) {
        engine->raise_due_ns = interval->now_ns + engine->watch.window_ns;
        engine->ceiling = (uint64_t)((double)engine->ceiling * RAISE) + 1;
        if (engine->ceiling >= engine->rate_before) {
            engine->ceiling = 0;
        }
    }
}
