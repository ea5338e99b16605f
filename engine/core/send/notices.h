/* What a source has to tell its receivers of what it does to them: the notices on its SPMs
 * (docs/wire.md 1.3).
 *
 * A notice is said five times, 100 ms apart, and while it is in force with every other SPM as well,
 * so that a receiver that lost it hears it later; when there are more than fit, they take turns.
 * It tells how much longer it is in force.  A receiver has one notice of what stands at it and one
 * warning; a newer one takes the place of the older, with a greater serial number. */
#ifndef HELIO_SEND_NOTICES_H
#define HELIO_SEND_NOTICES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/moment.h"
#include "wire/pgm.h"

enum { HELIO_TX_NOTICES_MAX = 128 };

typedef struct helio_tx_notice {
    uint64_t receiver; /* 0: all */
    uint64_t incarnation;
    uint32_t serial;
    uint8_t action;  /* helio_action */
    uint8_t reason;  /* HELIO_PGM_REASON_*, BY_HAND included */
    uint8_t repeats; /* to be said so often yet, each at due_ns */
    int64_t due_ns;
    int64_t until_ns; /* in force until then; 0: it is something that happened */
    int64_t keep_ns;  /* said with other SPMs until then */
    int64_t said_ns;
    char text[HELIO_PGM_NOTICE_TEXT_MAX + 1];
} helio_tx_notice;

typedef struct helio_tx_notices {
    helio_tx_notice *all; /* NULL before the first */
    uint32_t count;
    uint32_t serial;
    int64_t due_ns; /* no notice is to be said before; HELIO_NEVER: none is */
} helio_tx_notices;

void helio_tx_notices_init(helio_tx_notices *notices);
void helio_tx_notices_fini(helio_tx_notices *notices);

/* A notice is to be said: receiver, incarnation, action, reason, until_ns and text are taken from
 * it. When there are too many the one least needed is not said any more. Without memory nothing is
 * said. */
void helio_tx_notices_put(helio_tx_notices *notices, const helio_tx_notice *notice, int64_t now_ns);
/* The notices the next SPM is to carry, at most HELIO_PGM_NOTICES_MAX; they count as said.  Their
 * texts stay where they are until the next call of put or take. */
uint32_t helio_tx_notices_take(helio_tx_notices *notices, helio_pgm_notice *out, int64_t now_ns);

/* The code of a reason in words, which begins with one of loss, naks, lag, buffer, storm. */
uint8_t helio_tx_reason_of(const char *why);

#endif
