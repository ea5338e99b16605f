/* Transport session identifier: which stream a packet belongs to.  6 bytes chosen by the source,
 * and its port. */
#ifndef HELIO_BASE_TSI_H
#define HELIO_BASE_TSI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

enum {
    HELIO_GSI_BYTES = 6,
    HELIO_TSI_TEXT = 19 /* "a1b2c3d4e5f6:65535" and its NUL */
};

typedef struct helio_tsi {
    uint8_t gsi[HELIO_GSI_BYTES];
    uint16_t port; /* host order */
} helio_tsi;

_Static_assert(sizeof(helio_tsi) == 8, "a TSI is compared as one word");

/* The TSI as one number, for comparing and hashing. */
static inline uint64_t helio_tsi_key(const helio_tsi *tsi) {
    uint64_t key;
    memcpy(&key, tsi, sizeof key);
    return key;
}

static inline bool helio_tsi_equal(const helio_tsi *a, const helio_tsi *b) {
    return helio_tsi_key(a) == helio_tsi_key(b);
}

/* Which of `shares` (at least 1) the stream belongs to, the same on every host: the upper half of the
 * FNV-1a hash of GSI and port, in network order, modulo `shares`. */
static inline uint32_t helio_tsi_share(const helio_tsi *tsi, uint32_t shares) {
    uint8_t bytes[HELIO_GSI_BYTES + 2];
    memcpy(bytes, tsi->gsi, HELIO_GSI_BYTES);
    bytes[HELIO_GSI_BYTES] = (uint8_t)(tsi->port >> 8);
    bytes[HELIO_GSI_BYTES + 1] = (uint8_t)tsi->port;
    return (uint32_t)(helio_hash_fnv1a(bytes, sizeof bytes) >> 32) % shares;
}

/* Writes "gsi:port", hex and decimal, and returns `text`. */
static inline const char *helio_tsi_format(const helio_tsi *tsi, char text[HELIO_TSI_TEXT]) {
    snprintf(text, HELIO_TSI_TEXT, "%02x%02x%02x%02x%02x%02x:%u", tsi->gsi[0], tsi->gsi[1],
             tsi->gsi[2], tsi->gsi[3], tsi->gsi[4], tsi->gsi[5], (unsigned)tsi->port);
    return text;
}

#endif
