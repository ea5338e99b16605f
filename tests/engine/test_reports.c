/* When receivers report, and how often their source asks them to. */
#include "check.h"
#include "receive/reports.h"
#include "send/reports.h"

#define MS HELIO_MILLISECOND
#define INTERVAL_NS (100 * MS)

static helio_rx_reports reports;
static helio_pgm_receiver_report now;

static void asked(uint32_t interval_ms, uint32_t stamp, int64_t now_ns) {
    const helio_pgm_reporting said = {.interval_us = interval_ms * 1000, .stamp = stamp};
    helio_rx_reports_on_spm(&reports, &said, 7, now_ns);
}

static void begin(uint64_t seed) {
    helio_rx_reports_init(&reports, seed);
    now = (helio_pgm_receiver_report){.receiver = 1, .received = 1};
}

static void send(int64_t now_ns) {
    helio_rx_reports_fill_in(&reports, "desk", &now, now_ns);
    helio_rx_reports_on_sent(&reports, &now, now_ns);
}

/* ---- the receiver ---- */

static void nothing_is_due_before_a_source_asks(void) {
    begin(1);
    CHECK_EQUAL(reports.due_ns, HELIO_NEVER);
    helio_rx_reports_on_spm(&reports, NULL, 7, 0);
    CHECK(!reports.is_on);
    CHECK_EQUAL(reports.due_ns, HELIO_NEVER);
    asked(0, 5, 0); /* only with what is sent anyway */
    CHECK(reports.is_on);
    CHECK_EQUAL(reports.due_ns, HELIO_NEVER);
    asked(100, 5, 0);
    CHECK(reports.due_ns >= 0 && reports.due_ns <= INTERVAL_NS);
    helio_rx_reports_on_spm(&reports, NULL, 7, 1); /* and it may change its mind */
    CHECK(!reports.is_on);
    CHECK_EQUAL(reports.due_ns, HELIO_NEVER);
}

static void nobody_can_be_made_to_flood_its_source(void) {
    begin(1);
    const helio_pgm_reporting said = {.interval_us = 1, .stamp = 1};
    helio_rx_reports_on_spm(&reports, &said, 7, 0);
    int64_t now_ns = 0;
    int count = 0;
    while (now_ns < HELIO_SECOND) {
        now_ns = reports.due_ns;
        now.received++;
        if (helio_rx_reports_poll(&reports, &now, now_ns)) {
            send(now_ns);
            count++;
        }
    }
    CHECK(count > 500 && count <= 2002);
}

static void few_of_many_speak_early(void) {
    int early = 0, in_half = 0;
    for (uint64_t seed = 0; seed < 10000; seed++) {
        begin(seed);
        asked(100, 1, 0);
        early += reports.due_ns < 30 * MS;
        in_half += reports.due_ns < 50 * MS;
    }
    CHECK(early >= 1 && early < 30);
    CHECK(in_half < 120);
}

static void reports_are_half_an_interval_to_a_whole_one_apart(void) {
    begin(3);
    asked(100, 1, 0);
    int64_t then_ns = 0, sum_ns = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        now.received++;
        CHECK(!helio_rx_reports_poll(&reports, &now, reports.due_ns - 1));
        CHECK(helio_rx_reports_poll(&reports, &now, reports.due_ns));
        then_ns = reports.due_ns;
        send(then_ns);
        const int64_t gap_ns = reports.due_ns - then_ns;
        CHECK(gap_ns >= INTERVAL_NS / 2 && gap_ns <= INTERVAL_NS);
        sum_ns += gap_ns;
    }
    CHECK(sum_ns > 730 * INTERVAL_NS && sum_ns < 770 * INTERVAL_NS);
}

static void what_is_sent_anyway_puts_the_next_one_off(void) {
    begin(4);
    asked(100, 1, 0);
    for (int64_t t = 0; t < 1000 * MS; t += 40 * MS) { /* NAKs */
        CHECK(t < reports.due_ns);
        now.lost++;
        send(t);
    }
}

static void without_news_reports_are_rare(void) {
    begin(5);
    asked(100, 1, 0);
    int sent = 0;
    while (reports.due_ns < 100 * INTERVAL_NS) {
        const int64_t t = reports.due_ns;
        if (helio_rx_reports_poll(&reports, &now, t)) {
            send(t);
            sent++;
        }
        CHECK(reports.due_ns > t && reports.due_ns <= t + INTERVAL_NS);
    }
    CHECK(sent >= 10 && sent <= 12);
}

static void fuller_buffers_are_told_sooner_but_not_at_once(void) {
    begin(6);
    asked(1000, 1, 0);
    send(0);
    reports.due_ns = 999 * MS;
    helio_rx_reports_on_fill(&reports, UINT16_MAX / 2 - 1, 10 * MS); /* no news */
    CHECK_EQUAL(reports.due_ns, 999 * MS);
    helio_rx_reports_on_fill(&reports, UINT16_MAX / 2, 10 * MS);
    CHECK(reports.due_ns >= 500 * MS && reports.due_ns <= 625 * MS);
    const int64_t due_ns = reports.due_ns;
    helio_rx_reports_on_fill(&reports, UINT16_MAX, 20 * MS); /* nor sooner for more */
    CHECK_EQUAL(reports.due_ns, due_ns);
    now.buffer_fill = UINT16_MAX;
    CHECK(helio_rx_reports_poll(&reports, &now, due_ns));
    send(due_ns);
    reports.due_ns = due_ns + 1000 * MS;
    helio_rx_reports_on_fill(&reports, 0, due_ns + 700 * MS); /* emptier, late in the interval */
    CHECK(reports.due_ns >= due_ns + 700 * MS && reports.due_ns <= due_ns + 825 * MS);
}

static void a_longer_interval_is_drawn_anew_and_nobody_waits_for_ever(void) {
    int64_t sum_ns = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        begin(seed);
        asked(100, 1, 0);
        asked(1000, 2, 1 * MS);
        CHECK(reports.due_ns >= MS && reports.due_ns <= 1001 * MS);
        sum_ns += reports.due_ns;
        const int64_t left_ns = reports.due_ns - MS;
        asked(4000, 3, 1 * MS); /* what is left is as much longer */
        const int64_t stretched_ns = reports.due_ns - MS;
        CHECK(stretched_ns >= 4 * left_ns - 1 && stretched_ns <= 4 * left_ns + 1);
    }
    CHECK(sum_ns > 450 * 1000 * MS && sum_ns < 550 * 1000 * MS);
    begin(7);
    asked(100, 1, 0);
    send(10 * MS);
    asked(1000, 2, 20 * MS); /* who has spoken speaks half an interval later, or more */
    CHECK(reports.due_ns >= 510 * MS && reports.due_ns <= 1010 * MS);
    asked(10, 3, 21 * MS);
    CHECK(reports.due_ns >= 21 * MS && reports.due_ns <= 31 * MS);
}

static void the_stamp_is_told_back_with_its_stay_and_the_name_now_and_then(void) {
    begin(8);
    asked(100, 0, 0);
    int named = 0;
    for (int i = 0; i < 64; i++) {
        helio_rx_reports_fill_in(&reports, "desk", &now, i);
        CHECK_EQUAL(now.hold_us, HELIO_PGM_RECEIVER_REPORT_NO_ECHO);
        named += now.name_bytes == 4;
        CHECK(i >= 3 || now.name_bytes == 4);
        helio_rx_reports_on_sent(&reports, &now, i);
    }
    CHECK_EQUAL(named, 6);
    asked(100, 77, 1000 * MS);
    asked(100, 0, 2000 * MS); /* none: the one before stays */
    helio_rx_reports_fill_in(&reports, "desk", &now, 3000 * MS + 999);
    CHECK_EQUAL(now.stamp, 77);
    CHECK_EQUAL(now.hold_us, 2000000);
    helio_rx_reports_fill_in(&reports, "desk", &now, 5000 * HELIO_SECOND); /* more than fits */
    CHECK_EQUAL(now.hold_us, HELIO_PGM_RECEIVER_REPORT_NO_ECHO);
}

/* ---- the source ---- */

static void too_many_reports_lengthen_the_interval_at_once(void) {
    helio_tx_reports tx;
    helio_tx_reports_init(&tx, INTERVAL_NS, 1000, 1, 0);
    for (int i = 0; i < 50; i++) { /* a burst it takes */
        CHECK(!helio_tx_reports_on_report(&tx, 0, 0));
    }
    CHECK_EQUAL(tx.interval_ns, INTERVAL_NS);
    int64_t t = 0;
    while (!helio_tx_reports_on_report(&tx, 0, t)) { /* 4000 a second */
        t += MS / 4;
    }
    CHECK(t < 30 * MS);
    CHECK(tx.interval_ns >= 4 * INTERVAL_NS && tx.interval_ns <= 8 * INTERVAL_NS);
    const int64_t longer_ns = tx.interval_ns;
    for (int i = 0; i < 100; i++) { /* those on their way change nothing */
        CHECK(!helio_tx_reports_on_report(&tx, 0, t));
    }
    CHECK_EQUAL(tx.interval_ns, longer_ns);
    CHECK(helio_tx_reports_silence_ns(&tx) >= 12 * longer_ns);
}

static void reports_at_the_rate_change_nothing(void) {
    helio_tx_reports tx;
    helio_tx_reports_init(&tx, INTERVAL_NS, 1000, 1, 0);
    for (int64_t t = 0; t < 10 * HELIO_SECOND; t += MS) {
        CHECK(!helio_tx_reports_on_report(&tx, 0, t));
    }
    CHECK_EQUAL(tx.look_ns, HELIO_NEVER);
}

/* Looks as often as it wants to, until `end_ns`, while so many reports come between two looks. */
static void look(helio_tx_reports *tx, int came, bool is_sending, int64_t end_ns) {
    uint64_t lead = 1;
    while (tx->look_ns < end_ns) {
        const int64_t t = tx->look_ns;
        for (int i = 0; i < came; i++) {
            helio_tx_reports_on_report(tx, 0, t - tx->interval_ns + i * tx->interval_ns / came);
        }
        lead += is_sending;
        helio_tx_reports_poll(tx, lead, t);
        CHECK(tx->look_ns > t);
    }
}

static void few_reports_shorten_it_slowly_and_only_while_data_flows(void) {
    helio_tx_reports tx;
    helio_tx_reports_init(&tx, INTERVAL_NS, 1000, 1, 0);
    for (int i = 0; i < 200; i++) {
        helio_tx_reports_on_report(&tx, 0, 0);
    }
    const int64_t longest_ns = tx.interval_ns;
    CHECK(longest_ns > INTERVAL_NS);
    look(&tx, 10, false, 100 * HELIO_SECOND);
    CHECK_EQUAL(tx.interval_ns, longest_ns); /* an idle group says little: no reason */
    look(&tx, 10, true, 100 * HELIO_SECOND + 2 * longest_ns);
    CHECK(tx.interval_ns < longest_ns && tx.interval_ns >= longest_ns / 2);
    look(&tx, 10, true, 200 * HELIO_SECOND);
    CHECK_EQUAL(tx.interval_ns, INTERVAL_NS);
    CHECK_EQUAL(tx.look_ns, HELIO_NEVER);
}

static void who_asks_for_none_never_lengthens(void) {
    helio_tx_reports tx;
    helio_tx_reports_init(&tx, 0, 10, 1, 0);
    for (int i = 0; i < 1000; i++) {
        CHECK(!helio_tx_reports_on_report(&tx, 0, 0));
    }
    CHECK_EQUAL(tx.interval_ns, 0);
    CHECK_EQUAL(helio_tx_reports_silence_ns(&tx), HELIO_SECOND);
}

int main(void) {
    RUN(nothing_is_due_before_a_source_asks);
    RUN(nobody_can_be_made_to_flood_its_source);
    RUN(few_of_many_speak_early);
    RUN(reports_are_half_an_interval_to_a_whole_one_apart);
    RUN(what_is_sent_anyway_puts_the_next_one_off);
    RUN(without_news_reports_are_rare);
    RUN(fuller_buffers_are_told_sooner_but_not_at_once);
    RUN(a_longer_interval_is_drawn_anew_and_nobody_waits_for_ever);
    RUN(the_stamp_is_told_back_with_its_stay_and_the_name_now_and_then);
    RUN(too_many_reports_lengthen_the_interval_at_once);
    RUN(reports_at_the_rate_change_nothing);
    RUN(few_reports_shorten_it_slowly_and_only_while_data_flows);
    RUN(who_asks_for_none_never_lengthens);
    return check_result();
}
