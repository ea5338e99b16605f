/* The message store: its format, its writer through crashes at every write, full disks, damage and
 * retention, and its reader. */
#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <heliograph/errors.h>

#include "store/crc32c.h"
#include "store/files.h"
#include "store/reader.h"
#include "store/store.h"

static char folder[64];
static const helio_tsi stream_one = {{0xa1, 0xb2, 0xc3, 0xd4, 0xe5, 0xf6}, 7500};
static const helio_tsi stream_two = {{0xa1, 0xb2, 0xc3, 0xd4, 0xe5, 0xf6}, 7501};
static const helio_store_span everything = {0, UINT64_MAX};

/* ---- a directory for each test ---- */

static void each_file(void (*act)(const char *path)) {
    DIR *listing = opendir(folder);
    for (const struct dirent *entry; listing && (entry = readdir(listing));) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.') {
            act(path);
        }
    }
    if (listing) {
        closedir(listing);
    }
}

static void remove_path(const char *path) {
    unlink(path);
}

static void begin_folder(void) {
    if (folder[0]) {
        each_file(remove_path);
        rmdir(folder);
    }
    snprintf(folder, sizeof folder, "/tmp/helio-store-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
}

static const char *path_of(uint64_t number, const char *suffix) {
    static char path[160];
    char name[HELIO_STORE_NAME_BYTES];
    const helio_store_id id = {stream_one, number};
    snprintf(path, sizeof path, "%s/%s", folder, helio_store_name(name, &id, suffix));
    return path;
}

static off_t size_of(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 ? about.st_size : -1;
}

/* ---- a system that fails ---- */

/* Counts the calls that change files; from call `dies_at` on every call fails, the first of them
 * after `part` of 4 quarters of its bytes. */
typedef struct failing {
    int calls, dies_at, part, error;
    bool is_full;
    size_t room;
} failing;

static bool is_dead(failing *system, bool *is_first) {
    system->calls++;
    *is_first = system->calls == system->dies_at;
    errno = system->error ? system->error : EIO;
    return system->dies_at > 0 && system->calls >= system->dies_at;
}

static int failing_create(void *context, int at, const char *name, int flags) {
    bool is_first;
    if (is_dead(context, &is_first)) {
        return -1;
    }
    return helio_store_system.create(NULL, at, name, flags);
}

static ssize_t failing_write(void *context, int file, const void *bytes, size_t count, off_t at) {
    failing *system = context;
    bool is_first;
    if (is_dead(system, &is_first)) {
        if (is_first) {
            (void)!pwrite(file, bytes, count * (size_t)system->part / 4, at);
        }
        errno = EIO;
        return -1;
    }
    if (system->is_full) {
        const size_t some = count < system->room ? count : system->room;
        system->room -= some;
        errno = ENOSPC;
        return some > 0 ? pwrite(file, bytes, some, at) : -1;
    }
    return pwrite(file, bytes, count, at);
}

static int failing_sync(void *context, int file) {
    bool is_first;
    (void)file;
    return is_dead(context, &is_first) ? -1 : 0;
}

static int failing_truncate(void *context, int file, off_t bytes) {
    bool is_first;
    return is_dead(context, &is_first) ? -1 : ftruncate(file, bytes);
}

static int failing_remove(void *context, int at, const char *name) {
    bool is_first;
    return is_dead(context, &is_first) ? -1 : unlinkat(at, name, 0);
}

static helio_store_os failing_os(failing *system) {
    return (helio_store_os){system,       failing_create,   failing_write,
                            failing_sync, failing_truncate, failing_remove};
}

/* Without fsync: recovery in a test is fast. */
static failing calm;
static helio_store_os calm_os;

/* ---- messages ---- */

static helio_store_options small_segments(void) {
    helio_store_options options = helio_store_defaults();
    options.batch_bytes = 300;
    options.segment_bytes = 1500;
    return options;
}

static size_t payload_bytes(uint64_t i) {
    return (size_t)(i * 7 % 60);
}

/* Message i of a stream: sequence 1000 + i, number i, received at 10 i. */
static int append(helio_store_stream *stream, uint64_t i, uint64_t *position) {
    uint8_t payload[64];
    memset(payload, (int)i, sizeof payload);
    const char *topic = i % 3 ? "PRICES.FX" : "PRICES.BONDS";
    const helio_store_message message = {.topic = topic,
                                         .topic_bytes = strlen(topic),
                                         .sequence = 1000 + i,
                                         .number = i,
                                         .submit_ns = 10 * i - 1,
                                         .receive_ns = 10 * i,
                                         .flags = i % 5 == 0 ? HELIO_STORE_RECOVERED : 0,
                                         .payload = payload,
                                         .bytes = payload_bytes(i)};
    return helio_store_append(stream, &message, 10 * i, position);
}

static helio_store *open_store(const helio_store_options *options, helio_store_stream **stream) {
    helio_store *store;
    CHECK_EQUAL(helio_store_open(folder, options, &calm_os, &store), 0);
    CHECK_EQUAL(helio_store_stream_open(store, &stream_one, "192.0.2.1:7500", stream), 0);
    return store;
}

static void fill(uint64_t count, const helio_store_options *options) {
    helio_store_stream *stream;
    helio_store *store = open_store(options, &stream);
    for (uint64_t i = helio_store_appended(stream) + 1; i <= count; i++) {
        uint64_t position;
        CHECK_EQUAL(append(stream, i, &position), 0);
        CHECK_EQUAL(position, i);
    }
    CHECK_EQUAL(helio_store_close(store), 0);
}

/* Reads a range: messages first to last in order and whole.  Returns their number, or an error. */
static int64_t read_range(helio_store_by by, helio_store_span range, uint64_t first) {
    helio_store_reader *reader;
    int result = helio_store_reader_open(folder, &stream_one, by, range, &reader);
    int64_t count = 0;
    helio_store_message message;
    for (uint64_t position, i = first;
         !result && (result = helio_store_reader_next(reader, &message, &position)) == 1; i++) {
        CHECK_EQUAL(position, i);
        CHECK_EQUAL(message.sequence, 1000 + i);
        CHECK_EQUAL(message.number, i);
        CHECK_EQUAL(message.submit_ns, 10 * i - 1);
        CHECK_EQUAL(message.receive_ns, 10 * i);
        CHECK_EQUAL(message.flags, i % 5 == 0 ? HELIO_STORE_RECOVERED : 0);
        CHECK_EQUAL(message.topic_bytes, i % 3 ? 9 : 12);
        CHECK_BYTES(message.topic, i % 3 ? "PRICES.FX" : "PRICES.BONDS", message.topic_bytes);
        CHECK_EQUAL(message.bytes, payload_bytes(i));
        for (size_t k = 0; k < message.bytes; k++) {
            CHECK_EQUAL(((const uint8_t *)message.payload)[k], (uint8_t)i);
        }
        count++;
        result = 0;
    }
    helio_store_reader_close(reader);
    return result < 0 ? result : count;
}

static int64_t read_all(void) {
    return read_range(HELIO_STORE_BY_POSITION, everything, 1);
}

/* ---- tests ---- */

static void checks_are_those_of_rfc_3720(void) {
    uint8_t bytes[32];
    uint32_t (*const ways[])(const void *, size_t) = {helio_crc32c, helio_crc32c_portable};
    for (int way = 0; way < 2; way++) {
        memset(bytes, 0, sizeof bytes);
        CHECK_EQUAL(ways[way](bytes, 32), 0x8A9136AA);
        memset(bytes, 0xFF, sizeof bytes);
        CHECK_EQUAL(ways[way](bytes, 32), 0x62A8AB43);
        for (int i = 0; i < 32; i++) {
            bytes[i] = (uint8_t)i;
        }
        CHECK_EQUAL(ways[way](bytes, 32), 0x46DD794E);
        for (int i = 0; i < 32; i++) {
            bytes[i] = (uint8_t)(31 - i);
        }
        CHECK_EQUAL(ways[way](bytes, 32), 0x113FDB5C);
        const uint8_t read_pdu[48] = {0x01,        0xC0,        [16] = 0x14, [22] = 0x04,
                                      [27] = 0x14, [31] = 0x18, [32] = 0x28, [40] = 0x02};
        CHECK_EQUAL(ways[way](read_pdu, 48), 0xD9963A56);
    }
    for (size_t length = 0; length <= 32; length++) {
        CHECK_EQUAL(helio_crc32c(bytes, length), helio_crc32c_portable(bytes, length));
    }
}

static void a_header_decodes_only_whole_and_undamaged(void) {
    uint8_t bytes[HELIO_STORE_HEADER_MAX];
    const helio_store_header in = {.tsi = stream_one,
                                   .number = 3,
                                   .position = 77,
                                   .created_ns = 5,
                                   .source = "x:1",
                                   .source_bytes = 3};
    const size_t count = helio_store_put_header(bytes, &in);
    helio_store_header out;
    CHECK_EQUAL(helio_store_get_header(bytes, count, &out), HELIO_STORE_OK);
    CHECK(helio_tsi_equal(&out.tsi, &in.tsi) && out.number == 3 && out.position == 77);
    CHECK(out.source_bytes == 3 && memcmp(out.source, "x:1", 3) == 0 && out.bytes == count);
    for (size_t cut = 0; cut < count; cut++) {
        CHECK_EQUAL(helio_store_get_header(bytes, cut, &out), HELIO_STORE_SHORT);
    }
    for (size_t bit = 0; bit < count * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK(helio_store_get_header(bytes, count, &out) != HELIO_STORE_OK);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static void ranges_by_position_sequence_number_and_time(void) {
    begin_folder();
    const helio_store_options options = small_segments();
    fill(200, &options);
    CHECK(size_of(path_of(2, "seg")) > 0 && size_of(path_of(1, "idx")) > 0);
    CHECK_EQUAL(read_all(), 200);
    for (int pass = 0; pass < 2; pass++) { /* with and without the indexes */
        for (uint64_t first = 1; first <= 200; first += 13) {
            const uint64_t last = first + 40 < 200 ? first + 40 : 200;
            const int64_t count = (int64_t)(last - first + 1);
            const helio_store_span plain = {first, last}, far = {1000 + first, 1000 + last},
                                   times = {10 * first, 10 * last + 9};
            CHECK_EQUAL(read_range(HELIO_STORE_BY_POSITION, plain, first), count);
            CHECK_EQUAL(read_range(HELIO_STORE_BY_NUMBER, plain, first), count);
            CHECK_EQUAL(read_range(HELIO_STORE_BY_SEQUENCE, far, first), count);
            CHECK_EQUAL(read_range(HELIO_STORE_BY_TIME, times, first), count);
        }
        for (uint64_t number = 1; number < 20; number++) {
            unlink(path_of(number, "idx"));
        }
    }
    CHECK_EQUAL(read_range(HELIO_STORE_BY_NUMBER, (helio_store_span){201, 900}, 1), 0);
}

/* Messages of the batches that a reader gives for a range and a topic; each batch decodes by itself. */
static uint64_t read_batches(helio_store_span range, const char *topic) {
    helio_store_reader *reader;
    CHECK_EQUAL(
        helio_store_reader_open(folder, &stream_one, HELIO_STORE_BY_POSITION, range, &reader), 0);
    static helio_store_records records;
    const helio_store_choice choice = {HELIO_STORE_BY_POSITION, range};
    uint64_t count = 0;
    const uint8_t *whole;
    size_t bytes;
    int result;
    while ((result = helio_store_reader_batch(reader, topic, topic ? strlen(topic) : 0, &whole,
                                              &bytes)) == 1) {
        helio_store_batch batch = {0};
        CHECK_EQUAL(helio_store_get_head(whole, bytes, &batch), HELIO_STORE_OK);
        CHECK_EQUAL(bytes, HELIO_STORE_HEAD_BYTES + (size_t)batch.body_bytes);
        const uint8_t *body = whole + HELIO_STORE_HEAD_BYTES;
        CHECK_EQUAL(helio_store_check_batch(&batch, body, batch.body_bytes), HELIO_STORE_OK);
        CHECK(!topic || helio_store_has_topic(&batch, body, topic, strlen(topic)));
        helio_store_records_begin(&records, &batch, body);
        helio_store_message message;
        uint64_t position;
        while (helio_store_records_next(&records, &choice, &message, &position) == 1) {
            CHECK_EQUAL(message.number, position);
            count++;
        }
    }
    CHECK_EQUAL(result, 0);
    helio_store_reader_close(reader);
    return count;
}

static void batches_are_sent_as_they_are_in_the_files(void) {
    begin_folder();
    helio_store_options options = helio_store_defaults();
    options.batch_bytes = 300;
    options.segment_bytes = 4000;
    fill(200, &options);
    CHECK_EQUAL(read_batches(everything, NULL), 200);
    CHECK_EQUAL(read_batches((helio_store_span){17, 99}, NULL), 83);
    CHECK_EQUAL(read_batches((helio_store_span){201, 900}, NULL), 0);
    CHECK(read_batches(everything, "PRICES.FX") > 100);
    CHECK_EQUAL(read_batches(everything, "PRICES.F"), 0);
    CHECK_EQUAL(read_batches(everything, ""), 0);
}

static void positions_are_durable_after_the_batch(void) {
    begin_folder();
    failing system = {0};
    const helio_store_os os = failing_os(&system);
    helio_store_options options = helio_store_defaults();
    helio_store *store;
    helio_store_stream *stream;
    uint64_t position;
    CHECK_EQUAL(helio_store_open(folder, &options, &os, &store), 0);
    CHECK_EQUAL(helio_store_stream_open(store, &stream_one, "", &stream), 0);
    for (uint64_t i = 1; i <= 100; i++) {
        CHECK_EQUAL(append(stream, i, &position), 0);
    }
    CHECK_EQUAL(helio_store_appended(stream), 100);
    CHECK_EQUAL(helio_store_durable(stream), 0);
    CHECK_EQUAL(helio_store_poll(store, 10 + options.batch_time_ns - 1), 0);
    CHECK_EQUAL(helio_store_durable(stream), 0);
    const int before = system.calls;
    CHECK_EQUAL(helio_store_poll(store, 10 + options.batch_time_ns), 0);
    CHECK_EQUAL(helio_store_durable(stream), 100);
    CHECK_EQUAL(system.calls - before, 6); /* create, header, fsync twice, batch, fsync */
    CHECK_EQUAL(helio_store_close(store), 0);

    options.fsync = HELIO_STORE_FSYNC_ALWAYS;
    store = open_store(&options, &stream);
    CHECK_EQUAL(append(stream, 101, &position), 0);
    CHECK_EQUAL(helio_store_durable(stream), 101);
    CHECK_EQUAL(helio_store_close(store), 0);

    options.fsync = HELIO_STORE_FSYNC_NEVER;
    store = open_store(&options, &stream);
    CHECK_EQUAL(append(stream, 102, &position), 0);
    CHECK_EQUAL(helio_store_flush(stream), 0);
    CHECK_EQUAL(helio_store_written(stream), 102);
    CHECK_EQUAL(helio_store_durable(stream), 0);
    CHECK_EQUAL(helio_store_close(store), 0);
    CHECK_EQUAL(read_all(), 102);
}

/* Writes 40 messages until the system dies.  Returns false when it did not. */
static bool crash_at(int call, int part, const helio_store_options *options, uint64_t *appended,
                     uint64_t *durable) {
    failing system = {.dies_at = call, .part = part};
    const helio_store_os os = failing_os(&system);
    helio_store *store;
    helio_store_stream *stream;
    *appended = *durable = 0;
    if (helio_store_open(folder, options, &os, &store) == 0) {
        if (helio_store_stream_open(store, &stream_one, "", &stream) == 0) {
            uint64_t position;
            for (uint64_t i = 1; i <= 40 && append(stream, i, &position) == 0; i++) {
            }
            *appended = helio_store_appended(stream);
            *durable = helio_store_durable(stream);
        }
        helio_store_close(store);
    }
    return system.calls >= call;
}

static void a_crash_at_any_call_leaves_a_prefix(void) {
    helio_store_options options = small_segments();
    for (int fsync = 0; fsync < 3; fsync++) {
        options.fsync = (helio_store_fsync)fsync;
        bool has_died = true;
        for (int call = 1; has_died; call++) {
            for (int part = 0; part <= 4 && has_died; part++) {
                begin_folder();
                uint64_t appended, durable;
                has_died = crash_at(call, part, &options, &appended, &durable);
                helio_store_stream *stream;
                helio_store *store = open_store(&options, &stream);
                const uint64_t kept = helio_store_written(stream);
                CHECK(kept >= durable && kept <= appended);
                CHECK_EQUAL(read_all(), kept);
                uint64_t position;
                for (uint64_t i = kept + 1; i <= 60; i++) {
                    CHECK_EQUAL(append(stream, i, &position), 0);
                    CHECK_EQUAL(position, i);
                }
                CHECK_EQUAL(helio_store_close(store), 0);
                CHECK_EQUAL(read_all(), 60);
            }
            CHECK(call < 1000);
        }
    }
}

static void a_file_cut_at_any_byte_is_a_prefix(void) {
    begin_folder();
    helio_store_options options = small_segments();
    options.segment_bytes = 1 << 20;
    fill(20, &options);
    const off_t whole = size_of(path_of(1, "seg"));
    uint8_t copy[8192];
    int file = open(path_of(1, "seg"), O_RDONLY);
    CHECK(whole > 0 && whole < (off_t)sizeof copy && pread(file, copy, sizeof copy, 0) == whole);
    close(file);
    int64_t most = 0;
    for (off_t cut = 0; cut < whole; cut++) {
        file = open(path_of(1, "seg"), O_RDWR | O_CREAT | O_TRUNC, 0600);
        CHECK(pwrite(file, copy, (size_t)cut, 0) == cut);
        if (cut % 2) { /* the length reached the disk, the bytes did not */
            CHECK(ftruncate(file, cut + 700) == 0);
        }
        close(file);
        helio_store_stream *stream;
        helio_store *store;
        CHECK_EQUAL(helio_store_open(folder, &options, &calm_os, &store), 0);
        const int error = helio_store_stream_open(store, &stream_one, "", &stream);
        if (error) { /* zeros after a part of a head or body look like damage */
            CHECK(cut % 2 == 1);
            CHECK_EQUAL(error, HELIO_ERR_STATE);
        } else {
            const int64_t kept = (int64_t)helio_store_written(stream);
            CHECK(kept >= (cut % 2 ? 0 : most) && kept < 20);
            most = cut % 2 ? most : kept;
            CHECK_EQUAL(read_all(), kept);
        }
        CHECK_EQUAL(helio_store_close(store), 0);
    }
    CHECK(most > 0);
}

static void a_flipped_bit_is_never_delivered(void) {
    begin_folder();
    helio_store_options options = small_segments();
    fill(30, &options);
    const off_t whole = size_of(path_of(1, "seg"));
    const int file = open(path_of(1, "seg"), O_RDWR);
    for (off_t at = 0; at < 2 * whole; at++) {
        const bool has_index = at < whole; /* then heads are not read */
        if (at == whole) {
            unlink(path_of(1, "idx"));
        }
        uint8_t byte;
        CHECK(pread(file, &byte, 1, at % whole) == 1);
        byte ^= (uint8_t)(1 << at % 8);
        CHECK(pwrite(file, &byte, 1, at % whole) == 1);
        const int64_t result = read_all();
        CHECK(result == HELIO_ERR_STATE || (has_index && result == 30));
        byte ^= (uint8_t)(1 << at % 8);
        CHECK(pwrite(file, &byte, 1, at % whole) == 1);
    }
    close(file);
    CHECK_EQUAL(read_all(), 30);
}

static void damage_in_the_last_segment_is_refused_or_cut(void) {
    begin_folder();
    helio_store_options options = small_segments();
    options.segment_bytes = 1 << 20;
    fill(40, &options);
    const int file = open(path_of(1, "seg"), O_RDWR);
    CHECK(pwrite(file, "\xEE", 1, 500) == 1);
    close(file);
    const off_t before = size_of(path_of(1, "seg"));
    helio_store *store;
    helio_store_stream *stream;
    CHECK_EQUAL(helio_store_open(folder, &options, NULL, &store), 0);
    CHECK_EQUAL(helio_store_stream_open(store, &stream_one, "", &stream), HELIO_ERR_STATE);
    CHECK_EQUAL(helio_store_close(store), 0);
    CHECK_EQUAL(size_of(path_of(1, "seg")), before);
    options.cut_damage = true;
    store = open_store(&options, &stream);
    CHECK(helio_store_cut_bytes(stream) > 0);
    CHECK(helio_store_written(stream) < 40);
    CHECK_EQUAL(read_all(), helio_store_written(stream));
    CHECK_EQUAL(helio_store_close(store), 0);
}

static void a_full_disk_loses_nothing_that_was_taken(void) {
    begin_folder();
    failing system = {0};
    const helio_store_os os = failing_os(&system);
    const helio_store_options options = small_segments();
    helio_store *store;
    helio_store_stream *stream;
    uint64_t position;
    CHECK_EQUAL(helio_store_open(folder, &options, &os, &store), 0);
    CHECK_EQUAL(helio_store_stream_open(store, &stream_one, "", &stream), 0);
    uint64_t i = 1;
    for (size_t room = 0; room < 400; room += 50) {
        system.is_full = true;
        system.room = room;
        int error = 0;
        while (!error) {
            error = append(stream, i, &position);
            i += error == 0;
        }
        CHECK_EQUAL(error, HELIO_ERR_SYSTEM);
        CHECK_EQUAL(read_all(), helio_store_durable(stream));
        system.is_full = false;
        CHECK_EQUAL(append(stream, i++, &position), 0);
    }
    CHECK_EQUAL(helio_store_close(store), 0);
    CHECK_EQUAL(read_all(), i - 1);
}

static void a_failed_fsync_closes_the_stream(void) {
    begin_folder();
    failing system = {0};
    const helio_store_os os = failing_os(&system);
    const helio_store_options options = helio_store_defaults();
    helio_store *store;
    helio_store_stream *stream;
    uint64_t position;
    CHECK_EQUAL(helio_store_open(folder, &options, &os, &store), 0);
    CHECK_EQUAL(helio_store_stream_open(store, &stream_one, "", &stream), 0);
    CHECK_EQUAL(append(stream, 1, &position), 0);
    CHECK_EQUAL(helio_store_flush(stream), 0);
    CHECK_EQUAL(append(stream, 2, &position), 0);
    system.dies_at = system.calls + 2; /* the fsync of the batch */
    CHECK_EQUAL(helio_store_flush(stream), HELIO_ERR_SYSTEM);
    system.dies_at = 0;
    CHECK_EQUAL(append(stream, 3, &position), HELIO_ERR_STATE);
    CHECK_EQUAL(helio_store_durable(stream), 1);
    CHECK_EQUAL(helio_store_close(store), 0);
}

static void one_writer_holds_a_directory(void) {
    begin_folder();
    const helio_store_options options = helio_store_defaults();
    helio_store *store, *other;
    CHECK_EQUAL(helio_store_open(folder, &options, NULL, &store), 0);
    CHECK_EQUAL(helio_store_open(folder, &options, NULL, &other), HELIO_ERR_STATE);
    CHECK(other == NULL);
    CHECK_EQUAL(helio_store_close(store), 0);
    CHECK_EQUAL(helio_store_open(folder, &options, NULL, &store), 0);
    CHECK_EQUAL(helio_store_close(store), 0);
}

static void a_directory_that_cannot_be_written_is_refused(void) {
    begin_folder();
    failing system = {.dies_at = 1, .error = EROFS};
    const helio_store_os os = failing_os(&system);
    const helio_store_options options = helio_store_defaults();
    helio_store *store;
    CHECK_EQUAL(helio_store_open(folder, &options, &os, &store), HELIO_ERR_SYSTEM);
    CHECK_EQUAL(helio_store_open("/nonexistent", &options, NULL, &store), HELIO_ERR_SYSTEM);
    CHECK_EQUAL(read_all(), HELIO_ERR_SYSTEM); /* it is not a store */
}

static void other_versions_are_refused_and_left_alone(void) {
    begin_folder();
    const helio_store_options options = helio_store_defaults();
    char path[100];
    snprintf(path, sizeof path, "%s/" HELIO_STORE_LOCK, folder);
    int file = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(write(file, "heliograph store 2\n", 19) == 19);
    close(file);
    helio_store *store;
    helio_store_stream *stream;
    CHECK_EQUAL(helio_store_open(folder, &options, NULL, &store), HELIO_ERR_STATE);
    CHECK_EQUAL(read_all(), HELIO_ERR_STATE);
    unlink(path);
    fill(5, &options);
    file = open(path_of(1, "seg"), O_RDWR);
    CHECK(pwrite(file, "\0\0\0\2", 4, 8) == 4);
    close(file);
    CHECK_EQUAL(helio_store_open(folder, &options, NULL, &store), 0);
    CHECK_EQUAL(helio_store_stream_open(store, &stream_one, "", &stream), HELIO_ERR_STATE);
    CHECK_EQUAL(helio_store_close(store), 0);
}

static void retention_removes_the_oldest_segments(void) {
    begin_folder();
    helio_store_options options = small_segments();
    fill(200, &options);
    options.retain_bytes = 5000;
    helio_store_stream *stream;
    helio_store *store = open_store(&options, &stream);
    CHECK_EQUAL(helio_store_first(stream), 1);
    CHECK_EQUAL(helio_store_retain(stream, 0), 0);
    uint64_t first = helio_store_first(stream);
    CHECK(first > 1 && first < 200);
    CHECK_EQUAL(size_of(path_of(1, "seg")), -1);
    CHECK_EQUAL(size_of(path_of(1, "idx")), -1);
    CHECK_EQUAL(read_range(HELIO_STORE_BY_POSITION, everything, first), 201 - first);
    CHECK_EQUAL(helio_store_close(store), 0);

    options.retain_bytes = 0;
    options.retain_ns = 300;
    store = open_store(&options, &stream);
    CHECK_EQUAL(helio_store_first(stream), first);
    CHECK_EQUAL(helio_store_retain(stream, 0), 0); /* the clock stepped back */
    CHECK_EQUAL(helio_store_first(stream), first);
    CHECK_EQUAL(helio_store_retain(stream, 2000), 0);
    CHECK(helio_store_first(stream) > first);
    first = helio_store_first(stream);
    CHECK_EQUAL(helio_store_retain(stream, UINT64_MAX), 0); /* all but the one being written */
    CHECK(helio_store_first(stream) > first && helio_store_first(stream) <= 200);
    CHECK_EQUAL(helio_store_written(stream), 200);
    CHECK_EQUAL(helio_store_close(store), 0);
}

static void streams_of_a_store_are_apart(void) {
    begin_folder();
    const helio_store_options options = small_segments();
    helio_store_stream *one, *two, *again;
    helio_store *store = open_store(&options, &one);
    CHECK_EQUAL(helio_store_stream_open(store, &stream_two, "", &two), 0);
    CHECK_EQUAL(helio_store_stream_open(store, &stream_two, "", &again), 0);
    CHECK(two == again && one != two);
    uint64_t position;
    for (uint64_t i = 1; i <= 50; i++) {
        CHECK_EQUAL(append(one, i, &position), 0);
        CHECK_EQUAL(append(two, 500 + i, &position), 0);
        CHECK_EQUAL(position, i);
    }
    CHECK_EQUAL(helio_store_close(store), 0);
    CHECK_EQUAL(read_all(), 50);
}

int main(void) {
    calm_os = failing_os(&calm);
    RUN(checks_are_those_of_rfc_3720);
    RUN(a_header_decodes_only_whole_and_undamaged);
    RUN(ranges_by_position_sequence_number_and_time);
    RUN(batches_are_sent_as_they_are_in_the_files);
    RUN(positions_are_durable_after_the_batch);
    RUN(a_crash_at_any_call_leaves_a_prefix);
    RUN(a_file_cut_at_any_byte_is_a_prefix);
    RUN(a_flipped_bit_is_never_delivered);
    RUN(damage_in_the_last_segment_is_refused_or_cut);
    RUN(a_full_disk_loses_nothing_that_was_taken);
    RUN(a_failed_fsync_closes_the_stream);
    RUN(one_writer_holds_a_directory);
    RUN(a_directory_that_cannot_be_written_is_refused);
    RUN(other_versions_are_refused_and_left_alone);
    RUN(retention_removes_the_oldest_segments);
    RUN(streams_of_a_store_are_apart);
    begin_folder();
    rmdir(folder);
    return check_result();
}
