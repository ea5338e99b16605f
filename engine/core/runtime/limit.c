#include "runtime/limit.h"

#include <inttypes.h>

#include "base/error.h"
#include "runtime/instance.h"

int helio_limit_init(helio_instance *instance) {
    const helio_instance_options *options = &instance->options;
    helio_limit *limit = &instance->memory;
    const double high = options->memory_high;
    const double low = options->memory_low;
    limit->account.limit_bytes = options->memory_limit;
    if (high > 0 && low > high) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option memory_low is at most memory_high, here %g; %g is more", high,
                          low);
    }
    limit->mark = (helio_mark){
        .high = (uint64_t)(high * (double)limit->account.limit_bytes),
        .low = (uint64_t)(low * (double)limit->account.limit_bytes),
    };
    return 0;
}

static void show(helio_instance *instance) {
    helio_set(&instance->counts->memory_used, helio_account_used(&instance->memory.account));
}

int helio_limit_fail(const helio_instance *instance, const char *what, uint64_t bytes) {
    const helio_account *account = &instance->memory.account;
    if (account->limit_bytes == 0) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for %s of %" PRIu64 " bytes", what, bytes);
    }
    return helio_fail(HELIO_ERR_NOMEM,
                      "option memory_limit allows %" PRIu64 " bytes for the instance and %" PRIu64
                      " are in use: too few remain for %s of %" PRIu64 " bytes",
                      account->limit_bytes, helio_account_used(account), what, bytes);
}

int helio_limit_take(helio_instance *instance, const char *what, uint64_t bytes) {
    if (!helio_account_take(&instance->memory.account, bytes)) {
        return helio_limit_fail(instance, what, bytes);
    }
    show(instance);
    return 0;
}

void helio_limit_give(helio_instance *instance, uint64_t bytes) {
    helio_account_give(&instance->memory.account, bytes);
    show(instance);
}

static void tell_crossing(helio_instance *instance, int64_t wall_ns) {
    const helio_limit *limit = &instance->memory;
    const uint64_t used = helio_account_used(&limit->account);
    const uint64_t args[4] = {used, limit->account.limit_bytes};
    helio_stats_event(
        instance->stats, wall_ns,
        limit->mark.is_above ? HELIO_EVENT_MEMORY_ALERT_ON : HELIO_EVENT_MEMORY_ALERT_OFF,
        instance->object.slot, args,
        "%s: memory is %s: %" PRIu64 " of %" PRIu64 " bytes are in use", instance->name,
        limit->mark.is_above ? "near its limit" : "no longer near its limit", used, args[1]);
}

static void tell_refusals(helio_instance *instance, int64_t wall_ns, uint64_t refusals) {
    helio_limit *limit = &instance->memory;
    const uint64_t args[4] = {
        atomic_load_explicit(&limit->account.refused_bytes, memory_order_relaxed),
        helio_account_used(&limit->account),
        limit->account.limit_bytes,
        refusals - limit->refusals_told,
    };
    limit->refusals_told = refusals;
    limit->told_ns = wall_ns;
    helio_stats_event(
        instance->stats, wall_ns, HELIO_EVENT_MEMORY_REFUSED, instance->object.slot, args,
        "%s: memory_limit of %" PRIu64 " bytes was exceeded %" PRIu64
        " times, the last time by a need of %" PRIu64 " bytes; %" PRIu64 " are in use",
        instance->name, args[2], args[3], args[0], args[1]);
}

void helio_limit_tend(helio_instance *instance, helio_moment moment) {
    helio_limit *limit = &instance->memory;
    show(instance);
    if (helio_mark_cross(&limit->mark, helio_account_used(&limit->account))) {
        tell_crossing(instance, moment.wall_ns);
    }
    const uint64_t refusals = atomic_load_explicit(&limit->account.refusals, memory_order_relaxed);
    helio_count(&instance->counts->memory_refusals, refusals - limit->refusals_counted);
    limit->refusals_counted = refusals;
    if (refusals != limit->refusals_told && moment.wall_ns - limit->told_ns >= HELIO_SECOND) {
        tell_refusals(instance, moment.wall_ns, refusals);
    }
}
