/* How much trouble a receiver is, as one number that orders the receivers of a stream, or of
 * several.
 *
 * Whole part: what is done to it or how it behaves, the graver the more (see helio_badness_of).
 * Fraction: how much of the trouble there can be it has been lately, the mean of five shares from 0
 * to 1, none of which has a threshold:
 *
 *     loss     of the packets sent, those it missed at first
 *     lag      of the packets the history keeps, the most it told to be behind
 *     buffer   of its buffers, the most that was full
 *     given up of the packets sent, those it will never have, tenfold
 *     blame    of the time, what data waited for it
 *
 * "Lately" is a mean whose weights halve in about three seconds of looks, so one bad moment does
 * not stay, and one good moment does not hide what went before.  A new life of a receiver starts
 * from zero.
 *
 * A pure function of what it is given. */
#ifndef HELIO_POLICY_BADNESS_H
#define HELIO_POLICY_BADNESS_H

#include <stdint.h>

#include "policy/watch.h"
#include "receivers/receiver_view.h"

/* What is remembered of one receiver; all 0 at first. */
typedef struct helio_badness {
    uint64_t receiver; /* whom it is about */
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
    uint64_t lag_packets;     /* the most it told to be behind since the look before */
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
