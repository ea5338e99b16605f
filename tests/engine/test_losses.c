/* The losses of an instance, which outlive their streams. */
#include "check.h"
#include "stats/losses.h"
#include "stats/segment.h"
#include "world.h"

#define SECOND HELIO_SECOND
#define MS HELIO_MILLISECOND

static helio_stats *stats;
static helio_stats_object instance;

static void open_instance(void) {
    CHECK_EQUAL(
        helio_stats_open_object(stats, HELIO_SCOPE_INSTANCE, "instance=test\n", 1, &instance), 0);
    stats->instance = instance.record;
}

static void begin(size_t bytes) {
    const helio_stats_config config = {.name = "test", .bytes = bytes, .wall_ns = 1};
    CHECK_EQUAL(helio_stats_create(&config, &stats), 0);
    open_instance();
}

/* A segment as small as may be: its tables fill it. */
static void begin_smallest(void) {
    helio_stats_config config = {.name = "test", .bytes = 1 << 16, .wall_ns = 1};
    int error = helio_stats_create(&config, &stats);
    CHECK_EQUAL(error, HELIO_ERR_SEGMENT);
    for (; error; error = helio_stats_create(&config, &stats)) {
        config.bytes += 4096;
    }
    CHECK(config.bytes < 1 << 20);
    open_instance();
}

static void end(void) {
    helio_stats_close_object(stats, &instance, 1);
    helio_stats_destroy(stats);
}

static void lose(int stream, const char *cause, uint64_t first, uint64_t packets, int64_t wall_ns) {
    char name[32];
    snprintf(name, sizeof name, "stream-%d", stream);
    const helio_loss_note note = {
        .instance = "test",
        .stream = name,
        .cause = cause,
        .source = "10.0.0.1:1",
        .endpoint = "rmm://239.192.7.7:7500",
        .first = first,
        .packets = packets,
        .bytes = 100 * packets,
    };
    helio_losses_note(stats, &note, wall_ns);
}

/* The live objects of scope loss; `found` has the record of the one whose labels hold `text`. */
static unsigned kept(const helio_stats *from, const char *text, const helio_loss_stats **found) {
    unsigned count = 0;
    if (found) {
        *found = NULL;
    }
    for (uint64_t i = 0; i < helio_cell(&from->header->objects_used); i++) {
        const helio_segment_object *entry = &from->objects[i];
        if (entry->scope != HELIO_SCOPE_LOSS || entry->state != HELIO_OBJECT_LIVE) {
            continue;
        }
        count++;
        if (found && strstr(entry->labels, text)) {
            *found = (const helio_loss_stats *)(from->memory + entry->record_offset);
        }
    }
    return count;
}

static void a_loss_has_its_count_its_first_and_last_time_and_its_place(void) {
    begin(8 << 20);
    CHECK_EQUAL(kept(stats, "", NULL), 0);
    lose(1, "deadline", 500, 3, 10 * SECOND);
    lose(1, "deadline", 700, 40, 20 * SECOND);
    lose(1, "overflow", 900, 1, 21 * SECOND);
    lose(2, "deadline", 77, 2, 22 * SECOND);
    const helio_loss_stats *found;
    CHECK_EQUAL(kept(stats, "stream=stream-1\ncause=deadline\nsource=10.0.0.1:1\n", &found), 3);
    CHECK(found != NULL);
    CHECK_EQUAL(helio_cell(&found->observations), 2);
    CHECK_EQUAL(helio_cell(&found->packets), 43);
    CHECK_EQUAL(helio_cell(&found->bytes_estimated), 4300);
    CHECK_EQUAL(helio_cell(&found->longest), 40);
    CHECK_EQUAL(helio_cell(&found->first_lost), 10 * SECOND);
    CHECK_EQUAL(helio_cell(&found->last_lost), 20 * SECOND);
    CHECK_EQUAL(helio_cell(&found->first_sequence), 500);
    CHECK_EQUAL(helio_cell(&found->last_sequence), 739);
    end();
}

static void the_number_is_bounded_and_the_one_longest_without_a_loss_gives_way(void) {
    const helio_instance_stats *counts;
    begin(8 << 20);
    counts = instance.record;
    for (int i = 0; i < HELIO_LOSSES_MAX; i++) {
        lose(i, "deadline", 1, 1, (100 + i) * SECOND);
    }
    lose(0, "deadline", 2, 1, 200 * SECOND); /* so the second is the oldest */
    CHECK_EQUAL(helio_cell(&counts->losses_replaced), 0);
    lose(1000, "deadline", 1, 1, 300 * SECOND);
    const helio_loss_stats *found;
    CHECK_EQUAL(kept(stats, "stream=stream-1000\n", &found), HELIO_LOSSES_MAX);
    CHECK(found != NULL);
    kept(stats, "stream=stream-1\n", &found);
    CHECK(found == NULL);
    kept(stats, "stream=stream-0\n", &found);
    CHECK(found != NULL);
    CHECK_EQUAL(helio_cell(&counts->losses_replaced), 1);
    CHECK_EQUAL(helio_cell(&counts->losses_unrecorded), 0);
    end();
}

static void streams_that_come_lose_and_go_do_not_use_up_the_segment(void) {
    begin(8 << 20);
    const helio_instance_stats *counts = instance.record;
    for (int i = 0; i < 20000; i++) {
        lose(i, "deadline", 1, 1, 100 * SECOND + i * MS);
    }
    CHECK_EQUAL(kept(stats, "", NULL), HELIO_LOSSES_MAX);
    CHECK(helio_cell(&stats->header->objects_used) < HELIO_LOSSES_MAX + 25);
    const uint64_t replaced = helio_cell(&counts->losses_replaced);
    CHECK(replaced >= 19 && replaced <= 21);
    CHECK_EQUAL(helio_cell(&counts->losses_unrecorded), 20000 - HELIO_LOSSES_MAX - replaced);
    lose(70000, "deadline", 1, 1, 5 * SECOND); /* a clock set back does not stop it for long */
    CHECK_EQUAL(helio_cell(&counts->losses_replaced), replaced + 1);
    end();
}

static void without_room_in_the_segment_they_are_counted_privately_and_freed(void) {
    begin_smallest();
    for (int i = 0; i < HELIO_LOSSES_MAX + 4; i++) {
        lose(i, "deadline", 1, 1, (100 + i) * SECOND);
    }
    const helio_instance_stats *counts = instance.record;
    CHECK_EQUAL(helio_cell(&counts->losses_replaced), 4);
    end();
}

/* ---- from end to end ---- */

static size_t take(void *context, const helio_message *messages, size_t count) {
    (void)messages;
    *(uint64_t *)context += count;
    return count;
}

static void what_a_receiver_lost_is_there_when_its_stream_is_gone(void) {
    world w;
    world_source source;
    world_receiver receiver;
    helio_tx_topic *topic;
    helio_subscription *subscription;
    uint64_t came = 0;
    world_init(&w, 5, 0);
    helio_tx_stream_config config = world_source_config(1);
    config.window_packets = 16;
    world_add_source(&w, &source, &config);
    helio_rx_endpoint_config rx = world_receiver_config(100);
    world_add_receiver(&w, &receiver, &rx);
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &topic), 0);
    CHECK_EQUAL(helio_rx_endpoint_subscribe(receiver.endpoint, "t",
                                            &(helio_sink){&came, .on_messages = take},
                                            world_now(&w), &subscription),
                0);
    for (int i = 0; i < 300; i++) { /* a third of it while nothing comes through */
        helio_sim_set_link(receiver.node,
                           &(helio_sim_link){.loss = i >= 100 && i < 200 ? 1.0 : 0.0});
        helio_tx_stream_append(source.stream, topic, "x", 1, world_now(&w).wall_ns, world_now(&w));
        helio_tx_stream_flush(source.stream, world_now(&w));
        helio_sim_wake(source.node);
        world_run(&w, MS);
    }
    const uint64_t lost = 300 - came;
    CHECK(came >= 200 && lost > 0);
    world_end_receiver(&receiver);
    const helio_loss_stats *found;
    CHECK_EQUAL(kept(w.stats, "cause=window_advanced\nsource=10.0.0.1:", &found), 1);
    CHECK(found != NULL);
    CHECK(helio_cell(&found->packets) >= lost && helio_cell(&found->longest) >= 64);
    CHECK(helio_cell(&found->bytes_estimated) >= 40 * lost);
    CHECK(helio_cell(&found->first_lost) > 0);
    world_end_source(&source);
    world_fini(&w);
}

int main(void) {
    RUN(a_loss_has_its_count_its_first_and_last_time_and_its_place);
    RUN(the_number_is_bounded_and_the_one_longest_without_a_loss_gives_way);
    RUN(streams_that_come_lose_and_go_do_not_use_up_the_segment);
    RUN(without_room_in_the_segment_they_are_counted_privately_and_freed);
    RUN(what_a_receiver_lost_is_there_when_its_stream_is_gone);
    return check_result();
}
