/* Claims of a stream's packets that one packet alone cannot prove (docs/adr/0028-belief.md).
 *
 * A leap: data or an SPM's lead more than HELIO_RX_LEAP packets beyond everything shown before.  It
 * is believed when a second packet, with another number, is at most a window from it.  Data that
 * leaps is held aside in between, so genuine data need not be sent again.
 *
 * An SPM whose number is further than HELIO_RX_SPM_LEAP from the newest, ahead or behind, is
 * believed when another one follows it closely.  Until then the SPMs near the newest still count.
 *
 * A reset (RST) counts when a second one follows, because a source sends it three times, or when
 * nothing else comes for HELIO_RX_RESET_NS.  An SPM without it refutes it.
 *
 * An end (FIN) before data that has come is ignored, and data beyond it refutes it. */
#ifndef HELIO_RECEIVE_DOUBT_H
#define HELIO_RECEIVE_DOUBT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/moment.h"
#include "window/rxw.h"
#include "wire/pgm.h"

typedef struct helio_rx_stream helio_rx_stream;

enum {
    HELIO_RX_LEAP = 256,      /* packets */
    HELIO_RX_SPM_LEAP = 1024, /* SPMs */
};

#define HELIO_RX_LEAP_NS (100 * HELIO_MILLISECOND) /* how long it waits for a second one */
#define HELIO_RX_RESET_NS (20 * HELIO_MILLISECOND)

/* A data packet to be accepted. */
typedef struct helio_rx_arrival {
    uint64_t sequence;
    uint64_t trail; /* of the source, as announced */
    size_t bytes;   /* of the whole packet */
    helio_rxw_packet packet;
} helio_rx_arrival;

typedef struct helio_rx_doubt {
    uint64_t leap; /* where the newest one leads; 0: none */
    int64_t leap_until_ns;
    uint8_t *data; /* of `aside`; allocated when first needed */
    bool has_aside;
    helio_rx_arrival aside; /* the data that leapt */
    bool has_spm;           /* one with a number far from the newest */
    uint32_t spm_sequence;
    bool has_reset;
    uint32_t reset_sequence; /* of its SPM */
    uint64_t reset_newest;   /* packet known then: newer data refutes it */
    int64_t reset_ns;        /* when it came */
    uint64_t end_newest;     /* newest possible packet, when the stream has an end */
} helio_rx_doubt;

void helio_rx_doubt_fini(helio_rx_stream *stream);

/* Whether data, more than HELIO_RX_LEAP newer than the newest, is accepted now.  Then *before is
 * data held aside that comes before it, or NULL. */
bool helio_rx_believes_data(helio_rx_stream *stream, const helio_rx_arrival *arrival,
                            const helio_rx_arrival **before, int64_t now_ns);
/* Whether an SPM's lead is believed; *before as above. */
bool helio_rx_believes_lead(helio_rx_stream *stream, uint64_t lead, const helio_rx_arrival **before,
                            int64_t now_ns);
/* Whether an SPM is the newest. */
bool helio_rx_believes_spm(helio_rx_stream *stream, uint32_t sequence);
/* Whether the reset of the newest SPM counts now. */
bool helio_rx_believes_reset(helio_rx_stream *stream, uint32_t spm_sequence, int64_t now_ns);

/* Gives up claims that have waited too long.  True: a reset counts now, because nothing came
 * since. */
bool helio_rx_doubt_poll(helio_rx_stream *stream, int64_t now_ns);
int64_t helio_rx_doubt_deadline_ns(const helio_rx_doubt *doubt);

#endif
