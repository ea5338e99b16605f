/* Streams that were met and are not followed yet: of each, where it would begin if it were.
 *
 * An SPM of an unknown stream proves nothing, and anybody can forge one for any number of streams.  So
 * it makes a record of some 150 bytes and no more: no window, no statistics, no word to its source.
 * The stream is followed when it may have something for this receiver:
 *
 *   FOLLOW            data of a topic subscribed to came, or its source waits for this receiver: for
 *                     acknowledgements, or for credit
 *   FOLLOW_PERHAPS    data came that follows what did not come, or a fragment of one knows not what; an
 *                     SPM says that more was sent than was seen, or offers history that is wanted
 *   FOLLOW_IF_ROOM    its source asks for reports, or polls
 *
 * The first puts out another stream that has proven nothing where there is no room, the second one
 * that had its time to prove something, the third none (receive/unproven.h).
 *
 * Data that comes in order and that nobody wants only moves the beginning on.  A stream that is
 * followed later has therefore missed nothing since it was met.
 *
 * Records are in sets, by address of the source: an address has at most a set's records
 * (HELIO_RX_MET_OF_ADDRESS), and all addresses together HELIO_RX_MET_SETS times as many.  In a full
 * set the record heard of least recently gives way.  A set has memory while it has records.
 *
 * It knows nothing of sockets, threads or clocks; callers pass times. */
#ifndef HELIO_RECEIVE_MET_H
#define HELIO_RECEIVE_MET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/account.h"
#include "base/address.h"
#include "base/clock.h"
#include "stats/stats.h"
#include "wire/pgm.h"

enum { HELIO_RX_MET_SETS = 64, HELIO_RX_MET_OF_ADDRESS = 256 };

typedef struct helio_rx_shared helio_rx_shared;

/* Where a stream begins for this receiver. */
typedef struct helio_rx_start {
    uint64_t first;   /* the first packet wanted */
    uint64_t joined;  /* packets up to here were sent before it was met */
    bool is_complete; /* it was met before its first packet */
    bool is_pacing;   /* history is asked for piece by piece */
    bool is_waiting;  /* an SPM has yet to say where it begins */
} helio_rx_start;

/* What matters of an SPM to a stream that is followed later: where its source hears, and what it
 * wants to hear. */
typedef struct helio_rx_met_spm {
    helio_address from, path;
    uint32_t sequence, trail, lead;
    uint32_t options;
    helio_pgm_reporting reporting;
    uint8_t report_fields;
} helio_rx_met_spm;

typedef struct helio_rx_met {
    helio_address source;
    helio_rx_start start;
    int64_t heard_ns;
    helio_rx_met_spm spm;   /* the newest, when has_spm */
    uint32_t unwanted_apdu; /* the APDU that starts here is wanted by nobody */
    bool has_spm;
    bool is_unwanted;
} helio_rx_met;

/* Records of the addresses that share it. */
typedef struct helio_rx_met_set {
    uint64_t keys[HELIO_RX_MET_OF_ADDRESS]; /* of their TSIs; apart, as they are searched */
    helio_rx_met met[HELIO_RX_MET_OF_ADDRESS];
    uint32_t count;
} helio_rx_met_set;

typedef struct helio_rx_mets {
    helio_rx_met_set *sets[HELIO_RX_MET_SETS]; /* NULL: none needed yet */
    uint64_t seed;                             /* nobody outside knows who shares a set */
} helio_rx_mets;

typedef enum helio_rx_follow_it {
    HELIO_RX_FOLLOW_NOT,
    HELIO_RX_FOLLOW_IF_ROOM,
    HELIO_RX_FOLLOW_PERHAPS,
    HELIO_RX_FOLLOW,
} helio_rx_follow_it;

void helio_rx_mets_init(helio_rx_mets *mets, uint64_t seed);
void helio_rx_mets_fini(helio_rx_mets *mets, helio_rx_shared *shared);

/* Where a stream begins that is followed from this packet on, an SPM or ODATA.  `from_live`: with
 * what comes next, whatever the configuration says. */
helio_rx_start helio_rx_start_of(const helio_rx_shared *shared, const helio_pgm_packet *packet,
                                 bool from_live);

/* A packet, SPM, ODATA or POLL, of a stream that is not followed: whether it is to be now; *out is
 * its record then.  A stream that is not has a record afterwards, if there was memory.  Counts what is
 * no data of ours. */
helio_rx_follow_it helio_rx_mets_on_packet(helio_rx_mets *mets, helio_rx_shared *shared,
                                           const helio_pgm_packet *packet,
                                           const helio_address *from, helio_clock clock,
                                           helio_rx_met *out);
/* The newest SPM of a stream that was met, as far as it matters now. */
helio_pgm_packet helio_rx_met_packet(const helio_rx_met *met, const helio_tsi *tsi);
/* It is followed now, or over. */
void helio_rx_mets_forget(helio_rx_mets *mets, helio_rx_shared *shared, uint64_t key,
                          const helio_address *source);
/* It is not followed, or no longer, and would begin or go on at `start`.  A record that is there stays
 * as it is. */
void helio_rx_mets_remember(helio_rx_mets *mets, helio_rx_shared *shared, uint64_t key,
                            const helio_address *source, const helio_rx_start *start,
                            helio_clock clock);
/* A subscription came: for it no stream is complete that has passed something. */
void helio_rx_mets_on_subscribe(helio_rx_mets *mets);

/* Spreads an address, without its port, over 64 bits. */
uint64_t helio_rx_host_key(const helio_address *address, uint64_t seed);

#endif
