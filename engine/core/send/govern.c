#include "send/govern.h"

#include <inttypes.h>
#include <stdlib.h>

#include <heliograph/errors.h>

#include "generated/options.h"
#include "send/parts.h"

/* A fall of the rate is reported, and a rise by this share of the rate reported last; no more often
 * than this. */
#define TELL_RISE 0.1
#define TELL_INTERVAL_NS (100 * HELIO_MILLISECOND)

/* The rate has left its floor above this many times the floor: it probes between two falls. */
enum { FLOOR_LEFT = 2 };

/* ---- the policy ---- */

static helio_rate_config config_of(helio_tx_stream *stream) {
    helio_rate_config config = stream->govern.config.rate;
    config.packet_bytes = stream->config.max_packet_bytes;
    config.entries = stream->repairer.receivers.capacity;
    return config;
}

/* Takes the policy; `rate` is in force. */
static int take_policy(helio_tx_stream *stream, const helio_rate_policy *policy, uint64_t rate,
                       helio_moment moment) {
    helio_tx_govern *govern = &stream->govern;
    const helio_rate_config config = config_of(stream);
    void *state = calloc(1, policy->state_bytes + config.entries * policy->receiver_bytes);
    if (!state) {
        return HELIO_ERR_NOMEM;
    }
    free(govern->state);
    govern->state = state;
    govern->policy = policy;
    policy->init(state, &config, rate, moment.now_ns);
    govern->decision = helio_rate_begin(policy, &config, rate);
    govern->at_floor_ns = 0;
    govern->is_floor_told = false;
    helio_tx_log_policy(stream, policy->name, rate, config.rate, moment.now_ns);
    helio_tx_follow_set_pgmcc(stream, policy == &helio_rate_pgmcc,
                              govern->config.mode == HELIO_RATE_MODE_ENFORCE, moment);
    return 0;
}

int helio_tx_govern_init(helio_tx_stream *stream, const helio_tx_govern_config *config,
                         helio_moment moment) {
    helio_tx_govern *govern = &stream->govern;
    *govern = (helio_tx_govern){
        .config = *config,
        .is_resting = true,
        .begun_ns = moment.now_ns,
        .tell_after_ns = moment.now_ns,
        .send_limit = HELIO_RATE_NO_SEQUENCE,
    };
    const helio_rate_policy *policy =
        config->policy ? helio_rate_policy_named(config->policy) : &helio_rate_none;
    if (!policy) {
        return HELIO_ERR_OPTION;
    }
    const uint64_t rate = policy == &helio_rate_none ? 0 : config->rate.rate;
    govern->rate = govern->told_rate = rate;
    return take_policy(stream, policy, rate, moment);
}

void helio_tx_govern_fini(helio_tx_govern *govern) {
    free(govern->state);
    govern->state = NULL;
}

/* The stream's rate: that of the policy, limited while the stream is paced for a slow receiver. */
static uint64_t rate_to_set(const helio_tx_stream *stream) {
    const helio_tx_govern *govern = &stream->govern;
    const bool is_decided =
        govern->policy->is_fixed || govern->config.mode == HELIO_RATE_MODE_ENFORCE;
    const uint64_t rate = is_decided ? govern->decision.rate : govern->config.rate.rate;
    const uint64_t ceiling = helio_tx_slow_ceiling(&stream->slow);
    return ceiling && (rate == 0 || ceiling < rate) ? ceiling : rate;
}

static void set(helio_tx_stream *stream, helio_moment moment) {
    helio_tx_govern *govern = &stream->govern;
    const uint64_t rate = rate_to_set(stream);
    if (rate != govern->rate) {
        govern->rate = rate;
        helio_tx_stream_set_rate(stream, rate, moment);
    }
    helio_tx_govern_limit(stream);
}

void helio_tx_govern_limit(helio_tx_stream *stream) {
    helio_tx_govern *govern = &stream->govern;
    const uint64_t followed = helio_tx_follow_send_limit(&stream->follow);
    uint64_t send_limit = govern->config.mode == HELIO_RATE_MODE_ENFORCE
                              ? govern->decision.send_limit
                              : HELIO_RATE_NO_SEQUENCE;
    send_limit = followed < send_limit ? followed : send_limit;
    if (send_limit != govern->send_limit) {
        govern->send_limit = send_limit;
        helio_tx_pace_set_send_limit(&stream->pace, send_limit);
    }
}

int helio_tx_stream_set_policy(helio_tx_stream *stream, const char *name, helio_moment moment) {
    helio_tx_govern *govern = &stream->govern;
    const helio_rate_policy *policy = helio_rate_policy_named(name);
    if (!policy) {
        return HELIO_ERR_OPTION;
    }
    const char *before = govern->policy->name;
    if (policy == &helio_rate_static && govern->config.rate.rate == 0) {
        govern->config.rate.rate = govern->rate; /* the limit found so far is kept */
    }
    const int error = take_policy(stream, policy, govern->rate, moment);
    if (error) {
        return error;
    }
    set(stream, moment);
    helio_stats_event(stream->stats, moment.wall_ns, HELIO_EVENT_RATE_POLICY_CHANGED,
                      stream->object.slot, (const uint64_t[4]){govern->rate},
                      "%s: rate policy %s instead of %s", stream->endpoint, name, before);
    return 0;
}

int helio_tx_stream_set_ceiling(helio_tx_stream *stream, uint64_t rate, helio_moment moment) {
    helio_tx_govern *govern = &stream->govern;
    const bool decides = !govern->policy->is_fixed || govern->policy == &helio_rate_pgmcc;
    const helio_rate_policy *policy = decides ? govern->policy
                                      : rate  ? &helio_rate_static
                                              : &helio_rate_none;
    if (rate > 0 && govern->config.rate.rate_min > rate) {
        return HELIO_ERR_OPTION;
    }
    govern->config.rate.rate = rate;
    const uint64_t now =
        rate > 0 && (govern->rate == 0 || govern->rate > rate) ? rate : govern->rate;
    const int error = take_policy(stream, policy, now, moment);
    if (!error) {
        set(stream, moment);
    }
    return error;
}

/* ---- events ---- */

/* "receiver NAME at ADDRESS ", or nothing. */
static const char *name_of(helio_tx_stream *stream, helio_receiver_index index, char *text,
                           size_t size) {
    char address[HELIO_ADDRESS_TEXT];
    text[0] = 0;
    if (index == HELIO_RECEIVER_NONE) {
        return text;
    }
    const helio_receiver_entry *entry = &stream->repairer.receivers.entries[index];
    snprintf(text, size, "receiver %s%s%s: ", entry->name, entry->name[0] ? " at " : "",
             helio_address_format(&entry->address, address));
    return text;
}

static uint64_t millionths(double share) {
    return (uint64_t)(share * 1e6 + 0.5);
}

static bool tells(const helio_tx_govern *govern) {
    return govern->config.mode != HELIO_RATE_MODE_OBSERVE;
}

static void tell_rate(helio_tx_stream *stream, helio_moment moment) {
    helio_tx_govern *govern = &stream->govern;
    const helio_rate_decision *decision = &govern->decision;
    const double from = (double)govern->told_rate, to = (double)decision->rate;
    if (to == from || moment.now_ns < govern->tell_after_ns ||
        (to > from && to < (1 + TELL_RISE) * from)) {
        return;
    }
    char receiver[HELIO_PGM_REPORT_NAME_MAX + HELIO_ADDRESS_TEXT + 32];
    const bool acts = govern->config.mode == HELIO_RATE_MODE_ENFORCE;
    const uint64_t args[4] = {govern->told_rate, decision->rate, millionths(decision->signal),
                              decision->worst};
    helio_stats_event(stream->stats, moment.wall_ns, HELIO_EVENT_RATE_CHANGED, stream->object.slot,
                      args,
                      "%s: the rate %s from %" PRIu64 " to %" PRIu64 " bytes/s; %s%s (%.3g %%)",
                      stream->endpoint, acts ? "goes" : "would go", args[0], args[1],
                      name_of(stream, decision->worst, receiver, sizeof receiver), decision->why,
                      100 * decision->signal);
    govern->told_rate = decision->rate;
    govern->tell_after_ns = moment.now_ns + TELL_INTERVAL_NS;
}

/* Measures for how long receivers have lost too much with the rate at its floor. */
static void watch_floor(helio_tx_stream *stream, helio_moment moment) {
    helio_tx_govern *govern = &stream->govern;
    const helio_rate_decision *decision = &govern->decision;
    if (decision->rate == 0 || decision->rate > FLOOR_LEFT * govern->config.rate.rate_min) {
        govern->at_floor_ns = 0;
        govern->is_floor_told = false;
        return;
    }
    if (govern->at_floor_ns == 0 && decision->rate <= govern->config.rate.rate_min) {
        govern->at_floor_ns = moment.now_ns;
    }
    const int64_t lasted_ns = moment.now_ns - govern->at_floor_ns;
    if (govern->at_floor_ns == 0 || govern->is_floor_told || govern->config.escalate_ns == 0 ||
        decision->state != HELIO_RATE_DECREASE || lasted_ns < govern->config.escalate_ns) {
        return;
    }
    govern->is_floor_told = true;
    if (!tells(govern)) {
        return;
    }
    char receiver[HELIO_PGM_REPORT_NAME_MAX + HELIO_ADDRESS_TEXT + 32];
    const uint64_t args[4] = {decision->rate, millionths(decision->signal), decision->worst,
                              (uint64_t)lasted_ns};
    helio_stats_event(
        stream->stats, moment.wall_ns, HELIO_EVENT_RATE_FLOOR, stream->object.slot, args,
        "%s: the rate is at its floor of %" PRIu64 " bytes/s for %.3g s; %s%s (%.3g %%)",
        stream->endpoint, args[0], (double)lasted_ns / 1e9,
        name_of(stream, decision->worst, receiver, sizeof receiver), decision->why,
        100 * decision->signal);
}

static void show(helio_tx_stream *stream) {
    const helio_rate_decision *decision = &stream->govern.decision;
    helio_tx_stream_stats *stats = helio_tx_stats(stream);
    helio_set(&stats->rate_decided, decision->rate);
    helio_set(&stats->rate_loss, millionths(decision->signal));
    helio_set(&stats->rate_state, decision->state);
    helio_count(&stats->rate_decreases, decision->state == HELIO_RATE_DECREASE);
    helio_count(&stats->rate_increases, decision->state == HELIO_RATE_INCREASE);
    helio_count(&stats->control_intervals, 1);
}

/* ---- intervals ---- */

static void begin(helio_tx_stream *stream, int64_t now_ns) {
    helio_tx_govern *govern = &stream->govern;
    govern->begun_ns = now_ns;
    govern->before = stream->traffic;
}

static uint64_t queued(const helio_tx_stream *stream) {
    return stream->config.queued ? stream->config.queued(stream->outlet.context) : 0;
}

static helio_interval gather(helio_tx_stream *stream, uint32_t entries, helio_moment moment) {
    helio_tx_govern *govern = &stream->govern;
    const helio_tx_traffic *now = &stream->traffic, *before = &govern->before;
    const bool was_limited = helio_tx_pace_was_limited(&stream->pace);
    const uint64_t waits = queued(stream);
    helio_interval interval = {
        .now_ns = moment.now_ns,
        .wall_ns = moment.wall_ns,
        .length_ns = moment.now_ns - govern->begun_ns,
        .receivers = entries,
        .packets_sent = now->packets - before->packets,
        .bytes_sent = now->bytes - before->bytes,
        .repair_packets = now->repair_packets - before->repair_packets,
        .repair_bytes = now->repair_bytes - before->repair_bytes,
        .naks = now->naks - before->naks,
        .rate = stream->pace.limit.bucket.rate,
        .queue_bytes = waits,
        .lead = stream->txw.lead,
        .trail = stream->txw.trail,
        .history_packets = stream->txw.limit_packets,
        .repairs_waiting = helio_repairer_waiting(&stream->repairer),
        .silence_ns = helio_tx_reports_silence_ns(&stream->reports),
    };
    const uint64_t offered = interval.bytes_sent + waits;
    interval.offered_bytes = offered > govern->queued_before ? offered - govern->queued_before : 0;
    govern->queued_before = waits;
    if (was_limited) {
        interval.flags |= HELIO_INTERVAL_LIMITED;
    } else if (interval.packets_sent == 0 && waits == 0) {
        interval.flags |= HELIO_INTERVAL_IDLE;
    }
    return interval;
}

/* The one place where policies get their input and where their decisions are carried out. */
static void decide(helio_tx_stream *stream, helio_moment moment) {
    helio_tx_govern *govern = &stream->govern;
    uint32_t entries;
    helio_receiver_view *views = helio_receivers_views(&stream->repairer.receivers, &entries);
    const helio_interval interval = gather(stream, entries, moment);

    helio_tx_log_interval(stream, &interval, views);
    govern->policy->decide(govern->state, &interval, views, &govern->decision);
    helio_tx_slow_decide(stream, &interval, views, moment);
    helio_tx_log_decisions(stream, moment);
    set(stream, moment);
    show(stream);
    watch_floor(stream, moment);
    if (tells(govern)) {
        tell_rate(stream, moment);
    }

    for (helio_receiver_index index = 0; index < entries; index++) {
        views[index].flags &= ~(uint32_t)HELIO_VIEW_NEWS;
    }
}

/* Data without feedback needs decisions too: on its rate, or on receivers that have fallen
 * silent, which all outputs show, whatever the mode. */
static bool minds_data(const helio_tx_stream *stream) {
    const helio_tx_slow *slow = &stream->slow;
    const helio_receivers *receivers = &stream->repairer.receivers;
    return !stream->govern.policy->is_fixed ||
           (slow->is_on && (slow->config.mode != HELIO_SLOW_MODE_OBSERVE ||
                            slow->config.storm_mode != HELIO_STORM_MODE_OBSERVE ||
                            receivers->count > receivers->vacant));
}

/* Something that needs decisions happened since the interval began. */
static bool stirs(const helio_tx_stream *stream) {
    const helio_tx_traffic *now = &stream->traffic, *before = &stream->govern.before;
    return now->feedback != before->feedback ||
           (minds_data(stream) && (now->packets != before->packets || stream->pace.was_limited));
}

void helio_tx_govern_poll(helio_tx_stream *stream, helio_moment moment) {
    helio_tx_govern *govern = &stream->govern;
    if (govern->config.interval_ns == 0) {
        return;
    }
    if (govern->is_resting) {
        if (stirs(stream)) {
            govern->is_resting = false;
            begin(stream, moment.now_ns);
        }
    } else if (moment.now_ns - govern->begun_ns >= govern->config.interval_ns) {
        govern->is_resting = !stirs(stream);
        decide(stream, moment);
        begin(stream, moment.now_ns);
    }
}

int64_t helio_tx_govern_next_deadline_ns(const helio_tx_stream *stream) {
    const helio_tx_govern *govern = &stream->govern;
    if (govern->config.interval_ns == 0) {
        return HELIO_NEVER;
    }
    if (!govern->is_resting) {
        return govern->begun_ns + govern->config.interval_ns;
    }
    return stirs(stream) ? 0 : HELIO_NEVER;
}
