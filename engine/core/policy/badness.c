#include "policy/badness.h"

#include <stdbool.h>

#define KEEP (1 - 1.0 / 32) /* of what was remembered, from one look to the next */
#define GIVEN_UP_WEIGHT 10

enum { SHARES = 5 };

/* Graver things count for more than all of what is less grave. */
enum {
    GRAVE_RECOVERING = 1,
    GRAVE_FALLING = 2,
    GRAVE_STOPPED = 3,
    GRAVE_STALLED = 4,
    GRAVE_SUSPENDED = 8,
    GRAVE_EXPELLED = 16,
};

static bool is_another(const helio_badness *badness, const helio_receiver_view *view) {
    return badness->receiver != view->receiver || badness->incarnation != view->incarnation;
}

/* A counter that restarts with a receiver's next life has no past. */
static double since(uint64_t now, uint64_t *before) {
    const uint64_t by = now > *before ? now - *before : 0;
    *before = now;
    return (double)by;
}

static double kept(double sum, double more) {
    return KEEP * sum + more;
}

void helio_badness_feed(helio_badness *badness, const helio_badness_look *look) {
    const helio_receiver_view *view = look->view;
    if (is_another(badness, view)) {
        *badness = (helio_badness){
            .receiver = view->receiver,
            .incarnation = view->incarnation,
            .lost = view->lost,
            .unrecoverable = view->unrecoverable,
            .naks = view->naks,
            .lead = look->lead,
            .blame_ns = look->blame_ns,
        };
        return;
    }
    /* A receiver that reports gives its loss; of one that does not, only requests are known. */
    const double lost = since(view->lost, &badness->lost), naks = since(view->naks, &badness->naks);
    const double missed = view->flags & HELIO_VIEW_REPORTS ? lost : naks;
    const double behind =
        look->history_packets ? (double)look->lag_packets / (double)look->history_packets : 0;
    const double blamed = look->length_ns > 0
                              ? since(look->blame_ns, &badness->blame_ns) / (double)look->length_ns
                              : 0;
    badness->missed = kept(badness->missed, missed);
    badness->given_up =
        kept(badness->given_up, since(view->unrecoverable, &badness->unrecoverable));
    badness->sent = kept(badness->sent, since(look->lead, &badness->lead));
    badness->lag = kept(badness->lag, behind < 1 ? behind : 1);
    badness->buffer = kept(badness->buffer, (double)look->buffer_fill / UINT16_MAX);
    badness->blame = kept(badness->blame, blamed < 1 ? blamed : 1);
    badness->looks = kept(badness->looks, 1);
}

static double share(double part, double of) {
    const double found = of > 0 ? part / of : 0;
    return found < 1 ? found : 1;
}

static int gravity(const helio_receiver_view *view, helio_behaviour class) {
    int grave = 0;
    switch (class) {
    case HELIO_BEHAVIOUR_RECOVERING:
        grave = GRAVE_RECOVERING;
        break;
    case HELIO_BEHAVIOUR_FALLING_BEHIND:
        grave = GRAVE_FALLING;
        break;
    case HELIO_BEHAVIOUR_STOPPED:
        grave = GRAVE_STOPPED;
        break;
    case HELIO_BEHAVIOUR_STALLED:
        grave = GRAVE_STALLED;
        break;
    case HELIO_BEHAVIOUR_OK:
    case HELIO_BEHAVIOUR_UNKNOWN:
        break;
    }
    if (view->flags & HELIO_VIEW_SUSPENDED) {
        grave += GRAVE_SUSPENDED;
    }
    if (view->flags & HELIO_VIEW_EXPELLED) {
        grave += GRAVE_EXPELLED;
    }
    return grave;
}

double helio_badness_of(const helio_badness *badness, const helio_receiver_view *view,
                        helio_behaviour class) {
    if (view->flags & HELIO_VIEW_LEFT) { /* it left: no trouble */
        return 0;
    }
    if (is_another(badness, view)) {
        return gravity(view, class);
    }
    const double shares = share(badness->missed, badness->sent) +
                          share(GIVEN_UP_WEIGHT * badness->given_up, badness->sent) +
                          share(badness->lag, badness->looks) +
                          share(badness->buffer, badness->looks) +
                          share(badness->blame, badness->looks);
    return gravity(view, class) + shares / (SHARES + 1e-9); /* never the next whole number */
}
