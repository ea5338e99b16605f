#include "keep/keeper_patterns.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/kernel_clock.h"
#include "keep/keeper_life.h"

/* A topic without a stream is given up, so that topics with a date in their names do not add up. */
#define GIVE_UP_NS (3600 * HELIO_SECOND)
/* With several patterns, each is looked at this often. */
#define LOOK_NS HELIO_MILLISECOND

int helio_keeper_add_pattern(helio_keeper *keeper, const char *endpoint, const char *pattern,
                             const char *options, uint32_t limit) {
    char text[HELIO_KEEPER_OPTIONS];
    int error = helio_keeper_write_options(options, text);
    helio_keeper_pattern *added = error ? NULL : calloc(1, sizeof *added);
    if (!error && (!added || !(added->endpoint = strdup(endpoint)))) {
        error = helio_fail_plain(HELIO_ERR_NOMEM, "no memory for a pattern of topics");
    }
    error = error ? error
                  : helio_wildcard_create(keeper->instance, endpoint, pattern, text, limit,
                                          &added->wildcard);
    if (error) {
        free(added ? added->endpoint : NULL);
        free(added);
        return error;
    }
    added->next = keeper->patterns;
    keeper->patterns = added;
    return 0;
}

int helio_keeper_expect(helio_keeper *keeper, const char *topic) {
    return keeper->patterns
               ? helio_wildcard_expect(keeper->patterns->wildcard, topic)
               : helio_fail_plain(HELIO_ERR_STATE, "the store has no pattern of topics");
}

/* ---- found topics ---- */

static helio_keeper_pattern *with_found(const helio_keeper *keeper) {
    helio_keeper_pattern *pattern = keeper->patterns;
    while (pattern && !helio_wildcard_found(pattern->wildcard)) {
        pattern = pattern->next;
    }
    return pattern;
}

bool helio_keeper_has_found(const helio_keeper *keeper) {
    return with_found(keeper) != NULL;
}

static int adopt(helio_keeper *keeper, helio_keeper_pattern *pattern) {
    helio_keeper_source *source;
    const int error =
        helio_keeper_make_source(helio_wildcard_look(pattern->wildcard)->name, &source);
    if (error) {
        return error;
    }
    source->pattern = pattern;
    source->found = helio_wildcard_take(pattern->wildcard);
    source->receiver = source->found->receiver;
    helio_keeper_enter_source(keeper, source);
    keeper->changes++;
    return 0;
}

int helio_keeper_adopt(helio_keeper *keeper) {
    helio_keeper_pattern *pattern;
    int error = 0;
    while (!error && (pattern = with_found(keeper))) {
        error = adopt(keeper, pattern);
    }
    return error;
}

uint64_t helio_keeper_changes(const helio_keeper *keeper) {
    return keeper->changes;
}

void helio_keeper_each_found(const helio_keeper *keeper, void *context,
                             void (*show)(void *context, const char *endpoint, const char *topic)) {
    for (const helio_keeper_source *source = keeper->sources; source; source = source->next) {
        if (source->pattern) {
            show(context, source->pattern->endpoint, source->topic);
        }
    }
}

void helio_keeper_wait_found(helio_keeper *keeper, int64_t timeout_ns) {
    const bool is_only = !keeper->patterns->next;
    helio_wildcard_wait(keeper->patterns->wildcard,
                        is_only || timeout_ns < LOOK_NS ? timeout_ns : LOOK_NS);
}

uint64_t helio_keeper_refused_topics(const helio_keeper *keeper) {
    uint64_t refused = 0;
    for (const helio_keeper_pattern *one = keeper->patterns; one; one = one->next) {
        refused += helio_wildcard_refused(one->wildcard);
    }
    return refused;
}

/* ---- giving up ---- */

/* No stream has its topic, and everything it received is in the files. */
static bool is_unused(const helio_keeper_source *source) {
    return !source->topics && source->at == source->count &&
           helio_receive_queue_is_empty(&source->receiver->queue) &&
           !helio_receiver_is_matched(source->receiver);
}

void helio_keeper_tend_patterns(helio_keeper *keeper, int64_t now_ns) {
    for (helio_keeper_source **at = &keeper->sources; *at;) {
        helio_keeper_source *source = *at;
        const bool may_end = source->pattern && is_unused(source);
        if (!may_end || source->unmatched_ns == 0) {
            source->unmatched_ns = may_end ? now_ns : 0;
        }
        if (!may_end || now_ns - source->unmatched_ns < GIVE_UP_NS) {
            at = &source->next;
            continue;
        }
        *at = source->next;
        if (keeper->waiting == source) {
            keeper->waiting = keeper->sources;
        }
        helio_wildcard_forget(source->pattern->wildcard, source->found);
        helio_keeper_free_source(source);
        keeper->counts.topics--;
        keeper->changes++;
    }
}

void helio_keeper_end_patterns(helio_keeper *keeper) {
    for (helio_keeper_pattern *pattern; (pattern = keeper->patterns);) {
        keeper->patterns = pattern->next;
        helio_wildcard_destroy(pattern->wildcard);
        free(pattern->endpoint);
        free(pattern);
    }
}
