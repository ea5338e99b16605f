#include "receivers/allowance.h"

#include "base/math.h"

enum { SHED_DEFAULT = 65536 };
#define DEPTH_MAX (UINT64_C(1) << 32)

/* A bucket lets something through at a credit of 0, so a depth of one less than the rate grants the
 * rate at once. */
static uint64_t depth_of(uint64_t rate) {
    return rate > DEPTH_MAX ? DEPTH_MAX : rate - (rate > 0);
}

void helio_allowance_begin(const helio_allowances *allowances, helio_allowance *allowance,
                           int64_t now_ns) {
    const helio_limits *limits = &allowances->limits;
    *allowance = (helio_allowance){0};
    helio_bucket_init(&allowance->naks, limits->naks, depth_of(limits->naks), now_ns);
    helio_bucket_init(&allowance->acks, limits->acks, depth_of(limits->acks), now_ns);
    helio_bucket_init(&allowance->repairs, limits->repair_bytes, depth_of(limits->repair_bytes),
                      now_ns);
}

void helio_allowances_init(helio_allowances *allowances, const helio_limits *limits) {
    *allowances =
        (helio_allowances){.limits = *limits, .ends_ns = HELIO_NEVER, .report_ns = HELIO_NEVER};
    if (allowances->limits.shed_bytes == 0) {
        allowances->limits.shed_bytes = SHED_DEFAULT;
    }
    const uint64_t most = allowances->limits.repair_bytes;
    if (most > 0 && allowances->limits.shed_bytes > most) {
        allowances->limits.shed_bytes = most;
    }
    helio_allowance_begin(allowances, &allowances->untracked, 0);
}

static void count_action(helio_allowances *allowances, const helio_allowance *allowance,
                         helio_action next) {
    allowances->restricted +=
        (uint32_t)(next != HELIO_ACTION_NONE) - (uint32_t)(allowance->action != HELIO_ACTION_NONE);
    allowances->expelled += (uint32_t)(next == HELIO_ACTION_EXPEL) -
                            (uint32_t)(allowance->action == HELIO_ACTION_EXPEL);
}

/* ---- refusals ---- */

static void begin_window(helio_allowances *allowances, helio_allowance *allowance, int64_t now_ns) {
    if (allowance->refused_from_ns == 0) {
        allowance->refused_from_ns = now_ns ? now_ns : 1;
        allowances->report_ns =
            helio_min(allowances->report_ns, now_ns + HELIO_ALLOWANCE_WINDOW_NS);
    }
}

void helio_allowance_end(helio_allowances *allowances, const helio_allowance *allowance) {
    count_action(allowances, allowance, HELIO_ACTION_NONE);
    if (allowance->refused_from_ns) {
        begin_window(allowances, &allowances->untracked, allowance->refused_from_ns);
        allowances->untracked.naks_shed += allowance->naks_shed;
        allowances->untracked.acks_shed += allowance->acks_shed;
    }
}

bool helio_allowance_grants_nak(helio_allowances *allowances, helio_allowance *allowance,
                                int64_t now_ns) {
    if (now_ns >= allowances->cut_off_ns &&
        !helio_action_stops_repairs((helio_action)allowance->action) &&
        helio_bucket_credit(&allowance->naks, now_ns) > 0 &&
        helio_bucket_credit(&allowance->repairs, now_ns) > 0) {
        helio_bucket_charge(&allowance->naks, 1);
        return true;
    }
    begin_window(allowances, allowance, now_ns);
    allowance->naks_shed++;
    return false;
}

void helio_allowance_charge(helio_allowance *allowance, size_t bytes) {
    helio_bucket_charge(&allowance->repairs, bytes);
}

bool helio_allowance_grants_ack(helio_allowances *allowances, helio_allowance *allowance,
                                int64_t now_ns) {
    if (helio_bucket_credit(&allowance->acks, now_ns) > 0) {
        helio_bucket_charge(&allowance->acks, 1);
        return true;
    }
    begin_window(allowances, allowance, now_ns);
    allowance->acks_shed++;
    return false;
}

/* ---- actions ---- */

void helio_allowance_set(helio_allowances *allowances, helio_allowance *allowance,
                         helio_action action, int64_t until_ns, int64_t now_ns) {
    const uint64_t usual = allowances->limits.repair_bytes;
    const bool is_shed = action == HELIO_ACTION_SHED;
    const uint64_t rate = is_shed ? allowances->limits.shed_bytes : usual;
    count_action(allowances, allowance, action);
    if (is_shed != (allowance->action == HELIO_ACTION_SHED)) {
        helio_bucket_init(&allowance->repairs, rate, depth_of(rate), now_ns);
    }
    allowance->action = (uint8_t)action;
    allowance->until_ns = until_ns;
    if (action != HELIO_ACTION_NONE) {
        allowances->ends_ns = helio_min(allowances->ends_ns, until_ns);
    }
}

int64_t helio_allowances_next_deadline_ns(const helio_allowances *allowances) {
    return helio_min(allowances->ends_ns, allowances->report_ns);
}
