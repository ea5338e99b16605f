/* The drivers shm and inproc: every transmit channel has a ring of its own (shm_ring.h), every
 * receive channel reads all rings of its name.  They differ only in where the rings are found
 * (shm_place.h).
 *
 * Sending puts a packet where all readers see it at once, so a flush has nothing left to do but
 * wake those who sleep.  A reader copies packets out before it uses them: the writer may take a
 * slot back at any moment, and with ring_wait it gets it back sooner.  What a receiver says goes
 * into its own small ring to the writer whose address it names.
 *
 * While both sides are awake no system call is made but by tend, every LOOK_NS, to see who
 * lives. */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/error.h"
#include "base/moment.h"
#include "io/kernel_clock.h"
#include "io/shm_channel.h"

#define LOOK_NS (100 * HELIO_MILLISECOND)   /* between two looks at who lives */
#define PATIENCE_NS (5 * HELIO_MILLISECOND) /* of a packet for the slowest reader */

enum { AREA_BYTES = 128 * 1024 }; /* of packets copied out by one receive */
_Static_assert((int)AREA_BYTES > (int)HELIO_SHM_PACKET_MAX, "any packet fits an empty area");
_Static_assert((int)AREA_BYTES >= HELIO_CHANNEL_BATCH * HELIO_SHM_FEEDBACK_BYTES,
               "a batch of feedback fits");

static helio_shm_channel *shm_of(helio_channel *channel) {
    return (helio_shm_channel *)channel;
}

/* ---- transmit: life ---- */

static int make_ring(helio_shm_channel *shm, const helio_channel_config *config) {
    const size_t slots = (size_t)helio_round_up_power_of_two(config->ring_packets);
    if (slots > HELIO_SHM_SLOTS_MAX || config->packet_bytes > HELIO_SHM_PACKET_MAX) {
        return helio_fail(HELIO_ERR_SYSTEM, "a ring of %zu packets of %zu bytes is too large",
                          slots, config->packet_bytes);
    }
    const helio_shm_writer_config ring = {
        .shape =
            helio_shm_shape_of(slots < HELIO_SHM_SLOTS_MIN ? HELIO_SHM_SLOTS_MIN : (uint32_t)slots,
                               (uint32_t)config->packet_bytes),
        .process = shm->place->key.process,
        .id = shm->place->key.id,
        .port = shm->base.local.port,
        .waits = config->ring_wait,
        .now_ns = shm->opened_ns,
    };
    const char *why;
    const helio_shm_place_kind *kind = shm->place->kind;
    const int error =
        kind->make(shm->place, ring.shape.bytes, config->huge_pages, &shm->mapping, &why);
    if (error) {
        return error;
    }
    if (why) {
        helio_shm_tell(shm, HELIO_CHANNEL_FELL_BACK, NULL, why);
    }
    helio_shm_writer_init(&shm->writer, shm->mapping.memory, &ring);
    return kind->publish(shm->place);
}

static void close_ring(helio_shm_channel *shm) {
    if (!shm->mapping.memory) {
        return;
    }
    if (shm->writer.ring) {
        helio_shm_writer_close(&shm->writer);
        helio_shm_wake_readers(shm, helio_shm_writer_flush(&shm->writer));
        shm->place->kind->withdraw(shm->place);
    }
    for (size_t i = 0; i < HELIO_SHM_READERS; i++) {
        helio_shm_forget_bell(&shm->bells[i]);
    }
    shm->place->kind->unmap(&shm->mapping);
}

/* ---- open, close ---- */

static void shm_close(helio_channel *channel) {
    if (!channel) {
        return;
    }
    helio_shm_channel *shm = shm_of(channel);
    if (shm->role == HELIO_CHANNEL_TRANSMIT) {
        close_ring(shm);
    }
    while (shm->rings_count) {
        helio_shm_drop_ring(shm, shm->rings_count - 1);
    }
    if (shm->place) {
        shm->place->kind->close(shm->place);
    }
    helio_loan_release(NULL, shm->area);
    free(shm);
}

/* The address a channel goes by: no two of a process have the same. */
static helio_address next_address(uint64_t seed) {
    static _Atomic uint32_t opened;
    static _Atomic uint32_t first;
    uint32_t none = 0;
    atomic_compare_exchange_strong(&first, &none, (uint32_t)seed | 1);
    const uint32_t number = atomic_load(&first) + atomic_fetch_add(&opened, 1);
    return (helio_address){
        .family = 4, .port = (uint16_t)(1 + number % UINT16_MAX), .ip = {127, 0, 0, 1}};
}

static int open_parts(helio_shm_channel *shm, const helio_channel_config *config,
                      const helio_shm_place_kind *kind) {
    uint64_t id = 0;
    shm->area = helio_loan_allocate(AREA_BYTES);
    if (!shm->area) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for the packets of a ring");
    }
    while (id == 0) {
        if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id) {
            return helio_fail(HELIO_ERR_SYSTEM, "cannot draw a random number for a ring");
        }
    }
    const int error = kind->open(config->name, id, &shm->place);
    if (error) {
        return error;
    }
    shm->base.fds[0] = shm->place->bell;
    if (config->role == HELIO_CHANNEL_TRANSMIT) {
        return make_ring(shm, config);
    }
    shm->generation = shm->place->generation;
    shm->generation_seen =
        atomic_load_explicit(shm->generation, memory_order_acquire) - 1; /* never looked */
    helio_shm_find_rings(shm);
    return 0;
}

static int open_channel(const helio_channel_config *config, const helio_driver *driver,
                        const helio_shm_place_kind *kind, helio_channel **out) {
    helio_shm_channel *shm = calloc(1, sizeof *shm);
    if (!shm) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for a ring");
    }
    shm->base.driver = driver;
    shm->base.fds[0] = shm->base.fds[1] = -1;
    shm->base.local = next_address(config->seed);
    shm->base.bound = config->destinations[0];
    shm->base.counters.buffer_bytes = config->socket_buffer; /* there is no socket to be small */
    shm->role = config->role;
    shm->tell = config->tell;
    shm->context = config->context;
    shm->inject_loss = config->inject_loss;
    shm->opened_ns = helio_monotonic_ns();
    helio_random_init(&shm->random, config->seed);
    const int error = open_parts(shm, config, kind);
    if (error) {
        shm_close(&shm->base);
        return error;
    }
    *out = &shm->base;
    return 0;
}

static int open_shm(const helio_channel_config *config, helio_channel **out) {
    return open_channel(config, &helio_driver_shm, &helio_shm_files, out);
}

static int open_inproc(const helio_channel_config *config, helio_channel **out) {
    return open_channel(config, &helio_driver_inproc, &helio_shm_heap, out);
}

/* ---- send ---- */

static int count_error(helio_channel *channel, size_t length, size_t longest) {
    channel->counters.send_errors++;
    channel->counters.send_errno = length > longest ? EMSGSIZE : ENOBUFS;
    return HELIO_ERR_SYSTEM;
}

/* Ports are drawn by each process, so two writers may have the same; the stream's identity in the
 * packet tells them apart. */
static int say(helio_shm_channel *shm, const helio_address *to, const void *packet, size_t length) {
    int result = 0;
    for (size_t i = 0; to && i < shm->rings_count; i++) {
        helio_shm_joined_ring *ring = shm->rings[i];
        bool wake;
        if (ring->address.port != to->port) {
            continue;
        }
        if (!helio_shm_reader_say(&ring->reader, packet, length, &wake)) {
            result = count_error(&shm->base, length, HELIO_SHM_FEEDBACK_BYTES);
            continue;
        }
        helio_channel_count_sent(&shm->base, length);
        if (wake) {
            helio_shm_ring_bell(shm, &ring->bell, &ring->key);
        }
    }
    return result;
}

/* Tries for a moment, but not for every packet, when a reader has stopped. */
static bool put_patiently(helio_shm_channel *shm, const void *packet, size_t length) {
    if (!shm->writer.waits || shm->has_waited || length > shm->writer.packet_bytes) {
        return false;
    }
    helio_shm_wake_readers(shm, helio_shm_writer_flush(&shm->writer));
    const int64_t until_ns = helio_monotonic_ns() + PATIENCE_NS;
    while (!helio_shm_writer_put(&shm->writer, packet, length)) {
        if (helio_monotonic_ns() >= until_ns) {
            shm->has_waited = true;
            return false;
        }
    }
    return true;
}

static int shm_send(helio_channel *channel, const helio_address *to, const void *packet,
                    size_t length, bool stable) {
    (void)stable; /* it is copied at once */
    helio_shm_channel *shm = shm_of(channel);
    if (shm->role == HELIO_CHANNEL_RECEIVE) {
        return say(shm, to, packet, length);
    }
    if (helio_shm_writer_put(&shm->writer, packet, length)) {
        shm->has_waited = false;
    } else if (!put_patiently(shm, packet, length)) {
        return count_error(channel, length, shm->writer.packet_bytes);
    }
    helio_channel_count_sent(channel, length);
    return 0;
}

static void shm_flush(helio_channel *channel) {
    helio_shm_channel *shm = shm_of(channel);
    if (shm->role == HELIO_CHANNEL_TRANSMIT) {
        const uint64_t asleep = helio_shm_writer_flush(&shm->writer);
        if (asleep) {
            helio_shm_wake_readers(shm, asleep);
        }
    }
}

static int shm_send_now(helio_channel *channel, const void *packet, size_t length) {
    const int result = shm_send(channel, NULL, packet, length, true);
    shm_flush(channel);
    return result;
}

static size_t shm_room(helio_channel *channel) {
    helio_shm_channel *shm = shm_of(channel);
    return shm->role == HELIO_CHANNEL_TRANSMIT ? helio_shm_writer_room(&shm->writer) : SIZE_MAX;
}

/* ---- receive ---- */

static void count_received(helio_channel *channel, size_t length) {
    channel->counters.packets_received++;
    channel->counters.bytes_received += length;
}

__attribute__((noinline)) static size_t hear(helio_shm_channel *shm, helio_datagram *datagrams,
                                             size_t limit) {
    size_t got = 0;
    while (got < limit) {
        uint8_t *to = shm->area + got * HELIO_SHM_FEEDBACK_BYTES;
        helio_datagram *datagram = &datagrams[got];
        *datagram = (helio_datagram){.data = to};
        if (!helio_shm_writer_hear(&shm->writer, to, &datagram->length, &datagram->source)) {
            break;
        }
        count_received(&shm->base, datagram->length);
        got++;
    }
    return got;
}

__attribute__((noinline)) static bool draw_loss(helio_shm_channel *shm) {
    return helio_random_unit(&shm->random) < shm->inject_loss;
}

static bool is_thrown_away(helio_shm_channel *shm) {
    return shm->inject_loss > 0 && draw_loss(shm);
}

/* Takes what one ring has, at most `limit` packets.  *used: bytes of the area, before and after. */
static inline size_t take(helio_shm_channel *shm, helio_shm_joined_ring *ring,
                          helio_datagram *datagrams, size_t limit, size_t *used) {
    helio_shm_reader *reader = &ring->reader;
    helio_shm_taken taken = HELIO_SHM_TAKEN;
    size_t at = *used, count = 0, bytes = 0;
    while (count < limit && at < AREA_BYTES) {
        size_t length;
        taken = helio_shm_reader_take(reader, shm->area + at, AREA_BYTES - at, &length);
        if (taken != HELIO_SHM_TAKEN) {
            break;
        }
        if (is_thrown_away(shm)) {
            continue;
        }
        datagrams[count].data = shm->area + at;
        datagrams[count].length = length;
        datagrams[count].source = ring->address;
        datagrams[count].kernel_ns = 0;
        bytes += length;
        count++;
        at += (size_t)helio_round_up(length, HELIO_SHM_LINE);
    }
    helio_shm_reader_show(reader);
    if (reader->overruns != ring->overruns_counted) {
        shm->base.counters.overruns += reader->overruns - ring->overruns_counted;
        ring->overruns_counted = reader->overruns;
    }
    ring->is_damaged |= taken == HELIO_SHM_NONSENSE;
    shm->base.counters.packets_received += count;
    shm->base.counters.bytes_received += bytes;
    *used = taken == HELIO_SHM_TOO_SMALL ? AREA_BYTES : at;
    return count;
}

/* Takes what the rings have, each in its turn. */
static size_t take_all(helio_shm_channel *shm, helio_datagram *datagrams, size_t limit) {
    size_t index = shm->first < shm->rings_count ? shm->first : 0;
    size_t used = 0, count = 0;
    for (size_t left = shm->rings_count; left && count < limit && used < AREA_BYTES; left--) {
        helio_shm_joined_ring *ring = shm->rings[index];
        index = index + 1 < shm->rings_count ? index + 1 : 0;
        if (!ring->is_damaged) {
            count += take(shm, ring, datagrams + count, limit - count, &used);
        }
    }
    shm->first = index; /* another begins the next time */
    return count;
}

static inline bool has_news(const helio_shm_channel *shm) {
    for (size_t i = 0; i < shm->rings_count; i++) {
        if (helio_shm_reader_has_news(&shm->rings[i]->reader)) {
            return true;
        }
    }
    return helio_shm_has_new_rings(shm);
}

/* The only ring of a receiver with one source is read without turns. */
__attribute__((noinline)) static size_t receive_packets(helio_shm_channel *shm,
                                                        helio_datagram *datagrams, size_t limit) {
    size_t used = 0, count = 0;
    if (shm->rings_count == 1 && !shm->rings[0]->is_damaged) {
        count = take(shm, shm->rings[0], datagrams, limit, &used);
    } else {
        count = take_all(shm, datagrams, limit);
    }
    while (count == 0 && helio_shm_find_rings(shm)) {
        count = take_all(shm, datagrams, limit);
    }
    shm->base.has_more = count > 0; /* to look again costs next to nothing */
    return count;
}

/* Nearly every call finds nothing: it looks at little and calls nothing. */
static size_t shm_receive(helio_channel *channel, helio_datagram *datagrams, size_t limit) {
    helio_shm_channel *shm = shm_of(channel);
    limit = limit < HELIO_CHANNEL_BATCH ? limit : HELIO_CHANNEL_BATCH;
    if (shm->role == HELIO_CHANNEL_TRANSMIT) {
        return helio_shm_writer_has_feedback(&shm->writer) ? hear(shm, datagrams, limit) : 0;
    }
    if (has_news(shm)) {
        return receive_packets(shm, datagrams, limit);
    }
    channel->has_more = false;
    return 0;
}

static void shm_tend(helio_channel *channel, int64_t now_ns) {
    helio_shm_channel *shm = shm_of(channel);
    const bool look = now_ns >= shm->look_due_ns;
    if (look) {
        shm->look_due_ns = now_ns + LOOK_NS;
    }
    if (shm->role == HELIO_CHANNEL_TRANSMIT) {
        helio_shm_tend_transmit(shm, now_ns, look);
    } else {
        helio_shm_tend_receive(shm, look);
    }
}

/* ---- sleep ---- */

static bool shm_before_sleep(helio_channel *channel) {
    helio_shm_channel *shm = shm_of(channel);
    if (shm->role == HELIO_CHANNEL_TRANSMIT) {
        atomic_store_explicit(&shm->writer.ring->writer_sleeps, 1, memory_order_seq_cst);
        atomic_thread_fence(memory_order_seq_cst);
        return !helio_shm_writer_has_news(&shm->writer);
    }
    bool quiet = !helio_shm_has_new_rings(shm);
    for (size_t i = 0; i < shm->rings_count; i++) {
        quiet &= helio_shm_reader_sleep(&shm->rings[i]->reader);
    }
    return quiet;
}

static void shm_after_sleep(helio_channel *channel) {
    helio_shm_channel *shm = shm_of(channel);
    if (shm->role == HELIO_CHANNEL_TRANSMIT) {
        atomic_store_explicit(&shm->writer.ring->writer_sleeps, 0, memory_order_relaxed);
    }
    for (size_t i = 0; i < shm->rings_count; i++) {
        helio_shm_reader_rise(&shm->rings[i]->reader);
    }
    helio_shm_bell_silence(shm->place->bell);
}

/* What is not given out yet lies in the rings. */
static bool shm_leave(helio_channel *channel, helio_loan *loan) {
    helio_shm_channel *shm = shm_of(channel);
    uint8_t *area = helio_loan_allocate(AREA_BYTES);
    if (area) {
        helio_loan_release(loan, shm->area);
        shm->area = area;
    }
    return area != NULL;
}

/* What the writer took back before it was read. */
static uint64_t shm_drops(helio_channel *channel) {
    return channel->counters.overruns;
}

/* The two drivers differ by how a channel is opened. */
#define DRIVER(label, open_one)           \
    {                                     \
        .name = label,                    \
        .is_connected = true,             \
        .is_memory = true,                \
        .is_intact = true,                \
        .open = open_one,                 \
        .send = shm_send,                 \
        .flush = shm_flush,               \
        .send_now = shm_send_now,         \
        .receive = shm_receive,           \
        .leave = shm_leave,               \
        .close = shm_close,               \
        .room = shm_room,                 \
        .tend = shm_tend,                 \
        .drops = shm_drops,               \
        .before_sleep = shm_before_sleep, \
        .after_sleep = shm_after_sleep,   \
    }

const helio_driver helio_driver_shm = DRIVER("shm", open_shm);
const helio_driver helio_driver_inproc = DRIVER("inproc", open_inproc);
