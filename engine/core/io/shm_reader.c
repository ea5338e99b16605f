#include "io/shm_reader.h"

enum { TRIES = 8 }; /* of one take, against a writer that keeps coming round */

static uint64_t load(const _Atomic uint64_t *word) {
    return atomic_load_explicit(word, memory_order_acquire);
}

static uint64_t bit_of(const helio_shm_reader *reader) {
    return UINT64_C(1) << reader->place;
}

static helio_shm_reader_place *place_of(const helio_shm_reader *reader) {
    return &reader->ring->readers[reader->place];
}

/* ---- join, leave ---- */

static bool claim_place(helio_shm_reader *reader, uint32_t pid) {
    for (uint32_t i = 0; i < HELIO_SHM_READERS; i++) {
        uint64_t expected = HELIO_SHM_FREE;
        const uint64_t claim = (uint64_t)pid << 8 | HELIO_SHM_CLAIMED;
        if (atomic_compare_exchange_strong_explicit(&reader->ring->readers[i].claim, &expected,
                                                    claim, memory_order_acq_rel,
                                                    memory_order_relaxed)) {
            reader->place = i;
            return true;
        }
    }
    return false;
}

static uint64_t word_at(const helio_shm_reader *reader, uint64_t position) {
    return load(&helio_shm_slot_of(reader->slots, reader->stride, reader->mask, position)->word);
}

/* A ring that was there before is read from now on, a younger one from its beginning, or as far
 * back as is safe. */
static uint64_t first_position(const helio_shm_reader *reader, int64_t since_ns) {
    const uint64_t slots = reader->mask + 1;
    const uint64_t share = helio_shm_share(slots);
    const uint64_t claimed = load(&reader->ring->claimed);
    if (reader->ring->geometry.created_ns >= (uint64_t)since_ns) {
        const uint64_t back = slots - share;
        return claimed > back ? claimed - back : 0;
    }
    uint64_t position = claimed > share ? claimed - share : 0;
    for (uint64_t left = slots; left && helio_shm_ahead(word_at(reader, position), position) == 0;
         left--) {
        position++;
    }
    return position;
}

/* Tells the writer that its list of readers changed; true when it sleeps. */
static bool tell_change(helio_shm_ring *ring) {
    atomic_fetch_add_explicit(&ring->bells.changes, 1, memory_order_seq_cst);
    return atomic_load_explicit(&ring->writer_sleeps, memory_order_seq_cst) != 0;
}

helio_shm_joined helio_shm_reader_join(helio_shm_reader *reader, void *mapping, size_t bytes,
                                       const helio_shm_reader_config *config, bool *wake,
                                       uint32_t *version) {
    helio_shm_shape shape;
    *wake = false;
    const helio_shm_checked checked = helio_shm_check(mapping, bytes, &shape, version);
    if (checked != HELIO_SHM_VALID) {
        return checked == HELIO_SHM_OTHER_VERSION ? HELIO_SHM_FOREIGN : HELIO_SHM_DAMAGED;
    }
    *reader = (helio_shm_reader){
        .ring = mapping,
        .slots = (uint8_t *)mapping + shape.slots_offset,
        .feedback = (uint8_t *)mapping + shape.feedback_offset,
        .mask = shape.slots - 1,
        .stride = shape.stride,
        .packet_bytes = shape.packet_bytes,
        .waits = ((const helio_shm_ring *)mapping)->geometry.waits != 0,
    };
    if (!claim_place(reader, config->process.pid)) {
        return HELIO_SHM_FULL;
    }
    helio_shm_reader_place *place = place_of(reader);
    place->start = config->process.start;
    place->bell = config->bell;
    place->port = config->port;
    reader->position = first_position(reader, config->since_ns);
    helio_shm_reader_show(reader);
    atomic_store_explicit(&place->claim, (uint64_t)config->process.pid << 8 | HELIO_SHM_READING,
                          memory_order_release);
    atomic_fetch_or_explicit(&reader->ring->bells.present, bit_of(reader), memory_order_release);
    *wake = tell_change(reader->ring);
    return HELIO_SHM_JOINED;
}

void helio_shm_reader_leave(helio_shm_reader *reader, bool *wake) {
    helio_shm_reader_rise(reader);
    atomic_fetch_and_explicit(&reader->ring->bells.present, ~bit_of(reader), memory_order_release);
    const uint64_t claim = load(&place_of(reader)->claim);
    atomic_store_explicit(&place_of(reader)->claim, (claim & ~UINT64_C(0xFF)) | HELIO_SHM_LEAVING,
                          memory_order_release);
    *wake = tell_change(reader->ring);
}

bool helio_shm_reader_is_closed(const helio_shm_reader *reader) {
    return load(&reader->ring->writer.state) == HELIO_SHM_CLOSED;
}

/* ---- packets ---- */

/* The writer has come round: passes over what it took back, and a share more, so that it is not
 * overrun again at once.  False: no writer leads there. */
static bool recover(helio_shm_reader *reader) {
    const uint64_t slots = reader->mask + 1;
    const uint64_t next = load(&reader->ring->claimed) - slots + helio_shm_share(slots);
    if ((int64_t)(next - reader->position) <= 0) {
        return false;
    }
    reader->overruns += next - reader->position;
    reader->position = next;
    return true;
}

__attribute__((noinline)) static void read_header(helio_shm_reader *reader) {
    uint8_t header[HELIO_SHM_HEADER];
    helio_shm_copy_out(header, reader->ring->header, sizeof header);
    reader->header = helio_shm_header_of(header);
    reader->has_header = true;
}

/* The first `HELIO_SHM_HEADER` bytes of a short packet of `length`.  They are no more to be trusted
 * than the rest of the packet. */
static inline void put_header(helio_shm_reader *reader, uint8_t *to, size_t length) {
    if (!reader->has_header) {
        read_header(reader);
    }
    helio_put64(to, reader->header.words[0]);
    helio_put64(to + 8, reader->header.words[1] | helio_shm_tsdu_length(length));
}

/* Looks once.  HELIO_SHM_OVERRUN: the writer has come round. */
static inline helio_shm_taken look(helio_shm_reader *reader, uint8_t *to, size_t room,
                                   size_t *length) {
    const uint64_t position = reader->position;
    const helio_shm_slot *slot =
        helio_shm_slot_of(reader->slots, reader->stride, reader->mask, position);
    const uint64_t word = atomic_load_explicit(&slot->word, memory_order_acquire);
    const int64_t ahead = helio_shm_ahead(word, position);
    if (ahead != 0) {
        return ahead < 0                               ? HELIO_SHM_NOTHING
               : ((uint64_t)ahead & reader->mask) != 0 ? HELIO_SHM_NONSENSE
                                                       : HELIO_SHM_OVERRUN;
    }
    const size_t left_out = word & HELIO_SHM_SHORT ? HELIO_SHM_HEADER : 0;
    const size_t bytes = helio_shm_length(word) + left_out;
    if (bytes > reader->packet_bytes || bytes > room) {
        return bytes > reader->packet_bytes ? HELIO_SHM_NONSENSE : HELIO_SHM_TOO_SMALL;
    }
    if (left_out) {
        put_header(reader, to, bytes);
    }
    helio_shm_copy_out(to + left_out, slot->data, bytes - left_out);
    atomic_thread_fence(memory_order_acquire); /* the copy before the look */
    const uint64_t claimed = atomic_load_explicit(&reader->ring->claimed, memory_order_relaxed);
    if (claimed - position - 1 > reader->mask) {
        return HELIO_SHM_OVERRUN;
    }
    *length = bytes;
    reader->position = position + 1;
    return HELIO_SHM_TAKEN;
}

__attribute__((noinline)) static helio_shm_taken
take_after_overrun(helio_shm_reader *reader, uint8_t *to, size_t room, size_t *length) {
    for (int tries = 0; tries < TRIES; tries++) {
        if (!recover(reader)) {
            return HELIO_SHM_NONSENSE;
        }
        const helio_shm_taken taken = look(reader, to, room, length);
        if (taken != HELIO_SHM_OVERRUN) {
            return taken;
        }
    }
    return HELIO_SHM_NOTHING;
}

helio_shm_taken helio_shm_reader_take(helio_shm_reader *reader, uint8_t *to, size_t room,
                                      size_t *length) {
    const helio_shm_taken taken = look(reader, to, room, length);
    return taken == HELIO_SHM_OVERRUN ? take_after_overrun(reader, to, room, length) : taken;
}

/* ---- feedback ---- */

bool helio_shm_reader_say(helio_shm_reader *reader, const void *packet, size_t length, bool *wake) {
    helio_shm_reader_place *place = place_of(reader);
    helio_shm_bells *bells = &reader->ring->bells;
    const uint64_t said = atomic_load_explicit(&place->said, memory_order_relaxed);
    *wake = false;
    if (length > HELIO_SHM_FEEDBACK_BYTES ||
        said - load(&place->heard) >= HELIO_SHM_FEEDBACK_SLOTS) {
        return false;
    }
    helio_shm_slot *slot = helio_shm_feedback_slot(reader->feedback, reader->place, said);
    atomic_store_explicit(&slot->word, length, memory_order_relaxed);
    helio_shm_copy_in(slot->data, packet, length);
    atomic_store_explicit(&place->said, said + 1, memory_order_release);
    atomic_fetch_or_explicit(&bells->feedback, bit_of(reader), memory_order_seq_cst);
    *wake = atomic_load_explicit(&reader->ring->writer_sleeps, memory_order_seq_cst) != 0;
    return true;
}

/* ---- sleep ---- */

bool helio_shm_reader_sleep(helio_shm_reader *reader) {
    helio_shm_bells *bells = &reader->ring->bells;
    if (!atomic_load_explicit(&bells->sleepers, memory_order_relaxed)) {
        atomic_store_explicit(&bells->sleepers, 1, memory_order_seq_cst);
        return false;
    }
    atomic_fetch_or_explicit(&bells->asleep, bit_of(reader), memory_order_seq_cst);
    atomic_thread_fence(memory_order_seq_cst);
    return !helio_shm_reader_has_news(reader) && !helio_shm_reader_is_closed(reader);
}

void helio_shm_reader_rise(helio_shm_reader *reader) {
    _Atomic uint64_t *asleep = &reader->ring->bells.asleep;
    if (atomic_load_explicit(asleep, memory_order_relaxed) & bit_of(reader)) {
        atomic_fetch_and_explicit(asleep, ~bit_of(reader), memory_order_relaxed);
    }
}
