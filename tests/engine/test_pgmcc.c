/* PGMCC's window and the election of the acker, alone and against a TCP beside it. */
#include <math.h>

#include "base/random.h"
#include "check.h"
#include "policy/pgmcc.h"

#define MS HELIO_MILLISECOND

static helio_pgmcc cc;

static void begin(void) {
    helio_pgmcc_init(&cc, 1000);
}

static void send_all(int64_t now_ns) {
    while (cc.lead < helio_pgmcc_send_limit(&cc)) {
        helio_pgmcc_on_sent(&cc, cc.lead + 1, now_ns);
    }
}

static helio_pgmcc_feedback ack(uint32_t place, uint64_t newest, uint32_t bitmap) {
    return (helio_pgmcc_feedback){.index = place,
                                  .round_trip_ns = MS,
                                  .is_ack = true,
                                  .newest = newest,
                                  .bitmap = bitmap,
                                  .measured_ns = MS};
}

static bool hear(const helio_pgmcc_feedback *feedback, int64_t now_ns) {
    return helio_pgmcc_on_feedback(&cc, feedback, now_ns);
}

/* Acknowledges packet by packet up to lead, as an acker without loss does. */
static void ack_all(int64_t now_ns) {
    for (uint64_t sequence = cc.newest + 1, lead = cc.lead; sequence <= lead; sequence++) {
        const helio_pgmcc_feedback feedback = ack(7, sequence, UINT32_MAX);
        hear(&feedback, now_ns);
    }
}

static void it_begins_with_one_packet_and_whoever_answers_first_becomes_the_acker(void) {
    begin();
    CHECK_EQUAL(helio_pgmcc_send_limit(&cc), 1001);
    send_all(0);
    CHECK_EQUAL(cc.lead, 1001);
    CHECK_EQUAL(cc.acker, HELIO_RECEIVER_NONE);
    const helio_pgmcc_feedback feedback = ack(7, 1001, 1);
    CHECK(hear(&feedback, MS));
    CHECK_EQUAL(cc.acker, 7);
}

static void the_window_doubles_to_four_and_then_grows_by_one_a_round_trip(void) {
    static const double windows[] = {2, 4};
    begin();
    for (int i = 0; i < 20; i++) {
        const double before = cc.window;
        send_all(i * MS);
        ack_all(i * MS + MS);
        if (i < 2) {
            CHECK(cc.window == windows[i]);
        } else { /* nearly: there are whole packets only */
            CHECK(cc.window - before > 0.75 && cc.window - before <= 1);
        }
    }
}

static void a_window_that_is_not_used_does_not_grow(void) {
    begin();
    for (int i = 0; i < 10; i++) {
        send_all(i * MS);
        ack_all(i * MS + MS);
    }
    const double window = cc.window;
    for (int i = 0; i < 100; i++) {
        helio_pgmcc_on_sent(&cc, cc.lead + 1, (10 + i) * MS);
        ack_all((11 + i) * MS);
    }
    CHECK(cc.window == window);
}

static void a_hole_with_three_later_packets_halves_the_window_once_a_round_trip(void) {
    begin();
    for (int i = 0; i < 20; i++) {
        send_all(i * MS);
        ack_all(i * MS + MS);
    }
    send_all(20 * MS);
    const double window = cc.window;
    const uint64_t hole = cc.newest + 1;
    helio_pgmcc_feedback feedback = ack(7, hole + 1, ~UINT32_C(2));
    hear(&feedback, 21 * MS);
    feedback = ack(7, hole + 2, ~UINT32_C(4));
    hear(&feedback, 21 * MS);
    CHECK(cc.window >= window);
    feedback = ack(7, hole + 3, ~UINT32_C(8));
    hear(&feedback, 21 * MS);
    CHECK_EQUAL(cc.cuts, 1);
    CHECK(cc.window < 0.55 * window);
    /* Two more holes among what was on its way. */
    feedback = ack(7, hole + 9, ~UINT32_C(0x218));
    hear(&feedback, 21 * MS);
    CHECK_EQUAL(cc.cuts, 1);
    CHECK(helio_pgmcc_send_limit(&cc) <= cc.lead); /* first what was sent has to arrive */
}

/* Until then the window is not touched, as that of a TCP in fast recovery is not. */
static void a_window_that_was_halved_grows_again_only_with_what_was_sent_after_the_cut(void) {
    begin();
    for (int i = 0; i < 20; i++) {
        send_all(i * MS);
        ack_all(i * MS + MS);
    }
    send_all(20 * MS);
    const uint64_t hole = cc.newest + 1;
    helio_pgmcc_feedback feedback = ack(7, hole + 3, ~UINT32_C(8));
    hear(&feedback, 21 * MS);
    CHECK_EQUAL(cc.cuts, 1);
    const double window = cc.window;
    const uint64_t cut_at = cc.lead;
    for (uint64_t sequence = hole + 4; sequence <= cut_at; sequence++) {
        feedback = ack(7, sequence, UINT32_MAX); /* the hole is repaired */
        hear(&feedback, 21 * MS);
        send_all(21 * MS);
        CHECK(cc.window == window);
    }
    CHECK(cc.lead > cut_at);
    feedback = ack(7, cut_at + 1, UINT32_MAX);
    hear(&feedback, 22 * MS);
    CHECK(cc.window > window);
}

static void silence_leaves_one_packet_and_two_silences_the_acker(void) {
    begin();
    for (int i = 0; i < 20; i++) {
        send_all(i * MS);
        ack_all(i * MS + MS);
    }
    send_all(20 * MS);
    const int64_t due_ns = helio_pgmcc_next_deadline_ns(&cc);
    CHECK(due_ns > 20 * MS && due_ns < 40 * MS);
    CHECK(!helio_pgmcc_poll(&cc, due_ns - 1));
    CHECK(helio_pgmcc_poll(&cc, due_ns));
    CHECK(cc.window == 1);
    CHECK_EQUAL(cc.acker, 7);
    CHECK_EQUAL(helio_pgmcc_send_limit(&cc), cc.lead + 1);
    CHECK_EQUAL(helio_pgmcc_next_deadline_ns(&cc), HELIO_NEVER);
    send_all(due_ns);
    const int64_t again_ns = helio_pgmcc_next_deadline_ns(&cc);
    CHECK(again_ns - due_ns > due_ns - 20 * MS);
    CHECK(helio_pgmcc_poll(&cc, again_ns));
    CHECK_EQUAL(cc.acker, HELIO_RECEIVER_NONE);
}

static void the_worst_receiver_becomes_the_acker_but_not_one_about_as_bad(void) {
    begin();
    send_all(0);
    helio_pgmcc_feedback feedback = ack(7, 1001, 1);
    feedback.loss = 0.01;
    hear(&feedback, MS);
    const helio_pgmcc_feedback better = {.index = 1, .loss = 0.001, .round_trip_ns = MS};
    CHECK(!hear(&better, 2 * MS));
    const helio_pgmcc_feedback like_it = {.index = 2, .loss = 0.012, .round_trip_ns = MS};
    CHECK(!hear(&like_it, 2 * MS));
    const helio_pgmcc_feedback unmeasured = {.index = 3, .loss = 0.5};
    CHECK(!hear(&unmeasured, 2 * MS));
    const helio_pgmcc_feedback farther = {.index = 4, .loss = 0.01, .round_trip_ns = 2 * MS};
    CHECK(hear(&farther, 2 * MS));
    CHECK_EQUAL(cc.acker, 4);
    const helio_pgmcc_feedback worse = {.index = 5, .loss = 0.05, .round_trip_ns = 2 * MS};
    CHECK(hear(&worse, 2 * MS));
    CHECK_EQUAL(cc.acker, 5);
    CHECK(!helio_pgmcc_on_gone(&cc, 4));
    CHECK(helio_pgmcc_on_gone(&cc, 5));
    CHECK_EQUAL(cc.acker, HELIO_RECEIVER_NONE);
}

static void an_acknowledgement_of_what_was_never_sent_is_nothing(void) {
    begin();
    send_all(0);
    const helio_pgmcc_feedback feedback = ack(7, 5000, UINT32_MAX);
    hear(&feedback, MS);
    CHECK(cc.window == 1);
    CHECK_EQUAL(helio_pgmcc_send_limit(&cc), 1001);
}

/* ---- beside TCP ---- */

/* Two flows through one queue: ours, and a TCP (NewReno, at its simplest: a window, halved once a
 * round trip by a loss, an acknowledgement for each packet).  Time goes in packet times of the
 * bottleneck. */
enum { QUEUE = 50, ROUND_TRIP = 60, STEPS = 200000, RING = 4096 };

typedef struct tcp {
    double window;
    uint64_t lead, acked, recover;
    uint64_t served;
} tcp;

typedef struct on_the_way {
    uint64_t sequence; /* 0: nothing */
    bool is_tcp;
} on_the_way;

/* Shares of the bottleneck, 0 to 1. */
static void run_both(uint64_t seed, double *ours, double *theirs) {
    static on_the_way acks[RING];
    static on_the_way queue[QUEUE];
    memset(acks, 0, sizeof acks);
    size_t queued = 0, first = 0;
    helio_random random;
    helio_random_init(&random, seed);
    helio_pgmcc_init(&cc, 1000);
    tcp other = {.window = 2, .lead = 1000, .acked = 1000, .recover = 1000};
    uint64_t served = 0, map = UINT64_MAX, newest = 1000, tcp_newest = 1000;
    for (int64_t step = 0; step < STEPS; step++) {
        const int64_t now_ns = step * MS / 10;
        /* What arrives back. */
        const on_the_way back = acks[step % RING];
        acks[step % RING].sequence = 0;
        if (back.sequence && !back.is_tcp) {
            map = map << (back.sequence - newest) | 1;
            newest = back.sequence;
            helio_pgmcc_feedback feedback = ack(7, newest, (uint32_t)map);
            feedback.round_trip_ns = feedback.measured_ns = (ROUND_TRIP + QUEUE / 2) * MS / 10;
            hear(&feedback, now_ns);
        } else if (back.sequence) {
            const bool lost = back.sequence != tcp_newest + 1;
            tcp_newest = other.acked = back.sequence;
            if (lost && back.sequence > other.recover) {
                other.window = other.window < 4 ? 2 : other.window / 2;
                other.recover = other.lead;
            } else {
                other.window += 1 / other.window;
            }
        }
        helio_pgmcc_poll(&cc, now_ns);
        if (other.lead - other.acked > 0 && step % (8 * ROUND_TRIP) == 0 &&
            other.lead - other.acked > (uint64_t)other.window) {
            other.acked = other.lead; /* all of a window lost: its timeout */
        }
        /* Both send, in random order, what their windows allow. */
        for (int turn = 0; turn < 4; turn++) {
            const bool is_tcp = helio_random_below(&random, 2);
            on_the_way packet = {0, is_tcp};
            if (is_tcp && other.lead - other.acked < (uint64_t)other.window) {
                packet.sequence = ++other.lead;
            } else if (!is_tcp && cc.lead < helio_pgmcc_send_limit(&cc)) {
                helio_pgmcc_on_sent(&cc, packet.sequence = cc.lead + 1, now_ns);
            }
            if (packet.sequence && queued < QUEUE) {
                queue[(first + queued++) % QUEUE] = packet;
            }
        }
        /* The bottleneck serves one. */
        if (queued) {
            const on_the_way packet = queue[first];
            first = (first + 1) % QUEUE;
            queued--;
            acks[(step + ROUND_TRIP) % RING] = packet;
            served += !packet.is_tcp;
            other.served += packet.is_tcp;
        }
    }
    *ours = (double)served / STEPS;
    *theirs = (double)other.served / STEPS;
}

static void it_shares_a_bottleneck_with_tcp_and_leaves_little_unused(void) {
    double least = 1, most = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        double ours, theirs;
        run_both(seed, &ours, &theirs);
        CHECK(ours + theirs > 0.9);
        const double share = ours / (ours + theirs);
        least = share < least ? share : least;
        most = share > most ? share : most;
        CHECK(share > 0.25 && share < 0.75);
    }
    printf("      its share: %.2f to %.2f\n", least, most);
}

static void while_nothing_is_on_its_way_no_timeout_runs(void) {
    begin();
    CHECK_EQUAL(helio_pgmcc_next_deadline_ns(&cc), HELIO_NEVER);
    helio_pgmcc_on_sent(&cc, cc.lead, 0);
    CHECK_EQUAL(helio_pgmcc_next_deadline_ns(&cc), HELIO_NEVER);
    send_all(0);
    ack_all(MS);
    send_all(MS);
    ack_all(2 * MS);
    const double window = cc.window;
    helio_pgmcc_on_sent(&cc, cc.lead, 3 * MS); /* another receiver reports, nothing was sent */
    CHECK(!helio_pgmcc_poll(&cc, 3600 * HELIO_SECOND));
    CHECK(cc.window == window);
}

static void who_comes_after_long_silence_is_not_made_to_wait_for_the_timeout(void) {
    begin();
    int64_t now_ns = 0;
    for (int i = 0; i < 8; i++) {
        send_all(now_ns);
        now_ns = helio_pgmcc_next_deadline_ns(&cc);
        CHECK(helio_pgmcc_poll(&cc, now_ns));
    }
    send_all(now_ns); /* the late one has not had this one */
    CHECK(helio_pgmcc_next_deadline_ns(&cc) - now_ns > 30 * HELIO_SECOND);
    const helio_pgmcc_feedback feedback = {.index = 7, .round_trip_ns = MS};
    CHECK(hear(&feedback, now_ns));
    CHECK(helio_pgmcc_send_limit(&cc) > cc.lead);
    send_all(now_ns);
    CHECK_EQUAL(helio_pgmcc_next_deadline_ns(&cc), now_ns + HELIO_SECOND);
}

int main(void) {
    RUN(it_begins_with_one_packet_and_whoever_answers_first_becomes_the_acker);
    RUN(the_window_doubles_to_four_and_then_grows_by_one_a_round_trip);
    RUN(a_window_that_is_not_used_does_not_grow);
    RUN(a_hole_with_three_later_packets_halves_the_window_once_a_round_trip);
    RUN(a_window_that_was_halved_grows_again_only_with_what_was_sent_after_the_cut);
    RUN(silence_leaves_one_packet_and_two_silences_the_acker);
    RUN(the_worst_receiver_becomes_the_acker_but_not_one_about_as_bad);
    RUN(an_acknowledgement_of_what_was_never_sent_is_nothing);
    RUN(while_nothing_is_on_its_way_no_timeout_runs);
    RUN(who_comes_after_long_silence_is_not_made_to_wait_for_the_timeout);
    RUN(it_shares_a_bottleneck_with_tcp_and_leaves_little_unused);
    return check_result();
}
