/* Options: what is read, and that every refusal names the option, its range and the value. */
#include "check.h"

#include "base/error.h"
#include "generated/profiles.h"
#include "options/options.h"

static helio_options options;

static int read_text(const char *text, unsigned on, unsigned ignored) {
    helio_options_fini(&options);
    CHECK_EQUAL(helio_options_init(&options), 0);
    return helio_options_read(&options, text, on, ignored);
}

static int read_for(unsigned on, const char *text) {
    return read_text(text, on, 0);
}

static void refused(unsigned on, const char *text, const char *sentence_part) {
    CHECK_EQUAL(read_for(on, text), HELIO_ERR_OPTION);
    if (!strstr(helio_error_sentence(), sentence_part)) {
        CHECK_FAIL("\"%s\" does not say \"%s\"", helio_error_sentence(), sentence_part);
    }
}

static void what_is_not_given_has_its_default(void) {
    CHECK_EQUAL(read_for(HELIO_ON_TRANSMITTER, NULL), 0);
    CHECK_EQUAL(helio_options_integer(&options, HELIO_OPTION_ID_TTL), 1);
    CHECK_EQUAL(helio_options_ns(&options, HELIO_OPTION_ID_HEARTBEAT_MIN), 500000);
    CHECK_EQUAL(helio_options_integer(&options, HELIO_OPTION_ID_MODE), HELIO_MODE_THREAD);
    CHECK(strcmp(helio_options_string(&options, HELIO_OPTION_ID_INTERFACE), "") == 0);
    CHECK(!options.value[HELIO_OPTION_ID_TTL].given);
}

static void numbers_choices_and_texts_are_read(void) {
    CHECK_EQUAL(read_for(HELIO_ON_INSTANCE, "mode=poll&idle=spin&cpu=-1&name=a%20b%26c&level=3"),
                0);
    CHECK_EQUAL(helio_options_integer(&options, HELIO_OPTION_ID_MODE), HELIO_MODE_POLL);
    CHECK_EQUAL(helio_options_integer(&options, HELIO_OPTION_ID_IDLE), HELIO_IDLE_SPIN);
    CHECK_EQUAL(helio_options_integer(&options, HELIO_OPTION_ID_CPU), -1);
    CHECK_EQUAL(helio_options_integer(&options, HELIO_OPTION_ID_LEVEL), 3);
    CHECK(strcmp(helio_options_string(&options, HELIO_OPTION_ID_NAME), "a b&c") == 0);
    CHECK_EQUAL(read_for(HELIO_ON_RECEIVER, "inject_loss=0.25&nak_backoff=2.5e-3"), 0);
    CHECK(helio_options_float(&options, HELIO_OPTION_ID_INJECT_LOSS) == 0.25);
    CHECK_EQUAL(helio_options_ns(&options, HELIO_OPTION_ID_NAK_BACKOFF), 2500000);
}

static void a_later_value_wins_and_empty_pairs_are_skipped(void) {
    CHECK_EQUAL(read_for(HELIO_ON_TRANSMITTER, "ttl=2&&ttl=3&"), 0);
    CHECK_EQUAL(helio_options_integer(&options, HELIO_OPTION_ID_TTL), 3);
    CHECK(options.value[HELIO_OPTION_ID_TTL].given);
}

static void a_refusal_names_option_range_and_value(void) {
    refused(HELIO_ON_TRANSMITTER, "ttl=256", "option ttl is from 0 to 255; 256 is outside");
    refused(HELIO_ON_TRANSMITTER, "report_interval=601", "option report_interval is from 0 to 600");
    refused(HELIO_ON_TRANSMITTER, "report_rate=0", "option report_rate is from 1 to 1000000");
    refused(HELIO_ON_RECEIVER, "tagged=perhaps", "option tagged");
    refused(HELIO_ON_TRANSMITTER, "rate_mode=ask", "one of enforce,advise,observe");
    refused(HELIO_ON_TRANSMITTER, "loss_high=1.5", "option loss_high is from 1e-05 to 1");
    refused(HELIO_ON_TRANSMITTER, "loss_low=-1", "option loss_low is from 0 to 1");
    refused(HELIO_ON_TRANSMITTER, "rate_receivers=best", "one of worst,quantile,tagged");
    refused(HELIO_ON_TRANSMITTER, "rate_quantile=2", "option rate_quantile is from 0 to 1");
    refused(HELIO_ON_TRANSMITTER, "rate_silence=-1", "option rate_silence is from 0 to 3600");
    refused(HELIO_ON_TRANSMITTER, "rate_escalate=4000", "option rate_escalate is from 0 to 3600");
    refused(HELIO_ON_TRANSMITTER, "control_interval=0", "option control_interval is from 0.001");
    refused(HELIO_ON_TRANSMITTER, "ttl=many",
            "option ttl is a whole number from 0 to 255, not \"many\"");
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
    CHECK_EQUAL(read_text("ttl=3&inject_loss=0.5", HELIO_ON_RECEIVER, HELIO_ON_TRANSMITTER), 0);
    CHECK(!options.value[HELIO_OPTION_ID_TTL].given);
    CHECK(helio_options_float(&options, HELIO_OPTION_ID_INJECT_LOSS) == 0.5);
    CHECK_EQUAL(read_text("ttl=300", HELIO_ON_RECEIVER, HELIO_ON_TRANSMITTER), HELIO_ERR_OPTION);
    CHECK_EQUAL(read_text("mode=poll", HELIO_ON_RECEIVER, HELIO_ON_TRANSMITTER), HELIO_ERR_OPTION);
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
    const unsigned on = HELIO_ON_TRANSMITTER;
    CHECK_EQUAL(read_for(on, "profile=wan&heartbeat_min=0.25"), 0);
    helio_options_apply_profile(&options, on);
    CHECK_EQUAL(helio_options_ns(&options, HELIO_OPTION_ID_HEARTBEAT_MIN), 250000000);
    CHECK_EQUAL(helio_options_integer(&options, HELIO_OPTION_ID_TTL), 32);
    CHECK_EQUAL(helio_options_ns(&options, HELIO_OPTION_ID_NAK_REPEAT), 2000000); /* receivers' */
    CHECK_EQUAL(read_for(on, "profile=standard"), 0);
    helio_options_apply_profile(&options, on);
    CHECK_EQUAL(helio_options_integer(&options, HELIO_OPTION_ID_TTL), 1);
    refused(on, "profile=lan", "option profile is one of standard,lan-latency");
}

static void every_value_of_every_profile_becomes_the_default_of_its_owners(void) {
    static const struct {
        const char *profile;
        helio_option_id id;
        double value;
    } changes[] = {
        {"lan-latency", HELIO_OPTION_ID_IDLE, HELIO_IDLE_SPIN},
        {"lan-latency", HELIO_OPTION_ID_HEARTBEAT_MIN, 200e-6},
        {"lan-latency", HELIO_OPTION_ID_REORDER_TIME, 10e-6},
        {"lan-latency", HELIO_OPTION_ID_REPAIR_LINGER, 50e-6},
        {"lan-throughput", HELIO_OPTION_ID_SOCKET_BUFFER, 16 << 20},
        {"lan-throughput", HELIO_OPTION_ID_SEND_WINDOW, 32768},
        {"lan-throughput", HELIO_OPTION_ID_RECEIVE_WINDOW, 32768},
        {"lan-throughput", HELIO_OPTION_ID_SUBMIT_QUEUE, 16 << 20},
        {"lan-throughput", HELIO_OPTION_ID_RECEIVE_QUEUE, 32 << 20},
        {"wan", HELIO_OPTION_ID_REORDER_TIME, 0.001},
        {"wan", HELIO_OPTION_ID_NAK_BACKOFF, 0.05},
        {"wan", HELIO_OPTION_ID_NAK_REPEAT, 0.2},
        {"wan", HELIO_OPTION_ID_NAK_DATA, 0.4},
        {"wan", HELIO_OPTION_ID_NAK_DEADLINE, 10},
        {"wan", HELIO_OPTION_ID_REPAIR_LINGER, 0.05},
        {"wan", HELIO_OPTION_ID_REPORT_INTERVAL, 1},
        {"wan", HELIO_OPTION_ID_HEARTBEAT_MIN, 0.1},
        {"wan", HELIO_OPTION_ID_HEARTBEAT_MAX, 30},
        {"wan", HELIO_OPTION_ID_AMBIENT_INTERVAL, 30},
        {"wan", HELIO_OPTION_ID_STREAM_EXPIRY, 300},
        {"wan", HELIO_OPTION_ID_SEND_WINDOW, 65536},
        {"wan", HELIO_OPTION_ID_RECEIVE_WINDOW, 65536},
        {"wan", HELIO_OPTION_ID_LINGER, 10},
        {"wan", HELIO_OPTION_ID_TTL, 32},
        {"many-receivers", HELIO_OPTION_ID_NAK_BACKOFF, 0.01},
        {"many-receivers", HELIO_OPTION_ID_REPAIR_LINGER, 0.002},
        {"many-receivers", HELIO_OPTION_ID_REPORT_INTERVAL, 1},
        {"many-receivers", HELIO_OPTION_ID_HEARTBEAT_MIN, 0.002},
        {"many-receivers", HELIO_OPTION_ID_SOCKET_BUFFER, 16 << 20},
    };
#define X(...) +1
    enum { CHANGES = 0 HELIO_PROFILES(X) };
#undef X
    static const unsigned owners_of[] = {
#define X(ID, name, type, on, ...) [HELIO_OPTION_ID_##ID] = on,
        HELIO_OPTIONS(X)
#undef X
    };
    static const unsigned owners[] = {HELIO_ON_INSTANCE, HELIO_ON_TRANSMITTER, HELIO_ON_RECEIVER};
    CHECK_EQUAL(sizeof changes / sizeof changes[0], CHANGES); /* the catalogue has no other */
    for (size_t i = 0; i < CHANGES; i++) {
        const helio_option_id id = changes[i].id;
        for (size_t k = 0; k < sizeof owners / sizeof owners[0]; k++) {
            CHECK_EQUAL(read_for(owners[k], "profile=standard"), 0);
            helio_options_apply_profile(&options, owners[k]);
            const double standard = options.value[id].number;
            char text[64];
            snprintf(text, sizeof text, "profile=%s", changes[i].profile);
            CHECK_EQUAL(read_for(owners[k], text), 0);
            helio_options_apply_profile(&options, owners[k]);
            const double wanted = owners_of[id] & owners[k] ? changes[i].value : standard;
            CHECK(options.value[id].number == wanted);
        }
    }
}

static void what_differs_in_its_queue_only_shares_a_lane(void) {
    helio_options other;
    CHECK_EQUAL(helio_options_init(&other), 0);
    CHECK_EQUAL(helio_options_read(&other,
                                   "submit_queue=65536&interface=127.0.0.1&overflow=conflate&"
                                   "key_bytes=4&queue_messages=9",
                                   HELIO_ON_TRANSMITTER, 0),
                0);
    CHECK_EQUAL(read_for(HELIO_ON_TRANSMITTER, "interface=127.0.0.1"), 0);
    const bool alike = helio_options_share(&options, &other, HELIO_ON_TRANSMITTER);
    CHECK_EQUAL(read_for(HELIO_ON_TRANSMITTER, "interface=127.0.0.2"), 0);
    const bool elsewhere = helio_options_share(&options, &other, HELIO_ON_TRANSMITTER);
    helio_options_fini(&other);
    CHECK(alike);
    CHECK(!elsewhere);
}

int main(void) {
    RUN(what_is_not_given_has_its_default);
    RUN(numbers_choices_and_texts_are_read);
    RUN(a_later_value_wins_and_empty_pairs_are_skipped);
    RUN(a_refusal_names_option_range_and_value);
    RUN(a_misspelt_name_is_answered_with_the_near_one);
    RUN(an_option_of_another_object_is_refused_unless_ignored);
    RUN(broken_texts_are_refused);
    RUN(a_profile_changes_defaults_and_nothing_given);
    RUN(every_value_of_every_profile_becomes_the_default_of_its_owners);
    RUN(what_differs_in_its_queue_only_shares_a_lane);
    helio_options_fini(&options);
    return check_result();
}
