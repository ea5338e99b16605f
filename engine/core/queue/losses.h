/* Losses that the application has not fetched from a receiver yet, oldest first: a ring that grows
 * up to a limit and then drops the oldest.  (No loss goes unnoticed: each is an event and is
 * counted in messages_lost.) */
#ifndef HELIO_QUEUE_LOSSES_H
#define HELIO_QUEUE_LOSSES_H

#include <stdbool.h>
#include <stddef.h>

#include <heliograph/heliograph.h>

enum { HELIO_LOSSES_MAX = 65536 };

typedef struct helio_losses {
    helio_loss *ring;
    size_t capacity, first, count;
} helio_losses;

void helio_losses_fini(helio_losses *losses);
void helio_losses_push(helio_losses *losses, const helio_loss *loss);
bool helio_losses_pop(helio_losses *losses, helio_loss *out);

#endif
