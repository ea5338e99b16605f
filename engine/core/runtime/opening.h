/* Common part of creating a transmitter or a receiver: reads and checks endpoint, topic and
 * options. */
#ifndef HELIO_RUNTIME_OPENING_H
#define HELIO_RUNTIME_OPENING_H

#include "options/endpoint.h"
#include "options/options.h"

typedef struct helio_opening {
    helio_endpoint endpoint;
    const char *topic;
    helio_owner on;
    helio_end_options options;
} helio_opening;

/* Reads all three for an object of `on`; release with helio_opening_fini.  The endpoint's query may
 * have options of the other end, so that one text serves both.  Errors: ENDPOINT,
 * ADDRESS, OPTION, TOPIC, NOMEM. */
int helio_opening_init(helio_opening *opening, const char *endpoint, const char *topic,
                       const char *options, helio_owner on);
void helio_opening_fini(helio_opening *opening);

#endif
