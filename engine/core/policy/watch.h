/* One receiver as the slow-receiver engine watches it: reports and counts become symptoms, window
 * by window.
 *
 * A window lasts at least a third of the dwell time, and until 200 packets were seen (or five
 * times as long, on a stream with few packets).  If the receiver reports, the window also lasts
 * until a report came.  Nothing is smoothed over windows: a burst spoils only the one or two
 * windows it falls into, and three bad windows in a row are three independent pieces of evidence.
 *
 * The class says how the receiver behaves, not how bad it is: a receiver far behind that catches
 * up is RECOVERING; one that makes no progress while data flows is STALLED, however little it is
 * behind.  The class changes when two windows agree.
 *
 * A pure function of its inputs. */
#ifndef HELIO_POLICY_WATCH_H
#define HELIO_POLICY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/forecast.h"
#include "policy/interval.h"

typedef enum helio_symptom {
    HELIO_SYMPTOM_NONE,
    HELIO_SYMPTOM_LOSS,   /* share of its packets it missed at first */
    HELIO_SYMPTOM_NAKS,   /* first requests per second */
    HELIO_SYMPTOM_LAG,    /* packets it is behind, as a share of the history */
    HELIO_SYMPTOM_BUFFER, /* how full its buffers are */
    HELIO_SYMPTOM_SILENCE /* it reports, and no report came while data flowed */
} helio_symptom;

enum { HELIO_SYMPTOMS = HELIO_SYMPTOM_SILENCE + 1 };

typedef enum helio_behaviour {
    HELIO_BEHAVIOUR_UNKNOWN,        /* no window is over yet */
    HELIO_BEHAVIOUR_OK,             /* it keeps up */
    HELIO_BEHAVIOUR_FALLING_BEHIND, /* it is behind and does not catch up */
    HELIO_BEHAVIOUR_STALLED,        /* no progress while data flows, and it reports */
    HELIO_BEHAVIOUR_STOPPED,        /* it is silent while data flows, or has left */
    HELIO_BEHAVIOUR_RECOVERING,     /* it is behind and catches up */
} helio_behaviour;

/* Whether packets that the receiver needs leave the history (docs/adr/0043-certain-loss.md). */
typedef enum helio_outlook {
    /* Not heard from, or a forecast that no second window has confirmed. */
    HELIO_OUTLOOK_UNKNOWN,
    HELIO_OUTLOOK_NONE,
    /* In `left_ns`, at the current speeds. */
    HELIO_OUTLOOK_AHEAD,
    /* They have left it. */
    HELIO_OUTLOOK_PAST,
} helio_outlook;

/* What a window showed. */
typedef struct helio_symptoms {
    double value[HELIO_SYMPTOMS]; /* by helio_symptom; NONE is not used */
    double loss_least;            /* of the loss: what chance alone does not explain */
    double repeats;               /* repeated requests as a share of its requests */
    double late;                  /* requests for packets that had left the history */
    int64_t length_ns;            /* of the window */
    int64_t until_ns;             /* its end; 0: there was none yet */
    bool has_position;            /* the receiver reports lag and speed */
    bool asked;                   /* for repairs */
    helio_speed speed;            /* recent, over some windows */
    int64_t forecast_ns;          /* until what it needs leaves the history; HELIO_NEVER */
} helio_symptoms;

typedef struct helio_watch {
    uint64_t receiver; /* the receiver; another one in its entry resets the watch */
    uint64_t incarnation;
    bool is_begun;
    /* cumulative counts as last seen */
    uint64_t received, lost, unrecoverable, naks, naks_again, naks_late;
    /* the window under way */
    int64_t opened_ns;
    uint64_t window_came, window_lost, window_naks, window_again, window_late, window_sent;
    uint64_t again; /* repeated requests in the last interval */
    bool has_news;
    bool is_sighted;
    bool is_waited_for;      /* data flowed, or waited to */
    helio_sighting sighting; /* the last one */
    /* between windows */
    int64_t silent_ns; /* data flowed for this long since it was heard */
    int64_t news_ns;   /* when it was heard last */
    int64_t period_ns; /* smoothed time between two times it was heard; 0: not known */
    helio_track track;
    helio_behaviour seen; /* by the last window alone */
    helio_behaviour class;
    helio_symptoms symptoms; /* of the last window */
    /* Time since when it has its class; 0: unknown. */
    int64_t class_ns;
    /* Windows in a row with a loss ahead. */
    uint32_t ahead;
    helio_outlook outlook;
    /* AHEAD: until the loss. */
    int64_t left_ns;
    /* Packets certainly lost, and those in the last interval. */
    uint64_t gone;
    uint64_t gone_lately;
    /* Reported at the last sighting: packets beyond its position that it has room for. */
    uint64_t room;
    /* End of the last interval. */
    int64_t fed_ns;
    /* No packet before this is counted again. */
    uint64_t gone_to;
} helio_watch;

typedef struct helio_watch_config {
    int64_t window_ns; /* least length */
    double lag;        /* share of the history that is too much */
    double buffer;     /* the same of its buffers */
} helio_watch_config;

/* What is the same for all receivers in an interval. */
typedef struct helio_watch_scene {
    const helio_interval *interval;
    /* The end of the interval before; between the two may be a time when nothing was decided. */
    uint64_t lead_before;
    int64_t before_ns;
    uint64_t history_packets; /* that the history keeps as things are */
} helio_watch_scene;

/* Takes in an interval.  True when a window is over: `symptoms` and `class` are those of it. */
bool helio_watch_feed(helio_watch *watch, const helio_watch_config *config,
                      const helio_watch_scene *scene, const helio_receiver_view *view);

/* The name of a class or symptom, for people. */
const char *helio_behaviour_name(helio_behaviour class);
const char *helio_symptom_name(helio_symptom symptom);

#endif
