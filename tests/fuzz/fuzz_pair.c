/* Fuzz target for libFuzzer: a source and a receiver driven together, by a program.
 *
 * The input chooses how both are configured (four bytes) and then says what happens, an action and its argument in two bytes
 * each: messages are sent, packets passed, dropped, doubled, put out of order, damaged and forged (bare bytes, or a well formed
 * packet with the numbers of the input); time passes; subscriptions come and go; the application acknowledges, or has no room;
 * the source treats the receiver, closes, starts again.
 *
 * Each program runs twice, with the fast path of receiving and without (receive/fast_path.h); with it, every second program has
 * each packet offered as a lone message first.  After every action both have delivered the same, sent the same packets and counted
 * the same.
 *
 * What must hold: nothing that was not sent is delivered, nothing twice, nothing delivered and reported lost, in order unless
 * asked otherwise; what is acknowledged was accounted for; the books hold; memory has a bound and all of it comes back.  When
 * nothing was forged, and in the end everything gets through, delivered + lost is all that was sent.  A forger may spoil what is
 * delivered (there is no authentication), but not the books, the memory or the process. */
#include "pair_world.h"
#include "wire/checksum.h"
#include "wire/pgm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct program {
    const uint8_t *at, *end;
} program;

static uint8_t take_byte(program *from) {
    return from->at < from->end ? *from->at++ : 0;
}

static uint32_t take_word(program *from) {
    uint32_t word = 0;
    for (int i = 0; i < 4; i++) {
        word = word << 8 | take_byte(from);
    }
    return word;
}

/* ---- both ends ---- */

static const uint32_t WINDOWS[] = {16, 32, 64, 1024};

static void start_source(pair *p, uint8_t a, uint8_t b) {
    static const uint32_t starts[] = {0, 0xFFFFFFF8, 0x7FFFFFF8, 77};
    helio_tx_stream_config config = world_source_config((unsigned)++p->life);
    config.window_packets = WINDOWS[a & 3];
    config.first_sequence = starts[a >> 2 & 3];
    config.first_spm_sequence = starts[a >> 2 & 3];
    config.late_join = a >> 4 & 1;
    config.acks = a >> 5 & 1;
    config.acks_missing = a >> 6 & 1 ? HELIO_ACKS_MISSING_DEGRADE : HELIO_ACKS_MISSING_BLOCK;
    config.acker_expiry_ns = 2 * HELIO_SECOND;
    config.poll_interval_ns = a >> 7 ? 50 * HELIO_MILLISECOND : 0;
    config.report_interval_ns = b & 1 ? 20 * HELIO_MILLISECOND : 0;
    config.history_ns = b & 2 ? 30 * HELIO_MILLISECOND : 0;
    config.is_connected = b & 4;
    config.max_receivers = b & 8 ? 4 : 0;
    config.announce_interval_ns = 20 * HELIO_MILLISECOND;
    p->source_address = config.address;
    p->source_address.port = config.tsi.port;
    MUST(helio_tx_stream_create(&config, (helio_outlet){&p->down, pair_post}, p->stats,
                                p->instance.record, p->now, &p->source) == 0);
    for (int i = 0; i < TOPICS; i++) {
        MUST(helio_tx_stream_add_topic(p->source, i ? "b" : "a", p->now, &p->topics[i]) == 0);
    }
    p->is_closed = false;
}

static void end_source(pair *p) {
    helio_tx_stream_destroy(p->source, p->now);
    p->source = NULL;
}

static void start_receiver(pair *p, uint8_t a, uint8_t b, bool no_fast_path) {
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.no_fast_path = no_fast_path;
    config.window_packets = WINDOWS[a & 3];
    config.max_streams = 4;
    config.in_arrival_order = p->is_arrival = a >> 2 & 1;
    config.join_history = a >> 3 & 1;
    config.never_asks = (a >> 4 & 7) == 7;
    config.nak_retries = a >> 7 ? 1 : 64;
    config.nak_backoff_ns = b >> 4 & 1 ? -1 : 100 * HELIO_MICROSECOND;
    config.nak_deadline_ns = b >> 5 & 1 ? 20 * HELIO_MILLISECOND : HELIO_SECOND;
    config.ack_packets = 4;
    config.ack_interval_ns = 10 * HELIO_MILLISECOND;
    config.receiver = 4711;
    config.is_connected = b >> 2 & 1;
    config.max_message_bytes = 1 << 16;
    config.loan = &p->loan;
    p->receiver_address = config.feedback_address;
    MUST(helio_rx_endpoint_create(&config, (helio_outlet){&p->up, pair_post}, p->stats,
                                  p->instance.record, &p->receiver) == 0);
    const helio_sink_ack ack = b >> 6 & 1 ? HELIO_SINK_ACK_APP : HELIO_SINK_ACK_AUTO;
    p->subscribers[0].ack = b >> 7 ? ack : HELIO_SINK_ACK_NONE;
    p->subscribers[1].topic = 1;
    p->subscribers[2].ack = HELIO_SINK_ACK_NONE;
    pair_subscribe(p, 0);
}

/* ---- actions ---- */

static void send(pair *p, uint8_t how) {
    static uint8_t body[MESSAGE_MAX];
    static const size_t sizes[] = {8, 8, 20, 100, 400, 1380, 2000, MESSAGE_MAX};
    const int topic = how >> 3 & 1;
    uint64_t *number = &p->sent[p->life][topic];
    const size_t bytes = sizes[how & 7];
    for (int left = 1 + (how >> 5); left > 0; left--) {
        if (p->is_closed || *number == MESSAGES_MAX ||
            helio_tx_stream_admit(p->source, p->topics[topic], bytes, p->now) != HELIO_ADMIT_GO) {
            return;
        }
        memcpy(body, number, sizeof *number);
        MUST(helio_tx_stream_append(p->source, p->topics[topic], body, bytes, p->now.wall_ns,
                                    p->now) == 0);
        ++*number;
    }
    if (how & 16) {
        helio_tx_stream_flush(p->source, p->now);
    }
}

/* A packet of a queue, and what is to become of it. */
static void move(pair *p, uint8_t what, uint8_t which, program *from) {
    const bool is_down = what & 1;
    queue *box = is_down ? &p->down : &p->up;
    if (box->count == 0) {
        return;
    }
    const size_t at = which % box->count;
    carried packet = pair_take(box, at);
    switch (what >> 1 & 3) {
    case 0: /* out of order, when it is not the first */
        break;
    case 1: /* dropped */
        free(packet.bytes);
        return;
    case 2: /* doubled */
        pair_give(p, is_down, packet.bytes, packet.length, pair_sender(p, is_down));
        break;
    default: /* a byte of it is damaged: no checksum misses that */
        packet.bytes[take_word(from) % packet.length] ^= (uint8_t)(take_byte(from) | 1);
        break;
    }
    pair_give(p, is_down, packet.bytes, packet.length, pair_sender(p, is_down));
    free(packet.bytes);
}

static helio_address forger(const pair *p, uint8_t who) {
    helio_address from = *pair_sender(p, who & 1);
    if (who & 2) {
        from.port++;
    }
    if (who & 4) {
        from = world_host(66 + (who >> 4), 40001);
    }
    return from;
}

/* Any bytes, with a checksum that is right unless it is to be wrong. */
static void forge_bytes(pair *p, uint8_t who, program *from) {
    uint8_t packet[2048];
    size_t length = (size_t)take_byte(from) << 3;
    for (size_t i = 0; i < length; i++) {
        packet[i] = take_byte(from);
    }
    if (length >= HELIO_PGM_HEADER && !(who & 8)) {
        memset(packet + 6, 0, 2);
        const uint16_t sum = helio_checksum_finish(helio_checksum_part(packet, length));
        memcpy(packet + 6, &sum, 2);
    }
    const helio_address address = forger(p, who);
    p->is_forged = true;
    pair_give(p, who & 1, packet, length, &address);
}

static size_t forge_data(uint8_t *packet, const helio_pgm_session *session, uint32_t sequence,
                         program *from) {
    helio_pgm_fragment fragment = {sequence - take_byte(from), take_byte(from) * 64u,
                                   take_word(from)};
    const bool is_fragment = take_byte(from) & 1;
    const size_t head = is_fragment ? HELIO_PGM_FRAGMENT_HEADER : HELIO_PGM_DATA_HEADER;
    helio_tsdu_header batch = {
        .kind = take_byte(from) & 1 ? HELIO_TSDU_KIND_MESSAGES : HELIO_TSDU_KIND_TOPICS,
        .count = take_byte(from),
        .topic_id = 0xaf63dc4c8601ec8cu ^ (take_byte(from) & 3),
        .first_message = (uint64_t)take_word(from) << (take_byte(from) & 63)};
    helio_tsdu_encode(packet + head, &batch);
    size_t bytes = HELIO_TSDU_HEADER;
    for (size_t left = take_byte(from); left > 0; left--) {
        packet[head + bytes++] = take_byte(from);
    }
    return helio_pgm_encode_data(packet, session, sequence, sequence - take_byte(from),
                                 is_fragment ? &fragment : NULL, bytes,
                                 helio_checksum_part(packet + head, bytes));
}

/* A well formed packet of the session with numbers near to, or far from, the truth. */
static void forge_shape(pair *p, uint8_t who, program *from) {
    uint8_t packet[2048];
    const helio_tsi tsi = *helio_tx_stream_tsi(p->source);
    helio_pgm_session session = {tsi, 7500};
    if (who & 8) {
        session.tsi.gsi[0] ^= take_byte(from);
    }
    const uint8_t shape = take_byte(from);
    const uint32_t lead = (uint32_t)helio_tx_stream_lead(p->source);
    const uint32_t sequence = shape & 128 ? take_word(from) : lead - 64 + take_byte(from);
    const helio_address path = forger(p, (uint8_t)(who ^ take_byte(from))),
                        group = world_address(WORLD_GROUP);
    uint32_t list[HELIO_PGM_NAK_LIST_MAX + 1];
    size_t length, count = 1 + shape % HELIO_PGM_NAK_LIST_MAX;
    for (size_t i = 0; i < count; i++) {
        list[i] = sequence + (uint32_t)i * (1 + (shape >> 5));
    }
    static const uint8_t asks[] = {HELIO_PGM_TYPE_NAK, HELIO_PGM_TYPE_NNAK, HELIO_PGM_TYPE_NCF};
    helio_pgm_acknowledge ack = {.receiver = take_byte(from) & 1 ? 4711 : take_byte(from),
                                 .incarnation = take_byte(from),
                                 .position = sequence,
                                 .first = sequence - take_byte(from)};
    switch (shape % 8) {
    case 0:
        length = helio_pgm_encode_spm(packet, &session,
                                      &(helio_pgm_spm){.sequence = take_word(from),
                                                       .trail = sequence - take_byte(from),
                                                       .lead = sequence,
                                                       .fin = shape & 16,
                                                       .rst = shape & 32,
                                                       .backoff_us = take_word(from),
                                                       .offers_history = shape & 64,
                                                       .join = sequence - take_byte(from),
                                                       .awaits_acks = take_byte(from) & 1,
                                                       .awaited = sequence - take_byte(from)},
                                      &path);
        break;
    case 1:
    case 2:
        length = helio_pgm_encode_nak(packet, &session, asks[take_byte(from) % 3], list, count,
                                      &path, &group);
        break;
    case 3:
        length = helio_pgm_encode_ack(packet, &session, sequence, take_word(from), &ack, NULL);
        break;
    case 4:
        length = helio_pgm_encode_poll(
            packet, &session, take_word(from),
            &(helio_pgm_poll){.round = take_byte(from), .backoff_us = take_word(from)}, &path);
        break;
    case 5:
        length = shape & 16
                     ? helio_pgm_encode_polr(packet, &session, take_word(from), take_byte(from))
                     : helio_pgm_encode_spmr(packet, &session);
        break;
    default:
        length = forge_data(packet, &session, sequence, from);
        if (shape & 16) {
            helio_pgm_make_repair(packet, sequence - 1, HELIO_PGM_NO_SUM);
        }
    }
    const helio_address address = forger(p, who);
    p->is_forged = true;
    pair_give(p, who & 1, packet, length, &address);
}

static void acknowledge(pair *p, uint8_t how) {
    subscriber *s = &p->subscribers[0];
    const uint32_t stream = how & 3;
    account *of = &s->streams[stream];
    if (s->ack != HELIO_SINK_ACK_APP || stream >= STREAMS_MAX) {
        return;
    }
    const uint64_t next = of->next - (of->next > how >> 4 ? how >> 4 : of->next);
    of->done = next > of->done ? next : of->done;
    helio_rx_endpoint_acknowledge(p->receiver, s->subscription, stream, next, p->now);
}

static void act(pair *p, uint8_t how) {
    uint32_t places;
    const helio_receiver_view *views = helio_tx_stream_views(p->source, &places);
    if (!places || !(views[how % places].flags & HELIO_VIEW_PRESENT)) {
        return;
    }
    p->is_disturbed = true;
    helio_tx_stream_act(p->source, how % places, (helio_action)(1 + how % HELIO_ACTION_READMIT),
                        20 * HELIO_MILLISECOND, "test", true, p->now);
}

static size_t take_replayed(void *context, const helio_message *messages, size_t count) {
    uint64_t number, *limit = context;
    for (size_t i = 0; i < count && !the_pair->is_forged; i++) {
        MUST(messages[i].length >= sizeof number && messages[i].number < *limit);
        memcpy(&number, messages[i].data, sizeof number);
        MUST(number == messages[i].number);
    }
    return count;
}

static void replay(pair *p, uint8_t how) {
    uint64_t limit = p->sent[p->life][how & 1];
    const helio_sink sink = {.context = &limit, .on_messages = take_replayed};
    helio_replay *found;
    if (helio_rx_endpoint_replay(p->receiver, helio_tx_stream_tsi(p->source), how & 1 ? "b" : "a",
                                 how >> 4, how >> 2, &sink, p->now, &found) != 0) {
        return;
    }
    pair_pass_time(p, 5 * HELIO_MILLISECOND);
    pair_pass_all(p, 4);
    helio_rx_endpoint_end_replay(p->receiver, found, p->now);
}

static void end_life(pair *p, uint8_t how, uint8_t a, uint8_t b) {
    if (how & 1 && !p->is_closed) {
        helio_tx_stream_close(p->source, p->now);
        p->topics[0] = p->topics[1] = NULL;
        p->is_closed = true;
    }
    if (how & 2) {
        helio_tx_stream_abort(p->source);
    }
    if (how & 3) {
        p->is_closed = p->is_disturbed = true;
    }
    if (how & 4 && p->life < LIVES_MAX) {
        end_source(p);
        if (how & 8) { /* what is still on its way is lost with it */
            pair_empty(&p->down);
        }
        pair_empty(&p->up);
        start_source(p, a, b);
        p->is_disturbed = false;
    }
}

/* PAIR_TRACE=1: what a program does, for the one who looks into a finding. */
static void trace(const pair *p, uint8_t action, uint8_t how) {
    static const char *const names[] = {"send", "send",  "send", "pass", "pass",      "move",
                                        "move", "move",  "time", "time", "subscribe", "acknowledge",
                                        "room", "forge", "act",  "life"};
    if (!getenv("PAIR_TRACE")) {
        return;
    }
    fprintf(stderr, "%" PRId64 " us, life %d, %zu down, %zu up%s%s%s; a: %" PRIu64 " sent",
            (p->now.now_ns - 1000 * HELIO_SECOND) / 1000, p->life, p->down.count, p->up.count,
            p->is_forged ? ", forged" : "", p->is_disturbed ? ", disturbed" : "",
            p->is_closed ? ", closed" : "", p->sent[p->life][0]);
    for (int i = 0; i < STREAMS_MAX; i++) {
        const account *of = &p->subscribers[0].streams[i];
        if (of->life) {
            fprintf(stderr, ", stream %d of life %d next %" PRIu64 " done %" PRIu64 "%s", i,
                    of->life, of->next, of->done, of->is_ended ? " ended" : "");
        }
    }
    fprintf(stderr, "\n%s %d %d\n", names[action & 15], action >> 4, how);
}

static void do_one(pair *p, program *from, uint8_t a, uint8_t b) {
    const uint8_t action = take_byte(from), how = take_byte(from);
    const int which = 1 + (how & 1);
    trace(p, action, how);
    switch (action & 15) {
    case 0:
    case 1:
    case 2:
        send(p, how);
        break;
    case 3:
    case 4:
        pair_pass_all(p, 1 + (how & 7));
        break;
    case 5:
    case 6:
    case 7:
        move(p, action >> 4, how, from);
        break;
    case 8:
    case 9:
        pair_pass_time(p, (int64_t)1 << how % 30);
        break;
    case 10:
        if (p->subscribers[which].subscription) {
            pair_unsubscribe(p, which);
        } else {
            pair_subscribe(p, which);
        }
        break;
    case 11:
        acknowledge(p, how);
        break;
    case 12:
        p->room = how & 1 ? SIZE_MAX : how >> 1;
        break;
    case 13:
        (action & 16 ? forge_bytes : forge_shape)(p, how, from);
        break;
    case 14:
        (action & 16 ? act : replay)(p, how);
        break;
    default:
        end_life(p, how, a, b);
    }
}

/* ---- what must hold ---- */

static void check_acked(pair *p) {
    subscriber *s = &p->subscribers[0];
    if (p->is_forged || p->is_closed || s->ack == HELIO_SINK_ACK_NONE) {
        return;
    }
    const helio_acker *acker = helio_tx_stream_acker(p->source, 0);
    uint64_t number;
    if (!acker || !helio_tx_stream_acked_message(p->source, p->topics[s->topic], acker, &number)) {
        return;
    }
    for (int i = 0; i < STREAMS_MAX; i++) {
        account *of = &s->streams[i];
        if (of->life != p->life || !of->is_begun || of->is_ended) {
            continue;
        }
        /* What is older than where it joined says nothing; what is lost needs no acknowledgement, and is told of when the
         * topic goes on. */
        for (uint64_t k = of->first; k <= number; k++) {
            MUST(of->seen[k] != 1 || s->ack == HELIO_SINK_ACK_AUTO || k < of->done);
            of->is_given_up[k] |= of->seen[k] == 0;
        }
    }
}

static void check(pair *p) {
    const helio_instance_stats *counts = p->instance.record;
    MUST(books_hold(p->stats));
    MUST(helio_cell(&counts->memory_used) <= MEMORY_MAX);
    check_acked(p);
}

/* Everything gets through from now on: then all that was sent is accounted for. */
static void settle(pair *p) {
    p->room = SIZE_MAX;
    for (int i = 0; i < 40; i++) {
        helio_tx_stream_flush(p->source, p->now);
        pair_pass_all(p, 20);
        pair_pass_time(p, (i < 20 ? 2 : 100) * HELIO_MILLISECOND);
    }
    pair_pass_all(p, 20);
    check(p);
    if (p->is_forged || p->is_disturbed || p->is_closed) {
        return;
    }
    const subscriber *s = &p->subscribers[0];
    for (int i = 0; i < STREAMS_MAX; i++) {
        const account *of = &s->streams[i];
        if (of->life != p->life || of->is_ended || !of->is_begun) {
            continue;
        }
        MUST(of->next == p->sent[p->life][s->topic]);
        bool has_begun = false;
        for (uint64_t number = 0; number < of->next; number++) {
            has_begun |= of->seen[number] != 0;
            MUST(!has_begun || of->seen[number] != 0);
        }
    }
}

enum { ACTIONS_MAX = 400 };

/* The digests of one run, after each action and at the end. */
typedef struct run {
    uint64_t digests[ACTIONS_MAX + 1];
    int count;
} run;

static void note(pair *p, run *into) {
    pair_digest_statistics(p);
    into->digests[into->count++] = p->digest ^ p->posted * UINT64_C(0x9E3779B97F4A7C15);
}

static void play(program input, bool no_fast_path, run *into) {
    pair *p = calloc(1, sizeof *p);
    const helio_stats_config config = {.name = "fuzz", .bytes = 1 << 19, .level = 0, .wall_ns = 1};
    MUST(p && helio_stats_create(&config, &p->stats) == 0);
    MUST(helio_stats_open_object(p->stats, HELIO_SCOPE_INSTANCE, "instance=fuzz\n", 1,
                                 &p->instance) == 0);
    the_pair = p;
    p->room = SIZE_MAX;
    p->now = (helio_moment){1000 * HELIO_SECOND, 5000 * HELIO_SECOND};
    const uint8_t a = take_byte(&input), b = take_byte(&input), c = take_byte(&input);
    const uint8_t d = take_byte(&input);
    p->takes_lone = d & 2 && !no_fast_path;
    if (d & 1) { /* the source was there before */
        start_source(p, a, b);
        start_receiver(p, c, b, no_fast_path);
    } else {
        start_receiver(p, c, b, no_fast_path);
        start_source(p, a, b);
    }
    for (int actions = 0; input.at < input.end && actions < ACTIONS_MAX; actions++) {
        do_one(p, &input, a, b);
        check(p);
        note(p, into);
    }
    settle(p);
    note(p, into);
    end_source(p);
    helio_rx_endpoint_destroy(p->receiver, p->now);
    MUST(books_hold(p->stats));
    MUST(helio_cell(&((helio_instance_stats *)p->instance.record)->memory_used) == 0);
    pair_empty(&p->down);
    pair_empty(&p->up);
    helio_stats_close_object(p->stats, &p->instance, 1);
    helio_stats_destroy(p->stats);
    free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static run fast, general;
    fast.count = general.count = 0;
    play((program){data, data + size}, false, &fast);
    play((program){data, data + size}, true, &general);
    MUST(fast.count == general.count);
    for (int i = 0; i < fast.count; i++) {
        if (fast.digests[i] != general.digests[i]) {
            fprintf(stderr, "the paths differ after action %d of %d\n", i, fast.count);
            abort();
        }
    }
    return 0;
}
