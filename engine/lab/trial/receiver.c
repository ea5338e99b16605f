/* Receivers of a trial: an endpoint each, a bounded queue, and an application that takes messages
 * at its own pace.  When the queue is full the sink has no room, as with a receiver of the
 * engine. */
#include <stdlib.h>

#include <heliograph/errors.h>

#include "base/error.h"
#include "runtime/rx_lane.h"
#include "trial/parts.h"

enum { IP_AND_UDP_BYTES = 28, STATS_BYTES = 16 << 20, MESSAGE_COST = 32 };

/* ---- the application ---- */

static int64_t take_ns(const helio_trial_group *group) {
    return group->drain > 0 ? (int64_t)(1e9 / group->drain) : HELIO_NEVER;
}

static void plan(helio_trial_receiver *receiver, int64_t from_ns) {
    const int64_t every_ns = take_ns(receiver->group);
    receiver->next_ns =
        receiver->queued > 0 && every_ns != HELIO_NEVER ? from_ns + every_ns : HELIO_NEVER;
}

static void take(helio_trial_receiver *receiver, int64_t now_ns) {
    while (receiver->next_ns <= now_ns) {
        const uint64_t bytes = receiver->queued_bytes / receiver->queued;
        receiver->queued--;
        receiver->queued_bytes -= bytes;
        receiver->group->taken_messages++;
        plan(receiver, receiver->next_ns);
    }
}

static size_t on_messages(void *context, const helio_message *messages, size_t count) {
    helio_trial_receiver *receiver = context;
    helio_trial_group *group = receiver->group;
    const helio_moment moment = helio_trial_now(group->trial);
    size_t taken = 0;
    for (; taken < count; taken++) {
        const uint64_t bytes = messages[taken].length + MESSAGE_COST;
        if (group->drain >= 0) {
            if (receiver->queued_bytes + bytes > group->config.queue_bytes) {
                break;
            }
            receiver->queued++;
            receiver->queued_bytes += bytes;
            receiver->given_bytes += bytes;
        } else {
            group->taken_messages++;
        }
        const int64_t way_ns = moment.wall_ns - messages[taken].submit_ns;
        group->latest_ns = way_ns > group->latest_ns ? way_ns : group->latest_ns;
    }
    receiver->delivered += taken;
    if (receiver->next_ns == HELIO_NEVER) {
        plan(receiver, moment.now_ns);
    }
    return taken;
}

static void read_gauge(void *context, helio_sink_gauge *out) {
    const helio_trial_receiver *receiver = context;
    *out = (helio_sink_gauge){
        .used_bytes = receiver->queued_bytes,
        .limit_bytes = receiver->group->config.queue_bytes,
        .given_bytes = receiver->given_bytes,
    };
}

static void on_loss(void *context, const helio_loss *loss) {
    helio_trial_receiver *receiver = context;
    receiver->lost += loss->count;
    if (receiver->first_lost_ns == HELIO_NEVER) {
        receiver->first_lost_ns = helio_trial_now(receiver->group->trial).now_ns;
    }
}

/* ---- the endpoint ---- */

static void on_packet(void *context, const void *packet, size_t length, const helio_address *from,
                      helio_moment moment) {
    helio_trial_receiver *receiver = context;
    if (receiver->endpoint) {
        helio_rx_endpoint_on_packet(receiver->endpoint, packet, length, from, moment.wall_ns,
                                    moment);
    }
}

static void poll(void *context, helio_moment moment) {
    helio_trial_receiver *receiver = context;
    if (!receiver->endpoint) {
        return;
    }
    take(receiver, moment.now_ns);
    helio_rx_endpoint_poll(receiver->endpoint, moment);
}

static int64_t next_deadline_ns(void *context) {
    const helio_trial_receiver *receiver = context;
    if (!receiver->endpoint) {
        return HELIO_NEVER;
    }
    const int64_t endpoint_ns = helio_rx_endpoint_next_deadline_ns(receiver->endpoint);
    return endpoint_ns < receiver->next_ns ? endpoint_ns : receiver->next_ns;
}

static int open_endpoint(helio_trial_receiver *receiver) {
    helio_trial_group *group = receiver->group;
    const helio_moment moment = helio_trial_now(group->trial);
    helio_rx_endpoint_config config;
    int error = helio_rx_lane_config(&group->options, &config);
    if (error) {
        return error;
    }
    const helio_address destination = helio_trial_group_address();
    config.instance = "lab";
    config.endpoint = "sim://lab";
    config.group = destination;
    config.feedback_address = helio_trial_address(2, (unsigned)receiver->id, 50000);
    config.max_packet_bytes = group->options.stream.mtu - IP_AND_UDP_BYTES;
    config.receiver = receiver->id;
    config.seed = helio_random_next(&group->trial->random);
    const helio_outlet outlet = helio_sim_outlet(receiver->node, &destination);
    error = helio_rx_endpoint_create(&config, outlet, group->stats, group->instance.record,
                                     &receiver->endpoint);
    helio_subscription *subscription;
    const helio_sink sink = {.context = receiver,
                             .on_messages = on_messages,
                             .on_loss = on_loss,
                             .read_gauge = group->config.drain >= 0 ? read_gauge : NULL};
    return error ? error
                 : helio_rx_endpoint_subscribe(receiver->endpoint, HELIO_TRIAL_TOPIC, &sink, moment,
                                               &subscription);
}

void helio_trial_group_join(helio_trial_group *group) {
    for (uint32_t i = 0; i < group->config.count; i++) {
        if (open_endpoint(&group->receivers[i]) == 0) {
            helio_sim_wake(group->receivers[i].node);
        }
    }
}

void helio_trial_group_leave(helio_trial_group *group) {
    for (uint32_t i = 0; i < group->config.count; i++) {
        helio_trial_receiver *receiver = &group->receivers[i];
        helio_rx_endpoint_destroy(receiver->endpoint, helio_trial_now(group->trial));
        receiver->endpoint = NULL;
        receiver->next_ns = HELIO_NEVER;
    }
}

void helio_trial_group_changed(helio_trial_group *group) {
    const helio_moment moment = helio_trial_now(group->trial);
    for (uint32_t i = 0; i < group->config.count; i++) {
        helio_trial_receiver *receiver = &group->receivers[i];
        helio_sim_set_link(receiver->node, &group->link);
        if (group->drain < 0) { /* whatever waited is taken */
            group->taken_messages += receiver->queued;
            receiver->queued = receiver->queued_bytes = 0;
        }
        plan(receiver, moment.now_ns);
        helio_sim_wake(receiver->node);
    }
}

/* ---- life ---- */

static int add_node(helio_trial_receiver *receiver) {
    helio_trial_group *group = receiver->group;
    helio_trial *trial = group->trial;
    const helio_address address = helio_trial_address(2, (unsigned)receiver->id, 50000);
    const helio_address destination = helio_trial_group_address();
    receiver->node = helio_sim_add_node(trial->sim, &address);
    if (!receiver->node) {
        return HELIO_ERR_NOMEM;
    }
    helio_sim_join(receiver->node, &destination);
    helio_sim_set_link(receiver->node, &group->link);
    if (group->config.access.rate > 0) {
        helio_sim_pipe *pipe = helio_sim_add_pipe(trial->sim, &group->config.access);
        if (!pipe) {
            return HELIO_ERR_NOMEM;
        }
        helio_sim_set_downlink(receiver->node, pipe);
    }
    helio_sim_attach(receiver->node,
                     &(helio_sim_handler){receiver, on_packet, poll, next_deadline_ns});
    return 0;
}

static int add_receivers(helio_trial_group *group, uint64_t first_id) {
    group->receivers = calloc(group->config.count, sizeof *group->receivers);
    if (!group->receivers) {
        return HELIO_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < group->config.count; i++) {
        helio_trial_receiver *receiver = &group->receivers[i];
        *receiver = (helio_trial_receiver){.group = group,
                                           .id = first_id + i,
                                           .next_ns = HELIO_NEVER,
                                           .first_lost_ns = HELIO_NEVER};
        const int error = add_node(receiver);
        if (error) {
            return error;
        }
    }
    return 0;
}

static int read_options(helio_trial_group *group) {
    int error = helio_options_init(&group->options, HELIO_ON_RECEIVER);
    if (!error) {
        error = helio_options_read(&group->options, HELIO_ON_RECEIVER, group->config.options, true);
    }
    if (!error) {
        error = helio_options_apply_profile(&group->options, HELIO_ON_RECEIVER);
    }
    group->config.options = NULL; /* the caller's */
    helio_rx_endpoint_config config;
    return error ? error : helio_rx_lane_config(&group->options, &config);
}

int helio_trial_group_create(helio_trial *trial, const helio_trial_group_config *config,
                             helio_trial_group **out) {
    const uint64_t first_id = helio_trial_receivers(trial) + 1;
    if (config->count < 1 || first_id + config->count > 65000) {
        return helio_fail(HELIO_ERR_OPTION, "a trial has 1 to 65000 receivers");
    }
    helio_trial_group *group = calloc(1, sizeof *group);
    if (!group) {
        return HELIO_ERR_NOMEM;
    }
    group->trial = trial;
    group->number = trial->groups_count;
    group->config = *config;
    group->drain = config->drain;
    group->link = (helio_sim_link){.loss = config->loss,
                                   .burst_begin = config->burst_begin,
                                   .burst_end = config->burst_end,
                                   .burst_loss = config->burst_loss,
                                   .delay_ns = config->delay_ns,
                                   .jitter_ns = config->jitter_ns};
    int error = read_options(group);
    if (!error) {
        error = helio_trial_open_stats(trial, STATS_BYTES, &group->stats, &group->instance);
    }
    if (!error) {
        error = add_receivers(group, first_id);
    }
    if (error) {
        helio_trial_group_destroy(group);
        return error;
    }
    *out = group;
    return 0;
}

void helio_trial_group_destroy(helio_trial_group *group) {
    if (group->receivers) {
        helio_trial_group_leave(group);
    }
    free(group->receivers);
    if (group->stats) {
        helio_stats_close_object(group->stats, &group->instance,
                                 helio_trial_now(group->trial).wall_ns);
    }
    helio_stats_destroy(group->stats);
    helio_options_fini(&group->options, HELIO_ON_RECEIVER);
    free(group);
}
