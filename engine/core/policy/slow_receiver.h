/* Slow receivers: who is one, what is done about it, and when that is over.
 *
 * At the end of each control interval the engine sees the interval and the views, and says what is
 * to be done.  Each receiver is watched for itself (watch.h).  It is in trouble when a symptom is
 * over its threshold for three windows in a row, the dwell time at least; it is out of it when all
 * are below half their thresholds for ten.  One bad window is never a reason.
 *
 * What is done climbs a ladder, one rung per dwell time while the trouble lasts, up to the highest
 * that is allowed:
 *
 *     notify - pace - shed - suspend NAKs - suspend - expel
 *
 * PACE, the source sending no faster than the receiver takes, is for coordinated receivers
 * (`waits`); uncoordinated ones skip it, and so are isolated one by one.  SHED and SUSPEND_NAKS are
 * skipped for who asks for nothing.  A suspension ends when its time is over, earlier when the
 * receiver has been well for three windows.  EXPEL is for who was suspended several times within an
 * hour.
 *
 * Networks fail too, and then receivers are not to blame.  So a receiver is warned and isolated
 * only
 *   - when it is clearly worse than the others (group.h; of three receivers or more),
 *   - after eight times the dwell, when it came into trouble together with many,
 *   - while no more than a share of the receivers is isolated; of several one may always be, and
 *     who is alone never is, for there is nobody to protect from it,
 *   - for loss alone only where there are enough others to compare with: two are warned,
 *   - for silence never: it is only told of,
 *   - and expelled only when nobody else can speak in its name (HELIO_VIEW_PINNED).
 *
 * Where it may not act (observe, advise) it decides as if it did.  What people did by hand it
 * leaves alone.  A pure function of configuration, intervals and views: no clock, no statistics, no
 * memory taken after init, so a log of its inputs gives its decisions again. */
#ifndef HELIO_POLICY_SLOW_RECEIVER_H
#define HELIO_POLICY_SLOW_RECEIVER_H

#include <heliograph/actions.h>

#include "policy/group.h"

enum { HELIO_SLOW_SUSPENSIONS_MAX = 8 };

typedef struct helio_slow_receivers_config {
    helio_action highest; /* NOTIFY to EXPEL */
    bool waits;           /* PACE is taken; needs `highest` of PACE or above */
    bool enforces;        /* what is decided is done, and views show it */
    double loss;          /* thresholds: share of packets lost */
    double naks;          /* asked for per second; 0: none */
    double lag;           /* share of the history */
    double buffer;        /* share of the buffers */
    int64_t dwell_ns;
    int64_t lead_ns; /* told of a loss so long before it */
    int64_t suspend_ns;
    uint32_t expel_after; /* suspensions within an hour; at most SUSPENSIONS_MAX */
    int64_t expel_ns;
    double share;      /* of the receivers, isolated at once */
    uint64_t rate_min; /* bytes per second: PACE goes no lower; 0: a sixteenth of the rate before */
    uint32_t capacity; /* most entries */
} helio_slow_receivers_config;

typedef struct helio_slow_decision {
    helio_receiver_index index; /* HELIO_RECEIVER_NONE: it is about the group */
    helio_action action;
    helio_symptom symptom; /* the evidence: which, */
    double value;          /* its value, */
    double threshold;      /* what it is compared with, */
    int64_t lasted_ns;     /* and for how long it has been so */
    int64_t duration_ns;   /* of what is done; FORECAST: until the loss */
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
    uint32_t above;   /* ... over a threshold */
    uint32_t apart;   /* ... that, and clearly worse than the others' */
    uint32_t below;   /* ... below half of all */
    uint32_t well;    /* ... good enough for a suspension to end */
    uint32_t near;    /* ... with a loss in sight */
    int64_t since_ns; /* over a threshold since; 0: it is not */
    int64_t apart_ns; /* and clearly worse than the others since; 0: it is not */
    bool is_shared;   /* it became so together with many */
    bool has_closed;  /* a window ended in this interval */
    bool was_told;    /* FORECAST */
    bool was_spared;
    helio_symptom worst; /* of the last window, in relation to the thresholds */
    helio_action rung;
    int64_t acted_ns; /* the rung was taken or said again */
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
    uint64_t again; /* sequences asked for again in this interval, all together */
    /* pacing */
    uint64_t ceiling;     /* bytes per second that PACE wants not to be passed; 0: none */
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
