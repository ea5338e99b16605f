#include "policy/consumer.h"

#include <stdlib.h>

#include <heliograph/errors.h>

#include "policy/consumer_parts.h"

enum {
    LEAVE_WINDOWS = 10,
    SHARED_DWELLS = 8,   /* for who came into trouble with many */
    PATIENT_DWELLS = 4,  /* that pacing is given to help */
    NEAR_WINDOWS = 2,    /* with a loss in sight, to be told of */
    DECISIONS_PLACE = 3, /* most decisions about one receiver in an interval */
};

#define HOUR_NS (3600 * HELIO_SECOND)
#define FORECAST_MARGIN 2   /* a trend is not a promise */
#define FORECAST_BEHIND 0.1 /* of the history: closer than that, it is not told */

int helio_consumers_init(helio_consumers *engine, const helio_consumers_config *config) {
    const uint32_t entries = config->capacity ? config->capacity : 1;
    *engine = (helio_consumers){
        .config = *config,
        .watch = {.window_ns = config->dwell_ns / HELIO_CONSUMER_DWELL_WINDOWS,
                  .lag = config->lag,
                  .buffer = config->buffer},
        .consumers = calloc(entries, sizeof *engine->consumers),
        .values = calloc(entries, sizeof *engine->values),
        .decisions = calloc((size_t)entries * DECISIONS_PLACE + 1, sizeof *engine->decisions),
    };
    if (engine->consumers && engine->values && engine->decisions) {
        return 0;
    }
    helio_consumers_fini(engine);
    return HELIO_ERR_NOMEM;
}

void helio_consumers_fini(helio_consumers *engine) {
    free(engine->consumers);
    free(engine->values);
    free(engine->decisions);
    *engine = (helio_consumers){0};
}

helio_slow_decision *helio_consumers_say(helio_consumers *engine, helio_receiver_index index,
                                         helio_action action) {
    helio_slow_decision *decision = &engine->decisions[engine->decisions_count++];
    *decision = (helio_slow_decision){.index = index, .action = action, .why = ""};
    return decision;
}

/* ---- what one window says ---- */

static double threshold_of(const helio_consumers *engine, helio_symptom symptom) {
    const helio_consumers_config *config = &engine->config;
    const double thresholds[HELIO_SYMPTOMS] = {0,           config->loss,   config->naks,
                                               config->lag, config->buffer, 0};
    return thresholds[symptom];
}

/* What is compared with the threshold; leaving trouble no benefit of doubt is given. */
static double value_of(const helio_symptoms *symptoms, helio_symptom symptom) {
    return symptom == HELIO_SYMPTOM_LOSS ? symptoms->loss_least : symptoms->value[symptom];
}

static bool is_above(const helio_consumers *engine, const helio_consumer *consumer,
                     helio_symptom symptom) {
    const helio_behaviour class = consumer->watch.class;
    if (symptom == HELIO_SYMPTOM_SILENCE) {
        return class == HELIO_BEHAVIOUR_STOPPED;
    }
    if (class == HELIO_BEHAVIOUR_RECOVERING || class == HELIO_BEHAVIOUR_STOPPED) {
        return false;
    }
    const double threshold = threshold_of(engine, symptom);
    return threshold > 0 && value_of(&consumer->watch.symptoms, symptom) >= threshold;
}

static bool are_all_low(const helio_consumers *engine, const helio_consumer *consumer) {
    for (helio_symptom symptom = HELIO_SYMPTOM_LOSS; symptom <= HELIO_SYMPTOM_BUFFER; symptom++) {
        const double threshold = threshold_of(engine, symptom);
        if (threshold > 0 && consumer->watch.symptoms.value[symptom] > threshold / 2) {
            return false;
        }
    }
    return true;
}

static bool is_below(const helio_consumers *engine, const helio_consumer *consumer) {
    const helio_behaviour class = consumer->watch.class;
    return (class == HELIO_BEHAVIOUR_OK || class == HELIO_BEHAVIOUR_RECOVERING) &&
           are_all_low(engine, consumer);
}

/* Good enough for a suspension to end.  Who asks for nothing stands still at each packet it misses
 * until it gives that up, so how it behaves says little; but it has emptied its buffers. */
static bool is_well(const helio_consumers *engine, const helio_consumer *consumer) {
    return consumer->watch.symptoms.has_position &&
           consumer->watch.class != HELIO_BEHAVIOUR_STOPPED && are_all_low(engine, consumer);
}

static bool is_apart(const helio_consumers *engine, const helio_consumer *consumer,
                     helio_symptom symptom) {
    return helio_group_is_apart(&engine->group, symptom,
                                value_of(&consumer->watch.symptoms, symptom));
}

/* The most telling symptom: who is behind before who is noisy, and what sets it apart first. */
static helio_symptom worst_of(const helio_consumers *engine, const helio_consumer *consumer,
                              bool *apart) {
    static const helio_symptom order[] = {HELIO_SYMPTOM_SILENCE, HELIO_SYMPTOM_LAG,
                                          HELIO_SYMPTOM_BUFFER, HELIO_SYMPTOM_NAKS,
                                          HELIO_SYMPTOM_LOSS};
    helio_symptom worst = HELIO_SYMPTOM_NONE;
    *apart = false;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        if (!is_above(engine, consumer, order[i])) {
            continue;
        }
        if (is_apart(engine, consumer, order[i])) {
            *apart = true;
            return order[i];
        }
        if (worst == HELIO_SYMPTOM_NONE) {
            worst = order[i];
        }
    }
    return worst;
}

static void judge(helio_consumers *engine, helio_consumer *consumer, int64_t now_ns) {
    bool apart;
    const helio_symptom worst = worst_of(engine, consumer, &apart);
    if (worst != HELIO_SYMPTOM_NONE) {
        consumer->worst = worst;
        if (consumer->since_ns == 0) {
            consumer->since_ns = now_ns - consumer->watch.symptoms.length_ns;
        }
        consumer->above++;
    } else {
        consumer->above = 0;
        consumer->since_ns = 0;
    }
    if (apart) {
        if (consumer->apart_ns == 0) {
            consumer->apart_ns = now_ns - consumer->watch.symptoms.length_ns;
        }
        consumer->apart++;
    } else {
        consumer->apart = 0;
        consumer->apart_ns = 0;
        consumer->is_shared = false;
    }
    consumer->below = is_below(engine, consumer) ? consumer->below + 1 : 0;
    consumer->well = is_well(engine, consumer) ? consumer->well + 1 : 0;
}

/* ---- the ladder ---- */

static helio_slow_decision *say_about(helio_consumers *engine, const helio_consumer *consumer,
                                      helio_receiver_index index, helio_action action,
                                      int64_t now_ns) {
    helio_slow_decision *decision = helio_consumers_say(engine, index, action);
    decision->receiver = consumer->watch.receiver;
    decision->symptom = consumer->worst;
    decision->value = consumer->watch.symptoms.value[consumer->worst];
    decision->threshold = threshold_of(engine, consumer->worst);
    decision->lasted_ns = consumer->since_ns ? now_ns - consumer->since_ns : 0;
    decision->why = helio_behaviour_name(consumer->watch.class);
    return decision;
}

static void come_free(helio_consumer *consumer) {
    consumer->rung = HELIO_ACTION_NONE;
    consumer->isolation = HELIO_ISOLATION_NONE;
    consumer->above = consumer->apart = consumer->below = consumer->well = 0;
    consumer->since_ns = consumer->apart_ns = 0;
    consumer->is_shared = consumer->was_spared = false;
}

static uint32_t suspensions_lately(const helio_consumer *consumer, int64_t now_ns) {
    uint32_t lately = 0;
    for (uint32_t i = 0; i < consumer->suspensions && i < HELIO_SLOW_SUSPENSIONS_MAX; i++) {
        lately += now_ns - consumer->suspended_ns[i] < HOUR_NS;
    }
    return lately;
}

/* Whether a rung means anything for this receiver. */
static bool applies(const helio_consumers *engine, const helio_consumer *consumer,
                    helio_action rung) {
    const helio_symptoms *symptoms = &consumer->watch.symptoms;
    if (consumer->watch.class == HELIO_BEHAVIOUR_STOPPED) {
        return rung == HELIO_ACTION_NOTIFY;
    }
    switch (rung) {
    case HELIO_ACTION_PACE:
        return engine->config.waits && symptoms->has_position;
    case HELIO_ACTION_SHED:
    case HELIO_ACTION_SUSPEND_NAKS:
        return symptoms->asked;
    default:
        return true;
    }
}

/* Why a receiver is not to be isolated; NULL: it is. */
static const char *why_spared(const helio_consumers *engine, const helio_consumer *consumer,
                              helio_action rung) {
    if (rung < HELIO_ACTION_SHED) {
        return NULL;
    }
    if (engine->known < 2) {
        return "there is no other to protect";
    }
    if (consumer->worst == HELIO_SYMPTOM_LOSS && engine->group.members < HELIO_GROUP_LEAST) {
        return "too few others to tell its loss from the network's";
    }
    const uint32_t part = (uint32_t)(engine->config.share * engine->known);
    if (rung >= HELIO_ACTION_SUSPEND_NAKS && consumer->rung < HELIO_ACTION_SUSPEND_NAKS &&
        engine->isolated >= (part ? part : 1)) {
        return "as many as may be are isolated already";
    }
    return NULL;
}

static void isolate(helio_consumers *engine, helio_consumer *consumer, helio_action rung,
                    int64_t now_ns) {
    const bool expels = rung == HELIO_ACTION_EXPEL;
    if (rung != HELIO_ACTION_SUSPEND && !expels) {
        return;
    }
    const helio_consumers_config *config = &engine->config;
    consumer->isolation = expels ? HELIO_ISOLATION_EXPELLED : HELIO_ISOLATION_SUSPENDED;
    consumer->isolated_until_ns = now_ns + (expels ? config->expel_ns : config->suspend_ns);
    consumer->was_told = false;
    if (!expels) {
        consumer->suspended_ns[consumer->suspensions++ % HELIO_SLOW_SUSPENSIONS_MAX] = now_ns;
    }
}

static void take(helio_consumers *engine, helio_consumer *consumer, const helio_receiver_view *view,
                 helio_receiver_index index, helio_action rung, int64_t now_ns) {
    const char *spared = why_spared(engine, consumer, rung);
    if (!spared && rung == HELIO_ACTION_SUSPEND && engine->config.highest == HELIO_ACTION_EXPEL &&
        suspensions_lately(consumer, now_ns) >= engine->config.expel_after) {
        if (view->flags & HELIO_VIEW_PINNED) {
            rung = HELIO_ACTION_EXPEL;
        } else if (!consumer->was_spared) {
            say_about(engine, consumer, index, HELIO_ACTION_SPARE, now_ns)->why =
                "it is to be expelled by hand: others could speak in its name";
        }
        consumer->was_spared = true;
    }
    if (spared) {
        if (!consumer->was_spared) {
            say_about(engine, consumer, index, HELIO_ACTION_SPARE, now_ns)->why = spared;
        }
        consumer->was_spared = true;
        return;
    }
    if (rung >= HELIO_ACTION_SUSPEND_NAKS && !helio_consumer_is_isolated(consumer, view)) {
        engine->isolated++;
    }
    consumer->rung = rung;
    consumer->acted_ns = now_ns;
    consumer->above = consumer->apart = consumer->below = consumer->well = 0;
    isolate(engine, consumer, rung, now_ns);
    helio_slow_decision *decision = say_about(engine, consumer, index, rung, now_ns);
    if (rung >= HELIO_ACTION_SHED) {
        decision->duration_ns =
            rung == HELIO_ACTION_EXPEL ? engine->config.expel_ns : engine->config.suspend_ns;
    }
    if (rung == HELIO_ACTION_PACE) {
        decision->rate = helio_consumers_pace_to(engine, consumer);
    }
}

static uint32_t windows_needed(const helio_consumer *consumer) {
    const uint32_t dwells = consumer->rung == HELIO_ACTION_PACE ? PATIENT_DWELLS : 1;
    return HELIO_CONSUMER_DWELL_WINDOWS * (consumer->is_shared ? SHARED_DWELLS : dwells);
}

static void climb(helio_consumers *engine, helio_consumer *consumer,
                  const helio_receiver_view *view, helio_receiver_index index, int64_t now_ns) {
    /* Expulsion is what a further suspension becomes. */
    const helio_action top = engine->config.highest == HELIO_ACTION_EXPEL ? HELIO_ACTION_SUSPEND
                                                                          : engine->config.highest;
    for (helio_action rung = consumer->rung + 1; rung <= top; rung++) {
        if (!applies(engine, consumer, rung)) {
            continue;
        }
        const bool is_due = rung == HELIO_ACTION_PACE
                                ? consumer->above >= HELIO_CONSUMER_DWELL_WINDOWS
                                : consumer->apart >= windows_needed(consumer);
        if (is_due) {
            take(engine, consumer, view, index, rung, now_ns);
            return;
        }
        if (rung != HELIO_ACTION_NOTIFY) { /* all can be paced for, also when none is to blame */
            return;
        }
    }
    /* What stands at it at the top is said again before it is over. */
    const bool stands =
        consumer->rung == HELIO_ACTION_SHED || consumer->rung == HELIO_ACTION_SUSPEND_NAKS;
    if (stands && consumer->rung == top && applies(engine, consumer, top) &&
        consumer->apart >= HELIO_CONSUMER_DWELL_WINDOWS &&
        now_ns - consumer->acted_ns >= engine->config.suspend_ns) {
        take(engine, consumer, view, index, consumer->rung, now_ns);
    }
}

/* ---- a loss in sight ---- */

static void foresee(helio_consumers *engine, helio_consumer *consumer, helio_receiver_index index,
                    int64_t now_ns) {
    const helio_symptoms *symptoms = &consumer->watch.symptoms;
    const double lead = FORECAST_MARGIN * (double)engine->config.lead_ns;
    const int64_t notice_ns = (int64_t)lead + NEAR_WINDOWS * symptoms->length_ns;
    const bool is_near =
        symptoms->forecast_ns <= notice_ns && symptoms->value[HELIO_SYMPTOM_LAG] >= FORECAST_BEHIND;
    consumer->near = is_near ? consumer->near + 1 : 0;
    if (consumer->near >= NEAR_WINDOWS && !consumer->was_told) {
        consumer->was_told = true;
        helio_slow_decision *decision =
            say_about(engine, consumer, index, HELIO_ACTION_FORECAST, now_ns);
        decision->symptom = HELIO_SYMPTOM_LAG;
        decision->value = symptoms->value[HELIO_SYMPTOM_LAG];
        decision->threshold = engine->config.lag;
        decision->duration_ns = symptoms->forecast_ns;
    } else if (symptoms->forecast_ns > 2 * notice_ns && consumer->below >= LEAVE_WINDOWS) {
        consumer->was_told = false;
    }
}

/* ---- one receiver, one interval ---- */

static void release(helio_consumers *engine, helio_consumer *consumer, helio_receiver_index index,
                    const char *why, int64_t now_ns) {
    const bool was_expelled = consumer->isolation == HELIO_ISOLATION_EXPELLED;
    const helio_action action = was_expelled ? HELIO_ACTION_READMIT : HELIO_ACTION_RESUME;
    helio_slow_decision *decision = say_about(engine, consumer, index, action, now_ns);
    decision->lasted_ns = now_ns - consumer->acted_ns;
    decision->why = why;
    come_free(consumer);
    if (was_expelled) {
        consumer->suspensions = 0;
        consumer->watch.is_begun = false;
    }
}

/* It is isolated: is that over? */
static void tend(helio_consumers *engine, helio_consumer *consumer, const helio_receiver_view *view,
                 helio_receiver_index index, int64_t now_ns) {
    const bool expelled = consumer->isolation == HELIO_ISOLATION_EXPELLED;
    const uint32_t flag = expelled ? HELIO_VIEW_EXPELLED : HELIO_VIEW_SUSPENDED;
    if (now_ns >= consumer->isolated_until_ns) {
        release(engine, consumer, index, "its time is over", now_ns);
    } else if (engine->config.enforces && !(view->flags & flag)) {
        come_free(consumer); /* somebody else let it go */
    } else if (!expelled && consumer->well >= HELIO_CONSUMER_DWELL_WINDOWS) {
        release(engine, consumer, index, "it is well again", now_ns);
    }
}

/* Who asks for nothing because it was told so is not well for that. */
static bool may_recover(const helio_consumers *engine, const helio_consumer *consumer,
                        int64_t now_ns) {
    const bool stands = consumer->rung >= HELIO_ACTION_SHED;
    const bool is_told = consumer->watch.symptoms.has_position;
    return consumer->below >= LEAVE_WINDOWS &&
           (!stands || (is_told && consumer->worst != HELIO_SYMPTOM_NAKS) ||
            now_ns - consumer->acted_ns >= engine->config.suspend_ns);
}

static bool is_by_hand(const helio_consumer *consumer, const helio_receiver_view *view) {
    return consumer->isolation == HELIO_ISOLATION_NONE &&
           ((view->flags & HELIO_VIEW_EXPELLED) ||
            ((view->flags & HELIO_VIEW_SUSPENDED) && consumer->rung < HELIO_ACTION_SUSPEND_NAKS));
}

static void decide_one(helio_consumers *engine, const helio_receiver_view *view,
                       helio_receiver_index index, int64_t now_ns) {
    helio_consumer *consumer = &engine->consumers[index];
    if (consumer->isolation != HELIO_ISOLATION_NONE) {
        tend(engine, consumer, view, index, now_ns);
        return;
    }
    if (!consumer->has_closed || is_by_hand(consumer, view)) {
        return;
    }
    foresee(engine, consumer, index, now_ns);
    if (consumer->rung != HELIO_ACTION_NONE && may_recover(engine, consumer, now_ns)) {
        helio_slow_decision *decision =
            say_about(engine, consumer, index, HELIO_ACTION_RECOVER, now_ns);
        decision->lasted_ns = now_ns - consumer->acted_ns;
        come_free(consumer);
    } else {
        climb(engine, consumer, view, index, now_ns);
    }
}

static bool is_present(const helio_receiver_view *view) {
    return (view->flags & HELIO_VIEW_PRESENT) && !(view->flags & HELIO_VIEW_LEFT);
}

/* Takes in what is new of all.  True when some window ended over a threshold. */
static bool take_in(helio_consumers *engine, const helio_watch_scene *scene,
                    const helio_receiver_view *views, uint32_t entries) {
    bool any = false;
    engine->known = engine->isolated = 0;
    engine->again = 0;
    for (helio_receiver_index index = 0; index < entries; index++) {
        helio_consumer *consumer = &engine->consumers[index];
        const helio_receiver_view *view = &views[index];
        consumer->has_closed = false;
        if (!(view->flags & HELIO_VIEW_PRESENT)) {
            if (consumer->watch.is_begun) {
                *consumer = (helio_consumer){0};
            }
            continue;
        }
        if (consumer->watch.is_begun && consumer->watch.receiver != view->receiver) {
            *consumer = (helio_consumer){0};
        } else if (consumer->watch.is_begun && consumer->watch.incarnation != view->incarnation) {
            come_free(consumer);
        }
        consumer->has_closed = helio_watch_feed(&consumer->watch, &engine->watch, scene, view);
        engine->again += consumer->watch.again;
        if (!is_present(view)) {
            come_free(consumer);
            continue;
        }
        const bool isolated = helio_consumer_is_isolated(consumer, view);
        engine->isolated += isolated;
        engine->known += isolated || consumer->watch.class != HELIO_BEHAVIOUR_STOPPED;
        for (helio_symptom symptom = HELIO_SYMPTOM_LOSS;
             consumer->has_closed && !any && symptom <= HELIO_SYMPTOM_SILENCE; symptom++) {
            any = is_above(engine, consumer, symptom);
        }
    }
    return any;
}

/* How many packets the history keeps: fewer than its number when bytes or time limit it, or
 * acknowledgements. */
static uint64_t history_of(helio_consumers *engine, const helio_interval *interval) {
    if (interval->trail != engine->trail_before) {
        engine->trail_moved_ns = interval->now_ns;
    }
    const bool moves =
        engine->trail_moved_ns != 0 && interval->now_ns - engine->trail_moved_ns < HELIO_SECOND;
    const uint64_t kept =
        interval->lead >= interval->trail ? interval->lead - interval->trail + 1 : 0;
    return moves && kept > 0 ? kept : interval->history_packets;
}

void helio_consumers_decide(helio_consumers *engine, const helio_interval *interval,
                            const helio_receiver_view *views) {
    const uint32_t capacity = engine->config.capacity;
    const uint32_t entries = interval->receivers < capacity ? interval->receivers : capacity;
    const int64_t now_ns = interval->now_ns;
    engine->decisions_count = 0;
    if (!engine->has_begun) {
        engine->has_begun = true;
        engine->before_ns = now_ns - interval->length_ns;
        engine->lead_before = interval->lead;
        engine->trail_before = interval->trail;
    }
    const helio_watch_scene scene = {
        .interval = interval,
        .lead_before = engine->lead_before,
        .before_ns = engine->before_ns,
        .history_packets = history_of(engine, interval),
    };
    helio_consumers_follow_rate(engine, interval);
    if (take_in(engine, &scene, views, entries)) {
        helio_consumers_compare(engine, interval, views, entries);
    }
    for (helio_receiver_index index = 0; index < entries; index++) {
        if (engine->consumers[index].has_closed) {
            judge(engine, &engine->consumers[index], now_ns);
        }
    }
    helio_consumers_find_shared(engine, interval, entries);
    for (helio_receiver_index index = 0; index < entries; index++) {
        if (is_present(&views[index])) {
            decide_one(engine, &views[index], index, now_ns);
        }
    }
    helio_consumers_pace(engine, interval, entries);
    engine->before_ns = now_ns;
    engine->lead_before = interval->lead;
    engine->trail_before = interval->trail;
}
