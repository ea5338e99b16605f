#include "store/crc32c.h"

#include <stdbool.h>
#include <string.h>

/* The table of the reflected polynomial 0x82F63B78, four bits at a time. */
static const uint32_t nibbles[16] = {
    0x00000000, 0x105EC76F, 0x20BD8EDE, 0x30E349B1, 0x417B1DBC, 0x5125DAD3, 0x61C69362, 0x7198540D,
    0x82F63B78, 0x92A8FC17, 0xA24BB5A6, 0xB21572C9, 0xC38D26C4, 0xD3D3E1AB, 0xE330A81A, 0xF36E6F75,
};

uint32_t helio_crc32c_portable(const void *data, size_t bytes) {
    const uint8_t *at = data;
    uint32_t value = UINT32_MAX;
    for (size_t i = 0; i < bytes; i++) {
        value ^= at[i];
        value = nibbles[value & 15] ^ value >> 4;
        value = nibbles[value & 15] ^ value >> 4;
    }
    return ~value;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_instruction(const void *data, size_t bytes) {
    const uint8_t *at = data;
    uint64_t value = UINT32_MAX;
    for (; bytes >= 8; at += 8, bytes -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        value = __builtin_ia32_crc32di(value, word);
    }
    uint32_t rest = (uint32_t)value;
    for (; bytes > 0; at++, bytes--) {
        rest = __builtin_ia32_crc32qi(rest, *at);
    }
    return ~rest;
}

uint32_t helio_crc32c(const void *data, size_t bytes) {
    return __builtin_cpu_supports("sse4.2") ? by_instruction(data, bytes)
                                            : helio_crc32c_portable(data, bytes);
}
#else
uint32_t helio_crc32c(const void *data, size_t bytes) {
    return helio_crc32c_portable(data, bytes);
}
#endif
