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
    AHEAD_WINDOWS = 2,  /* that agree before a loss is forecast */
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
    watch->room = view->window;
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

static bool feed(helio_watch *watch, const helio_watch_config *config,
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

/* ---- the outlook ---- */

/* The receiver reported that it had, or had room for, the packets before this one.  A silent one
 * holds at most the packets sent until it was heard. */
static uint64_t lacks_from(const helio_watch *watch, bool silent) {
    const helio_sighting *last = &watch->sighting;
    const uint64_t sent = last->lead + 1;
    const uint64_t held = last->position + 1 + watch->room;
    return silent && sent < held ? sent : held;
}

/* The oldest packet in the history: now, or when the receiver was heard. */
static uint64_t trail_of(const helio_watch *watch, const helio_watch_scene *scene, bool silent) {
    const uint64_t next = watch->sighting.lead + 1;
    const uint64_t then = next > scene->history_packets ? next - scene->history_packets : 0;
    return silent && scene->interval->trail > then ? scene->interval->trail : then;
}

static void count_gone(helio_watch *watch, uint64_t from, uint64_t trail, bool is_designed) {
    from = from > watch->gone_to ? from : watch->gone_to;
    if (trail > from) {
        watch->gone_lately = is_designed ? 0 : trail - from;
        watch->gone += watch->gone_lately;
        watch->gone_to = trail;
    }
}

/* A silent receiver is taken to stand still. */
static helio_outlook outlook_of_silent(helio_watch *watch, const helio_watch_scene *scene,
                                       uint64_t room) {
    const helio_sighting *last = &watch->sighting;
    const double sent = (double)(scene->interval->lead - last->lead);
    const double took_ns = (double)(scene->interval->now_ns - last->at_ns);
    if (sent <= 0 || took_ns <= 0) {
        return HELIO_OUTLOOK_UNKNOWN;
    }
    const double left_ns = (double)room * took_ns / sent;
    watch->left_ns = left_ns < (double)(HELIO_NEVER / 2) ? (int64_t)left_ns : HELIO_NEVER / 2;
    return HELIO_OUTLOOK_AHEAD;
}

static helio_outlook outlook_of_heard(helio_watch *watch) {
    const helio_symptoms *symptoms = &watch->symptoms;
    if (watch->class == HELIO_BEHAVIOUR_UNKNOWN || !symptoms->has_position) {
        return HELIO_OUTLOOK_UNKNOWN;
    }
    if (symptoms->late > 0) {
        return HELIO_OUTLOOK_PAST;
    }
    if (watch->ahead == 0) {
        return HELIO_OUTLOOK_NONE;
    }
    const int64_t age_ns = watch->fed_ns - symptoms->until_ns;
    watch->left_ns = symptoms->forecast_ns > age_ns ? symptoms->forecast_ns - age_ns : 0;
    return watch->ahead < AHEAD_WINDOWS ? HELIO_OUTLOOK_UNKNOWN : HELIO_OUTLOOK_AHEAD;
}

static void look_ahead(helio_watch *watch, const helio_watch_scene *scene,
                       const helio_receiver_view *view) {
    const bool silent = watch->class == HELIO_BEHAVIOUR_STOPPED;
    watch->outlook = HELIO_OUTLOOK_UNKNOWN;
    watch->left_ns = 0;
    watch->gone_lately = 0;
    watch->fed_ns = scene->interval->now_ns;
    if (watch->sighting.at_ns == 0 || (view->flags & HELIO_VIEW_LEFT)) {
        return;
    }
    const uint64_t from = lacks_from(watch, silent), trail = trail_of(watch, scene, silent);
    count_gone(watch, from, trail, view->flags & (HELIO_VIEW_SUSPENDED | HELIO_VIEW_EXPELLED));
    if (trail > from) {
        watch->outlook = HELIO_OUTLOOK_PAST;
    } else if (silent) {
        watch->outlook = outlook_of_silent(watch, scene, from - trail);
    } else if (watch->silent_ns <= SILENT_PERIODS * watch->period_ns) {
        watch->outlook = outlook_of_heard(watch);
    }
}

bool helio_watch_feed(helio_watch *watch, const helio_watch_config *config,
                      const helio_watch_scene *scene, const helio_receiver_view *view) {
    const helio_behaviour before = watch->class;
    const bool is_over = feed(watch, config, scene, view);
    if (is_over) {
        const bool is_ahead = watch->symptoms.forecast_ns != HELIO_NEVER &&
                              watch->symptoms.value[HELIO_SYMPTOM_LAG] >= BEHIND;
        watch->ahead = is_ahead ? watch->ahead + 1 : 0;
    }
    if (watch->class == HELIO_BEHAVIOUR_UNKNOWN) {
        watch->class_ns = 0;
    } else if (watch->class != before || watch->class_ns == 0) {
        watch->class_ns = scene->interval->now_ns;
    }
    look_ahead(watch, scene, view);
    return is_over;
}
