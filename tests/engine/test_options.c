/* Options: what is read, and that every refusal names the option, its range and the value. */
#include "check.h"

#include "base/error.h"
#include "generated/profiles.h"
#include "options/options.h"

static union {
    helio_instance_options instance;
    helio_transmitter_options transmitter;
    helio_receiver_options receiver;
} options;
static helio_owner owner;

static int read_text(const char *text, helio_owner on, bool for_both) {
    helio_options_fini(&options, owner);
    owner = on;
    CHECK_EQUAL(helio_options_init(&options, on), 0);
    return helio_options_read(&options, on, text, for_both);
}

static int read_for(helio_owner on, const char *text) {
    return read_text(text, on, false);
}

static void refused(helio_owner on, const char *text, const char *sentence_part) {
    CHECK_EQUAL(read_for(on, text), HELIO_ERR_OPTION);
    if (!strstr(helio_error_sentence(), sentence_part)) {
        CHECK_FAIL("\"%s\" does not say \"%s\"", helio_error_sentence(), sentence_part);
    }
}

static void what_is_not_given_has_its_default(void) {
    CHECK_EQUAL(read_for(HELIO_ON_TRANSMITTER, NULL), 0);
    CHECK_EQUAL(options.transmitter.ttl, 1);
    CHECK_EQUAL(options.transmitter.heartbeat_min_ns, 500000);
    CHECK(strcmp(options.transmitter.stream.interface, "") == 0);
    CHECK(!options.transmitter.given.ttl);
    CHECK_EQUAL(read_for(HELIO_ON_INSTANCE, NULL), 0);
    CHECK_EQUAL(options.instance.mode, HELIO_MODE_THREAD);
}

static void numbers_choices_and_texts_are_read(void) {
    CHECK_EQUAL(read_for(HELIO_ON_INSTANCE, "mode=poll&idle=spin&cpu=-1&name=a%20b%26c&level=3"),
                0);
    CHECK_EQUAL(options.instance.mode, HELIO_MODE_POLL);
    CHECK_EQUAL(options.instance.idle, HELIO_IDLE_SPIN);
    CHECK_EQUAL(options.instance.cpu, -1);
    CHECK_EQUAL(options.instance.level, 3);
    CHECK(strcmp(options.instance.name, "a b&c") == 0);
    CHECK_EQUAL(read_for(HELIO_ON_RECEIVER, "inject_loss=0.25&nak_backoff=2.5e-3&tagged=true"), 0);
    CHECK(options.receiver.inject_loss == 0.25);
    CHECK_EQUAL(options.receiver.nak_backoff_ns, 2500000);
    CHECK(options.receiver.tagged);
}

static void what_is_written_is_read_as_the_same(void) {
    static char text[8192];
    helio_transmitter_options copy;
    CHECK_EQUAL(read_for(HELIO_ON_TRANSMITTER,
                         "linger=0.3&heartbeat_min=0.000123457&loss_high=0.07&priority_offset=-1&"
                         "history=dynamic&late_join=false&mtu=9000"),
                0);
    CHECK(helio_options_write(&options, owner, text, sizeof text) < sizeof text);
    CHECK_EQUAL(helio_options_init(&copy, HELIO_ON_TRANSMITTER), 0);
    CHECK_EQUAL(helio_options_read(&copy, HELIO_ON_TRANSMITTER, text, false), 0);
    CHECK(helio_options_share(&copy, &options, HELIO_ON_TRANSMITTER));
    CHECK_EQUAL(copy.heartbeat_min_ns, 123457);
    CHECK_EQUAL(copy.stream.mtu, 9000);
    CHECK(!copy.late_join);
    helio_options_fini(&copy, HELIO_ON_TRANSMITTER);
}

static void a_later_value_wins_and_empty_pairs_are_skipped(void) {
    CHECK_EQUAL(read_for(HELIO_ON_TRANSMITTER, "ttl=2&&ttl=3&"), 0);
    CHECK_EQUAL(options.transmitter.ttl, 3);
    CHECK(options.transmitter.given.ttl);
}

static void a_refusal_names_option_range_and_value(void) {
    refused(HELIO_ON_TRANSMITTER, "ttl=256",
            "option ttl is a whole number from 0 to 255 hops, not \"256\"");
    refused(HELIO_ON_TRANSMITTER, "report_interval=601",
            "option report_interval is a number from 0 to 600");
    refused(HELIO_ON_TRANSMITTER, "report_rate=0",
            "option report_rate is a whole number from 1 to 1000000");
    refused(HELIO_ON_RECEIVER, "tagged=perhaps", "option tagged");
    refused(HELIO_ON_TRANSMITTER, "rate_mode=ask", "one of enforce,advise,observe");
    refused(HELIO_ON_TRANSMITTER, "loss_high=1.5", "option loss_high is a number from 1e-05 to 1");
    refused(HELIO_ON_TRANSMITTER, "loss_low=-1", "option loss_low is a number from 0 to 1");
    refused(HELIO_ON_TRANSMITTER, "rate_receivers=best", "one of worst,quantile,tagged");
    refused(HELIO_ON_TRANSMITTER, "rate_quantile=2",
            "option rate_quantile is a number from 0 to 1");
    refused(HELIO_ON_TRANSMITTER, "control_interval=0",
            "option control_interval is a number from 0.001");
    refused(HELIO_ON_TRANSMITTER, "ttl=many",
            "option ttl is a whole number from 0 to 255 hops, not \"many\"");
    refused(HELIO_ON_TRANSMITTER, "ttl=1.5", "whole number");
    refused(HELIO_ON_TRANSMITTER, "ttl=", "not \"\"");
    refused(HELIO_ON_TRANSMITTER, "linger=nan", "option linger is a number");
    refused(HELIO_ON_TRANSMITTER, "linger=1x", "not \"1x\"");
    refused(HELIO_ON_INSTANCE, "mode=fast", "option mode is one of thread,poll, not \"fast\"");
    refused(HELIO_ON_INSTANCE, "mode=threa", "not \"threa\"");
    refused(HELIO_ON_INSTANCE, "mode=", "not \"\"");
}

static void a_misspelt_name_is_answered_with_the_near_one(void) {
    refused(HELIO_ON_TRANSMITTER, "send_windw=64",
            "a transmitter has no option send_windw; did you mean send_window?");
    refused(HELIO_ON_TRANSMITTER, "colour=red", "a transmitter has no option colour");
    CHECK(!strstr(helio_error_sentence(), "did you mean"));
}

static void an_option_of_another_object_is_refused_unless_ignored(void) {
    refused(HELIO_ON_RECEIVER, "ttl=3", "option ttl belongs to a transmitter, not to a receiver");
    refused(HELIO_ON_INSTANCE, "mtu=1500",
            "option mtu belongs to a transmitter or a receiver, not to an instance");
    CHECK_EQUAL(read_text("ttl=3&inject_loss=0.5", HELIO_ON_RECEIVER, true), 0);
    CHECK(options.receiver.inject_loss == 0.5);
    CHECK_EQUAL(read_text("ttl=300", HELIO_ON_RECEIVER, true), HELIO_ERR_OPTION);
    CHECK_EQUAL(read_text("mode=poll", HELIO_ON_RECEIVER, true), HELIO_ERR_OPTION);
}

static void a_former_name_is_answered_with_the_new_one(void) {
    refused(HELIO_ON_RECEIVER, "receive_overflow=block",
            "option receive_overflow was renamed to overflow");
    refused(HELIO_ON_TRANSMITTER, "receive_age=1", "option receive_age was renamed to queue_age");
}

static void an_option_of_both_ends_may_differ_between_them(void) {
    CHECK_EQUAL(read_for(HELIO_ON_TRANSMITTER, "overflow=refuse"), 0);
    CHECK_EQUAL(options.transmitter.stream.overflow, HELIO_OVERFLOW_REFUSE);
    CHECK(options.transmitter.stream.low_water == 1);
    refused(HELIO_ON_RECEIVER, "overflow=refuse", "one of block,drop_newest,drop_oldest,conflate,");
    CHECK_EQUAL(read_for(HELIO_ON_RECEIVER, "overflow=priority"), 0);
    CHECK_EQUAL(options.receiver.stream.overflow, HELIO_OVERFLOW_PRIORITY);
    CHECK(options.receiver.stream.low_water == 0.5);
}

static void broken_texts_are_refused(void) {
    refused(HELIO_ON_INSTANCE, "mode", "name=value");
    refused(HELIO_ON_INSTANCE, "name=%4", "escape");
    refused(HELIO_ON_INSTANCE, "name=%zz", "escape");
    refused(HELIO_ON_INSTANCE, "name=a%00b", "escape");
    refused(HELIO_ON_INSTANCE, "=x", "no option");
    char text[6000] = "name=";
    memset(text + 5, 'n', sizeof text - 6);
    refused(HELIO_ON_INSTANCE, text, "too long");
    memset(text, 'n', 200);
    memcpy(text + 200, "=1", 3);
    refused(HELIO_ON_INSTANCE, text, "too long");
}

static void a_profile_changes_defaults_and_nothing_given(void) {
    CHECK_EQUAL(read_for(HELIO_ON_TRANSMITTER, "profile=wan&heartbeat_min=0.25"), 0);
    CHECK_EQUAL(helio_options_apply_profile(&options, owner), 0);
    CHECK_EQUAL(options.transmitter.heartbeat_min_ns, 250000000);
    CHECK_EQUAL(options.transmitter.ttl, 32);
    CHECK_EQUAL(read_for(HELIO_ON_TRANSMITTER, "profile=standard"), 0);
    CHECK_EQUAL(helio_options_apply_profile(&options, owner), 0);
    CHECK_EQUAL(options.transmitter.ttl, 1);
    refused(HELIO_ON_TRANSMITTER, "profile=lan", "option profile is one of standard,lan-latency");
}

/* The value of an option of the profile as text; false: the owner has no such option. */
static bool value_under(const char *profile, helio_owner on, const char *option, char *value,
                        size_t size) {
    static char text[8192];
    char start[64];
    snprintf(start, sizeof start, "profile=%s", profile);
    CHECK_EQUAL(read_for(on, start), 0);
    CHECK_EQUAL(helio_options_apply_profile(&options, on), 0);
    text[0] = '&';
    CHECK(helio_options_write(&options, on, text + 1, sizeof text - 1) < sizeof text - 1);
    snprintf(start, sizeof start, "&%s=", option);
    const char *found = strstr(text, start);
    if (found) {
        found += strlen(start);
        snprintf(value, size, "%.*s", (int)strcspn(found, "&"), found);
    }
    return found != NULL;
}

static void every_value_of_every_profile_becomes_the_default_of_its_owners(void) {
    static const struct {
        const char *profile, *option, *value;
    } changes[] = {
        {"lan-latency", "idle", "spin"},
        {"lan-latency", "heartbeat_min", "200e-6"},
        {"lan-latency", "reorder_time", "10e-6"},
        {"lan-throughput", "socket_buffer", "16777216"},
        {"lan-throughput", "send_window", "32768"},
        {"lan-throughput", "receive_window", "32768"},
        {"lan-throughput", "submit_queue", "16777216"},
        {"lan-throughput", "receive_queue", "33554432"},
        {"wan", "reorder_time", "0.001"},
        {"wan", "nak_deadline", "10"},
        {"wan", "report_interval", "1"},
        {"wan", "heartbeat_min", "0.1"},
        {"wan", "heartbeat_max", "30"},
        {"wan", "ambient_interval", "30"},
        {"wan", "stream_expiry", "300"},
        {"wan", "send_window", "65536"},
        {"wan", "receive_window", "65536"},
        {"wan", "linger", "10"},
        {"wan", "ttl", "32"},
        {"many-receivers", "report_interval", "1"},
        {"many-receivers", "heartbeat_min", "0.002"},
        {"many-receivers", "socket_buffer", "16777216"},
    };
#define X(...) +1
    enum { CHANGES = 0 HELIO_PROFILES(X) };
#undef X
    CHECK_EQUAL(sizeof changes / sizeof changes[0], CHANGES); /* the catalogue has no other */
    for (size_t i = 0; i < CHANGES; i++) {
        int owners = 0;
        for (helio_owner on = HELIO_ON_INSTANCE; on <= HELIO_ON_RECEIVER; on++) {
            char value[64], standard[64];
            const char *wanted = changes[i].value;
            if (!value_under(changes[i].profile, on, changes[i].option, value, sizeof value)) {
                continue;
            }
            owners++;
            CHECK(value_under("standard", on, changes[i].option, standard, sizeof standard));
            CHECK(strcmp(value, wanted) == 0 || strtod(value, NULL) == strtod(wanted, NULL));
            CHECK(strcmp(value, standard) != 0);
        }
        CHECK(owners > 0);
    }
}

static void what_differs_in_its_queue_only_shares_a_lane(void) {
    helio_transmitter_options other;
    CHECK_EQUAL(helio_options_init(&other, HELIO_ON_TRANSMITTER), 0);
    CHECK_EQUAL(helio_options_read(&other, HELIO_ON_TRANSMITTER,
                                   "submit_queue=65536&interface=127.0.0.1&overflow=conflate&"
                                   "key_bytes=4&queue_messages=9",
                                   false),
                0);
    CHECK_EQUAL(read_for(HELIO_ON_TRANSMITTER, "interface=127.0.0.1"), 0);
    CHECK(helio_options_share(&options, &other, HELIO_ON_TRANSMITTER));
    CHECK_EQUAL(read_for(HELIO_ON_TRANSMITTER, "interface=127.0.0.2"), 0);
    CHECK(!helio_options_share(&options, &other, HELIO_ON_TRANSMITTER));
    CHECK_EQUAL(read_for(HELIO_ON_TRANSMITTER, "interface=127.0.0.1&linger=2"), 0);
    CHECK(!helio_options_share(&options, &other, HELIO_ON_TRANSMITTER));
    helio_options_fini(&other, HELIO_ON_TRANSMITTER);
}

int main(void) {
    RUN(what_is_not_given_has_its_default);
    RUN(numbers_choices_and_texts_are_read);
    RUN(what_is_written_is_read_as_the_same);
    RUN(a_later_value_wins_and_empty_pairs_are_skipped);
    RUN(a_refusal_names_option_range_and_value);
    RUN(a_misspelt_name_is_answered_with_the_near_one);
    RUN(an_option_of_another_object_is_refused_unless_ignored);
    RUN(a_former_name_is_answered_with_the_new_one);
    RUN(an_option_of_both_ends_may_differ_between_them);
    RUN(broken_texts_are_refused);
    RUN(a_profile_changes_defaults_and_nothing_given);
    RUN(every_value_of_every_profile_becomes_the_default_of_its_owners);
    RUN(what_differs_in_its_queue_only_shares_a_lane);
    helio_options_fini(&options, owner);
    return check_result();
}
