/* A designated local repairer (DLR, RFC 3208): it receives streams like any receiver, keeps their
 * packets for a while, and repairs the losses of receivers near it, so that these do not ask the
 * source.
 *
 * It confirms each NAK (NCF) to the receiver that sent it and answers with the stream's own packets
 * (RDATA).  A packet that it misses itself, and has requested of the source or will request, it
 * confirms too: the receiver waits, and gets the packet when it arrives here.  Requests for packets
 * that it does not keep any more, or never had, it does not confirm, so the receiver soon asks the
 * source.
 *
 * Repairs are limited: all together to `rate` bytes per second, and those to one host to a quarter
 * of that, because anybody can send NAKs with a forged address.  Hosts share 256 buckets by a hash
 * of their address.  Repairs that wait are bounded in number, receivers and time.
 *
 * All memory but the index of the packets is allocated by create.  It knows no sockets, threads or
 * clocks. */
#ifndef HELIO_REPAIR_DLR_H
#define HELIO_REPAIR_DLR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/outlet.h"
#include "wire/pgm.h"

typedef struct helio_dlr helio_dlr;

typedef struct helio_dlr_config {
    uint64_t bytes; /* memory for packets */
    int64_t age_ns; /* packets are kept for at most as long */
    uint64_t rate;  /* bytes of repairs per second; 0: no limit */
    uint64_t seed;  /* of the hash of hosts */
} helio_dlr_config;

/* The sequence numbers that may still arrive here: from the next in order on. */
typedef struct helio_dlr_hope {
    uint32_t first;
    uint32_t last;
} helio_dlr_hope;

/* What became of the sequence numbers of a NAK. */
typedef struct helio_dlr_answer {
    uint32_t repaired; /* sent at once */
    uint32_t awaited;  /* they are sent when they arrive */
    uint32_t declined; /* not kept and not expected */
    uint32_t limited;  /* not sent because of the limits */
} helio_dlr_answer;

/* 0 or NOMEM.  Packets leave by `outlet`. */
int helio_dlr_create(const helio_dlr_config *config, helio_outlet outlet, helio_dlr **out);
/* Accepts NULL. */
void helio_dlr_destroy(helio_dlr *dlr);

/* A data packet of a stream arrived, valid and from its source: keeps it, and sends it to those
 * that wait for it.  Returns the number of repairs sent. */
uint32_t helio_dlr_on_data(helio_dlr *dlr, const helio_pgm_packet *packet, const void *datagram,
                           size_t bytes, int64_t now_ns);
/* A valid NAK for a stream that this repairer receives. */
helio_dlr_answer helio_dlr_on_nak(helio_dlr *dlr, const helio_pgm_packet *nak,
                                  const helio_address *from, const helio_dlr_hope *hope,
                                  int64_t now_ns);

/* Packets and bytes kept now, of all streams; drops those that are too old. */
void helio_dlr_measure(helio_dlr *dlr, int64_t now_ns, uint64_t *packets, uint64_t *bytes);

#endif
