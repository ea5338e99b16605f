/* How much a receiver loses, from counts of its packets, and how sure that is.
 *
 * Two memories forget at their own pace: `recent`, of a few hundred packets, sees a path that has
 * become too narrow at once; `longer`, of some thousands, tells a loss a little above a threshold
 * from one a little below, which a few hundred packets cannot.
 *
 * The share of packets lost is never compared with a threshold itself: of a hundred receivers that
 * lose 0.5 % each, the unluckiest has lost 2 % of its last few hundred packets.  What is compared
 * is a lower bound (Wilson's score interval): what it loses at least, but for a chance that shrinks
 * with z.  With z growing with the number of receivers (helio_loss_z) the highest bound of many is
 * exceeded by chance as seldom as that of one. */
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

/* For the highest bound of so many receivers. */
double helio_loss_z(uint32_t receivers);

/* So many packets more, and so many of them lost. */
void helio_loss_add(helio_loss *loss, uint64_t lost, uint64_t packets);
/* Both 0 until there are a hundred packets. */
helio_loss_bound helio_loss_judge(const helio_loss *loss, double z);

#endif
