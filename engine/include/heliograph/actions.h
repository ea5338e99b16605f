/* Generated from engine/catalogue/actions.toml by generate.py; do not edit. */
/* clang-format off */
#ifndef HELIO_ACTIONS_H
#define HELIO_ACTIONS_H

/* What the source of a stream decides about a receiver, and does to it.  The number is the same everywhere:
 * docs/events.md. */
typedef enum helio_action {
    HELIO_ACTION_NONE = 0,
    HELIO_ACTION_NOTIFY = 1, /* The receiver is warned. */
    HELIO_ACTION_PACE = 2, /* The source sends no faster than the receiver takes. */
    HELIO_ACTION_SHED = 3, /* The source repairs less for the receiver. */
    HELIO_ACTION_SUSPEND_NAKS = 4, /* The source repairs nothing for the receiver, which sends no NAKs. */
    HELIO_ACTION_SUSPEND = 5, /* As suspend_naks, and the source does not wait for the receiver. */
    HELIO_ACTION_EXPEL = 6, /* The source ignores the receiver, which leaves the stream. */
    HELIO_ACTION_RECOVER = 7, /* The receiver is no longer slow. If its repairs are shed, resume follows. */
    HELIO_ACTION_RESUME = 8, /* Ends shed, suspend_naks and suspend; to all receivers: ends cut_off. */
    HELIO_ACTION_READMIT = 9, /* Ends expel. */
    HELIO_ACTION_FORECAST = 10, /* Only reported: data that the receiver needs is about to leave the history. */
    HELIO_ACTION_SPARE = 11, /* Only reported: the receiver is slow and is not isolated; the event says why. */
    HELIO_ACTION_NETWORK = 12, /* Only reported: many receivers became slow together, so the network is the cause. */
    HELIO_ACTION_CUT_OFF = 13, /* No receiver of the stream may send NAKs. */
    HELIO_ACTIONS_END
} helio_action;

/* X(NAME, name, number, notice, help); notice 1: the source notifies the receiver of it */
#define HELIO_ACTIONS(X) \
    X(NOTIFY, notify, 1, 1, "The receiver is warned.") \
    X(PACE, pace, 2, 0, "The source sends no faster than the receiver takes.") \
    X(SHED, shed, 3, 1, "The source repairs less for the receiver.") \
    X(SUSPEND_NAKS, suspend_naks, 4, 1, "The source repairs nothing for the receiver, which sends no NAKs.") \
    X(SUSPEND, suspend, 5, 1, "As suspend_naks, and the source does not wait for the receiver.") \
    X(EXPEL, expel, 6, 1, "The source ignores the receiver, which leaves the stream.") \
    X(RECOVER, recover, 7, 0, "The receiver is no longer slow. If its repairs are shed, resume follows.") \
    X(RESUME, resume, 8, 1, "Ends shed, suspend_naks and suspend; to all receivers: ends cut_off.") \
    X(READMIT, readmit, 9, 1, "Ends expel.") \
    X(FORECAST, forecast, 10, 0, "Only reported: data that the receiver needs is about to leave the history.") \
    X(SPARE, spare, 11, 0, "Only reported: the receiver is slow and is not isolated; the event says why.") \
    X(NETWORK, network, 12, 0, "Only reported: many receivers became slow together, so the network is the cause.") \
    X(CUT_OFF, cut_off, 13, 1, "No receiver of the stream may send NAKs.")

#endif
