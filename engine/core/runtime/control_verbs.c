#include "runtime/control_verbs.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* ---- words ---- */

/* " for 30 s", or "" without a time. */
static const char *for_text(const helio_control_request *request, char text[32]) {
    text[0] = 0;
    if (request->for_ns > 0) {
        snprintf(text, 32, " for %.9g s", (double)request->for_ns / 1e9);
    }
    return text;
}

/* ---- verbs: each writes what was done, or notes why not ---- */

static int do_ping(helio_instance *instance, const helio_control_request *request,
                   helio_clock clock, char *done) {
    (void)request;
    (void)clock;
    snprintf(done, HELIO_CONTROL_SENTENCE_BYTES, "%s %s listens", instance->name, HELIO_VERSION);
    return 0;
}

static int do_level(helio_instance *instance, const helio_control_request *request,
                    helio_clock clock, char *done) {
    if (request->has & HELIO_CONTROL_WHERE) {
        return helio_fail(HELIO_ERR_OPTION,
                          "the level of detail is of the whole instance: leave stream and topic "
                          "out");
    }
    const int before = helio_stats_level(instance->stats);
    char time[32];
    const int error = helio_stats_set_level(instance->stats, request->level,
                                            clock.now_ns + request->for_ns, clock);
    snprintf(done, HELIO_CONTROL_SENTENCE_BYTES, "the level of detail is %d%s, it was %d",
             request->level, for_text(request, time), before);
    return error;
}

int helio_control_do(helio_instance *instance, const helio_control_request *request,
                     helio_clock clock, char done[HELIO_CONTROL_SENTENCE_BYTES]) {
    switch (request->verb) {
#define X(NAME, name, word, must, may) \
    case HELIO_CONTROL_VERB_##NAME:    \
        return do_##name(instance, request, clock, done);
        HELIO_CONTROL_VERBS(X)
#undef X
    case HELIO_CONTROL_VERBS_COUNT:
        break;
    }
    return helio_fail(HELIO_ERR_STATE, "there is no such verb");
}
