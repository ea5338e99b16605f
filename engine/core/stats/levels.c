#include "stats/levels.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/glob.h"
#include "stats/segment.h"

enum { INSTANCE_RULE, KINDS = 3 };

static const char *const kind_names[KINDS] = {"topic", "stream", "receiver"};

/* ---- selectors ---- */

/* The patterns in the order of kind_names, "" for one that is not given. */
static void patterns_of(const helio_level_selector *selector, const char *patterns[KINDS]) {
    const char *given[KINDS] = {selector->topic, selector->stream, selector->receiver};
    for (int kind = 0; kind < KINDS; kind++) {
        patterns[kind] = given[kind] ? given[kind] : "";
    }
}

static bool is_instance(const char *const patterns[KINDS]) {
    return !patterns[0][0] && !patterns[1][0] && !patterns[2][0];
}

static int check_patterns(const char *const patterns[KINDS]) {
    for (int kind = 0; kind < KINDS; kind++) {
        if (strnlen(patterns[kind], HELIO_LEVEL_PATTERN_BYTES) == HELIO_LEVEL_PATTERN_BYTES) {
            return helio_fail(HELIO_ERR_OPTION,
                              "a pattern has at most %d bytes, that of %s has more",
                              HELIO_LEVEL_PATTERN_BYTES - 1, kind_names[kind]);
        }
    }
    return 0;
}

/* "topic=PRICES.* stream=..."; "" for the instance. */
static void describe(const helio_level_rule *rule, char text[HELIO_LEVEL_TEXT_BYTES]) {
    size_t used = 0;
    text[0] = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        if (rule->patterns[kind][0]) {
            used += (size_t)snprintf(text + used, HELIO_LEVEL_TEXT_BYTES - used, "%s%s=%s",
                                     used ? " " : "", kind_names[kind], rule->patterns[kind]);
        }
    }
}

/* The value of a label, cut off behind its end; false: there is none.  The labels lie where others
 * may write, so nothing of them is believed but their place. */
static bool find_label(const char *labels, const char *key, char value[HELIO_STATS_LABELS_BYTES]) {
    const char *end = labels + strnlen(labels, HELIO_STATS_LABELS_BYTES);
    const size_t key_bytes = strlen(key);
    for (const char *line = labels; line < end;) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        const char *stop = next ? next : end;
        if ((size_t)(stop - line) > key_bytes && line[key_bytes] == '=' &&
            memcmp(line, key, key_bytes) == 0) {
            const size_t length = (size_t)(stop - line) - key_bytes - 1;
            memcpy(value, line + key_bytes + 1, length);
            value[length] = 0;
            return true;
        }
        line = stop + 1;
    }
    return false;
}

/* Labels by which a receiver is called, by scope; the last is NULL. */
static const char *const *receiver_labels(helio_scope scope) {
    static const char *const peer[] = {"receiver", "name", "receiver_id", NULL};
    static const char *const rx_stream[] = {"instance", "feedback_address", NULL};
    static const char *const receiver[] = {"instance", NULL};
    static const char *const nobody[] = {NULL};
    switch (scope) {
    case HELIO_SCOPE_TX_RECEIVER:
        return peer;
    case HELIO_SCOPE_RX_STREAM:
        return rx_stream;
    case HELIO_SCOPE_RECEIVER:
        return receiver;
    default:
        return nobody;
    }
}

static bool fits_label(const char *pattern, const char *labels, const char *key) {
    char value[HELIO_STATS_LABELS_BYTES];
    return find_label(labels, key, value) && helio_glob_matches(pattern, value);
}

static bool fits_receiver(const char *pattern, helio_scope scope, const char *labels) {
    for (const char *const *key = receiver_labels(scope); *key; key++) {
        if (fits_label(pattern, labels, *key)) {
            return true;
        }
    }
    return false;
}

/* What describes the instance, or a rule, is of no rule's concern. */
static bool is_of_traffic(helio_scope scope) {
    return scope != HELIO_SCOPE_INSTANCE && scope != HELIO_SCOPE_DETAIL;
}

static bool fits(const helio_level_rule *rule, helio_scope scope, const char *labels) {
    const char(*patterns)[HELIO_LEVEL_PATTERN_BYTES] = rule->patterns;
    return is_of_traffic(scope) &&
           (!patterns[0][0] || fits_label(patterns[0], labels, kind_names[0])) &&
           (!patterns[1][0] || fits_label(patterns[1], labels, kind_names[1])) &&
           (!patterns[2][0] || fits_receiver(patterns[2], scope, labels));
}

/* ---- objects ---- */

int helio_levels_find(const helio_stats *stats, helio_scope scope, const char *labels) {
    int newest = INSTANCE_RULE;
    for (int i = 1; i < HELIO_LEVEL_RULES_END && stats->rules_in_force > 0; i++) {
        const helio_level_rule *rule = &stats->rules[i];
        if (rule->order > stats->rules[newest].order && fits(rule, scope, labels)) {
            newest = i;
        }
    }
    return newest;
}

void helio_levels_admit(helio_stats *stats, helio_stats_object *object) {
    stats->rules[object->rule].objects += is_of_traffic(object->scope);
}

void helio_levels_dismiss(helio_stats *stats, const helio_stats_object *object) {
    stats->rules[object->rule].objects -= is_of_traffic(object->scope);
}

/* Has the rule decide on the object from now on. */
static void put_under(helio_stats *stats, helio_stats_object *object, int rule) {
    stats->rules[object->rule].objects--;
    stats->rules[rule].objects++;
    object->rule = (int8_t)rule;
    object->level = (int8_t)stats->rules[rule].level;
    helio_histograms_follow(stats, object);
}

static void show(helio_level_rule *rule, helio_moment moment) {
    helio_detail_stats *cells = rule->object.record;
    if (!cells) {
        return;
    }
    helio_stats_begin(cells);
    helio_set(&cells->level, (uint64_t)rule->level);
    helio_set(&cells->until, rule->until_ns == HELIO_NEVER
                                 ? 0
                                 : (uint64_t)(moment.wall_ns + rule->until_ns - moment.now_ns));
    helio_set(&cells->objects, rule->objects);
    helio_stats_end(cells);
}

static void note_highest(helio_stats *stats) {
    stats->highest_level = stats->rules[INSTANCE_RULE].level;
    for (int i = 1; i < HELIO_LEVEL_RULES_END; i++) {
        if (stats->rules[i].order && stats->rules[i].level > stats->highest_level) {
            stats->highest_level = stats->rules[i].level;
        }
    }
}

/* Opens what readers see of the rule; without memory for it the rule is in force all the same. */
static void open_object(helio_stats *stats, helio_level_rule *rule, const char *text,
                        helio_moment moment) {
    char labels[HELIO_STATS_LABELS_BYTES] = "";
    if (rule->object.record) {
        return;
    }
    helio_stats_label(labels, sizeof labels, "instance", stats->name);
    helio_stats_label(labels, sizeof labels, "selector", text[0] ? text : "instance");
    if (helio_stats_open_object(stats, HELIO_SCOPE_DETAIL, labels, moment.wall_ns, &rule->object)) {
        rule->object = (helio_stats_object){.slot = HELIO_STATS_NO_SLOT};
    }
}

/* ---- telling ---- */

static uint32_t slot_of(const helio_stats *stats, const helio_level_rule *rule) {
    return rule == &stats->rules[INSTANCE_RULE] ? HELIO_STATS_NO_SLOT : rule->object.slot;
}

static void tell_changed(helio_stats *stats, const helio_level_rule *rule,
                         const helio_level_change *change, helio_moment moment) {
    const int64_t for_ns = rule->until_ns == HELIO_NEVER ? 0 : rule->until_ns - moment.now_ns;
    helio_stats_event(stats, moment.wall_ns, HELIO_EVENT_LEVEL_CHANGED, slot_of(stats, rule),
                      (const uint64_t[4]){(uint64_t)change->level, (uint64_t)change->before,
                                          (uint64_t)for_ns, change->objects},
                      "%s%sthe level of detail is %d, it was %d", change->text,
                      change->text[0] ? ": " : "", change->level, change->before);
}

static void tell_reverted(helio_stats *stats, const helio_level_rule *rule,
                          const helio_level_change *change, helio_moment moment) {
    helio_stats_event(
        stats, moment.wall_ns, HELIO_EVENT_LEVEL_REVERTED, slot_of(stats, rule),
        (const uint64_t[4]){(uint64_t)change->level, (uint64_t)change->before, change->objects},
        "%s%sthe level of detail is %d again, it was %d", change->text, change->text[0] ? ": " : "",
        change->level, change->before);
}

/* ---- the instance ---- */

int helio_stats_level(const helio_stats *stats) {
    return stats->rules[INSTANCE_RULE].level;
}

int helio_stats_highest_level(const helio_stats *stats) {
    return stats->highest_level;
}

static void set_instance(helio_stats *stats, int level, int64_t until_ns, helio_moment moment) {
    helio_level_rule *rule = &stats->rules[INSTANCE_RULE];
    rule->level = level;
    rule->until_ns = until_ns;
    for (helio_stats_object *object = stats->live; object; object = object->next) {
        if (object->rule == INSTANCE_RULE) {
            object->level = (int8_t)level;
            helio_histograms_follow(stats, object);
        }
    }
    stats->unopened = stats->live;
    note_highest(stats);
    if (stats->instance) {
        helio_set(&stats->instance->detail_level, (uint64_t)level);
    }
    if (level == stats->level_at_start && until_ns == HELIO_NEVER) {
        helio_stats_close_object(stats, &rule->object, moment.wall_ns);
    } else {
        open_object(stats, rule, "", moment);
        show(rule, moment);
    }
}

int helio_stats_set_level(helio_stats *stats, int level, int64_t until_ns, helio_moment moment) {
    return helio_levels_set(stats, &(helio_level_selector){0}, level, until_ns, moment, NULL);
}

/* ---- rules ---- */

/* The rule of the same selector; NULL: there is none. */
static helio_level_rule *same(helio_stats *stats, const char *const patterns[KINDS]) {
    for (int i = 1; i < HELIO_LEVEL_RULES_END; i++) {
        helio_level_rule *rule = &stats->rules[i];
        bool is_same = rule->order != 0;
        for (int kind = 0; kind < KINDS; kind++) {
            is_same = is_same && strcmp(rule->patterns[kind], patterns[kind]) == 0;
        }
        if (is_same) {
            return rule;
        }
    }
    return NULL;
}

static helio_level_rule *unused(helio_stats *stats) {
    for (int i = 1; i < HELIO_LEVEL_RULES_END; i++) {
        if (!stats->rules[i].order) {
            return &stats->rules[i];
        }
    }
    return NULL;
}

/* The rule is the newest: it takes every object that it fits. */
static void apply(helio_stats *stats, helio_level_rule *rule) {
    const int place = (int)(rule - stats->rules);
    for (helio_stats_object *object = stats->live; object; object = object->next) {
        if (object->rule == place || fits(rule, object->scope, object->labels)) {
            put_under(stats, object, place);
        }
    }
    stats->unopened = stats->live;
    note_highest(stats);
}

static void end(helio_stats *stats, helio_level_rule *rule, helio_moment moment,
                helio_level_change *out) {
    const int place = (int)(rule - stats->rules);
    *out = (helio_level_change){
        .level = helio_stats_level(stats), .before = rule->level, .objects = rule->objects};
    describe(rule, out->text);
    rule->order = 0;
    stats->rules_in_force--;
    for (helio_stats_object *object = stats->live; object; object = object->next) {
        if (object->rule == place) {
            put_under(stats, object, helio_levels_find(stats, object->scope, object->labels));
        }
    }
    stats->unopened = stats->live;
    note_highest(stats);
    tell_reverted(stats, rule, out, moment);
    helio_stats_close_object(stats, &rule->object, moment.wall_ns);
}

/* The instance has the level again that it was started with. */
static void end_instance(helio_stats *stats, helio_moment moment, helio_level_change *out) {
    helio_level_rule *rule = &stats->rules[INSTANCE_RULE];
    *out = (helio_level_change){
        .level = stats->level_at_start, .before = rule->level, .objects = rule->objects};
    set_instance(stats, stats->level_at_start, HELIO_NEVER, moment);
    tell_reverted(stats, rule, out, moment);
}

static int check_level(int level) {
    if (!HELIO_STATS_COUNTING) {
        return helio_fail(HELIO_ERR_STATE, "this build counts nothing, at any level of detail");
    }
    if (level < 0 || level > HELIO_LEVEL_HIGHEST) {
        return helio_fail(HELIO_ERR_OPTION, "the level of detail is 0 to %d, not %d",
                          HELIO_LEVEL_HIGHEST, level);
    }
    return 0;
}

/* A rule of the selector, with its patterns in place; NULL: there are too many. */
static helio_level_rule *take_rule(helio_stats *stats, const char *const patterns[KINDS]) {
    helio_level_rule *rule = same(stats, patterns);
    if (rule) {
        return rule;
    }
    rule = unused(stats);
    if (rule) {
        for (int kind = 0; kind < KINDS; kind++) {
            strcpy(rule->patterns[kind], patterns[kind]);
        }
        stats->rules_in_force++;
        rule->level = helio_stats_level(stats);
    }
    return rule;
}

int helio_levels_set(helio_stats *stats, const helio_level_selector *selector, int level,
                     int64_t until_ns, helio_moment moment, helio_level_change *out) {
    const char *patterns[KINDS];
    helio_level_change change = {.level = level};
    helio_level_rule *rule = &stats->rules[INSTANCE_RULE];
    patterns_of(selector, patterns);
    int error = check_level(level);
    if (!error) {
        error = check_patterns(patterns);
    }
    if (error) {
        return error;
    }
    if (is_instance(patterns)) {
        change.before = rule->level;
        set_instance(stats, level, until_ns, moment);
    } else {
        rule = take_rule(stats, patterns);
        if (!rule) {
            return helio_fail(HELIO_ERR_OPTION,
                              "%d rules are in force, which is the maximum: end one first",
                              HELIO_LEVEL_RULES_MAX);
        }
        change.before = rule->level;
        rule->level = level;
        rule->until_ns = until_ns;
        rule->order = ++stats->rules_ever;
        describe(rule, change.text);
        apply(stats, rule);
        open_object(stats, rule, change.text, moment);
        show(rule, moment);
    }
    change.objects = rule->objects;
    tell_changed(stats, rule, &change, moment);
    if (out) {
        *out = change;
    }
    return 0;
}

static int fail_no_rule(const helio_stats *stats) {
    char known[400] = "";
    size_t used = 0;
    for (int i = 1; i < HELIO_LEVEL_RULES_END && used < sizeof known; i++) {
        char text[HELIO_LEVEL_TEXT_BYTES];
        if (stats->rules[i].order) {
            describe(&stats->rules[i], text);
            used +=
                (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? "; " : "", text);
        }
    }
    return used ? helio_fail(HELIO_ERR_OPTION,
                             "no rule in force has exactly this selector; there are: %s", known)
                : helio_fail(HELIO_ERR_OPTION, "no rule is in force");
}

int helio_levels_end(helio_stats *stats, const helio_level_selector *selector, helio_moment moment,
                     helio_level_change *out) {
    const char *patterns[KINDS];
    helio_level_change change;
    patterns_of(selector, patterns);
    if (is_instance(patterns)) {
        end_instance(stats, moment, &change);
    } else {
        helio_level_rule *rule = same(stats, patterns);
        if (!rule) {
            return fail_no_rule(stats);
        }
        end(stats, rule, moment, &change);
    }
    if (out) {
        *out = change;
    }
    return 0;
}

void helio_levels_init(helio_stats *stats, int level, const char *name) {
    stats->level_at_start = stats->highest_level = level;
    stats->rules[INSTANCE_RULE].level = level;
    stats->rules[INSTANCE_RULE].until_ns = HELIO_NEVER;
    snprintf(stats->name, sizeof stats->name, "%s", name);
}

void helio_levels_tend(helio_stats *stats, helio_moment moment) {
    helio_level_change change;
    if (moment.now_ns >= stats->rules[INSTANCE_RULE].until_ns) {
        end_instance(stats, moment, &change);
    }
    show(&stats->rules[INSTANCE_RULE], moment);
    for (int i = 1; i < HELIO_LEVEL_RULES_END && stats->rules_in_force > 0; i++) {
        helio_level_rule *rule = &stats->rules[i];
        if (rule->order && moment.now_ns >= rule->until_ns) {
            end(stats, rule, moment, &change);
        } else if (rule->order) {
            show(rule, moment);
        }
    }
}

void helio_levels_fini(helio_stats *stats) {
    for (int i = 0; i < HELIO_LEVEL_RULES_END; i++) {
        helio_stats_close_object(stats, &stats->rules[i].object,
                                 (int64_t)helio_cell(&stats->header->heartbeat_ns));
    }
}
