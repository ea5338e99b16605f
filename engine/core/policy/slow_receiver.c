#include "policy/slow_receiver.h"

#include <stdlib.h>

#include <heliograph/errors.h>

#include "policy/slow_receiver_parts.h"

enum {
    LEAVE_WINDOWS = 10,
    SHARED_DWELLS = 8,   /* for a receiver in trouble together with many */
    PATIENT_DWELLS = 4,  /* that pacing is given to help */
    NEAR_WINDOWS = 2,    /* with a loss in sight, before it is reported */
    DECISIONS_PLACE = 3, /* most decisions about one receiver in an interval */
};

#define HOUR_NS (3600 * HELIO_SECOND)
#define FORECAST_MARGIN 2   /* a trend is not a promise */
#define FORECAST_BEHIND 0.1 /* of the history: a smaller lag is not reported */

int helio_slow_receivers_init(helio_slow_receivers *engine,
                              const helio_slow_receivers_config *config) {
    const uint32_t entries = config->capacity ? config->capacity : 1;
    *engine = (helio_slow_receivers){
        .config = *config,
        .watch = {.window_ns = config->dwell_ns / HELIO_SLOW_DWELL_WINDOWS,
                  .lag = config->lag,
                  .buffer = config->buffer},
        .receivers = calloc(entries, sizeof *engine->receivers),
        .values = calloc(entries, sizeof *engine->values),
        .decisions = calloc((size_t)entries * DECISIONS_PLACE + 1, sizeof *engine->decisions),
    };
    if (engine->receivers && engine->values && engine->decisions) {
        return 0;
    }
    helio_slow_receivers_fini(engine);
    return HELIO_ERR_NOMEM;
}

void helio_slow_receivers_fini(helio_slow_receivers *engine) {
    free(engine->receivers);
    free(engine->values);
    free(engine->decisions);
    *engine = (helio_slow_receivers){0};
}

helio_slow_decision *helio_slow_receivers_add(helio_slow_receivers *engine,
                                              helio_receiver_index index, helio_action action) {
    helio_slow_decision *decision = &engine->decisions[engine->decisions_count++];
    *decision = (helio_slow_decision){.index = index, .action = action, .why = ""};
    return decision;
}

/* ---- what one window says ---- */

static double threshold_of(const helio_slow_receivers *engine, helio_symptom symptom) {
    const helio_slow_receivers_config *config = &engine->config;
    const double thresholds[HELIO_SYMPTOMS] = {0,           config->loss,   config->naks,
                                               config->lag, config->buffer, 0};
    return thresholds[symptom];
}

/* What is compared with the threshold; leaving trouble no benefit of doubt is given. */
static double value_of(const helio_symptoms *symptoms, helio_symptom symptom) {
    return symptom == HELIO_SYMPTOM_LOSS ? symptoms->loss_least : symptoms->value[symptom];
}

static bool is_above(const helio_slow_receivers *engine, const helio_slow_receiver *receiver,
                     helio_symptom symptom) {
    const helio_behaviour class = receiver->watch.class;
    if (symptom == HELIO_SYMPTOM_SILENCE) {
        return class == HELIO_BEHAVIOUR_STOPPED;
    }
    if (class == HELIO_BEHAVIOUR_RECOVERING || class == HELIO_BEHAVIOUR_STOPPED) {
        return false;
    }
    const double threshold = threshold_of(engine, symptom);
    return threshold > 0 && value_of(&receiver->watch.symptoms, symptom) >= threshold;
}

static bool are_all_low(const helio_slow_receivers *engine, const helio_slow_receiver *receiver) {
    for (helio_symptom symptom = HELIO_SYMPTOM_LOSS; symptom <= HELIO_SYMPTOM_BUFFER; symptom++) {
        const double threshold = threshold_of(engine, symptom);
        if (threshold > 0 && receiver->watch.symptoms.value[symptom] > threshold / 2) {
            return false;
        }
    }
    return true;
}

static bool is_below(const helio_slow_receivers *engine, const helio_slow_receiver *receiver) {
    const helio_behaviour class = receiver->watch.class;
    return (class == HELIO_BEHAVIOUR_OK || class == HELIO_BEHAVIOUR_RECOVERING) &&
           are_all_low(engine, receiver);
}

/* Good enough for a suspension to end.  Who asks for nothing stands still at each packet it misses
 * until it gives that up, so how it behaves says little; but it has emptied its buffers. */
static bool is_well(const helio_slow_receivers *engine, const helio_slow_receiver *receiver) {
    return receiver->watch.symptoms.has_position &&
           receiver->watch.class != HELIO_BEHAVIOUR_STOPPED && are_all_low(engine, receiver);
}

static bool is_apart(const helio_slow_receivers *engine, const helio_slow_receiver *receiver,
                     helio_symptom symptom) {
    return helio_group_is_apart(&engine->group, symptom,
                                value_of(&receiver->watch.symptoms, symptom));
}

/* The most telling symptom: who is behind before who is noisy, and what sets it apart first. */
static helio_symptom worst_of(const helio_slow_receivers *engine,
                              const helio_slow_receiver *receiver, bool *apart) {
    static const helio_symptom order[] = {HELIO_SYMPTOM_SILENCE, HELIO_SYMPTOM_LAG,
                                          HELIO_SYMPTOM_BUFFER, HELIO_SYMPTOM_NAKS,
                                          HELIO_SYMPTOM_LOSS};
    helio_symptom worst = HELIO_SYMPTOM_NONE;
    *apart = false;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        if (!is_above(engine, receiver, order[i])) {
            continue;
        }
        if (is_apart(engine, receiver, order[i])) {
            *apart = true;
            return order[i];
        }
        if (worst == HELIO_SYMPTOM_NONE) {
            worst = order[i];
        }
    }
    return worst;
}

static void judge(helio_slow_receivers *engine, helio_slow_receiver *receiver, int64_t now_ns) {
    bool apart;
    const helio_symptom worst = worst_of(engine, receiver, &apart);
    if (worst != HELIO_SYMPTOM_NONE) {
        receiver->worst = worst;
        if (receiver->since_ns == 0) {
            receiver->since_ns = now_ns - receiver->watch.symptoms.length_ns;
        }
        receiver->above++;
    } else {
        receiver->above = 0;
        receiver->since_ns = 0;
    }
    if (apart) {
        if (receiver->apart_ns == 0) {
            receiver->apart_ns = now_ns - receiver->watch.symptoms.length_ns;
        }
        receiver->apart++;
    } else {
        receiver->apart = 0;
        receiver->apart_ns = 0;
        receiver->is_shared = false;
    }
    receiver->below = is_below(engine, receiver) ? receiver->below + 1 : 0;
    receiver->well = is_well(engine, receiver) ? receiver->well + 1 : 0;
}

/* ---- the ladder ---- */

static helio_slow_decision *say_about(helio_slow_receivers *engine,
                                      const helio_slow_receiver *receiver,
                                      helio_receiver_index index, helio_action action,
                                      int64_t now_ns) {
    helio_slow_decision *decision = helio_slow_receivers_add(engine, index, action);
    decision->receiver = receiver->watch.receiver;
    decision->symptom = receiver->worst;
    decision->value = receiver->watch.symptoms.value[receiver->worst];
    decision->threshold = threshold_of(engine, receiver->worst);
    decision->lasted_ns = receiver->since_ns ? now_ns - receiver->since_ns : 0;
    decision->why = helio_behaviour_name(receiver->watch.class);
    return decision;
}

static void come_free(helio_slow_receiver *receiver) {
    receiver->rung = HELIO_ACTION_NONE;
    receiver->isolation = HELIO_ISOLATION_NONE;
    receiver->above = receiver->apart = receiver->below = receiver->well = 0;
    receiver->since_ns = receiver->apart_ns = 0;
    receiver->is_shared = receiver->was_spared = false;
}

static uint32_t suspensions_lately(const helio_slow_receiver *receiver, int64_t now_ns) {
    uint32_t lately = 0;
    for (uint32_t i = 0; i < receiver->suspensions && i < HELIO_SLOW_SUSPENSIONS_MAX; i++) {
        lately += now_ns - receiver->suspended_ns[i] < HOUR_NS;
    }
    return lately;
}

/* Whether a rung means anything for this receiver. */
static bool applies(const helio_slow_receivers *engine, const helio_slow_receiver *receiver,
                    helio_action rung) {
    const helio_symptoms *symptoms = &receiver->watch.symptoms;
    if (receiver->watch.class == HELIO_BEHAVIOUR_STOPPED) {
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
static const char *why_spared(const helio_slow_receivers *engine,
                              const helio_slow_receiver *receiver, helio_action rung) {
    if (rung < HELIO_ACTION_SHED) {
        return NULL;
    }
    if (engine->known < 2) {
        return "there is no other to protect";
    }
    if (receiver->worst == HELIO_SYMPTOM_LOSS && engine->group.members < HELIO_GROUP_LEAST) {
        return "too few others to tell its loss from the network's";
    }
    const uint32_t part = (uint32_t)(engine->config.share * engine->known);
    if (rung >= HELIO_ACTION_SUSPEND_NAKS && receiver->rung < HELIO_ACTION_SUSPEND_NAKS &&
        engine->isolated >= (part ? part : 1)) {
        return "as many as may be are isolated already";
    }
    return NULL;
}

static void isolate(helio_slow_receivers *engine, helio_slow_receiver *receiver, helio_action rung,
                    int64_t now_ns) {
    const bool expels = rung == HELIO_ACTION_EXPEL;
    if (rung != HELIO_ACTION_SUSPEND && !expels) {
        return;
    }
    const helio_slow_receivers_config *config = &engine->config;
    receiver->isolation = expels ? HELIO_ISOLATION_EXPELLED : HELIO_ISOLATION_SUSPENDED;
    receiver->isolated_until_ns = now_ns + (expels ? config->expel_ns : config->suspend_ns);
    receiver->was_reported = false;
    if (!expels) {
        receiver->suspended_ns[receiver->suspensions++ % HELIO_SLOW_SUSPENSIONS_MAX] = now_ns;
    }
}

static void take(helio_slow_receivers *engine, helio_slow_receiver *receiver,
                 const helio_receiver_view *view, helio_receiver_index index, helio_action rung,
                 int64_t now_ns) {
    const char *spared = why_spared(engine, receiver, rung);
    if (!spared && rung == HELIO_ACTION_SUSPEND && engine->config.highest == HELIO_ACTION_EXPEL &&
        suspensions_lately(receiver, now_ns) >= engine->config.expel_after) {
        if (view->flags & HELIO_VIEW_PINNED) {
            rung = HELIO_ACTION_EXPEL;
        } else if (!receiver->was_spared) {
            say_about(engine, receiver, index, HELIO_ACTION_SPARE, now_ns)->why =
                "it is to be expelled by hand: others could speak in its name";
        }
        receiver->was_spared = true;
    }
    if (spared) {
        if (!receiver->was_spared) {
            say_about(engine, receiver, index, HELIO_ACTION_SPARE, now_ns)->why = spared;
        }
        receiver->was_spared = true;
        return;
    }
    if (rung >= HELIO_ACTION_SUSPEND_NAKS && !helio_slow_receiver_is_isolated(receiver, view)) {
        engine->isolated++;
    }
    receiver->rung = rung;
    receiver->acted_ns = now_ns;
    receiver->above = receiver->apart = receiver->below = receiver->well = 0;
    isolate(engine, receiver, rung, now_ns);
    helio_slow_decision *decision = say_about(engine, receiver, index, rung, now_ns);
    if (rung >= HELIO_ACTION_SHED) {
        decision->duration_ns =
            rung == HELIO_ACTION_EXPEL ? engine->config.expel_ns : engine->config.suspend_ns;
    }
    if (rung == HELIO_ACTION_PACE) {
        decision->rate = helio_slow_receivers_pace_to(engine, receiver);
    }
}

static uint32_t windows_needed(const helio_slow_receiver *receiver) {
    const uint32_t dwells = receiver->rung == HELIO_ACTION_PACE ? PATIENT_DWELLS : 1;
    return HELIO_SLOW_DWELL_WINDOWS * (receiver->is_shared ? SHARED_DWELLS : dwells);
}

static void climb(helio_slow_receivers *engine, helio_slow_receiver *receiver,
                  const helio_receiver_view *view, helio_receiver_index index, int64_t now_ns) {
    /* Expulsion is what a further suspension becomes. */
    const helio_action top = engine->config.highest == HELIO_ACTION_EXPEL ? HELIO_ACTION_SUSPEND
                                                                          : engine->config.highest;
    for (helio_action rung = receiver->rung + 1; rung <= top; rung++) {
        if (!applies(engine, receiver, rung)) {
            continue;
        }
        const bool is_due = rung == HELIO_ACTION_PACE ? receiver->above >= HELIO_SLOW_DWELL_WINDOWS
                                                      : receiver->apart >= windows_needed(receiver);
        if (is_due) {
            take(engine, receiver, view, index, rung, now_ns);
            return;
        }
        if (rung != HELIO_ACTION_NOTIFY) { /* all can be paced for, also when none is to blame */
            return;
        }
    }
    /* The action in force at the top rung is repeated before it ends. */
    const bool is_lasting =
        receiver->rung == HELIO_ACTION_SHED || receiver->rung == HELIO_ACTION_SUSPEND_NAKS;
    if (is_lasting && receiver->rung == top && applies(engine, receiver, top) &&
        receiver->apart >= HELIO_SLOW_DWELL_WINDOWS &&
        now_ns - receiver->acted_ns >= engine->config.suspend_ns) {
        take(engine, receiver, view, index, receiver->rung, now_ns);
    }
}

/* ---- a loss in sight ---- */

static void foresee(helio_slow_receivers *engine, helio_slow_receiver *receiver,
                    helio_receiver_index index, int64_t now_ns) {
    const helio_symptoms *symptoms = &receiver->watch.symptoms;
    const double lead = FORECAST_MARGIN * (double)engine->config.lead_ns;
    const int64_t notice_ns = (int64_t)lead + NEAR_WINDOWS * symptoms->length_ns;
    const bool is_near =
        symptoms->forecast_ns <= notice_ns && symptoms->value[HELIO_SYMPTOM_LAG] >= FORECAST_BEHIND;
    receiver->near = is_near ? receiver->near + 1 : 0;
    if (receiver->near >= NEAR_WINDOWS && !receiver->was_reported) {
        receiver->was_reported = true;
        helio_slow_decision *decision =
            say_about(engine, receiver, index, HELIO_ACTION_FORECAST, now_ns);
        decision->symptom = HELIO_SYMPTOM_LAG;
        decision->value = symptoms->value[HELIO_SYMPTOM_LAG];
        decision->threshold = engine->config.lag;
        decision->duration_ns = symptoms->forecast_ns;
    } else if (symptoms->forecast_ns > 2 * notice_ns && receiver->below >= LEAVE_WINDOWS) {
        receiver->was_reported = false;
    }
}

/* ---- one receiver, one interval ---- */

static void release(helio_slow_receivers *engine, helio_slow_receiver *receiver,
                    helio_receiver_index index, const char *why, int64_t now_ns) {
    const bool was_expelled = receiver->isolation == HELIO_ISOLATION_EXPELLED;
    const helio_action action = was_expelled ? HELIO_ACTION_READMIT : HELIO_ACTION_RESUME;
    helio_slow_decision *decision = say_about(engine, receiver, index, action, now_ns);
    decision->lasted_ns = now_ns - receiver->acted_ns;
    decision->why = why;
    come_free(receiver);
    if (was_expelled) {
        receiver->suspensions = 0;
        receiver->watch.is_begun = false;
    }
}

/* It is isolated: is that over? */
static void tend(helio_slow_receivers *engine, helio_slow_receiver *receiver,
                 const helio_receiver_view *view, helio_receiver_index index, int64_t now_ns) {
    const bool expelled = receiver->isolation == HELIO_ISOLATION_EXPELLED;
    const uint32_t flag = expelled ? HELIO_VIEW_EXPELLED : HELIO_VIEW_SUSPENDED;
    if (now_ns >= receiver->isolated_until_ns) {
        release(engine, receiver, index, "its time is over", now_ns);
    } else if (engine->config.enforces && !(view->flags & flag)) {
        come_free(receiver); /* the action was ended elsewhere */
    } else if (!expelled && receiver->well >= HELIO_SLOW_DWELL_WINDOWS) {
        release(engine, receiver, index, "it is well again", now_ns);
    }
}

/* A receiver that requests nothing because of an action is not well for that reason. */
static bool may_recover(const helio_slow_receivers *engine, const helio_slow_receiver *receiver,
                        int64_t now_ns) {
    const bool is_in_force = receiver->rung >= HELIO_ACTION_SHED;
    const bool is_known = receiver->watch.symptoms.has_position;
    return receiver->below >= LEAVE_WINDOWS &&
           (!is_in_force || (is_known && receiver->worst != HELIO_SYMPTOM_NAKS) ||
            now_ns - receiver->acted_ns >= engine->config.suspend_ns);
}

static bool is_by_hand(const helio_slow_receiver *receiver, const helio_receiver_view *view) {
    return receiver->isolation == HELIO_ISOLATION_NONE &&
           ((view->flags & HELIO_VIEW_EXPELLED) ||
            ((view->flags & HELIO_VIEW_SUSPENDED) && receiver->rung < HELIO_ACTION_SUSPEND_NAKS));
}

static void decide_one(helio_slow_receivers *engine, const helio_receiver_view *view,
                       helio_receiver_index index, int64_t now_ns) {
    helio_slow_receiver *receiver = &engine->receivers[index];
    if (receiver->isolation != HELIO_ISOLATION_NONE) {
        tend(engine, receiver, view, index, now_ns);
        return;
    }
    if (!receiver->has_closed || is_by_hand(receiver, view)) {
        return;
    }
    foresee(engine, receiver, index, now_ns);
    if (receiver->rung != HELIO_ACTION_NONE && may_recover(engine, receiver, now_ns)) {
        helio_slow_decision *decision =
            say_about(engine, receiver, index, HELIO_ACTION_RECOVER, now_ns);
        decision->lasted_ns = now_ns - receiver->acted_ns;
        come_free(receiver);
    } else {
        climb(engine, receiver, view, index, now_ns);
    }
}

static bool is_present(const helio_receiver_view *view) {
    return (view->flags & HELIO_VIEW_PRESENT) && !(view->flags & HELIO_VIEW_LEFT);
}

/* Takes in what is new of all.  True when some window ended over a threshold. */
static bool take_in(helio_slow_receivers *engine, const helio_watch_scene *scene,
                    const helio_receiver_view *views, uint32_t entries) {
    bool any = false;
    engine->known = engine->isolated = 0;
    engine->again = 0;
    for (helio_receiver_index index = 0; index < entries; index++) {
        helio_slow_receiver *receiver = &engine->receivers[index];
        const helio_receiver_view *view = &views[index];
        receiver->has_closed = false;
        if (!(view->flags & HELIO_VIEW_PRESENT)) {
            if (receiver->watch.is_begun) {
                *receiver = (helio_slow_receiver){0};
            }
            continue;
        }
        if (receiver->watch.is_begun && receiver->watch.receiver != view->receiver) {
            *receiver = (helio_slow_receiver){0};
        } else if (receiver->watch.is_begun && receiver->watch.incarnation != view->incarnation) {
            come_free(receiver);
        }
        receiver->has_closed = helio_watch_feed(&receiver->watch, &engine->watch, scene, view);
        engine->again += receiver->watch.again;
        if (!is_present(view)) {
            come_free(receiver);
            continue;
        }
        const bool isolated = helio_slow_receiver_is_isolated(receiver, view);
        engine->isolated += isolated;
        engine->known += isolated || receiver->watch.class != HELIO_BEHAVIOUR_STOPPED;
        for (helio_symptom symptom = HELIO_SYMPTOM_LOSS;
             receiver->has_closed && !any && symptom <= HELIO_SYMPTOM_SILENCE; symptom++) {
            any = is_above(engine, receiver, symptom);
        }
    }
    return any;
}

/* How many packets the history keeps: fewer than its number when bytes or time limit it, or
 * acknowledgements. */
static uint64_t history_of(helio_slow_receivers *engine, const helio_interval *interval) {
    if (interval->trail != engine->trail_before) {
        engine->trail_moved_ns = interval->now_ns;
    }
    const bool moves =
        engine->trail_moved_ns != 0 && interval->now_ns - engine->trail_moved_ns < HELIO_SECOND;
    const uint64_t kept =
        interval->lead >= interval->trail ? interval->lead - interval->trail + 1 : 0;
    return moves && kept > 0 ? kept : interval->history_packets;
}

void helio_slow_receivers_decide(helio_slow_receivers *engine, const helio_interval *interval,
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
    helio_slow_receivers_follow_rate(engine, interval);
    if (take_in(engine, &scene, views, entries)) {
        helio_slow_receivers_compare(engine, interval, views, entries);
    }
    for (helio_receiver_index index = 0; index < entries; index++) {
        if (engine->receivers[index].has_closed) {
            judge(engine, &engine->receivers[index], now_ns);
        }
    }
    helio_slow_receivers_find_shared(engine, interval, entries);
    for (helio_receiver_index index = 0; index < entries; index++) {
        if (is_present(&views[index])) {
            decide_one(engine, &views[index], index, now_ns);
        }
    }
    helio_slow_receivers_pace(engine, interval, entries);
    engine->before_ns = now_ns;
    engine->lead_before = interval->lead;
    engine->trail_before = interval->trail;
}
