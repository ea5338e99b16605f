/* The two windows. */
#include "check.h"
#include "window/rxw.h"
#include "window/txw.h"

/* ---- transmit window ---- */

static void send_one(helio_txw *txw, uint8_t mark) {
    helio_txw_open(txw)[0] = mark;
    helio_txw_commit(txw, 100, mark);
}

static void sent_packets_can_be_found_until_they_leave(void) {
    helio_txw txw;
    const uint64_t first = 1000;
    CHECK_EQUAL(helio_txw_init(&txw, 16, 1472, first), 0);
    CHECK_EQUAL(helio_txw_count(&txw), 0);
    CHECK(!helio_txw_has(&txw, first));
    for (uint8_t i = 0; i < 40; i++) {
        send_one(&txw, i);
        CHECK_EQUAL(txw.lead, first + i);
        CHECK_EQUAL(helio_txw_count(&txw), i < 16 ? i + 1 : 16);
        CHECK_EQUAL(txw.bytes, helio_txw_count(&txw) * 100);
        for (uint64_t s = txw.trail; s <= txw.lead; s++) {
            CHECK_EQUAL(helio_txw_packet(&txw, s)[0], s - first);
            CHECK_EQUAL(helio_txw_slot_of(&txw, s)->payload_sum, s - first);
        }
    }
    CHECK(helio_txw_has(&txw, first + 24) && !helio_txw_has(&txw, first + 23));
    helio_txw_open(&txw); /* the oldest gives way to the open one */
    CHECK(!helio_txw_has(&txw, first + 24));
    CHECK_EQUAL(txw.trail, first + 25);
    helio_txw_open(&txw);
    CHECK_EQUAL(txw.trail, first + 25);
    helio_txw_fini(&txw);
}

static void the_lifetime_of_a_packet_is_what_can_be_sent_before_it_is_overwritten(void) {
    helio_txw txw;
    CHECK_EQUAL(helio_txw_init(&txw, 16, 64, 0x100000000), 0);
    for (uint8_t i = 0; i < 20; i++)
        send_one(&txw, i);
    CHECK_EQUAL(helio_txw_lifetime(&txw, txw.lead), 15);
    uint64_t watched = txw.trail + 3;
    const uint64_t lifetime = helio_txw_lifetime(&txw, watched);
    for (uint64_t i = 0; i < lifetime; i++)
        send_one(&txw, 0xFF);
    CHECK(helio_txw_packet(&txw, watched)[0] != 0xFF);
    send_one(&txw, 0xFF);
    CHECK_EQUAL(helio_txw_packet(&txw, watched)[0], 0xFF);
    helio_txw_fini(&txw);
}

/* ---- receive window ---- */

static helio_rxw rxw;
enum { FIRST = 5000 };

static void begin(void) {
    CHECK_EQUAL(helio_rxw_init(&rxw, 16, 64, FIRST), 0);
}

static helio_rxw_result insert(uint64_t sequence) {
    char text[16];
    snprintf(text, sizeof text, "%d", (int)sequence);
    const helio_rxw_packet packet = {.tsdu = (const uint8_t *)text, .bytes = sizeof text};
    return helio_rxw_insert(&rxw, sequence, &packet);
}

static helio_rxw_state state(uint64_t sequence) {
    return (helio_rxw_state)helio_rxw_slot_of(&rxw, sequence)->state;
}

static void packets_in_order_are_appended(void) {
    begin();
    for (uint64_t s = FIRST; s < FIRST + 16; s++)
        CHECK_EQUAL(insert(s), HELIO_RXW_APPENDED);
    CHECK_EQUAL(rxw.held, 16);
    CHECK_EQUAL(insert(FIRST + 3), HELIO_RXW_DUPLICATE);
    CHECK_EQUAL(insert(FIRST - 1), HELIO_RXW_DUPLICATE);
    for (int s = FIRST; s < FIRST + 16; s++) {
        CHECK_EQUAL(atoi((const char *)helio_rxw_slot_of(&rxw, (uint64_t)s)->packet.tsdu), s);
        helio_rxw_pop(&rxw);
    }
    CHECK(helio_rxw_is_empty(&rxw) && rxw.held == 0);
    helio_rxw_fini(&rxw);
}

static void a_late_packet_fills_its_gap_once(void) {
    begin();
    CHECK_EQUAL(insert(FIRST + 2), HELIO_RXW_OPENED_GAP);
    CHECK_EQUAL(state(FIRST), HELIO_RXW_WAITING);
    CHECK_EQUAL(state(FIRST + 1), HELIO_RXW_WAITING);
    CHECK_EQUAL(insert(FIRST + 1), HELIO_RXW_FILLED_GAP);
    CHECK_EQUAL(insert(FIRST + 1), HELIO_RXW_DUPLICATE);
    CHECK_EQUAL(insert(FIRST), HELIO_RXW_FILLED_GAP);
    CHECK_EQUAL(rxw.held, 3);
    helio_rxw_fini(&rxw);
}

static void what_does_not_fit_is_known_and_wanted_when_there_is_room(void) {
    begin();
    CHECK_EQUAL(insert(FIRST + 16), HELIO_RXW_OVERFLOW);
    CHECK_EQUAL(rxw.known, FIRST + 16);
    CHECK_EQUAL(rxw.lead, FIRST - 1);
    helio_rxw_extend(&rxw, rxw.known);
    CHECK_EQUAL(rxw.lead, FIRST + 15);
    CHECK_EQUAL(insert(FIRST), HELIO_RXW_FILLED_GAP);
    helio_rxw_pop(&rxw);
    helio_rxw_extend(&rxw, rxw.known);
    CHECK_EQUAL(rxw.lead, FIRST + 16);
    CHECK_EQUAL(state(FIRST + 16), HELIO_RXW_WAITING);
    helio_rxw_fini(&rxw);
}

static void one_far_packet_makes_no_more_than_a_window_known(void) {
    begin();
    CHECK_EQUAL(insert(FIRST + 1000000000), HELIO_RXW_OVERFLOW);
    CHECK(rxw.known <= FIRST + 32);
    helio_rxw_extend(&rxw, FIRST + 2000000000);
    CHECK_EQUAL(rxw.lead, FIRST + 15);
    helio_rxw_fini(&rxw);
}

static uint64_t lost_count;

static void count_lost(void *context, uint64_t sequence) {
    (void)context;
    CHECK(sequence >= FIRST);
    lost_count++;
}

static void what_the_source_dropped_is_lost_and_stays_so(void) {
    begin();
    insert(FIRST + 1);
    insert(FIRST + 4);
    lost_count = 0;
    helio_rxw_advance_source(&rxw, FIRST + 3, count_lost, NULL);
    CHECK_EQUAL(lost_count, 2); /* FIRST and FIRST + 2 */
    CHECK_EQUAL(state(FIRST), HELIO_RXW_LOST);
    CHECK_EQUAL(state(FIRST + 1), HELIO_RXW_HELD);
    CHECK_EQUAL(state(FIRST + 3), HELIO_RXW_WAITING);
    CHECK_EQUAL(insert(FIRST), HELIO_RXW_DUPLICATE);
    helio_rxw_advance_source(&rxw, FIRST + 2, count_lost, NULL); /* an old trail changes nothing */
    CHECK_EQUAL(lost_count, 2);
    /* a trail far ahead: slots that appear later are lost from the start */
    helio_rxw_advance_source(&rxw, FIRST + 100, count_lost, NULL);
    CHECK_EQUAL(lost_count, 3);
    helio_rxw_extend(&rxw, FIRST + 8);
    CHECK_EQUAL(state(FIRST + 8), HELIO_RXW_LOST);
    while (!helio_rxw_is_empty(&rxw))
        helio_rxw_pop(&rxw);
    helio_rxw_skip(&rxw, rxw.source_trail);
    CHECK_EQUAL(insert(FIRST + 100), HELIO_RXW_APPENDED);
    helio_rxw_fini(&rxw);
}

static void a_packet_passed_on_at_once_leaves_no_trace(void) {
    begin();
    helio_rxw_pass(&rxw);
    CHECK(rxw.trail == FIRST + 1 && helio_rxw_is_empty(&rxw) && rxw.known == FIRST);
    insert(FIRST + 2);
    helio_rxw_pass(&rxw); /* the one that was missing */
    CHECK(rxw.trail == FIRST + 2 && state(FIRST + 1) == HELIO_RXW_EMPTY && rxw.lead == FIRST + 2);
    helio_rxw_fini(&rxw);
}

int main(void) {
    RUN(sent_packets_can_be_found_until_they_leave);
    RUN(the_lifetime_of_a_packet_is_what_can_be_sent_before_it_is_overwritten);
    RUN(packets_in_order_are_appended);
    RUN(a_late_packet_fills_its_gap_once);
    RUN(what_does_not_fit_is_known_and_wanted_when_there_is_room);
    RUN(one_far_packet_makes_no_more_than_a_window_known);
    RUN(what_the_source_dropped_is_lost_and_stays_so);
    RUN(a_packet_passed_on_at_once_leaves_no_trace);
    return check_result();
}
