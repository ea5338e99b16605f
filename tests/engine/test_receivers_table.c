/* What a stream knows of its receivers: who they are, what they told, what they asked for. */
#include "check.h"
#include "receivers/table.h"

#define MS HELIO_MILLISECOND
enum { FIRST = 1000 };

static helio_stats *stats;
static helio_receivers receivers;
static helio_report_context stream;

static helio_address host(int number) {
    char text[32];
    helio_address address;
    snprintf(text, sizeof text, "10.0.%d.%d:%d", number >> 8, number & 255, 1000);
    CHECK_EQUAL(helio_address_parse(text, &address), 0);
    return address;
}

static helio_moment at(int64_t ns) {
    return (helio_moment){ns, 1000000 + ns};
}

static void begin(uint32_t capacity) {
    const helio_stats_config config = {.name = "test", .bytes = 1 << 20, .wall_ns = 1};
    CHECK_EQUAL(helio_stats_create(&config, &stats), 0);
    CHECK_EQUAL(helio_receivers_init(&receivers, capacity, 0, stats, "test", "s"), 0);
    stream = (helio_report_context){.start = FIRST, .lead = FIRST + 999};
}

static void end(void) {
    helio_receivers_fini(&receivers, at(0));
    helio_stats_destroy(stats);
}

/* A report that a receiver may make that has missed `lost` of the first `position` packets. */
static helio_pgm_receiver_report report(uint64_t receiver, uint32_t position, uint32_t lost) {
    return (helio_pgm_receiver_report){
        .receiver = receiver,
        .incarnation = 7,
        .received = position,
        .lost = lost,
        .position = FIRST - 1 + position,
        .window = 64,
        .hold_us = HELIO_PGM_RECEIVER_REPORT_NO_ECHO,
        .name = "desk",
        .name_bytes = 4,
    };
}

static helio_report_result hear(const helio_pgm_receiver_report *told, int from, int64_t now_ns,
                                uint32_t *index) {
    const helio_address address = host(from);
    return helio_receivers_on_report(&receivers, told, &address, &stream, at(now_ns), index);
}

static uint32_t meet(int from, int64_t now_ns) {
    const helio_address address = host(from);
    return helio_receivers_discover(&receivers, &address, at(now_ns));
}

static uint32_t present(void) {
    uint32_t places, count = 0;
    const helio_receiver_view *views = helio_receivers_views(&receivers, &places);
    for (uint32_t i = 0; i < places; i++) {
        CHECK(!(views[i].flags & HELIO_VIEW_PRESENT) || views[i].index == i);
        count += (views[i].flags & HELIO_VIEW_PRESENT) != 0;
    }
    return count;
}

/* ---- who ---- */

static void a_receiver_met_by_its_address_and_then_by_its_id_is_one(void) {
    begin(4);
    helio_receiver_index index;
    const uint32_t met = meet(1, 0);
    CHECK(helio_receivers_ask(&receivers, met, FIRST + 5, 0));
    CHECK(!(helio_receivers_view(&receivers, met)->flags & HELIO_VIEW_REPORTS));
    const uint64_t hash = helio_receivers_view(&receivers, met)->receiver;
    CHECK_EQUAL(helio_receivers_find(&receivers, hash), met);
    const helio_pgm_receiver_report told = report(77, 100, 3);
    CHECK_EQUAL(hear(&told, 1, 1, &index), HELIO_REPORT_TAKEN);
    CHECK_EQUAL(index, met);
    CHECK_EQUAL(present(), 1);
    const helio_receiver_view *view = helio_receivers_view(&receivers, index);
    CHECK_EQUAL(view->receiver, 77);
    CHECK_EQUAL(view->naks, 1);
    CHECK_EQUAL(view->flags, HELIO_VIEW_PRESENT | HELIO_VIEW_NEWS | HELIO_VIEW_REPORTS);
    CHECK_EQUAL(helio_receivers_find(&receivers, 77), met);
    CHECK_EQUAL(helio_receivers_find(&receivers, hash), HELIO_RECEIVER_NONE);
    CHECK_EQUAL(meet(1, 2), met);
    CHECK(strcmp(receivers.entries[met].name, "desk") == 0);
    end();
}

static void two_receivers_behind_one_address_are_two(void) {
    begin(4);
    uint32_t a, b, again;
    const helio_pgm_receiver_report first = report(77, 100, 3), second = report(78, 90, 0);
    CHECK_EQUAL(hear(&first, 1, 0, &a), HELIO_REPORT_TAKEN);
    CHECK_EQUAL(hear(&second, 1, 0, &b), HELIO_REPORT_TAKEN);
    CHECK(a != b);
    CHECK_EQUAL(hear(&first, 1, 1, &again), HELIO_REPORT_TAKEN);
    CHECK_EQUAL(again, a);
    CHECK_EQUAL(helio_receivers_view(&receivers, b)->position, FIRST + 89);
    CHECK_EQUAL(meet(1, 2), a); /* who does not say is the first */
    end();
}

static void who_says_its_name_at_once_has_one_object_from_the_start(void) {
    begin(4);
    uint32_t a, b;
    const helio_pgm_receiver_report first = report(77, 100, 3), second = report(78, 90, 0);
    CHECK_EQUAL(hear(&first, 1, 0, &a), HELIO_REPORT_TAKEN);
    CHECK_EQUAL(hear(&second, 2, 0, &b), HELIO_REPORT_TAKEN);
    CHECK_EQUAL(receivers.entries[b].object.slot, receivers.entries[a].object.slot + 1);
    CHECK(strcmp(receivers.entries[a].name, "desk") == 0);
    end();
}

static void a_later_life_counts_anew_and_an_earlier_one_is_refused(void) {
    begin(4);
    helio_receiver_index index;
    helio_pgm_receiver_report told = report(77, 500, 50);
    CHECK_EQUAL(hear(&told, 1, 0, &index), HELIO_REPORT_TAKEN);
    helio_receivers_ask(&receivers, index, FIRST + 600, 0);
    told = report(77, 10, 1);
    told.incarnation = 8;
    CHECK_EQUAL(hear(&told, 1, 1, &index), HELIO_REPORT_TAKEN);
    const helio_receiver_view *view = helio_receivers_view(&receivers, index);
    CHECK_EQUAL(view->received, 10);
    CHECK_EQUAL(view->lost, 1);
    CHECK_EQUAL(view->naks, 0);
    CHECK_EQUAL(view->position, FIRST + 9);
    CHECK(helio_receivers_ask(&receivers, index, FIRST + 600, 1));
    told.incarnation = 7;
    CHECK_EQUAL(hear(&told, 1, 2, &index), HELIO_REPORT_STALE);
    CHECK_EQUAL(view->incarnation, 8);
#ifndef HELIO_NO_STATS
    const helio_tx_receiver_stats *cells = helio_receivers_stats(&receivers, index);
    CHECK_EQUAL(helio_cell(&cells->packets_received), 510); /* a counter goes on */
    CHECK_EQUAL(helio_cell(&cells->packets_missed), 51);
#endif
    end();
}

/* ---- forgery ---- */

static void a_report_from_elsewhere_is_refused_while_the_receiver_lives(void) {
    begin(4);
    helio_receiver_index index, other;
    helio_pgm_receiver_report told = report(77, 100, 3), forged = report(77, 100, 100);
    forged.incarnation = 9;
    CHECK_EQUAL(hear(&told, 1, 0, &index), HELIO_REPORT_TAKEN);
    CHECK_EQUAL(hear(&forged, 2, HELIO_SECOND - 1, &other), HELIO_REPORT_ELSEWHERE);
    CHECK_EQUAL(other, HELIO_RECEIVER_NONE);
    CHECK_EQUAL(helio_receivers_view(&receivers, index)->lost, 3);
    told.position++;
    told.received++;
    CHECK_EQUAL(hear(&told, 1, HELIO_SECOND, &index), HELIO_REPORT_TAKEN);
    CHECK_EQUAL(hear(&forged, 2, 2 * HELIO_SECOND - 1, &other), HELIO_REPORT_ELSEWHERE);
    /* it is silent: it may have moved, and what was counted for the new address is its own */
    const uint32_t unnamed = meet(2, 2 * HELIO_SECOND);
    helio_receivers_ask(&receivers, unnamed, FIRST + 200, 0);
    CHECK_EQUAL(present(), 2);
    CHECK_EQUAL(hear(&forged, 2, 2 * HELIO_SECOND, &other), HELIO_REPORT_TAKEN);
    CHECK_EQUAL(other, index);
    CHECK_EQUAL(present(), 1);
    CHECK_EQUAL(meet(2, 2 * HELIO_SECOND), index);
    end();
}

static void who_said_goodbye_may_come_back_from_elsewhere_at_once(void) {
    begin(4);
    helio_receiver_index index, again;
    helio_pgm_receiver_report told = report(77, 100, 3);
    told.flags = HELIO_PGM_RECEIVER_REPORT_LEAVING;
    CHECK_EQUAL(hear(&told, 1, 0, &index), HELIO_REPORT_TAKEN);
    CHECK(helio_receivers_view(&receivers, index)->flags & HELIO_VIEW_LEFT);
    told = report(77, 2, 0);
    told.incarnation = 8;
    CHECK_EQUAL(hear(&told, 2, 1, &again), HELIO_REPORT_TAKEN);
    CHECK_EQUAL(again, index);
    CHECK(!(helio_receivers_view(&receivers, index)->flags & HELIO_VIEW_LEFT));
    end();
}

static void impossible_numbers_change_nothing(void) {
    begin(4);
    helio_receiver_index index;
    const helio_pgm_receiver_report good = report(77, 500, 10);
    CHECK_EQUAL(hear(&good, 1, 0, &index), HELIO_REPORT_TAKEN);
    const helio_receiver_view before = *helio_receivers_view(&receivers, index);
    helio_pgm_receiver_report bad = good;
    bad.position = FIRST + 1000; /* not sent yet */
    CHECK_EQUAL(hear(&bad, 1, 1, &index), HELIO_REPORT_IMPOSSIBLE);
    bad = good;
    bad.received = 1001; /* more than were sent */
    CHECK_EQUAL(hear(&bad, 1, 1, &index), HELIO_REPORT_IMPOSSIBLE);
    bad = good;
    bad.lost = 1001;
    CHECK_EQUAL(hear(&bad, 1, 1, &index), HELIO_REPORT_IMPOSSIBLE);
    bad = good;
    bad.unrecoverable = 11; /* more than it missed */
    CHECK_EQUAL(hear(&bad, 1, 1, &index), HELIO_REPORT_IMPOSSIBLE);
    bad = good;
    bad.received = 499; /* fewer than before */
    CHECK_EQUAL(hear(&bad, 1, 1, &index), HELIO_REPORT_STALE);
    bad = good;
    bad.lost = 9;
    CHECK_EQUAL(hear(&bad, 1, 1, &index), HELIO_REPORT_STALE);
    bad = good;
    bad.position--;
    CHECK_EQUAL(hear(&bad, 1, 1, &index), HELIO_REPORT_STALE);
    CHECK_EQUAL(index, before.index);
    CHECK_BYTES(helio_receivers_view(&receivers, index), &before, sizeof before);
    bad = report(78, 500, 0);
    bad.position = FIRST - 2; /* before the first packet */
    CHECK_EQUAL(hear(&bad, 2, 1, &index), HELIO_REPORT_IMPOSSIBLE);
    end();
}

static void a_full_table_keeps_those_it_has(void) {
    begin(2);
    helio_receiver_index index, quiet;
    helio_pgm_receiver_report told = report(1, 100, 0);
    CHECK_EQUAL(hear(&told, 1, 0, &index), HELIO_REPORT_TAKEN);
    told = report(2, 100, 0);
    CHECK_EQUAL(hear(&told, 2, 0, &quiet), HELIO_REPORT_TAKEN);
    told = report(1, 100, 0);
    for (int i = 0; i < 1000; i++) { /* a storm of invented ones */
        const helio_pgm_receiver_report invented = report(1000 + (uint64_t)i, 100, 100);
        CHECK_EQUAL(hear(&invented, 10 + i, i, &index), HELIO_REPORT_NO_ROOM);
        CHECK_EQUAL(meet(10 + i, i), HELIO_RECEIVER_NONE);
    }
    CHECK_EQUAL(helio_receivers_find(&receivers, 1), 0);
    told.received++;
    CHECK_EQUAL(hear(&told, 1, 50 * HELIO_SECOND, &index), HELIO_REPORT_TAKEN);
    told = report(3, 100, 0);
    CHECK_EQUAL(hear(&told, 3, 60 * HELIO_SECOND, &index), HELIO_REPORT_TAKEN);
    CHECK_EQUAL(index, quiet); /* silent for a minute */
    told = report(1, 102, 0);
    told.flags = HELIO_PGM_RECEIVER_REPORT_LEAVING;
    CHECK_EQUAL(hear(&told, 1, 61 * HELIO_SECOND, &index), HELIO_REPORT_TAKEN);
    told = report(4, 100, 0);
    CHECK_EQUAL(hear(&told, 4, 62 * HELIO_SECOND, &index), HELIO_REPORT_TAKEN);
    CHECK_EQUAL(index, 0); /* it had left */
    CHECK_EQUAL(helio_receivers_find(&receivers, 1), HELIO_RECEIVER_NONE);
    end();
}

/* A receiver at a port of a host. */
static helio_address at_port(int number, int port) {
    helio_address address = host(number);
    address.port = (uint16_t)port;
    return address;
}

static uint32_t meet_at(int number, int port, int64_t now_ns) {
    const helio_address address = at_port(number, port);
    return helio_receivers_discover(&receivers, &address, at(now_ns));
}

static helio_instance_stats refusals;

static void begin_counted(uint32_t capacity) {
    begin(capacity);
    refusals = (helio_instance_stats){0};
    receivers.refusals = (helio_refusal_place){stats, &refusals, 0, "s"};
}

static void who_has_proven_nothing_gives_way_to_those_that_report(void) {
    begin_counted(1024);
    helio_receiver_index index;
    for (int i = 0; i < 2000; i++) { /* from many hosts */
        meet(i, i * MS);
    }
    CHECK_EQUAL(present(), 256);
    CHECK_EQUAL(helio_cell(&refusals.state_refused_receivers), 2000 - 256);
    for (uint32_t i = 0; i < 1024; i++) {
        const helio_pgm_receiver_report told = report(5000 + i, 100, 0);
        CHECK_EQUAL(hear(&told, 3000 + (int)i, 2 * HELIO_SECOND, &index), HELIO_REPORT_TAKEN);
    }
    CHECK_EQUAL(present(), 1024);
    CHECK_EQUAL(receivers.unproven, 0);
    CHECK_EQUAL(meet(9000, 2 * HELIO_SECOND), HELIO_RECEIVER_NONE);
    const helio_pgm_receiver_report more = report(9999, 100, 0);
    CHECK_EQUAL(hear(&more, 9999, 2 * HELIO_SECOND, &index), HELIO_REPORT_NO_ROOM);
    CHECK(helio_receivers_find(&receivers, 5000) != HELIO_RECEIVER_NONE);
    end();
}

static void the_one_heard_longest_ago_gives_way_first(void) {
    begin_counted(1024);
    for (int i = 0; i < 256; i++) {
        meet(i, i * MS);
    }
    const uint32_t first = meet(0, 300 * MS); /* it speaks again */
    meet(1000, 301 * MS);
    const helio_address second = host(1), it = host(0);
    CHECK_EQUAL(helio_receivers_at(&receivers, &it), first);
    CHECK_EQUAL(helio_receivers_at(&receivers, &second), HELIO_RECEIVER_NONE);
    end();
}

static void one_address_has_a_share_of_the_places(void) {
    begin_counted(1024);
    for (int port = 1; port <= 1000; port++) {
        meet_at(1, port, port * MS);
    }
    CHECK_EQUAL(present(), 64);
    CHECK_EQUAL(helio_cell(&refusals.state_refused_receivers_of_address), 1000 - 64);
    CHECK(meet(2, HELIO_SECOND) != HELIO_RECEIVER_NONE);
    CHECK_EQUAL(present(), 65);
    /* half of all, of those that report */
    helio_receiver_index index, taken = 0;
    for (uint32_t i = 0; i < 600; i++) {
        const helio_address from = at_port(1, 2000 + (int)i);
        const helio_pgm_receiver_report told = report(100 + i, 100, 0);
        taken += helio_receivers_on_report(&receivers, &told, &from, &stream, at(2 * HELIO_SECOND),
                                           &index) == HELIO_REPORT_TAKEN;
    }
    CHECK_EQUAL(taken, 512);
    const helio_pgm_receiver_report other = report(7777, 100, 0);
    CHECK_EQUAL(hear(&other, 7, 2 * HELIO_SECOND, &index), HELIO_REPORT_TAKEN);
    end();
}

static void looking_for_who_gives_way_is_bounded(void) {
    begin_counted(1024);
    for (int i = 0; i < 256; i++) {
        meet(i, 0);
    }
    uint32_t came = 0;
    for (int i = 0; i < 5000; i++) {
        came += meet(1000 + i, HELIO_SECOND) != HELIO_RECEIVER_NONE;
    }
    CHECK(came <= 101);
    CHECK_EQUAL(helio_cell(&refusals.state_refused_receivers), 5000);
    end();
}

static void an_impossible_report_proves_nothing(void) {
    begin_counted(1024);
    helio_receiver_index index;
    helio_pgm_receiver_report told = report(77, 500, 0);
    told.position = FIRST + 5000;
    CHECK_EQUAL(hear(&told, 1, 0, &index), HELIO_REPORT_IMPOSSIBLE);
    CHECK_EQUAL(present(), 0);
    end();
}

static void a_life_far_in_the_future_is_refused_while_the_receiver_is_heard(void) {
    begin(4);
    helio_receiver_index index;
    helio_pgm_receiver_report told = report(77, 100, 0), forged = report(77, 100, 0);
    forged.incarnation = UINT64_MAX;
    CHECK_EQUAL(hear(&told, 1, 0, &index), HELIO_REPORT_TAKEN);
    CHECK_EQUAL(hear(&forged, 1, MS, &index), HELIO_REPORT_IMPOSSIBLE);
    told.received++;
    CHECK_EQUAL(hear(&told, 1, 2 * MS, &index), HELIO_REPORT_TAKEN);
    /* one that was believed before the receiver came shuts it out for a while only */
    forged.receiver = told.receiver = 78;
    CHECK_EQUAL(hear(&forged, 2, 0, &index), HELIO_REPORT_TAKEN);
    CHECK_EQUAL(hear(&told, 3, HELIO_SECOND, &index), HELIO_REPORT_STALE);
    CHECK_EQUAL(hear(&told, 3, 3 * HELIO_SECOND, &index), HELIO_REPORT_TAKEN);
    CHECK_EQUAL(helio_receivers_view(&receivers, index)->incarnation, told.incarnation);
    end();
}

/* ---- what ---- */

static void counts_and_numbers_go_on_over_their_wraps(void) {
    begin(4);
    helio_receiver_index index;
    stream.start = UINT64_C(0x1FFFFFFF0);
    stream.lead = stream.start + 99;
    helio_pgm_receiver_report told = report(77, 0, 0);
    told.received = 20;
    told.position = (uint32_t)(stream.start + 19);
    CHECK_EQUAL(hear(&told, 1, 0, &index), HELIO_REPORT_TAKEN);
    CHECK_EQUAL(helio_receivers_view(&receivers, index)->position, stream.start + 19);
    helio_receiver_view *view = helio_receivers_view(&receivers, index);
    view->received = UINT64_C(0x2FFFFFFFF);
    stream.lead = UINT64_C(0x500000000);
    told.received = 4;
    told.position = 0;
    CHECK_EQUAL(hear(&told, 1, 1, &index), HELIO_REPORT_TAKEN);
    CHECK_EQUAL(view->received, UINT64_C(0x300000004));
    CHECK_EQUAL(view->position, UINT64_C(0x500000000));
    end();
}

static void the_round_trip_is_what_the_stamp_took_less_its_stay(void) {
    begin(4);
    helio_receiver_index index;
    helio_pgm_receiver_report told = report(77, 100, 0);
    CHECK_EQUAL(hear(&told, 1, 0, &index), HELIO_REPORT_TAKEN);
    const helio_receiver_view *view = helio_receivers_view(&receivers, index);
    CHECK_EQUAL(view->round_trip_ns, 0);
    told.stamp = UINT32_MAX - 99; /* over the wrap */
    told.hold_us = 1000;
    stream.now_us = 1100;
    CHECK_EQUAL(hear(&told, 1, 1, &index), HELIO_REPORT_TAKEN);
    CHECK_EQUAL(view->round_trip_ns, 200 * HELIO_MICROSECOND);
    stream.now_us += 80;
    CHECK_EQUAL(hear(&told, 1, 2, &index), HELIO_REPORT_TAKEN);
    CHECK_EQUAL(view->round_trip_ns, 210 * HELIO_MICROSECOND);
    told.hold_us = 5000; /* longer than it was away: nonsense */
    CHECK_EQUAL(hear(&told, 1, 3, &index), HELIO_REPORT_TAKEN);
    CHECK_EQUAL(view->round_trip_ns, 210 * HELIO_MICROSECOND);
    end();
}

static void loss_is_that_of_the_last_reports(void) {
    begin(4);
    helio_receiver_index index;
    stream.lead = FIRST + 99999;
    helio_pgm_receiver_report told = report(77, 1000, 100);
    CHECK_EQUAL(hear(&told, 1, 0, &index), HELIO_REPORT_TAKEN);
    CHECK(helio_receivers_loss(&receivers, index) == 0.1);
    for (uint32_t i = 2; i <= 60; i++) {
        told = report(77, 1000 * i, 100 + i);
        CHECK_EQUAL(hear(&told, 1, i, &index), HELIO_REPORT_TAKEN);
    }
    CHECK(helio_receivers_loss(&receivers, index) > 0.00099 &&
          helio_receivers_loss(&receivers, index) < 0.0012);
    end();
}

static void requests_are_told_from_repeated_ones(void) {
    begin(4);
    const helio_receiver_index index = meet(1, 0), other = meet(2, 0);
    CHECK(helio_receivers_ask(&receivers, index, FIRST + 5, 0));
    CHECK(helio_receivers_ask(&receivers, index, FIRST + 9, 0));
    CHECK(helio_receivers_ask(&receivers, index, FIRST + 7, 0));
    CHECK(!helio_receivers_ask(&receivers, index, FIRST + 7, 0));
    CHECK(helio_receivers_ask(&receivers, other, FIRST + 7, 0));
    CHECK(helio_receivers_ask(&receivers, index, FIRST + 9 + 4095, 0));
    CHECK(!helio_receivers_ask(&receivers, index, FIRST + 9, 0));
    CHECK(!helio_receivers_ask(&receivers, index, FIRST + 5, 0)); /* out of its memory: as before */
    CHECK(helio_receivers_ask(&receivers, index, FIRST + 50000, 0));
    CHECK(helio_receivers_ask(&receivers, index, FIRST + 50000 - 4095, 0));
    const helio_receiver_view *view = helio_receivers_view(&receivers, index);
    CHECK_EQUAL(view->naks, 6);
    CHECK_EQUAL(view->naks_again, 3);
    CHECK_EQUAL(helio_receivers_view(&receivers, other)->naks, 1);
    end();
}

static void the_oldest_packet_asked_for_is_known_until_it_is_passed_on(void) {
    begin(4);
    helio_receiver_index index;
    helio_pgm_receiver_report told = report(77, 100, 5);
    CHECK_EQUAL(hear(&told, 1, 0, &index), HELIO_REPORT_TAKEN);
    const helio_receiver_view *view = helio_receivers_view(&receivers, index);
    helio_receivers_ask(&receivers, index, FIRST + 300, 0);
    helio_receivers_ask(&receivers, index, FIRST + 150, 0);
    helio_receivers_ask(&receivers, index, FIRST + 500, 0);
    CHECK_EQUAL(view->missing, FIRST + 150);
    told = report(77, 200, 5);
    CHECK_EQUAL(hear(&told, 1, 1, &index), HELIO_REPORT_TAKEN);
    CHECK_EQUAL(view->missing, FIRST + 300);
    helio_receivers_reach(&receivers, index, FIRST + 400);
    CHECK_EQUAL(view->missing, FIRST + 500);
    helio_receivers_reach(&receivers, index, FIRST + 500);
    CHECK_EQUAL(view->missing, 0);
    /* who does not report is believed to have what it no longer asks for */
    const uint32_t silent = meet(2, 0);
    helio_receivers_ask(&receivers, silent, FIRST + 150, 0);
    CHECK_EQUAL(helio_receivers_tend(&receivers, 250 * MS), 1);
    CHECK_EQUAL(helio_receivers_view(&receivers, silent)->missing, FIRST + 150);
    helio_receivers_tend(&receivers, 251 * MS);
    CHECK_EQUAL(helio_receivers_view(&receivers, silent)->missing, 0);
    end();
}

/* ---- allowances ---- */

static uint64_t granted(helio_receiver_index index, int requests) {
    uint64_t count = 0;
    for (int i = 0; i < requests; i++) {
        count += helio_allowance_grants_nak(&receivers.allowances,
                                            helio_receivers_allowance(&receivers, index), 5);
    }
    return count;
}

static void receivers_that_are_not_tracked_share_one_allowance(void) {
    begin(2);
    helio_allowances_init(&receivers.allowances, &(helio_limits){.naks = 10});
    uint64_t count = 0;
    for (int i = 0; i < 100; i++) {
        count += granted(HELIO_RECEIVER_NONE, 5);
    }
    CHECK_EQUAL(count, 10);
    CHECK_EQUAL(granted(meet(1, 5), 20), 10);
    end();
}

static void an_evicted_receivers_actions_and_limits_do_not_pass_to_the_next(void) {
    begin(1);
    helio_allowances *all = &receivers.allowances;
    helio_allowances_init(all, &(helio_limits){.naks = 10});
    const helio_receiver_index index = meet(1, 5);
    helio_allowance *one = helio_receivers_allowance(&receivers, index);
    CHECK_EQUAL(granted(index, 20), 10);
    helio_allowance_set(all, one, HELIO_ACTION_EXPEL, HELIO_NEVER, 5);
    CHECK_EQUAL(all->restricted, 1);
    CHECK_EQUAL(all->expelled, 1);
    const uint32_t born = receivers.entries[index].born;
    CHECK(helio_receivers_is(&receivers, index, born));
    CHECK_EQUAL(meet(2, 6), index);
    CHECK(!helio_receivers_is(&receivers, index, born));
    CHECK_EQUAL(all->restricted, 0);
    CHECK_EQUAL(all->expelled, 0);
    CHECK_EQUAL(all->untracked.naks_shed, 10); /* what the first was refused is still reported */
    CHECK_EQUAL(one->action, HELIO_ACTION_NONE);
    CHECK_EQUAL(granted(index, 20), 10);
    end();
}

int main(void) {
    RUN(a_receiver_met_by_its_address_and_then_by_its_id_is_one);
    RUN(two_receivers_behind_one_address_are_two);
    RUN(who_says_its_name_at_once_has_one_object_from_the_start);
    RUN(a_later_life_counts_anew_and_an_earlier_one_is_refused);
    RUN(a_report_from_elsewhere_is_refused_while_the_receiver_lives);
    RUN(who_said_goodbye_may_come_back_from_elsewhere_at_once);
    RUN(impossible_numbers_change_nothing);
    RUN(a_full_table_keeps_those_it_has);
    RUN(who_has_proven_nothing_gives_way_to_those_that_report);
    RUN(the_one_heard_longest_ago_gives_way_first);
    RUN(one_address_has_a_share_of_the_places);
    RUN(looking_for_who_gives_way_is_bounded);
    RUN(an_impossible_report_proves_nothing);
    RUN(a_life_far_in_the_future_is_refused_while_the_receiver_is_heard);
    RUN(counts_and_numbers_go_on_over_their_wraps);
    RUN(the_round_trip_is_what_the_stamp_took_less_its_stay);
    RUN(loss_is_that_of_the_last_reports);
    RUN(requests_are_told_from_repeated_ones);
    RUN(the_oldest_packet_asked_for_is_known_until_it_is_passed_on);
    RUN(receivers_that_are_not_tracked_share_one_allowance);
    RUN(an_evicted_receivers_actions_and_limits_do_not_pass_to_the_next);
    return check_result();
}
