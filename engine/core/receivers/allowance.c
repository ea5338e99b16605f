#include "receivers/allowance.h"

#include <stdlib.h>

#include <heliograph/errors.h>

#define WINDOW_NS HELIO_SECOND
enum { SHED_DEFAULT = 65536 };
#define DEPTH_MAX (UINT64_C(1) << 32)

int helio_allowances_init(helio_allowances *allowances, uint32_t entries,
                          const helio_limits *limits) {
    *allowances = (helio_allowances){
        .limits = *limits, .entries = entries, .ends_ns = HELIO_NEVER, .tell_ns = HELIO_NEVER};
    if (allowances->limits.shed_bytes == 0) {
        allowances->limits.shed_bytes = SHED_DEFAULT;
    }
    const uint64_t most = allowances->limits.repair_bytes;
    if (most > 0 && allowances->limits.shed_bytes > most) {
        allowances->limits.shed_bytes = most;
    }
    allowances->all = calloc((size_t)entries + 1, sizeof *allowances->all);
    return allowances->all ? 0 : HELIO_ERR_NOMEM;
}

void helio_allowances_fini(helio_allowances *allowances) {
    free(allowances->all);
    allowances->all = NULL;
}

/* Something may leave while the credit is not negative, so one less than the rate makes the rate
 * what is granted at once. */
static uint64_t depth_of(uint64_t rate) {
    return rate > DEPTH_MAX ? DEPTH_MAX : rate - (rate > 0);
}

static void begin(helio_allowances *allowances, helio_allowance *allowance, uint64_t key,
                  int64_t now_ns) {
    const helio_limits *limits = &allowances->limits;
    allowances->treated -= allowance->action != HELIO_ACTION_NONE;
    allowances->expelled -= allowance->action == HELIO_ACTION_EXPEL;
    *allowance = (helio_allowance){.key = key};
    helio_bucket_init(&allowance->naks, limits->naks, depth_of(limits->naks), now_ns);
    helio_bucket_init(&allowance->acks, limits->acks, depth_of(limits->acks), now_ns);
    helio_bucket_init(&allowance->repairs, limits->repair_bytes, depth_of(limits->repair_bytes),
                      now_ns);
}

helio_allowance *helio_allowances_of(helio_allowances *allowances, helio_receiver_index index,
                                     uint64_t key, int64_t now_ns) {
    const bool has_entry = index < allowances->entries;
    helio_allowance *allowance = &allowances->all[has_entry ? index : allowances->entries];
    const uint64_t whose = has_entry ? key + 1 : 1; /* 0: nobody's yet */
    if (allowance->key != whose) {
        begin(allowances, allowance, whose, now_ns);
    }
    return allowance;
}

/* ---- what is asked for ---- */

static void refuse(helio_allowances *allowances, helio_allowance *allowance, int64_t now_ns) {
    if (allowance->refused_from_ns) {
        return;
    }
    allowance->refused_from_ns = now_ns ? now_ns : 1;
    if (now_ns + WINDOW_NS < allowances->tell_ns) {
        allowances->tell_ns = now_ns + WINDOW_NS;
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
    refuse(allowances, allowance, now_ns);
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
    refuse(allowances, allowance, now_ns);
    allowance->acks_shed++;
    return false;
}

/* ---- what stands ---- */

void helio_allowance_set(helio_allowances *allowances, helio_allowance *allowance,
                         helio_action action, int64_t until_ns, int64_t now_ns) {
    const uint64_t usual = allowances->limits.repair_bytes;
    const bool is_shed = action == HELIO_ACTION_SHED;
    const uint64_t rate = is_shed ? allowances->limits.shed_bytes : usual;
    allowances->treated += (uint32_t)(action != HELIO_ACTION_NONE) -
                           (uint32_t)(allowance->action != HELIO_ACTION_NONE);
    allowances->expelled += (uint32_t)(action == HELIO_ACTION_EXPEL) -
                            (uint32_t)(allowance->action == HELIO_ACTION_EXPEL);
    if (is_shed != (allowance->action == HELIO_ACTION_SHED)) {
        helio_bucket_init(&allowance->repairs, rate, depth_of(rate), now_ns);
    }
    allowance->action = (uint8_t)action;
    allowance->until_ns = until_ns;
    if (action != HELIO_ACTION_NONE && until_ns < allowances->ends_ns) {
        allowances->ends_ns = until_ns;
    }
}

/* ---- time ---- */

helio_receiver_index helio_allowances_ended(helio_allowances *allowances, int64_t now_ns) {
    if (now_ns < allowances->ends_ns) {
        return HELIO_RECEIVER_NONE;
    }
    int64_t ends_ns = HELIO_NEVER;
    for (uint32_t i = 0; i < allowances->entries; i++) {
        const helio_allowance *allowance = &allowances->all[i];
        if (allowance->action == HELIO_ACTION_NONE) {
            continue;
        }
        if (allowance->until_ns <= now_ns) {
            return i;
        }
        if (allowance->until_ns < ends_ns) {
            ends_ns = allowance->until_ns;
        }
    }
    allowances->ends_ns = ends_ns;
    return HELIO_RECEIVER_NONE;
}

helio_receiver_index helio_allowances_refused(helio_allowances *allowances, int64_t now_ns) {
    if (now_ns < allowances->tell_ns) {
        return HELIO_RECEIVER_NONE;
    }
    int64_t tell_ns = HELIO_NEVER;
    for (uint32_t i = 0; i <= allowances->entries; i++) {
        const helio_allowance *allowance = &allowances->all[i];
        if (allowance->refused_from_ns == 0) {
            continue;
        }
        const int64_t due_ns = allowance->refused_from_ns + WINDOW_NS;
        if (due_ns <= now_ns) {
            return i;
        }
        if (due_ns < tell_ns) {
            tell_ns = due_ns;
        }
    }
    allowances->tell_ns = tell_ns;
    return HELIO_RECEIVER_NONE;
}

int64_t helio_allowances_next_deadline_ns(const helio_allowances *allowances) {
    return allowances->ends_ns < allowances->tell_ns ? allowances->ends_ns : allowances->tell_ns;
}
