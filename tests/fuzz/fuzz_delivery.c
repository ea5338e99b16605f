/* Fuzz target for libFuzzer: batches, TOPICS entries and fragments of any content on their way from a stream's packets in order to
 * sinks.
 *
 * The input is a list of packets: a byte that says what it is (a loss, a whole packet, a fragment, ahead of its turn, a sink with
 * no room), two bytes of length, for a fragment twelve of its option, and the TSDU. */
#include "receive/delivery.h"

#include "check.h"
#include "reconciliation.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    IS_FRAGMENT = 1,
    IS_LOSS = 2,
    IS_AHEAD = 4,
    HAS_NO_ROOM = 8,
    IS_AGAIN = 16,
    MEMORY_MAX = 16 << 20
};

static const helio_moment now = {7000, 9000};
static size_t room;
static uint64_t sum;

static size_t take_some(void *context, const helio_message *messages, size_t count) {
    (void)context;
    const size_t taken = count < room ? count : room;
    for (size_t i = 0; i < taken; i++) { /* touch every byte */
        for (size_t k = 0; k < messages[i].length; k++) {
            sum += ((const uint8_t *)messages[i].data)[k];
        }
    }
    return taken;
}

static void take_loss(void *context, const helio_loss *loss) {
    (void)context;
    if (loss->count == 0) {
        abort();
    }
}

static uint32_t word(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* Passes one packet in memory that ends with it. */
static void pass(helio_delivery *delivery, uint64_t sequence, uint8_t what, const uint8_t *option,
                 const uint8_t *tsdu, size_t bytes) {
    uint8_t *copy = malloc(bytes ? bytes : 1);
    if (!copy) {
        abort();
    }
    memcpy(copy, tsdu, bytes);
    helio_rxw_packet packet = {.tsdu = copy, .bytes = (uint32_t)bytes, .arrival_ns = 6500};
    if (what & IS_FRAGMENT) {
        packet.is_fragment = true;
        packet.fragment = (helio_pgm_fragment){word(option), word(option + 4), word(option + 8)};
        if (option[3] & 1) { /* near enough to be put together */
            packet.fragment =
                (helio_pgm_fragment){(uint32_t)sequence - option[0], word(option + 4) & 0xFFFF,
                                     word(option + 8) & 0xFFFF};
        }
    }
    if (what & IS_AHEAD) {
        helio_delivery_ahead(delivery, &packet, now);
    }
    room = what & HAS_NO_ROOM ? what >> 6 : SIZE_MAX;
    helio_delivery_result result = helio_delivery_pass(delivery, sequence, &packet, now);
    room = SIZE_MAX;
    if (result == HELIO_DELIVERY_FULL) {
        result = helio_delivery_pass(delivery, sequence, &packet, now);
    }
    if (result == HELIO_DELIVERY_FULL) {
        abort(); /* there was room */
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const helio_stats_config config = {.name = "fuzz", .bytes = 1 << 19, .level = 0, .wall_ns = 1};
    helio_stats *stats;
    helio_stats_object instance;
    helio_rxw window = {0};
    helio_delivery delivery;
    const helio_tsi tsi = {{1, 2, 3, 4, 5, 6}, 7};
    if (size < 1 || helio_stats_create(&config, &stats) != 0) {
        return 0;
    }
    if (helio_stats_open_object(stats, HELIO_SCOPE_INSTANCE, "", 1, &instance) != 0) {
        abort();
    }
    helio_subscriptions shared = {.stats = stats,
                                  .instance = instance.record,
                                  .instance_name = "fuzz",
                                  .endpoint = "rmm://x",
                                  .max_message_bytes = 50000,
                                  .window_packets = 16,
                                  .is_raw = data[0] & 1};
    static const char *const topics[] = {"a", "b", "a"};
    helio_subscription *found[3];
    for (int i = 0; i < 3; i++) {
        const helio_sink sink = {.on_messages = take_some,
                                 .on_loss = take_loss,
                                 .ack = i == 1 ? HELIO_SINK_ACK_APP : HELIO_SINK_ACK_NONE};
        if (helio_subscriptions_add(&shared, topics[i], &sink, &found[i]) != 0) {
            abort();
        }
    }
    if (helio_delivery_init(&delivery, &shared, &window, &tsi, data[0] & 2) != 0) {
        abort();
    }
    uint64_t sequence = data[0] & 4 ? UINT64_C(0xFFFFFFF0) : 100;
    data++, size--;
    while (size >= 3) {
        const uint8_t what = data[0];
        const size_t head = what & IS_FRAGMENT ? 15 : 3;
        size_t bytes = (size_t)data[1] << 8 | data[2];
        if (size < head) {
            break;
        }
        bytes = bytes < size - head ? bytes : size - head;
        if (what & IS_LOSS) {
            helio_delivery_on_packets_lost(&delivery, sequence, 1 + what / 32, now);
            sequence += 1 + what / 32;
        }
        pass(&delivery, sequence, what, data + 3, data + head, bytes);
        sequence++;
        if (what & IS_AGAIN) {
            helio_delivery_acknowledge(&delivery, found[1], 0, what);
        }
        if (!books_hold(stats)) {
            abort();
        }
        const helio_instance_stats *counts = instance.record;
        if (helio_cell(&counts->memory_used) > MEMORY_MAX) {
            abort();
        }
        data += head + bytes;
        size -= head + bytes;
    }
    helio_delivery_fini(&delivery, now);
    while (shared.first) {
        helio_subscriptions_remove(&shared, shared.first);
    }
    if (helio_cell(&((helio_instance_stats *)instance.record)->memory_used) != 0) {
        abort();
    }
    helio_stats_destroy(stats);
    return sum == UINT64_MAX; /* so that it is not left out */
}
