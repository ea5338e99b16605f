#include "send/slow.h"

#include <inttypes.h>
#include <stdio.h>

#include "generated/options.h"
#include "receivers/action.h"
#include "send/parts.h"

#define MILLION 1e6

/* During a storm repairs take this share of the usual load, and at least a few packets a second. */
#define BRAKE_SHARE 0.25
enum { BRAKE_PACKETS = 20 };

enum { WHO_TEXT = HELIO_PGM_REPORT_NAME_MAX + HELIO_ADDRESS_TEXT + 8, WHY_TEXT = 96 };

int helio_tx_slow_init(helio_tx_slow *slow, const helio_tx_slow_config *config, uint32_t entries) {
    *slow = (helio_tx_slow){.config = *config, .paced = HELIO_RECEIVER_NONE};
    if (config->receivers.dwell_ns == 0) {
        return 0;
    }
    slow->config.receivers.capacity = entries;
    slow->config.receivers.enforces = config->mode == HELIO_SLOW_MODE_ENFORCE;
    slow->config.storm.enforces = config->storm_mode == HELIO_STORM_MODE_ENFORCE;
    helio_storm_init(&slow->storm, &slow->config.storm);
    const int error = helio_slow_receivers_init(&slow->receivers, &slow->config.receivers);
    slow->is_on = !error;
    return error;
}

void helio_tx_slow_fini(helio_tx_slow *slow) {
    helio_slow_receivers_fini(&slow->receivers);
    slow->is_on = false;
}

uint64_t helio_tx_slow_ceiling(const helio_tx_slow *slow) {
    return slow->is_on && slow->config.receivers.enforces ? slow->receivers.ceiling : 0;
}

static uint64_t millionths(double value) {
    return value > 0 ? (uint64_t)(value * MILLION) : 0;
}

static double seconds(int64_t ns) {
    return (double)ns / (double)HELIO_SECOND;
}

static uint64_t milliseconds(int64_t ns) {
    return ns > 0 ? (uint64_t)(ns / HELIO_MILLISECOND) : 0;
}

/* ---- events ---- */

static const char *who_is(const helio_tx_stream *stream, helio_receiver_index index, char *text) {
    const helio_receiver_entry *entry = &stream->repairer.receivers.entries[index];
    char address[HELIO_ADDRESS_TEXT];
    helio_address_format(&entry->address, address);
    snprintf(text, WHO_TEXT, "%s%s%s", entry->name, entry->name[0] ? " at " : "", address);
    return text;
}

/* The evidence in words.  The first word is the symptom, from which notices derive their reason
 * (send/notices.h).  The main facts come first, since a notice takes 40 bytes. */
static const char *evidence(const helio_slow_decision *decision, char *text) {
    const char *symptom = helio_symptom_name(decision->symptom);
    if (decision->symptom == HELIO_SYMPTOM_SILENCE) {
        snprintf(text, WHY_TEXT, "silence for %.3g s", decision->value);
    } else if (decision->symptom == HELIO_SYMPTOM_NAKS) {
        snprintf(text, WHY_TEXT, "naks %.4g/s over %.4g/s for %.3g s", decision->value,
                 decision->threshold, seconds(decision->lasted_ns));
    } else {
        snprintf(text, WHY_TEXT, "%s %.3g %% over %.3g %% for %.3g s", symptom,
                 100 * decision->value, 100 * decision->threshold, seconds(decision->lasted_ns));
    }
    return text;
}

/* The evidence that is left when an action ends. */
static const char *remains(const helio_slow_decision *decision, char *text) {
    const char *symptom = helio_symptom_name(decision->symptom);
    if (decision->symptom == HELIO_SYMPTOM_SILENCE) {
        snprintf(text, WHY_TEXT, "silence for %.3g s", decision->value);
    } else if (decision->symptom == HELIO_SYMPTOM_NAKS) {
        snprintf(text, WHY_TEXT, "naks at %.4g/s", decision->value);
    } else {
        snprintf(text, WHY_TEXT, "%s at %.3g %%", symptom, 100 * decision->value);
    }
    return text;
}

static const char *in_words(helio_action action) {
    static const char *const words[HELIO_ACTION_FORECAST] = {
        [HELIO_ACTION_NOTIFY] = "slow",
        [HELIO_ACTION_PACE] = "waited for",
        [HELIO_ACTION_SHED] = "repaired less",
        [HELIO_ACTION_SUSPEND_NAKS] = "not repaired",
        [HELIO_ACTION_SUSPEND] = "suspended",
        [HELIO_ACTION_EXPEL] = "expelled",
        [HELIO_ACTION_RECOVER] = "no longer slow",
        [HELIO_ACTION_RESUME] = "resumed",
        [HELIO_ACTION_READMIT] = "readmitted",
    };
    return words[action] ? words[action] : "";
}

static helio_event_id event_of(helio_action action) {
    switch (action) {
    case HELIO_ACTION_NOTIFY:
        return HELIO_EVENT_RECEIVER_SLOW;
    case HELIO_ACTION_PACE:
        return HELIO_EVENT_RECEIVER_PACED;
    case HELIO_ACTION_SHED:
    case HELIO_ACTION_SUSPEND_NAKS:
    case HELIO_ACTION_SUSPEND:
        return HELIO_EVENT_RECEIVER_SUSPENDED;
    case HELIO_ACTION_EXPEL:
        return HELIO_EVENT_RECEIVER_EXPELLED;
    case HELIO_ACTION_FORECAST:
        return HELIO_EVENT_RECEIVER_FORECAST;
    case HELIO_ACTION_SPARE:
    case HELIO_ACTION_NETWORK:
        return HELIO_EVENT_RECEIVER_SPARED;
    default:
        return HELIO_EVENT_RECEIVER_READMITTED;
    }
}

static void fill_arguments(const helio_slow_decision *decision, helio_event_id event,
                           uint64_t args[4]) {
    const uint64_t value = millionths(decision->value);
    args[0] = decision->receiver;
    args[1] = (uint64_t)decision->symptom;
    args[2] = value;
    args[3] = milliseconds(decision->duration_ns);
    switch (event) {
    case HELIO_EVENT_RECEIVER_SLOW:
        args[3] = millionths(decision->threshold);
        break;
    case HELIO_EVENT_RECEIVER_PACED:
        args[1] = decision->rate;
        args[2] = (uint64_t)decision->symptom;
        args[3] = value;
        break;
    case HELIO_EVENT_RECEIVER_SUSPENDED:
    case HELIO_EVENT_RECEIVER_ADVICE:
        args[1] = (uint64_t)decision->action;
        break;
    case HELIO_EVENT_RECEIVER_READMITTED:
        args[1] = (uint64_t)decision->action;
        args[2] = milliseconds(decision->lasted_ns);
        args[3] = 0;
        break;
    case HELIO_EVENT_RECEIVER_FORECAST:
        args[1] = milliseconds(decision->duration_ns);
        args[3] = 0;
        break;
    default:
        break;
    }
}

static void tell_group(helio_tx_stream *stream, const helio_slow_decision *decision,
                       helio_moment moment) {
    helio_stats_event(stream->stats, moment.wall_ns, HELIO_EVENT_RECEIVER_SPARED,
                      stream->object.slot, (const uint64_t[4]){0, 0, millionths(decision->value)},
                      "%s: %.3g %% of the receivers are in trouble: %s", stream->endpoint,
                      100 * decision->value, decision->why);
}

/* Reports a decision about a receiver.  In mode advise a decision with an action is reported as
 * advice. */
static void tell(helio_tx_stream *stream, const helio_slow_decision *decision,
                 helio_moment moment) {
    const helio_action action = decision->action;
    const bool is_advice = stream->slow.config.mode == HELIO_SLOW_MODE_ADVISE &&
                           action > HELIO_ACTION_NOTIFY && action < HELIO_ACTION_FORECAST &&
                           action != HELIO_ACTION_RECOVER;
    const helio_event_id event = is_advice ? HELIO_EVENT_RECEIVER_ADVICE : event_of(action);
    const helio_stats_object *entry = &stream->repairer.receivers.entries[decision->index].object;
    uint64_t args[4];
    char who[WHO_TEXT], why[WHY_TEXT], rest[WHY_TEXT] = "";
    fill_arguments(decision, event, args);
    who_is(stream, decision->index, who);
    if (action >= HELIO_ACTION_RECOVER && action <= HELIO_ACTION_READMIT) {
        remains(decision, why);
    } else {
        evidence(decision, why);
    }
    if (action == HELIO_ACTION_FORECAST) {
        helio_stats_event(stream->stats, moment.wall_ns, event, entry->slot, args,
                          "%s: receiver %s is %s, %.3g %% of the history behind; at the current "
                          "rate the packets it needs leave the history in %.3g s",
                          stream->endpoint, who, decision->why, 100 * decision->value,
                          seconds(decision->duration_ns));
        return;
    }
    if (action == HELIO_ACTION_SPARE) {
        snprintf(rest, sizeof rest, "slow and not isolated: %s", decision->why);
    } else if (action >= HELIO_ACTION_RECOVER) {
        snprintf(rest, sizeof rest, "%s after %.3g s", in_words(action),
                 seconds(decision->lasted_ns));
    } else if (action == HELIO_ACTION_PACE) {
        snprintf(rest, sizeof rest, "%s: no more than %" PRIu64 " bytes/s", in_words(action),
                 decision->rate);
    } else if (decision->duration_ns > 0) {
        snprintf(rest, sizeof rest, "%s for %g s", in_words(action),
                 seconds(decision->duration_ns));
    } else {
        snprintf(rest, sizeof rest, "%s", in_words(action));
    }
    helio_stats_event(stream->stats, moment.wall_ns, event, entry->slot, args,
                      "%s: receiver %s %s %s (%s; %s)", stream->endpoint, who,
                      is_advice ? "would be" : "is", rest, why, decision->why);
}

/* ---- actions ---- */

/* The action on the receiver itself. */
static helio_action action_on(const helio_slow_decision *decision) {
    if (decision->action == HELIO_ACTION_RECOVER) {
        return HELIO_ACTION_RESUME; /* from an action milder than a suspension, if one is in force */
    }
    return helio_action_is_on_one(decision->action) ? decision->action : HELIO_ACTION_NONE;
}

/* An action that has ended already, or that does not fit, is refused, and that is right. */
static void act(helio_tx_stream *stream, const helio_slow_decision *decision, helio_moment moment) {
    const helio_action action = action_on(decision);
    char why[WHY_TEXT];
    if (action == HELIO_ACTION_NONE) {
        return;
    }
    const bool is_back = decision->action >= HELIO_ACTION_RECOVER;
    helio_tx_stream_act(stream, decision->index, action, decision->duration_ns,
                        is_back ? decision->why : evidence(decision, why), false, moment);
}

static void carry_out(helio_tx_stream *stream, const helio_slow_decision *decision,
                      helio_moment moment) {
    helio_tx_stream_stats *stats = helio_tx_stats(stream);
    const int mode = stream->slow.config.mode;
    const size_t i = (size_t)decision->action - HELIO_ACTION_NOTIFY;
    helio_count(&(&stats->slow_decisions_notify)[i], 1);
    helio_tx_receiver_stats *cells =
        decision->index == HELIO_RECEIVER_NONE
            ? NULL
            : helio_receivers_stats(&stream->repairer.receivers, decision->index);
    if (cells && decision->action == HELIO_ACTION_SUSPEND) {
        helio_count(&cells->suspensions, 1);
    }
    if (mode == HELIO_SLOW_MODE_OBSERVE) {
        return;
    }
    helio_count(&(&stats->slow_actions_notify)[i], 1);
    if (decision->index == HELIO_RECEIVER_NONE) {
        tell_group(stream, decision, moment);
        return;
    }
    tell(stream, decision, moment);
    if (mode == HELIO_SLOW_MODE_ENFORCE) {
        act(stream, decision, moment);
    }
}

/* ---- statistics ---- */

static bool is_further_behind(const helio_slow_receiver *a, const helio_slow_receiver *b) {
    return a->watch.symptoms.value[HELIO_SYMPTOM_LAG] > b->watch.symptoms.value[HELIO_SYMPTOM_LAG];
}

static void show(helio_tx_stream *stream, const helio_interval *interval, helio_moment moment) {
    const helio_slow_receivers *receivers = &stream->slow.receivers;
    helio_tx_stream_stats *stats = helio_tx_stats(stream);
    helio_set(&stats->receivers_in_trouble, receivers->troubled);
    helio_set(&stats->receivers_isolated, receivers->isolated);
    helio_set(&stats->slow_rate_limit, helio_tx_slow_ceiling(&stream->slow));
    stream->slow.paced = HELIO_RECEIVER_NONE;
    for (helio_receiver_index index = 0;
         index < interval->receivers && index < receivers->config.capacity; index++) {
        const helio_slow_receiver *receiver = &receivers->receivers[index];
        helio_tx_receiver_stats *cells = helio_receivers_stats(&stream->repairer.receivers, index);
        if (!cells) {
            continue;
        }
        const uint32_t paced = stream->slow.paced;
        if (receiver->rung == HELIO_ACTION_PACE &&
            (paced == HELIO_RECEIVER_NONE ||
             is_further_behind(receiver, &receivers->receivers[paced]))) {
            stream->slow.paced = index;
        }
        const helio_watch *watch = &receiver->watch;
        const int64_t left_ns = watch->left_ns > 0 ? watch->left_ns : 1;
        const int64_t to_wall_ns = moment.wall_ns - interval->now_ns;
        helio_set(&cells->state, (uint64_t)watch->class);
        helio_set(&cells->state_since,
                  watch->class_ns ? (uint64_t)(to_wall_ns + watch->class_ns) : 0);
        helio_set(&cells->forecast_state, (uint64_t)watch->outlook);
        helio_set(&cells->forecast, watch->outlook == HELIO_OUTLOOK_AHEAD ? (uint64_t)left_ns : 0);
        helio_count(&cells->lost_certain, watch->gone_lately);
        helio_set(&cells->slow_since,
                  receiver->since_ns ? (uint64_t)(to_wall_ns + receiver->since_ns) : 0);
    }
}

/* ---- storms ---- */

/* After a cut-off all receivers request everything at once.  Unless repairs are sent slowly, they fill
 * the network again, and the storm continues. */
static void brake_repairs(helio_tx_stream *stream, bool is_on, int64_t now_ns) {
    const double usual = stream->slow.storm.usual;
    const uint64_t rate = usual > 0 ? (uint64_t)(usual * BRAKE_SHARE) : 0;
    const uint64_t least = BRAKE_PACKETS * (uint64_t)stream->config.max_packet_bytes;
    helio_tx_pace_brake_repairs(&stream->pace, !is_on ? 0 : rate > least ? rate : least, now_ns);
}

static void decide_storm(helio_tx_stream *stream, const helio_interval *interval,
                         helio_moment moment) {
    helio_tx_slow *slow = &stream->slow;
    helio_tx_stream_stats *stats = helio_tx_stats(stream);
    const helio_storm_decision decision =
        helio_storm_decide(&slow->storm, interval, slow->receivers.again);
    slow->storm_decision = decision;
    const int mode = slow->config.storm_mode;
    const bool tells = mode != HELIO_STORM_MODE_OBSERVE;
    helio_set(&stats->storm_active, slow->storm.is_active);
    if (decision.began) {
        slow->cut_offs = 0;
        helio_count(&stats->storms, 1);
    }
    if (decision.began && tells) {
        helio_stats_event(
            stream->stats, moment.wall_ns, HELIO_EVENT_STORM_DETECTED, stream->object.slot,
            (const uint64_t[4]){millionths(decision.repeats), millionths(decision.share),
                                millionths(decision.load), milliseconds(decision.cut_off_ns)},
            "%s: %.3g %% of all packets are requests and repairs, at %.3g %% of the usual load; "
            "%.3g %% of the requests are repeated; requests %s cut off for %g s",
            stream->endpoint, 100 * decision.share, 100 * decision.load, 100 * decision.repeats,
            mode == HELIO_STORM_MODE_ENFORCE ? "are" : "would be", seconds(decision.cut_off_ns));
    }
    if (decision.cut_off_ns > 0) {
        slow->cut_offs++;
        helio_count(&stats->cutoffs, 1);
        helio_count(&stats->cutoff_time, (uint64_t)decision.cut_off_ns);
        if (mode == HELIO_STORM_MODE_ENFORCE) {
            helio_tx_stream_cut_off(stream, decision.cut_off_ns, "storm of requests", false,
                                    moment);
        }
    }
    if (mode == HELIO_STORM_MODE_ENFORCE && (decision.began || decision.ended)) {
        brake_repairs(stream, decision.began, moment.now_ns);
    }
    if (decision.ended && tells) {
        helio_stats_event(stream->stats, moment.wall_ns, HELIO_EVENT_STORM_ENDED,
                          stream->object.slot,
                          (const uint64_t[4]){milliseconds(decision.lasted_ns), slow->cut_offs},
                          "%s: the storm of requests is over after %.3g s and %" PRIu32 " cut-offs",
                          stream->endpoint, seconds(decision.lasted_ns), slow->cut_offs);
    }
}

void helio_tx_slow_decide(helio_tx_stream *stream, const helio_interval *interval,
                          helio_receiver_view *views, helio_moment moment) {
    helio_tx_slow *slow = &stream->slow;
    if (!slow->is_on) {
        return;
    }
    helio_slow_receivers_decide(&slow->receivers, interval, views);
    for (uint32_t i = 0; i < slow->receivers.decisions_count; i++) {
        carry_out(stream, &slow->receivers.decisions[i], moment);
    }
    decide_storm(stream, interval, moment);
    show(stream, interval, moment);
}
