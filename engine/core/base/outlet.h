/* Where the protocol's packets go: the door between a state machine and a driver. */
#ifndef HELIO_BASE_OUTLET_H
#define HELIO_BASE_OUTLET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/address.h"

enum {
    /* A driver that keeps pointers to stable packets must have handed all of them to the system by
     * the time it is given this many packets more (it may flush by itself at any moment). */
    HELIO_OUTLET_HOLD = 128
};

typedef struct helio_outlet {
    void *context;
    /* Sends one PGM packet.  `to` NULL: the stream's destination or destinations.
     *
     * `stable`: the memory stays valid, and a whole packet with the same sequence number, until the
     * driver's flush or HELIO_OUTLET_HOLD packets later, whichever comes first; the driver need not
     * copy.  Otherwise the memory is the caller's again when the call returns.
     *
     * Returns 0, or a negative HELIO_ERR_* when the packet was not taken; the driver counts that
     * (send_errors), and the protocol treats the packet as lost in the network. */
    int (*send)(void *context, const helio_address *to, const void *packet, size_t length,
                bool stable);
} helio_outlet;

#endif
