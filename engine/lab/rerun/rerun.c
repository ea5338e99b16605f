#include "rerun/rerun.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heliograph/heliograph.h>

#include "options/options.h"
#include "runtime/tx_lane.h"

/* Decisions of one interval. */
typedef struct side_list {
    helio_rerun_side *sides;
    size_t count;
    size_t capacity;
} side_list;

typedef struct rerun {
    helio_decision_reader reader;
    const char *options;
    bool (*tell)(void *context, const helio_rerun_decision *decision);
    void *context;
    helio_rerun_summary *summary;
    bool is_ended; /* `tell` has had enough */

    bool is_configured;
    const helio_rate_policy *forced; /* instead of those recorded; NULL: none is */
    bool has_own_rate;               /* the ceiling is not the recorded one */
    helio_rate_config rate;
    const helio_rate_policy *policy;
    void *state;
    helio_rate_decision decision;
    helio_rate_decision before; /* the one told last */
    helio_tx_slow slow;

    int64_t now_ns, wall_ns; /* of the interval the lists are of */
    side_list recorded;
    side_list made;
} rerun;

/* ---- decisions of an interval ---- */

static helio_rerun_side *add(side_list *list) {
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity ? 2 * list->capacity : 16;
        helio_rerun_side *sides = realloc(list->sides, capacity * sizeof *sides);
        if (!sides) {
            return NULL;
        }
        list->sides = sides;
        list->capacity = capacity;
    }
    helio_rerun_side *side = &list->sides[list->count++];
    *side = (helio_rerun_side){.is_there = true};
    return side;
}

/* Cut at the same place on both sides. */
static void say_why(helio_rerun_side *side, const char *why) {
    const size_t length = why ? strnlen(why, sizeof side->why - 1) : 0;
    memcpy(side->why, why ? why : "", length);
    side->why[length] = 0;
}

static int record(rerun *r, const helio_decision_record *from) {
    helio_rerun_side *side = add(&r->recorded);
    if (!side) {
        return HELIO_ERR_NOMEM;
    }
    side->kind = from->kind;
    side->count =
        from->count < HELIO_DECISION_NUMBERS_OF_ONE ? from->count : HELIO_DECISION_NUMBERS_OF_ONE;
    memcpy(side->numbers, from->numbers, side->count * sizeof side->numbers[0]);
    say_why(side, from->text);
    return 0;
}

bool helio_rerun_agrees(const helio_rerun_decision *decision) {
    const helio_rerun_side *a = &decision->recorded, *b = &decision->made;
    return a->is_there && b->is_there && a->kind == b->kind && a->count == b->count &&
           memcmp(a->numbers, b->numbers, a->count * sizeof a->numbers[0]) == 0 &&
           strcmp(a->why, b->why) == 0;
}

/* Both lists of an interval are complete. */
static void settle(rerun *r) {
    helio_rerun_summary *summary = r->summary;
    for (size_t i = 0; i < r->recorded.count || i < r->made.count; i++) {
        helio_rerun_decision decision = {.now_ns = r->now_ns, .wall_ns = r->wall_ns};
        if (i < r->recorded.count) {
            decision.recorded = r->recorded.sides[i];
        }
        if (i < r->made.count) {
            decision.made = r->made.sides[i];
        }
        summary->recorded += decision.recorded.is_there;
        summary->made += decision.made.is_there;
        summary->reproduced += helio_rerun_agrees(&decision);
        if (!r->is_ended && !r->tell(r->context, &decision)) {
            r->is_ended = true;
        }
    }
    r->recorded.count = r->made.count = 0;
}

/* ---- policies ---- */

static int take_policy(rerun *r, const helio_rate_policy *policy, uint64_t rate, int64_t now_ns) {
    void *state = calloc(1, policy->state_bytes + r->rate.entries * policy->receiver_bytes);
    if (!state) {
        return HELIO_ERR_NOMEM;
    }
    free(r->state);
    r->state = state;
    r->policy = policy;
    policy->init(state, &r->rate, rate, now_ns);
    r->decision = helio_rate_begin(policy, &r->rate, rate);
    snprintf(r->summary->policy, sizeof r->summary->policy, "%s", policy->name);
    return 0;
}

static int configure(rerun *r, const helio_decision_record *record) {
    helio_transmitter_options options;
    int error = helio_options_init(&options, HELIO_ON_TRANSMITTER);
    if (error) {
        return error;
    }
    error = helio_options_read(&options, HELIO_ON_TRANSMITTER, record->text, false);
    const helio_option_rate_policy policy = options.rate_policy;
    const uint64_t rate = options.rate;
    if (!error) {
        error = helio_options_read(&options, HELIO_ON_TRANSMITTER, r->options, false);
    }
    if (!error) {
        error = helio_tx_lane_check_policies(&options);
    }
    if (!error && record->count >= 2 && record->numbers[1] <= r->reader.entries) {
        const helio_tx_stream_config config = helio_tx_lane_config(&options);
        r->rate = config.govern.rate;
        r->rate.packet_bytes = (uint32_t)record->numbers[0];
        r->rate.entries = (uint32_t)record->numbers[1];
        r->forced =
            options.rate_policy != policy ? helio_rate_policy_at(options.rate_policy) : NULL;
        r->has_own_rate = options.rate != rate;
        helio_tx_slow_fini(&r->slow);
        error = helio_tx_slow_init(&r->slow, &config.slow, r->rate.entries);
        r->is_configured = !error;
    } else if (!error) {
        error = HELIO_DECISION_DAMAGED;
    }
    helio_options_fini(&options, HELIO_ON_TRANSMITTER);
    return error;
}

static int change_policy(rerun *r, const helio_decision_record *record) {
    const helio_rate_policy *policy = helio_rate_policy_named(record->text);
    if (!r->is_configured || !policy || record->count < 3) {
        return HELIO_DECISION_DAMAGED;
    }
    if (!r->has_own_rate) {
        r->rate.rate = record->numbers[1];
    }
    return take_policy(r, r->forced ? r->forced : policy, record->numbers[0],
                       (int64_t)record->numbers[2]);
}

static int make(rerun *r, uint8_t kind, uint32_t count, const char *why, helio_rerun_side **out) {
    *out = add(&r->made);
    if (!*out) {
        return HELIO_ERR_NOMEM;
    }
    (*out)->kind = kind;
    (*out)->count = count;
    say_why(*out, why);
    return 0;
}

static int decide(rerun *r) {
    const helio_interval *interval = &r->reader.interval;
    if (!r->policy) {
        return HELIO_DECISION_DAMAGED;
    }
    r->now_ns = interval->now_ns;
    r->wall_ns = interval->wall_ns;
    r->summary->intervals++;
    helio_rerun_side *side;
    int error = 0;
    r->policy->decide(r->state, interval, r->reader.views, &r->decision);
    if (!helio_decision_is_same_rate(&r->decision, &r->before)) {
        error = make(r, HELIO_DECISION_RATE, HELIO_DECISION_RATE_NUMBERS, r->decision.why, &side);
        if (error) {
            return error;
        }
        helio_decision_of_rate(&r->decision, side->numbers);
        r->before = r->decision;
    }
    if (!r->slow.is_on) {
        return 0;
    }
    helio_slow_receivers *receivers = &r->slow.receivers;
    helio_slow_receivers_decide(receivers, interval, r->reader.views);
    for (uint32_t i = 0; i < receivers->decisions_count && !error; i++) {
        const helio_slow_decision *decision = &receivers->decisions[i];
        error = make(r, HELIO_DECISION_SLOW_RECEIVER, HELIO_DECISION_SLOW_RECEIVER_NUMBERS,
                     decision->why, &side);
        if (!error) {
            helio_decision_of_slow_receiver(decision, side->numbers);
        }
    }
    const helio_storm_decision storm =
        helio_storm_decide(&r->slow.storm, interval, receivers->again);
    if (!error && helio_decision_has_storm(&storm)) {
        error = make(r, HELIO_DECISION_STORM, HELIO_DECISION_STORM_NUMBERS, NULL, &side);
        if (!error) {
            helio_decision_of_storm(&storm, side->numbers);
        }
    }
    return error;
}

/* ---- the log ---- */

static int heed(rerun *r, const helio_decision_record *from) {
    switch (from->kind) {
    case HELIO_DECISION_CONFIG:
        return configure(r, from);
    case HELIO_DECISION_POLICY:
        settle(r);
        return change_policy(r, from);
    case HELIO_DECISION_INTERVAL:
        settle(r);
        return decide(r);
    case HELIO_DECISION_RATE:
    case HELIO_DECISION_SLOW_RECEIVER:
    case HELIO_DECISION_STORM:
        return record(r, from);
    default:
        return 0;
    }
}

int helio_rerun(const void *log, size_t size, const char *options,
                bool (*tell)(void *context, const helio_rerun_decision *decision), void *context,
                helio_rerun_summary *summary) {
    rerun r = {.options = options, .tell = tell, .context = context, .summary = summary};
    *summary = (helio_rerun_summary){0};
    int error = helio_decision_reader_init(&r.reader, log, size);
    if (error) {
        return error;
    }
    memcpy(summary->instance, r.reader.instance, sizeof summary->instance);
    memcpy(summary->stream, r.reader.stream, sizeof summary->stream);
    summary->begun_ns = r.reader.wall_ns;
    helio_decision_record *from = malloc(sizeof *from);
    int more = from ? 1 : HELIO_ERR_NOMEM;
    while (more == 1 && !error && !r.is_ended) {
        more = helio_decision_reader_next(&r.reader, from);
        if (more == 1) {
            error = heed(&r, from);
        }
    }
    /* A log that is full, or of an engine that crashed, may end before the last interval's
     * decisions. */
    if (r.made.count > r.recorded.count) {
        r.made.count = r.recorded.count;
    }
    settle(&r);
    if (!error && more == HELIO_ERR_NOMEM) {
        error = more;
    }
    summary->is_damaged = more == HELIO_DECISION_DAMAGED;
    free(from);
    free(r.recorded.sides);
    free(r.made.sides);
    free(r.state);
    helio_tx_slow_fini(&r.slow);
    helio_decision_reader_fini(&r.reader);
    return error;
}
