#include "stream/rx_stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "base/bits.h"
#include "base/sequence.h"
#include "stream/rx_passing.h"

enum {
    LABELS_BYTES = 464,
    WINDOW_MIN = 16,
    POLL_ROUNDS = 16, /* most NAK packets sent by one poll */
    SPMRS_HEEDED = 3, /* SPMRs of others that put off ours: nobody can do so for ever */
    LOSS_SHIFT = 8,   /* a packet counts 1/256 in the share of packets missed */
    LOSS_RUN_MAX = 2048,
};

#define LOSS_ALL (UINT32_C(1) << 24)
#define SPMR_INTERVAL_NS (2 * HELIO_MILLISECOND)
#define SPMR_INTERVAL_MAX_NS HELIO_SECOND
#define BEGIN_WAIT_NS (100 * HELIO_MILLISECOND) /* for an SPM to say where history begins */
/* A receiver never claims more than this, so that its numbers can be told apart. */
#define CLAIM_MAX (UINT64_C(1) << 30)
#define WINDOW_LIMIT UINT32_C(0x7FFFFFFF)
#define NO_WINDOW_LEAD UINT32_C(0x80000000)

static helio_rx_stream_stats *stats_of(const helio_rx_stream *stream) {
    return stream->object.record;
}

/* ---- feedback ---- */

static void send_feedback(helio_rx_stream *stream, const helio_address *to, const void *packet,
                          size_t length) {
    const helio_rx_shared *shared = stream->shared;
    helio_count(&shared->instance->packets_sent, 1);
    helio_count(&shared->instance->packet_bytes_sent, length);
    shared->outlet.send(shared->outlet.context, to, packet, length, false);
}

static helio_pgm_session session_of(const helio_rx_stream *stream) {
    return (helio_pgm_session){stream->tsi, stream->shared->config.group.port};
}

/* ---- acknowledging ---- */

/* Only sources of our own make know what to do with it; they hear at their own port. */
static bool can_acknowledge(const helio_rx_stream *stream) {
    return stream->acks.is_on && stream->feedback.family != 0 &&
           (stream->shared->config.is_connected || stream->feedback.port == stream->tsi.port);
}

/* Which of the newest 32 packets are there. */
static uint32_t bitmap_of(const helio_rx_stream *stream) {
    const helio_rxw *rxw = &stream->rxw;
    uint32_t bitmap = 0;
    for (uint32_t i = 0; i < 32; i++) {
        const uint64_t sequence = stream->newest - i;
        const bool is_held = sequence >= rxw->trail && sequence <= rxw->lead &&
                             helio_rxw_slot_of(rxw, sequence)->state == HELIO_RXW_HELD;
        if (is_held || (sequence < rxw->trail && sequence >= stream->acks.first))
            bitmap |= UINT32_C(1) << i;
    }
    return bitmap;
}

static void send_ack(helio_rx_stream *stream, uint8_t flags) {
    helio_rx_acks *acks = &stream->acks;
    const helio_rx_shared *shared = stream->shared;
    const bool is_old = acks->position - acks->first >= CLAIM_MAX && acks->position >= acks->first;
    const helio_pgm_acknowledge acknowledge = {
        .kind = shared->subscriptions.acked_by_app ? HELIO_PGM_ACK_APPLICATION
                                                   : HELIO_PGM_ACK_TRANSPORT,
        .flags = flags,
        .receiver = shared->config.receiver,
        .incarnation = acks->incarnation,
        .first = (uint32_t)(is_old ? acks->position - CLAIM_MAX : acks->first),
        .position = (uint32_t)acks->position,
        .name = shared->config.instance,
        .name_bytes = strlen(shared->config.instance),
    };
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = session_of(stream);
    const size_t length = helio_pgm_encode_ack(packet, &session, (uint32_t)stream->newest,
                                               bitmap_of(stream), &acknowledge);
    helio_rx_acks_sent(acks);
    helio_rx_stream_stats *stats = stats_of(stream);
    helio_stats_begin(stats);
    helio_count(&stats->acks_sent, 1);
    helio_set(&stats->acked_position, acks->position);
    helio_stats_end(stats);
    send_feedback(stream, &stream->feedback, packet, length);
}

void helio_rx_advance_acks(helio_rx_stream *stream, helio_clock clock) {
    helio_rx_acks *acks = &stream->acks;
    if (!acks->is_on)
        return;
    uint64_t position = stream->rxw.trail - 1;
    const uint64_t oldest = helio_delivery_oldest_unacked(&stream->delivery);
    if (oldest <= position)
        position = oldest - 1;
    helio_rx_acks_advance(acks, position, clock.now_ns);
    helio_rx_acks_ask(acks, stream->delivery.asked, clock.now_ns);
}

/* The source is not to wait for this receiver any longer. */
static void stop_acking(helio_rx_stream *stream, helio_clock clock) {
    if (!stream->acks.is_on)
        return;
    helio_rx_advance_acks(stream, clock);
    if (can_acknowledge(stream))
        send_ack(stream, HELIO_PGM_ACK_LEAVING);
    helio_rx_acks_end(&stream->acks);
}

void helio_rx_stream_set_acking(helio_rx_stream *stream, helio_clock clock) {
    if (!helio_rx_is_acking(stream->shared)) {
        stop_acking(stream, clock);
    } else if (!stream->acks.is_on) {
        helio_nak_insist(&stream->nak);
        helio_rx_acks_begin(&stream->acks, stream->rxw.trail, (uint64_t)clock.wall_ns);
    }
}

/* ---- create, destroy ---- */

static uint32_t spm_window(const helio_pgm_packet *spm) {
    return spm->lead - spm->trail + 1;
}

/* The SPM tells a window. */
static bool has_window(const helio_pgm_packet *spm) {
    return !(spm->options & HELIO_PGM_HAS_NBR_UNREACH) && spm_window(spm) <= WINDOW_LIMIT &&
           !(spm->trail == 0 && spm->lead == NO_WINDOW_LEAD);
}

/* The oldest packet that may be asked for: what an SPM offers to those who come late, else what
 * comes next. */
static uint64_t offered_from(const helio_pgm_packet *spm) {
    const uint64_t lead = helio_sequence_start(spm->lead);
    if (!(spm->options & HELIO_PGM_HAS_JOIN) || !has_window(spm))
        return lead + 1;
    const uint64_t trail = lead + 1 - spm_window(spm);
    const uint64_t join = helio_sequence_widen(spm->join, lead);
    const uint64_t first = join > trail ? join : trail;
    return first <= lead ? first : lead + 1;
}

/* Where a receiver begins that wants more than what comes next: one that acknowledges, with the oldest
 * packet the source waits for. */
static uint64_t begins_at(const helio_rx_shared *shared, const helio_pgm_packet *spm) {
    const uint64_t next = helio_sequence_start(spm->lead) + 1;
    uint64_t first = shared->config.join_history ? offered_from(spm) : next;
    if (helio_rx_is_acking(shared) && (spm->options & HELIO_PGM_HAS_AWAIT) && has_window(spm)) {
        const uint64_t awaited = helio_sequence_widen(spm->awaited, next);
        if (awaited < first && next - awaited <= spm_window(spm))
            first = awaited;
    }
    return first;
}

static int open_object(helio_rx_stream *stream, const helio_address *from, helio_clock clock) {
    const helio_rx_shared *shared = stream->shared;
    char labels[LABELS_BYTES] = "", text[HELIO_ADDRESS_TEXT], tsi[HELIO_TSI_TEXT];
    helio_stats_label(labels, sizeof labels, "instance", shared->config.instance);
    helio_stats_label(labels, sizeof labels, "stream", helio_tsi_format(&stream->tsi, tsi));
    helio_stats_label(labels, sizeof labels, "endpoint", shared->config.endpoint);
    helio_stats_label(labels, sizeof labels, "source", helio_address_format(from, text));
    helio_stats_label(labels, sizeof labels, "feedback_address",
                      helio_address_format(&shared->config.feedback_address, text));
    return helio_stats_open_object(shared->stats, HELIO_SCOPE_RX_STREAM, labels, clock.wall_ns,
                                   &stream->object);
}

static size_t memory_of(const helio_rx_stream *stream) {
    return helio_rxw_memory(&stream->rxw) + helio_nak_memory(&stream->nak);
}

static int init_parts(helio_rx_stream *stream, uint64_t first, bool is_complete) {
    const helio_rx_endpoint_config *config = &stream->shared->config;
    const uint32_t wanted =
        config->window_packets < WINDOW_MIN ? WINDOW_MIN : config->window_packets;
    const uint64_t capacity = helio_round_up_power_of_two(wanted);
    const helio_nak_config nak = {
        .reorder_packets = config->reorder_packets,
        .reorder_ns = config->reorder_ns,
        .backoff_ns = config->nak_backoff_ns,
        .repeat_ns = config->nak_repeat_ns,
        .data_ns = config->nak_data_ns,
        .retries = config->nak_retries,
        .deadline_ns = config->nak_deadline_ns,
        .group_size = config->group_size,
        .is_alone = !stream->shared->is_group,
        .never_asks = config->never_asks,
    };
    int error = helio_rxw_init(&stream->rxw, capacity,
                               config->max_packet_bytes - HELIO_PGM_DATA_HEADER, first);
    if (!error)
        error = helio_nak_init(&stream->nak, capacity, &nak,
                               helio_random_next(&stream->shared->random));
    if (!error)
        error = helio_delivery_init(&stream->delivery, &stream->shared->subscriptions, &stream->tsi,
                                    is_complete);
    return error;
}

int helio_rx_stream_create(helio_rx_shared *shared, const helio_pgm_packet *packet,
                           const helio_address *from, helio_clock clock, helio_rx_stream **out) {
    helio_rx_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return HELIO_ERR_NOMEM;
    const bool is_spm = packet->type == HELIO_PGM_TYPE_SPM;
    const bool is_acking = helio_rx_is_acking(shared);
    const bool wants_history = shared->config.join_history || is_acking;
    const uint64_t first = !is_spm         ? helio_sequence_start(packet->sequence)
                           : wants_history ? begins_at(shared, packet)
                                           : helio_sequence_start(packet->lead) + 1;
    stream->shared = shared;
    stream->is_pacing = wants_history;
    stream->is_waiting = wants_history && !is_spm;
    stream->ask_from = first;
    stream->begin_by_ns = clock.now_ns + BEGIN_WAIT_NS;
    stream->tsi = packet->tsi;
    stream->source = *from;
    stream->newest = first - 1;
    stream->heard_ns = clock.now_ns;
    const uint64_t delay_ns = (uint64_t)shared->config.spmr_delay_ns;
    stream->spmr_interval_ns = SPMR_INTERVAL_NS;
    stream->spmr_due_ns = clock.now_ns + (int64_t)helio_random_below(&shared->random, delay_ns + 1);
    helio_polled_init(&stream->polled, shared->node);
    int error = init_parts(stream, first, is_spm && spm_window(packet) == 0);
    if (!error)
        error = open_object(stream, from, clock);
    if (error) {
        helio_delivery_fini(&stream->delivery, clock);
        helio_nak_fini(&stream->nak);
        helio_rxw_fini(&stream->rxw);
        free(stream);
        return error;
    }
    helio_count(&shared->instance->rx_streams, 1);
    helio_count(&shared->instance->memory_used, memory_of(stream));
    char tsi[HELIO_TSI_TEXT], text[HELIO_ADDRESS_TEXT];
    const uint64_t args[4] = {first};
    helio_stats_event(shared->stats, clock.wall_ns, HELIO_EVENT_STREAM_OPENED, stream->object.slot,
                      args, "stream %s of %s from packet %" PRIu64,
                      helio_tsi_format(&stream->tsi, tsi), helio_address_format(from, text), first);
    helio_rx_acks_init(&stream->acks, shared->config.ack_packets, shared->config.ack_interval_ns,
                       helio_random_next(&shared->random));
    helio_rx_stream_set_acking(stream, clock);
    *out = stream;
    return 0;
}

void helio_rx_stream_destroy(helio_rx_stream *stream, helio_clock clock) {
    helio_rx_shared *shared = stream->shared;
    stop_acking(stream, clock);
    helio_rx_set_blocked(stream, false);
    helio_delivery_fini(&stream->delivery, clock);
    helio_count(&shared->instance->rx_streams, (uint64_t)-1);
    helio_count(&shared->instance->memory_used, (uint64_t) - (int64_t)memory_of(stream));
    helio_nak_fini(&stream->nak);
    helio_rxw_fini(&stream->rxw);
    helio_stats_close_object(shared->stats, &stream->object, clock.wall_ns);
    free(stream);
}

/* ---- data ---- */

static void tell_trail(helio_rx_stream *stream, uint64_t trail, helio_clock clock) {
    if (trail > stream->told_trail)
        stream->told_trail = trail;
    helio_rx_advance_source(stream, trail, clock);
}

/* A packet came after `missed` that did not. */
static void measure_loss(helio_rx_stream *stream, uint64_t missed) {
    for (uint64_t i = 0; i < missed && i < LOSS_RUN_MAX; i++)
        stream->loss += (LOSS_ALL - stream->loss) >> LOSS_SHIFT;
    stream->loss -= stream->loss >> LOSS_SHIFT;
}

static void on_data(helio_rx_stream *stream, const helio_pgm_packet *packet, size_t bytes,
                    int64_t receive_ns, helio_clock clock) {
    helio_rx_stream_stats *stats = stats_of(stream);
    helio_count(&stats->packets_received, 1);
    helio_count(&stats->bytes_received, bytes);
    if (packet->sequence - packet->trail >= WINDOW_LIMIT) { /* no window is as large */
        helio_pgm_count_refusal(stream->shared->instance, HELIO_PGM_BAD_SIZE);
        return;
    }
    const uint64_t sequence = helio_sequence_widen(packet->sequence, stream->rxw.known);
    tell_trail(stream, helio_sequence_widen(packet->trail, sequence), clock);
    const bool is_newest = sequence > stream->newest;
    if (helio_rxw_look(&stream->rxw, sequence) == HELIO_RXW_DUPLICATE) {
        helio_count(&stats->duplicates, 1);
        return;
    }
    if (!is_newest && packet->type == HELIO_PGM_TYPE_ODATA)
        helio_count(&stats->out_of_order, 1);
    helio_rxw_packet held = {
        .tsdu = packet->tsdu,
        .bytes = packet->tsdu_bytes,
        .is_fragment = packet->options & HELIO_PGM_HAS_FRAGMENT,
        .lasts = stream->shared->config.data_lasts,
        .receive_ns = receive_ns,
        .arrival_ns = clock.now_ns,
    };
    if (held.is_fragment)
        held.fragment = packet->fragment;
    if (is_newest) {
        measure_loss(stream, sequence - stream->newest - 1);
        stream->newest = sequence;
    }
    helio_rx_take(stream, sequence, &held, clock);
    if (is_newest && stream->nak.outstanding > 0)
        helio_nak_on_newest(&stream->nak, sequence, clock.now_ns);
}

/* ---- SPM, NCF, NAK ---- */

/* Where to answer a packet that tells its path NLA (docs/wire.md 1): there; the port is the stream's
 * own when the packet came from it. */
static helio_address answer_to(const helio_rx_stream *stream, const helio_address *path,
                               const helio_address *from) {
    if (stream->shared->config.is_connected)
        return *from;
    const bool is_usable = path->family == from->family && !helio_address_is_unspecified(path) &&
                           !helio_address_is_multicast(path);
    helio_address to = is_usable ? *path : *from;
    to.port = from->port == stream->tsi.port ? stream->tsi.port : stream->shared->config.group.port;
    return to;
}

/* How long the source wants NAKs held back (15.2.2).  An interval found by a poll older than the
 * newest one heard is out of date. */
static void learn_backoff(helio_rx_stream *stream, const helio_pgm_packet *packet) {
    const helio_pgm_backoff *told = &packet->backoff;
    if (packet->options & HELIO_PGM_HAS_NAK_BO_RNG)
        helio_backoff_limit(&stream->nak.backoff, told->min_us * HELIO_MICROSECOND,
                            told->max_us * HELIO_MICROSECOND);
    if (!(packet->options & HELIO_PGM_HAS_NAK_BO_IVL))
        return;
    if (told->poll_sequence == 0 || !stream->polled.has_heard ||
        !helio_sequence_before(told->poll_sequence, stream->polled.sequence))
        helio_backoff_advise(&stream->nak.backoff, told->interval_us * HELIO_MICROSECOND);
}

static void learn_window(helio_rx_stream *stream, const helio_pgm_packet *spm, helio_clock clock) {
    helio_rxw *rxw = &stream->rxw;
    const uint64_t lead = helio_sequence_widen(spm->lead, rxw->known);
    const uint64_t window = spm_window(spm);
    tell_trail(stream, lead + 1 - window, clock);
    if (lead > stream->told_lead)
        stream->told_lead = lead;
    helio_rx_believe(stream, clock.now_ns);
    if (spm->options & HELIO_PGM_HAS_FIN) {
        stream->has_end = true;
        if (lead > stream->end)
            stream->end = lead;
    }
}

/* The stream that data was met of begins: where an SPM says, or with that data when none came. */
static void begin_with(helio_rx_stream *stream, const helio_pgm_packet *spm, helio_clock clock) {
    helio_rxw *rxw = &stream->rxw;
    stream->is_waiting = false;
    if (spm) {
        const uint64_t lead = helio_sequence_widen(spm->lead, rxw->known);
        const uint64_t first =
            lead - (helio_sequence_start(spm->lead) - begins_at(stream->shared, spm));
        if (first < rxw->trail) {
            helio_count(&stats_of(stream)->gaps_detected, rxw->trail - first);
            helio_rxw_go_back(rxw, first);
            stream->ask_from = first;
        }
    }
    if (stream->acks.is_on)
        helio_rx_acks_begin(&stream->acks, rxw->trail, stream->acks.incarnation);
    helio_rx_drain(stream, clock);
}

static void on_spm(helio_rx_stream *stream, const helio_pgm_packet *spm, const helio_address *from,
                   helio_clock clock) {
    helio_count(&stats_of(stream)->heartbeats_received, 1);
    helio_count(&stream->shared->instance->heartbeats_received, 1);
    if (stream->has_spm && !helio_sequence_before(stream->spm_sequence, spm->sequence))
        return;
    stream->has_spm = true;
    stream->spm_sequence = spm->sequence;
    /* Without a way to its parent the receiver is silent until an SPM says that there is one. */
    stream->is_unreachable = spm->options & HELIO_PGM_HAS_NBR_UNREACH;
    if (!stream->is_unreachable)
        stream->feedback = answer_to(stream, &spm->path, from);
    stream->report_fields = spm->options & HELIO_PGM_HAS_CRQST ? spm->report.fields : 0;
    learn_backoff(stream, spm);
    helio_rx_acks_repeat(&stream->acks, clock.now_ns);
    if (stream->is_waiting)
        begin_with(stream, spm, clock);
    if (has_window(spm))
        learn_window(stream, spm, clock);
    if (spm->options & HELIO_PGM_HAS_RST) {
        stream->has_end = true;
        stream->end = stream->rxw.lead;
        helio_rx_give_up(stream, HELIO_LOST_RESET, clock);
    }
}

static void on_poll(helio_rx_stream *stream, const helio_pgm_packet *poll,
                    const helio_address *from, int64_t now_ns) {
    helio_count(&stats_of(stream)->polls_received, 1);
    learn_backoff(stream, poll);
    helio_polled_on_poll(&stream->polled, poll->sequence, &poll->poll, &stream->shared->random,
                         now_ns);
    stream->poll_answer_to = answer_to(stream, &poll->path, from);
}

/* Another receiver asks for an SPM: all will hear it. */
static void on_spmr(helio_rx_stream *stream, int64_t now_ns) {
    if (stream->has_spm || stream->spmrs_heard >= SPMRS_HEEDED)
        return;
    stream->spmrs_heard++;
    const uint64_t delay_ns = (uint64_t)stream->shared->config.spmr_delay_ns;
    stream->spmr_due_ns = now_ns + stream->spmr_interval_ns +
                          (int64_t)helio_random_below(&stream->shared->random, delay_ns + 1);
}

typedef bool on_request(helio_nak *nak, uint64_t sequence, int64_t now_ns);

/* The source confirmed a request, or another receiver made one. */
static void on_requests(helio_rx_stream *stream, const helio_pgm_packet *packet, on_request *tell,
                        int64_t now_ns) {
    if (stream->nak.outstanding == 0 || (packet->flags & HELIO_PGM_FLAG_PARITY))
        return;
    const uint64_t first = helio_sequence_widen(packet->sequence, stream->rxw.known);
    uint64_t spared = tell(&stream->nak, first, now_ns);
    for (uint32_t i = 0; i < packet->list_count; i++)
        spared += tell(&stream->nak, helio_sequence_widen(packet->list[i], first), now_ns);
    helio_count(&stats_of(stream)->naks_suppressed, spared);
}

void helio_rx_stream_on_packet(helio_rx_stream *stream, const helio_pgm_packet *packet,
                               size_t bytes, const helio_address *from, int64_t receive_ns,
                               helio_clock clock) {
    helio_rx_stream_stats *stats = stats_of(stream);
    if (packet->type != HELIO_PGM_TYPE_NAK && packet->type != HELIO_PGM_TYPE_SPMR)
        stream->heard_ns = clock.now_ns;
    switch (packet->type) {
    case HELIO_PGM_TYPE_ODATA:
    case HELIO_PGM_TYPE_RDATA:
        on_data(stream, packet, bytes, receive_ns, clock);
        break;
    case HELIO_PGM_TYPE_SPM:
        on_spm(stream, packet, from, clock);
        break;
    case HELIO_PGM_TYPE_NCF:
        helio_count(&stats->nak_confirmations_received, 1);
        learn_backoff(stream, packet);
        on_requests(stream, packet, helio_nak_on_ncf, clock.now_ns);
        break;
    case HELIO_PGM_TYPE_NAK:
        on_requests(stream, packet, helio_nak_on_foreign_nak, clock.now_ns);
        break;
    case HELIO_PGM_TYPE_POLL:
        on_poll(stream, packet, from, clock.now_ns);
        break;
    case HELIO_PGM_TYPE_SPMR:
        on_spmr(stream, clock.now_ns);
        break;
    default:
        break;
    }
    if (stream->is_pacing) {
        helio_rx_believe(stream, clock.now_ns);
        helio_rx_pace(stream, clock.now_ns);
    }
    helio_rx_advance_acks(stream, clock);
    helio_stats_begin(stats);
    helio_set(&stats->last_activity, (uint64_t)clock.wall_ns);
    helio_rx_show_window(stream);
    helio_stats_end(stats);
}

/* ---- time ---- */

static void send_nak(helio_rx_stream *stream, const helio_nak_round *round) {
    uint32_t sequences[1 + HELIO_PGM_NAK_LIST_MAX];
    for (size_t i = 0; i < round->ask_count; i++)
        sequences[i] = (uint32_t)round->asks[i];
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = session_of(stream);
    const helio_rx_endpoint_config *config = &stream->shared->config;
    const helio_pgm_report report = {
        .fields = stream->report_fields,
        .reference = (uint32_t)stream->newest,
        .receiver_loss = (uint16_t)(((uint64_t)stream->loss * UINT16_MAX) / LOSS_ALL),
        .receiver = config->feedback_address,
    };
    const size_t length = helio_pgm_encode_nak_with(
        packet, &session, HELIO_PGM_TYPE_NAK, sequences, round->ask_count, &stream->source,
        &config->group, 0, report.fields ? &report : NULL);
    helio_rx_stream_stats *stats = stats_of(stream);
    helio_stats_begin(stats);
    helio_count(&stats->nak_packets_sent, 1);
    helio_count(&stats->naks_sent, round->ask_count);
    helio_count(&stats->naks_retried, round->retried);
    helio_count(&stats->congestion_reports_sent, report.fields != 0);
    helio_set(&stats->nak_backoff, (uint64_t)stream->nak.backoff.interval_ns);
    helio_stats_end(stats);
    helio_count(&stream->shared->instance->nak_packets_sent, 1);
    helio_count(&stream->shared->instance->naks_sent, round->ask_count);
    send_feedback(stream, &stream->feedback, packet, length);
}

/* Asks a source whose data came first to say where it is; the others in the group are told first,
 * so that they need not. */
static void send_spmr(helio_rx_stream *stream, helio_clock clock) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = session_of(stream);
    const size_t length = helio_pgm_encode_spmr(packet, &session);
    if (stream->shared->is_group)
        send_feedback(stream, &stream->shared->config.group, packet, length);
    helio_address to = stream->source;
    if (to.port != stream->tsi.port && !stream->shared->config.is_connected)
        to.port = stream->shared->config.group.port;
    helio_count(&stats_of(stream)->heartbeat_requests_sent, 1 + stream->shared->is_group);
    send_feedback(stream, &to, packet, length);
    stream->spmr_due_ns = clock.now_ns + stream->spmr_interval_ns;
    if (stream->spmr_interval_ns < SPMR_INTERVAL_MAX_NS)
        stream->spmr_interval_ns *= 2;
}

static void send_polr(helio_rx_stream *stream) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = session_of(stream);
    const size_t length =
        helio_pgm_encode_polr(packet, &session, stream->polled.sequence, stream->polled.round);
    helio_count(&stats_of(stream)->poll_responses_sent, 1);
    send_feedback(stream, &stream->poll_answer_to, packet, length);
}

int helio_rx_stream_poll(helio_rx_stream *stream, helio_clock clock) {
    int work = 0;
    if (stream->is_blocked) {
        helio_rx_drain(stream, clock);
        work += !stream->is_blocked;
    }
    if (!stream->has_spm && clock.now_ns >= stream->spmr_due_ns) {
        send_spmr(stream, clock);
        work++;
    }
    if (clock.now_ns >= helio_rx_acks_next_deadline_ns(&stream->acks) && can_acknowledge(stream)) {
        send_ack(stream, 0);
        work++;
    }
    if (stream->is_waiting && clock.now_ns >= stream->begin_by_ns) {
        begin_with(stream, NULL, clock);
        work++;
    }
    if (stream->is_pacing) {
        helio_rx_believe(stream, clock.now_ns);
        helio_rx_pace(stream, clock.now_ns);
    }
    if (helio_polled_answer(&stream->polled, clock.now_ns)) {
        send_polr(stream);
        work++;
    }
    helio_nak_round round;
    const bool can_ask = stream->feedback.family != 0 && !stream->is_unreachable;
    bool has_losses = false;
    for (int i = 0; i < POLL_ROUNDS && stream->nak.outstanding > 0 &&
                    helio_nak_poll(&stream->nak, can_ask, clock.now_ns, &round);
         i++) {
        if (round.ask_count > 0)
            send_nak(stream, &round);
        for (size_t k = 0; k < round.loss_count; k++)
            helio_rxw_lose(&stream->rxw, round.losses[k].sequence, round.losses[k].cause);
        has_losses |= round.loss_count > 0;
        work++;
    }
    if (has_losses && !stream->is_blocked)
        helio_rx_drain(stream, clock);
    if (has_losses)
        helio_rx_pace(stream, clock.now_ns);
    if (work > 0) {
        helio_rx_advance_acks(stream, clock);
        helio_rx_stream_stats *stats = stats_of(stream);
        helio_stats_begin(stats);
        helio_rx_show_window(stream);
        helio_stats_end(stats);
    }
    if (clock.now_ns - stream->heard_ns >= stream->shared->config.stream_expiry_ns)
        helio_rx_give_up(stream, HELIO_LOST_DEADLINE, clock);
    return work;
}

int64_t helio_rx_stream_next_deadline_ns(const helio_rx_stream *stream) {
    int64_t deadline_ns = helio_nak_next_deadline_ns(&stream->nak);
    if (!stream->has_spm && stream->spmr_due_ns < deadline_ns)
        deadline_ns = stream->spmr_due_ns;
    if (can_acknowledge(stream) && stream->acks.due_ns < deadline_ns)
        deadline_ns = stream->acks.due_ns;
    if (stream->is_waiting && stream->begin_by_ns < deadline_ns)
        deadline_ns = stream->begin_by_ns;
    if (stream->polled.due_ns < deadline_ns)
        deadline_ns = stream->polled.due_ns;
    const int64_t expiry_ns = stream->heard_ns + stream->shared->config.stream_expiry_ns;
    /* A stream that waits for room outlives its expiry; it has no deadline then. */
    if (!stream->is_blocked && expiry_ns < deadline_ns)
        deadline_ns = expiry_ns;
    return deadline_ns;
}

helio_rx_stream_state helio_rx_stream_state_of(const helio_rx_stream *stream, helio_clock clock) {
    const helio_rxw *rxw = &stream->rxw;
    if (stream->is_blocked || !helio_rxw_is_empty(rxw))
        return HELIO_RX_STREAM_OPEN;
    if (stream->has_end && rxw->trail > stream->end)
        return HELIO_RX_STREAM_CLOSED;
    return clock.now_ns - stream->heard_ns >= stream->shared->config.stream_expiry_ns
               ? HELIO_RX_STREAM_SILENT
               : HELIO_RX_STREAM_OPEN;
}
