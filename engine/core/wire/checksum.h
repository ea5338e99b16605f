/* The Internet checksum (16-bit one's complement sum) in parts.
 *
 * A partial sum is kept folded to 32 bits in the machine's byte order: the sum of swapped words is
 * the swapped sum, so bytes are swapped nowhere.  Parts can be added when each but the last has an
 * even length. */
#ifndef HELIO_WIRE_CHECKSUM_H
#define HELIO_WIRE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Partial sum of bytes; a last odd byte is padded with zero. */
uint32_t helio_checksum_part(const void *data, size_t length);
/* The same sum without regard for what the processor has; the values are equal once folded. */
uint32_t helio_checksum_part_portable(const void *data, size_t length);

/* Adds two partial sums. */
static inline uint32_t helio_checksum_add(uint32_t a, uint32_t b) {
    const uint64_t sum = (uint64_t)a + b;
    return (uint32_t)sum + (uint32_t)(sum >> 32);
}

static inline uint16_t helio_checksum_fold(uint32_t part) {
    part = (part & 0xFFFF) + (part >> 16);
    return (uint16_t)((part & 0xFFFF) + (part >> 16));
}

/* The value for the packet's field, to be stored in the machine's byte order; never 0. */
static inline uint16_t helio_checksum_finish(uint32_t part) {
    const uint16_t sum = (uint16_t)~helio_checksum_fold(part);
    return sum ? sum : 0xFFFF;
}

#endif
