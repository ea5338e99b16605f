/* Fuzz target for libFuzzer: a ring whose memory holds any bytes, read as a reader and heard as a writer.
 *
 *     clang -std=c11 -g -O1 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -Iengine/core -Iengine/include \
 *         tests/fuzz/fuzz_ring.c engine/core/io/shm_ring.c engine/core/io/shm_reader.c engine/core/io/shm_writer.c \
 *         engine/core/io/process.c -o fuzz_ring
 *
 * The input is a list of changes, offset (4 bytes) and word (8 bytes), made to a whole ring with packets in it: before anyone
 * joins, and between the reads.  Half of the offsets lead to the header, where most of the meaning is. */
#include <stdlib.h>

#include "io/shm_reader.h"
#include "io/shm_writer.h"

enum { SLOTS = HELIO_SHM_SLOTS_MIN, PACKET = 200, CHANGE = 12, READS = 8 };

static void change(uint8_t *memory, const helio_shm_shape *shape, const uint8_t *data) {
    uint32_t offset;
    memcpy(&offset, data, sizeof offset);
    const size_t range = offset & 1 ? sizeof(helio_shm_ring) : shape->bytes;
    memcpy(memory + (offset >> 1) % (range - 8), data + 4, 8);
}

static bool is_any_alive(const helio_process *process) {
    return process->pid & 1;
}

static void use(helio_shm_writer *writer, helio_shm_reader *reader) {
    uint8_t packet[PACKET];
    uint8_t feedback[HELIO_SHM_FEEDBACK_BYTES];
    helio_shm_reader_news news[HELIO_SHM_READERS];
    helio_address from;
    size_t length;
    bool wake;
    for (int i = 0; i < READS && helio_shm_reader_take(reader, packet, sizeof packet, &length) ==
                                     HELIO_SHM_TAKEN;
         i++) {
        if (length > sizeof packet) {
            abort();
        }
    }
    helio_shm_reader_show(reader);
    helio_shm_reader_say(reader, packet, sizeof packet, &wake);
    helio_shm_reader_sleep(reader);
    helio_shm_reader_rise(reader);
    for (int i = 0; i < READS && helio_shm_writer_hear(writer, feedback, &length, &from); i++) {
        if (length > sizeof feedback) {
            abort();
        }
    }
    if (helio_shm_writer_look(writer, is_any_alive, news) > HELIO_SHM_READERS) {
        abort();
    }
    if (writer->waits && helio_shm_writer_room(writer) > SLOTS) {
        abort();
    }
    helio_shm_writer_put(writer, packet, sizeof packet);
    helio_shm_writer_flush(writer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t *memory;
    const helio_shm_shape shape = helio_shm_shape_of(SLOTS, PACKET);
    memory = memory ? memory : aligned_alloc(HELIO_SHM_PAGE, shape.bytes);
    if (!memory) {
        abort();
    }
    memset(memory, 0, shape.bytes);
    helio_shm_writer writer;
    const helio_shm_writer_config config = {
        .shape = shape, .process = {1, 1}, .id = 1, .port = 1, .waits = size & 1, .now_ns = 1};
    helio_shm_writer_init(&writer, memory, &config);
    for (int i = 0; i < SLOTS / 2; i++) {
        helio_shm_writer_put(&writer, memory, PACKET);
    }
    helio_shm_writer_flush(&writer);

    size_t at = 0;
    for (size_t half = size / 2; at + CHANGE <= half; at += CHANGE) {
        change(memory, &shape, data + at);
    }
    helio_shm_reader reader;
    bool wake;
    uint32_t version;
    const helio_shm_reader_config join = {.process = {3, 1}, .bell = 2, .port = 2};
    if (helio_shm_reader_join(&reader, memory, shape.bytes, &join, &wake, &version) !=
        HELIO_SHM_JOINED) {
        return 0;
    }
    for (; at + CHANGE <= size; at += CHANGE) {
        use(&writer, &reader);
        change(memory, &shape, data + at);
    }
    use(&writer, &reader);
    helio_shm_reader_leave(&reader, &wake);
    return 0;
}
