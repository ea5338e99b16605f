#include "send/pace.h"

#include "base/math.h"

enum { BRAKE_BURST_PART = 200 }; /* of a second */

static uint64_t cost_of(const helio_tx_pace *pace, size_t length) {
    const int64_t cost = (int64_t)length + pace->config.overhead;
    return cost > 0 ? (uint64_t)cost : 0;
}

static bool is_shared(const helio_tx_pace *pace) {
    return pace->config.share && helio_tx_limit_is_on(&pace->config.share->limit);
}

/* Repairs have their share of the stream's rate, or of the instance's when it has none. */
static void set_repairs(helio_tx_pace *pace, int64_t now_ns) {
    const helio_tx_limit *limit = helio_tx_limit_is_on(&pace->limit) || !is_shared(pace)
                                      ? &pace->limit
                                      : &pace->config.share->limit;
    const double share = pace->config.repair_share;
    const double rate = share * (double)limit->bucket.rate;
    const uint64_t depth = (uint64_t)(share * (double)(limit->burst - limit->reserve));
    helio_bucket_set_rate(&pace->repairs, rate > 0 && rate < 1 ? 1 : (uint64_t)rate, depth, now_ns);
}

static void end_wait(helio_tx_pace *pace, int64_t now_ns) {
    if (pace->wait == HELIO_ADMIT_GO) {
        return;
    }
    const int64_t waited_ns = now_ns - pace->waits_since_ns;
    pace->wait = HELIO_ADMIT_GO;
    helio_count(&pace->stats->rate_limited_time, (uint64_t)waited_ns);
    helio_record(pace->latency, waited_ns, 1);
}

static void note_limits(helio_tx_pace *pace, int64_t now_ns) {
    set_repairs(pace, now_ns);
    pace->is_on = helio_tx_pace_has_rate(pace) || pace->send_limit != UINT64_MAX;
    if (!pace->is_on) {
        end_wait(pace, now_ns);
    }
    helio_set(&pace->stats->rate_limit, pace->limit.bucket.rate);
}

void helio_tx_pace_init(helio_tx_pace *pace, const helio_tx_pace_config *config,
                        uint32_t packet_bytes, helio_tx_stream_stats *stats, helio_hdr *latency,
                        int64_t now_ns) {
    *pace = (helio_tx_pace){
        .config = *config, .send_limit = UINT64_MAX, .stats = stats, .latency = latency};
    if (!pace->config.copies) {
        pace->config.copies = 1;
    }
    if (pace->config.repair_share <= 0) {
        pace->config.repair_share = 1;
    }
    const uint64_t packet = pace->config.copies * cost_of(pace, packet_bytes);
    helio_tx_limit_init(&pace->limit, config->rate, config->burst, packet, now_ns);
    if (config->share) {
        helio_tx_limit_widen(&config->share->limit, packet, now_ns);
    }
    note_limits(pace, now_ns);
}

void helio_tx_pace_fini(helio_tx_pace *pace) {
    helio_tx_pace_on_close(pace);
    if (pace->config.share) {
        helio_tx_share_leave(pace->config.share, &pace->place);
    }
}

void helio_tx_pace_set_rate(helio_tx_pace *pace, uint64_t rate, int64_t now_ns) {
    helio_tx_limit_set_rate(&pace->limit, rate, now_ns);
    note_limits(pace, now_ns);
}

void helio_tx_pace_set_send_limit(helio_tx_pace *pace, uint64_t sequence) {
    if (pace->wait == HELIO_ADMIT_WINDOW && sequence > pace->send_limit) {
        pace->wait = HELIO_ADMIT_RATE; /* of which time tells: data is looked at again at once */
    }
    pace->send_limit = sequence;
    pace->is_on = helio_tx_pace_has_rate(pace) || sequence != UINT64_MAX;
}

/* ---- may it leave? ---- */

bool helio_tx_pace_has_rate(const helio_tx_pace *pace) {
    return helio_tx_limit_is_on(&pace->limit) || is_shared(pace);
}

bool helio_tx_pace_has_credit(helio_tx_pace *pace, int64_t now_ns) {
    return helio_tx_limit_takes(&pace->limit, now_ns) &&
           (!is_shared(pace) || helio_tx_limit_takes(&pace->config.share->limit, now_ns));
}

static helio_admission look(helio_tx_pace *pace, uint64_t sequence, bool is_behind,
                            int64_t now_ns) {
    if (sequence > pace->send_limit && !pace->is_limit_waived) {
        return HELIO_ADMIT_WINDOW;
    }
    if (!helio_tx_limit_takes(&pace->limit, now_ns)) {
        return HELIO_ADMIT_RATE;
    }
    if (is_behind) {
        return HELIO_ADMIT_REPAIRS;
    }
    if (is_shared(pace) && !helio_tx_share_takes(pace->config.share, &pace->place, now_ns)) {
        return HELIO_ADMIT_INSTANCE_RATE;
    }
    return HELIO_ADMIT_GO;
}

static void begin_wait(helio_tx_pace *pace, helio_admission wait, int64_t now_ns) {
    pace->was_limited = true;
    if (pace->wait == HELIO_ADMIT_GO) {
        pace->waits_since_ns = now_ns;
        helio_count(&pace->stats->rate_limited, 1);
    }
    pace->wait = wait;
}

helio_admission helio_tx_pace_admit(helio_tx_pace *pace, uint64_t sequence, bool is_behind,
                                    int64_t now_ns) {
    if (!pace->is_on) {
        end_wait(pace, now_ns);
        return HELIO_ADMIT_GO;
    }
    const helio_admission wait = look(pace, sequence, is_behind, now_ns);
    if (wait == HELIO_ADMIT_GO) {
        end_wait(pace, now_ns);
    } else {
        begin_wait(pace, wait, now_ns);
    }
    return wait;
}

void helio_tx_pace_brake_repairs(helio_tx_pace *pace, uint64_t rate, int64_t now_ns) {
    const uint64_t burst = rate / BRAKE_BURST_PART;
    helio_bucket_init(&pace->brake, rate, burst, now_ns);
}

bool helio_tx_pace_takes_repair(helio_tx_pace *pace, int64_t now_ns) {
    if (!pace->is_on && !helio_tx_pace_is_braked(pace)) {
        return true;
    }
    const bool takes = helio_bucket_has(&pace->brake, 0, now_ns) &&
                       (!pace->is_on || (helio_bucket_has(&pace->repairs, 0, now_ns) &&
                                         helio_tx_pace_has_credit(pace, now_ns)));
    if (!takes && !pace->repairs_wait) {
        helio_count(&pace->stats->repairs_deferred, 1);
    }
    pace->repairs_wait = !takes;
    return takes;
}

bool helio_tx_pace_takes_control(helio_tx_pace *pace, size_t length, int64_t now_ns) {
    if (!pace->is_on) {
        return true;
    }
    const uint64_t bytes = pace->config.copies * cost_of(pace, length);
    return helio_tx_limit_takes_control(&pace->limit, bytes, now_ns) &&
           (!is_shared(pace) ||
            helio_tx_limit_takes_control(&pace->config.share->limit, bytes, now_ns));
}

/* ---- when? ---- */

int64_t helio_tx_pace_credit_ns(const helio_tx_pace *pace) {
    const int64_t own_ns = helio_bucket_ready_ns(&pace->limit.bucket);
    return is_shared(pace)
               ? helio_max(own_ns, helio_bucket_ready_ns(&pace->config.share->limit.bucket))
               : own_ns;
}

int64_t helio_tx_pace_ready_ns(const helio_tx_pace *pace) {
    return pace->wait == HELIO_ADMIT_WINDOW ? HELIO_NEVER : helio_tx_pace_credit_ns(pace);
}

int64_t helio_tx_pace_repair_ready_ns(const helio_tx_pace *pace) {
    return helio_max(
        helio_bucket_ready_ns(&pace->brake),
        helio_max(helio_bucket_ready_ns(&pace->repairs), helio_tx_pace_credit_ns(pace)));
}

/* ---- it leaves ---- */

static void set_open(helio_tx_pace *pace, bool is_open) {
    if (pace->is_open == is_open) {
        return;
    }
    pace->is_open = is_open;
    const uint64_t bytes = is_open ? pace->limit.packet : -pace->limit.packet;
    pace->limit.open += bytes;
    if (pace->config.share) {
        pace->config.share->limit.open += bytes;
    }
}

void helio_tx_pace_on_open(helio_tx_pace *pace) {
    set_open(pace, true);
}

void helio_tx_pace_on_close(helio_tx_pace *pace) {
    set_open(pace, false);
}

void helio_tx_pace_charge(helio_tx_pace *pace, size_t length, uint32_t copies) {
    const uint64_t bytes = copies * cost_of(pace, length);
    pace->charged += bytes;
    helio_bucket_charge(&pace->limit.bucket, bytes);
    if (is_shared(pace)) {
        helio_tx_share_charge(pace->config.share, &pace->place, bytes);
    }
}

void helio_tx_pace_rest(helio_tx_pace *pace, int64_t now_ns) {
    end_wait(pace, now_ns);
    if (pace->config.share) {
        helio_tx_share_leave(pace->config.share, &pace->place);
    }
}

bool helio_tx_pace_was_limited(helio_tx_pace *pace) {
    const bool was = pace->was_limited;
    pace->was_limited = false;
    return was;
}
