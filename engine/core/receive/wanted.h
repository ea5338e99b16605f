/* Whether a subscription may want a packet, before any state of its stream exists. */
#ifndef HELIO_RECEIVE_WANTED_H
#define HELIO_RECEIVE_WANTED_H

#include "receive/subscriptions.h"
#include "wire/pgm.h"

typedef enum helio_wanted {
    HELIO_WANTED,         /* it is of a topic subscribed to, or names one */
    HELIO_WANTED_PERHAPS, /* a fragment that does not name its topic */
    HELIO_WANTED_BY_NONE,
    HELIO_WANTED_FOREIGN, /* not a batch */
    HELIO_WANTED_DAMAGED,
} helio_wanted;

/* Classifies data by its headers alone. */
helio_wanted helio_subscriptions_look_at(const helio_subscriptions *subscriptions,
                                         const helio_pgm_packet *packet);

/* Tells the finders of the topics that the packet announces.  Returns whether it is a whole
 * announcement. */
bool helio_subscriptions_announce_all(const helio_subscriptions *subscriptions,
                                      const helio_pgm_packet *packet, helio_moment moment);

#endif
