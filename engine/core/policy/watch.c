#include "policy/watch.h"

#include <math.h>

enum {
    EVIDENCE_PACKETS = 200,
    EVIDENCE_WINDOWS = 5, /* least lengths a window waits for evidence */
    SILENT_PERIODS = 5,
    PERIOD_PART = 8,
    GROWTH_PART = 20,   /* of the source's speed: falls behind */
    CATCHING_PART = 50, /* of the source's speed: catches up */
    STILL_PACKETS = 16, /* behind by fewer is in flight */
};

#define CHANCE 2.0 /* standard deviations that chance may explain */
#define BEHIND 0.1 /* share of the history from which on it is worth saying */
#define SILENT_LEAST_NS (3 * HELIO_SECOND)

const char *helio_behaviour_name(helio_behaviour class) {
    static const char *const names[] = {"unknown", "ok",      "falling behind",
                                        "stalled", "stopped", "recovering"};
    return names[class];
}

const char *helio_symptom_name(helio_symptom symptom) {
    static const char *const names[] = {"nothing", "loss", "naks", "lag", "buffer", "silence"};
    return names[symptom];
}

static void begin(helio_watch *watch, const helio_receiver_view *view, int64_t now_ns) {
    *watch = (helio_watch){
        .receiver = view->receiver,
        .incarnation = view->incarnation,
        .is_begun = true,
        .received = view->received,
        .lost = view->lost,
        .unrecoverable = view->unrecoverable,
        .naks = view->naks,
        .naks_again = view->naks_again,
        .naks_late = view->naks_late,
        .opened_ns = now_ns,
        .news_ns = now_ns,
        .symptoms.forecast_ns = HELIO_NEVER,
    };
}

static uint64_t since(uint64_t now, uint64_t *before) {
    const uint64_t by = now > *before ? now - *before : 0;
    *before = now;
    return by;
}

static uint64_t sent_in(const helio_watch_scene *scene) {
    return scene->interval->lead - scene->lead_before;
}

static void count(helio_watch *watch, const helio_watch_scene *scene,
                  const helio_receiver_view *view) {
    watch->again = since(view->naks_again, &watch->naks_again);
    watch->window_came +=
        since(view->received, &watch->received) + since(view->unrecoverable, &watch->unrecoverable);
    watch->window_lost += since(view->lost, &watch->lost);
    watch->window_naks += since(view->naks, &watch->naks);
    watch->window_again += watch->again;
    watch->window_late += since(view->naks_late, &watch->naks_late);
    watch->window_sent += sent_in(scene);
}

/* The newest packet when it was heard, which may be a while before the end of the interval. */
static uint64_t lead_at(const helio_watch_scene *scene, int64_t at_ns) {
    const int64_t now_ns = scene->interval->now_ns;
    if (at_ns <= scene->before_ns || scene->before_ns >= now_ns) {
        return scene->lead_before;
    }
    const double part = (double)(now_ns - at_ns) / (double)(now_ns - scene->before_ns);
    return scene->interval->lead - (uint64_t)(part * (double)sent_in(scene));
}

static void note_news(helio_watch *watch, const helio_watch_scene *scene) {
    const int64_t now_ns = scene->interval->now_ns;
    const int64_t period_ns = now_ns - watch->news_ns;
    if (watch->period_ns == 0) {
        watch->period_ns = period_ns;
    }
    watch->period_ns += (period_ns - watch->period_ns) / PERIOD_PART;
    watch->news_ns = now_ns;
    watch->silent_ns = 0;
    watch->has_news = true;
}

/* It spoke: where is it? */
static void sight(helio_watch *watch, const helio_watch_scene *scene,
                  const helio_receiver_view *view) {
    const int64_t now_ns = scene->interval->now_ns;
    int64_t at_ns = view->heard_ns < now_ns ? view->heard_ns : now_ns;
    if (at_ns < scene->before_ns) {
        at_ns = scene->before_ns;
    }
    const uint64_t lead = lead_at(scene, at_ns);
    /* What it has room for it holds, or will be given, unless it asked for it. */
    uint64_t needs = view->position + 1 + view->window;
    if (view->missing > view->position && view->missing < needs) {
        needs = view->missing;
    }
    watch->sighting = (helio_sighting){
        .at_ns = at_ns,
        .position = view->position,
        .lead = lead > view->position ? lead : view->position,
        .needs = needs,
    };
    watch->is_sighted = true;
}

static void hear(helio_watch *watch, const helio_watch_scene *scene,
                 const helio_receiver_view *view) {
    note_news(watch, scene);
    if ((view->flags & HELIO_VIEW_REPORTS) && view->position != 0) {
        sight(watch, scene, view);
    }
}

/* Packets it should have got, as it tells; those missed and repaired came too. */
static uint64_t expected(const helio_watch *watch) {
    return watch->window_came > watch->window_lost ? watch->window_came : watch->window_lost;
}

static bool is_over(const helio_watch *watch, const helio_watch_config *config,
                    const helio_receiver_view *view, int64_t now_ns) {
    const int64_t age_ns = now_ns - watch->opened_ns;
    if (age_ns < config->window_ns) {
        return false;
    }
    const bool reports = view->flags & HELIO_VIEW_REPORTS;
    if (reports && !watch->has_news) {
        return false;
    }
    const uint64_t seen = reports ? expected(watch) : watch->window_sent;
    return seen >= EVIDENCE_PACKETS || age_ns >= EVIDENCE_WINDOWS * config->window_ns;
}

/* For longer than it ever was, and than its source asked it to be at most. */
static bool is_silent(const helio_watch *watch, const helio_interval *interval,
                      const helio_receiver_view *view) {
    if (!(view->flags & HELIO_VIEW_REPORTS)) {
        return false;
    }
    int64_t most_ns = SILENT_PERIODS * watch->period_ns;
    if (most_ns < interval->silence_ns) {
        most_ns = interval->silence_ns;
    }
    return watch->silent_ns > (most_ns > SILENT_LEAST_NS ? most_ns : SILENT_LEAST_NS);
}

static double share(uint64_t part, uint64_t rest) {
    return part + rest ? (double)part / (double)(part + rest) : 0;
}

static double lag_of(const helio_watch *watch, const helio_watch_scene *scene,
                     const helio_receiver_view *view) {
    const helio_sighting *last = helio_track_last(&watch->track);
    const uint64_t lead = scene->interval->lead;
    uint64_t behind = 0;
    if (last) {
        behind = last->lead - last->position;
    } else if (view->missing != 0 && view->missing <= lead) {
        behind = lead - view->missing + 1;
    }
    return scene->history_packets ? (double)behind / (double)scene->history_packets : 0;
}

static void measure(helio_watch *watch, const helio_watch_scene *scene,
                    const helio_receiver_view *view) {
    const bool reports = view->flags & HELIO_VIEW_REPORTS;
    const int64_t now_ns = scene->interval->now_ns;
    const int64_t length_ns = now_ns - watch->opened_ns;
    const uint64_t lost = reports ? watch->window_lost : watch->window_naks;
    const uint64_t sent = watch->window_sent > lost ? watch->window_sent : lost;
    const uint64_t all = reports ? expected(watch) : sent;
    const double chance = CHANCE * sqrt((double)lost);
    helio_symptoms *symptoms = &watch->symptoms;
    *symptoms = (helio_symptoms){
        .value =
            {
                [HELIO_SYMPTOM_LOSS] = share(lost, all - lost),
                [HELIO_SYMPTOM_NAKS] =
                    (double)watch->window_naks * (double)HELIO_SECOND / (double)length_ns,
                [HELIO_SYMPTOM_LAG] = lag_of(watch, scene, view),
                [HELIO_SYMPTOM_BUFFER] = (double)view->buffer_fill / 65535,
                [HELIO_SYMPTOM_SILENCE] = (double)watch->silent_ns / (double)HELIO_SECOND,
            },
        .loss_least = (double)lost > chance ? ((double)lost - chance) / (double)all : 0,
        .repeats = share(watch->window_again, watch->window_naks),
        .late = (double)watch->window_late,
        .length_ns = length_ns,
        .until_ns = now_ns,
        .has_position = watch->track.count >= 2,
        .asked = watch->window_naks + watch->window_again > 0,
        .speed = helio_track_speed(&watch->track),
    };
    symptoms->forecast_ns =
        helio_track_forecast(&watch->track, &symptoms->speed, scene->history_packets, now_ns);
}

/* How it behaves, by this window. */
static helio_behaviour behaviour(const helio_watch *watch, const helio_watch_config *config) {
    const helio_symptoms *symptoms = &watch->symptoms;
    const helio_speed *speed = &symptoms->speed;
    const double lag = symptoms->value[HELIO_SYMPTOM_LAG];
    const bool is_full = symptoms->value[HELIO_SYMPTOM_BUFFER] >= config->buffer;
    int64_t length_ns;
    uint64_t went, sent;
    if (!helio_track_step(&watch->track, &length_ns, &went, &sent)) {
        return lag >= config->lag || symptoms->late > 0 || is_full ? HELIO_BEHAVIOUR_FALLING_BEHIND
                                                                   : HELIO_BEHAVIOUR_OK;
    }
    const helio_sighting *last = helio_track_last(&watch->track);
    const uint64_t behind = last->lead - last->position;
    if (went == 0 && behind > STILL_PACKETS && behind >= sent) {
        return sent > 0 || watch->is_waited_for ? HELIO_BEHAVIOUR_STALLED : watch->class;
    }
    const bool was_behind = watch->class == HELIO_BEHAVIOUR_FALLING_BEHIND ||
                            watch->class == HELIO_BEHAVIOUR_STALLED ||
                            watch->class == HELIO_BEHAVIOUR_RECOVERING;
    if ((lag >= BEHIND || (was_behind && behind > STILL_PACKETS)) && went > sent &&
        speed->growth < -speed->source / CATCHING_PART) {
        return HELIO_BEHAVIOUR_RECOVERING;
    }
    if (lag >= config->lag / 2 || is_full ||
        (lag >= BEHIND && speed->growth > speed->source / GROWTH_PART)) {
        return HELIO_BEHAVIOUR_FALLING_BEHIND;
    }
    return HELIO_BEHAVIOUR_OK;
}

static void classify(helio_watch *watch, helio_behaviour seen) {
    if (seen == watch->seen || watch->class == HELIO_BEHAVIOUR_UNKNOWN ||
        seen == HELIO_BEHAVIOUR_STOPPED) {
        watch->class = seen;
    }
    watch->seen = seen;
}

static void open_window(helio_watch *watch, int64_t now_ns) {
    watch->opened_ns = now_ns;
    watch->window_came = watch->window_lost = watch->window_sent = 0;
    watch->window_naks = watch->window_again = watch->window_late = 0;
    watch->has_news = watch->is_sighted = watch->is_waited_for = false;
}

bool helio_watch_feed(helio_watch *watch, const helio_watch_config *config,
                      const helio_watch_scene *scene, const helio_receiver_view *view) {
    const helio_interval *interval = scene->interval;
    watch->again = 0;
    if (!watch->is_begun || view->receiver != watch->receiver ||
        view->incarnation != watch->incarnation) {
        begin(watch, view, interval->now_ns);
        return false;
    }
    if (view->flags & HELIO_VIEW_LEFT) {
        watch->class = watch->seen = HELIO_BEHAVIOUR_STOPPED;
        watch->symptoms.forecast_ns = HELIO_NEVER;
        return false;
    }
    count(watch, scene, view);
    const bool flows = sent_in(scene) > 0 || interval->queue_bytes > 0;
    watch->is_waited_for |= flows;
    if (view->flags & HELIO_VIEW_NEWS) {
        hear(watch, scene, view);
    } else if (flows) {
        watch->silent_ns += interval->now_ns - scene->before_ns;
    }
    const bool silent = is_silent(watch, interval, view);
    const bool is_old = interval->now_ns - watch->opened_ns >= config->window_ns;
    if (!(silent && is_old) && !is_over(watch, config, view, interval->now_ns)) {
        return false;
    }
    if (watch->is_sighted) {
        helio_track_add(&watch->track, &watch->sighting);
    }
    measure(watch, scene, view);
    classify(watch, silent ? HELIO_BEHAVIOUR_STOPPED : behaviour(watch, config));
    open_window(watch, interval->now_ns);
    return true;
}
