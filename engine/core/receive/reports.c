#include "receive/reports.h"

#include <string.h>

#include "repair/backoff.h"

enum {
    FIRST_GROUP = 10000, /* receivers that the first draw is made for */
    HALF_FULL = UINT16_MAX / 2,
    NEARLY_FULL = UINT16_MAX / 5 * 4,
    NAMED_FIRST = 3,
    HASTE_PART = 8, /* news of the buffers comes within this part of an interval */
};

/* Whatever an SPM asks for, and whoever sent it: a receiver must not be made to flood its
 * source. */
#define INTERVAL_MIN_NS HELIO_MILLISECOND

#define HOLD_MAX_US (HELIO_PGM_RECEIVER_REPORT_NO_ECHO - 1)

void helio_rx_reports_init(helio_rx_reports *reports, uint64_t seed) {
    *reports = (helio_rx_reports){.due_ns = HELIO_NEVER};
    helio_random_init(&reports->random, seed);
}

/* A random time from `from_ns` to `to_ns` after `base_ns`. */
static int64_t draw(helio_rx_reports *reports, int64_t base_ns, int64_t from_ns, int64_t to_ns) {
    return base_ns + from_ns +
           (int64_t)helio_random_below(&reports->random, (uint64_t)(to_ns - from_ns) + 1);
}

static int64_t next_after(helio_rx_reports *reports, int64_t then_ns) {
    return draw(reports, then_ns, reports->interval_ns / 2, reports->interval_ns);
}

static int64_t first_after(helio_rx_reports *reports, int64_t now_ns) {
    const helio_backoff spread = {.interval_ns = reports->interval_ns, .group_size = FIRST_GROUP};
    return now_ns + helio_backoff_draw(&spread, &reports->random);
}

/* Whose first report is due hears of a longer interval. */
static int64_t put_off_first(helio_rx_reports *reports, int64_t before_ns, int64_t now_ns) {
    if (reports->is_even && reports->due_ns > now_ns) {
        return now_ns + (int64_t)((double)(reports->due_ns - now_ns) *
                                  (double)reports->interval_ns / (double)before_ns);
    }
    reports->is_even = true;
    return draw(reports, now_ns, 0, reports->interval_ns);
}

static void set_interval(helio_rx_reports *reports, int64_t interval_ns, int64_t now_ns) {
    const int64_t before_ns = reports->interval_ns;
    reports->interval_ns = interval_ns;
    if (interval_ns == 0) {
        reports->due_ns = HELIO_NEVER;
    } else if (reports->count == 0 && reports->due_ns == HELIO_NEVER) {
        reports->due_ns = first_after(reports, now_ns);
    } else if (reports->count == 0 && interval_ns > before_ns) {
        reports->due_ns = put_off_first(reports, before_ns, now_ns);
    } else if (interval_ns > before_ns || reports->due_ns == HELIO_NEVER) {
        const int64_t due_ns = next_after(reports, reports->told_ns);
        reports->due_ns = due_ns > now_ns ? due_ns : draw(reports, now_ns, 0, interval_ns);
    } else if (now_ns + interval_ns < reports->due_ns) {
        reports->due_ns = draw(reports, now_ns, 0, interval_ns);
    }
}

void helio_rx_reports_on_spm(helio_rx_reports *reports, const helio_pgm_reporting *asked,
                             uint64_t receiver, int64_t now_ns) {
    reports->is_on = asked != NULL;
    reports->progress = asked ? asked->progress : 0;
    reports->is_acker = asked && asked->acker == receiver && receiver != 0;
    const int64_t asked_ns = asked ? asked->interval_us * HELIO_MICROSECOND : 0;
    const int64_t interval_ns =
        asked_ns > 0 && asked_ns < INTERVAL_MIN_NS ? INTERVAL_MIN_NS : asked_ns;
    if (interval_ns != reports->interval_ns) {
        set_interval(reports, interval_ns, now_ns);
    }
    if (asked && asked->stamp) {
        reports->stamp = asked->stamp;
        reports->stamp_ns = now_ns;
    }
}

bool helio_rx_reports_on_progress(helio_rx_reports *reports, uint32_t newest, uint32_t position,
                                  int64_t now_ns) {
    reports->newest = newest;
    const bool has_moved =
        reports->progress > 0 && position - reports->told.position >= reports->progress;
    if (has_moved || (reports->is_acker && newest != reports->newest_acked)) {
        reports->is_pressing = true;
        reports->due_ns = now_ns;
    }
    return has_moved ||
           (reports->is_acker && newest - reports->newest_acked >= HELIO_RX_REPORTS_ACKED);
}

static int class_of(uint16_t fill) {
    return (fill >= HALF_FULL) + (fill >= NEARLY_FULL);
}

void helio_rx_reports_on_fill(helio_rx_reports *reports, uint16_t fill, int64_t now_ns) {
    if (reports->due_ns == HELIO_NEVER || class_of(fill) == class_of(reports->told.buffer_fill)) {
        return;
    }
    const int64_t free_ns = reports->told_ns + reports->interval_ns / 2;
    const int64_t from_ns = reports->count > 0 && free_ns > now_ns ? free_ns : now_ns;
    const int64_t latest_ns = from_ns + reports->interval_ns / HASTE_PART;
    if (latest_ns < reports->due_ns) {
        reports->due_ns = draw(reports, from_ns, 0, reports->interval_ns / HASTE_PART);
    }
}

static bool is_news(const helio_pgm_receiver_report *now, const helio_pgm_receiver_report *told) {
    return now->flags != told->flags || now->received != told->received ||
           now->lost != told->lost || now->unrecoverable != told->unrecoverable ||
           now->position != told->position ||
           class_of(now->buffer_fill) != class_of(told->buffer_fill);
}

bool helio_rx_reports_poll(helio_rx_reports *reports, const helio_pgm_receiver_report *now,
                           int64_t now_ns) {
    if (now_ns < reports->due_ns) {
        return false;
    }
    if (reports->is_pressing || reports->count == 0 || is_news(now, &reports->told) ||
        now_ns - reports->told_ns >= (HELIO_PGM_REPORT_REST - 1) * reports->interval_ns) {
        return true;
    }
    reports->due_ns = next_after(reports, now_ns);
    return false;
}

void helio_rx_reports_fill_in(const helio_rx_reports *reports, const char *name,
                              helio_pgm_receiver_report *told, int64_t now_ns) {
    const uint64_t hold_us = (uint64_t)(now_ns - reports->stamp_ns) / HELIO_MICROSECOND;
    told->stamp = reports->stamp;
    told->hold_us = reports->stamp && hold_us <= HOLD_MAX_US ? (uint32_t)hold_us
                                                             : HELIO_PGM_RECEIVER_REPORT_NO_ECHO;
    told->name = name;
    const bool is_named =
        reports->count < NAMED_FIRST || reports->count % HELIO_RX_REPORTS_NAMED == 0;
    told->name_bytes = is_named ? strlen(name) : 0;
}

void helio_rx_reports_put_off(helio_rx_reports *reports, int64_t now_ns) {
    reports->is_pressing = false;
    if (reports->due_ns != HELIO_NEVER) {
        reports->due_ns = reports->interval_ns > 0 ? next_after(reports, now_ns) : HELIO_NEVER;
    }
}

void helio_rx_reports_on_sent(helio_rx_reports *reports, const helio_pgm_receiver_report *told,
                              int64_t now_ns) {
    reports->told = *told;
    reports->told.name = NULL;
    reports->told_ns = now_ns;
    reports->count++;
    reports->is_pressing = false;
    reports->newest_acked = reports->newest;
    if (reports->due_ns != HELIO_NEVER) {
        reports->due_ns = reports->interval_ns > 0 ? next_after(reports, now_ns) : HELIO_NEVER;
    }
}
