/* A datagram that was read: by a driver, for a machine. */
#ifndef HELIO_BASE_DATAGRAM_H
#define HELIO_BASE_DATAGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/address.h"

/* `data` is valid until the next receive on the channel. */
typedef struct helio_datagram {
    const uint8_t *data;
    size_t length;
    helio_address source;
    int64_t kernel_ns; /* wall clock when the kernel took it in, 0 unless asked for */
} helio_datagram;

#endif
