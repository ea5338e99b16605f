/* The level of detail while the engine runs: of the whole instance, and of chosen objects by rules
 * (docs/segment.md 4).
 *
 * A rule is a selector (shell patterns), a level and an end.  An object's level is that of the
 * newest rule that fits it, else the instance's; rules raise and lower alike, and fit objects that
 * are opened later too.  Every rule ends by itself, on the monotonic clock, so a clock that is set
 * neither ends nor keeps one.  The table is small and bounded; the same selector again takes its
 * own rule's place.
 *
 * An object's level decides helio_stats_object.histogram, which is NULL for those that are off, so
 * the counting code checks nothing else.  A change costs one look at each object, at once;
 * histograms that are missing then come one by one (histograms.c).
 *
 * Each rule in force is an object of the scope `detail`, so that readers see it and its end. */
#ifndef HELIO_STATS_LEVELS_H
#define HELIO_STATS_LEVELS_H

#include "stats/stats.h"

enum {
    HELIO_LEVEL_HIGHEST = 3,
    HELIO_LEVEL_RULES_MAX = 16,      /* in force at once */
    HELIO_LEVEL_PATTERN_BYTES = 128, /* of one pattern, its end included */
    HELIO_LEVEL_TEXT_BYTES = 3 * (HELIO_LEVEL_PATTERN_BYTES + 12), /* of a selector, to be read */
};

/* Which objects are meant: all patterns that are given (not NULL, not "") must fit.
 *   topic     transmitters and receivers of topics called so
 *   stream    everything of the streams of this name: streams, transmitters, receivers
 *   receiver  receivers of a source by name, id or address; of a receiving instance, by its name or the address its
 *             requests come from, its streams and receivers
 * None given: the instance, and with it every object that no rule fits. */
typedef struct helio_level_selector {
    const char *topic, *stream, *receiver;
} helio_level_selector;

/* The result of a change. */
typedef struct helio_level_change {
    int level, before; /* now; and what it was for the selector, or for the instance */
    uint32_t objects;  /* that have the level now because of this rule */
    char text
        [HELIO_LEVEL_TEXT_BYTES]; /* the selector: "topic=PRICES.* stream=..."; "" the instance */
} helio_level_change;

/* Puts a level in force until a moment (monotonic; HELIO_NEVER, for good: the instance only).
 * Returns 0, OPTION (no such level, a pattern too long, too many rules) or STATE (a build that
 * counts nothing).  `out` may be NULL. */
int helio_levels_set(helio_stats *stats, const helio_level_selector *selector, int level,
                     int64_t until_ns, helio_moment moment, helio_level_change *out);

/* Ends a rule early, or gives the instance the level it was started with.  Returns 0 or OPTION
 * (there is no such rule). */
int helio_levels_end(helio_stats *stats, const helio_level_selector *selector, helio_moment moment,
                     helio_level_change *out);

#endif
