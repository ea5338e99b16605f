/* Notices: the source notifies receivers of its actions, on its SPMs (docs/wire.md 1.3).
 *
 * A notice is sent five times, 100 ms apart.  While its action is in force it is also on the other
 * SPMs, so a receiver that lost it gets it later.  When there are more than fit, they take turns.  A
 * notice has the time left.  A receiver has one notice of an action and one warning; a newer one
 * replaces the older one, with a greater serial number. */
#ifndef HELIO_SEND_NOTICES_H
#define HELIO_SEND_NOTICES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/moment.h"
#include "wire/pgm.h"

enum { HELIO_TX_NOTICES_MAX = 128 };

typedef struct helio_tx_notice {
    /* 0: all receivers. */
    uint64_t receiver;
    uint64_t incarnation;
    uint32_t serial;
    /* helio_action */
    uint8_t action;
    /* HELIO_PGM_REASON_*, with BY_HAND. */
    uint8_t reason;
    /* Times that it is still to be sent; the next is at due_ns. */
    uint8_t repeats;
    int64_t due_ns;
    /* The action is in force until then; 0: it happens once. */
    int64_t until_ns;
    /* Sent with other SPMs until then. */
    int64_t keep_ns;
    /* When it was sent last. */
    int64_t said_ns;
    char text[HELIO_PGM_NOTICE_TEXT_MAX + 1];
} helio_tx_notice;

typedef struct helio_tx_notices {
    /* NULL before the first. */
    helio_tx_notice *all;
    uint32_t count;
    uint32_t serial;
    /* No notice is due before; HELIO_NEVER: none is. */
    int64_t due_ns;
} helio_tx_notices;

void helio_tx_notices_init(helio_tx_notices *notices);
void helio_tx_notices_fini(helio_tx_notices *notices);

/* Adds a notice: receiver, incarnation, action, reason, until_ns and text are taken from it.  When
 * there are too many, the one least needed is dropped.  Without memory none is sent. */
void helio_tx_notices_put(helio_tx_notices *notices, const helio_tx_notice *notice, int64_t now_ns);
/* The notices for the next SPM, at most HELIO_PGM_NOTICES_MAX; they count as sent.  Their texts are
 * valid until the next call of put or take. */
uint32_t helio_tx_notices_take(helio_tx_notices *notices, helio_pgm_notice *out, int64_t now_ns);

/* The code of a reason in words that begins with loss, naks, lag, buffer or storm. */
uint8_t helio_tx_reason_of(const char *why);

#endif
