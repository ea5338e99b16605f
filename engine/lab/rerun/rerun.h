/* Decisions made again: a decision log's inputs go to the same policies, or to others, and what
 * they decide is held against what was decided.
 *
 * With the recorded options everything must come out the same, to the last bit: policies are
 * functions of what the log has.  With other options it shows what they would have decided on the
 * same inputs; what their decisions would have changed in the inputs it cannot know. */
#ifndef HELIO_LAB_RERUN_H
#define HELIO_LAB_RERUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/decision_reader.h"
#include "policy/decision_record.h"

typedef struct helio_rerun_side {
    bool is_there;
    uint8_t kind; /* HELIO_DECISION_RATE, _SLOW_RECEIVER or _STORM */
    uint32_t count;
    uint64_t numbers[HELIO_DECISION_NUMBERS_OF_ONE];
    char why[96];
} helio_rerun_side;

/* The n-th decision of an interval: as it was, and as it is now; one of both may not be there. */
typedef struct helio_rerun_decision {
    int64_t now_ns; /* end of the interval, monotonic */
    int64_t wall_ns;
    helio_rerun_side recorded;
    helio_rerun_side made;
} helio_rerun_decision;

/* Both say the same. */
bool helio_rerun_agrees(const helio_rerun_decision *decision);

typedef struct helio_rerun_summary {
    char instance[48];
    char stream[40];
    char policy[16];  /* rate policy at the end */
    int64_t begun_ns; /* wall clock */
    uint64_t intervals;
    uint64_t recorded;   /* decisions */
    uint64_t made;       /* decisions */
    uint64_t reproduced; /* of those recorded */
    bool is_damaged;     /* it could not be read to its end */
} helio_rerun_summary;

/* `options`: "name=value&..." over the recorded ones, NULL for none.  `tell` gets each decision, in
 * order, and ends the run by returning false.  0, HELIO_DECISION_DAMAGED (no decision log, or
 * without its beginning), HELIO_ERR_OPTION (helio_error_text says why) or NOMEM. */
int helio_rerun(const void *log, size_t size, const char *options,
                bool (*tell)(void *context, const helio_rerun_decision *decision), void *context,
                helio_rerun_summary *summary);

#endif
