#include "send/batcher.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif
#include <string.h>

#include "base/copy.h"
#include "base/math.h"
#include "send/batch_counts.h"

void helio_batcher_init(helio_batcher *batcher, helio_packet_door door, size_t tsdu_bytes,
                        helio_instance_stats *instance) {
    *batcher = (helio_batcher){.door = door, .instance = instance, .tsdu_bytes = tsdu_bytes};
}

static uint32_t closed_after(int64_t submit_ns, int64_t wall_ns) {
    const int64_t after_ns = wall_ns - submit_ns;
    return after_ns <= 0 ? 0 : after_ns >= UINT32_MAX ? UINT32_MAX : (uint32_t)after_ns;
}

void helio_batcher_count(helio_batcher *batcher) {
    const helio_batcher_uncounted *all = &batcher->uncounted;
    if (all->topic) {
        helio_batcher_count_messages(batcher, all->topic, all->messages, all->bytes, all->packets);
    }
    batcher->uncounted = (helio_batcher_uncounted){0};
}

uint64_t helio_batcher_waiting(const helio_batcher *batcher, const helio_topic_position *topic) {
    const uint64_t open = batcher->tsdu && batcher->topic == topic ? batcher->count : 0;
    return open + (batcher->uncounted.topic == topic ? batcher->uncounted.messages : 0);
}

/* Messages are in packets that were closed. */
static void note_messages(helio_batcher *batcher, helio_topic_position *topic, uint64_t messages,
                          uint64_t bytes, uint64_t packets) {
    helio_batcher_uncounted *all = &batcher->uncounted;
    if (all->topic != topic) {
        helio_batcher_count(batcher);
        all->topic = topic;
    }
    all->messages += messages;
    all->bytes += bytes;
    all->packets += packets;
    if (!batcher->more_follow) {
        helio_batcher_count(batcher);
    }
}

/* Closes the open packet. */
static void close_batch(helio_batcher *batcher, helio_moment moment) {
    helio_topic_position *topic = batcher->topic;
    helio_tsdu_encode(batcher->tsdu,
                      &(helio_tsdu_header){
                          .kind = HELIO_TSDU_KIND_MESSAGES,
                          .flags = batcher->flags,
                          .count = (uint16_t)batcher->count,
                          .topic_id = topic->id,
                          .first_message = topic->next_message,
                          .submit_ns = batcher->submit_ns,
                          .closed_after_ns = closed_after(batcher->submit_ns, moment.wall_ns),
                          .intended_ns = batcher->intended_ns,
                      });
    batcher->closing = topic;
    batcher->closing_first = topic->next_message;
    topic->next_message += batcher->count;
    batcher->tsdu = NULL;
    batcher->door.close(batcher->door.context, batcher->used, NULL, moment);
    note_messages(batcher, topic, batcher->count, batcher->body_bytes, 1);
    helio_batcher_measure(batcher, topic, moment.wall_ns - batcher->submit_ns, batcher->paced_ns,
                          1);
}

void helio_batcher_flush(helio_batcher *batcher, helio_moment moment) {
    if (batcher->tsdu) {
        close_batch(batcher, moment);
    }
}

/* Copies the batch's bytes from `offset` on, of which head_bytes are in `head` and the rest in
 * `data`. */
static void copy_part(uint8_t *to, const uint8_t *head, size_t head_bytes, const uint8_t *data,
                      size_t offset, size_t bytes) {
    if (offset < head_bytes) {
        const size_t part = head_bytes - offset < bytes ? head_bytes - offset : bytes;
        memcpy(to, head + offset, part);
        to += part;
        offset += part;
        bytes -= part;
    }
    if (bytes > 0) {
        memcpy(to, data + (offset - head_bytes), bytes);
    }
}

/* Sends head and data as one APDU in as many packets as it takes; returns how many. */
static uint64_t send_fragments(helio_batcher *batcher, const uint8_t *head, size_t head_bytes,
                               const uint8_t *data, size_t length, helio_moment moment) {
    const size_t total = head_bytes + length;
    const size_t part_max =
        batcher->tsdu_bytes - (HELIO_PGM_FRAGMENT_HEADER - HELIO_PGM_DATA_HEADER);
    helio_pgm_fragment fragment = {.length = (uint32_t)total};
    uint64_t packets = 0;
    for (size_t offset = 0; offset < total; packets++) {
        const size_t part = total - offset < part_max ? total - offset : part_max;
        uint8_t *tsdu = batcher->door.open(batcher->door.context, true);
        copy_part(tsdu, head, head_bytes, data, offset, part);
        fragment.offset = (uint32_t)offset;
        batcher->door.close(batcher->door.context, part, &fragment, moment);
        offset += part;
    }
    return packets;
}

static void send_large(helio_batcher *batcher, helio_topic_position *topic, const uint8_t *data,
                       size_t length, int64_t submit_ns, helio_moment moment) {
    uint8_t head[HELIO_TSDU_HEADER + HELIO_TSDU_INTENDED_BYTES + HELIO_TSDU_EXTENDED_HEADER];
    const size_t batch_head = helio_tsdu_header_bytes(batcher->next_intended_ns);
    helio_tsdu_encode(head, &(helio_tsdu_header){
                                .kind = HELIO_TSDU_KIND_MESSAGES,
                                .flags = batcher->flags,
                                .count = 1,
                                .topic_id = topic->id,
                                .first_message = topic->next_message,
                                .submit_ns = submit_ns,
                                .closed_after_ns = closed_after(submit_ns, moment.wall_ns),
                                .intended_ns = batcher->next_intended_ns,
                            });
    const size_t head_bytes =
        batch_head + helio_tsdu_encode_message_header(head + batch_head, length);
    const int64_t paced_ns = helio_batcher_paced(batcher, topic, submit_ns, moment.wall_ns);
    batcher->closing = topic;
    batcher->closing_first = topic->next_message;
    const uint64_t packets = send_fragments(batcher, head, head_bytes, data, length, moment);
    topic->next_message++;
    note_messages(batcher, topic, 1, length, packets);
    helio_count(&topic->stats->fragmented_messages, 1);
    helio_batcher_measure(batcher, topic, moment.wall_ns - submit_ns, paced_ns, packets);
}

static void send_raw(helio_batcher *batcher, helio_topic_position *topic, const uint8_t *data,
                     size_t length, int64_t submit_ns, helio_moment moment) {
    const int64_t paced_ns = helio_batcher_paced(batcher, topic, submit_ns, moment.wall_ns);
    uint64_t packets = 1;
    batcher->closing = topic;
    batcher->closing_first = topic->next_message;
    if (length <= batcher->tsdu_bytes) {
        memcpy(batcher->door.open(batcher->door.context, false), data, length);
        batcher->door.close(batcher->door.context, length, NULL, moment);
    } else {
        packets = send_fragments(batcher, NULL, 0, data, length, moment);
        helio_count(&topic->stats->fragmented_messages, 1);
    }
    topic->next_message += packets;
    note_messages(batcher, topic, 1, length, packets);
    helio_batcher_measure(batcher, topic, moment.wall_ns - submit_ns, paced_ns, packets);
}

bool helio_batcher_joins(const helio_batcher *batcher, const helio_topic_position *topic,
                         size_t length) {
    return batcher->tsdu && batcher->topic == topic &&
           helio_tsdu_message_header_bytes(length) + length <=
               batcher->tsdu_bytes - batcher->used &&
           batcher->count < HELIO_TSDU_COUNT_MAX;
}

void helio_batcher_append(helio_batcher *batcher, helio_topic_position *topic, const void *data,
                          size_t length, int64_t submit_ns, helio_moment moment) {
    if (batcher->is_raw) {
        send_raw(batcher, topic, data, length, submit_ns, moment);
        return;
    }
    const size_t header = helio_tsdu_message_header_bytes(length);
    const size_t needed = header + length;
    if (batcher->tsdu && !helio_batcher_joins(batcher, topic, length)) {
        batcher->more_follow = true;
        close_batch(batcher, moment);
        batcher->more_follow = false;
    }
    if (!batcher->tsdu) {
        const size_t head = helio_tsdu_header_bytes(batcher->next_intended_ns);
        if (needed > batcher->tsdu_bytes - head) {
            send_large(batcher, topic, data, length, submit_ns, moment);
            return;
        }
        batcher->tsdu = batcher->door.open(batcher->door.context, false);
        batcher->topic = topic;
        batcher->used = head;
        batcher->count = 0;
        batcher->body_bytes = 0;
        batcher->submit_ns = submit_ns;
        batcher->paced_ns = helio_batcher_paced(batcher, topic, submit_ns, moment.wall_ns);
        batcher->intended_ns = batcher->next_intended_ns;
    }
    uint8_t *at = batcher->tsdu + batcher->used;
    helio_tsdu_encode_message_header(at, length);
    helio_copy(at + header, data, length);
    batcher->used += needed;
    batcher->count++;
    batcher->body_bytes += length;
    if (submit_ns < batcher->submit_ns) {
        batcher->submit_ns = submit_ns;
        batcher->paced_ns = helio_batcher_paced(batcher, topic, submit_ns, moment.wall_ns);
    }
}

void helio_batcher_append_intended(helio_batcher *batcher, helio_topic_position *topic,
                                   const void *data, size_t length, int64_t submit_ns,
                                   int64_t intended_ns, helio_moment moment) {
    if (batcher->tsdu && !batcher->intended_ns) {
        helio_batcher_flush(batcher, moment);
    }
    batcher->next_intended_ns = intended_ns;
    helio_batcher_append(batcher, topic, data, length, submit_ns, moment);
    batcher->next_intended_ns = 0;
    if (batcher->tsdu && intended_ns < batcher->intended_ns) {
        batcher->intended_ns = intended_ns;
    }
    if (topic->object) {
        helio_record(topic->object->histogram[HELIO_TRANSMITTER_SUBMIT_DELAY],
                     submit_ns - intended_ns, 1);
    }
}

static inline uint8_t *put_message(uint8_t *at, const void *data, size_t length) {
    helio_tsdu_encode_plain(at, length);
    helio_copy(at + HELIO_TSDU_MESSAGE_HEADER, data, length);
    return at + HELIO_TSDU_MESSAGE_HEADER + length;
}

#ifdef __x86_64__
enum { WIDE = 32 };

/* A message of WIDE to twice WIDE bytes, in two copies, which may overlap. */
__attribute__((target("avx2"))) static inline void put_wide(uint8_t *at, const uint8_t *from,
                                                            size_t length) {
    const __m256i first = _mm256_loadu_si256((const void *)from);
    const __m256i second = _mm256_loadu_si256((const void *)(from + length - WIDE));
    helio_tsdu_encode_plain(at, length);
    at += HELIO_TSDU_MESSAGE_HEADER;
    _mm256_storeu_si256((void *)at, first);
    _mm256_storeu_si256((void *)(at + length - WIDE), second);
}

/* As put_equal, two messages at a time. */
__attribute__((target("avx2"))) static const helio_buffer *
put_equal_wide(uint8_t *at, const helio_buffer *message, const helio_buffer *after, size_t length) {
    const size_t step = HELIO_TSDU_MESSAGE_HEADER + length;
    const helio_buffer *const last = after - 1;
    for (; message < last && message[0].length == length && message[1].length == length;
         message += 2, at += 2 * step) {
        put_wide(at, message[0].data, length);
        put_wide(at + step, message[1].data, length);
    }
    if (message < after && message->length == length) {
        put_wide(at, message->data, length);
        message++;
    }
    return message;
}
#endif

/* Copies messages to `at`, up to the first that is not `length` bytes long, which it returns. */
static inline const helio_buffer *put_equal(uint8_t *at, const helio_buffer *message,
                                            const helio_buffer *after, size_t length) {
#ifdef __x86_64__
    if (length >= WIDE && length <= 2 * WIDE && __builtin_cpu_supports("avx2")) {
        return put_equal_wide(at, message, after, length);
    }
#endif
    for (; message < after && message->length == length; message++) {
        at = put_message(at, message->data, length);
    }
    return message;
}

/* Copies leading messages to `to` as far as they fit into `room`; returns the bytes written and sets
 * *taken.  For messages as long as the one before, what fits is asked once for all of them. */
static size_t put_run(uint8_t *to, size_t room, const helio_buffer *messages, size_t count,
                      size_t longest, size_t *taken) {
    uint8_t *at = to;
    const uint8_t *end = to + room;
    const helio_buffer *message = messages, *after = messages + count;
    while (message < after) {
        const size_t length = message->length;
        if (length > longest || (ptrdiff_t)length > end - at - HELIO_TSDU_MESSAGE_HEADER) {
            break;
        }
        at = put_message(at, message->data, length);
        message++;
        if (message == after || message->length != length) {
            continue;
        }
        const size_t step = HELIO_TSDU_MESSAGE_HEADER + length;
        const size_t fitting = (size_t)(end - at) / step, left = (size_t)(after - message);
        const helio_buffer *const first = message,
                                  *stop = first + (fitting < left ? fitting : left);
        message = put_equal(at, first, stop, length);
        at += step * (size_t)(message - first);
    }
    *taken = (size_t)(message - messages);
    return (size_t)(at - to);
}

size_t helio_batcher_append_run(helio_batcher *batcher, helio_topic_position *topic,
                                const helio_buffer *messages, size_t count, size_t longest,
                                int64_t submit_ns, int64_t intended_ns, helio_moment moment) {
    if (!batcher->tsdu || batcher->topic != topic || (intended_ns && !batcher->intended_ns)) {
        return 0;
    }
    const size_t countable = HELIO_TSDU_COUNT_MAX - batcher->count;
    size_t taken;
    const size_t bytes =
        put_run(batcher->tsdu + batcher->used, batcher->tsdu_bytes - batcher->used, messages,
                count < countable ? count : countable,
                longest < HELIO_TSDU_PLAIN_MAX ? longest : HELIO_TSDU_PLAIN_MAX, &taken);
    if (taken == 0) {
        return 0;
    }
    batcher->used += bytes;
    batcher->count += (uint32_t)taken;
    batcher->body_bytes += bytes - taken * HELIO_TSDU_MESSAGE_HEADER;
    if (submit_ns < batcher->submit_ns) {
        batcher->submit_ns = submit_ns;
        batcher->paced_ns = helio_batcher_paced(batcher, topic, submit_ns, moment.wall_ns);
    }
    if (intended_ns) {
        batcher->intended_ns = helio_min(intended_ns, batcher->intended_ns);
        if (topic->object) {
            helio_record(topic->object->histogram[HELIO_TRANSMITTER_SUBMIT_DELAY],
                         submit_ns - intended_ns, taken);
        }
    }
    return taken;
}

void helio_batcher_announce(helio_batcher *batcher, const helio_tsdu_topic *topics, size_t count,
                            uint8_t flags, helio_moment moment) {
    helio_batcher_flush(batcher, moment);
    for (size_t i = 0; i < count;) {
        uint8_t *tsdu = batcher->door.open(batcher->door.context, false);
        size_t used = HELIO_TSDU_HEADER;
        uint16_t entries = 0;
        for (; i < count && entries < HELIO_TSDU_COUNT_MAX &&
               HELIO_TSDU_ENTRY_HEADER + topics[i].name_bytes <= batcher->tsdu_bytes - used;
             i++, entries++) {
            used += helio_tsdu_encode_topic(tsdu + used, &topics[i]);
        }
        helio_tsdu_encode(tsdu, &(helio_tsdu_header){
                                    .kind = HELIO_TSDU_KIND_TOPICS,
                                    .flags = flags,
                                    .count = entries,
                                    .submit_ns = moment.wall_ns,
                                });
        batcher->closing = NULL;
        batcher->door.close(batcher->door.context, used, NULL, moment);
    }
}
