#include "runtime/control_verbs.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "flight/recording.h"
#include "policy/rate.h"
#include "receivers/action.h"
#include "runtime/detail.h"
#include "runtime/tx_lane.h"
#include "send/choice.h"
#include "send/govern.h"

enum { LIST_BYTES = 400 };

/* ---- words ---- */

typedef struct list {
    char text[LIST_BYTES];
    size_t used;
    bool is_cut;
} list;

/* Appends to "a, b, c", as long as there is room. */
static void put(list *to, const char *word) {
    static const char more[] = ", ...";
    char item[HELIO_TX_RECEIVER_TEXT + 2];
    const size_t bytes = (size_t)snprintf(item, sizeof item, "%s%s", to->used ? ", " : "", word);
    if (to->is_cut) {
        return;
    }
    to->is_cut = bytes + sizeof more > sizeof to->text - to->used;
    memcpy(to->text + to->used, to->is_cut ? more : item, to->is_cut ? sizeof more : bytes + 1);
    to->used += bytes;
}

static const char *streams_text(unsigned count, char text[32]) {
    snprintf(text, 32, "%u stream%s", count, count == 1 ? "" : "s");
    return text;
}

/* " for 30 s", or "" without a time. */
static const char *for_text(const helio_control_request *request, char text[32]) {
    text[0] = 0;
    if (request->for_ns > 0) {
        snprintf(text, 32, " for %.9g s", (double)request->for_ns / 1e9);
    }
    return text;
}

static const char *why_of(const helio_control_request *request) {
    const char *why = request->text[HELIO_CONTROL_KEY_WHY];
    return why[0] ? why : "by hand";
}

/* ---- streams ---- */

/* The next lane from this one on whose stream is meant; NULL: there are no more. */
static helio_tx_lane *meant(helio_tx_lane *lane, const helio_control_request *request) {
    while (lane && (lane->closing || !helio_tx_stream_is_called(
                                         lane->stream, request->text[HELIO_CONTROL_KEY_STREAM],
                                         request->text[HELIO_CONTROL_KEY_TOPIC]))) {
        lane = lane->next;
    }
    return lane;
}

static int fail_no_stream(const helio_instance *instance) {
    list known = {0};
    for (const helio_tx_lane *lane = instance->tx_lanes; lane; lane = lane->next) {
        char tsi[HELIO_TSI_TEXT];
        if (!lane->closing) {
            put(&known, helio_tsi_format(helio_tx_stream_tsi(lane->stream), tsi));
        }
    }
    return known.used ? helio_fail(HELIO_ERR_OPTION, "no stream has this name; the streams are: %s",
                                   known.text)
                      : helio_fail(HELIO_ERR_OPTION, "%s sends nothing", instance->name);
}

/* ---- receivers ---- */

/* Those on the streams that are meant; `word` NULL: all. */
static void list_receivers(helio_instance *instance, const helio_control_request *request,
                           const char *word, list *out) {
    for (helio_tx_lane *lane = meant(instance->tx_lanes, request); lane;
         lane = meant(lane->next, request)) {
        helio_receiver_index index = 0;
        while (!out->is_cut &&
               (index = word ? helio_tx_stream_receiver_called(lane->stream, word, index)
                             : helio_tx_stream_receiver_from(lane->stream, index)) !=
                   HELIO_RECEIVER_NONE) {
            char text[HELIO_TX_RECEIVER_TEXT];
            put(out, helio_tx_stream_describe(lane->stream, index++, text));
        }
    }
}

/* Whether exactly one receiver is called so on the streams that know any: several streams may have
 * the same one, but who is meant on one of them must be certain. */
static int check_receiver(helio_instance *instance, const helio_control_request *request) {
    const char *word = request->text[HELIO_CONTROL_KEY_RECEIVER];
    list found = {0};
    unsigned count = 0;
    for (helio_tx_lane *lane = meant(instance->tx_lanes, request); lane;
         lane = meant(lane->next, request)) {
        const helio_receiver_index index = helio_tx_stream_receiver_called(lane->stream, word, 0);
        if (index == HELIO_RECEIVER_NONE) {
            continue;
        }
        count++;
        if (helio_tx_stream_receiver_called(lane->stream, word, index + 1) != HELIO_RECEIVER_NONE) {
            list_receivers(instance, request, word, &found);
            return helio_fail(
                HELIO_ERR_OPTION,
                "several receivers are named %.60s; give the id or address of one: %s", word,
                found.text);
        }
    }
    if (count > 0) {
        return 0;
    }
    if (!meant(instance->tx_lanes, request)) {
        return fail_no_stream(instance);
    }
    list_receivers(instance, request, NULL, &found);
    return found.used
               ? helio_fail(HELIO_ERR_OPTION, "no receiver is named %.60s; known receivers are: %s",
                            word, found.text)
               : helio_fail(HELIO_ERR_OPTION,
                            "no receiver is named %.60s; no receiver is known yet", word);
}

/* ---- verbs: each writes what was done, or notes why not ---- */

static int do_ping(helio_instance *instance, const helio_control_request *request,
                   helio_moment moment, char *done) {
    (void)request;
    (void)moment;
    snprintf(done, HELIO_CONTROL_SENTENCE_BYTES, "%s %s listens", instance->name, HELIO_VERSION);
    return 0;
}

static int do_set_rate(helio_instance *instance, const helio_control_request *request,
                       helio_moment moment, char *done) {
    char streams[32];
    unsigned count = 0;
    for (helio_tx_lane *lane = meant(instance->tx_lanes, request); lane;
         lane = meant(lane->next, request)) {
        const int error = helio_tx_stream_set_ceiling(lane->stream, request->rate, moment);
        if (error) {
            return helio_fail(error, "%llu bytes per second is below rate_min of a stream",
                              (unsigned long long)request->rate);
        }
        count++;
    }
    if (count == 0) {
        return fail_no_stream(instance);
    }
    if (request->rate == 0) {
        snprintf(done, HELIO_CONTROL_SENTENCE_BYTES, "%s: no limit on the rate",
                 streams_text(count, streams));
    } else {
        snprintf(done, HELIO_CONTROL_SENTENCE_BYTES, "%s: at most %llu bytes per second",
                 streams_text(count, streams), (unsigned long long)request->rate);
    }
    return 0;
}

/* "window-min" and the like, as the option flow_window has them; -1: it is no window policy. */
static int window_of(const char *policy) {
    static const char *const names[] = {"window-none", "window-max", "window-min", "window-tagged"};
    for (int i = 0; i < (int)(sizeof names / sizeof names[0]); i++) {
        if (strcmp(policy, names[i]) == 0) {
            return i;
        }
    }
    return -1;
}

static int set_policy(helio_tx_stream *stream, const char *policy, helio_moment moment) {
    const int window = window_of(policy);
    if (window < 0) {
        return helio_tx_stream_set_policy(stream, policy, moment);
    }
    helio_tx_stream_set_window(stream, window, moment);
    return 0;
}

static int do_set_policy(helio_instance *instance, const helio_control_request *request,
                         helio_moment moment, char *done) {
    const char *policy = request->text[HELIO_CONTROL_KEY_POLICY];
    char streams[32];
    unsigned count = 0;
    for (helio_tx_lane *lane = meant(instance->tx_lanes, request); lane;
         lane = meant(lane->next, request)) {
        const int error = set_policy(lane->stream, policy, moment);
        if (error) {
            list known = {0};
            const helio_rate_policy *other;
            for (size_t i = 0; (other = helio_rate_policy_at(i)); i++) {
                put(&known, other->name);
            }
            put(&known, "window-none, window-max, window-min, window-tagged");
            return helio_fail(error, "policy '%.60s' is unknown; the policies are: %s", policy,
                              known.text);
        }
        count++;
    }
    if (count == 0) {
        return fail_no_stream(instance);
    }
    snprintf(done, HELIO_CONTROL_SENTENCE_BYTES, "%s: the policy is %.60s",
             streams_text(count, streams), policy);
    return 0;
}

/* Does something to the receiver, on each stream that knows it. */
static int act(helio_instance *instance, const helio_control_request *request, helio_action action,
               const char *words, const char *unfit, helio_moment moment, char *done) {
    int error = check_receiver(instance, request);
    if (error) {
        return error;
    }
    const char *word = request->text[HELIO_CONTROL_KEY_RECEIVER];
    char who[HELIO_TX_RECEIVER_TEXT] = "", streams[32], time[32];
    unsigned count = 0;
    for (helio_tx_lane *lane = meant(instance->tx_lanes, request); lane;
         lane = meant(lane->next, request)) {
        const helio_receiver_index index = helio_tx_stream_receiver_called(lane->stream, word, 0);
        if (index == HELIO_RECEIVER_NONE) {
            continue;
        }
        helio_tx_stream_describe(lane->stream, index, who);
        const int failed = helio_tx_stream_act(lane->stream, index, action, request->for_ns,
                                               why_of(request), true, moment);
        error = failed ? failed : error;
        count += !failed;
    }
    if (count == 0) {
        return helio_fail(error, "%s %s", who, unfit);
    }
    snprintf(done, HELIO_CONTROL_SENTENCE_BYTES, "%s is %s%s on %s", who, words,
             for_text(request, time), streams_text(count, streams));
    return 0;
}

static int do_suspend(helio_instance *instance, const helio_control_request *request,
                      helio_moment moment, char *done) {
    return act(instance, request, HELIO_ACTION_SUSPEND, "suspended",
               "is expelled: readmit it first", moment, done);
}

static int do_resume(helio_instance *instance, const helio_control_request *request,
                     helio_moment moment, char *done) {
    return act(instance, request, HELIO_ACTION_RESUME, "resumed", "is not suspended", moment, done);
}

static int do_expel(helio_instance *instance, const helio_control_request *request,
                    helio_moment moment, char *done) {
    return act(instance, request, HELIO_ACTION_EXPEL, "expelled", "cannot be expelled", moment,
               done);
}

static int do_readmit(helio_instance *instance, const helio_control_request *request,
                      helio_moment moment, char *done) {
    return act(instance, request, HELIO_ACTION_READMIT, "readmitted", "is not expelled", moment,
               done);
}

static int do_cutoff(helio_instance *instance, const helio_control_request *request,
                     helio_moment moment, char *done) {
    const bool begins = request->has & HELIO_CONTROL_HAS_FOR;
    if (begins == !!(request->has & HELIO_CONTROL_HAS_OFF)) {
        return helio_fail(HELIO_ERR_OPTION, "cutoff needs either for=SECONDS or off=yes");
    }
    char streams[32], time[32];
    unsigned count = 0;
    for (helio_tx_lane *lane = meant(instance->tx_lanes, request); lane;
         lane = meant(lane->next, request)) {
        helio_tx_stream_cut_off(lane->stream, request->for_ns, why_of(request), true, moment);
        count++;
    }
    if (count == 0) {
        return fail_no_stream(instance);
    }
    snprintf(done, HELIO_CONTROL_SENTENCE_BYTES,
             begins ? "%s: no repairs are sent%s" : "%s: the cut-off is over%s",
             streams_text(count, streams), for_text(request, time));
    return 0;
}

static int do_level(helio_instance *instance, const helio_control_request *request,
                    helio_moment moment, char *done) {
    return helio_detail_do(instance, request, moment, done, HELIO_CONTROL_SENTENCE_BYTES);
}

static int do_freeze(helio_instance *instance, const helio_control_request *request,
                     helio_moment moment, char *done) {
    (void)moment;
    const int error = helio_flight_ask(instance->flight, why_of(request));
    snprintf(done, HELIO_CONTROL_SENTENCE_BYTES,
             "the flight recording is kept; the event flight_frozen names its file, in about 2 s");
    return error;
}

int helio_control_do(helio_instance *instance, const helio_control_request *request,
                     helio_moment moment, char done[HELIO_CONTROL_SENTENCE_BYTES]) {
    switch (request->verb) {
#define X(NAME, name, word, must, may) \
    case HELIO_CONTROL_VERB_##NAME:    \
        return do_##name(instance, request, moment, done);
        HELIO_CONTROL_VERBS(X)
#undef X
    case HELIO_CONTROL_VERBS_COUNT:
        break;
    }
    return helio_fail(HELIO_ERR_STATE, "the verb of the command is unknown");
}
