/* From packets in order to messages: numbering, losses, topics, reassembly, sinks without room. */
#include "receive/delivery.h"

#include "base/hash.h"
#include "check.h"

static helio_stats *stats;
static helio_stats_object instance;
static helio_subscriptions shared;
static helio_rxw window;
static helio_delivery delivery;
static uint64_t sequence;
static const helio_moment now = {7000, 9000};
static const helio_tsi tsi = {{1, 2, 3, 4, 5, 6}, 7};

/* What a sink was told, as text: "3 4 !5+2 7" are messages 3 and 4, two lost from 5, message 7. */
typedef struct journal {
    char text[4096];
    size_t room; /* messages it takes before it is full */
    helio_stats_object *object;
    helio_receiver_stats *stats;
    helio_message last;
    char last_body[64];
} journal;

static void on_stream(void *context, uint32_t stream, const helio_tsi *of,
                      helio_stats_object *object) {
    journal *j = context;
    CHECK_EQUAL(stream, 0);
    CHECK(helio_tsi_equal(of, &tsi));
    j->object = object;
    j->stats = object->record;
}

static size_t on_messages(void *context, const helio_message *messages, size_t count) {
    journal *j = context;
    const size_t taken = count < j->room ? count : j->room;
    for (size_t i = 0; i < taken; i++) {
        const size_t used = strlen(j->text);
        snprintf(j->text + used, sizeof j->text - used, "%s%d", used ? " " : "",
                 (int)messages[i].number);
        j->last = messages[i];
        snprintf(j->last_body, sizeof j->last_body, "%.*s", (int)messages[i].length,
                 (const char *)messages[i].data);
    }
    j->room -= taken;
    return taken;
}

static void on_loss(void *context, const helio_loss *loss) {
    journal *j = context;
    const size_t used = strlen(j->text);
    snprintf(j->text + used, sizeof j->text - used, "%s!%d+%d", used ? " " : "", (int)loss->first,
             (int)loss->count);
}

static void on_end(void *context, uint32_t stream) {
    journal *j = context;
    (void)stream;
    strcat(j->text, " end");
}

static helio_subscription *subscribe(journal *j, const char *topic) {
    *j = (journal){.room = 1000000};
    const helio_sink sink = {j, on_stream, on_end, on_messages, .on_loss = on_loss};
    helio_subscription *subscription;
    CHECK_EQUAL(helio_subscriptions_add(&shared, topic, &sink, &subscription), 0);
    return subscription;
}

static void begin(void) {
    const helio_stats_config config = {.name = "test", .bytes = 1 << 22, .level = 2, .wall_ns = 1};
    CHECK_EQUAL(helio_stats_create(&config, &stats), 0);
    CHECK_EQUAL(helio_stats_open_object(stats, HELIO_SCOPE_INSTANCE, "", 1, &instance), 0);
    shared = (helio_subscriptions){.stats = stats,
                                   .instance = instance.record,
                                   .instance_name = "test",
                                   .endpoint = "rmm://x",
                                   .max_message_bytes = 100000,
                                   .window_packets = 16};
    sequence = 100;
}

static void follow(bool is_complete) {
    CHECK_EQUAL(helio_delivery_init(&delivery, &shared, &window, &tsi, is_complete), 0);
}

static void end(void) {
    helio_delivery_fini(&delivery, now);
    while (shared.first) {
        helio_subscriptions_remove(&shared, shared.first);
    }
    helio_stats_destroy(stats);
}

/* ---- packets ---- */

static uint8_t tsdu[65536];

static size_t make_batch(const char *topic, uint64_t first, uint16_t count) {
    helio_tsdu_encode(tsdu, &(helio_tsdu_header){.kind = HELIO_TSDU_KIND_MESSAGES,
                                                 .count = count,
                                                 .topic_id = helio_hash_fnv1a(topic, strlen(topic)),
                                                 .first_message = first,
                                                 .submit_ns = 8000});
    size_t used = HELIO_TSDU_HEADER;
    for (uint16_t i = 0; i < count; i++) {
        char body[16];
        const size_t bytes = (size_t)snprintf(body, sizeof body, "m%d", (int)(first + i));
        used += helio_tsdu_encode_message_header(tsdu + used, bytes);
        memcpy(tsdu + used, body, bytes);
        used += bytes;
    }
    return used;
}

static helio_delivery_result pass_tsdu(size_t bytes) {
    const helio_rxw_packet packet = {.tsdu = tsdu, .bytes = (uint32_t)bytes, .arrival_ns = 6500};
    return helio_delivery_pass(&delivery, sequence, &packet, now);
}

static helio_delivery_result pass(const char *topic, uint64_t first, uint16_t count) {
    sequence++;
    return pass_tsdu(make_batch(topic, first, count));
}

/* The next packets do not come. */
static void lose(uint64_t packets) {
    helio_delivery_on_packets_lost(&delivery, sequence + 1, packets, now);
    sequence += packets;
}

static helio_delivery_result pass_topics(const char *topic, uint64_t next, uint64_t id) {
    helio_tsdu_encode(tsdu, &(helio_tsdu_header){.kind = HELIO_TSDU_KIND_TOPICS, .count = 1});
    const helio_tsdu_topic entry = {id ? id : helio_hash_fnv1a(topic, strlen(topic)), next, topic,
                                    strlen(topic)};
    sequence++;
    return pass_tsdu(HELIO_TSDU_HEADER + helio_tsdu_encode_topic(tsdu + HELIO_TSDU_HEADER, &entry));
}

/* A batch of one message in fragments of 20 bytes; those whose bit is set in `skip` do not come. */
static helio_delivery_result pass_fragments(const char *topic, uint64_t number, unsigned skip) {
    const size_t bytes = make_batch(topic, number, 1) + 60;
    memset(tsdu + bytes - 62, 'x', 62);
    helio_tsdu_encode_message_header(tsdu + HELIO_TSDU_HEADER, bytes - HELIO_TSDU_HEADER - 2);
    const uint32_t first = (uint32_t)sequence + 1;
    helio_delivery_result result = HELIO_DELIVERY_TAKEN;
    for (uint32_t offset = 0; offset < bytes;) {
        const uint32_t part = offset == 0           ? 44
                              : bytes - offset < 20 ? (uint32_t)(bytes - offset)
                                                    : 20;
        sequence++;
        if (skip & 1) {
            helio_delivery_on_packets_lost(&delivery, sequence, 1, now);
        } else {
            const helio_rxw_packet packet = {.tsdu = tsdu + offset,
                                             .bytes = part,
                                             .is_fragment = true,
                                             .fragment = {first, offset, (uint32_t)bytes}};
            result = helio_delivery_pass(&delivery, sequence, &packet, now);
        }
        skip >>= 1;
        offset += part;
    }
    return result;
}

static void check_text(const journal *j, const char *text) {
    if (strcmp(j->text, text) != 0) {
        CHECK_FAIL("the sink was told \"%s\", not \"%s\"", j->text, text);
    }
}

/* before joining, delivered, lost; and the books balance */
static void check_books(const journal *j, uint64_t before, uint64_t delivered, uint64_t lost) {
    CHECK_EQUAL(helio_cell(&j->stats->messages_before_join), before);
    CHECK_EQUAL(helio_cell(&j->stats->messages_delivered), delivered);
    CHECK_EQUAL(helio_cell(&j->stats->messages_lost), lost);
    CHECK_EQUAL(helio_cell(&j->stats->next_message), before + delivered + lost);
}

/* ---- tests ---- */

static void messages_are_delivered_in_order_with_their_stamps(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(true);
    CHECK_EQUAL(pass("t", 0, 3), HELIO_DELIVERY_TAKEN);
    CHECK_EQUAL(pass("t", 3, 1), HELIO_DELIVERY_TAKEN);
    check_text(&j, "0 1 2 3");
    CHECK_EQUAL(strcmp(j.last_body, "m3"), 0);
    CHECK_EQUAL(j.last.submit_ns, 8000);
    CHECK_EQUAL(j.last.flags, 0);
    check_books(&j, 0, 4, 0);
    const helio_instance_stats *counts = instance.record;
    CHECK_EQUAL(helio_cell(&counts->messages_received), 4);
    CHECK_EQUAL(helio_cell(&counts->bytes_received), 8);
    end();
}

static void a_jump_is_reported_once_with_its_range(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(true);
    pass("t", 0, 2);
    lose(1);
    pass("t", 5, 1);
    pass("t", 6, 1);
    check_text(&j, "0 1 !2+3 5 6");
    check_books(&j, 0, 4, 3);
    end();
}

static void a_stream_joined_late_has_messages_from_before(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(false);
    pass("t", 1000, 2);
    check_text(&j, "1000 1001");
    check_books(&j, 1000, 2, 0);
    end();
}

static void a_stream_known_from_its_first_packet_has_lost_what_is_missing_at_the_start(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(true);
    lose(1);
    pass("t", 4, 1);
    check_text(&j, "!0+4 4");
    check_books(&j, 0, 1, 4);
    end();
}

static void a_subscription_that_comes_later_joins_later(void) {
    journal j, late;
    begin();
    subscribe(&j, "t");
    follow(true);
    pass("t", 0, 2);
    CHECK_EQUAL(helio_delivery_add(&delivery, subscribe(&late, "t")), 0);
    pass("t", 2, 2);
    check_text(&j, "0 1 2 3");
    check_text(&late, "2 3");
    check_books(&late, 2, 2, 0);
    helio_delivery_remove(&delivery, shared.first, now);
    check_text(&late, "2 3 end");
    pass("t", 4, 1);
    check_text(&j, "0 1 2 3 4");
    end();
}

static void announcements_tell_where_a_topic_is_and_what_was_lost_at_its_end(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(false);
    pass_topics("t", 10, 0);
    check_text(&j, "");
    check_books(&j, 10, 0, 0);
    pass("t", 10, 2);
    pass_topics("t", 12, 0);
    lose(1);
    pass_topics("t", 15, 0); /* closing: the last three never came */
    check_text(&j, "10 11 !12+3");
    check_books(&j, 10, 2, 3);
    end();
}

/* ---- topics that are looked for ---- */

typedef struct search {
    journal found;
    unsigned count;
} search;

static bool wants_every_t(void *context, const helio_tsdu_topic *topic) {
    (void)context;
    return topic->name[0] == 't';
}

static void subscribe_found(void *context, const helio_tsdu_topic *topic, helio_moment moment) {
    search *looking = context;
    (void)moment;
    char name[HELIO_TSDU_TOPIC_NAME_MAX + 1] = "";
    memcpy(name, topic->name, topic->name_bytes);
    looking->count++;
    CHECK_EQUAL(helio_delivery_add(&delivery, subscribe(&looking->found, name)), 0);
}

static helio_topic_finder looks_into(search *looking) {
    *looking = (search){0};
    return (helio_topic_finder){
        .context = looking, .wants = wants_every_t, .found = subscribe_found};
}

static void a_topic_that_is_looked_for_is_received_from_its_announcement_on(void) {
    search looking;
    begin();
    helio_topic_finder finder = looks_into(&looking);
    shared.finders = &finder;
    follow(false);
    pass("t1", 0, 3); /* nobody knows its name yet */
    pass_topics("other", 0, 0);
    CHECK_EQUAL(looking.count, 0);
    pass_topics("t1", 3, 0);
    pass("t1", 3, 2);
    pass_topics("t1", 5, 0); /* a topic with a subscription is not looked for again */
    CHECK_EQUAL(looking.count, 1);
    check_text(&looking.found, "3 4");
    check_books(&looking.found, 3, 2, 0);
    end();
}

static void names_that_are_forged_or_closing_are_not_found(void) {
    search looking;
    journal j;
    begin();
    helio_topic_finder finder = looks_into(&looking);
    shared.finders = &finder;
    subscribe(&j, "t0");
    follow(false);
    pass_topics("t0", 0, 0);  /* it has a subscription */
    pass_topics("t1", 0, 99); /* not its identifier */
    static const char with_nul[] = {'t', 0, '1'};
    const helio_tsdu_topic entry = {helio_hash_fnv1a(with_nul, 3), 0, with_nul, 3};
    helio_tsdu_encode(tsdu, &(helio_tsdu_header){.kind = HELIO_TSDU_KIND_TOPICS, .count = 1});
    sequence++;
    pass_tsdu(HELIO_TSDU_HEADER + helio_tsdu_encode_topic(tsdu + HELIO_TSDU_HEADER, &entry));
    helio_tsdu_encode(tsdu, &(helio_tsdu_header){.kind = HELIO_TSDU_KIND_TOPICS,
                                                 .flags = HELIO_TSDU_FLAG_CLOSING,
                                                 .count = 1});
    const helio_tsdu_topic last = {helio_hash_fnv1a("t2", 2), 7, "t2", 2};
    sequence++;
    CHECK_EQUAL(
        pass_tsdu(HELIO_TSDU_HEADER + helio_tsdu_encode_topic(tsdu + HELIO_TSDU_HEADER, &last)),
        HELIO_DELIVERY_TAKEN);
    CHECK_EQUAL(looking.count, 0);
    end();
}

static void unwanted_topics_and_foreign_data_are_told_apart(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(true);
    CHECK_EQUAL(pass("other", 0, 5), HELIO_DELIVERY_FILTERED);
    CHECK_EQUAL(delivery.messages_filtered, 5);
    CHECK_EQUAL(pass_fragments("other", 5, 0), HELIO_DELIVERY_FILTERED);
    CHECK_EQUAL(delivery.messages_filtered, 6);
    sequence++;
    memcpy(tsdu, "\0\0A\0hello", 9);
    CHECK_EQUAL(pass_tsdu(9), HELIO_DELIVERY_FOREIGN);
    CHECK_EQUAL(pass_tsdu(0), HELIO_DELIVERY_FOREIGN);
    check_text(&j, "");
    end();
}

static void a_damaged_batch_delivers_nothing_and_is_lost(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(true);
    pass("t", 0, 1);
    for (int i = 0; i < 3; i++) {
        static const uint16_t counts[] = {3, 3, 300};
        sequence++;
        size_t bytes = make_batch("t", 1, counts[i]);
        CHECK_EQUAL(pass_tsdu(i == 1 ? bytes + 1 : bytes - 1), HELIO_DELIVERY_DAMAGED);
    }
    CHECK_EQUAL(pass("t", 0, 1), HELIO_DELIVERY_DAMAGED); /* numbers do not go back */
    pass("t", 4, 1);
    check_text(&j, "0 !1+3 4");
    end();
}

static void a_full_sink_gets_the_rest_later_and_nothing_twice(void) {
    journal j, other;
    begin();
    subscribe(&j, "t");
    subscribe(&other, "t");
    follow(true);
    j.room = 2;
    CHECK_EQUAL(pass("t", 0, 5), HELIO_DELIVERY_FULL);
    CHECK_EQUAL(pass_tsdu(make_batch("t", 0, 5)), HELIO_DELIVERY_FULL);
    check_text(&j, "0 1");
    check_text(&other, "0 1 2 3 4"); /* one with room does not wait */
    j.room = 100;
    CHECK_EQUAL(pass_tsdu(make_batch("t", 0, 5)), HELIO_DELIVERY_TAKEN);
    CHECK_EQUAL(pass("t", 5, 1), HELIO_DELIVERY_TAKEN);
    check_text(&j, "0 1 2 3 4 5");
    check_text(&other, "0 1 2 3 4 5");
    check_books(&j, 0, 6, 0);
    end();
}

static void a_batch_of_very_many_messages_stops_and_goes_on_anywhere(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(true);
    sequence++;
    uint64_t refused = 0;
    for (;;) {
        j.text[0] = 0;
        j.room = 37;
        const helio_delivery_result result = pass_tsdu(make_batch("t", 0, 1000));
        if (result == HELIO_DELIVERY_TAKEN) {
            break;
        }
        CHECK_EQUAL(result, HELIO_DELIVERY_FULL);
        refused++;
    }
    CHECK_EQUAL(refused, 27);
    check_books(&j, 0, 1000, 0);
    end();
}

static void fragments_become_one_message(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(true);
    CHECK_EQUAL(pass_fragments("t", 0, 0), HELIO_DELIVERY_TAKEN);
    CHECK_EQUAL(pass_fragments("t", 1, 0), HELIO_DELIVERY_TAKEN);
    check_text(&j, "0 1");
    CHECK_EQUAL(j.last.length, 62);
    end();
}

static void a_message_that_misses_a_fragment_is_lost_at_once(void) {
    for (unsigned missing = 1; missing < 4; missing++) {
        journal j;
        begin();
        subscribe(&j, "t");
        follow(true);
        pass("t", 0, 1);
        pass_fragments("t", 1, 1u << missing);
        check_text(&j, "0 !1+1");
        pass("t", 2, 1);
        check_text(&j, "0 !1+1 2");
        end();
    }
}

static void without_its_first_fragment_a_message_is_lost_with_the_next_number(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(true);
    pass("t", 0, 1);
    pass_fragments("t", 1, 1);
    pass("t", 2, 1);
    check_text(&j, "0 !1+1 2");
    end();
}

static void fragments_that_contradict_each_other_are_damaged(void) {
    static const helio_pgm_fragment second[] = {
        {101, 60, 200}, /* overlaps or leaves a hole */
        {101, 10, 200},
        {101, 44, 201},
        {100, 44, 200},
    };
    for (size_t i = 0; i < 4; i++) {
        journal j;
        begin();
        subscribe(&j, "t");
        follow(true);
        make_batch("t", 0, 1);
        sequence = 101;
        helio_rxw_packet packet = {
            .tsdu = tsdu, .bytes = 44, .is_fragment = true, .fragment = {101, 0, 200}};
        CHECK_EQUAL(helio_delivery_pass(&delivery, 101, &packet, now), HELIO_DELIVERY_TAKEN);
        packet.fragment = second[i];
        CHECK_EQUAL(helio_delivery_pass(&delivery, 102, &packet, now), HELIO_DELIVERY_DAMAGED);
        check_text(&j, "");
        end();
    }
}

static void a_declared_length_takes_no_memory_before_its_data(void) {
    helio_reassembly reassembly;
    static uint8_t data[1000];
    helio_reassembly_init(&reassembly, 1 << 30, NULL);
    CHECK_EQUAL(helio_reassembly_add(&reassembly, &(helio_pgm_fragment){1, 0, 1 << 30}, data, 1000),
                HELIO_REASSEMBLY_MORE);
    CHECK(reassembly.capacity <= 65536);
    CHECK_EQUAL(
        helio_reassembly_add(&reassembly, &(helio_pgm_fragment){2, 0, (1 << 30) + 1}, data, 1000),
        HELIO_REASSEMBLY_DAMAGED); /* longer than any message may be */
    helio_reassembly_fini(&reassembly);
}

static void a_full_sink_does_not_lose_a_message_of_fragments(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(true);
    j.room = 0;
    CHECK_EQUAL(pass_fragments("t", 0, 0), HELIO_DELIVERY_FULL);
    j.room = 5;
    helio_rxw_packet last = {
        .tsdu = tsdu, .bytes = 18, .is_fragment = true, .fragment = {101, 84, 102}};
    CHECK_EQUAL(helio_delivery_pass(&delivery, sequence, &last, now), HELIO_DELIVERY_TAKEN);
    check_text(&j, "0");
    end();
}

static void two_names_of_one_identifier_are_not_mixed_up(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(true);
    CHECK_EQUAL(pass_topics("someone else's", 10, helio_hash_fnv1a("t", 1)), HELIO_DELIVERY_TAKEN);
    check_text(&j, "");
    end();
}

/* ---- numbers that cannot be true (M6) ---- */

#define FORGED (UINT64_C(1) << 63)

static void check_refused(const journal *j, helio_delivery_result result) {
    CHECK_EQUAL(result, HELIO_DELIVERY_DAMAGED);
    check_text(j, "0 1");
    check_books(j, 0, 2, 0);
}

static void a_number_that_no_lost_packet_explains_is_refused_and_changes_nothing(void) {
    static const uint64_t numbers[] = {70000 * 20, FORGED, UINT64_MAX - 1, UINT64_MAX};
    journal j;
    begin();
    subscribe(&j, "t");
    follow(true);
    pass("t", 0, 2);
    check_refused(&j, pass("t", 3, 1));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        check_refused(&j, pass("t", numbers[i], 1));
        check_refused(&j, pass_topics("t", numbers[i], 0));
    }
    CHECK_EQUAL(pass("t", 2, 1), HELIO_DELIVERY_TAKEN);
    check_text(&j, "0 1 2");
    end();
}

static void as_many_messages_can_be_lost_as_the_lost_packets_could_hold(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(true);
    pass("t", 0, 2);
    lose(2);
    check_refused(&j, pass("t", 2 + 3 * 65535 + 1, 1)); /* it was a packet missed itself */
    check_refused(&j, pass("t", FORGED, 1));
    CHECK_EQUAL(pass("t", 2 + 2 * 65535, 1), HELIO_DELIVERY_TAKEN);
    check_text(&j, "0 1 !2+131070 131072");
    CHECK_EQUAL(pass("t", 131074, 1), HELIO_DELIVERY_DAMAGED); /* what was explained is used up */
    CHECK_EQUAL(pass("t", 131073, 1), HELIO_DELIVERY_TAKEN);
    check_books(&j, 0, 4, 131070);
    end();
}

static void an_announcement_in_order_uses_up_what_losses_would_explain(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(true);
    pass("t", 0, 2);
    lose(5); /* of other topics, as is seen now */
    CHECK_EQUAL(pass_topics("t", 2, 0), HELIO_DELIVERY_TAKEN);
    check_refused(&j, pass("t", 3, 1));
    end();
}

static void a_topic_begins_with_no_number_that_it_could_not_have_reached(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(false);
    CHECK_EQUAL(pass("t", FORGED, 1), HELIO_DELIVERY_DAMAGED);
    CHECK_EQUAL(pass_topics("t", UINT64_MAX, 0), HELIO_DELIVERY_DAMAGED);
    CHECK_EQUAL(pass("t", 10, 1), HELIO_DELIVERY_TAKEN);
    check_text(&j, "10");
    end();
}

static void a_stream_whose_source_keeps_nothing_is_not_taken_for_one_that_begins(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(true); /* met with an empty window, as its history had become too old */
    CHECK_EQUAL(pass("t", 500, 1), HELIO_DELIVERY_TAKEN);
    check_text(&j, "500");
    check_books(&j, 500, 1, 0);
    end();
}

static void a_number_handed_over_before_its_turn_must_be_possible_too(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(true);
    pass("t", 0, 2);
    const size_t bytes = make_batch("t", FORGED, 1);
    const helio_rxw_packet packet = {.tsdu = tsdu, .bytes = (uint32_t)bytes, .arrival_ns = 6500};
    helio_delivery_ahead(&delivery, &packet, now);
    check_text(&j, "0 1");
    end();
}

/* ---- a stream that comes back (H5) ---- */

/* The stream ends and comes back with this packet. */
static void come_back(uint64_t at, uint64_t absent_ns) {
    helio_delivery_mark marks[4];
    const uint32_t count = helio_delivery_marks(&delivery, marks, 4);
    const helio_delivery_past past = helio_delivery_past_of(&delivery);
    helio_delivery_fini(&delivery, now);
    for (helio_subscription *s = shared.first; s; s = s->next) {
        s->streams = 0;
    }
    follow(false);
    helio_delivery_resume(&delivery, &past, marks, count, at, absent_ns);
}

static void what_was_sent_while_a_stream_was_away_is_lost_by_number(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(false);
    pass("t", 7, 2);
    come_back(sequence + 1, 0);
    lose(3);
    pass("t", 20, 1);
    check_text(&j, "7 8 end !9+11 20");
    check_books(&j, 9, 1, 11);
    end();
}

static void an_announcement_tells_what_was_sent_while_a_stream_was_away(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(true); /* and nothing came of the topic */
    come_back(sequence + 1, 0);
    lose(3);
    pass_topics("t", 20, 0);
    check_text(&j, "!0+20");
    check_books(&j, 0, 0, 20);
    end();
}

static void a_subscription_made_while_a_stream_was_away_joins_late(void) {
    journal j, other;
    begin();
    helio_subscription *first = subscribe(&j, "t");
    follow(false);
    pass("t", 7, 2);
    helio_delivery_remove(&delivery, first, now);
    subscribe(&other, "t");
    helio_delivery_mark marks[4];
    CHECK_EQUAL(helio_delivery_marks(&delivery, marks, 4), 0);
    come_back(sequence + 1, 0);
    lose(3);
    pass("t", 20, 1);
    check_text(&other, "20");
    check_books(&other, 20, 1, 0);
    end();
}

static void numbers_that_go_back_belong_to_another_life(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(false);
    pass("t", 7, 2);
    come_back(0, 0);
    pass("t", 3, 1);
    check_text(&j, "7 8 end 3");
    check_books(&j, 3, 1, 0);
    end();
}

static void what_is_passed_once_more_is_not_delivered_twice(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(false);
    pass("t", 7, 2);
    pass("t", 9, 2);
    come_back(sequence + 1, 0);
    sequence -= 2; /* the source waits for acknowledgements of both */
    CHECK_EQUAL(pass("t", 7, 2), HELIO_DELIVERY_TAKEN);
    CHECK_EQUAL(pass("t", 9, 2), HELIO_DELIVERY_TAKEN);
    CHECK_EQUAL(pass("t", 11, 1), HELIO_DELIVERY_TAKEN);
    check_text(&j, "7 8 9 10 end 11");
    check_books(&j, 11, 1, 0);
    end();
}

static void after_a_long_absence_packets_cannot_be_counted_and_numbers_are_believed(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(false);
    pass("t", 0, 2);
    come_back(sequence + 1, 5000000); /* so many messages can have been sent, in as many ns */
    CHECK_EQUAL(pass("t", 5000003, 1), HELIO_DELIVERY_DAMAGED);
    CHECK_EQUAL(pass("t", 5000002, 1), HELIO_DELIVERY_TAKEN);
    check_text(&j, "0 1 end !2+5000000 5000002");
    end();
}

static void latency_is_recorded_per_message_and_never_negative(void) {
    journal j;
    begin();
    subscribe(&j, "t");
    follow(true);
    pass("t", 0, 3);
    const helio_hdr *total = j.object->histogram[HELIO_RECEIVER_TOTAL_LATENCY];
    const helio_hdr *order = j.object->histogram[HELIO_RECEIVER_ORDER_LATENCY];
    CHECK_EQUAL(helio_cell(&total->counts[helio_hdr_index(9000 - 8000)]), 3);
    CHECK_EQUAL(helio_cell(&order->counts[helio_hdr_index(7000 - 6500)]), 3);
    CHECK_EQUAL(helio_cell(&j.stats->latency_invalid_samples), 0);
    sequence++;
    const size_t bytes = make_batch("t", 3, 2);
    tsdu[24] = 0x7F; /* submitted in the far future */
    pass_tsdu(bytes);
    CHECK_EQUAL(helio_cell(&j.stats->latency_invalid_samples), 2);
    CHECK_EQUAL(helio_cell(&total->negative), 0);
    end();
}

int main(void) {
    RUN(messages_are_delivered_in_order_with_their_stamps);
    RUN(a_jump_is_reported_once_with_its_range);
    RUN(a_stream_joined_late_has_messages_from_before);
    RUN(a_stream_known_from_its_first_packet_has_lost_what_is_missing_at_the_start);
    RUN(a_subscription_that_comes_later_joins_later);
    RUN(announcements_tell_where_a_topic_is_and_what_was_lost_at_its_end);
    RUN(a_topic_that_is_looked_for_is_received_from_its_announcement_on);
    RUN(names_that_are_forged_or_closing_are_not_found);
    RUN(unwanted_topics_and_foreign_data_are_told_apart);
    RUN(a_damaged_batch_delivers_nothing_and_is_lost);
    RUN(a_full_sink_gets_the_rest_later_and_nothing_twice);
    RUN(a_batch_of_very_many_messages_stops_and_goes_on_anywhere);
    RUN(fragments_become_one_message);
    RUN(a_message_that_misses_a_fragment_is_lost_at_once);
    RUN(without_its_first_fragment_a_message_is_lost_with_the_next_number);
    RUN(fragments_that_contradict_each_other_are_damaged);
    RUN(a_declared_length_takes_no_memory_before_its_data);
    RUN(a_full_sink_does_not_lose_a_message_of_fragments);
    RUN(two_names_of_one_identifier_are_not_mixed_up);
    RUN(a_number_that_no_lost_packet_explains_is_refused_and_changes_nothing);
    RUN(as_many_messages_can_be_lost_as_the_lost_packets_could_hold);
    RUN(an_announcement_in_order_uses_up_what_losses_would_explain);
    RUN(a_topic_begins_with_no_number_that_it_could_not_have_reached);
    RUN(a_stream_whose_source_keeps_nothing_is_not_taken_for_one_that_begins);
    RUN(a_number_handed_over_before_its_turn_must_be_possible_too);
    RUN(what_was_sent_while_a_stream_was_away_is_lost_by_number);
    RUN(an_announcement_tells_what_was_sent_while_a_stream_was_away);
    RUN(a_subscription_made_while_a_stream_was_away_joins_late);
    RUN(numbers_that_go_back_belong_to_another_life);
    RUN(what_is_passed_once_more_is_not_delivered_twice);
    RUN(after_a_long_absence_packets_cannot_be_counted_and_numbers_are_believed);
    RUN(latency_is_recorded_per_message_and_never_negative);
    return check_result();
}
