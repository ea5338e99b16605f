/* CRC-32C (Castagnoli), as in RFC 3720 B.4. */
#ifndef HELIO_STORE_CRC32C_H
#define HELIO_STORE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t helio_crc32c(const void *data, size_t bytes);
/* The same value without the processor's instruction. */
uint32_t helio_crc32c_portable(const void *data, size_t bytes);

#endif
