/* Streams that are discovered and not tracked: where each would begin.
 *
 * An SPM of an unknown stream proves nothing, and anybody can forge one for any number of streams.
 * It therefore makes a record of about 150 bytes and nothing else: no window, no statistics, no
 * feedback to its source.  The endpoint tracks a stream that may have something for this receiver:
 *
 *   TRACK            data of a subscribed topic came, or its source waits for this receiver: for
 *                    acknowledgements, or for credit
 *   TRACK_PERHAPS    data came that follows missing packets, or a fragment of an unknown batch; or
 *                    an SPM says that more was sent than came, or offers history that is wanted
 *   TRACK_IF_ROOM    its source asks for reports, or polls
 *
 * Where there is no room, the first evicts another unproven stream, the second evicts one that had
 * its time to prove itself, the third evicts none (unproven.h).
 *
 * Data that comes in order and that no subscription wants only moves the beginning forward.  A
 * stream that is tracked later has therefore missed nothing since it was discovered.
 *
 * Records are in sets, by address of the source.  An address has at most one set's records
 * (HELIO_RX_DISCOVERY_OF_ADDRESS); all addresses together have HELIO_RX_DISCOVERY_SETS times as
 * many.  In a full set the record heard least recently gives way.  A set has memory while it has
 * records.
 *
 * It knows nothing of sockets, threads or clocks; callers pass times. */
#ifndef HELIO_RECEIVE_DISCOVERY_H
#define HELIO_RECEIVE_DISCOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/account.h"
#include "base/address.h"
#include "base/moment.h"
#include "stats/stats.h"
#include "wire/pgm.h"

enum { HELIO_RX_DISCOVERY_SETS = 64, HELIO_RX_DISCOVERY_OF_ADDRESS = 256 };

typedef struct helio_rx_shared helio_rx_shared;

/* Where a stream begins for this receiver. */
typedef struct helio_rx_start {
    uint64_t first;   /* the first packet wanted */
    uint64_t joined;  /* packets up to here were sent before it was discovered */
    bool is_complete; /* it was discovered before its first packet */
    bool is_pacing;   /* history is requested piece by piece */
    bool is_waiting;  /* the beginning is not known until an SPM comes */
} helio_rx_start;

/* The part of an SPM that a stream needs when it is tracked later. */
typedef struct helio_rx_discovered_spm {
    helio_address from, path;
    uint32_t sequence, trail, lead;
    uint32_t options;
    helio_pgm_reporting reporting;
    uint8_t report_fields;
} helio_rx_discovered_spm;

typedef struct helio_rx_discovered {
    helio_address source;
    helio_rx_start start;
    int64_t heard_ns;
    helio_rx_discovered_spm spm; /* the newest, when has_spm */
    uint32_t unwanted_apdu;      /* the APDU that starts here is wanted by nobody */
    bool has_spm;
    bool is_unwanted;
} helio_rx_discovered;

/* The records of all addresses that share the set. */
typedef struct helio_rx_discovered_set {
    uint64_t keys[HELIO_RX_DISCOVERY_OF_ADDRESS]; /* of their TSIs; apart, as they are searched */
    helio_rx_discovered record[HELIO_RX_DISCOVERY_OF_ADDRESS];
    uint32_t count;
} helio_rx_discovered_set;

typedef struct helio_rx_discovery {
    helio_rx_discovered_set *sets[HELIO_RX_DISCOVERY_SETS]; /* NULL: none needed yet */
    uint64_t seed; /* nobody outside knows who shares a set */
} helio_rx_discovery;

typedef enum helio_rx_verdict {
    HELIO_RX_TRACK_NOT,
    HELIO_RX_TRACK_IF_ROOM,
    HELIO_RX_TRACK_PERHAPS,
    HELIO_RX_TRACK,
} helio_rx_verdict;

void helio_rx_discovery_init(helio_rx_discovery *discovery, uint64_t seed);
void helio_rx_discovery_fini(helio_rx_discovery *discovery, helio_rx_shared *shared);

/* Where a stream begins that is tracked from this packet on, an SPM or ODATA.  `from_live`: it
 * begins with the next packet, whatever the configuration says. */
helio_rx_start helio_rx_start_of(const helio_rx_shared *shared, const helio_pgm_packet *packet,
                                 bool from_live);

/* A packet (SPM, ODATA or POLL) of a stream that is not tracked.  Returns whether the stream is to
 * be tracked now; then *out is its record.  Otherwise it has a record afterwards, if memory
 * sufficed.  Counts foreign and damaged data. */
helio_rx_verdict helio_rx_discovery_on_packet(helio_rx_discovery *discovery,
                                              helio_rx_shared *shared,
                                              const helio_pgm_packet *packet,
                                              const helio_address *from, helio_moment moment,
                                              helio_rx_discovered *out);
/* The newest SPM of a discovered stream, rebuilt from its record. */
helio_pgm_packet helio_rx_discovered_packet(const helio_rx_discovered *record,
                                            const helio_tsi *tsi);
/* The stream is tracked now, or has ended. */
void helio_rx_discovery_forget(helio_rx_discovery *discovery, helio_rx_shared *shared, uint64_t key,
                               const helio_address *source);
/* The stream is not tracked, or no longer, and would begin or continue at `start`.  An existing
 * record stays as it is. */
void helio_rx_discovery_remember(helio_rx_discovery *discovery, helio_rx_shared *shared,
                                 uint64_t key, const helio_address *source,
                                 const helio_rx_start *start, helio_moment moment);
/* A subscription was added: for it, a stream that has passed something is not complete. */
void helio_rx_discovery_on_subscribe(helio_rx_discovery *discovery);

/* Spreads an address, without its port, over 64 bits. */
uint64_t helio_rx_host_key(const helio_address *address, uint64_t seed);

#endif
