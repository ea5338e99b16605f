/* Notices of the source that this receiver obeys (docs/wire.md 1.3).
 *
 * A notice is for this receiver, by its id, or for all.  It takes effect once, by its serial
 * number; a repetition only sets its end again.  No notice is believed for longer than an hour, and
 * every one ends automatically.  Only newer SPMs from the stream's own source get here.
 *
 *   suspended   the receiver requests nothing; a missing packet is lost when its time has come, or
 *               when a quarter of the window waits for it (passing.c); so it keeps up with new data
 *   cut off     the same for all receivers of the stream, and the time does not count
 *   expelled    the stream is not tracked; the endpoint remembers that (endpoint_parts.h)
 *
 * Each notice is reported by an event and to the application. */
#ifndef HELIO_RECEIVE_NOTICES_H
#define HELIO_RECEIVE_NOTICES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/moment.h"
#include "wire/pgm.h"

struct helio_rx_stream;
struct helio_rx_shared;

/* Notices of a kind follow each other by serial number. */
typedef enum helio_rx_notice_kind {
    HELIO_RX_WARNING,
    HELIO_RX_STANDING,
    HELIO_RX_FOR_ALL,
    HELIO_RX_NOTICE_KINDS,
} helio_rx_notice_kind;

typedef struct helio_rx_notices {
    bool has_heard[HELIO_RX_NOTICE_KINDS];
    uint32_t serial[HELIO_RX_NOTICE_KINDS];
    int64_t suspended_until_ns; /* 0: it is not */
    int64_t cut_off_until_ns;   /* 0: it is not */
    int64_t expelled_until_ns;  /* 0: it is not */
} helio_rx_notices;

/* A newer SPM came. */
void helio_rx_on_notices(struct helio_rx_stream *stream, const helio_pgm_packet *spm,
                         helio_moment moment);
/* Ends notices whose time is over. */
void helio_rx_notices_poll(struct helio_rx_stream *stream, helio_moment moment);
int64_t helio_rx_notices_next_deadline_ns(const helio_rx_notices *notices);
/* The receiver tracks the stream again, after it was expelled from it. */
void helio_rx_tell_readmitted(struct helio_rx_stream *stream, helio_moment moment);

/* For a stream that is not tracked: 1 when the packet says that this receiver is expelled from it
 * (*until_ns: how long), -1 when it says that this is over, 0 when it says neither. */
int helio_rx_expelled_by(const struct helio_rx_shared *shared, const helio_pgm_packet *packet,
                         int64_t now_ns, int64_t *until_ns);

/* Until when the receiver must not request repairs; 0: it may. */
static inline int64_t helio_rx_held_until(const helio_rx_notices *notices) {
    return notices->suspended_until_ns > notices->cut_off_until_ns ? notices->suspended_until_ns
                                                                   : notices->cut_off_until_ns;
}

#endif
