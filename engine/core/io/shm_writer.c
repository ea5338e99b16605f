#include "io/shm_writer.h"

#include "wire/pgm.h"

enum { PGM_TYPE = 4, PGM_OPTIONS = 5 }; /* offsets in a packet */
_Static_assert((int)HELIO_SHM_DATA_HEADER == (int)HELIO_PGM_DATA_HEADER, "the same header");

/* ---- life ---- */

void helio_shm_writer_init(helio_shm_writer *writer, void *memory,
                           const helio_shm_writer_config *config) {
    const helio_shm_shape *shape = &config->shape;
    helio_shm_ring *ring = memory;
    ring->geometry = (helio_shm_geometry){
        .magic = HELIO_SHM_MAGIC,
        .version = HELIO_SHM_VERSION,
        .byte_order = HELIO_SHM_BYTE_ORDER,
        .bytes = shape->bytes,
        .slots = shape->slots,
        .packet_bytes = shape->packet_bytes,
        .readers = HELIO_SHM_READERS,
        .feedback_slots = HELIO_SHM_FEEDBACK_SLOTS,
        .feedback_bytes = HELIO_SHM_FEEDBACK_BYTES,
        .waits = config->waits,
        .created_ns = (uint64_t)config->now_ns,
        .id = config->id,
    };
    ring->writer.pid = config->process.pid;
    ring->writer.start = config->process.start;
    ring->writer.port = config->port;
    atomic_store_explicit(&ring->writer.heartbeat_ns, (uint64_t)config->now_ns,
                          memory_order_relaxed);
    atomic_store_explicit(&ring->writer.state, HELIO_SHM_OPEN, memory_order_release);
    *writer = (helio_shm_writer){
        .ring = ring,
        .slots = (uint8_t *)memory + shape->slots_offset,
        .feedback = (uint8_t *)memory + shape->feedback_offset,
        .mask = shape->slots - 1,
        .stride = shape->stride,
        .packet_bytes = shape->packet_bytes,
        .waits = config->waits,
        .limit = shape->slots,
    };
}

void helio_shm_writer_close(helio_shm_writer *writer) {
    atomic_store_explicit(&writer->ring->writer.state, HELIO_SHM_CLOSED, memory_order_release);
}

/* ---- packets ---- */

static uint64_t load(const _Atomic uint64_t *word) {
    return atomic_load_explicit(word, memory_order_acquire);
}

/* The places whose bit is set, one after the other. */
static unsigned take_lowest(uint64_t *bits) {
    const unsigned place = (unsigned)__builtin_ctzll(*bits);
    *bits &= *bits - 1;
    return place;
}

/* A reader that sees what is written from here on sees this claim as well. */
static void publish_claim(helio_shm_writer *writer, uint64_t end) {
    writer->claimed = end;
    atomic_store_explicit(&writer->ring->claimed, end, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

/* Reads the readers' positions.  An impossible one is ignored. */
static void find_limit(helio_shm_writer *writer) {
    const uint64_t slots = writer->mask + 1;
    uint64_t behind = 0;
    writer->present_seen = load(&writer->ring->bells.present);
    for (uint64_t left = writer->present_seen; left;) {
        const unsigned place = take_lowest(&left);
        const uint64_t unread = writer->tail - load(&writer->ring->readers[place].position);
        if (unread <= slots && unread > behind) {
            behind = unread;
        }
    }
    writer->limit = writer->tail + slots - behind;
    if (writer->claimed > writer->limit) {
        publish_claim(writer, writer->limit);
    }
}

/* All that was claimed is written.  False: the slowest reader has not made room. */
__attribute__((noinline)) static bool claim(helio_shm_writer *writer) {
    uint64_t end = writer->tail + helio_shm_share(writer->mask + 1);
    if (writer->waits) {
        if (writer->tail == writer->limit) {
            find_limit(writer);
        }
        end = end < writer->limit ? end : writer->limit;
    }
    if (end == writer->tail) {
        return false;
    }
    publish_claim(writer, end);
    return true;
}

/* The first data packet gives the ring its header. */
__attribute__((noinline)) static void set_header(helio_shm_writer *writer, const uint8_t *packet) {
    if (packet[PGM_TYPE] == HELIO_PGM_TYPE_ODATA && packet[PGM_OPTIONS] == 0) {
        writer->header = helio_shm_header_of(packet);
        writer->has_header = true;
        helio_put64(writer->ring->header, writer->header.words[0]);
        helio_put64(writer->ring->header + 8, writer->header.words[1]);
    }
}

/* The packet begins with the ring's header. */
static inline bool is_short(helio_shm_writer *writer, const uint8_t *packet, size_t length) {
    if (length < HELIO_SHM_DATA_HEADER) {
        return false;
    }
    if (!writer->has_header) {
        set_header(writer, packet);
    }
    return helio_get64(packet) == writer->header.words[0] &&
           helio_get64(packet + 8) == (writer->header.words[1] | helio_shm_tsdu_length(length));
}

bool helio_shm_writer_put(helio_shm_writer *writer, const void *packet, size_t length) {
    if (length > writer->packet_bytes || (writer->tail == writer->claimed && !claim(writer))) {
        return false;
    }
    helio_shm_slot *slot =
        helio_shm_slot_of(writer->slots, writer->stride, writer->mask, writer->tail);
    uint64_t word = helio_shm_word(++writer->tail, length);
    if (is_short(writer, packet, length)) {
        word += HELIO_SHM_SHORT - HELIO_SHM_HEADER;
        helio_shm_copy_in(slot->data, (const uint8_t *)packet + HELIO_SHM_HEADER,
                          length - HELIO_SHM_HEADER);
    } else {
        helio_shm_copy_in(slot->data, packet, length);
    }
    atomic_store_explicit(&slot->word, word, memory_order_release);

    const uint8_t *next = (const uint8_t *)helio_shm_slot_of(writer->slots, writer->stride,
                                                             writer->mask, writer->tail);
    __builtin_prefetch(next, 1);
    __builtin_prefetch(next + HELIO_SHM_LINE, 1);
    return true;
}

uint64_t helio_shm_writer_flush(helio_shm_writer *writer) {
    helio_shm_bells *bells = &writer->ring->bells;
    if (writer->waits && load(&bells->present) != writer->present_seen) {
        find_limit(writer);
    }
    if (!atomic_load_explicit(&bells->sleepers, memory_order_relaxed)) {
        return 0;
    }
    atomic_thread_fence(
        memory_order_seq_cst); /* packets before the look; the sleeper does likewise */
    const uint64_t asleep = atomic_load_explicit(&bells->asleep, memory_order_relaxed);
    if (asleep) {
        atomic_fetch_and_explicit(&bells->asleep, ~asleep, memory_order_acq_rel);
    }
    return asleep;
}

size_t helio_shm_writer_room(helio_shm_writer *writer) {
    if (!writer->waits) {
        return SIZE_MAX;
    }
    if (writer->limit - writer->tail <= writer->mask / 2) {
        find_limit(writer);
    }
    return (size_t)(writer->limit - writer->tail);
}

/* ---- feedback ---- */

static helio_address address_of(uint64_t port) {
    return (helio_address){.family = 4, .port = (uint16_t)port, .ip = {127, 0, 0, 1}};
}

/* Takes the oldest packet of one reader. */
static bool hear_one(helio_shm_writer *writer, unsigned place, uint8_t *to, size_t *length) {
    helio_shm_reader_place *reader = &writer->ring->readers[place];
    const uint64_t said = load(&reader->said);
    uint64_t heard = atomic_load_explicit(&reader->heard, memory_order_relaxed);
    if (said - heard > HELIO_SHM_FEEDBACK_SLOTS) { /* never with a reader in its right mind */
        heard = said;
    }
    while (heard != said) {
        const helio_shm_slot *slot = helio_shm_feedback_slot(writer->feedback, place, heard++);
        *length = (size_t)atomic_load_explicit(&slot->word, memory_order_relaxed);
        if (*length <= HELIO_SHM_FEEDBACK_BYTES) {
            helio_shm_copy_out(to, slot->data, *length);
            atomic_store_explicit(&reader->heard, heard, memory_order_release);
            return true;
        }
    }
    atomic_store_explicit(&reader->heard, heard, memory_order_release);
    return false;
}

bool helio_shm_writer_hear(helio_shm_writer *writer, uint8_t *to, size_t *length,
                           helio_address *from) {
    _Atomic uint64_t *bell = &writer->ring->bells.feedback;
    for (uint64_t left = atomic_load_explicit(bell, memory_order_acquire); left;) {
        const unsigned place = take_lowest(&left);
        if (hear_one(writer, place, to, length)) {
            *from = address_of(writer->ring->readers[place].port);
            return true;
        }
        /* Nothing left: the bell falls silent, and then there must still be nothing. */
        atomic_fetch_and_explicit(bell, ~(UINT64_C(1) << place), memory_order_seq_cst);
        if (hear_one(writer, place, to, length)) {
            atomic_fetch_or_explicit(bell, UINT64_C(1) << place, memory_order_relaxed);
            *from = address_of(writer->ring->readers[place].port);
            return true;
        }
    }
    return false;
}

bool helio_shm_writer_has_news(const helio_shm_writer *writer) {
    return helio_shm_writer_has_feedback(writer) ||
           load(&writer->ring->bells.changes) != writer->changes_seen;
}

/* ---- readers ---- */

static uint8_t state_of(uint64_t claim) {
    return (uint8_t)claim;
}

void helio_shm_writer_bell_of(const helio_shm_writer *writer, unsigned place, uint64_t *id,
                              helio_process *process) {
    const helio_shm_reader_place *reader = &writer->ring->readers[place];
    *id = reader->bell;
    *process = (helio_process){(uint32_t)(load(&reader->claim) >> 8), reader->start};
}

static void free_place(helio_shm_writer *writer, unsigned place) {
    helio_shm_reader_place *reader = &writer->ring->readers[place];
    helio_shm_bells *bells = &writer->ring->bells;
    const uint64_t others = ~(UINT64_C(1) << place);
    atomic_fetch_and_explicit(&bells->present, others, memory_order_relaxed);
    atomic_fetch_and_explicit(&bells->asleep, others, memory_order_relaxed);
    atomic_fetch_and_explicit(&bells->feedback, others, memory_order_relaxed);
    atomic_store_explicit(&reader->said, 0, memory_order_relaxed);
    atomic_store_explicit(&reader->heard, 0, memory_order_relaxed);
    reader->start = 0;
    atomic_store_explicit(&reader->claim, HELIO_SHM_FREE, memory_order_release);
    writer->known &= others;
}

static bool has_died(const helio_shm_reader_place *reader, uint64_t claim,
                     bool (*is_alive)(const helio_process *process)) {
    /* Until it has filled its place in, a reader is known by its number alone. */
    const helio_process process = {(uint32_t)(claim >> 8),
                                   state_of(claim) == HELIO_SHM_CLAIMED ? 0 : reader->start};
    return is_alive && !is_alive(&process);
}

static helio_shm_reader_news news_of(const helio_shm_reader_place *reader, unsigned place,
                                     uint64_t claim, helio_shm_reader_event event) {
    return (helio_shm_reader_news){place, (uint32_t)(claim >> 8), address_of(reader->port), event};
}

size_t helio_shm_writer_look(helio_shm_writer *writer,
                             bool (*is_alive)(const helio_process *process),
                             helio_shm_reader_news *news) {
    const uint64_t changes = load(&writer->ring->bells.changes);
    if (changes == writer->changes_seen && !is_alive) {
        return 0;
    }
    writer->changes_seen = changes;
    size_t count = 0;
    for (unsigned place = 0; place < HELIO_SHM_READERS; place++) {
        const helio_shm_reader_place *reader = &writer->ring->readers[place];
        const uint64_t claim = load(&reader->claim);
        const bool is_known = writer->known >> place & 1;
        const bool is_leaving = state_of(claim) == HELIO_SHM_LEAVING;
        if (state_of(claim) == HELIO_SHM_FREE) {
            continue;
        }
        if (state_of(claim) == HELIO_SHM_READING && !is_known) {
            writer->known |= UINT64_C(1) << place;
            news[count++] = news_of(reader, place, claim, HELIO_SHM_READER_CAME);
        } else if (is_leaving || has_died(reader, claim, is_alive)) {
            if (is_known) {
                news[count++] = news_of(reader, place, claim,
                                        is_leaving ? HELIO_SHM_READER_LEFT : HELIO_SHM_READER_DIED);
            }
            free_place(writer, place);
        }
    }
    if (writer->waits) {
        find_limit(writer);
    }
    return count;
}
