/* A source of a trial: an application offers messages at a rate, they wait in a queue as those of a
 * transmitter do, and the stream sends them as soon as it may. */
#include <math.h>
#include <stdlib.h>

#include <heliograph/errors.h>

#include "base/error.h"
#include "runtime/tx_lane.h"
#include "trial/parts.h"

enum { IP_AND_UDP_BYTES = 28, BURST = 64, STATS_BYTES = 8 << 20 };

static const uint8_t body[65536];

/* ---- the application ---- */

static int64_t until_next(helio_trial_source *source) {
    const double mean_ns = source->config.message_bytes / source->offered * 1e9;
    const double wait_ns =
        source->config.is_even ? mean_ns : -log(1 - helio_random_unit(&source->random)) * mean_ns;
    return wait_ns < 1 ? 1 : (int64_t)wait_ns;
}

static void offer(helio_trial_source *source, int64_t now_ns) {
    const uint64_t most = source->config.queue_bytes / source->config.message_bytes;
    while (source->next_ns <= now_ns) {
        source->offered_messages++;
        if (source->queued < most) {
            source->queued++;
        } else {
            source->refused_messages++;
        }
        source->next_ns += until_next(source);
    }
}

void helio_trial_source_offer(helio_trial_source *source, double offered) {
    const int64_t now_ns = helio_trial_now(source->trial).now_ns;
    source->offered = offered;
    const int64_t from_ns = now_ns > source->config.start_ns ? now_ns : source->config.start_ns;
    source->next_ns = offered > 0 ? from_ns + until_next(source) : HELIO_NEVER;
    helio_sim_wake(source->node);
}

/* ---- the stream ---- */

static bool may_send(helio_trial_source *source, helio_moment moment) {
    const uint32_t bytes = source->config.message_bytes;
    return helio_tx_stream_admit(source->stream, source->topic, bytes, moment) == HELIO_ADMIT_GO;
}

/* Sends what waits and may leave now. */
static void drain(helio_trial_source *source, helio_moment moment) {
    for (int i = 0; i < BURST && source->queued > 0 && may_send(source, moment); i++) {
        helio_tx_stream_append(source->stream, source->topic, body, source->config.message_bytes,
                               moment.wall_ns, moment);
        source->queued--;
        source->sent_messages++;
    }
    helio_tx_stream_flush(source->stream, moment);
    if (source->queued == 0) {
        helio_tx_stream_rest(source->stream, moment);
    }
}

/* The stream's outlet; its context is the source, which the stream asks things too. */
static int send(void *context, const helio_address *to, const void *packet, size_t length,
                bool stable) {
    const helio_trial_source *source = context;
    return source->outlet.send(source->outlet.context, to, packet, length, stable);
}

static uint64_t queued(void *context) {
    const helio_trial_source *source = context;
    return source->queued * source->config.message_bytes;
}

static void on_packet(void *context, const void *packet, size_t length, const helio_address *from,
                      helio_moment moment) {
    helio_trial_source *source = context;
    helio_tx_stream_on_packet(source->stream, packet, length, from, moment);
}

static void poll(void *context, helio_moment moment) {
    helio_trial_source *source = context;
    offer(source, moment.now_ns);
    drain(source, moment);
    if (moment.now_ns >= helio_tx_stream_next_deadline_ns(source->stream)) {
        helio_tx_stream_poll(source->stream, moment);
    }
}

static int64_t next_deadline_ns(void *context) {
    const helio_trial_source *source = context;
    const int64_t stream_ns = helio_tx_stream_next_deadline_ns(source->stream);
    int64_t own_ns = source->next_ns;
    if (source->queued > 0) {
        const int64_t ready_ns = helio_tx_stream_ready_ns(source->stream);
        own_ns = ready_ns < own_ns ? ready_ns : own_ns;
    }
    return stream_ns < own_ns ? stream_ns : own_ns;
}

/* ---- life ---- */

static int open_stream(helio_trial_source *source) {
    helio_trial *trial = source->trial;
    const helio_moment moment = helio_trial_now(trial);
    helio_tx_stream_config config = helio_tx_lane_config(&source->options);
    const uint16_t port = (uint16_t)(40000 + source->number);
    config.queued = queued;
    config.instance = "lab";
    config.endpoint = "sim://lab";
    config.tsi = (helio_tsi){{0xA1, 0xB2, 0xC3, 0xD4, 0xE5, (uint8_t)source->number}, port};
    config.address = helio_trial_address(1, (unsigned)source->number + 1, 0);
    config.group = helio_trial_group_address();
    config.destination_port = config.group.port;
    config.max_packet_bytes = source->options.stream.mtu - IP_AND_UDP_BYTES;
    config.has_checksums = false; /* this network damages nothing */
    config.seed = helio_random_next(&trial->random);
    source->outlet = helio_sim_outlet(source->node, &config.group);
    const helio_outlet outlet = {source, send};
    const int error = helio_tx_stream_create(&config, outlet, source->stats,
                                             source->instance.record, moment, &source->stream);
    if (error == HELIO_ERR_OPTION) {
        return helio_fail(error, "the engine refuses the options of source %d", source->number);
    }
    return error ? error
                 : helio_tx_stream_add_topic(source->stream, HELIO_TRIAL_TOPIC, moment,
                                             &source->topic);
}

static int open_node(helio_trial_source *source) {
    helio_trial *trial = source->trial;
    const helio_address address =
        helio_trial_address(1, (unsigned)source->number + 1, (uint16_t)(40000 + source->number));
    source->node = helio_sim_add_node(trial->sim, &address);
    if (!source->node) {
        return HELIO_ERR_NOMEM;
    }
    const helio_sim_link back = {.delay_ns = source->config.feedback_ns,
                                 .loss = source->config.feedback_loss};
    helio_sim_set_link(source->node, &back);
    if (source->config.pipe != HELIO_TRIAL_NONE) {
        helio_sim_set_uplink(source->node, trial->pipes[source->config.pipe]);
    }
    return 0;
}

/* Options of an instance are checked; nothing here follows them. */
static int check_instance(const char *text) {
    helio_instance_options options;
    int error = helio_options_init(&options, HELIO_ON_INSTANCE);
    if (!error) {
        error = helio_options_read(&options, HELIO_ON_INSTANCE, text, false);
        helio_options_fini(&options, HELIO_ON_INSTANCE);
    }
    return error;
}

static int read_options(helio_trial_source *source) {
    int error = helio_options_init(&source->options, HELIO_ON_TRANSMITTER);
    if (!error) {
        error = check_instance(source->config.instance);
    }
    if (!error) {
        error = helio_options_read(&source->options, HELIO_ON_TRANSMITTER, source->config.options,
                                   true);
    }
    if (!error) {
        error = helio_options_apply_profile(&source->options, HELIO_ON_TRANSMITTER);
    }
    source->config.options = source->config.instance = NULL; /* the caller's */
    return error;
}

static bool is_possible(const helio_trial_source_config *config) {
    return config->message_bytes > 0 && config->message_bytes <= sizeof body &&
           config->offered >= 0 && config->queue_bytes >= config->message_bytes;
}

int helio_trial_source_create(helio_trial *trial, const helio_trial_source_config *config,
                              helio_trial_source **out) {
    if (!is_possible(config)) {
        return helio_fail(HELIO_ERR_OPTION,
                          "a source's messages have 1 to %zu bytes, and its queue has room for one",
                          sizeof body);
    }
    helio_trial_source *source = calloc(1, sizeof *source);
    if (!source) {
        return HELIO_ERR_NOMEM;
    }
    source->trial = trial;
    source->number = trial->sources_count;
    source->config = *config;
    source->next_ns = HELIO_NEVER;
    helio_random_init(&source->random, helio_random_next(&trial->random));
    int error = read_options(source);
    if (!error) {
        error = helio_trial_open_stats(trial, STATS_BYTES, &source->stats, &source->instance);
    }
    if (!error) {
        error = open_node(source);
    }
    if (!error) {
        error = open_stream(source);
    }
    if (error) {
        helio_trial_source_destroy(source);
        return error;
    }
    helio_sim_attach(source->node, &(helio_sim_handler){source, on_packet, poll, next_deadline_ns});
    helio_trial_source_offer(source, config->offered);
    *out = source;
    return 0;
}

void helio_trial_source_destroy(helio_trial_source *source) {
    const helio_moment moment = helio_trial_now(source->trial);
    helio_tx_stream_destroy(source->stream, moment);
    if (source->stats) {
        helio_stats_close_object(source->stats, &source->instance, moment.wall_ns);
    }
    helio_stats_destroy(source->stats);
    helio_options_fini(&source->options, HELIO_ON_TRANSMITTER);
    free(source);
}
