/* How much trouble a receiver causes, as one number that orders the receivers of one stream or of
 * several.
 *
 * Whole part: the action in force or the class; a graver one is higher (see helio_badness_of).
 * Fraction: the recent trouble, the mean of five shares from 0 to 1, none of which has a
 * threshold:
 *
 *     loss     of the packets sent, those it missed at first
 *     lag      of the packets in the history, the largest lag it reported
 *     buffer   of its buffers, the largest fill
 *     given up of the packets sent, ten times those it will never have
 *     blame    of the time, the part in which data waited for it
 *
 * The means have weights that halve in about three seconds of looks: one bad moment does not stay,
 * and one good moment does not hide the time before.  A new incarnation of a receiver starts from
 * zero.
 *
 * A pure function of its inputs. */
#ifndef HELIO_POLICY_BADNESS_H
#define HELIO_POLICY_BADNESS_H

#include <stdint.h>

#include "policy/watch.h"
#include "receivers/receiver_view.h"

/* What is remembered of one receiver; all 0 at first. */
typedef struct helio_badness {
    uint64_t receiver; /* the receiver */
    uint64_t incarnation;
    uint64_t lost, unrecoverable, naks, lead, blame_ns; /* cumulative, as of the last look */
    /* decaying sums */
    double missed;
    double given_up;
    double sent;
    double lag;
    double buffer;
    double blame;
    double looks;
} helio_badness;

/* One look at a receiver. */
typedef struct helio_badness_look {
    const helio_receiver_view *view;
    uint64_t lead;            /* newest packet sent */
    uint64_t lag_packets;     /* largest lag it reported since the look before */
    uint32_t buffer_fill;     /* the most its buffers were full since then, in 65535ths */
    uint64_t history_packets; /* that the history keeps */
    uint64_t blame_ns;        /* ever */
    int64_t length_ns;        /* since the look before */
} helio_badness_look;

void helio_badness_feed(helio_badness *badness, const helio_badness_look *look);

/* The number: 0 is no trouble at all.  `class`: UNKNOWN where nobody judges. */
double helio_badness_of(const helio_badness *badness, const helio_receiver_view *view,
                        helio_behaviour class);

#endif
