/* How much a receiver loses, from counts of its packets, and how certain that is.
 *
 * Two memories decay at their own pace.  `recent`, of a few hundred packets, detects at once a
 * path that has become too narrow.  `longer`, of some thousands, separates a loss slightly above a
 * threshold from one slightly below, which a few hundred packets cannot.
 *
 * The share of packets lost itself is never compared with a threshold: of a hundred receivers that
 * lose 0.5 % each, the unluckiest has lost 2 % of its last few hundred packets.  A lower bound
 * (Wilson's score interval) is compared instead: the receiver loses at least that share, except
 * with a probability that shrinks with z.  z grows with the number of receivers (helio_loss_z), so
 * the highest bound of many exceeds a threshold by chance as rarely as that of one. */
#ifndef HELIO_POLICY_LOSS_H
#define HELIO_POLICY_LOSS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct helio_loss_counts {
    double lost;
    double packets; /* lost ones included */
} helio_loss_counts;

typedef struct helio_loss {
    helio_loss_counts recent;
    helio_loss_counts longer;
} helio_loss;

typedef struct helio_loss_bound {
    double at_least; /* share of packets lost, lower bound */
    double share;    /* the share itself, of the memory that gave the bound */
} helio_loss_bound;

/* For the highest bound of `receivers` receivers. */
double helio_loss_z(uint32_t receivers);

/* Adds counts; `packets` includes the lost ones. */
void helio_loss_add(helio_loss *loss, uint64_t lost, uint64_t packets);
/* Both 0 until there are a hundred packets. */
helio_loss_bound helio_loss_judge(const helio_loss *loss, double z);

#endif
