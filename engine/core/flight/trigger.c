#include "flight/trigger.h"

#include <string.h>

#include "base/error.h"

typedef struct kind {
    const char *name;
    uint32_t id;
    helio_severity severity;
} kind;

static const kind kinds[] = {
#define X(NAME, name, id, SEVERITY, arguments, help) {#name, id, HELIO_##SEVERITY},
    HELIO_EVENTS(X)
#undef X
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Events about recordings must not cause another one. */
static bool may_freeze(const kind *one) {
    return one->id != HELIO_EVENT_FLIGHT_FROZEN && one->id != HELIO_EVENT_FLIGHT_FAILED;
}

static bool is_word(const char *word, size_t length, const char *name) {
    return strlen(name) == length && memcmp(word, name, length) == 0;
}

/* Marks what a word stands for; false: nothing. */
static bool mark(helio_flight_trigger *trigger, const char *word, size_t length) {
    static const char *const severities[] = {"info", "warning", "error"};
    bool is_known = is_word(word, length, "none");
    for (int severity = 0; severity < 3; severity++) {
        is_known |= is_word(word, length, severities[severity]);
    }
    for (size_t i = 0; i < KINDS; i++) {
        const bool is_name = is_word(word, length, kinds[i].name);
        if ((is_name || is_word(word, length, severities[kinds[i].severity])) &&
            may_freeze(&kinds[i])) {
            trigger->freezes[kinds[i].id] = true;
            is_known = true;
        }
    }
    return is_known;
}

int helio_flight_trigger_read(helio_flight_trigger *trigger, const char *text) {
    *trigger = (helio_flight_trigger){0};
    for (int i = 0; i < HELIO_EVENT_IDS_END; i++) {
        trigger->last_ns[i] = INT64_MIN / 2;
    }
    while (*text) {
        const size_t length = strcspn(text, ",");
        if (!mark(trigger, text, length)) {
            return helio_fail(HELIO_ERR_OPTION,
                              "option flight_freeze is a list of events (docs/events.md) and "
                              "severities (info, warning, error), such as \"error,socket_drops\"; "
                              "\"%.*s\" cannot freeze the recording",
                              length > 60 ? 60 : (int)length, text);
        }
        text += length + (text[length] == ',');
    }
    return 0;
}

bool helio_flight_trigger_fires(helio_flight_trigger *trigger, uint32_t event, int64_t now_ns) {
    if (event >= HELIO_EVENT_IDS_END || !trigger->freezes[event]) {
        return false;
    }
    const int64_t quiet_ns = now_ns - trigger->last_ns[event];
    trigger->last_ns[event] = now_ns;
    return quiet_ns >= HELIO_FLIGHT_QUIET_NS;
}

const char *helio_flight_trigger_name(uint32_t event) {
    for (size_t i = 0; i < KINDS; i++) {
        if (kinds[i].id == event) {
            return kinds[i].name;
        }
    }
    return "event";
}
