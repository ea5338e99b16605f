#include "policy/slow_receiver_parts.h"

enum { FRESH_WINDOWS = 10 }; /* that a symptom counts as the group's */

#define MANY 0.25 /* share of the receivers in trouble that is no accident of theirs */

void helio_slow_receivers_compare(helio_slow_receivers *engine, const helio_interval *interval,
                                  const helio_receiver_view *views, uint32_t entries) {
    engine->group = (helio_group){0};
    for (helio_symptom symptom = HELIO_SYMPTOM_LOSS; symptom <= HELIO_SYMPTOM_SILENCE; symptom++) {
        uint32_t count = 0;
        for (helio_receiver_index index = 0; index < entries; index++) {
            const helio_slow_receiver *receiver = &engine->receivers[index];
            const helio_symptoms *symptoms = &receiver->watch.symptoms;
            const int64_t age_ns = interval->now_ns - symptoms->until_ns;
            if (receiver->watch.is_begun && symptoms->until_ns != 0 &&
                age_ns <= FRESH_WINDOWS * symptoms->length_ns &&
                !(views[index].flags & HELIO_VIEW_LEFT) &&
                !helio_slow_receiver_is_isolated(receiver, &views[index])) {
                engine->values[count++] = symptoms->value[symptom];
            }
        }
        helio_group_set(&engine->group, symptom, engine->values, count);
        engine->group.members = count;
    }
}

static bool are_many(const helio_slow_receivers *engine, uint32_t count) {
    return count >= 2 && count > MANY * engine->known;
}

static bool is_recent(const helio_slow_receiver *receiver, int64_t now_ns, int64_t together_ns) {
    return receiver->apart_ns != 0 && receiver->isolation == HELIO_ISOLATION_NONE &&
           now_ns - receiver->apart_ns <= together_ns;
}

void helio_slow_receivers_find_shared(helio_slow_receivers *engine, const helio_interval *interval,
                                      uint32_t entries) {
    const int64_t now_ns = interval->now_ns, together_ns = 2 * engine->config.dwell_ns;
    uint32_t recent = 0;
    engine->troubled = 0;
    for (helio_receiver_index index = 0; index < entries; index++) {
        recent += is_recent(&engine->receivers[index], now_ns, together_ns);
        engine->troubled += engine->receivers[index].since_ns != 0 &&
                            engine->receivers[index].isolation == HELIO_ISOLATION_NONE;
    }
    for (helio_receiver_index index = 0; are_many(engine, recent) && index < entries; index++) {
        helio_slow_receiver *receiver = &engine->receivers[index];
        receiver->is_shared |= is_recent(receiver, now_ns, together_ns);
    }
    if (engine->troubled > MANY / 2 * engine->known) {
        engine->calm_ns = now_ns;
    }
    if (are_many(engine, engine->troubled) && !engine->is_troubled) {
        engine->is_troubled = true;
        helio_slow_decision *decision =
            helio_slow_receivers_add(engine, HELIO_RECEIVER_NONE, HELIO_ACTION_NETWORK);
        decision->value = (double)engine->troubled / engine->known;
        decision->threshold = MANY;
        decision->why = "many came into trouble together: the network rather than they";
    } else if (now_ns - engine->calm_ns > HELIO_SLOW_DWELL_WINDOWS * engine->config.dwell_ns) {
        engine->is_troubled = false;
    }
}
