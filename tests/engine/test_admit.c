/* The gate: each cause for which a message may not go is answered for its own reason, by every way
 * of sending, and the error, the event and the statistic name that cause. */
#include "check.h"

#include <unistd.h>

#include <heliograph/heliograph.h>

#include "ports.h"
#include "runtime/instance.h"
#include "runtime/transmitter.h"
#include "runtime/tx_lane.h"
#include "send/admit.h"
#include "send/topics.h"
#include "stats/segment.h"

enum { SIZE = 1000, QUEUE_BYTES = 65536, LONG = 40000, MANY = 100000, LISTED = 3000 };

#define WAIT_NS (200 * HELIO_MILLISECOND) /* many times congestion_time, for a busy machine */

typedef struct example {
    helio_admission cause;
    const char *instance, *transmitter;
} example;

static const example examples[] = {
    {HELIO_ADMIT_ROOM, "", ""},
    {HELIO_ADMIT_HISTORY, "", "&acks=1&send_window=32"},
    {HELIO_ADMIT_RATE, "", "&rate=10000"},
    {HELIO_ADMIT_INSTANCE_RATE, "&rate=10000", ""},
    {HELIO_ADMIT_WINDOW, "", "&flow_window=min&window_receivers=1"},
    {HELIO_ADMIT_CREDIT, "", "&await_credit=true"},
    {HELIO_ADMIT_UNSTABLE_MESSAGES, "", "&acks=1&unstable_messages=300"},
    {HELIO_ADMIT_UNSTABLE_BYTES, "", "&acks=1&unstable_bytes=60000"},
};

enum { EXAMPLES = sizeof examples / sizeof *examples };

static helio_instance *instance;
static helio_transmitter *transmitter;
static helio_driver full; /* a driver whose channel takes no more */
static char data[LONG];

static size_t no_room(helio_channel *channel) {
    (void)channel;
    return 0;
}

static void begin(const char *more, const char *options) {
    char text[256], endpoint[64];
    snprintf(text, sizeof text, "mode=poll&segment_bytes=4194304&flight_keep=0%s", more);
    snprintf(endpoint, sizeof endpoint, "rmm+unicast://127.0.0.1:%d", test_port(0));
    if (helio_instance_create(text, &instance) < 0) {
        CHECK_FAIL("%s", helio_error_text());
    }
    snprintf(text, sizeof text, "linger=0&congestion_time=0.01%s", options);
    if (helio_transmitter_create(instance, endpoint, "T", text, &transmitter) < 0) {
        CHECK_FAIL("%s", helio_error_text());
    }
}

static void begin_example(const example *it) {
    begin(it->instance, it->transmitter);
    if (it->cause == HELIO_ADMIT_ROOM) {
        helio_channel *channel = transmitter->lane->base.channel;
        full = *channel->driver;
        full.room = no_room;
        channel->driver = &full;
        transmitter->lane->room = 0;
    }
}

static void end(void) {
    helio_tx_lane *lane = transmitter->lane;
    lane->is_heedless = true;
    helio_submit_queue_fini(&transmitter->queue); /* nobody empties it */
    transmitter->queue = (helio_submit_queue){0};
    helio_transmitter_destroy(transmitter);
    helio_instance_destroy(instance);
}

/* From now on the transmitter has a submit queue, and this thread is application and engine in
 * turn. */
static void begin_queue(void) {
    CHECK_EQUAL(helio_submit_queue_init(&transmitter->queue, QUEUE_BYTES), 0);
    transmitter->queue.account = &instance->memory.account;
}

static int submit(size_t length) {
    instance->mode = HELIO_MODE_THREAD;
    const int error = helio_transmitter_send(transmitter, data, length);
    instance->mode = HELIO_MODE_POLL;
    return error;
}

static void says(int error, int expected, const char *sentence) {
    CHECK_EQUAL(error, expected);
    if (strncmp(helio_error_text(), sentence, strlen(sentence)) != 0) {
        CHECK_FAIL("said: %s; expected: %s", helio_error_text(), sentence);
    }
}

static helio_tx_stream_stats *stream_stats(void) {
    return helio_tx_stream_object(transmitter->lane->stream)->record;
}

static uint64_t waited(helio_admission cause) {
    const helio_tx_stream_stats *stats = stream_stats();
    const helio_transmitter_stats *topic = helio_tx_topic_object(transmitter->topic)->record;
    switch (cause) {
    case HELIO_ADMIT_ROOM:
        return helio_cell(&stats->wait_time_room);
    case HELIO_ADMIT_REPAIRS:
        return helio_cell(&stats->wait_time_repairs);
    case HELIO_ADMIT_HISTORY:
        return helio_cell(&stats->wait_time_history);
    case HELIO_ADMIT_RATE:
        return helio_cell(&stats->wait_time_rate);
    case HELIO_ADMIT_INSTANCE_RATE:
        return helio_cell(&stats->wait_time_instance_rate);
    case HELIO_ADMIT_WINDOW:
        return helio_cell(&stats->wait_time_window);
    case HELIO_ADMIT_CREDIT:
        return transmitter->lane->awaits_credit ? helio_cell(&topic->credit_waits) : 0;
    default:
        return 0;
    }
}

static void check_waits(helio_admission cause) {
    for (int other = HELIO_ADMIT_ROOM; other <= HELIO_ADMIT_CREDIT; other++) {
        if ((waited((helio_admission)other) > 0) != (other == (int)cause)) {
            CHECK_FAIL("messages wait for %s, and the statistic of %s is %llu",
                       helio_admission_text[cause].waits_for, helio_admission_text[other].waits_for,
                       (unsigned long long)waited((helio_admission)other));
        }
    }
}

static void check_event(helio_admission cause) {
    const helio_stats *stats = instance->stats;
    char text[128];
    int found = 0;
    snprintf(text, sizeof text, "have waited for %s for", helio_admission_text[cause].waits_for);
    for (uint64_t i = 0; i < stats->header->events_written; i++) {
        if (stats->events[i].event == HELIO_EVENT_CONGESTION_ON) {
            found++;
            CHECK(strstr(stats->events[i].text, text));
            CHECK_EQUAL(stats->events[i].arguments[3], (uint64_t)cause);
        }
    }
    if (found == 0) {
        CHECK_FAIL("no event says that messages %s", text);
    }
}

static void polled_a_refusal_names_its_one_cause(void) {
    for (int i = 0; i < EXAMPLES; i++) {
        const helio_admission_words *words = &helio_admission_text[examples[i].cause];
        begin_example(&examples[i]);
        int error = 0;
        for (int n = 0; n < MANY && !error; n++) {
            error = helio_transmitter_send(transmitter, data, SIZE);
        }
        says(error, HELIO_ERR_WOULD_BLOCK, words->refused);
        size_t accepted = 1;
        const helio_buffer list = {data, SIZE};
        says(helio_transmitter_send_many(transmitter, &list, 1, &accepted), HELIO_ERR_WOULD_BLOCK,
             words->refused);
        CHECK_EQUAL(accepted, 0);
        CHECK_EQUAL(helio_cell(&instance->counts->send_would_block), 2);
        /* A rate is owed more than it allows while the call waits. */
        helio_tx_pace_charge(helio_tx_stream_pace(transmitter->lane->stream), SIZE * 100, 1);
        says(helio_transmitter_wait(transmitter, SIZE, WAIT_NS), HELIO_ERR_TIMEOUT, words->refused);
        check_waits(examples[i].cause);
        check_event(examples[i].cause);
        end();
    }
}

/* How many messages of a list leave when each is asked about alone. */
static size_t send_one_by_one(const helio_buffer *list, size_t count) {
    helio_tx_lane *lane = transmitter->lane;
    size_t done = 0;
    helio_tx_lane_look(lane);
    for (; done < count; done++) {
        const helio_moment moment = helio_clock_read(&instance->clock);
        if (helio_tx_lane_admit(lane, transmitter->topic, list[done].length, moment) !=
            HELIO_ADMIT_GO) {
            helio_tx_lane_flush(lane, moment);
            helio_tx_lane_look(lane);
            if (helio_tx_lane_admit(lane, transmitter->topic, list[done].length, moment) !=
                HELIO_ADMIT_GO) {
                break;
            }
        }
        CHECK_EQUAL(helio_tx_stream_append(lane->stream, transmitter->topic, list[done].data,
                                           list[done].length, moment.wall_ns, moment),
                    0);
    }
    helio_tx_lane_flush(lane, helio_clock_read(&instance->clock));
    return done;
}

static void a_list_is_refused_at_the_same_message_as_its_messages_one_by_one(void) {
    static helio_buffer list[LISTED];
    for (int i = 0; i < LISTED; i++) {
        list[i] = (helio_buffer){data, (size_t)(i * 7 % 90)};
    }
    for (int i = 0; i < EXAMPLES; i++) {
        const helio_admission cause = examples[i].cause;
        if (!helio_admission_is_of_acks(cause) && cause != HELIO_ADMIT_WINDOW &&
            cause != HELIO_ADMIT_CREDIT) {
            continue; /* it depends on time, or no message goes */
        }
        size_t accepted[2], sequence[2];
        for (int by_list = 0; by_list < 2; by_list++) {
            begin_example(&examples[i]);
            helio_tx_pace *pace = helio_tx_stream_pace(transmitter->lane->stream);
            if (cause == HELIO_ADMIT_WINDOW) {
                helio_tx_pace_set_send_limit(pace,
                                             helio_tx_stream_lead(transmitter->lane->stream) + 11);
            }
            if (cause == HELIO_ADMIT_CREDIT) {
                transmitter->topic->credit.limit = 333;
            }
            const uint64_t lead = helio_tx_stream_lead(transmitter->lane->stream);
            if (by_list) {
                CHECK_EQUAL(
                    helio_transmitter_send_many(transmitter, list, LISTED, &accepted[by_list]),
                    HELIO_ERR_WOULD_BLOCK);
            } else {
                accepted[by_list] = send_one_by_one(list, LISTED);
            }
            sequence[by_list] = helio_tx_stream_lead(transmitter->lane->stream) - lead;
            end();
        }
        CHECK(accepted[0] > 100 && accepted[0] < LISTED);
        CHECK_EQUAL(accepted[1], accepted[0]);
        CHECK_EQUAL(sequence[1], sequence[0]);
    }
}

static void a_full_queue_names_what_its_messages_wait_for(void) {
    for (int i = 0; i < EXAMPLES; i++) {
        const helio_admission_words *words = &helio_admission_text[examples[i].cause];
        begin_example(&examples[i]);
        begin_queue();
        int error = 0;
        for (int n = 0; n < MANY && !error; n++) {
            error = submit(SIZE);
            helio_tx_lane_work(transmitter->lane, helio_clock_read(&instance->clock));
        }
        says(error, HELIO_ERR_WOULD_BLOCK, words->queue_full);
        for (int ms = 0; ms < 20; ms++) {
            usleep(1000);
            helio_tx_lane_work(transmitter->lane, helio_clock_read(&instance->clock));
            helio_tx_lane_refresh(transmitter->lane, helio_clock_read(&instance->clock));
        }
        check_waits(examples[i].cause);
        end();
    }
}

/* With unstable_action=refuse no call waits; with report none is refused. */
static void limits_of_what_is_not_stable_refuse_or_report(void) {
    begin("", "&acks=1&unstable_messages=10&unstable_action=refuse");
    for (int n = 0; n < 10; n++) {
        CHECK_EQUAL(helio_transmitter_send(transmitter, data, 100), 0);
    }
    const char *refused = helio_admission_text[HELIO_ADMIT_UNSTABLE_MESSAGES].refused;
    says(helio_transmitter_send(transmitter, data, 100), HELIO_ERR_ACKERS, refused);
    says(helio_transmitter_wait(transmitter, 100, HELIO_SECOND), HELIO_ERR_ACKERS, refused);
    begin_queue();
    helio_tx_lane_work(transmitter->lane, helio_clock_read(&instance->clock));
    says(submit(100), HELIO_ERR_ACKERS, refused);
    CHECK_EQUAL(helio_cell(&stream_stats()->unstable_messages), 10);
    end();
    begin("", "&acks=1&unstable_messages=10&unstable_action=report");
    for (int n = 0; n < 50; n++) {
        CHECK_EQUAL(helio_transmitter_send(transmitter, data, 100), 0);
    }
    CHECK_EQUAL(helio_cell(&stream_stats()->unstable_messages), 50);
    CHECK_EQUAL(helio_cell(&stream_stats()->unstable_limits), 1);
    end();
}

static void a_queue_that_is_only_full_says_so(void) {
    begin("", "");
    begin_queue();
    int error = 0;
    for (int n = 0; n < MANY && !error; n++) {
        error = submit(SIZE);
    }
    says(error, HELIO_ERR_WOULD_BLOCK, helio_admission_text[HELIO_ADMIT_QUEUE].queue_full);
    helio_tx_lane_work(transmitter->lane, helio_clock_read(&instance->clock));
    CHECK_EQUAL(submit(SIZE), 0);
    end();
}

static void want_of_memory_is_not_a_full_queue(void) {
    begin("", "");
    begin_queue();
    const uint64_t limit = instance->memory.account.limit_bytes;
    instance->memory.account.limit_bytes = helio_account_used(&instance->memory.account) + LONG - 1;
    says(submit(LONG), HELIO_ERR_WOULD_BLOCK, helio_admission_text[HELIO_ADMIT_MEMORY].queue_full);
    CHECK_EQUAL(submit(SIZE), 0);
    instance->memory.account.limit_bytes = limit;
    CHECK_EQUAL(submit(LONG), 0);
    helio_tx_lane_work(transmitter->lane, helio_clock_read(&instance->clock));
    end();
}

static void too_few_that_acknowledge_are_an_error_of_their_own(void) {
    const char *sentence = helio_admission_text[HELIO_ADMIT_ACKERS].refused;
    begin("", "&acks=1&acks_missing=fail");
    says(helio_transmitter_send(transmitter, data, SIZE), HELIO_ERR_ACKERS, sentence);
    says(helio_transmitter_wait(transmitter, SIZE, WAIT_NS), HELIO_ERR_ACKERS, sentence);
    begin_queue();
    says(submit(SIZE), HELIO_ERR_ACKERS, sentence);
    CHECK_EQUAL(helio_cell(&instance->counts->send_would_block), 0);
    end();
}

static void repairs_that_go_first_are_a_cause_within_the_rate(void) {
    static helio_tx_stream_stats stats;
    helio_tx_pace pace;
    helio_tx_pace_init(&pace, &(helio_tx_pace_config){.rate = 1000000}, 1500, &stats, NULL, 0);
    CHECK_EQUAL(helio_tx_pace_admit(&pace, 1, true, 0), HELIO_ADMIT_REPAIRS);
    CHECK_EQUAL(helio_tx_pace_admit(&pace, 1, false, 0), HELIO_ADMIT_GO);
    helio_tx_pace_set_send_limit(&pace, 0);
    CHECK_EQUAL(helio_tx_pace_admit(&pace, 1, true, 0), HELIO_ADMIT_WINDOW);
    helio_tx_pace_set_send_limit(&pace, UINT64_MAX);
    helio_tx_pace_set_rate(&pace, 0, 0);
    CHECK_EQUAL(helio_tx_pace_admit(&pace, 1, true, 0), HELIO_ADMIT_GO);
    helio_tx_pace_fini(&pace);
}

static void each_cause_has_words_of_its_own(void) {
    for (int i = HELIO_ADMIT_ROOM; i < HELIO_ADMISSIONS; i++) {
        const helio_admission_words *words = &helio_admission_text[i];
        CHECK(words->waits_for && words->refused && words->queue_full);
        for (int k = HELIO_ADMIT_ROOM; k < i; k++) {
            CHECK(strcmp(words->waits_for, helio_admission_text[k].waits_for) != 0);
            CHECK(strcmp(words->queue_full, helio_admission_text[k].queue_full) != 0);
        }
    }
}

int main(void) {
    RUN(polled_a_refusal_names_its_one_cause);
    RUN(limits_of_what_is_not_stable_refuse_or_report);
    RUN(a_list_is_refused_at_the_same_message_as_its_messages_one_by_one);
    RUN(a_full_queue_names_what_its_messages_wait_for);
    RUN(a_queue_that_is_only_full_says_so);
    RUN(want_of_memory_is_not_a_full_queue);
    RUN(too_few_that_acknowledge_are_an_error_of_their_own);
    RUN(repairs_that_go_first_are_a_cause_within_the_rate);
    RUN(each_cause_has_words_of_its_own);
    return check_result();
}
