/* Notices of sources that the application has not fetched from a receiver yet, oldest first.  When
 * there are too many, the oldest are dropped.  (Each is an event as well.) */
#ifndef HELIO_QUEUE_NOTICES_H
#define HELIO_QUEUE_NOTICES_H

#include <stdbool.h>
#include <stddef.h>

#include <heliograph/heliograph.h>

enum { HELIO_NOTICES_MAX = 256 };

typedef struct helio_notices {
    helio_notice *ring; /* NULL before the first */
    size_t first, count;
} helio_notices;

void helio_notices_fini(helio_notices *notices);
/* Without memory it is forgotten. */
void helio_notices_push(helio_notices *notices, const helio_notice *notice);
bool helio_notices_pop(helio_notices *notices, helio_notice *out);

#endif
