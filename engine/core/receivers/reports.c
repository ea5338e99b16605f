#include "receivers/reports.h"

#include "base/sequence.h"

enum {
    ROUND_TRIP_WEIGHT = 8, /* a measurement counts 1/8 */
    LOSS_WEIGHT = 8,       /* a report counts 7/8 of the next one */
    MILLION = 1000000,
};

#define ROUND_TRIP_MAX_US (60u * 1000 * 1000)
#define AVERAGE_US 1e6 /* half of what is remembered fades in this time */

/* A report in numbers of ours. */
typedef struct counts {
    uint64_t received;
    uint64_t lost;
    uint64_t unrecoverable;
    uint64_t position;
} counts;

static helio_report_result check(const helio_receiver_view *view,
                                 const helio_pgm_receiver_report *told,
                                 const helio_report_context *context, counts *now) {
    const bool is_same_life =
        (view->flags & HELIO_VIEW_REPORTS) && told->incarnation == view->incarnation;
    if ((view->flags & HELIO_VIEW_REPORTS) && told->incarnation < view->incarnation) {
        return HELIO_REPORT_STALE;
    }
    *now = (counts){
        .received = told->received,
        .lost = told->lost,
        .unrecoverable = told->unrecoverable,
        .position = helio_sequence_widen(told->position, context->lead),
    };
    if (is_same_life) {
        now->received = helio_sequence_widen(told->received, view->received);
        now->lost = helio_sequence_widen(told->lost, view->lost);
        now->unrecoverable = helio_sequence_widen(told->unrecoverable, view->unrecoverable);
    }
    const uint64_t sent = context->lead + 1 - context->start;
    if (now->position > context->lead || now->position + 1 < context->start) {
        return HELIO_REPORT_IMPOSSIBLE;
    }
    if (is_same_life &&
        ((int64_t)(now->received - view->received) < 0 || (int64_t)(now->lost - view->lost) < 0 ||
         (int64_t)(now->unrecoverable - view->unrecoverable) < 0 ||
         now->position < view->position)) {
        return HELIO_REPORT_STALE;
    }
    if (now->received > sent || now->lost > sent || now->unrecoverable > now->lost ||
        now->received + now->unrecoverable > sent) {
        return HELIO_REPORT_IMPOSSIBLE;
    }
    return HELIO_REPORT_TAKEN;
}

helio_report_result helio_receivers_check_report(const helio_receiver_view *view,
                                                 const helio_pgm_receiver_report *told,
                                                 const helio_report_context *context) {
    counts now;
    return check(view, told, context, &now);
}

static void begin_anew(helio_receiver_entry *entry, helio_receiver_view *view) {
    view->received = view->lost = view->unrecoverable = 0;
    view->naks = view->naks_again = view->naks_late = view->naks_shed = 0;
    view->repairs = view->repair_bytes = 0;
    view->position = view->missing = 0;
    view->round_trip_ns = 0;
    entry->asked = (helio_asked){0};
    entry->recent_lost = entry->recent_expected = 0;
    entry->average = (helio_receiver_average){0};
    entry->peak_lag = entry->peak_fill = 0;
}

/* The share of the average that stays, now that time has passed; begins it with the first
 * report. */
static double fade(helio_receiver_entry *entry, uint32_t now_us) {
    helio_receiver_average *average = &entry->average;
    const double passed_us = (double)(uint32_t)(now_us - average->at_us);
    const bool is_first = average->expected == 0 && average->round_trip_ns == 0;
    average->at_us = now_us;
    return is_first ? 0 : AVERAGE_US / (AVERAGE_US + passed_us);
}

static void measure_loss(helio_receiver_entry *entry, const helio_receiver_view *view,
                         const counts *now, double keep_average) {
    const double lost = (double)(now->lost - view->lost);
    const double came = (double)(now->received - view->received) +
                        (double)(now->unrecoverable - view->unrecoverable);
    if (lost == 0 && came == 0) {
        return;
    }
    const double keep = 1 - 1.0 / LOSS_WEIGHT;
    const double expected = came > lost ? came : lost;
    helio_receiver_average *average = &entry->average;
    entry->recent_lost = keep * entry->recent_lost + lost;
    entry->recent_expected = keep * entry->recent_expected + expected;
    average->lost = keep_average * average->lost + lost;
    average->expected = keep_average * average->expected + expected;
}

/* The stamp went there with an SPM, lay there for the hold time, and is back. */
static void measure_round_trip(helio_receiver_entry *entry, helio_receiver_view *view,
                               const helio_pgm_receiver_report *told, uint32_t now_us,
                               double keep_average) {
    if (told->stamp == 0 || told->hold_us == HELIO_PGM_RECEIVER_REPORT_NO_ECHO) {
        return;
    }
    const int32_t took_us = (int32_t)(now_us - told->stamp - told->hold_us);
    if (took_us < -1 || took_us > (int32_t)ROUND_TRIP_MAX_US) { /* -1: rounding */
        return;
    }
    const int64_t took_ns = (took_us > 1 ? took_us : 1) * HELIO_MICROSECOND;
    view->round_trip_ns +=
        view->round_trip_ns ? (took_ns - view->round_trip_ns) / ROUND_TRIP_WEIGHT : took_ns;
    double *mean_ns = &entry->average.round_trip_ns;
    *mean_ns = *mean_ns > 0 ? keep_average * *mean_ns + (1 - keep_average) * (double)took_ns
                            : (double)took_ns;
}

helio_report_result helio_receivers_take_report(helio_receiver_entry *entry,
                                                helio_receiver_view *view,
                                                const helio_pgm_receiver_report *told,
                                                const helio_report_context *context) {
    counts now;
    const helio_report_result result = check(view, told, context, &now);
    if (result != HELIO_REPORT_TAKEN) {
        return result;
    }
    if ((view->flags & HELIO_VIEW_REPORTS) && told->incarnation != view->incarnation) {
        begin_anew(entry, view);
    }
    const double keep_average = fade(entry, context->now_us);
    measure_loss(entry, view, &now, keep_average);
    measure_round_trip(entry, view, told, context->now_us, keep_average);
    helio_tx_receiver_stats *stats = entry->object.record;
    helio_count(&stats->packets_received, now.received - view->received);
    helio_count(&stats->packets_missed, now.lost - view->lost);
    helio_count(&stats->packets_lost, now.unrecoverable - view->unrecoverable);
    view->incarnation = told->incarnation;
    view->received = now.received;
    view->lost = now.lost;
    view->unrecoverable = now.unrecoverable;
    view->position = now.position;
    if (view->missing && view->missing <= now.position) {
        view->missing = helio_asked_after(&entry->asked, now.position);
    }
    view->buffer_fill = told->buffer_fill;
    view->window = told->window;
    view->flags &= ~(uint32_t)(HELIO_VIEW_TAGGED | HELIO_VIEW_LEFT);
    view->flags |= HELIO_VIEW_REPORTS | HELIO_VIEW_NEWS;
    if (told->flags & HELIO_PGM_RECEIVER_REPORT_TAGGED) {
        view->flags |= HELIO_VIEW_TAGGED;
    }
    if (told->flags & HELIO_PGM_RECEIVER_REPORT_LEAVING) {
        view->flags |= HELIO_VIEW_LEFT;
    }
    entry->takes_unicast = told->flags & HELIO_PGM_RECEIVER_REPORT_UNICAST;
    return HELIO_REPORT_TAKEN;
}

void helio_receivers_show_report(helio_receiver_entry *entry, const helio_receiver_view *view,
                                 const helio_report_context *context, helio_moment moment) {
    helio_tx_receiver_stats *stats = entry->object.record;
    const double loss =
        entry->recent_expected > 0 ? entry->recent_lost / entry->recent_expected : 0;
    entry->told = context->history
                      ? helio_txw_behind_of(context->history, view->position, moment.now_ns)
                      : (helio_txw_behind){.packets = context->lead - view->position};
    if (entry->told.packets > entry->peak_lag) {
        entry->peak_lag = entry->told.packets;
    }
    if (view->buffer_fill > entry->peak_fill) {
        entry->peak_fill = view->buffer_fill;
    }
    helio_stats_begin(stats);
    helio_count(&stats->reports_received, 1);
    helio_set(&stats->loss, (uint64_t)(loss * MILLION));
    helio_set(&stats->buffer_fill, (uint64_t)view->buffer_fill * MILLION / UINT16_MAX);
    helio_set(&stats->position, view->position);
    helio_set(&stats->lag, entry->told.packets);
    helio_set(&stats->lag_bytes, entry->told.bytes);
    helio_set(&stats->lag_time, (uint64_t)entry->told.age_ns);
    helio_set(&stats->window, view->window);
    helio_set(&stats->round_trip, (uint64_t)view->round_trip_ns);
    helio_set(&stats->last_feedback, (uint64_t)moment.wall_ns);
    helio_stats_end(stats);
}
