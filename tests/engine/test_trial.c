/* Trials of the lab: what is on the network does what it would, and the same again for the same
 * seed. */
#include <heliograph/heliograph.h>

#include "check.h"
#include "trial/trial.h"

#define MS HELIO_MILLISECOND

static helio_trial *trial;

static const helio_trial_source_config source = {
    .pipe = HELIO_TRIAL_NONE,
    .offered = 1000000,
    .message_bytes = 1000,
    .queue_bytes = 100000,
    .is_even = true,
    .start_ns = 10 * MS,
    .feedback_ns = MS,
};

static const helio_trial_group_config group = {
    .count = 3, .delay_ns = MS, .drain = -1, .queue_bytes = 100000};

static void begin(uint64_t seed) {
    trial = helio_trial_create(seed, 10 * MS, true);
    CHECK(trial != NULL);
}

static void end(void) {
    helio_trial_destroy(trial);
}

static double value(const char *column) {
    size_t rows;
    const double *values = helio_trial_rows(trial, &rows);
    const size_t columns = helio_trial_columns(trial);
    for (size_t i = 0; i < columns; i++) {
        if (strcmp(helio_trial_column(trial, i), column) == 0) {
            return values[(rows - 1) * columns + i];
        }
    }
    CHECK_FAIL("there is no column %s", column);
}

static void what_is_offered_is_delivered_to_each(void) {
    begin(1);
    CHECK_EQUAL(helio_trial_add_source(trial, &source), 0);
    CHECK_EQUAL(helio_trial_add_group(trial, &group), 0);
    CHECK_EQUAL(helio_trial_run(trial, HELIO_SECOND), 0);
    CHECK_EQUAL(helio_trial_receivers(trial), 3);
    for (size_t i = 0; i < 3; i++) {
        const helio_trial_receiver_result result = helio_trial_receiver_at(trial, i);
        CHECK(result.delivered >= 985 && result.delivered <= 990);
        CHECK_EQUAL(result.lost, 0);
        CHECK_EQUAL(result.first_lost_ns, HELIO_NEVER);
        CHECK_EQUAL(result.receiver, i + 1);
    }
    CHECK_EQUAL(value("group0.delivered"), 3 * helio_trial_receiver_at(trial, 0).delivered);
    CHECK_EQUAL(value("source0.refused"), 0);
    CHECK_EQUAL(value("time"), 1);
    end();
}

static void a_loss_is_asked_for_and_repaired(void) {
    begin(2);
    helio_trial_group_config lossy = group;
    lossy.loss = 0.05;
    helio_trial_add_source(trial, &source);
    helio_trial_add_group(trial, &lossy);
    CHECK_EQUAL(helio_trial_run(trial, 2 * HELIO_SECOND), 0);
    CHECK(value("group0.packets_missed") > 200 && value("group0.packets_missed") < 400);
    CHECK(value("source0.repair_packets") > 100);
    CHECK_EQUAL(value("group0.lost"), 0);
    end();
}

static void what_the_source_knows_of_each_receiver_is_kept(void) {
    begin(10);
    helio_trial_group_config lossy = group;
    lossy.count = 1;
    lossy.loss = 0.1;
    helio_trial_add_source(trial, &source);
    helio_trial_add_group(trial, &group);
    helio_trial_add_group(trial, &lossy);
    CHECK_EQUAL(helio_trial_run(trial, HELIO_SECOND), 0);
    size_t count;
    const helio_trial_sight *sights = helio_trial_sights(trial, &count);
    CHECK(count > 4);
    for (size_t i = count - 4; i < count; i++) { /* at the end */
        CHECK(sights[i].at_s == 1);
        CHECK(sights[i].received > 700);
        CHECK((sights[i].lost > 50) == (sights[i].receiver == 4));
        CHECK(sights[i].round_trip_s > 0.0019 && sights[i].round_trip_s < 0.004);
    }
    end();
}

static void a_slow_application_fills_its_queue_and_no_more(void) {
    begin(3);
    helio_trial_group_config slow = group;
    slow.count = 1;
    slow.drain = 500;
    helio_trial_add_source(trial, &source);
    helio_trial_add_group(trial, &slow);
    CHECK_EQUAL(helio_trial_run(trial, HELIO_SECOND), 0);
    CHECK(value("group0.taken") >= 480 && value("group0.taken") <= 500);
    CHECK(value("group0.queue") <= 100000 && value("group0.queue") > 97000);
    CHECK(value("group0.delivered") < 620);
    end();
}

static void an_application_that_quickens_is_caught_up(void) {
    begin(4);
    helio_trial_group_config slow = group;
    slow.drain = 0; /* stands still */
    helio_trial_add_source(trial, &source);
    helio_trial_add_group(trial, &slow);
    CHECK_EQUAL(helio_trial_plan(trial, 200 * MS, HELIO_TRIAL_DRAIN, 0, 100000, 0), 0);
    CHECK_EQUAL(helio_trial_run(trial, HELIO_SECOND), 0);
    CHECK(value("group0.taken") > 3 * 980);
    CHECK_EQUAL(value("group0.lost"), 0);
    end();
}

static void a_rate_is_kept_and_the_rest_refused(void) {
    begin(14);
    const helio_sim_pipe_config pipe = {
        .rate = 2000000, .queue_bytes = 20000, .overhead_bytes = 66};
    helio_trial_add_pipe(trial, &pipe);
    helio_trial_source_config paced = source;
    paced.pipe = 0;
    paced.options = "rate=500000&rate_policy=static";
    helio_trial_add_source(trial, &paced);
    helio_trial_add_group(trial, &group);
    CHECK_EQUAL(helio_trial_run(trial, 2 * HELIO_SECOND), 0);
    CHECK(value("pipe0.bytes") > 0.98 * 2 * 500000 && value("pipe0.bytes") < 1.01 * 2 * 500000);
    CHECK_EQUAL(value("source0.rate_limit"), 500000);
    CHECK_EQUAL(value("source0.queued"), 100000);
    CHECK(value("source0.refused") > 500000);
    CHECK_EQUAL(value("group0.lost"), 0);
    end();
}

static void receivers_come_and_go(void) {
    begin(5);
    helio_trial_group_config late = group;
    late.join_ns = 500 * MS;
    helio_trial_add_source(trial, &source);
    CHECK_EQUAL(helio_trial_add_group(trial, &late), 0);
    CHECK_EQUAL(helio_trial_plan(trial, 800 * MS, HELIO_TRIAL_LEAVE, 0, 0, 0), 0);
    CHECK_EQUAL(helio_trial_run(trial, 490 * MS), 0);
    CHECK_EQUAL(value("group0.receivers"), 0);
    CHECK_EQUAL(helio_trial_run(trial, 790 * MS), 0);
    CHECK_EQUAL(value("group0.receivers"), 3);
    CHECK(value("group0.delivered") > 3 * 250);
    CHECK_EQUAL(helio_trial_run(trial, HELIO_SECOND), 0);
    CHECK_EQUAL(value("group0.receivers"), 0);
    CHECK(value("group0.delivered") < 3 * 310);
    end();
}

static void tcp_alone_fills_its_bottleneck_and_after_its_start_without_timeouts(void) {
    begin(6);
    const helio_sim_pipe_config pipe = {
        .rate = 2000000, .queue_bytes = 60000, .overhead_bytes = 38};
    CHECK_EQUAL(helio_trial_add_pipe(trial, &pipe), 0);
    const helio_trial_tcp_config tcp = {
        .pipe = 0, .stop_ns = HELIO_NEVER, .delay_ns = 10 * MS, .feedback_ns = 10 * MS};
    CHECK_EQUAL(helio_trial_add_tcp(trial, &tcp), 0);
    CHECK_EQUAL(helio_trial_run(trial, 3 * HELIO_SECOND), 0);
    const double dropped = value("pipe0.dropped"), timeouts = value("tcp0.timeouts");
    CHECK(timeouts <=
          3); /* slow start loses half a window, and its recovery is cut short (RFC 6582) */
    CHECK_EQUAL(helio_trial_run(trial, 20 * HELIO_SECOND), 0);
    CHECK(value("tcp0.acked") > 0.9 * 20 * 2000000 * 1500 / 1538);
    CHECK(value("pipe0.dropped") > dropped); /* it looks for the limit */
    CHECK_EQUAL(value("tcp0.timeouts"), timeouts);
    end();
}

static void two_tcp_flows_share_fairly(void) {
    begin(7);
    const helio_sim_pipe_config pipe = {.rate = 2000000, .queue_bytes = 60000};
    helio_trial_add_pipe(trial, &pipe);
    helio_trial_tcp_config tcp = {
        .pipe = 0, .stop_ns = HELIO_NEVER, .delay_ns = 10 * MS, .feedback_ns = 10 * MS};
    helio_trial_add_tcp(trial, &tcp);
    tcp.start_ns = 3 * HELIO_SECOND;
    tcp.feedback_ns = 11 * MS;
    helio_trial_add_tcp(trial, &tcp);
    CHECK_EQUAL(helio_trial_run(trial, 60 * HELIO_SECOND), 0);
    const double share = value("tcp1.acked") / (value("tcp0.acked") + value("tcp1.acked"));
    CHECK(share > 0.25 && share < 0.7);
    end();
}

static void a_narrow_bottleneck_delays_and_drops(void) {
    begin(8);
    const helio_sim_pipe_config pipe = {.rate = 800000, .queue_bytes = 20000};
    helio_trial_add_pipe(trial, &pipe);
    helio_trial_source_config behind = source;
    behind.pipe = 0;
    helio_trial_add_source(trial, &behind);
    helio_trial_add_group(trial, &group);
    CHECK_EQUAL(helio_trial_plan(trial, 500 * MS, HELIO_TRIAL_OFFERED, 0, 100000, 0), 0);
    CHECK_EQUAL(helio_trial_run(trial, 500 * MS), 0);
    CHECK(value("pipe0.dropped") > 0);
    CHECK(value("pipe0.queue") > 10000);
    CHECK_EQUAL(helio_trial_run(trial, 3 * HELIO_SECOND), 0);
    CHECK(value("pipe0.queue") < 5000);
    CHECK_EQUAL(value("group0.lost"), 0);
    end();
}

static uint64_t story(uint64_t seed) {
    begin(seed);
    helio_trial_source_config random = source;
    random.is_even = false;
    helio_trial_group_config lossy = group;
    lossy.loss = 0.02;
    lossy.jitter_ns = MS;
    helio_trial_add_source(trial, &random);
    helio_trial_add_group(trial, &lossy);
    CHECK_EQUAL(helio_trial_run(trial, HELIO_SECOND), 0);
    size_t rows;
    const double *values = helio_trial_rows(trial, &rows);
    CHECK_EQUAL(rows, 100);
    uint64_t hash = 0;
    for (size_t i = 0; i < rows * helio_trial_columns(trial); i++) {
        hash = hash * 31 + (uint64_t)values[i];
    }
    end();
    return hash;
}

static void the_same_seed_tells_the_same_story(void) {
    const uint64_t first = story(11), again = story(11), other = story(12);
    CHECK(first == again);
    CHECK(first != other);
}

static void what_cannot_be_is_refused(void) {
    begin(9);
    helio_trial_source_config wrong = source;
    wrong.pipe = 3;
    CHECK_EQUAL(helio_trial_add_source(trial, &wrong), HELIO_ERR_OPTION);
    wrong = source;
    wrong.options = "send_window=1";
    CHECK_EQUAL(helio_trial_add_source(trial, &wrong), HELIO_ERR_OPTION);
    CHECK(strstr(helio_error_text(), "send_window") != NULL);
    wrong = source;
    wrong.message_bytes = 0;
    CHECK_EQUAL(helio_trial_add_source(trial, &wrong), HELIO_ERR_OPTION);
    helio_trial_group_config nobody = group;
    nobody.count = 0;
    CHECK_EQUAL(helio_trial_add_group(trial, &nobody), HELIO_ERR_OPTION);
    nobody = group;
    nobody.options = "receive_window=many";
    CHECK_EQUAL(helio_trial_add_group(trial, &nobody), HELIO_ERR_OPTION);
    CHECK_EQUAL(helio_trial_plan(trial, 0, HELIO_TRIAL_DRAIN, 0, 1, 0), HELIO_ERR_OPTION);
    end();
}

int main(void) {
    RUN(what_is_offered_is_delivered_to_each);
    RUN(a_loss_is_asked_for_and_repaired);
    RUN(what_the_source_knows_of_each_receiver_is_kept);
    RUN(a_slow_application_fills_its_queue_and_no_more);
    RUN(an_application_that_quickens_is_caught_up);
    RUN(a_rate_is_kept_and_the_rest_refused);
    RUN(receivers_come_and_go);
    RUN(tcp_alone_fills_its_bottleneck_and_after_its_start_without_timeouts);
    RUN(two_tcp_flows_share_fairly);
    RUN(a_narrow_bottleneck_delays_and_drops);
    RUN(the_same_seed_tells_the_same_story);
    RUN(what_cannot_be_is_refused);
    return check_result();
}
