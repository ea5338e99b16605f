#include "io/shm_ring.h"

#include "base/bits.h"

enum { PAIR = 2 * HELIO_SHM_LINE };

/* Slots are an odd number of line pairs apart: at a power of two, the first lines of all slots
 * would meet in one set of the cache. */
static size_t stride_of(uint32_t packet_bytes) {
    const size_t bytes = (size_t)helio_round_up(sizeof(helio_shm_slot) + packet_bytes, PAIR);
    return bytes / PAIR % 2 ? bytes : bytes + PAIR;
}

helio_shm_shape helio_shm_shape_of(uint32_t slots, uint32_t packet_bytes) {
    helio_shm_shape shape = {
        .slots = slots,
        .packet_bytes = packet_bytes,
        .stride = stride_of(packet_bytes),
        .feedback_offset = (size_t)helio_round_up(sizeof(helio_shm_ring), HELIO_SHM_PAGE),
    };
    shape.slots_offset = (size_t)helio_round_up(
        shape.feedback_offset + (size_t)HELIO_SHM_READERS * HELIO_SHM_FEEDBACK_SLOTS *
                                    (sizeof(helio_shm_slot) + HELIO_SHM_FEEDBACK_BYTES),
        HELIO_SHM_PAGE);
    shape.bytes = (size_t)helio_round_up(shape.slots_offset + slots * shape.stride, HELIO_SHM_PAGE);
    return shape;
}

helio_shm_checked helio_shm_check(const void *mapping, size_t bytes, helio_shm_shape *out,
                                  uint32_t *version) {
    helio_shm_geometry geometry;
    if (bytes < sizeof(helio_shm_ring)) {
        return HELIO_SHM_INVALID;
    }
    memcpy(&geometry, mapping, sizeof geometry);
    if (geometry.magic == HELIO_SHM_MAGIC && geometry.version != HELIO_SHM_VERSION) {
        *version = geometry.version;
        return HELIO_SHM_OTHER_VERSION;
    }
    if (geometry.magic != HELIO_SHM_MAGIC || geometry.byte_order != HELIO_SHM_BYTE_ORDER ||
        geometry.bytes != bytes || !helio_is_power_of_two(geometry.slots) ||
        geometry.slots < HELIO_SHM_SLOTS_MIN || geometry.slots > HELIO_SHM_SLOTS_MAX ||
        geometry.packet_bytes == 0 || geometry.packet_bytes > HELIO_SHM_PACKET_MAX ||
        geometry.readers != HELIO_SHM_READERS ||
        geometry.feedback_slots != HELIO_SHM_FEEDBACK_SLOTS ||
        geometry.feedback_bytes != HELIO_SHM_FEEDBACK_BYTES) {
        return HELIO_SHM_INVALID;
    }
    *out = helio_shm_shape_of(geometry.slots, geometry.packet_bytes);
    return out->bytes == bytes ? HELIO_SHM_VALID : HELIO_SHM_INVALID;
}
