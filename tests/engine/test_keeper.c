/* The keeper of a store: what it keeps, acknowledges and recognizes, with a disk that is full or
 * fails. */
#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <heliograph/errors.h>

#include "io/kernel_clock.h"
#include "keep/keeper_parts.h"
#include "keep/keeper_patterns.h"
#include "ports.h"
#include "store/reader.h"

enum { WINDOW = 64 };

static char folder[64];
static unsigned groups;
static char endpoint[96];
static helio_instance *sending, *keeping;
static helio_transmitter *transmitter;
static helio_keeper *keeper;
static uint64_t sent;

/* ---- a disk that fails ---- */

static bool is_full, fails_to_sync;
/* Calls until it does nothing any more, as after a kill; -1: never. */
static int calls_left;

static bool is_dead(void) {
    calls_left -= calls_left > 0;
    errno = EIO;
    return calls_left == 0;
}

static int disk_create(void *context, int at, const char *name, int flags) {
    return is_dead() ? -1 : helio_store_system.create(context, at, name, flags);
}

static ssize_t disk_write(void *context, int file, const void *bytes, size_t count, off_t at) {
    (void)context;
    if (calls_left == 1) { /* within a write */
        (void)!pwrite(file, bytes, count / 2, at);
    }
    if (is_dead()) {
        return -1;
    }
    errno = ENOSPC;
    return is_full ? -1 : pwrite(file, bytes, count, at);
}

static int disk_sync(void *context, int file) {
    (void)context, (void)file;
    return is_dead() || fails_to_sync ? -1 : 0;
}

static int disk_truncate(void *context, int file, off_t bytes) {
    return is_dead() ? -1 : helio_store_system.truncate(context, file, bytes);
}

static int disk_remove(void *context, int at, const char *name) {
    return is_dead() ? -1 : helio_store_system.remove(context, at, name);
}

static const helio_store_os disk = {NULL,      disk_create,   disk_write,
                                    disk_sync, disk_truncate, disk_remove};

/* ---- a source and a keeper ---- */

static void remove_files(const char *path) {
    DIR *listing = opendir(path);
    for (const struct dirent *entry; listing && (entry = readdir(listing));) {
        unlinkat(dirfd(listing), entry->d_name, 0);
    }
    if (listing) {
        closedir(listing);
    }
    rmdir(path);
}

static void remove_folder(void) {
    static const char *const inner[] = {"ahead", "peer"};
    for (int i = 0; i < 2; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s/%s", folder, inner[i]);
        remove_files(path);
    }
    remove_files(folder);
}

static helio_instance *instance_of(const char *name) {
    char options[128];
    snprintf(options, sizeof options, "mode=poll&segment_bytes=4194304&flight_keep=0&name=%s",
             name);
    helio_instance *instance;
    CHECK_EQUAL(helio_instance_create(options, &instance), 0);
    return instance;
}

static helio_store_options small_batches(void) {
    helio_store_options options = helio_store_defaults();
    options.batch_bytes = 1000;
    options.batch_time_ns = 1000000;
    options.segment_bytes = 8000;
    return options;
}

static void open_keeper(const helio_store_options *options) {
    keeping = instance_of("store");
    CHECK_EQUAL(helio_keeper_create(keeping, folder, options, &disk, &keeper), 0);
    CHECK_EQUAL(helio_keeper_add(keeper, endpoint, "T", NULL), 0);
}

static void close_keeper(void) {
    CHECK_EQUAL(helio_keeper_close(keeper, NULL), 0);
    helio_instance_destroy(keeping);
    keeper = NULL;
    keeping = NULL;
}

static const char *source_options = "acks=1&send_window=64&linger=0";

static void begin(void) {
    snprintf(folder, sizeof folder, "/tmp/helio-keeper-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(endpoint, sizeof endpoint, "rmm://239.192.33.7:%u?interface=127.0.0.1&ttl=0",
             test_port(groups++));
    is_full = fails_to_sync = false;
    calls_left = -1;
    sent = 0;
    sending = instance_of("source");
    CHECK_EQUAL(helio_transmitter_create(sending, endpoint, "T", source_options, &transmitter), 0);
}

static void end(void) {
    close_keeper();
    helio_transmitter_destroy(transmitter);
    helio_instance_destroy(sending);
    remove_folder();
}

/* Sends at most `count` messages, each in a packet of its own; ends early when the history is full. */
static void send(uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        char text[32];
        snprintf(text, sizeof text, "message %06llu", (unsigned long long)sent);
        if (helio_transmitter_send(transmitter, text, strlen(text)) != 0) {
            break;
        }
        sent++;
        helio_instance_poll(sending);
    }
}

/* Both run until the keeper has received `messages`; false: not within ten seconds. */
static bool run_until(uint64_t messages) {
    const int64_t end_ns = helio_monotonic_ns() + 10 * HELIO_SECOND;
    while (helio_keeper_look(keeper).messages_received < messages ||
           helio_keeper_look(keeper).messages_waiting > 0) {
        CHECK(helio_keeper_step(keeper, 100000) >= 0);
        helio_instance_poll(sending);
        if (helio_monotonic_ns() > end_ns) {
            return false;
        }
    }
    return true;
}

static void run_for(int64_t ns) {
    const int64_t end_ns = helio_monotonic_ns() + ns;
    while (helio_monotonic_ns() < end_ns) {
        CHECK(helio_keeper_step(keeper, 100000) >= 0);
        helio_instance_poll(sending);
    }
}

/* All acknowledged: the source forgets them. */
static bool is_acked(void) {
    for (int i = 0; i < 2000; i++) {
        helio_keeper_step(keeper, 0);
        if (helio_transmitter_wait_acked(transmitter, 1, 1000000) == 0) {
            return true;
        }
    }
    return false;
}

static helio_tsi stream_of_source(void) {
    unsigned gsi[HELIO_GSI_BYTES], port;
    CHECK_EQUAL(sscanf(helio_transmitter_stream(transmitter), "%2x%2x%2x%2x%2x%2x:%u", &gsi[0],
                       &gsi[1], &gsi[2], &gsi[3], &gsi[4], &gsi[5], &port),
                7);
    helio_tsi tsi = {.port = (uint16_t)port};
    for (int i = 0; i < HELIO_GSI_BYTES; i++) {
        tsi.gsi[i] = (uint8_t)gsi[i];
    }
    return tsi;
}

/* The files have messages from 0, each once, in order.  Returns how many. */
static uint64_t count_files(void) {
    const helio_tsi tsi = stream_of_source();
    helio_store_reader *reader;
    CHECK_EQUAL(helio_store_reader_open(folder, &tsi, HELIO_STORE_BY_POSITION,
                                        (helio_store_span){0, UINT64_MAX}, &reader),
                0);
    helio_store_message message;
    uint64_t position, next = 0;
    while (helio_store_reader_next(reader, &message, &position) == 1) {
        char text[32];
        snprintf(text, sizeof text, "message %06llu", (unsigned long long)next);
        CHECK_EQUAL(message.number, next);
        CHECK_EQUAL(position, next + 1);
        CHECK(message.bytes == strlen(text) && memcmp(message.payload, text, message.bytes) == 0);
        CHECK(message.topic_bytes == 1 && message.topic[0] == 'T');
        CHECK(message.submit_ns > 0 && message.receive_ns >= message.submit_ns);
        next++;
    }
    helio_store_reader_close(reader);
    return next;
}

/* The files have the messages 0 to sent - 1, each once, in order. */
static void check_files(void) {
    CHECK_EQUAL(count_files(), sent);
}

/* ---- tests ---- */

static void what_is_received_is_written_and_then_acknowledged(void) {
    begin();
    const helio_store_options options = small_batches();
    open_keeper(&options);
    for (int i = 0; i < 40; i++) {
        send(WINDOW / 2);
        CHECK(run_until(sent) && is_acked());
    }
    CHECK_EQUAL(sent, 40 * WINDOW / 2); /* many times the history: it was acknowledged */
    CHECK(is_acked());
    const helio_keeper_counts counts = helio_keeper_look(keeper);
    CHECK_EQUAL(counts.messages_kept, sent);
    CHECK_EQUAL(counts.messages_repeated + counts.messages_refused + counts.messages_lost, 0);
    CHECK(counts.writes < sent / 2); /* in batches */
    CHECK(counts.syncs >= counts.writes / 3);
    check_files();
    end();
}

static void nothing_is_acknowledged_before_it_is_durable(void) {
    begin();
    helio_store_options options = small_batches();
    options.batch_bytes = 1 << 20;
    options.batch_time_ns = UINT64_C(3600) * HELIO_SECOND;
    open_keeper(&options);
    send(10);
    run_for(300 * HELIO_MILLISECOND);
    CHECK_EQUAL(helio_keeper_look(keeper).messages_kept, 10);
    CHECK_EQUAL(helio_keeper_look(keeper).messages_waiting, 10);
    CHECK(helio_transmitter_wait_acked(transmitter, 1, 0) == HELIO_ERR_TIMEOUT);
    end();
}

static void messages_that_the_files_have_are_recognized(void) {
    begin();
    const helio_store_options options = small_batches();
    /* A store that stopped before its acknowledgements: messages 0 to 9 of T, and others. */
    helio_store *store;
    helio_store_stream *stream;
    const helio_tsi tsi = stream_of_source();
    CHECK_EQUAL(helio_store_open(folder, &options, &disk, &store), 0);
    CHECK_EQUAL(helio_store_stream_open(store, &tsi, "", &stream), 0);
    const uint64_t now = (uint64_t)helio_wall_ns();
    for (uint64_t i = 0; i < 10; i++) {
        char text[32];
        snprintf(text, sizeof text, "message %06llu", (unsigned long long)i);
        const helio_store_message message = {.topic = "T",
                                             .topic_bytes = 1,
                                             .number = i,
                                             .submit_ns = now,
                                             .receive_ns = now + 1,
                                             .payload = text,
                                             .bytes = strlen(text)};
        uint64_t position;
        CHECK_EQUAL(helio_store_append(stream, &message, 0, &position), 0);
    }
    CHECK_EQUAL(helio_store_close(store), 0);
    send(20);
    open_keeper(&options);
    CHECK(run_until(20));
    CHECK_EQUAL(helio_keeper_look(keeper).messages_repeated, 10);
    CHECK_EQUAL(helio_keeper_look(keeper).messages_kept, 10);
    CHECK(is_acked());
    check_files();
    end();
}

/* ---- catching up ---- */

enum { BEFORE = 20, LIVE = 10, PEER = BEFORE + 4 * LIVE };

/* Another store, which has all messages. */
static void make_peer(char path[96]) {
    snprintf(path, 96, "%s/peer", folder);
    CHECK_EQUAL(mkdir(path, 0750), 0);
    helio_store_options options = small_batches();
    options.batch_bytes = 300;
    helio_store *store;
    helio_store_stream *stream;
    const helio_tsi tsi = stream_of_source();
    CHECK_EQUAL(helio_store_open(path, &options, NULL, &store), 0);
    CHECK_EQUAL(helio_store_stream_open(store, &tsi, "", &stream), 0);
    for (uint64_t i = 0; i < PEER; i++) {
        char text[32];
        snprintf(text, sizeof text, "message %06llu", (unsigned long long)i);
        const helio_store_message message = {.topic = "T",
                                             .topic_bytes = 1,
                                             .number = i,
                                             .submit_ns = 1,
                                             .receive_ns = 2,
                                             .payload = text,
                                             .bytes = strlen(text)};
        uint64_t position;
        CHECK_EQUAL(helio_store_append(stream, &message, 0, &position), 0);
    }
    CHECK_EQUAL(helio_store_close(store), 0);
}

/* Gives the keeper the batches of the peer; errors are those of a dead disk. */
static void fill_from(const char *peer) {
    const helio_tsi tsi = stream_of_source();
    helio_store_reader *reader;
    const uint8_t *batch;
    size_t bytes;
    CHECK_EQUAL(helio_store_reader_open(peer, &tsi, HELIO_STORE_BY_NUMBER,
                                        (helio_store_span){0, UINT64_MAX}, &reader),
                0);
    while (helio_store_reader_batch(reader, "T", 1, &batch, &bytes) == 1) {
        helio_keeper_filled filled;
        (void)helio_keeper_fill(keeper, &tsi, "T", 1, batch, bytes, &filled);
        (void)helio_keeper_step(keeper, 0);
        helio_instance_poll(sending);
    }
    helio_store_reader_close(reader);
}

/* Live messages, which wait for those before them. */
static void live(void) {
    send(LIVE);
    for (int i = 0; i < 20; i++) {
        (void)helio_keeper_step(keeper, 100000);
        helio_instance_poll(sending);
    }
}

/* A kill at the call of this number.  Returns whether there was one. */
static bool catch_up_killed_at(int call) {
    begin();
    char peer[96];
    make_peer(peer);
    send(BEFORE);
    const helio_store_options options = small_batches();
    calls_left = call;
    keeping = instance_of("store");
    if (helio_keeper_create(keeping, folder, &options, &disk, &keeper) == 0) {
        CHECK_EQUAL(helio_keeper_add(keeper, endpoint, "T", NULL), 0);
        helio_keeper_use_peers(keeper);
        live();
        fill_from(peer);
        live();
        (void)helio_keeper_close(keeper, NULL);
    }
    const bool is_killed = calls_left == 0;
    calls_left = -1;
    helio_instance_destroy(keeping);
    open_keeper(&options);
    helio_keeper_use_peers(keeper);
    CHECK(count_files() <= sent); /* whole, without a gap */
    live();
    for (int i = 0; i < 10 && count_files() < sent; i++) {
        fill_from(peer);
        run_for(3 * HELIO_MILLISECOND);
    }
    check_files();
    CHECK_EQUAL(helio_keeper_look(keeper).messages_given_up, 0);
    CHECK(keeper->behind == NULL);
    end();
    return is_killed;
}

static void a_kill_at_any_call_of_a_catch_up_leaves_whole_prefixes(void) {
    const char *acked = source_options;
    source_options = "linger=0";
    int calls = 1;
    while (catch_up_killed_at(calls)) {
        calls++;
    }
    CHECK(calls > 20);
    source_options = acked;
}

static void bytes_that_are_no_batch_and_other_batches_fill_nothing(void) {
    const char *acked = source_options;
    source_options = "linger=0";
    begin();
    char peer[96];
    make_peer(peer);
    send(BEFORE);
    const helio_store_options options = small_batches();
    open_keeper(&options);
    helio_keeper_use_peers(keeper);
    live();
    const helio_tsi tsi = stream_of_source(), other = {{1}, 2};
    helio_store_reader *reader;
    const uint8_t *batch;
    size_t bytes;
    CHECK_EQUAL(helio_store_reader_open(peer, &tsi, HELIO_STORE_BY_NUMBER,
                                        (helio_store_span){BEFORE - 2, UINT64_MAX}, &reader),
                0);
    CHECK_EQUAL(helio_store_reader_batch(reader, "T", 1, &batch, &bytes), 1);
    helio_keeper_filled filled;
    uint8_t wrong[HELIO_STORE_HEAD_BYTES + 400];
    CHECK(bytes <= sizeof wrong);
    for (size_t i = 0; i < bytes; i++) {
        memcpy(wrong, batch, bytes);
        wrong[i] ^= 1;
        CHECK_EQUAL(helio_keeper_fill(keeper, &tsi, "T", 1, wrong, bytes, &filled),
                    HELIO_ERR_OPTION);
        CHECK_EQUAL(helio_keeper_fill(keeper, &tsi, "T", 1, batch, i, &filled), HELIO_ERR_OPTION);
    }
    CHECK_EQUAL(helio_keeper_fill(keeper, &other, "T", 1, batch, bytes, &filled), 0);
    CHECK_EQUAL(filled.kept + filled.found, 0);
    CHECK_EQUAL(helio_keeper_fill(keeper, &tsi, "U", 1, batch, bytes, &filled), 0);
    CHECK_EQUAL(filled.kept + filled.found, 0);
    /* A batch of the middle shows a gap before it. */
    CHECK_EQUAL(helio_keeper_fill(keeper, &tsi, "T", 1, batch, bytes, &filled), 0);
    CHECK_EQUAL(filled.kept, 0);
    CHECK(filled.found > 0 && filled.found < BEFORE);
    helio_store_reader_close(reader);
    helio_keeper_hole hole;
    CHECK_EQUAL(helio_keeper_holes(keeper, &hole, 1), 1);
    CHECK_EQUAL(hole.first, 0);
    CHECK_EQUAL(hole.last, BEFORE - 1);
    fill_from(peer);
    check_files();
    end();
    source_options = acked;
}

static void a_full_disk_stops_the_source_and_loses_nothing(void) {
    begin();
    const helio_store_options options = small_batches();
    open_keeper(&options);
    send(20);
    CHECK(run_until(20));
    is_full = true;
    for (int i = 0; i < 30; i++) {
        send(WINDOW);
        run_for(10 * HELIO_MILLISECOND);
    }
    CHECK(sent < 20 + 2 * WINDOW); /* it waits for acknowledgements */
    const helio_keeper_counts counts = helio_keeper_look(keeper);
    CHECK(counts.is_blocked);
    CHECK(counts.write_failures > 0);
    CHECK(strstr(helio_keeper_reason(keeper), "No space left on device") != NULL);
    is_full = false;
    CHECK(run_until(sent));
    CHECK(!helio_keeper_look(keeper).is_blocked);
    CHECK(helio_keeper_reason(keeper)[0] == '\0');
    CHECK(is_acked());
    send(WINDOW / 2);
    CHECK(run_until(sent));
    CHECK_EQUAL(helio_keeper_look(keeper).messages_repeated, 0);
    check_files();
    end();
}

static void after_a_failed_fsync_the_store_has_to_be_opened_again(void) {
    begin();
    const helio_store_options options = small_batches();
    open_keeper(&options);
    send(20);
    CHECK(run_until(20));
    fails_to_sync = true;
    int result = 0;
    for (int i = 0; i < 1000 && result >= 0; i++) {
        send(1);
        result = helio_keeper_step(keeper, HELIO_MILLISECOND);
        helio_instance_poll(sending);
    }
    CHECK_EQUAL(result, HELIO_ERR_STATE);
    fails_to_sync = false;
    (void)helio_keeper_close(keeper, NULL);
    helio_instance_destroy(keeping);
    open_keeper(&options);
    send(10);
    CHECK(is_acked());
    check_files();
    end();
}

static void a_stream_without_messages_is_closed_and_comes_back(void) {
    begin();
    const helio_store_options options = small_batches();
    open_keeper(&options);
    send(20);
    CHECK(run_until(20));
    CHECK_EQUAL(helio_keeper_look(keeper).streams, 1);
    keeper->streams->used_ns -= 61 * HELIO_SECOND;
    keeper->tended_ns -= 2 * HELIO_SECOND;
    CHECK(helio_keeper_step(keeper, 0) >= 0);
    CHECK_EQUAL(helio_keeper_look(keeper).streams, 0);
    CHECK(keeper->sources->topics == NULL);
    send(20);
    CHECK(run_until(40));
    CHECK_EQUAL(helio_keeper_look(keeper).streams, 1);
    CHECK_EQUAL(helio_keeper_look(keeper).messages_repeated, 0);
    check_files();
    end();
}

static void retention_removes_old_segments_and_those_of_ended_streams(void) {
    begin();
    helio_store_options options = small_batches();
    options.retain_bytes = 20000;
    options.retain_ns = UINT64_C(3600) * HELIO_SECOND;
    /* A stream that ended two hours ago. */
    static const helio_tsi ended = {{1, 2, 3, 4, 5, 6}, 7};
    helio_store *store;
    helio_store_stream *stream;
    CHECK_EQUAL(helio_store_open(folder, &options, &disk, &store), 0);
    CHECK_EQUAL(helio_store_stream_open(store, &ended, "", &stream), 0);
    const helio_store_message message = {
        .topic = "T", .topic_bytes = 1, .payload = "x", .bytes = 1};
    uint64_t position;
    CHECK_EQUAL(helio_store_append(stream, &message, 0, &position), 0);
    CHECK_EQUAL(helio_store_close(store), 0);
    char path[160];
    snprintf(path, sizeof path, "%s/010203040506-7-0000000000000001.seg", folder);
    const struct timespec before = {helio_wall_ns() / HELIO_SECOND - 7200, 0};
    const struct timespec times[2] = {before, before};
    CHECK_EQUAL(utimensat(AT_FDCWD, path, times, 0), 0);
    open_keeper(&options);
    CHECK_EQUAL(access(path, F_OK), -1);
    CHECK_EQUAL(helio_keeper_look(keeper).segments_removed, 1);
    for (int i = 0; i < 40; i++) {
        send(WINDOW / 2);
        CHECK(run_until(sent) && is_acked());
    }
    keeper->tended_ns -= 2 * HELIO_SECOND;
    CHECK(helio_keeper_step(keeper, 0) >= 0);
    CHECK(helio_keeper_look(keeper).segments_removed > 1);
    CHECK(helio_store_usage_of(keeper->streams->files).bytes <= 20000 + 8000);
    end();
}

/* ---- patterns ---- */

/* Runs until a topic was found, for ten seconds at most. */
static void find_topic(void) {
    const uint64_t before = helio_keeper_changes(keeper);
    const int64_t end_ns = helio_monotonic_ns() + 10 * HELIO_SECOND;
    while (helio_keeper_changes(keeper) == before && helio_monotonic_ns() < end_ns) {
        CHECK(helio_keeper_step(keeper, 100000) >= 0);
        CHECK_EQUAL(helio_keeper_adopt(keeper), 0);
        helio_instance_poll(sending);
    }
    CHECK_EQUAL(helio_keeper_changes(keeper), before + 1);
}

static void open_keeper_of(const char *pattern, uint32_t limit) {
    const helio_store_options options = small_batches();
    keeping = instance_of("store");
    CHECK_EQUAL(helio_keeper_create(keeping, folder, &options, &disk, &keeper), 0);
    CHECK_EQUAL(helio_keeper_add_pattern(keeper, endpoint, pattern, NULL, limit), 0);
}

static void show_topic(void *context, const char *at, const char *topic) {
    char *text = context;
    CHECK(strcmp(at, endpoint) == 0);
    strcat(text, topic);
}

static const char *found_topics(void) {
    static char text[64];
    text[0] = '\0';
    helio_keeper_each_found(keeper, text, show_topic);
    return text;
}

static void a_topic_is_found_by_its_name_and_kept(void) {
    begin();
    open_keeper_of("?", 10);
    find_topic();
    CHECK(strcmp(found_topics(), "T") == 0);
    send(WINDOW);
    CHECK(run_until(sent) && is_acked());
    CHECK_EQUAL(helio_keeper_look(keeper).topics, 1);
    /* Nobody asked for it by name. */
    CHECK_EQUAL(helio_cell(&keeping->counts->receivers_unmatched), 0);
    check_files();
    end();
}

static void a_source_that_waits_for_a_store_has_its_oldest_messages_kept(void) {
    begin();
    send(WINDOW / 2);
    open_keeper_of("T*", 10);
    find_topic();
    CHECK(run_until(sent) && is_acked());
    send(WINDOW / 2);
    CHECK(run_until(sent) && is_acked());
    CHECK_EQUAL(sent, WINDOW);
    check_files();
    end();
}

static void messages_wait_until_a_topic_is_adopted(void) {
    begin();
    open_keeper_of("T*", 10);
    const int64_t end_ns = helio_monotonic_ns() + 10 * HELIO_SECOND;
    while (!helio_keeper_has_found(keeper) && helio_monotonic_ns() < end_ns) {
        CHECK_EQUAL(helio_keeper_step(keeper, 100000), 0);
        helio_instance_poll(sending);
    }
    send(20);
    for (int i = 0; i < 100; i++) {
        CHECK_EQUAL(helio_keeper_step(keeper, 100000), 0);
    }
    CHECK(helio_transmitter_wait_acked(transmitter, 1, 0) != 0);
    CHECK_EQUAL(helio_keeper_adopt(keeper), 0);
    CHECK(run_until(sent) && is_acked());
    check_files();
    end();
}

static void a_topic_that_is_expected_has_messages_from_before_its_announcement(void) {
    begin();
    open_keeper_of("T*", 1);
    CHECK_EQUAL(helio_keeper_expect(keeper, "T"), 0);
    CHECK_EQUAL(helio_keeper_expect(keeper, "T"), 0); /* once is enough */
    CHECK_EQUAL(helio_keeper_expect(keeper, "T2"), HELIO_ERR_NOMEM);
    CHECK_EQUAL(helio_keeper_expect(keeper, ""), HELIO_ERR_TOPIC);
    CHECK_EQUAL(helio_keeper_adopt(keeper), 0);
    CHECK_EQUAL(helio_keeper_look(keeper).topics, 1);
    send(WINDOW);
    CHECK(run_until(sent) && is_acked());
    check_files();
    end();
}

static void a_topic_beyond_the_limit_is_refused_and_counted(void) {
    begin();
    open_keeper_of("*", 1);
    find_topic();
    helio_transmitter *second;
    CHECK_EQUAL(helio_transmitter_create(sending, endpoint, "T2", source_options, &second), 0);
    const int64_t end_ns = helio_monotonic_ns() + 10 * HELIO_SECOND;
    while (helio_keeper_look(keeper).topics_refused == 0 && helio_monotonic_ns() < end_ns) {
        CHECK(helio_keeper_step(keeper, 100000) >= 0);
        helio_instance_poll(sending);
    }
    CHECK(helio_keeper_look(keeper).topics_refused > 0);
    CHECK_EQUAL(helio_keeper_look(keeper).topics, 1);
    helio_transmitter_destroy(second);
    send(10);
    CHECK(run_until(10) && is_acked());
    check_files();
    end();
}

/* The work of each second. */
static void tend(void) {
    keeper->tended_ns -= 2 * HELIO_SECOND;
    CHECK(helio_keeper_step(keeper, 1000) >= 0);
}

static void a_topic_without_a_stream_is_given_up_after_an_hour_and_found_again(void) {
    begin();
    open_keeper_of("T", 10);
    find_topic();
    send(10);
    CHECK(run_until(10) && is_acked());
    /* It is kept as long as a stream has it. */
    keeper->streams->used_ns -= 61 * HELIO_SECOND;
    tend();
    CHECK_EQUAL(helio_keeper_look(keeper).streams, 0);
    tend();
    CHECK_EQUAL(keeper->sources->unmatched_ns, 0);
    helio_transmitter_destroy(transmitter);
    const int64_t end_ns = helio_monotonic_ns() + 10 * HELIO_SECOND;
    while (keeper->sources->unmatched_ns == 0 && helio_monotonic_ns() < end_ns) {
        helio_instance_poll(sending);
        tend();
    }
    keeper->sources->unmatched_ns -= 3590 * HELIO_SECOND;
    tend();
    CHECK_EQUAL(helio_keeper_look(keeper).topics, 1);
    keeper->sources->unmatched_ns -= 20 * HELIO_SECOND;
    tend();
    CHECK_EQUAL(helio_keeper_look(keeper).topics, 0);
    CHECK(strcmp(found_topics(), "") == 0);
    CHECK_EQUAL(helio_transmitter_create(sending, endpoint, "T", source_options, &transmitter), 0);
    find_topic();
    CHECK(strcmp(found_topics(), "T") == 0);
    end();
}

static void the_statistics_have_the_counts(void) {
    begin();
    const helio_store_options options = small_batches();
    open_keeper(&options);
    send(20);
    CHECK(run_until(20));
    CHECK_EQUAL(helio_keeper_publish(keeper), 0);
    const helio_store_stats *store = keeper->object.record;
    CHECK_EQUAL(helio_cell(&store->streams), 1);
    CHECK(helio_cell(&store->bytes_written) > 20 * 14);
    CHECK(helio_cell(&store->disk_bytes) >= helio_cell(&store->disk_free_bytes));
    const helio_store_stream_stats *stream = keeper->streams->object.record;
    CHECK_EQUAL(helio_cell(&stream->messages_received), 20);
    CHECK_EQUAL(helio_cell(&stream->messages_kept), 20);
    CHECK_EQUAL(helio_cell(&stream->durable_position), 20);
    CHECK_EQUAL(helio_cell(&stream->first_position), 1);
    end();
}

int main(void) {
    RUN(what_is_received_is_written_and_then_acknowledged);
    RUN(nothing_is_acknowledged_before_it_is_durable);
    RUN(messages_that_the_files_have_are_recognized);
    RUN(a_kill_at_any_call_of_a_catch_up_leaves_whole_prefixes);
    RUN(bytes_that_are_no_batch_and_other_batches_fill_nothing);
    RUN(a_full_disk_stops_the_source_and_loses_nothing);
    RUN(after_a_failed_fsync_the_store_has_to_be_opened_again);
    RUN(a_stream_without_messages_is_closed_and_comes_back);
    RUN(retention_removes_old_segments_and_those_of_ended_streams);
    RUN(a_topic_is_found_by_its_name_and_kept);
    RUN(a_source_that_waits_for_a_store_has_its_oldest_messages_kept);
    RUN(messages_wait_until_a_topic_is_adopted);
    RUN(a_topic_that_is_expected_has_messages_from_before_its_announcement);
    RUN(a_topic_beyond_the_limit_is_refused_and_counted);
    RUN(a_topic_without_a_stream_is_given_up_after_an_hour_and_found_again);
    RUN(the_statistics_have_the_counts);
    return check_result();
}
