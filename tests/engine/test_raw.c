/* Bare messages (payload=raw): each packet's data is a message, its number the packet's. */
#include "pair.h"

enum { FRAGMENTED = 4000 /* bytes, which take three packets of 1472 */, LENGTHS_MAX = 2000 };

/* Numbers and lengths of the messages received, losses between them. */
static struct {
    uint64_t next; /* number expected; 0: none yet */
    uint64_t messages, lost, room;
    size_t lengths[LENGTHS_MAX];
    helio_receiver_stats *stats;
    helio_message last;
} got[2];

static void got_stream(void *context, uint32_t stream, const helio_tsi *tsi,
                       helio_stats_object *object) {
    (void)tsi;
    CHECK_EQUAL(stream, 0);
    got[*(int *)context].stats = object->record;
}

static uint64_t packets_of(size_t length) {
    return length > FRAGMENTED - 1 ? 3 : 1;
}

static size_t got_messages(void *context, const helio_message *messages, size_t count) {
    const int i = *(int *)context;
    CHECK_EQUAL(count, 1);
    if (got[i].room == 0) {
        return 0;
    }
    CHECK(got[i].next == 0 || messages->number == got[i].next);
    CHECK_EQUAL(messages->submit_ns, 0);
    for (size_t k = 0; k < messages->length; k++) {
        CHECK_EQUAL(((const uint8_t *)messages->data)[k], (uint8_t)(messages->length + k));
    }
    got[i].next = messages->number + packets_of(messages->length);
    got[i].lengths[got[i].messages++ % LENGTHS_MAX] = messages->length;
    got[i].last = *messages;
    got[i].room--;
    return 1;
}

static void got_loss(void *context, const helio_loss *loss) {
    const int i = *(int *)context;
    CHECK(got[i].next == 0 || loss->first == got[i].next);
    got[i].next = loss->first + loss->count;
    got[i].lost += loss->count;
}

static void subscribe_raw(int i, const char *name) {
    static int numbers[2] = {0, 1};
    memset(&got[i], 0, sizeof got[i]);
    got[i].room = UINT64_MAX;
    const helio_sink sink = {.context = &numbers[i],
                             .on_stream = got_stream,
                             .on_messages = got_messages,
                             .on_loss = got_loss};
    helio_subscription *subscription;
    CHECK_EQUAL(
        helio_rx_endpoint_subscribe(receiver.endpoint, name, &sink, world_now(&w), &subscription),
        0);
}

static helio_rx_endpoint_config raw_receiver(void) {
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.is_raw = true;
    return config;
}

static helio_tx_stream_config raw_source(void) {
    helio_tx_stream_config config = world_source_config(1);
    config.is_raw = true;
    return config;
}

static void begin_raw(helio_rx_endpoint_config to, helio_tx_stream_config from) {
    world_init(&w, 1, 2);
    world_add_receiver(&w, &receiver, &to);
    subscribe_raw(0, "here");
    begin_source(from);
    world_run(&w, MS);
}

static int send_one(size_t length) {
    static uint8_t data[65536];
    for (size_t k = 0; k < length; k++) {
        data[k] = (uint8_t)(length + k);
    }
    const int error = helio_tx_stream_append(source.stream, topic, data, length,
                                             world_now(&w).wall_ns, world_now(&w));
    helio_sim_wake(source.node);
    world_run(&w, 10 * US);
    return error;
}

/* Messages of 1 to 1000 bytes; each tenth takes three packets. */
static size_t length_of(int i) {
    return i % 10 == 9 ? FRAGMENTED : (size_t)(1 + i % 1000);
}

static void send_mixed(int count) {
    for (int i = 0; i < count; i++) {
        CHECK_EQUAL(send_one(length_of(i)), 0);
    }
}

static void check_books(int i) {
    const helio_receiver_stats *stats = got[i].stats;
    CHECK_EQUAL(helio_cell(&stats->messages_delivered), got[i].messages);
    CHECK_EQUAL(helio_cell(&stats->messages_lost), got[i].lost);
    CHECK_EQUAL(helio_cell(&stats->next_message), got[i].next);
    CHECK_EQUAL(helio_cell(&stats->next_message),
                helio_cell(&stats->messages_before_join) + helio_cell(&stats->messages_delivered) +
                    helio_cell(&stats->fragments_joined) + helio_cell(&stats->messages_lost));
}

static const helio_transmitter_stats *sent(void) {
    return helio_tx_topic_object(topic)->record;
}

/* ---- tests ---- */

static void a_message_is_a_packet_and_nothing_else_is_sent(void) {
    begin_raw(raw_receiver(), raw_source());
    for (int i = 0; i < 50; i++) {
        send_one(100);
    }
    world_run(&w, 3 * HELIO_SECOND);
    CHECK_EQUAL(got[0].messages, 50);
    CHECK_EQUAL(got[0].last.number, 49);
    CHECK_EQUAL(helio_cell(&source_counts()->packets_sent), 50);
    CHECK_EQUAL(helio_cell(&sent()->next_message), 50);
    CHECK_EQUAL(helio_cell(&counts()->foreign_packets), 0);
    helio_tx_stream_remove_topic(source.stream, topic, world_now(&w));
    CHECK_EQUAL(helio_cell(&source_counts()->packets_sent), 50);
    end();
}

static void messages_of_all_sizes_come_whole_and_in_order_through_loss(void) {
    begin_raw(raw_receiver(), raw_source());
    helio_sim_set_link(receiver.node, &(helio_sim_link){.loss = 0.1});
    send_mixed(1000);
    world_run(&w, 100 * MS);
    CHECK_EQUAL(got[0].messages, 1000);
    CHECK_EQUAL(got[0].lost, 0);
    for (int i = 0; i < 1000; i++) {
        CHECK_EQUAL(got[0].lengths[i], length_of(i));
    }
    CHECK(helio_cell(&counts()->naks_sent) > 0);
    CHECK_EQUAL(helio_cell(&got[0].stats->fragments_joined), 200);
    CHECK_EQUAL(helio_cell(&sent()->next_message), 1200);
    CHECK_EQUAL(got[0].next, 1200);
    check_books(0);
    end();
}

static void what_cannot_be_mended_is_told_in_packets_and_the_books_balance(void) {
    helio_rx_endpoint_config config = raw_receiver();
    config.nak_retries = 0;
    config.nak_deadline_ns = MS;
    begin_raw(config, raw_source());
    helio_sim_set_link(receiver.node, &(helio_sim_link){.loss = 0.2});
    send_mixed(1000);
    helio_sim_set_link(receiver.node, &(helio_sim_link){0});
    world_run(&w, 100 * MS);
    CHECK(got[0].lost > 0);
    CHECK(got[0].messages < 1000);
    CHECK_EQUAL(got[0].next, 1200);
    check_books(0);
    end();
}

static void the_loss_of_the_last_messages_is_told_without_a_message_behind_them(void) {
    helio_rx_endpoint_config config = raw_receiver();
    config.nak_deadline_ns = 10 * MS;
    begin_raw(config, raw_source());
    send_mixed(5);
    drop(receiver.node, ODATA | RDATA, 1000000);
    send_mixed(3);
    world_run(&w, 50 * MS);
    CHECK_EQUAL(got[0].messages, 5);
    CHECK_EQUAL(got[0].lost, 3);
    check_books(0);
    end();
}

static void a_late_comer_begins_where_it_joins(void) {
    begin_raw(raw_receiver(), raw_source());
    for (int i = 0; i < 7; i++) {
        send_one(10);
    }
    subscribe_raw(1, "late");
    send_mixed(3);
    CHECK_EQUAL(got[0].messages, 10);
    CHECK_EQUAL(got[1].messages, 3);
    CHECK_EQUAL(helio_cell(&got[1].stats->messages_before_join), 7);
    check_books(0);
    check_books(1);
    end();
}

static void every_subscription_gets_everything_and_one_without_room_nothing_twice(void) {
    begin_raw(raw_receiver(), raw_source());
    subscribe_raw(1, "there");
    got[0].room = 15;
    send_mixed(40);
    CHECK_EQUAL(got[0].messages, 15);
    CHECK_EQUAL(got[1].messages, 16);
    CHECK(helio_rx_endpoint_is_blocked(receiver.endpoint));
    got[0].room = UINT64_MAX;
    helio_rx_endpoint_poll(receiver.endpoint, world_now(&w));
    helio_sim_wake(receiver.node);
    world_run(&w, 100 * MS);
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(got[i].messages, 40);
        check_books(i);
    }
    end();
}

static void numbers_go_on_where_sequences_wrap(void) {
    helio_tx_stream_config config = raw_source();
    config.first_sequence = 0xFFFFFFF0;
    begin_raw(raw_receiver(), config);
    helio_sim_set_link(receiver.node, &(helio_sim_link){.loss = 0.1});
    send_mixed(100);
    world_run(&w, 100 * MS);
    CHECK_EQUAL(got[0].messages, 100);
    CHECK_EQUAL(got[0].next, UINT64_C(0xFFFFFFF0) + 120);
    CHECK_EQUAL(helio_cell(&sent()->next_message), got[0].next);
    check_books(0);
    end();
}

/* It begins before the point where the sequence wraps, and knows no number of the time before. */
static void one_that_fetches_the_history_counts_on_where_sequences_wrap(void) {
    helio_tx_stream_config from = raw_source();
    from.first_sequence = 0xFFFFFFF0;
    from.late_join = true;
    helio_rx_endpoint_config to = raw_receiver();
    to.join_history = true;
    world_init(&w, 1, 2);
    begin_source(from);
    world_run(&w, MS);
    send_mixed(40);
    world_add_receiver(&w, &receiver, &to);
    subscribe_raw(0, "late");
    world_run(&w, 1000 * MS);
    CHECK_EQUAL(got[0].messages, 40);
    CHECK_EQUAL(got[0].next, UINT64_C(0xFFFFFFF0) + 48);
    check_books(0);
    end();
}

static void no_latency_is_made_up_where_no_stamp_is_on_the_wire(void) {
    begin_raw(raw_receiver(), raw_source());
    send_one(10);
    CHECK_EQUAL(got[0].messages, 1);
    CHECK_EQUAL(got[0].last.submit_ns, 0);
    CHECK(got[0].last.receive_ns > 0);
    CHECK_EQUAL(helio_cell(&got[0].stats->latency_invalid_samples), 0);
    end();
}

static void empty_messages_and_a_second_topic_are_refused(void) {
    begin_raw(raw_receiver(), raw_source());
    CHECK_EQUAL(send_one(0), HELIO_ERR_SIZE);
    helio_tx_topic *other;
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "other", world_now(&w), &other),
                HELIO_ERR_TOPIC);
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &other), 0);
    CHECK(other == topic);
    CHECK_EQUAL(helio_cell(&source_counts()->packets_sent), 0);
    end();
}

int main(void) {
    RUN(a_message_is_a_packet_and_nothing_else_is_sent);
    RUN(messages_of_all_sizes_come_whole_and_in_order_through_loss);
    RUN(what_cannot_be_mended_is_told_in_packets_and_the_books_balance);
    RUN(the_loss_of_the_last_messages_is_told_without_a_message_behind_them);
    RUN(a_late_comer_begins_where_it_joins);
    RUN(every_subscription_gets_everything_and_one_without_room_nothing_twice);
    RUN(numbers_go_on_where_sequences_wrap);
    RUN(one_that_fetches_the_history_counts_on_where_sequences_wrap);
    RUN(no_latency_is_made_up_where_no_stamp_is_on_the_wire);
    RUN(empty_messages_and_a_second_topic_are_refused);
    return check_result();
}
