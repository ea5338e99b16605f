/* Asking for what is missing: every state of the machine and every way out of it. */
#include "base/moment.h"
#include "check.h"
#include "repair/nak.h"

#define MS HELIO_MILLISECOND
#define US HELIO_MICROSECOND

enum { S = 100000 }; /* a sequence to begin with */

static helio_nak nak;
static helio_nak_round due;

static helio_nak_config config(void) {
    return (helio_nak_config){
        .reorder_packets = 2,
        .reorder_ns = 20 * US,
        .backoff_ns = 100 * US,
        .repeat_ns = 2 * MS,
        .data_ns = 5 * MS,
        .retries = 3,
        .deadline_ns = HELIO_SECOND,
    };
}

static void begin_with(helio_nak_config c) {
    CHECK_EQUAL(helio_nak_init(&nak, 256, &c, 1), 0);
}

static void begin(void) {
    begin_with(config());
}

/* Polls at the next deadline and returns that moment. */
static int64_t next(void) {
    const int64_t now_ns = helio_nak_next_deadline_ns(&nak);
    CHECK(now_ns != HELIO_NEVER);
    helio_nak_poll(&nak, true, now_ns, &due);
    return now_ns;
}

/* Polls until something is asked for or lost; returns when. */
static int64_t next_due(void) {
    for (;;) {
        const int64_t now_ns = next();
        if (due.ask_count > 0 || due.loss_count > 0) {
            return now_ns;
        }
    }
}

static void a_packet_only_late_is_not_asked_for(void) {
    begin();
    helio_nak_miss(&nak, S, 1, 0);
    helio_nak_on_newest(&nak, S + 1, 0); /* one newer packet is not enough */
    CHECK_EQUAL(helio_nak_state_of(&nak, S), HELIO_NAK_GRACE);
    const helio_nak_found found = helio_nak_remove(&nak, S);
    CHECK(found.was_missing && !found.was_asked_for);
    CHECK_EQUAL(helio_nak_next_deadline_ns(&nak), HELIO_NEVER);
    CHECK_EQUAL(nak.outstanding, 0);
    helio_nak_fini(&nak);
}

static void grace_ends_after_newer_packets_or_time(void) {
    begin();
    helio_nak_miss(&nak, S, 1, 0);
    helio_nak_on_newest(&nak, S + 2, 5);
    CHECK_EQUAL(helio_nak_state_of(&nak, S), HELIO_NAK_BACK_OFF);
    helio_nak_miss(&nak, S + 3, 1, 10);
    CHECK(!helio_nak_poll(&nak, true, 10 + 20 * US - 1, &due) || due.ask_count == 1);
    CHECK_EQUAL(helio_nak_state_of(&nak, S + 3), HELIO_NAK_GRACE);
    helio_nak_poll(&nak, true, 10 + 20 * US, &due);
    CHECK(helio_nak_state_of(&nak, S + 3) != HELIO_NAK_GRACE);
    helio_nak_fini(&nak);
}

static void the_request_waits_a_random_time_within_the_back_off(void) {
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < 200; i++) {
        helio_nak_config c = config();
        CHECK_EQUAL(helio_nak_init(&nak, 256, &c, (uint64_t)i), 0);
        helio_nak_miss(&nak, S, 1, 0);
        helio_nak_on_newest(&nak, S + 2, 0);
        const int64_t asked_ns = next_due();
        CHECK(asked_ns >= 0 && asked_ns <= 100 * US);
        least = asked_ns < least ? asked_ns : least;
        most = asked_ns > most ? asked_ns : most;
        helio_nak_fini(&nak);
    }
    CHECK(least < 10 * US && most > 90 * US);
}

static void what_is_missed_together_is_asked_for_together_oldest_first(void) {
    begin();
    helio_nak_miss(&nak, S, 100, 0);
    helio_nak_on_newest(&nak, S + 200, 0);
    next_due();
    CHECK_EQUAL(due.ask_count, 63);
    for (size_t i = 0; i < 63; i++) {
        CHECK_EQUAL(due.asks[i], S + i);
    }
    CHECK_EQUAL(due.retried, 0);
    next_due();
    CHECK_EQUAL(due.ask_count, 37);
    CHECK_EQUAL(due.asks[0], S + 63);
    helio_nak_fini(&nak);
}

static void without_a_confirmation_it_asks_again_ever_later_and_gives_up(void) {
    begin();
    helio_nak_miss(&nak, S, 1, 0);
    helio_nak_on_newest(&nak, S + 2, 0);
    int64_t before_ns = next_due();
    for (int i = 0; i < 3; i++) {
        const int64_t now_ns = next_due();
        CHECK_EQUAL(due.ask_count, 1);
        CHECK_EQUAL(due.retried, 1);
        const int64_t wait_ns = now_ns - before_ns, least_ns = (2 << i) * MS;
        CHECK(wait_ns >= least_ns && wait_ns <= least_ns + 100 * US);
        before_ns = now_ns;
    }
    next_due();
    CHECK_EQUAL(due.loss_count, 1);
    CHECK_EQUAL(due.losses[0].sequence, S);
    CHECK_EQUAL(due.losses[0].cause, HELIO_LOST_NCF_RETRIES);
    CHECK_EQUAL(nak.outstanding, 0);
    helio_nak_fini(&nak);
}

static void the_intervals_do_not_grow_beyond_their_limits(void) {
    helio_nak_config c = config();
    c.retries = 40;
    c.deadline_ns = 3600 * HELIO_SECOND;
    begin_with(c);
    helio_nak_miss(&nak, S, 1, 0);
    helio_nak_on_newest(&nak, S + 2, 0);
    int64_t before_ns = next_due(), wait_ns = 0;
    for (int i = 0; i < 20; i++) {
        const int64_t now_ns = next_due();
        wait_ns = now_ns - before_ns;
        before_ns = now_ns;
    }
    CHECK(wait_ns >= 50 * MS && wait_ns <= 50 * MS + 100 * US);
    for (int i = 0; i < 20; i++) { /* each one confirmed, no data */
        helio_nak_on_ncf(&nak, S, before_ns);
        const int64_t now_ns = next_due();
        wait_ns = now_ns - before_ns;
        before_ns = now_ns;
    }
    CHECK(wait_ns >= 100 * MS && wait_ns <= 100 * MS + 100 * US);
    helio_nak_fini(&nak);
}

static void a_confirmed_request_waits_for_the_data_and_then_asks_again(void) {
    begin();
    helio_nak_miss(&nak, S, 1, 0);
    helio_nak_on_newest(&nak, S + 2, 0);
    int64_t now_ns = next_due();
    for (int i = 0; i < 3; i++) {
        CHECK(!helio_nak_on_ncf(&nak, S, now_ns)); /* ours was sent: nothing is spared */
        CHECK_EQUAL(helio_nak_state_of(&nak, S), HELIO_NAK_WAIT_DATA);
        const int64_t then_ns = next_due();
        const int64_t least_ns = (5 << i) * MS;
        CHECK(then_ns - now_ns >= least_ns && then_ns - now_ns <= least_ns + 100 * US);
        CHECK_EQUAL(due.ask_count, 1);
        now_ns = then_ns;
    }
    helio_nak_on_ncf(&nak, S, now_ns);
    next_due();
    CHECK_EQUAL(due.loss_count, 1);
    CHECK_EQUAL(due.losses[0].cause, HELIO_LOST_DATA_RETRIES);
    helio_nak_fini(&nak);
}

/* The time from a request to the next one for the same packet, when it is never confirmed, or
 * confirmed and never repaired. */
static int64_t patience_ns(uint64_t sequence, int64_t now_ns, bool is_confirmed) {
    helio_nak_miss(&nak, sequence, 1, now_ns);
    helio_nak_on_newest(&nak, sequence + 5, now_ns);
    const int64_t asked_ns = next_due();
    if (is_confirmed) {
        helio_nak_on_ncf(&nak, sequence, asked_ns);
    }
    const int64_t again_ns = next_due();
    helio_nak_remove(&nak, sequence);
    return again_ns - asked_ns;
}

/* A request answered after these times. */
static int64_t answered(uint64_t sequence, int64_t now_ns, int64_t ncf_ns, int64_t data_ns) {
    helio_nak_miss(&nak, sequence, 1, now_ns);
    helio_nak_on_newest(&nak, sequence + 5, now_ns);
    now_ns = next_due();
    helio_nak_on_ncf(&nak, sequence, now_ns + ncf_ns);
    now_ns += ncf_ns + data_ns;
    while (helio_nak_poll(&nak, true, now_ns, &due)) {
    }
    CHECK(helio_nak_on_data(&nak, sequence, now_ns).was_asked_for);
    return now_ns;
}

static void waits_that_were_not_given_follow_what_the_source_takes(void) {
    helio_nak_config c = config();
    c.backoff_ns = -1;
    c.is_alone = true;
    c.repeat_ns = c.data_ns = 0;
    begin_with(c);
    CHECK_EQUAL(patience_ns(S, 0, false), 2 * MS); /* nothing known */
    CHECK_EQUAL(patience_ns(S + 10, 100 * MS, true), 5 * MS);
    int64_t now_ns = 200 * MS;
    for (uint64_t i = 0; i < 50; i++) {
        now_ns = answered(S + 20 + i, now_ns + MS, 20 * US, 30 * US);
    }
    CHECK_EQUAL(patience_ns(S + 100, now_ns, false), 200 * US);
    CHECK_EQUAL(patience_ns(S + 110, now_ns + 100 * MS, true), 500 * US);
    now_ns += 200 * MS;
    for (uint64_t i = 0; i < 80; i++) { /* now it is far away */
        now_ns = answered(S + 120 + i, now_ns + MS, 150 * US, 2 * MS);
    }
    const int64_t repeat_ns = patience_ns(S + 210, now_ns, false);
    CHECK(repeat_ns >= 550 * US && repeat_ns <= 650 * US);
    CHECK(patience_ns(S + 220, now_ns + 100 * MS, true) >= 2 * MS);
    helio_nak_fini(&nak);
}

static void a_source_slow_to_repair_is_asked_once_when_that_is_known(void) {
    helio_nak_config c = config();
    c.backoff_ns = -1;
    c.is_alone = true;
    c.repeat_ns = c.data_ns = 0;
    c.retries = 64;
    begin_with(c);
    int64_t now_ns = 0;
    uint64_t asked = 0;
    for (uint64_t i = 0; i < 10; i++) {
        helio_nak_miss(&nak, S + i, 1, now_ns);
        helio_nak_on_newest(&nak, S + i + 5, now_ns);
        const int64_t arrives_ns = now_ns + 60 * MS; /* after the first request, always */
        asked = 0;
        for (;;) {
            const int64_t due_ns = helio_nak_next_deadline_ns(&nak);
            if (due_ns >= arrives_ns) {
                break;
            }
            helio_nak_poll(&nak, true, due_ns, &due);
            asked += due.ask_count;
            if (due.ask_count) {
                helio_nak_on_ncf(&nak, S + i, due_ns + 20 * US);
            }
        }
        helio_nak_on_data(&nak, S + i, arrives_ns);
        now_ns = arrives_ns + MS;
    }
    CHECK_EQUAL(asked, 1);
    helio_nak_fini(&nak);
}

/* Requests `sequence` at `now_ns`, and the source confirms at once. */
static void ask(uint64_t sequence, int64_t now_ns) {
    helio_nak_miss(&nak, sequence, 1, now_ns);
    helio_nak_on_newest(&nak, sequence + 5, now_ns);
    CHECK(helio_nak_poll(&nak, true, now_ns, &due));
    CHECK_EQUAL(due.ask_count, 1);
    helio_nak_on_ncf(&nak, sequence, now_ns);
}

static void begin_alone(void) {
    helio_nak_config c = config();
    c.backoff_ns = -1;
    c.is_alone = true;
    c.repeat_ns = c.data_ns = 0;
    begin_with(c);
}

static void a_request_that_a_later_one_overtook_is_repeated_at_once(void) {
    begin_alone();
    ask(S, 0);
    ask(S + 10, 50 * US);
    CHECK_EQUAL(helio_nak_next_deadline_ns(&nak), 5 * MS);
    CHECK(helio_nak_on_repair(&nak, S + 10, false, 350 * US).was_asked_for); /* it took 300 us */
    CHECK_EQUAL(next_due(), 450 * US);                                       /* 0 + 300 + 150 */
    CHECK_EQUAL(due.ask_count, 1);
    CHECK_EQUAL(due.asks[0], S);
    helio_nak_fini(&nak);
}

static void a_request_is_overtaken_three_times_and_then_waits_as_ever(void) {
    begin_alone();
    int64_t now_ns = 0;
    ask(S, now_ns);
    for (uint64_t i = 1; i <= 4; i++) {
        ask(S + 10 * i, now_ns + 10 * US);
        helio_nak_on_repair(&nak, S + 10 * i, false, now_ns + 210 * US);
        const int64_t asked_ns = now_ns;
        now_ns = next_due();
        CHECK_EQUAL(due.asks[0], S);
        CHECK(i < 4 ? now_ns == asked_ns + 350 * US : now_ns >= asked_ns + 500 * US);
        helio_nak_on_ncf(&nak, S, now_ns);
    }
    helio_nak_fini(&nak);
}

static void a_late_packet_and_an_earlier_request_overtake_nothing(void) {
    begin_alone();
    ask(S, 0);
    ask(S + 10, 50 * US);
    helio_nak_on_data(&nak, S + 10, 350 * US); /* the original, only late */
    CHECK_EQUAL(helio_nak_next_deadline_ns(&nak), 5 * MS);
    ask(S + 20, 400 * US);
    helio_nak_on_repair(&nak, S, false, 450 * US);
    CHECK(helio_nak_next_deadline_ns(&nak) >= 400 * US + 500 * US);
    helio_nak_fini(&nak);
}

static void a_repair_before_its_confirmation_measures_the_answer_too(void) {
    begin_alone();
    int64_t now_ns = 0;
    for (uint64_t i = 0; i < 50; i++) {
        helio_nak_miss(&nak, S + i, 1, now_ns);
        helio_nak_on_newest(&nak, S + i + 5, now_ns);
        now_ns = next_due() + 400 * US;
        CHECK(helio_nak_on_repair(&nak, S + i, false, now_ns).was_asked_for);
    }
    CHECK_EQUAL(patience_ns(S + 100, now_ns, false), 1600 * US); /* four times; 2 ms at first */
    CHECK_EQUAL(patience_ns(S + 110, now_ns + 100 * MS, true),
                5 * MS); /* no confirmation was seen */
    helio_nak_fini(&nak);
}

static void requests_stay_in_order_when_the_window_grows(void) {
    begin_alone();
    ask(S + 3, 0);
    ask(S + 10, 10 * US);
    ask(S + 12, 20 * US);
    CHECK_EQUAL(helio_nak_grow(&nak, 2 * (nak.mask + 1)), 0);
    helio_nak_remove(&nak, S + 10);
    helio_nak_on_repair(&nak, S + 12, false, 120 * US);
    CHECK_EQUAL(next_due(), 250 * US); /* 0 + 100 + 150 */
    CHECK_EQUAL(due.asks[0], S + 3);
    helio_nak_fini(&nak);
}

static void requests_stay_in_order_when_their_entries_spread(void) {
    begin_alone();
    ask(S + 3, 0);
    ask(S + 10, 10 * US);
    ask(S + 12, 20 * US);
    helio_nak_miss(&nak, S + 3 + 2 * (nak.spread + 1), 1, 30 * US); /* where that of S + 3 is */
    CHECK_EQUAL(nak.spread, nak.mask);
    CHECK_EQUAL(helio_nak_state_of(&nak, S + 3), HELIO_NAK_WAIT_DATA);
    helio_nak_remove(&nak, S + 3 + 128);
    helio_nak_remove(&nak, S + 10);
    helio_nak_on_repair(&nak, S + 12, false, 120 * US);
    CHECK_EQUAL(next_due(), 250 * US); /* 0 + 100 + 150 */
    CHECK_EQUAL(due.asks[0], S + 3);
    helio_nak_remove(&nak, S + 3);
    helio_nak_miss(&nak, S + 400, 1, 300 * US); /* the only one: few entries again */
    CHECK_EQUAL(nak.spread, 63);
    helio_nak_fini(&nak);
}

static void who_never_asks_gives_up_when_grace_is_over(void) {
    helio_nak_config c = config();
    c.never_asks = true;
    begin_with(c);
    helio_nak_miss(&nak, S, 3, 0);
    CHECK(!helio_nak_on_ncf(&nak, S, 1)); /* what others ask for does not matter */
    CHECK_EQUAL(helio_nak_state_of(&nak, S), HELIO_NAK_GRACE);
    helio_nak_on_newest(&nak, S + 3, 5);
    CHECK(helio_nak_poll(&nak, true, 5, &due));
    CHECK_EQUAL(due.ask_count, 0);
    CHECK_EQUAL(due.loss_count, 2);
    CHECK_EQUAL(due.losses[0].cause, HELIO_LOST_NOT_REQUESTED);
    CHECK_EQUAL(nak.outstanding, 1);
    helio_nak_fini(&nak);
}

static void anothers_confirmed_request_spares_ours(void) {
    begin();
    helio_nak_miss(&nak, S, 2, 0);
    CHECK(helio_nak_on_ncf(&nak, S, 0)); /* still in grace */
    helio_nak_on_newest(&nak, S + 5, 0);
    CHECK(helio_nak_on_ncf(&nak, S + 1, 0));  /* backing off */
    CHECK(!helio_nak_on_ncf(&nak, S + 7, 0)); /* not missing here */
    CHECK_EQUAL(helio_nak_state_of(&nak, S), HELIO_NAK_WAIT_DATA);
    CHECK(helio_nak_next_deadline_ns(&nak) >= 5 * MS);
    const helio_nak_found found = helio_nak_remove(&nak, S);
    CHECK(found.was_missing && found.was_asked_for);
    helio_nak_fini(&nak);
}

static void anothers_request_heard_delays_ours(void) {
    begin();
    helio_nak_miss(&nak, S, 1, 0);
    helio_nak_on_newest(&nak, S + 5, 0);
    CHECK(helio_nak_on_foreign_nak(&nak, S, 0));
    CHECK_EQUAL(helio_nak_state_of(&nak, S), HELIO_NAK_WAIT_NCF);
    CHECK(helio_nak_next_deadline_ns(&nak) >= 2 * MS);
    CHECK(!helio_nak_on_foreign_nak(&nak, S, 1 * MS)); /* heard again: the wait begins anew */
    CHECK(helio_nak_next_deadline_ns(&nak) >= 3 * MS);
    helio_nak_fini(&nak);
}

static void confirmations_without_end_do_not_keep_it_waiting_beyond_its_deadline(void) {
    begin();
    helio_nak_miss(&nak, S, 1, 0);
    int64_t now_ns = 0;
    while (nak.outstanding > 0) {
        helio_nak_on_ncf(&nak, S, now_ns);
        helio_nak_poll(&nak, true, now_ns, &due);
        now_ns += MS;
        CHECK(now_ns <= HELIO_SECOND + MS);
    }
    CHECK_EQUAL(due.loss_count, 1);
    CHECK_EQUAL(due.losses[0].cause, HELIO_LOST_DEADLINE);
    helio_nak_fini(&nak);
}

static void nothing_is_asked_for_before_it_is_known_where_to_ask(void) {
    begin();
    helio_nak_miss(&nak, S, 1, 0);
    helio_nak_on_newest(&nak, S + 5, 0);
    for (int64_t now_ns = 0; now_ns < 10 * MS; now_ns += 100 * US) {
        CHECK(!helio_nak_poll(&nak, false, now_ns, &due));
    }
    CHECK(next_due() < 13 * MS);
    CHECK_EQUAL(due.ask_count, 1);
    helio_nak_fini(&nak);
}

static void the_machine_follows_any_order_of_events(void) {
    helio_nak_config c = config();
    c.deadline_ns = 30 * MS;
    begin_with(c);
    helio_random random;
    helio_random_init(&random, 9);
    uint64_t trail = S, lead = S - 1, missing = 0;
    static bool is_missing[256];
    int64_t now_ns = 0;
    for (int step = 0; step < 200000; step++) {
        now_ns += (int64_t)helio_random_below(&random, 200 * (uint64_t)US);
        const uint64_t some = trail + helio_random_below(&random, 256);
        switch (helio_random_below(&random, 6)) {
        case 0:
            if (lead - trail + 1 < 250) {
                const uint64_t count = 1 + helio_random_below(&random, 5);
                helio_nak_miss(&nak, lead + 1, count, now_ns);
                for (uint64_t i = 0; i < count; i++) {
                    is_missing[++lead & 255] = true;
                }
                missing += count;
            }
            break;
        case 1:
            helio_nak_on_newest(&nak, lead, now_ns);
            break;
        case 2:
            helio_nak_on_ncf(&nak, some, now_ns);
            break;
        case 3:
            helio_nak_on_foreign_nak(&nak, some, now_ns);
            break;
        case 4:
            CHECK_EQUAL(helio_nak_remove(&nak, some).was_missing,
                        some <= lead && is_missing[some & 255]);
            if (some <= lead && is_missing[some & 255]) {
                is_missing[some & 255] = false;
                missing--;
            }
            break;
        default:
            helio_nak_poll(&nak, true, now_ns, &due);
            for (size_t i = 1; i < due.ask_count; i++) {
                CHECK(due.asks[i] > due.asks[i - 1]);
            }
            for (size_t i = 0; i < due.loss_count; i++) {
                CHECK(is_missing[due.losses[i].sequence & 255]);
                is_missing[due.losses[i].sequence & 255] = false;
                missing--;
            }
        }
        while (trail <= lead && !is_missing[trail & 255]) {
            trail++;
        }
        CHECK_EQUAL(nak.outstanding, missing);
        CHECK_EQUAL(helio_nak_next_deadline_ns(&nak) == HELIO_NEVER, missing == 0);
    }
    helio_nak_fini(&nak);
}

static void while_held_nothing_is_asked_for_and_what_is_missing_is_lost_in_time(void) {
    begin();
    helio_nak_hold(&nak, 10 * HELIO_SECOND, 0);
    helio_nak_miss(&nak, S, 2, 0);
    CHECK_EQUAL(next_due(), HELIO_SECOND);
    CHECK_EQUAL(due.ask_count, 0);
    CHECK_EQUAL(due.loss_count, 2);
    CHECK_EQUAL(due.losses[0].cause, HELIO_LOST_SUSPENDED);
    helio_nak_fini(&nak);
}

static void what_is_left_when_the_hold_ends_is_asked_for_after_a_random_time(void) {
    begin();
    helio_nak_hold(&nak, 500 * MS, 0);
    helio_nak_miss(&nak, S, 1, 0);
    const int64_t asked_ns = next_due();
    CHECK(asked_ns >= 500 * MS);
    CHECK(asked_ns <= 501 * MS);
    CHECK_EQUAL(due.ask_count, 1);
    CHECK_EQUAL(due.retried, 0);
    helio_nak_fini(&nak);
}

static void a_hold_ended_early_lets_all_be_asked_for(void) {
    begin();
    helio_nak_miss(&nak, S, 1, 0);
    CHECK(next_due() < MS); /* asked already, and waiting for its confirmation */
    helio_nak_hold(&nak, 900 * MS, MS);
    helio_nak_miss(&nak, S + 1, 3, MS);
    for (int64_t now_ns = MS; now_ns < 300 * MS; now_ns += MS) {
        CHECK(!helio_nak_poll(&nak, true, now_ns, &due));
    }
    helio_nak_hold(&nak, 0, 300 * MS);
    const int64_t asked_ns = next_due();
    CHECK(asked_ns >= 300 * MS);
    CHECK(asked_ns <= 301 * MS);
    CHECK_EQUAL(due.ask_count, 4);
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQUAL(due.asks[i], S + i);
    }
    helio_nak_fini(&nak);
}

static void excused_time_does_not_count_against_deadlines(void) {
    helio_nak_config c = config();
    c.retries = 10000; /* only time ends it */
    begin_with(c);
    helio_nak_miss(&nak, S, 1, 0); /* before, within and after: 0.4 s, 5 s, 0.6 s */
    helio_nak_on_ncf(&nak, S, 0);
    helio_nak_excuse(&nak, 5400 * MS, 400 * MS);
    helio_nak_hold(&nak, 5400 * MS, 400 * MS);
    for (int64_t now_ns = 400 * MS; now_ns < 5400 * MS; now_ns += 10 * MS) {
        helio_nak_poll(&nak, true, now_ns, &due);
        CHECK_EQUAL(due.ask_count + due.loss_count, 0);
    }
    helio_nak_miss(&nak, S + 1, 1, 5000 * MS); /* within: 0.4 s of it */
    int64_t lost_ns[2] = {0, 0};
    for (int i = 0; i < 10000 && !(lost_ns[0] && lost_ns[1]); i++) {
        const int64_t now_ns = next();
        for (size_t k = 0; k < due.ask_count; k++) {
            helio_nak_on_ncf(&nak, due.asks[k], now_ns); /* confirmed, but never repaired */
        }
        for (size_t k = 0; k < due.loss_count; k++) {
            lost_ns[due.losses[k].sequence - S] = now_ns;
        }
    }
    CHECK_EQUAL(lost_ns[0], 6000 * MS);
    CHECK_EQUAL(lost_ns[1], 6400 * MS);
    helio_nak_fini(&nak);
}

static void an_excuse_ended_early_counts_only_as_far_as_it_went(void) {
    helio_nak_config c = config();
    c.retries = 10000; /* only time ends it */
    begin_with(c);
    helio_nak_excuse(&nak, 100 * HELIO_SECOND, 0);
    helio_nak_hold(&nak, 100 * HELIO_SECOND, 0);
    helio_nak_miss(&nak, S, 1, 0);
    helio_nak_poll(&nak, true, MS, &due);
    helio_nak_excuse(&nak, 0, 2 * HELIO_SECOND);
    helio_nak_hold(&nak, 0, 2 * HELIO_SECOND);
    int64_t lost_ns = 0;
    for (int i = 0; i < 10000 && !lost_ns; i++) {
        const int64_t now_ns = next();
        for (size_t k = 0; k < due.ask_count; k++) {
            helio_nak_on_ncf(&nak, due.asks[k], now_ns);
        }
        if (due.loss_count > 0) {
            lost_ns = now_ns;
        }
    }
    CHECK(lost_ns >= 3 * HELIO_SECOND);
    CHECK(lost_ns <= 3 * HELIO_SECOND + 200 * MS);
    helio_nak_fini(&nak);
}

int main(void) {
    RUN(a_packet_only_late_is_not_asked_for);
    RUN(grace_ends_after_newer_packets_or_time);
    RUN(the_request_waits_a_random_time_within_the_back_off);
    RUN(what_is_missed_together_is_asked_for_together_oldest_first);
    RUN(without_a_confirmation_it_asks_again_ever_later_and_gives_up);
    RUN(the_intervals_do_not_grow_beyond_their_limits);
    RUN(a_confirmed_request_waits_for_the_data_and_then_asks_again);
    RUN(waits_that_were_not_given_follow_what_the_source_takes);
    RUN(a_source_slow_to_repair_is_asked_once_when_that_is_known);
    RUN(a_request_that_a_later_one_overtook_is_repeated_at_once);
    RUN(a_request_is_overtaken_three_times_and_then_waits_as_ever);
    RUN(a_late_packet_and_an_earlier_request_overtake_nothing);
    RUN(a_repair_before_its_confirmation_measures_the_answer_too);
    RUN(requests_stay_in_order_when_the_window_grows);
    RUN(requests_stay_in_order_when_their_entries_spread);
    RUN(who_never_asks_gives_up_when_grace_is_over);
    RUN(anothers_confirmed_request_spares_ours);
    RUN(anothers_request_heard_delays_ours);
    RUN(confirmations_without_end_do_not_keep_it_waiting_beyond_its_deadline);
    RUN(nothing_is_asked_for_before_it_is_known_where_to_ask);
    RUN(the_machine_follows_any_order_of_events);
    RUN(while_held_nothing_is_asked_for_and_what_is_missing_is_lost_in_time);
    RUN(what_is_left_when_the_hold_ends_is_asked_for_after_a_random_time);
    RUN(a_hold_ended_early_lets_all_be_asked_for);
    RUN(excused_time_does_not_count_against_deadlines);
    RUN(an_excuse_ended_early_counts_only_as_far_as_it_went);
    return check_result();
}
