#include "queue/notices.h"

#include <stdlib.h>

void helio_notices_fini(helio_notices *notices) {
    free(notices->ring);
    *notices = (helio_notices){0};
}

void helio_notices_push(helio_notices *notices, const helio_notice *notice) {
    if (!notices->ring) {
        notices->ring = malloc(HELIO_NOTICES_MAX * sizeof *notices->ring);
    }
    if (!notices->ring) {
        return;
    }
    if (notices->count == HELIO_NOTICES_MAX) {
        notices->first = (notices->first + 1) % HELIO_NOTICES_MAX;
        notices->count--;
    }
    notices->ring[(notices->first + notices->count++) % HELIO_NOTICES_MAX] = *notice;
}

bool helio_notices_pop(helio_notices *notices, helio_notice *out) {
    if (!notices->count) {
        return false;
    }
    *out = notices->ring[notices->first];
    notices->first = (notices->first + 1) % HELIO_NOTICES_MAX;
    notices->count--;
    return true;
}
