/* The log of distinct warnings and errors. */
#include "base/moment.h"
#include "check.h"
#include "stats/segment.h"

static helio_stats *stats;
static helio_stats_object instance;

static void begin(uint32_t rate, uint32_t burst) {
    const helio_stats_config config = {
        .name = "log", .bytes = 8 << 20, .wall_ns = 1, .event_rate = rate, .event_burst = burst};
    CHECK_EQUAL(helio_stats_create(&config, &stats), 0);
    CHECK_EQUAL(
        helio_stats_open_object(stats, HELIO_SCOPE_INSTANCE, "instance=log\n", 1, &instance), 0);
}

static void end(void) {
    helio_stats_close_object(stats, &instance, 9);
    helio_stats_destroy(stats);
}

static void tell(helio_event_id event, int64_t wall_ns) {
    helio_stats_event(stats, wall_ns, event, HELIO_STATS_NO_SLOT, NULL, "it happened");
}

static uint32_t slots(void) {
    return (uint32_t)helio_cell(&stats->header->objects_used);
}

static const helio_incident_stats *incident(uint32_t slot) {
    return (const helio_incident_stats *)(stats->memory + stats->objects[slot].record_offset);
}

static void each_kind_of_warning_is_kept_with_how_often_first_and_last(void) {
    begin(0, 1);
    tell(HELIO_EVENT_PACKETS_LOST, 1000);
    tell(HELIO_EVENT_SEND_FAILED, 2000);
    tell(HELIO_EVENT_PACKETS_LOST, 3000);
    helio_stats_tend(stats, (helio_moment){.now_ns = 5, .wall_ns = 3000});
    CHECK_EQUAL(slots(), 3);
    for (uint32_t slot = 1; slot < 3; slot++) {
        CHECK_EQUAL(stats->objects[slot].scope, HELIO_SCOPE_INCIDENT);
        const bool is_loss = strstr(stats->objects[slot].labels, "event=packets_lost\n") != NULL;
        CHECK(is_loss || strstr(stats->objects[slot].labels, "event=send_failed\n"));
        CHECK_EQUAL(incident(slot)->occurrences, is_loss ? 2 : 1);
        CHECK_EQUAL(incident(slot)->first, is_loss ? 1000 : 2000);
        CHECK_EQUAL(incident(slot)->last, is_loss ? 3000 : 2000);
    }
    end();
}

static void what_is_only_told_is_no_incident(void) {
    begin(0, 1);
    tell(HELIO_EVENT_INSTANCE_STARTED, 1000);
    helio_stats_tend(stats, (helio_moment){.now_ns = 5, .wall_ns = 1000});
    CHECK_EQUAL(slots(), 1);
    end();
}

static void those_held_back_are_counted_too(void) {
    begin(1, 1);
    for (int i = 0; i < 1000; i++) {
        tell(HELIO_EVENT_PACKETS_LOST, 1000 + i);
    }
    helio_stats_tend(stats, (helio_moment){.now_ns = 5, .wall_ns = 2000});
    CHECK_EQUAL(incident(1)->occurrences, 1000);
    CHECK_EQUAL(incident(1)->last, 1999);
    CHECK(helio_cell(&stats->header->events_written) < 10);
    end();
}

static void the_last_moments_incidents_are_written_down_at_the_end(void) {
    begin(0, 1);
    tell(HELIO_EVENT_PACKETS_LOST, 1000);
    helio_stats_close_object(stats, &instance, 9);
    helio_incidents_end(stats, 2000);
    CHECK_EQUAL(incident(1)->occurrences, 1);
    CHECK_EQUAL(stats->objects[1].state, HELIO_OBJECT_GONE);
    memset(stats->incidents, 0, sizeof stats->incidents);
    helio_stats_destroy(stats);
}

int main(void) {
    RUN(each_kind_of_warning_is_kept_with_how_often_first_and_last);
    RUN(what_is_only_told_is_no_incident);
    RUN(those_held_back_are_counted_too);
    RUN(the_last_moments_incidents_are_written_down_at_the_end);
    return check_result();
}
