#include "runtime/detail.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "stats/levels.h"

/* ---- commands of other programs ---- */

static void write_set(const helio_level_change *change, int64_t for_ns, char *done,
                      size_t done_bytes) {
    const bool is_rule = change->text[0];
    char found[80] = "";
    if (is_rule && change->objects > 0) {
        snprintf(found, sizeof found, "; %u object%s matched", change->objects,
                 change->objects == 1 ? "" : "s");
    } else if (is_rule) {
        snprintf(found, sizeof found,
                 "; no object matches now; new objects that match get it until then");
    }
    snprintf(done, done_bytes, "%s%sthe level of detail is %d for %.9g s, it was %d%s",
             change->text, is_rule ? ": " : "", change->level, (double)for_ns / 1e9, change->before,
             found);
}

static void write_end(const helio_level_change *change, char *done, size_t done_bytes) {
    snprintf(done, done_bytes, "%s%sthe level of detail is %d again, it was %d", change->text,
             change->text[0] ? ": " : "", change->level, change->before);
}

int helio_detail_do(helio_instance *instance, const helio_control_request *request,
                    helio_moment moment, char *done, size_t done_bytes) {
    const helio_level_selector selector = {
        .topic = request->text[HELIO_CONTROL_KEY_TOPIC],
        .stream = request->text[HELIO_CONTROL_KEY_STREAM],
        .receiver = request->text[HELIO_CONTROL_KEY_RECEIVER],
    };
    const unsigned sets = HELIO_CONTROL_HAS_LEVEL | HELIO_CONTROL_HAS_FOR;
    const unsigned given = request->has & (sets | HELIO_CONTROL_HAS_OFF);
    helio_level_change change;
    int error;
    if (given == sets) {
        error = helio_levels_set(instance->stats, &selector, request->level,
                                 moment.now_ns + request->for_ns, moment, &change);
    } else if (given == HELIO_CONTROL_HAS_OFF) {
        error = helio_levels_end(instance->stats, &selector, moment, &change);
    } else {
        return helio_fail(HELIO_ERR_OPTION, "level needs a duration, such as level=3 for=60: no "
                                            "level is permanent; off=yes ends one early");
    }
    if (!error && given == sets) {
        write_set(&change, request->for_ns, done, done_bytes);
    } else if (!error) {
        write_end(&change, done, done_bytes);
    }
    return error;
}

/* ---- the program itself ---- */

typedef struct level_call {
    helio_level_selector selector;
    int level;
    int64_t for_ns; /* 0: what is in force ends */
} level_call;

static bool run(helio_instance *instance, helio_command *command, helio_moment moment) {
    const level_call *call = command->context;
    helio_level_change change;
    const int error = call->for_ns > 0
                          ? helio_levels_set(instance->stats, &call->selector, call->level,
                                             moment.now_ns + call->for_ns, moment, &change)
                          : helio_levels_end(instance->stats, &call->selector, moment, &change);
    command->result = error ? error : (int)change.objects;
    return true;
}

static int check_pattern(const char *what, const char *pattern) {
    if (pattern && !helio_control_is_text(pattern, strlen(pattern))) {
        return helio_fail(HELIO_ERR_OPTION,
                          "the pattern of %s must be UTF-8 text without control characters", what);
    }
    return 0;
}

static int call_engine(helio_instance *instance, const helio_selector *selector, level_call *call) {
    if (selector) {
        call->selector =
            (helio_level_selector){selector->topic, selector->stream, selector->receiver};
    }
    int error = check_pattern("topic", call->selector.topic);
    if (!error) {
        error = check_pattern("stream", call->selector.stream);
    }
    if (!error) {
        error = check_pattern("receiver", call->selector.receiver);
    }
    helio_command command = {.run = run, .context = call};
    return error ? error : helio_command_execute(instance, &command);
}

int helio_instance_set_level(helio_instance *instance, int level, int64_t for_ns,
                             const helio_selector *selector) {
    if (for_ns < 1 || for_ns > HELIO_CONTROL_FOR_MAX_NS) {
        return helio_fail(
            HELIO_ERR_OPTION,
            "a level of detail needs a duration above 0 and at most %lld s: no level is permanent",
            (long long)(HELIO_CONTROL_FOR_MAX_NS / HELIO_SECOND));
    }
    level_call call = {.level = level, .for_ns = for_ns};
    return call_engine(instance, selector, &call);
}

int helio_instance_reset_level(helio_instance *instance, const helio_selector *selector) {
    level_call call = {.for_ns = 0};
    return call_engine(instance, selector, &call);
}
