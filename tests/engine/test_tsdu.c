/* The batch: written as docs/wire.md draws it, and refused when anything in it does not add up. */
#include "wire/tsdu.h"

#include "base/random.h"
#include "check.h"

static uint8_t batch[256];

/* A batch of messages "ab" and "", and its length. */
static size_t make_batch(void) {
    helio_tsdu_encode(batch, &(helio_tsdu_header){
                                 .kind = HELIO_TSDU_KIND_MESSAGES,
                                 .count = 2,
                                 .topic_id = 0x0102030405060708,
                                 .first_message = 0x1112131415161718,
                                 .submit_ns = 0x2122232425262728,
                                 .closed_after_ns = 0x31323334,
                             });
    size_t used = HELIO_TSDU_HEADER;
    used += helio_tsdu_encode_message_header(batch + used, 2);
    memcpy(batch + used, "ab", 2);
    used += 2;
    used += helio_tsdu_encode_message_header(batch + used, 0);
    return used;
}

static helio_tsdu_result decode(size_t length) {
    helio_tsdu_header header;
    return helio_tsdu_decode(batch, length, &header);
}

static void a_batch_is_written_as_specified(void) {
    static const uint8_t expected[] = {
        0x48, 1,    1,    0,    0,    40,   0,    2,    1,    2,    3,    4,
        5,    6,    7,    8,    0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
        0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x31, 0x32, 0x33, 0x34,
        0,    0,    0,    0,    0,    2,    'a',  'b',  0,    0,
    };
    CHECK_EQUAL(make_batch(), sizeof expected);
    CHECK_BYTES(batch, expected, sizeof expected);
}

static void times_are_held_within_what_can_be_subtracted(void) {
    static const int64_t times[][2] = {{-1, 0},
                                       {INT64_MIN, 0},
                                       {0, 0},
                                       {HELIO_TSDU_TIME_MAX, HELIO_TSDU_TIME_MAX},
                                       {HELIO_TSDU_TIME_MAX + 1, HELIO_TSDU_TIME_MAX},
                                       {INT64_MAX, HELIO_TSDU_TIME_MAX}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        const helio_tsdu_header sent = {.kind = HELIO_TSDU_KIND_MESSAGES,
                                        .count = 1,
                                        .submit_ns = times[i][0],
                                        .intended_ns = times[i][0]};
        helio_tsdu_header header;
        helio_tsdu_encode(batch, &sent);
        CHECK_EQUAL(helio_tsdu_decode(batch, sizeof batch, &header), HELIO_TSDU_OURS);
        CHECK_EQUAL(header.submit_ns, times[i][1]);
        CHECK_EQUAL(header.intended_ns, times[i][1]);
    }
}

static void a_batch_is_read_back(void) {
    const size_t length = make_batch();
    helio_tsdu_header header;
    CHECK_EQUAL(helio_tsdu_decode(batch, length, &header), HELIO_TSDU_OURS);
    CHECK_EQUAL(header.count, 2);
    CHECK_EQUAL(header.first_message, 0x1112131415161718);
    CHECK_EQUAL(header.submit_ns, 0x2122232425262728);
    CHECK_EQUAL(header.closed_after_ns, 0x31323334);
    const uint8_t *at = batch + header.header_bytes, *end = batch + length;
    helio_tsdu_message message;
    CHECK(helio_tsdu_next_message(&at, end, &message));
    CHECK_EQUAL(message.bytes, 2);
    CHECK_BYTES(message.body, "ab", 2);
    CHECK(helio_tsdu_next_message(&at, end, &message));
    CHECK_EQUAL(message.bytes, 0);
    CHECK(at == end && !helio_tsdu_next_message(&at, end, &message));
}

static void what_is_not_ours_is_foreign_and_what_is_broken_is_damaged(void) {
    const size_t length = make_batch();
    CHECK_EQUAL(decode(0), HELIO_TSDU_FOREIGN);
    CHECK_EQUAL(decode(1), HELIO_TSDU_FOREIGN);
    CHECK_EQUAL(decode(39), HELIO_TSDU_DAMAGED);
    static const struct {
        size_t at;
        uint8_t value;
        helio_tsdu_result result;
    } changes[] = {
        {0, 0x49, HELIO_TSDU_FOREIGN}, {1, 2, HELIO_TSDU_FOREIGN},    {2, 3, HELIO_TSDU_DAMAGED},
        {2, 0, HELIO_TSDU_DAMAGED},    {5, 36, HELIO_TSDU_DAMAGED},   {5, 42, HELIO_TSDU_DAMAGED},
        {5, 48, HELIO_TSDU_DAMAGED},   {4, 0xFF, HELIO_TSDU_DAMAGED}, {7, 0, HELIO_TSDU_DAMAGED},
        {36, 0xFF, HELIO_TSDU_OURS}, /* reserved: ignored */
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        make_batch();
        batch[changes[i].at] = changes[i].value;
        if (decode(length) != changes[i].result) {
            CHECK_FAIL("byte %zu = %u is judged wrongly", changes[i].at, changes[i].value);
        }
    }
    make_batch();
    memset(batch + 16, 0xFF, 8); /* numbers that would pass 2^64 */
    CHECK_EQUAL(decode(length), HELIO_TSDU_DAMAGED);
}

static void unknown_extensions_are_skipped_unless_they_must_be_understood(void) {
    make_batch();
    batch[5] = 48;
    memcpy(batch + 40, "\x21\x02\0\0abcd", 8);
    CHECK_EQUAL(decode(60), HELIO_TSDU_OURS);
    batch[40] = 0xA1;
    CHECK_EQUAL(decode(60), HELIO_TSDU_DAMAGED);
    batch[40] = 0x21;
    batch[41] = 0;
    CHECK_EQUAL(decode(60), HELIO_TSDU_DAMAGED);
    batch[41] = 3;
    CHECK_EQUAL(decode(60), HELIO_TSDU_DAMAGED);
}

static void a_long_message_has_the_extended_form(void) {
    static uint8_t long_message[70000];
    CHECK_EQUAL(helio_tsdu_message_header_bytes(32767), 2);
    CHECK_EQUAL(helio_tsdu_encode_message_header(long_message, 32768), 6);
    const uint8_t *at = long_message, *end = long_message + 6 + 32768;
    helio_tsdu_message message;
    CHECK(helio_tsdu_next_message(&at, end, &message));
    CHECK_EQUAL(message.bytes, 32768);
    CHECK(at == end);
    at = long_message;
    CHECK(!helio_tsdu_next_message(&at, end - 1, &message));
    /* with extensions of its own: one word that may be skipped, one that may not */
    static const uint8_t skipped[] = {0x80, 1, 0, 0, 0, 1, 0x21, 1, 0, 0, 'x'};
    static const uint8_t needed[] = {0x80, 1, 0, 0, 0, 1, 0x84, 1, 0, 0, 'x'};
    at = skipped;
    CHECK(helio_tsdu_next_message(&at, skipped + sizeof skipped, &message));
    CHECK(message.bytes == 1 && message.body[0] == 'x');
    at = needed;
    CHECK(!helio_tsdu_next_message(&at, needed + sizeof needed, &message));
    for (size_t cut = 0; cut < sizeof skipped; cut++) {
        at = skipped;
        CHECK(!helio_tsdu_next_message(&at, skipped + cut, &message));
    }
}

static void topics_are_written_and_read(void) {
    const helio_tsdu_topic topic = {
        .topic_id = 7, .next_message = 9, .name = "prices", .name_bytes = 6};
    const size_t length = helio_tsdu_encode_topic(batch, &topic);
    CHECK_EQUAL(length, 24);
    const uint8_t *at = batch;
    helio_tsdu_topic read;
    CHECK(helio_tsdu_next_topic(&at, batch + length, &read));
    CHECK(read.topic_id == 7 && read.next_message == 9 && read.name_bytes == 6);
    CHECK_BYTES(read.name, "prices", 6);
    for (size_t cut = 0; cut < length; cut++) {
        at = batch;
        CHECK(!helio_tsdu_next_topic(&at, batch + cut, &read));
    }
    batch[17] = 0; /* no name */
    at = batch;
    CHECK(!helio_tsdu_next_topic(&at, batch + length, &read));
    batch[16] = 1; /* 256 bytes of name */
    at = batch;
    CHECK(!helio_tsdu_next_topic(&at, batch + sizeof batch, &read));
}

static void no_bytes_whatever_break_the_reader(void) {
    helio_random random;
    helio_random_init(&random, 5);
    for (int i = 0; i < 100000; i++) {
        const size_t length = helio_random_below(&random, 120);
        uint8_t *bytes = malloc(length + 1);
        for (size_t k = 0; k < length; k++) {
            bytes[k] = helio_random_below(&random, 2) ? (uint8_t)helio_random_next(&random) : 0;
        }
        if (length > 2 && i % 4) {
            memcpy(bytes, "H\1", 2);
        }
        helio_tsdu_header header;
        if (helio_tsdu_decode(bytes, length, &header) == HELIO_TSDU_OURS) {
            const uint8_t *at = bytes + header.header_bytes;
            helio_tsdu_message message;
            while (helio_tsdu_next_message(&at, bytes + length, &message)) {
                CHECK(message.body + message.bytes <= bytes + length);
            }
            at = bytes + header.header_bytes;
            helio_tsdu_topic topic;
            while (helio_tsdu_next_topic(&at, bytes + length, &topic)) {
                CHECK((const uint8_t *)topic.name + topic.name_bytes <= bytes + length);
            }
        }
        free(bytes);
    }
}

/* A head read as plain is the one that helio_tsdu_decode reads, and a plain one is read so. */
static void a_plain_head_is_read_as_any_other(void) {
    static const size_t lengths[] = {0, 6, HELIO_TSDU_HEADER - 1, HELIO_TSDU_HEADER, 46};
    helio_random random;
    helio_random_init(&random, 6);
    const size_t length = make_batch();
    uint8_t whole[sizeof batch];
    memcpy(whole, batch, sizeof whole);
    unsigned plain = 0, other = 0;
    for (int i = 0; i < 100000; i++) {
        const size_t bytes = i % 8 ? length : lengths[helio_random_below(&random, 5)];
        memcpy(batch, whole, sizeof whole);
        if (i % 4) { /* some bit of the head is another one */
            const size_t at = helio_random_below(&random, HELIO_TSDU_HEADER);
            batch[at] ^= (uint8_t)(1 << helio_random_below(&random, 8));
        }
        helio_tsdu_header head, expected;
        if (!helio_tsdu_read_plain(batch, bytes, &head)) {
            other++;
            continue;
        }
        plain++;
        CHECK_EQUAL(helio_tsdu_decode(batch, bytes, &expected), HELIO_TSDU_OURS);
        CHECK_EQUAL(head.kind, expected.kind);
        CHECK_EQUAL(head.flags, expected.flags);
        CHECK_EQUAL(head.header_bytes, expected.header_bytes);
        CHECK_EQUAL(head.count, expected.count);
        CHECK_EQUAL(head.topic_id, expected.topic_id);
        CHECK_EQUAL(head.first_message, expected.first_message);
        CHECK_EQUAL(head.submit_ns, expected.submit_ns);
        CHECK_EQUAL(head.closed_after_ns, expected.closed_after_ns);
        CHECK_EQUAL(head.intended_ns, expected.intended_ns);
    }
    CHECK(plain > 25000 && other > 10000);
}

int main(void) {
    RUN(a_batch_is_written_as_specified);
    RUN(a_batch_is_read_back);
    RUN(times_are_held_within_what_can_be_subtracted);
    RUN(what_is_not_ours_is_foreign_and_what_is_broken_is_damaged);
    RUN(unknown_extensions_are_skipped_unless_they_must_be_understood);
    RUN(a_long_message_has_the_extended_form);
    RUN(topics_are_written_and_read);
    RUN(no_bytes_whatever_break_the_reader);
    RUN(a_plain_head_is_read_as_any_other);
    return check_result();
}
