/* Rings in shared memory and in the process: order, overrun, waiting, sleep, and the death of
 * either side.  Processes are forked; the only threads are those of the race between writer and
 * reader. */
#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/error.h"
#include "base/moment.h"
#include "io/driver.h"
#include "io/shm_reader.h"
#include "io/shm_writer.h"

enum { SLOTS = 64, PACKET = 1000 };

static const helio_driver *const drivers[] = {&helio_driver_shm, &helio_driver_inproc};
static char folder[] = "/tmp/heliograph-rings-XXXXXX";

/* ---- channels ---- */

/* What a channel told. */
typedef struct told {
    unsigned count[HELIO_CHANNEL_FELL_BACK + 1];
    char why[256];
} told;

static void on_event(void *context, helio_channel_event event, const helio_address *peer,
                     const char *why) {
    told *all = context;
    (void)peer;
    all->count[event]++;
    snprintf(all->why, sizeof all->why, "%s", why);
}

static helio_channel_config config_of(helio_channel_role role, told *all) {
    helio_channel_config config = {.role = role,
                                   .destinations_count = 1,
                                   .packet_bytes = PACKET,
                                   .ring_packets = SLOTS,
                                   .seed = 7,
                                   .tell = on_event,
                                   .context = all,
                                   .name = "test"};
    config.destinations[0] = (helio_address){.family = 4, .port = 9, .ip = {127, 0, 0, 1}};
    return config;
}

static helio_channel *open_with(const helio_driver *driver, const helio_channel_config *config) {
    helio_channel *channel = NULL;
    if (driver->open(config, &channel) < 0) {
        CHECK_FAIL("%s", helio_error_sentence());
    }
    return channel;
}

static helio_channel *open_one(const helio_driver *driver, helio_channel_role role, told *all) {
    memset(all, 0, sizeof *all);
    const helio_channel_config config = config_of(role, all);
    return open_with(driver, &config);
}

/* Each call looks after the peers: it is a second later. */
static void tend(helio_channel *channel) {
    static int64_t now_ns;
    now_ns += HELIO_SECOND;
    channel->driver->tend(channel, now_ns);
}

static void send_number(helio_channel *tx, uint64_t number) {
    CHECK_EQUAL(tx->driver->send(tx, NULL, &number, sizeof number, false), 0);
    tx->driver->flush(tx);
}

/* Receives what is there, numbers from `next` on; returns the number after the last. */
static uint64_t receive_numbers(helio_channel *rx, uint64_t next) {
    helio_datagram datagrams[HELIO_CHANNEL_BATCH];
    for (size_t count; (count = rx->driver->receive(rx, datagrams, HELIO_CHANNEL_BATCH));) {
        for (size_t i = 0; i < count; i++, next++) {
            CHECK_EQUAL(datagrams[i].length, sizeof next);
            CHECK_BYTES(datagrams[i].data, &next, sizeof next);
        }
    }
    return next;
}

static size_t files_in_folder(const char *ending) {
    size_t count = 0;
    DIR *directory = opendir(folder);
    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        const size_t length = strlen(entry->d_name);
        count +=
            length > strlen(ending) && strcmp(entry->d_name + length - strlen(ending), ending) == 0;
    }
    if (directory) {
        closedir(directory);
    }
    return count;
}

/* ---- both kinds ---- */

static void packets_arrive_and_feedback_goes_back_to_the_writer_alone(void) {
    for (int d = 0; d < 2; d++) {
        const helio_driver *driver = drivers[d];
        told here, other, there;
        helio_channel *tx = open_one(driver, HELIO_CHANNEL_TRANSMIT, &here);
        helio_channel *second = open_one(driver, HELIO_CHANNEL_TRANSMIT, &other);
        helio_channel *rx = open_one(driver, HELIO_CHANNEL_RECEIVE, &there);
        CHECK_EQUAL(there.count[HELIO_CHANNEL_CONNECTED], 2);
        CHECK_EQUAL(rx->counters.connections, 2);
        CHECK(tx->local.port != second->local.port);

        char copied[] = "copied";
        CHECK_EQUAL(driver->send(tx, NULL, copied, 6, true), 0);
        memset(copied, '-', 6);
        driver->flush(tx);
        helio_datagram datagrams[HELIO_CHANNEL_BATCH];
        CHECK_EQUAL(driver->receive(rx, datagrams, HELIO_CHANNEL_BATCH), 1);
        CHECK_EQUAL(datagrams[0].length, 6);
        CHECK_BYTES(datagrams[0].data, "copied", 6);
        CHECK(helio_address_equal(&datagrams[0].source, &tx->local));

        const helio_address source = datagrams[0].source;
        CHECK_EQUAL(driver->send(rx, &source, "nak", 3, false), 0);
        CHECK_EQUAL(driver->receive(second, datagrams, HELIO_CHANNEL_BATCH), 0);
        CHECK_EQUAL(driver->receive(tx, datagrams, HELIO_CHANNEL_BATCH), 1);
        CHECK_EQUAL(datagrams[0].length, 3);
        CHECK_BYTES(datagrams[0].data, "nak", 3);
        CHECK(helio_address_equal(&datagrams[0].source, &rx->local));

        tend(tx);
        CHECK_EQUAL(here.count[HELIO_CHANNEL_CONNECTED], 1);
        CHECK_EQUAL(tx->counters.connections, 1);
        driver->close(rx);
        tend(tx);
        CHECK_EQUAL(here.count[HELIO_CHANNEL_DISCONNECTED], 1);
        CHECK_EQUAL(here.count[HELIO_CHANNEL_PEER_CRASHED], 0);
        CHECK_EQUAL(tx->counters.connections, 0);
        driver->close(tx);
        driver->close(second);
    }
}

static void a_reader_keeps_the_order_over_many_rounds_of_the_ring(void) {
    for (int d = 0; d < 2; d++) {
        told here, there;
        helio_channel *rx = open_one(drivers[d], HELIO_CHANNEL_RECEIVE, &there);
        helio_channel *tx = open_one(drivers[d], HELIO_CHANNEL_TRANSMIT, &here);
        uint64_t next = 0;
        for (uint64_t number = 0; number < 50 * SLOTS; number++) {
            send_number(tx, number);
            if (number % 37 == 36) {
                next = receive_numbers(rx, next);
            }
        }
        CHECK_EQUAL(receive_numbers(rx, next), 50 * SLOTS);
        CHECK_EQUAL(rx->counters.overruns, 0);
        CHECK_EQUAL(rx->counters.packets_received, tx->counters.packets_sent);
        CHECK_EQUAL(rx->counters.bytes_received, tx->counters.bytes_sent);
        drivers[d]->close(tx);
        drivers[d]->close(rx);
    }
}

static void a_reader_there_first_misses_nothing_and_a_late_one_begins_now(void) {
    for (int d = 0; d < 2; d++) {
        told here, there, late;
        helio_channel *first = open_one(drivers[d], HELIO_CHANNEL_RECEIVE, &there);
        helio_channel *tx = open_one(drivers[d], HELIO_CHANNEL_TRANSMIT, &here);
        for (uint64_t number = 0; number < 10; number++) {
            send_number(tx, number); /* the first has not looked for rings yet */
        }
        helio_channel *second = open_one(drivers[d], HELIO_CHANNEL_RECEIVE, &late);
        send_number(tx, 10);
        tend(first);
        CHECK_EQUAL(receive_numbers(first, 0), 11);
        CHECK_EQUAL(receive_numbers(second, 10), 11);
        drivers[d]->close(tx);
        drivers[d]->close(first);
        drivers[d]->close(second);
    }
}

static void a_slow_reader_does_not_stop_the_writer_and_knows_what_it_missed(void) {
    for (int d = 0; d < 2; d++) {
        told here, there, quick;
        helio_channel *tx = open_one(drivers[d], HELIO_CHANNEL_TRANSMIT, &here);
        helio_channel *slow = open_one(drivers[d], HELIO_CHANNEL_RECEIVE, &there);
        helio_channel *fast = open_one(drivers[d], HELIO_CHANNEL_RECEIVE, &quick);
        uint64_t next = 0;
        for (uint64_t number = 0; number < 1000; number++) {
            send_number(tx, number);
            next = receive_numbers(fast, next);
        }
        CHECK_EQUAL(next, 1000);
        helio_datagram datagrams[HELIO_CHANNEL_BATCH];
        const size_t count = slow->driver->receive(slow, datagrams, HELIO_CHANNEL_BATCH);
        uint64_t oldest;
        memcpy(&oldest, datagrams[0].data, sizeof oldest);
        CHECK_EQUAL(slow->counters.overruns, oldest);
        CHECK_EQUAL(oldest + count, 1000);
        CHECK(count >= SLOTS * 3 / 4);
        CHECK_EQUAL(fast->counters.overruns, 0);
        drivers[d]->close(tx);
        drivers[d]->close(slow);
        drivers[d]->close(fast);
    }
}

static void a_ring_that_waits_stops_at_its_slowest_reader(void) {
    for (int d = 0; d < 2; d++) {
        told here, there;
        helio_channel_config waiting = config_of(HELIO_CHANNEL_TRANSMIT, &here);
        waiting.ring_wait = true;
        helio_channel *tx = open_with(drivers[d], &waiting);
        helio_channel *rx = open_one(drivers[d], HELIO_CHANNEL_RECEIVE, &there);
        CHECK(rx->waits);
        uint64_t number = 0;
        for (; drivers[d]->room(tx) > 0; number++) {
            send_number(tx, number);
        }
        CHECK_EQUAL(number, SLOTS);
        CHECK(drivers[d]->send(tx, NULL, &number, sizeof number, false) < 0);
        CHECK_EQUAL(tx->counters.send_errors, 1);
        CHECK_EQUAL(receive_numbers(rx, 0), SLOTS);
        CHECK_EQUAL(drivers[d]->room(tx), SLOTS);
        drivers[d]->close(rx);
        tend(tx);
        for (; number < 10 * SLOTS; number++) {
            CHECK(drivers[d]->room(tx) > 0); /* nobody is left to wait for */
            send_number(tx, number);
        }
        drivers[d]->close(tx);
    }
}

static void a_goodbye_comes_after_the_last_packet(void) {
    for (int d = 0; d < 2; d++) {
        told here, there;
        helio_channel *tx = open_one(drivers[d], HELIO_CHANNEL_TRANSMIT, &here);
        helio_channel *rx = open_one(drivers[d], HELIO_CHANNEL_RECEIVE, &there);
        send_number(tx, 0);
        drivers[d]->close(tx);
        tend(rx);
        CHECK_EQUAL(there.count[HELIO_CHANNEL_DISCONNECTED], 0);
        CHECK_EQUAL(receive_numbers(rx, 0), 1);
        tend(rx);
        CHECK_EQUAL(there.count[HELIO_CHANNEL_DISCONNECTED], 1);
        CHECK_EQUAL(there.count[HELIO_CHANNEL_PEER_CRASHED], 0);
        CHECK_EQUAL(rx->counters.connections, 0);
        drivers[d]->close(rx);
    }
}

static bool is_rung(const helio_channel *channel) {
    struct pollfd bell = {channel->fds[0], POLLIN, 0};
    return poll(&bell, 1, 0) == 1;
}

static void sleepers_are_woken_and_nobody_else(void) {
    for (int d = 0; d < 2; d++) {
        const helio_driver *driver = drivers[d];
        told here, there;
        helio_channel *rx = open_one(driver, HELIO_CHANNEL_RECEIVE, &there);
        helio_channel *tx = open_one(driver, HELIO_CHANNEL_TRANSMIT, &here);
        CHECK(is_rung(rx)); /* a ring came */
        driver->after_sleep(rx);
        CHECK(!driver->before_sleep(rx)); /* it is to be read */
        tend(rx);
        driver->after_sleep(rx);
        tend(tx);
        CHECK(!driver->before_sleep(rx)); /* the writer must first learn that there are sleepers */
        driver->after_sleep(rx);

        send_number(tx, 0);
        CHECK(!is_rung(rx)); /* it is awake */
        CHECK(!driver->before_sleep(rx));
        driver->after_sleep(rx);
        CHECK_EQUAL(receive_numbers(rx, 0), 1);
        CHECK(driver->before_sleep(rx));
        send_number(tx, 1);
        CHECK(is_rung(rx));
        driver->after_sleep(rx);
        CHECK(!is_rung(rx));
        CHECK_EQUAL(receive_numbers(rx, 1), 2);

        CHECK_EQUAL(driver->send(rx, &tx->local, "nak", 3, false), 0);
        CHECK(!is_rung(tx));
        CHECK(!driver->before_sleep(tx));
        driver->after_sleep(tx);
        helio_datagram datagram;
        CHECK_EQUAL(driver->receive(tx, &datagram, 1), 1);
        CHECK_EQUAL(driver->receive(tx, &datagram, 1), 0);
        CHECK(driver->before_sleep(tx));
        CHECK_EQUAL(driver->send(rx, &tx->local, "nak", 3, false), 0);
        CHECK(is_rung(tx));
        driver->after_sleep(tx);
        CHECK_EQUAL(driver->receive(tx, &datagram, 1), 1);

        CHECK_EQUAL(driver->receive(tx, &datagram, 1), 0);
        CHECK(driver->before_sleep(rx));
        CHECK(driver->before_sleep(tx));
        driver->close(rx);
        CHECK(is_rung(tx)); /* a goodbye is news */
        driver->close(tx);
    }
}

static void feedback_that_nobody_hears_is_refused_and_counted(void) {
    for (int d = 0; d < 2; d++) {
        told here, there;
        helio_channel *tx = open_one(drivers[d], HELIO_CHANNEL_TRANSMIT, &here);
        helio_channel *rx = open_one(drivers[d], HELIO_CHANNEL_RECEIVE, &there);
        const char nak[HELIO_SHM_FEEDBACK_BYTES + 1] = "";
        CHECK(drivers[d]->send(rx, &tx->local, nak, sizeof nak, false) < 0);
        for (int i = 0; i < HELIO_SHM_FEEDBACK_SLOTS; i++) {
            CHECK_EQUAL(drivers[d]->send(rx, &tx->local, nak, 300, false), 0);
        }
        CHECK(drivers[d]->send(rx, &tx->local, nak, 300, false) < 0);
        CHECK_EQUAL(rx->counters.send_errors, 2);
        helio_datagram datagrams[HELIO_CHANNEL_BATCH];
        CHECK_EQUAL(drivers[d]->receive(tx, datagrams, HELIO_CHANNEL_BATCH),
                    HELIO_SHM_FEEDBACK_SLOTS);
        CHECK_EQUAL(drivers[d]->send(rx, &tx->local, nak, 300, false), 0);
        drivers[d]->close(rx);
        drivers[d]->close(tx);
    }
}

static void a_packet_too_long_is_refused_and_counted(void) {
    for (int d = 0; d < 2; d++) {
        told here;
        helio_channel *tx = open_one(drivers[d], HELIO_CHANNEL_TRANSMIT, &here);
        const char packet[PACKET + 1] = "";
        CHECK_EQUAL(drivers[d]->send(tx, NULL, packet, PACKET, false), 0);
        CHECK(drivers[d]->send(tx, NULL, packet, PACKET + 1, false) < 0);
        CHECK_EQUAL(tx->counters.send_errors, 1);
        drivers[d]->close(tx);
    }
}

static void injected_loss_is_about_as_asked(void) {
    for (int d = 0; d < 2; d++) {
        told here, there;
        helio_channel *tx = open_one(drivers[d], HELIO_CHANNEL_TRANSMIT, &here);
        helio_channel_config lossy = config_of(HELIO_CHANNEL_RECEIVE, &there);
        lossy.inject_loss = 0.25;
        helio_channel *rx = open_with(drivers[d], &lossy);
        helio_datagram datagrams[HELIO_CHANNEL_BATCH];
        size_t kept = 0;
        for (uint64_t i = 0; i < 2000; i++) {
            send_number(tx, i);
            kept += drivers[d]->receive(rx, datagrams, HELIO_CHANNEL_BATCH);
        }
        CHECK(kept > 1350 && kept < 1650);
        CHECK_EQUAL(rx->counters.packets_received, kept);
        drivers[d]->close(tx);
        drivers[d]->close(rx);
    }
}

static void huge_pages_are_had_or_it_is_told_why_not(void) {
    for (int d = 0; d < 2; d++) {
        told here, there;
        memset(&here, 0, sizeof here);
        helio_channel_config huge = config_of(HELIO_CHANNEL_TRANSMIT, &here);
        huge.huge_pages = true;
        helio_channel *tx = open_with(drivers[d], &huge);
        if (here.count[HELIO_CHANNEL_FELL_BACK]) {
            CHECK_EQUAL(here.count[HELIO_CHANNEL_FELL_BACK], 1);
            CHECK(strstr(here.why, "ordinary pages"));
        }
        helio_channel *rx = open_one(drivers[d], HELIO_CHANNEL_RECEIVE, &there);
        send_number(tx, 0);
        CHECK_EQUAL(receive_numbers(rx, 0), 1);
        drivers[d]->close(tx);
        drivers[d]->close(rx);
    }
}

/* ---- the ring itself ---- */

/* A ring of plain memory. */
typedef struct bare {
    helio_shm_shape shape;
    uint8_t *memory;
    helio_shm_writer writer;
} bare;

static void bare_init(bare *ring, bool waits) {
    ring->shape = helio_shm_shape_of(SLOTS, PACKET);
    ring->memory = aligned_alloc(4096, ring->shape.bytes);
    CHECK(ring->memory);
    memset(ring->memory, 0, ring->shape.bytes);
    const helio_shm_writer_config config = {.shape = ring->shape,
                                            .process = helio_process_self(),
                                            .id = 1,
                                            .port = 1,
                                            .waits = waits,
                                            .now_ns = 1};
    helio_shm_writer_init(&ring->writer, ring->memory, &config);
}

static helio_shm_joined bare_join(const bare *ring, helio_shm_reader *reader) {
    const helio_shm_reader_config config = {.process = helio_process_self(), .bell = 2, .port = 2};
    bool wake;
    uint32_t version;
    return helio_shm_reader_join(reader, ring->memory, ring->shape.bytes, &config, &wake, &version);
}

static void a_full_ring_takes_no_more_readers_until_one_leaves(void) {
    bare ring;
    bare_init(&ring, false);
    helio_shm_reader readers[HELIO_SHM_READERS], one_more;
    for (int i = 0; i < HELIO_SHM_READERS; i++) {
        CHECK_EQUAL(bare_join(&ring, &readers[i]), HELIO_SHM_JOINED);
    }
    CHECK_EQUAL(bare_join(&ring, &one_more), HELIO_SHM_FULL);
    helio_shm_reader_news news[HELIO_SHM_READERS];
    CHECK_EQUAL(helio_shm_writer_look(&ring.writer, NULL, news), HELIO_SHM_READERS);
    CHECK_EQUAL(helio_shm_writer_look(&ring.writer, NULL, news), 0);
    bool wake;
    helio_shm_reader_leave(&readers[5], &wake);
    CHECK_EQUAL(bare_join(&ring, &one_more), HELIO_SHM_FULL);
    CHECK_EQUAL(helio_shm_writer_look(&ring.writer, NULL, news), 1);
    CHECK_EQUAL(news[0].event, HELIO_SHM_READER_LEFT);
    CHECK_EQUAL(bare_join(&ring, &one_more), HELIO_SHM_JOINED);
    CHECK_EQUAL(one_more.place, 5);
    free(ring.memory);
}

static bool nobody_lives(const helio_process *process) {
    (void)process;
    return false;
}

static void a_reader_that_died_while_taking_its_place_frees_it(void) {
    bare ring;
    bare_init(&ring, true);
    atomic_store(&ring.writer.ring->readers[3].claim,
                 UINT64_C(4711) << 8 | (uint64_t)HELIO_SHM_CLAIMED);
    helio_shm_reader_news news[HELIO_SHM_READERS];
    CHECK_EQUAL(helio_shm_writer_look(&ring.writer, nobody_lives, news), 0); /* nobody knew it */
    CHECK_EQUAL(atomic_load(&ring.writer.ring->readers[3].claim), HELIO_SHM_FREE);
    free(ring.memory);
}

static void headers_that_are_not_a_rings_are_refused(void) {
    bare ring;
    bare_init(&ring, false);
    helio_shm_geometry *geometry = &ring.writer.ring->geometry;
    const helio_shm_geometry whole = *geometry;
    const helio_shm_geometry broken[] = {
        {.magic = 1},           {.version = 99},      {.byte_order = 0x04030201},
        {.bytes = 1},           {.slots = 63},        {.slots = 32},
        {.slots = 1u << 21},    {.slots = 128},       {.packet_bytes = UINT32_MAX},
        {.packet_bytes = 2000}, {.readers = 1 << 30}, {.feedback_slots = 31},
        {.feedback_bytes = 1},
    };
    helio_shm_shape shape;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        uint32_t words[sizeof whole / 4];
        uint32_t changes[sizeof whole / 4];
        memcpy(words, &whole, sizeof whole);
        memcpy(changes, &broken[i], sizeof whole);
        for (size_t k = 0; k < sizeof whole / 4; k++) {
            words[k] = changes[k] ? changes[k] : words[k];
        }
        memcpy(geometry, words, sizeof whole);
        uint32_t version = 0;
        const helio_shm_checked expected =
            broken[i].version ? HELIO_SHM_OTHER_VERSION : HELIO_SHM_INVALID;
        if (helio_shm_check(ring.memory, ring.shape.bytes, &shape, &version) != expected ||
            version != broken[i].version) {
            CHECK_FAIL("header %zu was taken", i);
        }
    }
    *geometry = whole;
    uint32_t version;
    CHECK_EQUAL(helio_shm_check(ring.memory, ring.shape.bytes, &shape, &version), HELIO_SHM_VALID);
    CHECK_EQUAL(helio_shm_check(ring.memory, ring.shape.bytes - 4096, &shape, &version),
                HELIO_SHM_INVALID);
    CHECK_EQUAL(helio_shm_check(ring.memory, 100, &shape, &version), HELIO_SHM_INVALID);
    free(ring.memory);
}

static void slots_no_writer_wrote_end_the_reading(void) {
    bare ring;
    bare_init(&ring, false);
    helio_shm_reader reader;
    uint8_t packet[PACKET];
    size_t length;
    CHECK_EQUAL(bare_join(&ring, &reader), HELIO_SHM_JOINED);
    CHECK(helio_shm_writer_put(&ring.writer, "whole", 5));
    helio_shm_slot *slot = helio_shm_slot_of(reader.slots, reader.stride, reader.mask, 0);
    atomic_store(&slot->word, helio_shm_word(1, PACKET + 1));
    CHECK_EQUAL(helio_shm_reader_take(&reader, packet, sizeof packet, &length), HELIO_SHM_NONSENSE);
    atomic_store(&slot->word, helio_shm_word(7, 5)); /* packet 6 has another slot */
    CHECK_EQUAL(helio_shm_reader_take(&reader, packet, sizeof packet, &length), HELIO_SHM_NONSENSE);
    atomic_store(&slot->word, helio_shm_word(1 + SLOTS, 5)); /* and nobody claimed this one */
    CHECK_EQUAL(helio_shm_reader_take(&reader, packet, sizeof packet, &length), HELIO_SHM_NONSENSE);
    atomic_store(&slot->word, helio_shm_word(1, 5));
    atomic_store(&ring.writer.ring->claimed, 0);
    CHECK_EQUAL(helio_shm_reader_take(&reader, packet, sizeof packet, &length), HELIO_SHM_NONSENSE);
    atomic_store(&ring.writer.ring->claimed, ring.writer.claimed);
    CHECK_EQUAL(helio_shm_reader_take(&reader, packet, 4, &length), HELIO_SHM_TOO_SMALL);
    CHECK_EQUAL(helio_shm_reader_take(&reader, packet, 5, &length), HELIO_SHM_TAKEN);
    CHECK_EQUAL(length, 5);
    CHECK_BYTES(packet, "whole", 5);
    free(ring.memory);
}

static void feedback_of_a_mad_reader_is_not_believed(void) {
    bare ring;
    bare_init(&ring, true);
    helio_shm_reader reader;
    CHECK_EQUAL(bare_join(&ring, &reader), HELIO_SHM_JOINED);
    bool wake;
    CHECK(helio_shm_reader_say(&reader, "a", 1, &wake));
    helio_shm_slot *slot = helio_shm_feedback_slot(reader.feedback, reader.place, 0);
    atomic_store(&slot->word, UINT64_MAX);
    CHECK(helio_shm_reader_say(&reader, "b", 1, &wake));
    uint8_t packet[HELIO_SHM_FEEDBACK_BYTES];
    size_t length;
    helio_address from;
    CHECK(helio_shm_writer_hear(&ring.writer, packet, &length, &from));
    CHECK_EQUAL(length, 1);
    CHECK_EQUAL(packet[0], 'b');
    CHECK(!helio_shm_writer_hear(&ring.writer, packet, &length, &from));

    helio_shm_reader_place *place = &ring.writer.ring->readers[reader.place];
    atomic_store(&place->said, UINT64_C(1) << 60);
    atomic_store(&ring.writer.ring->bells.feedback, UINT64_MAX);
    CHECK(!helio_shm_writer_hear(&ring.writer, packet, &length, &from));
    atomic_store(&place->position, UINT64_C(1) << 60); /* ahead of what was written */
    CHECK_EQUAL(helio_shm_writer_room(&ring.writer), SLOTS);
    free(ring.memory);
}

/* Data as PGM has it: the first 16 bytes are always the same, but for the length. */
static size_t fill_data(uint8_t packet[PACKET], uint64_t number) {
    const size_t length = 24 + (size_t)(number * 31 % 200);
    memset(packet, (int)(number * 7 % 251), length);
    memcpy(packet, "\x0f\xa0\x0f\xa1\x04\0\0\0sender", 14);
    packet[14] = 0;
    packet[15] = (uint8_t)(length - 24);
    return length;
}

static void packets_with_the_rings_header_are_short_and_arrive_whole(void) {
    bare ring;
    bare_init(&ring, true);
    helio_shm_reader reader;
    CHECK_EQUAL(bare_join(&ring, &reader), HELIO_SHM_JOINED);
    for (uint64_t number = 0; number < 10 * SLOTS; number++) {
        uint8_t packet[PACKET], got[PACKET];
        size_t length = fill_data(packet, number), got_length;
        const unsigned kind = (unsigned)(number % 6);
        const size_t other = number * 5 % 16;
        if (kind == 1) {
            packet[other] ^= 1; /* another type, sender or length */
        } else if (kind == 2) {
            length = other; /* no whole header */
        }
        CHECK(helio_shm_writer_put(&ring.writer, packet, length));
        const helio_shm_slot *slot =
            helio_shm_slot_of(reader.slots, reader.stride, reader.mask, number);
        CHECK_EQUAL(atomic_load(&slot->word),
                    kind == 1 || kind == 2
                        ? helio_shm_word(number + 1, length)
                        : helio_shm_word(number + 1, length - 16) + HELIO_SHM_SHORT);
        CHECK_EQUAL(helio_shm_reader_take(&reader, got, sizeof got, &got_length), HELIO_SHM_TAKEN);
        CHECK_EQUAL(got_length, length);
        CHECK_BYTES(got, packet, length);
        helio_shm_reader_show(&reader);
    }
    free(ring.memory);
}

static void a_short_packet_too_long_with_its_header_ends_the_reading(void) {
    bare ring;
    bare_init(&ring, false);
    helio_shm_reader reader;
    uint8_t packet[PACKET];
    size_t length;
    CHECK_EQUAL(bare_join(&ring, &reader), HELIO_SHM_JOINED);
    CHECK(helio_shm_writer_put(&ring.writer, packet, fill_data(packet, 0)));
    helio_shm_slot *slot = helio_shm_slot_of(reader.slots, reader.stride, reader.mask, 0);
    atomic_store(&slot->word, helio_shm_word(1, PACKET - 15) + HELIO_SHM_SHORT);
    CHECK_EQUAL(helio_shm_reader_take(&reader, packet, sizeof packet, &length), HELIO_SHM_NONSENSE);
    atomic_store(&slot->word, helio_shm_word(1, PACKET - 16) + HELIO_SHM_SHORT);
    CHECK_EQUAL(helio_shm_reader_take(&reader, packet, PACKET - 1, &length), HELIO_SHM_TOO_SMALL);
    CHECK_EQUAL(helio_shm_reader_take(&reader, packet, PACKET, &length), HELIO_SHM_TAKEN);
    CHECK_EQUAL(length, PACKET);
    free(ring.memory);
}

static void a_claimed_slot_is_not_read(void) {
    bare ring;
    bare_init(&ring, false);
    helio_shm_reader reader;
    uint8_t packet[PACKET];
    size_t length;
    CHECK_EQUAL(bare_join(&ring, &reader), HELIO_SHM_JOINED);
    for (uint64_t number = 0; number < SLOTS; number++) {
        CHECK(helio_shm_writer_put(&ring.writer, &number, sizeof number));
    }
    CHECK_EQUAL(atomic_load(&ring.writer.ring->claimed), SLOTS);
    CHECK_EQUAL(helio_shm_reader_take(&reader, packet, sizeof packet, &length), HELIO_SHM_TAKEN);
    CHECK_EQUAL(reader.overruns, 0);
    CHECK(helio_shm_writer_put(&ring.writer, "next", 4)); /* slot 0, and 7 more are claimed */
    CHECK_EQUAL(helio_shm_reader_take(&reader, packet, sizeof packet, &length), HELIO_SHM_TAKEN);
    CHECK_EQUAL(reader.overruns, 15); /* what is claimed, and as many more */
    const uint64_t oldest = 16;
    CHECK_BYTES(packet, &oldest, sizeof oldest);
    free(ring.memory);
}

static void sequences_go_on_beyond_47_bits(void) {
    bare ring;
    bare_init(&ring, true);
    helio_shm_reader reader;
    const uint64_t start = (UINT64_C(1) << 47) - SLOTS;
    ring.writer.tail = ring.writer.claimed = start;
    ring.writer.limit = start + SLOTS;
    CHECK_EQUAL(bare_join(&ring, &reader), HELIO_SHM_JOINED);
    reader.position = start;
    helio_shm_reader_show(&reader);
    for (uint64_t i = 0; i < 3 * SLOTS; i++) {
        uint64_t got;
        size_t length;
        CHECK(helio_shm_writer_put(&ring.writer, &i, sizeof i));
        CHECK_EQUAL(helio_shm_reader_take(&reader, (uint8_t *)&got, sizeof got, &length),
                    HELIO_SHM_TAKEN);
        CHECK_EQUAL(got, i);
        helio_shm_reader_show(&reader);
    }
    CHECK(!helio_shm_reader_has_news(&reader));
    free(ring.memory);
}

/* ---- writer and reader at once ---- */

enum { RACE_PACKETS = 200000 };

typedef struct race {
    bare ring;
    _Atomic bool over;
} race;

/* Every byte follows from the packet's number, so a torn packet shows. */
static size_t fill(uint8_t packet[PACKET], uint64_t number) {
    const size_t length = 8 + (size_t)(number * 31 % 200);
    memcpy(packet, &number, 8);
    memset(packet + 8, (int)(number * 7 % 251), length - 8);
    return length;
}

static void *write_all(void *context) {
    race *all = context;
    uint8_t packet[PACKET];
    for (uint64_t number = 0; number < RACE_PACKETS; number++) {
        helio_shm_writer_put(&all->ring.writer, packet, fill(packet, number));
        if (number % 16 == 0) {
            helio_shm_writer_flush(&all->ring.writer);
        }
    }
    atomic_store(&all->over, true);
    return NULL;
}

static void what_is_overrun_while_being_read_is_never_delivered_torn(void) {
    race all = {.over = false};
    bare_init(&all.ring, false);
    helio_shm_reader reader;
    CHECK_EQUAL(bare_join(&all.ring, &reader), HELIO_SHM_JOINED);
    pthread_t writer;
    CHECK_EQUAL(pthread_create(&writer, NULL, write_all, &all), 0);
    uint64_t taken = 0, torn = 0;
    for (;;) {
        const bool over = atomic_load(&all.over);
        uint8_t packet[PACKET], expected[PACKET];
        size_t length = 0;
        const helio_shm_taken result =
            helio_shm_reader_take(&reader, packet, sizeof packet, &length);
        if (result == HELIO_SHM_TAKEN) {
            const size_t wanted = fill(expected, reader.position - 1);
            torn += length != wanted || memcmp(packet, expected, wanted) != 0;
            taken++;
        } else if (result == HELIO_SHM_NONSENSE) {
            torn++;
            break;
        } else if (over && !helio_shm_reader_has_news(&reader)) {
            break;
        }
    }
    pthread_join(writer, NULL);
    CHECK_EQUAL(torn, 0);
    CHECK_EQUAL(taken + reader.overruns, RACE_PACKETS);
    CHECK(taken > 0);
    free(all.ring.memory);
}

/* ---- processes ---- */

/* A process that opens a channel, says so, sends if it is a writer, and stays. */
static pid_t start_other(helio_channel_role role, uint64_t packets) {
    int ready[2];
    CHECK_EQUAL(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when a check of the parent fails */
        told all;
        memset(&all, 0, sizeof all);
        const helio_channel_config config = config_of(role, &all);
        helio_channel *channel = NULL;
        if (helio_driver_shm.open(&config, &channel) < 0) {
            _exit(1);
        }
        for (uint64_t number = 0; number < packets; number++) {
            helio_driver_shm.send(channel, NULL, &number, sizeof number, false);
        }
        helio_driver_shm.flush(channel);
        (void)!write(ready[1], "!", 1);
        for (;;) {
            pause();
        }
    }
    char sign;
    CHECK_EQUAL(read(ready[0], &sign, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
}

static void kill_other(pid_t child) {
    CHECK_EQUAL(kill(child, SIGKILL), 0);
    siginfo_t info;
    /* Dead, and yet in the list of processes until it is waited for. */
    CHECK_EQUAL(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
}

static void a_writer_killed_is_told_of_after_its_last_packet(void) {
    told there;
    helio_channel *rx = open_one(&helio_driver_shm, HELIO_CHANNEL_RECEIVE, &there);
    const pid_t child = start_other(HELIO_CHANNEL_TRANSMIT, 20);
    tend(rx);
    CHECK_EQUAL(there.count[HELIO_CHANNEL_CONNECTED], 1);
    kill_other(child);
    tend(rx);
    CHECK_EQUAL(there.count[HELIO_CHANNEL_PEER_CRASHED], 0); /* there is something to read */
    CHECK_EQUAL(receive_numbers(rx, 0), 20);
    tend(rx);
    CHECK_EQUAL(there.count[HELIO_CHANNEL_PEER_CRASHED], 1);
    CHECK_EQUAL(there.count[HELIO_CHANNEL_DISCONNECTED], 0);
    CHECK_EQUAL(rx->counters.connections, 0);
    CHECK_EQUAL(files_in_folder(".ring"), 0);
    CHECK_EQUAL(files_in_folder(".bell"), 1);
    waitpid(child, NULL, 0);
    helio_driver_shm.close(rx);
}

static void a_reader_killed_while_it_holds_the_ring_lets_it_go(void) {
    told here;
    memset(&here, 0, sizeof here);
    helio_channel_config waiting = config_of(HELIO_CHANNEL_TRANSMIT, &here);
    waiting.ring_wait = true;
    helio_channel *tx = open_with(&helio_driver_shm, &waiting);
    const pid_t child = start_other(HELIO_CHANNEL_RECEIVE, 0);
    uint64_t number = 0;
    for (; helio_driver_shm.room(tx) > 0; number++) {
        send_number(tx, number);
    }
    CHECK_EQUAL(number, SLOTS);
    tend(tx);
    CHECK_EQUAL(here.count[HELIO_CHANNEL_CONNECTED], 1);
    CHECK_EQUAL(helio_driver_shm.room(tx), 0); /* it lives and does not read */
    kill_other(child);
    tend(tx);
    CHECK_EQUAL(here.count[HELIO_CHANNEL_PEER_CRASHED], 1);
    CHECK_EQUAL(tx->counters.connections, 0);
    CHECK_EQUAL(helio_driver_shm.room(tx), SLOTS);
    waitpid(child, NULL, 0);
    helio_driver_shm.close(tx);
}

static void what_dead_processes_left_is_cleared_away(void) {
    for (int role = 0; role < 2; role++) {
        const pid_t child = start_other(role ? HELIO_CHANNEL_RECEIVE : HELIO_CHANNEL_TRANSMIT, 0);
        kill_other(child);
        waitpid(child, NULL, 0);
    }
    CHECK_EQUAL(files_in_folder(".bell"), 1); /* the second cleared the first one away */
    told there;
    helio_channel *rx = open_one(&helio_driver_shm, HELIO_CHANNEL_RECEIVE, &there);
    CHECK_EQUAL(there.count[HELIO_CHANNEL_CONNECTED], 0);
    CHECK_EQUAL(files_in_folder(".ring"), 0);
    CHECK_EQUAL(files_in_folder(".bell"), 1);
    helio_driver_shm.close(rx);
    CHECK_EQUAL(files_in_folder(".bell"), 0);
}

static void a_process_id_that_came_back_is_another_process(void) {
    helio_process self = helio_process_self();
    CHECK(helio_process_is_alive(&self));
    if (self.start) { /* there is a /proc */
        self.start++;
        CHECK(!helio_process_is_alive(&self));
    }
    CHECK(!helio_process_is_alive(&(helio_process){0, 0}));
    CHECK(!helio_process_is_alive(&(helio_process){UINT32_MAX, 0}));
}

static void closing_leaves_no_files(void) {
    told here, there;
    helio_channel *tx = open_one(&helio_driver_shm, HELIO_CHANNEL_TRANSMIT, &here);
    helio_channel *rx = open_one(&helio_driver_shm, HELIO_CHANNEL_RECEIVE, &there);
    CHECK_EQUAL(files_in_folder(".ring"), 1);
    CHECK_EQUAL(files_in_folder(".bell"), 2);
    struct stat about;
    CHECK_EQUAL(stat(folder, &about), 0);
    CHECK_EQUAL(about.st_mode & 0777, 0700);
    helio_driver_shm.close(tx);
    helio_driver_shm.close(rx);
    CHECK_EQUAL(files_in_folder(".ring") + files_in_folder(".bell") + files_in_folder(".make"), 0);
}

static void a_damaged_ring_is_not_joined_or_left(void) {
    told here, there, late;
    helio_channel *tx = open_one(&helio_driver_shm, HELIO_CHANNEL_TRANSMIT, &here);
    helio_channel *rx = open_one(&helio_driver_shm, HELIO_CHANNEL_RECEIVE, &there);
    char path[512] = "";
    DIR *directory = opendir(folder);
    for (const struct dirent *entry; (entry = readdir(directory));) {
        if (strstr(entry->d_name, ".ring")) {
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        }
    }
    closedir(directory);
    const int fd = open(path, O_RDWR);
    CHECK(fd >= 0);
    const helio_shm_shape shape = helio_shm_shape_of(SLOTS, PACKET);
    const uint64_t nonsense = helio_shm_word(12345, 5);
    CHECK_EQUAL(pwrite(fd, &nonsense, 8, (off_t)shape.slots_offset), 8);
    helio_datagram datagram;
    CHECK_EQUAL(helio_driver_shm.receive(rx, &datagram, 1), 0);
    tend(rx);
    CHECK_EQUAL(there.count[HELIO_CHANNEL_DISCONNECTED], 1);
    CHECK(strstr(there.why, "damaged"));
    const uint32_t old = 1;
    CHECK_EQUAL(pwrite(fd, &old, 4, offsetof(helio_shm_geometry, version)), 4);
    helio_channel *second = open_one(&helio_driver_shm, HELIO_CHANNEL_RECEIVE, &late);
    CHECK_EQUAL(late.count[HELIO_CHANNEL_CONNECTED], 0);
    CHECK_EQUAL(late.count[HELIO_CHANNEL_DISCONNECTED], 1);
    CHECK(strstr(late.why, "a ring of format version 1, but this program reads version 2"));
    helio_driver_shm.close(second);
    CHECK_EQUAL(pwrite(fd, &nonsense, 8, 0), 8); /* the magic */
    second = open_one(&helio_driver_shm, HELIO_CHANNEL_RECEIVE, &late);
    CHECK_EQUAL(late.count[HELIO_CHANNEL_CONNECTED], 0);
    CHECK_EQUAL(late.count[HELIO_CHANNEL_DISCONNECTED], 1);
    close(fd);
    helio_driver_shm.close(tx);
    helio_driver_shm.close(rx);
    helio_driver_shm.close(second);
}

static void a_folder_others_may_write_in_is_refused(void) {
    CHECK_EQUAL(chmod(folder, 0777), 0);
    told there;
    const helio_channel_config config = config_of(HELIO_CHANNEL_RECEIVE, &there);
    helio_channel *channel = NULL;
    const int error = helio_driver_shm.open(&config, &channel);
    chmod(folder, 0700);
    CHECK_EQUAL(error, HELIO_ERR_PERMISSION);
    CHECK(strstr(helio_error_sentence(), folder));
}

int main(void) {
    if (!mkdtemp(folder) || setenv("HELIOGRAPH_RING_DIR", folder, 1) < 0) {
        perror(folder);
        return 1;
    }
    RUN(packets_arrive_and_feedback_goes_back_to_the_writer_alone);
    RUN(a_reader_keeps_the_order_over_many_rounds_of_the_ring);
    RUN(a_reader_there_first_misses_nothing_and_a_late_one_begins_now);
    RUN(a_slow_reader_does_not_stop_the_writer_and_knows_what_it_missed);
    RUN(a_ring_that_waits_stops_at_its_slowest_reader);
    RUN(a_goodbye_comes_after_the_last_packet);
    RUN(sleepers_are_woken_and_nobody_else);
    RUN(feedback_that_nobody_hears_is_refused_and_counted);
    RUN(a_packet_too_long_is_refused_and_counted);
    RUN(injected_loss_is_about_as_asked);
    RUN(huge_pages_are_had_or_it_is_told_why_not);
    RUN(a_full_ring_takes_no_more_readers_until_one_leaves);
    RUN(a_reader_that_died_while_taking_its_place_frees_it);
    RUN(headers_that_are_not_a_rings_are_refused);
    RUN(slots_no_writer_wrote_end_the_reading);
    RUN(feedback_of_a_mad_reader_is_not_believed);
    RUN(packets_with_the_rings_header_are_short_and_arrive_whole);
    RUN(a_short_packet_too_long_with_its_header_ends_the_reading);
    RUN(a_claimed_slot_is_not_read);
    RUN(sequences_go_on_beyond_47_bits);
    RUN(what_is_overrun_while_being_read_is_never_delivered_torn);
    RUN(a_writer_killed_is_told_of_after_its_last_packet);
    RUN(a_reader_killed_while_it_holds_the_ring_lets_it_go);
    RUN(what_dead_processes_left_is_cleared_away);
    RUN(a_process_id_that_came_back_is_another_process);
    RUN(closing_leaves_no_files);
    RUN(a_damaged_ring_is_not_joined_or_left);
    RUN(a_folder_others_may_write_in_is_refused);
    char path[sizeof folder + 16];
    snprintf(path, sizeof path, "%s/generation", folder);
    unlink(path);
    rmdir(folder);
    return check_result();
}
