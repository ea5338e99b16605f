/* Slow receivers: detects them, decides the action for each, and decides when the action ends.
 *
 * At the end of each control interval this engine gets the interval and the views of all receivers
 * and returns decisions.  It watches each receiver separately (watch.h).  A receiver is in trouble
 * when a symptom is over its threshold for three windows in a row, at least for the dwell time.
 * The trouble is over when all symptoms are below half their thresholds for ten windows.  One bad
 * window is never a reason.
 *
 * The actions form a ladder.  While the trouble lasts, the engine climbs one rung per dwell time,
 * up to the highest action allowed:
 *
 *     notify - pace - shed - suspend NAKs - suspend - expel
 *
 * PACE limits the source to the speed of the receiver.  It is for coordinated receivers (`waits`);
 * uncoordinated ones skip it and are isolated one by one.  A receiver that requests nothing skips
 * SHED and SUSPEND_NAKS.  A suspension ends after its duration, or earlier when the receiver has
 * been well for three windows.  A receiver suspended several times within an hour is EXPELled.
 *
 * Networks fail too, and then receivers are not to blame.  Therefore:
 *   - a receiver is warned and isolated only when it is clearly worse than the others (group.h; of
 *     three receivers or more);
 *   - a receiver that came into trouble together with many others is acted on after eight times
 *     the dwell time;
 *   - at most a share of the receivers is isolated: of several, one always may be; a single
 *     receiver never is, because there is no other to protect;
 *   - loss alone leads to isolation only with enough others to compare with; with two, they are
 *     warned;
 *   - silence alone leads to a report only;
 *   - a receiver is expelled only when no other host can send in its name (HELIO_VIEW_PINNED).
 *
 * In modes observe and advise it decides as if it enforced.  It does not touch actions that people
 * took by hand.  It is a pure function of configuration, intervals and views: no clock, no
 * statistics, no allocation after init.  A log of its inputs therefore reproduces its decisions. */
#ifndef HELIO_POLICY_SLOW_RECEIVER_H
#define HELIO_POLICY_SLOW_RECEIVER_H

#include <heliograph/actions.h>

#include "policy/group.h"

enum { HELIO_SLOW_SUSPENSIONS_MAX = 8 };

typedef struct helio_slow_receivers_config {
    helio_action highest; /* NOTIFY to EXPEL */
    bool waits;           /* PACE is taken; needs `highest` of PACE or above */
    bool enforces;        /* decisions are applied, and views show it */
    double loss;          /* thresholds: share of packets lost */
    double naks;          /* requests per second; 0: no threshold */
    double lag;           /* share of the history */
    double buffer;        /* share of the buffers */
    int64_t dwell_ns;
    int64_t lead_ns; /* lead of the report before a loss */
    int64_t suspend_ns;
    uint32_t expel_after; /* suspensions within an hour; at most SUSPENSIONS_MAX */
    int64_t expel_ns;
    double share;      /* of the receivers, isolated at once */
    uint64_t rate_min; /* bytes per second: PACE goes no lower; 0: a sixteenth of the rate before */
    uint32_t capacity; /* maximum number of entries */
} helio_slow_receivers_config;

typedef struct helio_slow_decision {
    helio_receiver_index index; /* HELIO_RECEIVER_NONE: it is about the group */
    helio_action action;
    helio_symptom symptom; /* the evidence: which, */
    double value;          /* its value, */
    double threshold;      /* what it is compared with, */
    int64_t lasted_ns;     /* and for how long it has been so */
    int64_t duration_ns;   /* of the action; FORECAST: until the loss */
    uint64_t receiver;
    uint64_t rate;   /* PACE: bytes per second */
    const char *why; /* a few words for people; a literal */
} helio_slow_decision;

typedef enum helio_isolation {
    HELIO_ISOLATION_NONE,
    HELIO_ISOLATION_SUSPENDED,
    HELIO_ISOLATION_EXPELLED
} helio_isolation;

typedef struct helio_slow_receiver {
    helio_watch watch;
    /* windows in a row, since the last rung was taken, that were ... */
    uint32_t above;    /* ... over a threshold */
    uint32_t apart;    /* ... that, and clearly worse than the others' */
    uint32_t below;    /* ... below half of all */
    uint32_t well;     /* ... good enough for a suspension to end */
    uint32_t near;     /* ... with a loss in sight */
    int64_t since_ns;  /* over a threshold since; 0: it is not */
    int64_t apart_ns;  /* and clearly worse than the others since; 0: it is not */
    bool is_shared;    /* it became so together with many */
    bool has_closed;   /* a window ended in this interval */
    bool was_reported; /* FORECAST */
    bool was_spared;
    helio_symptom worst; /* of the last window, in relation to the thresholds */
    helio_action rung;
    int64_t acted_ns; /* time the rung was taken or repeated */
    helio_isolation isolation;
    int64_t isolated_until_ns;
    int64_t suspended_ns[HELIO_SLOW_SUSPENSIONS_MAX]; /* ring of when */
    uint32_t suspensions;
} helio_slow_receiver;

typedef struct helio_slow_receivers {
    helio_slow_receivers_config config;
    helio_watch_config watch;
    helio_slow_receiver *receivers; /* by index */
    double *values;                 /* scratch, by index */
    helio_slow_decision *decisions; /* of the last interval, in order */
    uint32_t decisions_count;
    bool has_begun;
    int64_t before_ns; /* end of the interval before */
    uint64_t lead_before;
    uint64_t trail_before;
    int64_t trail_moved_ns; /* when the end of the history moved last; 0: never */
    /* the group as of this interval */
    uint32_t known;    /* receivers that count */
    uint32_t isolated; /* of these */
    uint32_t troubled; /* of those known, over a threshold */
    bool is_troubled;  /* these are many */
    int64_t calm_ns;   /* since when they are few again */
    helio_group group;
    uint64_t again; /* repeated requests in this interval, of all receivers */
    /* pacing */
    uint64_t ceiling;     /* ceiling of PACE, bytes per second; 0: none */
    uint64_t rate_before; /* bytes per second, when pacing began */
    double sent_rate;     /* bytes per second, smoothed */
    double packet_bytes;  /* of a packet, smoothed */
    int64_t raise_due_ns;
} helio_slow_receivers;

/* 0 or NOMEM; free with helio_slow_receivers_fini. */
int helio_slow_receivers_init(helio_slow_receivers *engine,
                              const helio_slow_receivers_config *config);
void helio_slow_receivers_fini(helio_slow_receivers *engine);

/* Decides at the end of an interval; `views` are interval->receivers, by index.  The decisions are
 * in `decisions` until the next call. */
void helio_slow_receivers_decide(helio_slow_receivers *engine, const helio_interval *interval,
                                 const helio_receiver_view *views);

#endif
