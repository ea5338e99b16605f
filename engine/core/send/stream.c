#include "send/stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "base/math.h"
#include "base/memory.h"
#include "base/sequence.h"
#include "send/data_packet.h"
#include "window/size.h"

enum {
    RECEIVERS_DEFAULT = 1024,
    REPORT_RATE_DEFAULT = 1000,
    REPAIRS_MAX = 32, /* most repairs sent from one poll to the next */
    POLL_AGED = 1024, /* most packets dropped for their age by one poll */
};

#define OUTRUN_NS (20 * HELIO_MILLISECOND) /* in which who is behind asks again */

bool helio_tx_send_repair(helio_tx_stream *stream, helio_moment moment) {
    uint64_t sequence;
    if (!helio_repairer_has_work(&stream->repairer) ||
        !helio_tx_pace_takes_repair(&stream->pace, moment.now_ns) ||
        !helio_repairer_next(&stream->repairer, moment, &sequence)) {
        return false;
    }
    const uint64_t charged = stream->pace.charged;
    const helio_txw_slot *slot = helio_txw_slot_of(&stream->txw, sequence);
    uint8_t *packet = helio_txw_packet(&stream->txw, sequence);
    helio_pgm_make_repair(packet, (uint32_t)stream->txw.trail, slot->payload_sum);
    stream->traffic.repair_packets++;
    stream->traffic.repair_bytes += slot->length;
    helio_count(&stream->instance->repair_packets, 1);
    helio_count(&stream->instance->repair_bytes, slot->length);
    const helio_address *only =
        stream->is_group ? helio_repairer_only_receiver(&stream->repairer, sequence) : NULL;
    const uint64_t askers =
        stream->destinations_count ? helio_repairer_destinations(&stream->repairer, sequence) : 0;
    if (only) {
        helio_tx_send_to(stream, only, packet, slot->length, true);
    } else {
        helio_tx_send_to_askers(stream, askers, packet, slot->length, true);
    }
    helio_tx_pace_charge_repair(&stream->pace, stream->pace.charged - charged);
    helio_bucket_charge(&stream->pace.brake, slot->length);
    return true;
}

int helio_tx_send_repairs(helio_tx_stream *stream, helio_moment moment) {
    int sent = 0;
    while (stream->repairs_in_turn < REPAIRS_MAX && helio_tx_send_repair(stream, moment)) {
        stream->repairs_in_turn++;
        sent++;
    }
    return sent;
}

/* ---- create, destroy ---- */

static int open_object(helio_tx_stream *stream, helio_moment moment) {
    char labels[HELIO_STATS_LABELS_BYTES] = "", text[HELIO_ADDRESS_TEXT], tsi[HELIO_TSI_TEXT];
    helio_stats_label(labels, sizeof labels, "instance", stream->instance_name);
    helio_stats_label(labels, sizeof labels, "stream", helio_tsi_format(&stream->config.tsi, tsi));
    helio_stats_label(labels, sizeof labels, "endpoint", stream->endpoint);
    helio_address address = stream->config.address;
    address.port = stream->config.tsi.port;
    helio_stats_label(labels, sizeof labels, "address", helio_address_format(&address, text));
    const int error = helio_stats_open_plain_object(stream->stats, HELIO_SCOPE_TX_STREAM, labels,
                                                    moment.wall_ns, &stream->object);
    if (!error) {
        stream->object.without =
            stream->config.acks ? 0 : UINT32_C(1) << HELIO_TX_STREAM_STABILITY_LATENCY;
        helio_stats_open_histograms(stream->stats, &stream->object);
        helio_stats_apply(&stream->object,
                          (stream->config.acks ? HELIO_HAS_ACKS : 0u) |
                              (stream->config.poll_interval_ns ? HELIO_HAS_POLLS : 0u) |
                              (stream->is_group ? HELIO_HAS_GROUP : 0u));
    }
    return error;
}

static size_t memory_of(const helio_tx_stream *stream) {
    return helio_txw_memory(&stream->txw) + helio_tx_workspace_bytes(stream) +
           helio_tx_acks_memory(&stream->acks);
}

static bool is_valid(const helio_tx_stream_config *config) {
    return config->max_packet_bytes >= HELIO_PGM_PACKET_MIN &&
           config->max_packet_bytes <= HELIO_PGM_PACKET_MAX &&
           config->window_packets <= (UINT32_C(1) << 30) &&
           config->address.family == config->group.family &&
           (config->address.family == 4 || config->address.family == 6) &&
           config->destinations_count <= HELIO_TX_DESTINATIONS_MAX &&
           config->heartbeat_min_ns > 0 && config->ambient_interval_ns > 0 &&
           config->announce_interval_ns > 0;
}

static int init_parts(helio_tx_stream *stream, helio_moment moment) {
    const helio_tx_stream_config *config = &stream->config;
    int error = open_object(stream, moment);
    if (!error) {
        error = helio_tx_topics_init(&stream->topics);
    }
    const helio_txw_config history = {
        .packets = helio_window_packets(config->window_packets),
        .packet_bytes = config->max_packet_bytes,
        .bytes = config->history_bytes,
        .age_ns = config->history_ns,
        .first = helio_sequence_start(config->first_sequence),
    };
    if (!error) {
        error = helio_txw_init(&stream->txw, &history);
    }
    if (!error) {
        error = helio_tx_open_workspace(stream);
    }
    if (error) {
        return error;
    }
    helio_tx_pace_init(&stream->pace, &config->pace, config->max_packet_bytes,
                       helio_tx_stats(stream),
                       stream->object.histogram[HELIO_TX_STREAM_PACE_LATENCY], moment.now_ns);
    const helio_tx_acks_config acks = {
        .wanted = config->acks,
        .missing = config->acks_missing,
        .of_stores = config->acks_of_stores,
        .unstable = config->unstable,
        .warn_ns = config->acks_warn_ns,
        .expiry_ns = config->acker_expiry_ns,
        .silence_ns = 2 * config->ambient_interval_ns + HELIO_SECOND,
        .stats = stream->stats,
        .object = &stream->object,
        .label = stream->endpoint,
    };
    error = helio_tx_acks_init(&stream->acks, &acks, &stream->txw);
    if (error) {
        return error;
    }
    char tsi[HELIO_TSI_TEXT];
    const helio_repairer_config repairer = {
        .stats = stream->stats,
        .instance = stream->instance_name,
        .stream = helio_tsi_format(&config->tsi, tsi),
        .max_receivers = config->max_receivers ? config->max_receivers : RECEIVERS_DEFAULT,
        .receiver_bytes = sizeof(helio_tx_blamed),
        .linger_ns = config->repair_linger_ns,
        .fans_out = stream->destinations_count > 0,
        .limits = config->limits,
        .share = config->repair_budget,
        .sent = &stream->traffic.bytes,
        .destinations = stream->destinations,
        .destinations_count = stream->destinations_count,
        .refusals = {stream->stats, stream->instance, stream->object.slot, stream->endpoint},
    };
    error = helio_repairer_init(&stream->repairer, &repairer, &stream->txw, helio_tx_stats(stream));
    if (!error) {
        error = helio_tx_slow_init(&stream->slow, &config->slow, repairer.max_receivers);
    }
    if (!error) {
        error = helio_tx_history_init(&stream->history, &stream->txw, &stream->repairer,
                                      config->budget, config->history_dynamic, moment.now_ns);
    }
    if (!error) {
        helio_tx_blame_init(&stream->blame, moment.now_ns);
        helio_tx_follow_init(stream, &config->follow, moment);
    }
    if (!error) {
        error = helio_tx_log_init(stream, &config->log, moment);
    }
    if (!error) {
        error = helio_tx_govern_init(stream, &config->govern, moment);
    }
    if (error) {
        return error;
    }
    stream->history.account = config->account;
    const uint64_t memory = memory_of(stream);
    if (!helio_account_take(config->account, memory)) {
        return HELIO_ERR_NOMEM;
    }
    stream->memory = memory;
    helio_count(&stream->instance->memory_used, memory);
    return 0;
}

/* The history has other limits. */
static void show_limits(helio_tx_stream *stream) {
    helio_tx_stream_stats *stats = helio_tx_stats(stream);
    const size_t memory = memory_of(stream);
    helio_count(&stream->instance->memory_used, (uint64_t)memory - (uint64_t)stream->memory);
    helio_account_charge(stream->config.account, (uint64_t)memory - (uint64_t)stream->memory);
    stream->memory = memory;
    helio_stats_begin(stats);
    helio_set(&stats->history_limit_packets, stream->txw.limit_packets);
    helio_set(&stats->history_limit_bytes, stream->txw.limit_bytes);
    helio_tx_show_history(stream, stats);
    helio_stats_end(stats);
}

/* The longest message that the fast path takes; less than 0: it takes none. */
static int64_t longest_lone(const helio_tx_stream_config *config) {
    const int64_t fitting = (int64_t)config->max_packet_bytes - HELIO_PGM_DATA_HEADER -
                            HELIO_TSDU_HEADER - HELIO_TSDU_MESSAGE_HEADER;
    return config->is_raw || config->acks > 0 || config->awaits_credit
               ? -1
               : helio_min(helio_min(fitting, config->max_message_bytes), HELIO_TSDU_PLAIN_MAX);
}

int helio_tx_stream_create(const helio_tx_stream_config *config, helio_outlet outlet,
                           helio_stats *stats, helio_instance_stats *instance, helio_moment moment,
                           helio_tx_stream **out) {
    if (!is_valid(config)) {
        return HELIO_ERR_OPTION;
    }
    helio_tx_stream *stream = helio_allocate(sizeof *stream);
    if (!stream) {
        return HELIO_ERR_NOMEM;
    }
    stream->config = *config;
    stream->moment = moment;
    stream->outlet = outlet;
    stream->stats = stats;
    stream->instance = instance;
    stream->topics = (helio_tx_topics){
        .batcher = &stream->batcher,
        .stats = stats,
        .instance = instance,
        .tsi = &stream->config.tsi,
        .first_number = config->first_sequence,
        .is_raw = config->is_raw,
        .awaits_credit = config->awaits_credit,
    };
    helio_tx_notices_init(&stream->notices);
    stream->session = (helio_pgm_session){config->tsi, config->destination_port};
    helio_pgm_prepare_data(&stream->data_head, &stream->session);
    stream->is_group = helio_address_is_multicast(&config->group);
    if (config->destinations_count > 1) {
        stream->destinations_count = config->destinations_count;
        memcpy(stream->destinations, config->destinations,
               config->destinations_count * sizeof stream->destinations[0]);
    }
    stream->config.destinations = stream->destinations;
    stream->instance_name = strdup(config->instance ? config->instance : "");
    stream->endpoint = strdup(config->endpoint ? config->endpoint : "");
    stream->topics.instance_name = stream->instance_name;
    stream->topics.endpoint = stream->endpoint;
    const int error =
        stream->instance_name && stream->endpoint ? init_parts(stream, moment) : HELIO_ERR_NOMEM;
    helio_count(&instance->tx_streams, 1);
    if (error) {
        helio_tx_stream_destroy(stream, moment);
        return error;
    }
    show_limits(stream);
    const helio_packet_door door = helio_tx_packet_door(stream);
    helio_batcher_init(&stream->batcher, door, config->max_packet_bytes - HELIO_PGM_DATA_HEADER,
                       instance);
    stream->batcher.is_raw = config->is_raw;
    stream->batcher.sampler = helio_stats_sampler(stats);
    stream->lone_bytes = longest_lone(config);
    helio_heartbeat_init(&stream->heartbeat, config->heartbeat_min_ns, config->heartbeat_max_ns,
                         config->ambient_interval_ns, moment.now_ns);
    helio_polling_init(&stream->polling, config->poll_interval_ns, config->seed, moment.now_ns);
    helio_set(&helio_tx_stats(stream)->destinations,
              stream->destinations_count ? stream->destinations_count : 1);
    stream->announce_due_ns = moment.now_ns + config->announce_interval_ns;
    stream->answer_after_ns = moment.now_ns;
    stream->repairer.receivers.are_pinned = config->is_connected;
    helio_tx_reports_init(&stream->reports, config->report_interval_ns,
                          config->report_rate ? config->report_rate : REPORT_RATE_DEFAULT,
                          stream->txw.lead, moment.now_ns);
    stream->spm_sequence = config->first_spm_sequence;
    *out = stream;
    return 0;
}

void helio_tx_stream_destroy(helio_tx_stream *stream, helio_moment moment) {
    if (!stream) {
        return;
    }
    helio_uncount(&stream->instance->tx_streams, 1);
    helio_uncount(&stream->instance->memory_used, stream->memory);
    helio_account_give(stream->config.account, stream->memory);
    if (stream->object.record) {
        helio_batcher_count(&stream->batcher);
        helio_tx_show_data(stream);
    }
    helio_tx_history_fini(&stream->history);
    helio_tx_govern_fini(&stream->govern);
    helio_tx_log_fini(&stream->log);
    helio_tx_pace_fini(&stream->pace);
    helio_tx_topics_fini(&stream->topics, moment);
    helio_tx_notices_fini(&stream->notices);
    if (stream->repairer.entries) {
        helio_repairer_fini(&stream->repairer, moment);
    }
    helio_tx_slow_fini(&stream->slow);
    helio_tx_acks_fini(&stream->acks);
    helio_txw_fini(&stream->txw);
    helio_tx_close_workspace(stream);
    helio_stats_close_object(stream->stats, &stream->object, moment.wall_ns);
    free(stream->instance_name);
    free(stream->endpoint);
    free(stream);
}

/* ---- topics ---- */

int helio_tx_stream_add_topic(helio_tx_stream *stream, const char *name, helio_moment moment,
                              helio_tx_topic **out) {
    return stream->is_closed ? HELIO_ERR_CLOSED
                             : helio_tx_topics_add(&stream->topics, name, moment, out);
}

void helio_tx_stream_remove_topic(helio_tx_stream *stream, helio_tx_topic *topic,
                                  helio_moment moment) {
    helio_tx_topics_remove(&stream->topics, topic, moment);
}

/* ---- messages ---- */

/* The next batch asks receivers to acknowledge it at once, if it is time to ask. */
static void ask(helio_tx_stream *stream, helio_moment moment) {
    if (helio_tx_acks_should_ask(&stream->acks, moment.now_ns)) {
        stream->batcher.flags = HELIO_TSDU_FLAG_ASK;
        helio_tx_acks_on_asked(&stream->acks, moment.now_ns);
    }
}

static inline int append(helio_tx_stream *stream, helio_tx_topic *topic, const void *data,
                         size_t length, int64_t submit_ns, int64_t intended_ns,
                         helio_moment moment) {
    if (length > stream->config.max_message_bytes || (stream->config.is_raw && length == 0)) {
        return HELIO_ERR_SIZE;
    }
    if (stream->is_closed) {
        return HELIO_ERR_CLOSED;
    }
    if (length > stream->batcher.tsdu_bytes) { /* it is a burst of its own */
        ask(stream, moment);
    }
    stream->is_cutting = true;
    if (intended_ns) {
        helio_batcher_append_intended(&stream->batcher, &topic->position, data, length, submit_ns,
                                      intended_ns, moment);
    } else {
        helio_batcher_append(&stream->batcher, &topic->position, data, length, submit_ns, moment);
    }
    stream->is_cutting = stream->pace.is_limit_waived = false;
    stream->batcher.flags = 0;
    return 0;
}

int helio_tx_stream_append(helio_tx_stream *stream, helio_tx_topic *topic, const void *data,
                           size_t length, int64_t submit_ns, helio_moment moment) {
    return append(stream, topic, data, length, submit_ns, 0, moment);
}

int helio_tx_stream_append_intended(helio_tx_stream *stream, helio_tx_topic *topic,
                                    const void *data, size_t length, int64_t submit_ns,
                                    int64_t intended_ns, helio_moment moment) {
    return append(stream, topic, data, length, submit_ns, intended_ns, moment);
}

size_t helio_tx_stream_append_run(helio_tx_stream *stream, helio_tx_topic *topic,
                                  const helio_buffer *messages, size_t count, size_t longest,
                                  int64_t submit_ns, int64_t intended_ns, helio_moment moment) {
    if (stream->is_closed) {
        return 0;
    }
    return helio_batcher_append_run(&stream->batcher, &topic->position, messages,
                                    helio_tx_admit_run(stream, topic, count), longest, submit_ns,
                                    intended_ns, moment);
}

helio_hold *helio_tx_stream_hold(helio_tx_stream *stream) {
    return &stream->batcher.hold;
}

void helio_tx_stream_flush(helio_tx_stream *stream, helio_moment moment) {
    if (!stream->batcher.tsdu) {
        return;
    }
    ask(stream, moment);
    helio_batcher_flush(&stream->batcher, moment);
    stream->batcher.flags = 0;
}

/* ---- time ---- */

/* Packets grow too old also while nothing is sent. */
static void expire(helio_tx_stream *stream, int64_t now_ns) {
    const uint64_t trail = stream->txw.trail;
    helio_txw_expire(&stream->txw, now_ns, POLL_AGED);
    if (stream->txw.trail != trail) {
        helio_tx_show_data(stream);
    }
}

int helio_tx_stream_poll(helio_tx_stream *stream, helio_moment moment) {
    if (helio_tx_stream_is_finished(stream, moment) &&
        !helio_repairer_has_work(&stream->repairer)) {
        stream->has_finished = true;
    }
    if (stream->has_finished) {
        return 0;
    }
    stream->moment = moment;
    helio_tx_clock_see(&stream->clocks, moment);
    expire(stream, moment.now_ns);
    helio_tx_blame_look(stream, moment.now_ns);
    helio_tx_acks_poll(&stream->acks, moment);
    if (moment.now_ns >= helio_tx_actions_deadline_ns(stream)) {
        helio_tx_end_actions(stream, moment);
    }
    int sent = helio_tx_open(stream, moment.now_ns);
    helio_tx_tend_reports(stream, moment.now_ns);
    sent += helio_tx_tell(stream, moment);
    stream->repairs_in_turn = 0;
    sent += helio_tx_send_repairs(stream, moment);
    helio_tx_follow_poll(stream, moment);
    helio_tx_govern_poll(stream, moment);
    return sent;
}

uint64_t helio_tx_stream_pressing(const helio_tx_stream *stream) {
    return helio_tx_pace_has_rate(&stream->pace) || helio_tx_pace_is_braked(&stream->pace)
               ? 0
               : stream->repairer.pressing;
}

bool helio_tx_stream_is_outrunning(const helio_tx_stream *stream, int64_t now_ns) {
    return now_ns - stream->repairer.behind_ns < OUTRUN_NS;
}

void helio_tx_stream_tend(helio_tx_stream *stream, helio_moment moment) {
    const uint64_t before = stream->txw.limit_bytes;
    /* It comes and goes with the level of detail. */
    stream->pace.latency = stream->object.histogram[HELIO_TX_STREAM_PACE_LATENCY];
    if (!helio_tx_history_tend(&stream->history, moment.now_ns)) {
        return;
    }
    show_limits(stream);
    const uint64_t args[4] = {stream->txw.limit_packets, stream->txw.limit_bytes};
    helio_stats_event(stream->stats, moment.wall_ns, HELIO_EVENT_HISTORY_RESIZED,
                      stream->object.slot, args,
                      "the history %s to %" PRIu64 " packets and %" PRIu64 " bytes",
                      stream->txw.limit_bytes < before ? "shrank" : "grew", args[0], args[1]);
}

int64_t helio_tx_stream_next_deadline_ns(const helio_tx_stream *stream) {
    if (stream->has_finished) {
        return HELIO_NEVER;
    }
    if (!stream->has_opened) {
        return 0;
    }
    int64_t deadline_ns = helio_heartbeat_next_deadline_ns(&stream->heartbeat);
    if (helio_repairer_has_work(&stream->repairer)) {
        const int64_t repair_ns = helio_tx_pace_repair_ready_ns(&stream->pace);
        if (repair_ns < deadline_ns) {
            deadline_ns = repair_ns;
        }
    }
    const int64_t acks_ns = helio_tx_acks_next_deadline_ns(&stream->acks);
    if (acks_ns < deadline_ns) {
        deadline_ns = acks_ns;
    }
    const int64_t credit_ns = helio_tx_pace_credit_ns(&stream->pace);
    if (helio_tx_announces(stream) && helio_txw_has_room(&stream->txw)) {
        const int64_t announce_ns =
            stream->announce_due_ns > credit_ns ? stream->announce_due_ns : credit_ns;
        if (announce_ns < deadline_ns) {
            deadline_ns = announce_ns;
        }
    }
    const int64_t notice_ns =
        stream->notices.due_ns > credit_ns ? stream->notices.due_ns : credit_ns;
    if (notice_ns < deadline_ns) {
        deadline_ns = notice_ns;
    }
    const int64_t clock_ns = helio_tx_clock_due_ns(&stream->clocks);
    if (clock_ns < deadline_ns) {
        deadline_ns = clock_ns > credit_ns ? clock_ns : credit_ns;
    }
    const int64_t actions_ns = helio_tx_actions_deadline_ns(stream);
    if (actions_ns < deadline_ns) {
        deadline_ns = actions_ns;
    }
    const int64_t follow_ns = helio_tx_follow_next_deadline_ns(&stream->follow);
    if (follow_ns < deadline_ns) {
        deadline_ns = follow_ns;
    }
    const int64_t govern_ns = helio_tx_govern_next_deadline_ns(stream);
    if (govern_ns < deadline_ns) {
        deadline_ns = govern_ns;
    }
    if (stream->credit_waits > 0 && stream->tend_receivers_ns < deadline_ns) {
        deadline_ns = stream->tend_receivers_ns;
    }
    if (stream->polling.due_ns < deadline_ns) {
        deadline_ns = stream->polling.due_ns;
    }
    if (stream->reports.look_ns < deadline_ns) {
        deadline_ns = stream->reports.look_ns;
    }
    if (stream->is_closed && stream->finish_ns < deadline_ns) {
        deadline_ns = stream->finish_ns;
    }
    return deadline_ns;
}

bool helio_tx_stream_is_finished(const helio_tx_stream *stream, helio_moment moment) {
    return stream->is_closed && moment.now_ns >= stream->finish_ns;
}

/* ---- acknowledgements ---- */

size_t helio_tx_stream_longest(const helio_tx_stream *stream) {
    if (stream->config.acks == 0) {
        return stream->config.max_message_bytes;
    }
    const size_t part =
        stream->batcher.tsdu_bytes - (HELIO_PGM_FRAGMENT_HEADER - HELIO_PGM_DATA_HEADER);
    const uint64_t packets = helio_tx_acks_capacity(&stream->acks) - 1; /* another may be open */
    const uint64_t bytes = packets * part - HELIO_TSDU_HEADER - HELIO_TSDU_EXTENDED_HEADER;
    return bytes < stream->config.max_message_bytes ? bytes : stream->config.max_message_bytes;
}

bool helio_tx_stream_is_stable(const helio_tx_stream *stream, uint64_t sequence) {
    return helio_tx_acks_is_stable(&stream->acks, sequence);
}

bool helio_tx_stream_has_sent(const helio_tx_stream *stream, const helio_tx_topic *topic,
                              uint64_t number, uint64_t *sequence) {
    return helio_tx_acks_has_sent(&stream->acks, topic, number, sequence);
}

void helio_tx_stream_release(helio_tx_stream *stream, helio_moment moment) {
    helio_tx_acks_let_go(&stream->acks, stream->txw.lead, moment);
}

uint64_t helio_tx_stream_newest(const helio_tx_topic *topic) {
    return topic->newest;
}

/* ---- rate ---- */

bool helio_tx_stream_is_paced(const helio_tx_stream *stream) {
    return stream->pace.is_on;
}

int64_t helio_tx_stream_ready_ns(const helio_tx_stream *stream) {
    return helio_tx_pace_ready_ns(&stream->pace);
}

void helio_tx_stream_rest(helio_tx_stream *stream, helio_moment moment) {
    helio_tx_pace_rest(&stream->pace, moment.now_ns);
}

void helio_tx_stream_set_rate(helio_tx_stream *stream, uint64_t bytes_per_s, helio_moment moment) {
    helio_tx_pace_set_rate(&stream->pace, bytes_per_s, moment.now_ns);
}

helio_tx_pace *helio_tx_stream_pace(helio_tx_stream *stream) {
    return &stream->pace;
}

/* ---- looking ---- */

uint64_t helio_tx_stream_lead(const helio_tx_stream *stream) {
    return stream->txw.lead;
}

size_t helio_tx_stream_log_used(const helio_tx_stream *stream) {
    return helio_tx_log_used(&stream->log);
}

const helio_tsi *helio_tx_stream_tsi(const helio_tx_stream *stream) {
    return &stream->config.tsi;
}

helio_stats_object *helio_tx_stream_object(helio_tx_stream *stream) {
    return &stream->object;
}

void helio_tx_stream_note_unsent(helio_tx_stream *stream, uint64_t packets) {
    helio_set(&helio_tx_stats(stream)->packets_unsent, packets);
}

helio_topic_books *helio_tx_topic_books(helio_tx_topic *topic) {
    return &topic->position.books;
}

uint64_t helio_tx_stream_open_messages(const helio_tx_stream *stream, const helio_tx_topic *topic) {
    return helio_batcher_waiting(&stream->batcher, &topic->position);
}

helio_stats_object *helio_tx_topic_object(helio_tx_topic *topic) {
    return &topic->object;
}

helio_hold *helio_tx_topic_hold(helio_tx_topic *topic) {
    return &topic->position.hold;
}
