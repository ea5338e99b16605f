/* Usual values among the receivers of a stream: for each symptom the median and the median
 * absolute deviation.  Loss that all receivers have is the network's; a receiver is slow only when
 * it is clearly worse than the others.
 *
 * The median does not change as long as more than half of the receivers are well, however bad the
 * rest are. */
#ifndef HELIO_POLICY_GROUP_H
#define HELIO_POLICY_GROUP_H

#include "policy/watch.h"

enum { HELIO_GROUP_LEAST = 3 }; /* fewer receivers have no usual */

typedef struct helio_group {
    uint32_t members;
    double median[HELIO_SYMPTOMS];
    double deviation[HELIO_SYMPTOMS]; /* median absolute deviation */
} helio_group;

/* The median of `count` numbers, which are put into another order; 0 when there are none.  Of an
 * even count the lower of the two in the middle. */
double helio_median(double *values, uint32_t count);

/* Takes the values of a symptom over the members, whose order it changes. */
void helio_group_set(helio_group *group, helio_symptom symptom, double *values, uint32_t count);

/* The value is far outside what is usual.  In a group too small to have a usual: true. */
bool helio_group_is_apart(const helio_group *group, helio_symptom symptom, double value);

#endif
