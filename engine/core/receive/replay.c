#include "receive/replay.h"

#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "base/sequence.h"
#include "receive/passing.h"
#include "wire/tsdu.h"

enum {
    PROBES = 48,        /* packets asked for by one round of the search */
    SEARCH_ENOUGH = 96, /* packets: no search for less */
    ROUNDS_MAX = 5,
    TRIES_MAX = 6,      /* NAKs of one round */
    GIVEN_AT_ONCE = 32, /* messages handed to the sink by one call */
    WINDOW = 1024,
    STATS_BYTES = 1 << 20,
};

#define TRY_NS (5 * HELIO_MILLISECOND) /* time for a round's repairs to come; doubles each try */

struct helio_replay {
    helio_replay *next; /* of the endpoint */
    helio_sink sink;
    uint64_t topic_id;
    uint64_t expected; /* the number the sink hears of next */
    uint64_t last;
    bool has_ended; /* the sink heard so */

    /* The part of the stream that holds the range, as far as is known. */
    uint64_t low, high;
    uint64_t span;           /* of it when the last round began */
    uint64_t probes[PROBES]; /* asked for and not come; 0: come */
    size_t probes_count, probes_left;
    int rounds, tries;
    int64_t try_until_ns;  /* HELIO_NEVER: not searching any more */
    int64_t held_until_ns; /* nothing is asked for before */

    /* Of the stream being received. */
    helio_outlet outlet;
    helio_instance_stats *instance;
    helio_address source, group, feedback;
    helio_rx_budget budget; /* what may be sent there; while it searches */
    uint32_t spm_sequence;

    /* Its own: nothing a replay does is counted as received by the receiver. */
    helio_rx_shared shared;
    helio_stats_object private_instance, object;
    helio_rx_stream *stream; /* NULL while it searches */
    helio_tsi tsi;
};

helio_replay **helio_replay_link(helio_replay *replay) {
    return &replay->next;
}

const helio_tsi *helio_replay_tsi(const helio_replay *replay) {
    return &replay->tsi;
}

bool helio_replay_is_blocked(const helio_replay *replay) {
    return replay->shared.blocked_streams > 0;
}

bool helio_replay_is_waiting(const helio_replay *replay) {
    return !replay->has_ended && !helio_replay_is_blocked(replay);
}

/* ---- what the sink hears ---- */

static void end(helio_replay *replay) {
    if (replay->has_ended) {
        return;
    }
    replay->has_ended = true;
    if (replay->sink.on_stream_end) {
        replay->sink.on_stream_end(replay->sink.context, 0);
    }
}

static bool is_complete(const helio_replay *replay) {
    return replay->expected > replay->last;
}

/* Messages before `number` will not come. */
static void lose_up_to(helio_replay *replay, uint64_t number) {
    const uint64_t after = number <= replay->last ? number : replay->last + 1;
    if (after <= replay->expected) {
        return;
    }
    const helio_loss loss = {.first = replay->expected, .count = after - replay->expected};
    replay->expected = after;
    if (replay->sink.on_loss) {
        replay->sink.on_loss(replay->sink.context, &loss);
    }
}

/* All of a replay was asked for, also what came before its own request for it was sent: a repair
 * that the search asked for twice, or another receiver. */
static size_t give(const helio_replay *replay, const helio_message *messages, size_t count) {
    size_t given = 0;
    while (given < count) {
        helio_message marked[GIVEN_AT_ONCE];
        size_t some = 0;
        for (; some < GIVEN_AT_ONCE && given + some < count; some++) {
            marked[some] = messages[given + some];
            marked[some].flags |= HELIO_MESSAGE_RECOVERED;
        }
        const size_t taken = replay->sink.on_messages(replay->sink.context, marked, some);
        given += taken;
        if (taken < some) {
            break;
        }
    }
    return given;
}

/* Lets those of the range through. */
static size_t on_messages(void *context, const helio_message *messages, size_t count) {
    helio_replay *replay = context;
    size_t from = 0;
    while (from < count && messages[from].number < replay->expected) {
        from++;
    }
    if (from == count || is_complete(replay)) {
        return count;
    }
    lose_up_to(replay, messages[from].number);
    size_t to = from;
    while (to < count && messages[to].number <= replay->last) {
        to++;
    }
    if (to == from) {
        return count;
    }
    const size_t taken = give(replay, messages + from, to - from);
    replay->expected += taken;
    return taken < to - from ? from + taken : count;
}

/* ---- life ---- */

static int send_feedback(void *context, const helio_address *to, const void *packet, size_t length,
                         bool stable) {
    helio_replay *replay = context;
    helio_count(&replay->instance->packets_sent, 1);
    helio_count(&replay->instance->packet_bytes_sent, length);
    helio_count(&replay->instance->nak_packets_sent, 1);
    return replay->outlet.send(replay->outlet.context, to, packet, length, stable);
}

static int open_records(helio_replay *replay, helio_moment moment) {
    const helio_stats_config config = {
        .name = "replay", .bytes = STATS_BYTES, .wall_ns = moment.wall_ns};
    helio_stats **stats = &replay->shared.stats;
    int error = helio_stats_create(&config, stats);
    if (!error) {
        error = helio_stats_open_object(*stats, HELIO_SCOPE_INSTANCE, "", moment.wall_ns,
                                        &replay->private_instance);
    }
    if (!error) {
        error = helio_stats_open_object(*stats, HELIO_SCOPE_RECEIVER, "", moment.wall_ns,
                                        &replay->object);
    }
    replay->shared.instance = replay->private_instance.record;
    return error;
}

int helio_replay_create(const helio_rx_stream *stream, const helio_replay_config *config,
                        helio_moment moment, helio_replay **out) {
    const helio_rx_shared *shared = stream->shared;
    helio_replay *replay = calloc(1, sizeof *replay);
    if (!replay) {
        return HELIO_ERR_NOMEM;
    }
    replay->sink = config->sink;
    replay->expected = config->first;
    replay->last = config->last;
    replay->outlet = shared->outlet;
    replay->instance = shared->instance;
    replay->source = stream->source;
    replay->group = shared->config.group;
    replay->feedback = stream->feedback;
    replay->budget = stream->budget;
    replay->spm_sequence = stream->spm_sequence;
    replay->tsi = stream->tsi;
    replay->low = stream->told_trail;
    replay->high = stream->rxw.known;
    replay->try_until_ns = moment.now_ns;
    replay->shared.config = shared->config;
    replay->shared.config.join_history = true;
    replay->shared.config.repairer = (helio_address){0}; /* it keeps no history */
    if (replay->shared.config.window_packets > WINDOW) {
        replay->shared.config.window_packets = WINDOW;
    }
    replay->shared.outlet = (helio_outlet){replay, send_feedback};
    replay->shared.foreign_event_after_ns = INT64_MAX;
    helio_random_init(&replay->shared.random, (uint64_t)moment.now_ns ^ shared->config.seed);
    int error = open_records(replay, moment);
    if (!error) {
        replay->shared.subscriptions = shared->subscriptions;
        replay->shared.subscriptions.first = NULL;
        replay->shared.subscriptions.by_id = (helio_map){0};
        /* The receiver acknowledges; a second voice of its name would contradict it. */
        replay->shared.subscriptions.acked_by_auto = replay->shared.subscriptions.acked_by_app =
            replay->shared.subscriptions.acked_by_store = 0;
        replay->shared.subscriptions.stats = replay->shared.stats;
        replay->shared.subscriptions.instance = replay->shared.instance;
        const helio_sink sink = {.context = replay, .on_messages = on_messages};
        helio_subscription *subscription;
        error = helio_subscriptions_add(&replay->shared.subscriptions, config->topic, &sink,
                                        &subscription);
        if (!error) {
            replay->topic_id = subscription->id;
        }
    }
    if (error) {
        replay->has_ended = true;
        helio_replay_destroy(replay, moment);
        return error;
    }
    if (replay->sink.on_stream) {
        replay->sink.on_stream(replay->sink.context, 0, &replay->tsi, &replay->object);
    }
    *out = replay;
    return 0;
}

void helio_replay_destroy(helio_replay *replay, helio_moment moment) {
    if (!replay) {
        return;
    }
    end(replay);
    if (replay->stream) {
        helio_rx_stream_destroy(replay->stream, moment);
    }
    if (replay->shared.subscriptions.first) {
        helio_subscriptions_remove(&replay->shared.subscriptions,
                                   replay->shared.subscriptions.first);
    }
    helio_stats_destroy(replay->shared.stats);
    free(replay);
}

/* ---- searching ---- */

static void send_probes(helio_replay *replay) {
    uint32_t sequences[PROBES];
    size_t count = 0;
    for (size_t i = 0; i < replay->probes_count; i++) {
        if (replay->probes[i]) {
            sequences[count++] = (uint32_t)replay->probes[i];
        }
    }
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = {replay->tsi, replay->group.port};
    const size_t length = helio_pgm_encode_nak(packet, &session, HELIO_PGM_TYPE_NAK, sequences,
                                               count, &replay->source, &replay->group);
    if (!helio_rx_budget_covers(&replay->budget, length)) {
        return;
    }
    helio_rx_budget_sent(&replay->budget, length);
    send_feedback(replay, &replay->feedback, packet, length, false);
}

/* A packet tells what the topic's next message is before it and after it. */
static void learn_position(helio_replay *replay, uint64_t sequence, bool is_whole, uint64_t before,
                           uint64_t after) {
    if (before <= replay->expected && sequence > replay->low) {
        replay->low = sequence;
    }
    if ((before > replay->last || (is_whole && after > replay->last)) && sequence < replay->high) {
        replay->high = sequence;
    }
}

static void learn_from(helio_replay *replay, uint64_t sequence, const helio_pgm_packet *packet) {
    const bool is_fragment = packet->options & HELIO_PGM_HAS_FRAGMENT;
    helio_tsdu_header header;
    if ((is_fragment && packet->fragment.offset > 0) ||
        helio_tsdu_decode(packet->tsdu, packet->tsdu_bytes, &header) != HELIO_TSDU_OURS) {
        return;
    }
    if (header.kind == HELIO_TSDU_KIND_MESSAGES) {
        if (header.topic_id == replay->topic_id) {
            learn_position(replay, sequence, !is_fragment, header.first_message,
                           header.first_message + header.count);
        }
        return;
    }
    const uint8_t *at = packet->tsdu + header.header_bytes;
    const uint8_t *stop = packet->tsdu + packet->tsdu_bytes;
    helio_tsdu_topic entry;
    for (size_t i = 0; i < header.count && helio_tsdu_next_topic(&at, stop, &entry); i++) {
        if (entry.topic_id == replay->topic_id) {
            learn_position(replay, sequence, true, entry.next_message, entry.next_message);
        }
    }
}

/* The part found is fetched. */
static void fetch(helio_replay *replay, helio_moment moment) {
    replay->try_until_ns = HELIO_NEVER;
    helio_pgm_packet spm = {
        .tsi = replay->tsi,
        .destination_port = replay->group.port,
        .type = HELIO_PGM_TYPE_SPM,
        .options = HELIO_PGM_HAS_JOIN,
        .sequence = replay->spm_sequence,
        .trail = (uint32_t)replay->low,
        .lead = (uint32_t)replay->high,
        .join = (uint32_t)replay->low,
        .path = replay->feedback,
    };
    const helio_rx_start start = helio_rx_start_of(&replay->shared, &spm, false);
    if (replay->low > replay->high ||
        helio_rx_stream_create(&replay->shared, &replay->tsi, &start, NULL, &replay->source, moment,
                               &replay->stream)) {
        helio_replay_give_up(replay, moment);
        return;
    }
    helio_rx_stream_prove(replay->stream, moment.now_ns);
    helio_rx_stream_on_packet(replay->stream, &spm, 0, &replay->source, moment.wall_ns, moment);
    replay->stream->feedback = replay->feedback;
    replay->stream->budget = replay->budget;
    replay->stream->budget.counted = 0; /* its own requests */
    replay->stream->budget.release_ns = HELIO_NEVER;
    helio_replay_hold(replay, replay->held_until_ns, moment.now_ns);
}

/* Asks for packets spread over the part that may hold the range. */
static void begin_round(helio_replay *replay, helio_moment moment) {
    const uint64_t span = replay->high - replay->low;
    const bool is_worthwhile = replay->rounds == 0 || span < replay->span / 2;
    replay->span = span;
    if (replay->high < replay->low || span <= SEARCH_ENOUGH || !is_worthwhile ||
        replay->rounds == ROUNDS_MAX) {
        fetch(replay, moment);
        return;
    }
    replay->rounds++;
    replay->tries = 0;
    replay->probes_count = replay->probes_left = PROBES;
    for (size_t i = 0; i < PROBES; i++) {
        replay->probes[i] = replay->low + (i + 1) * span / (PROBES + 1);
    }
    send_probes(replay);
    replay->try_until_ns = moment.now_ns + TRY_NS;
}

static void on_probe(helio_replay *replay, const helio_pgm_packet *packet, helio_moment moment) {
    const uint64_t sequence = helio_sequence_widen(packet->sequence, replay->high);
    for (size_t i = 0; i < replay->probes_count; i++) {
        if (replay->probes[i] != sequence) {
            continue;
        }
        replay->probes[i] = 0;
        replay->probes_left--;
        learn_from(replay, sequence, packet);
    }
    if (replay->probes_count > 0 && replay->probes_left == 0) {
        begin_round(replay, moment);
    }
}

static void search_on(helio_replay *replay, helio_moment moment) {
    if (replay->rounds == 0) {
        begin_round(replay, moment);
    } else if (++replay->tries < TRIES_MAX) {
        send_probes(replay);
        replay->try_until_ns = moment.now_ns + (TRY_NS << replay->tries);
    } else { /* some never came; perhaps the rest is enough to go on with */
        const bool found_some = replay->probes_left < replay->probes_count;
        replay->rounds = found_some ? replay->rounds : ROUNDS_MAX;
        begin_round(replay, moment);
    }
}

/* ---- fetching ---- */

/* The end of the part is passed, or the range is. */
static void look_for_the_end(helio_replay *replay) {
    const helio_rx_stream *stream = replay->stream;
    if (stream && !replay->has_ended && stream->rxw.trail > stream->told_lead) {
        lose_up_to(replay, replay->last + 1);
    }
    if (is_complete(replay)) {
        end(replay);
    }
}

void helio_replay_on_packet(helio_replay *replay, const helio_pgm_packet *packet, size_t bytes,
                            int64_t receive_ns, helio_moment moment) {
    if (replay->has_ended) {
        return;
    }
    const bool is_data =
        packet->type == HELIO_PGM_TYPE_ODATA || packet->type == HELIO_PGM_TYPE_RDATA;
    if (is_data || packet->type == HELIO_PGM_TYPE_SPM) {
        const uint64_t trail = helio_sequence_widen(packet->trail, replay->high);
        if (trail > replay->low && !replay->stream) {
            replay->low = trail;
        }
    }
    if (!replay->stream) {
        if (is_data) {
            on_probe(replay, packet, moment);
        }
        return;
    }
    const uint64_t high = replay->stream->told_lead;
    const uint64_t sequence = helio_sequence_widen(packet->sequence, high);
    if (is_data && sequence <= high) {
        helio_rx_stream_on_packet(replay->stream, packet, bytes, &replay->source, receive_ns,
                                  moment);
    } else if (is_data || packet->type == HELIO_PGM_TYPE_SPM) {
        helio_rx_advance_source(replay->stream, helio_sequence_widen(packet->trail, high), moment);
    } else if (packet->type == HELIO_PGM_TYPE_NCF || packet->type == HELIO_PGM_TYPE_NAK) {
        helio_rx_stream_on_packet(replay->stream, packet, bytes, &replay->source, receive_ns,
                                  moment);
    }
    look_for_the_end(replay);
}

void helio_replay_hold(helio_replay *replay, int64_t until_ns, int64_t now_ns) {
    if (!replay->stream && replay->try_until_ns == replay->held_until_ns &&
        until_ns < replay->held_until_ns) {
        replay->try_until_ns = now_ns;
    }
    replay->held_until_ns = until_ns;
    if (replay->stream) {
        helio_nak_hold(&replay->stream->nak, until_ns, now_ns);
        helio_nak_excuse(&replay->stream->nak, until_ns, now_ns);
    }
}

void helio_replay_give_up(helio_replay *replay, helio_moment moment) {
    if (replay->has_ended) {
        return;
    }
    if (replay->stream) {
        helio_rx_give_up(replay->stream, HELIO_LOST_RESET, moment);
        if (replay->stream->is_blocked) {
            return; /* what is held is delivered when there is room */
        }
    }
    lose_up_to(replay, replay->last + 1);
    end(replay);
}

int helio_replay_poll(helio_replay *replay, helio_moment moment) {
    if (replay->has_ended) {
        return 0;
    }
    int work = 0;
    if (!replay->stream && replay->try_until_ns < replay->held_until_ns) {
        replay->try_until_ns = replay->held_until_ns;
    }
    if (!replay->stream && moment.now_ns >= replay->try_until_ns) {
        search_on(replay, moment);
        work = 1;
    } else if (replay->stream) {
        work = helio_rx_stream_poll(replay->stream, moment);
        if (!replay->stream->is_blocked &&
            helio_rx_stream_state_of(replay->stream, moment) == HELIO_RX_STREAM_SILENT) {
            helio_replay_give_up(replay, moment);
        }
        look_for_the_end(replay);
    }
    return work;
}

int64_t helio_replay_next_deadline_ns(const helio_replay *replay) {
    if (replay->has_ended) {
        return HELIO_NEVER;
    }
    return replay->stream ? helio_rx_stream_next_deadline_ns(replay->stream) : replay->try_until_ns;
}
