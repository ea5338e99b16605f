/* Whether a subscription may want a packet, before anything is kept of its stream. */
#ifndef HELIO_TOPIC_WANTED_H
#define HELIO_TOPIC_WANTED_H

#include "topic/delivery.h"
#include "topic/subscriptions.h"
#include "wire/pgm.h"

/* What a stream's delivery would make of it, at first sight: TAKEN (a subscription may want it, or it
 * cannot be told), FILTERED, FOREIGN or DAMAGED. */
helio_delivery_result helio_subscriptions_look_at(const helio_subscriptions *subscriptions,
                                                  const helio_pgm_packet *packet);

#endif
