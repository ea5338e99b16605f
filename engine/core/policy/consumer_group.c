#include "policy/consumer_parts.h"

enum { FRESH_WINDOWS = 10 }; /* that a symptom counts as the group's */

#define MANY 0.25 /* share of the receivers in trouble that is no accident of theirs */

void helio_consumers_compare(helio_consumers *engine, const helio_interval *interval,
                             const helio_receiver_view *views, uint32_t entries) {
    engine->group = (helio_group){0};
    for (helio_symptom symptom = HELIO_SYMPTOM_LOSS; symptom <= HELIO_SYMPTOM_SILENCE; symptom++) {
        uint32_t count = 0;
        for (helio_receiver_index index = 0; index < entries; index++) {
            const helio_consumer *consumer = &engine->consumers[index];
            const helio_symptoms *symptoms = &consumer->watch.symptoms;
            const int64_t age_ns = interval->now_ns - symptoms->until_ns;
            if (consumer->watch.is_begun && symptoms->until_ns != 0 &&
                age_ns <= FRESH_WINDOWS * symptoms->length_ns &&
                !(views[index].flags & HELIO_VIEW_LEFT) &&
                !helio_consumer_is_isolated(consumer, &views[index])) {
                engine->values[count++] = symptoms->value[symptom];
            }
        }
        helio_group_set(&engine->group, symptom, engine->values, count);
        engine->group.members = count;
    }
}

static bool are_many(const helio_consumers *engine, uint32_t count) {
    return count >= 2 && count > MANY * engine->known;
}

static bool is_recent(const helio_consumer *consumer, int64_t now_ns, int64_t together_ns) {
    return consumer->apart_ns != 0 && consumer->isolation == HELIO_ISOLATION_NONE &&
           now_ns - consumer->apart_ns <= together_ns;
}

void helio_consumers_find_shared(helio_consumers *engine, const helio_interval *interval,
                                 uint32_t entries) {
    const int64_t now_ns = interval->now_ns, together_ns = 2 * engine->config.dwell_ns;
    uint32_t recent = 0;
    engine->troubled = 0;
    for (helio_receiver_index index = 0; index < entries; index++) {
        recent += is_recent(&engine->consumers[index], now_ns, together_ns);
        engine->troubled += engine->consumers[index].since_ns != 0 &&
                            engine->consumers[index].isolation == HELIO_ISOLATION_NONE;
    }
    for (helio_receiver_index index = 0; are_many(engine, recent) && index < entries; index++) {
        helio_consumer *consumer = &engine->consumers[index];
        consumer->is_shared |= is_recent(consumer, now_ns, together_ns);
    }
    if (engine->troubled > MANY / 2 * engine->known) {
        engine->calm_ns = now_ns;
    }
    if (are_many(engine, engine->troubled) && !engine->is_troubled) {
        engine->is_troubled = true;
        helio_slow_decision *decision =
            helio_consumers_say(engine, HELIO_RECEIVER_NONE, HELIO_ACTION_NETWORK);
        decision->value = (double)engine->troubled / engine->known;
        decision->threshold = MANY;
        decision->why = "many came into trouble together: the network rather than they";
    } else if (now_ns - engine->calm_ns > HELIO_CONSUMER_DWELL_WINDOWS * engine->config.dwell_ns) {
        engine->is_troubled = false;
    }
}
