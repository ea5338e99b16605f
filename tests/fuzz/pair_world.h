/* What fuzz_pair plays with: a source and a receiver, the packets between them in two queues, and an account of every message
 * each subscription got.
 *
 * Nothing moves by itself but time: a packet waits in its queue until the program passes, drops, doubles or damages it. */
#ifndef HELIO_TESTS_PAIR_WORLD_H
#define HELIO_TESTS_PAIR_WORLD_H

#include <stdbool.h>
#include <stddef.h>

#include "receive/fast_path.h"
#include "reconciliation.h"
#include "world.h"

#define MUST(condition)                                                             \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                \
        }                                                                           \
    } while (0)

enum {
    QUEUE_MAX = 256,
    LIVES_MAX = 4, /* of the source */
    TOPICS = 2,    /* "a" and "b" */
    SUBSCRIBERS =
        3, /* 0: "a", from the start to the end; 1: "b"; 2: "a"; the last two come and go */
    MESSAGES_MAX = 2048,
    MESSAGE_MAX = 6000,
    MEMORY_MAX = 32 << 20,
    STREAMS_MAX = 4,
};

typedef struct carried {
    uint8_t *bytes; /* exactly `length`, so that the sanitizer sees a read beyond */
    size_t length;
} carried;

typedef struct queue {
    carried packets[QUEUE_MAX];
    size_t count;
} queue;

/* What a subscription got of one stream. */
typedef struct account {
    uint8_t life;                   /* of the source, and 1 */
    uint8_t seen[MESSAGES_MAX];     /* 1: delivered; 2: lost */
    bool is_given_up[MESSAGES_MAX]; /* acknowledged and not seen: it can only be lost */
    uint64_t first, next,
        done; /* after the newest delivered or lost; what the application acknowledged */
    bool is_begun, is_ended;
} account;

typedef struct subscriber {
    helio_subscription *subscription; /* NULL: not now */
    int topic;
    helio_sink_ack ack;
    account streams[STREAMS_MAX];
} subscriber;

typedef struct pair {
    helio_stats *stats;
    helio_stats_object instance;
    helio_tx_stream *source;
    helio_rx_endpoint *receiver;
    helio_tx_topic *topics[TOPICS];
    helio_moment now;
    queue down, up; /* from the source, and to it */
    int life;       /* of the source: 1, 2, ... */
    uint64_t sent[LIVES_MAX + 1][TOPICS];
    subscriber subscribers[SUBSCRIBERS];
    helio_address source_address, receiver_address;
    size_t room;     /* messages a sink takes of one call */
    bool is_arrival; /* messages may come before their turn */
    bool is_forged;  /* somebody else has spoken: of the messages nothing is sure any more */
    bool
        is_disturbed; /* the source turned the receiver away, or a stream expired: the tail may be missing */
    bool is_closed;  /* the source takes no more messages */
    helio_loan loan; /* nobody lends, but a lone message could be lent */
    bool takes_lone; /* each packet is offered as a lone message first, while "a" alone is wanted */
    uint32_t newest_stream; /* of subscriber 0 */
    /* Of all that the receiver has done: deliveries and statistics; and packets, which leave before or
     * after a lone message is delivered. */
    uint64_t digest, posted;
} pair;

static pair *the_pair; /* sinks and outlets know only their own */

/* Adds bytes to a digest (FNV-1a). */
static inline void pair_add(uint64_t *digest, const void *bytes, size_t length) {
    const uint8_t *at = bytes;
    for (size_t i = 0; i < length; i++) {
        *digest = (*digest ^ at[i]) * UINT64_C(0x100000001b3);
    }
}

static inline void pair_digest(pair *p, const void *bytes, size_t length) {
    pair_add(&p->digest, bytes, length);
}

/* Adds the statistics of all objects, without the guards of their records. */
static inline void pair_digest_statistics(pair *p) {
    const uint64_t used = helio_cell(&p->stats->header->objects_used);
    for (uint64_t i = 0; i < used; i++) {
        const helio_segment_object *object = &p->stats->objects[i];
        const uint8_t *record = books_record(p->stats, object);
        pair_digest(p, object->labels, strlen(object->labels));
        pair_digest(p, record + sizeof(uint64_t), object->record_bytes - sizeof(uint64_t));
    }
}

/* ---- packets ---- */

static inline int pair_post(void *context, const helio_address *to, const void *packet,
                            size_t length, bool stable) {
    queue *box = context;
    (void)to, (void)stable;
    MUST(length > 0 && length <= 65507);
    pair_add(&the_pair->posted, packet, length);
    if (box->count == QUEUE_MAX) {
        return 0; /* lost on the way */
    }
    carried *into = &box->packets[box->count++];
    *into = (carried){.bytes = malloc(length), .length = length};
    MUST(into->bytes);
    memcpy(into->bytes, packet, length);
    return 0;
}

static inline carried pair_take(queue *box, size_t at) {
    const carried packet = box->packets[at];
    memmove(&box->packets[at], &box->packets[at + 1], (--box->count - at) * sizeof packet);
    return packet;
}

static inline void pair_empty(queue *box) {
    while (box->count) {
        free(box->packets[--box->count].bytes);
    }
}

static inline const helio_address *pair_sender(const pair *p, bool is_down) {
    return is_down ? &p->source_address : &p->receiver_address;
}

/* ---- what a subscription is told ---- */

static inline void pair_mark(pair *p, subscriber *s, account *of, uint64_t number, uint8_t what) {
    MUST(number < p->sent[of->life][s->topic]); /* nothing that was never sent */
    MUST(of->seen[number] == 0);                /* nothing twice, and nothing lost and delivered */
    MUST(what == 2 ||
         !of->is_given_up[number]); /* and nothing that counted as acknowledged before it came */
    of->seen[number] = what;
}

static volatile uint8_t touched;

static inline void pair_on_stream(void *context, uint32_t stream, const helio_tsi *tsi,
                                  helio_stats_object *object) {
    subscriber *s = context;
    (void)object;
    if (s == &the_pair->subscribers[0]) {
        the_pair->newest_stream = stream;
    }
    if (stream < STREAMS_MAX) {
        s->streams[stream] =
            (account){.life = (uint8_t)(tsi->gsi[5] <= LIVES_MAX ? tsi->gsi[5] : 0)};
    }
}

static inline void pair_on_end(void *context, uint32_t stream) {
    subscriber *s = context;
    if (stream < STREAMS_MAX) {
        s->streams[stream].is_ended = true;
    }
    if (stream >= STREAMS_MAX || s->streams[stream].life == the_pair->life) {
        the_pair->is_disturbed = true; /* an expired stream is met again as a new one */
    }
}

static inline size_t pair_on_messages(void *context, const helio_message *messages, size_t count) {
    subscriber *s = context;
    pair *p = the_pair;
    const size_t taken = count < p->room ? count : p->room;
    uint8_t sum = 0;
    for (size_t i = 0; i < taken; i++) {
        const helio_message *m = &messages[i];
        for (size_t k = 0; k < m->length; k++) { /* touch every byte */
            sum ^= ((const uint8_t *)m->data)[k];
        }
        pair_digest(p, m->data, m->length);
        pair_digest(p, &m->length, sizeof *m - offsetof(helio_message, length));
        if (p->is_forged || m->stream >= STREAMS_MAX) {
            continue;
        }
        account *of = &s->streams[m->stream];
        uint64_t number;
        MUST(m->length >= sizeof number);
        memcpy(&number, m->data, sizeof number);
        MUST(number == m->number);
        pair_mark(p, s, of, number, 1);
        MUST(p->is_arrival || !of->is_begun || number == of->next);
        of->first = of->is_begun && of->first < number ? of->first : number;
        of->is_begun = true;
        of->next = number + 1 > of->next ? number + 1 : of->next;
    }
    touched += sum;
    return taken;
}

/* As the caller of a receive. */
static inline bool pair_take_lone(pair *p, const uint8_t *bytes, size_t length,
                                  const helio_address *from) {
    const helio_datagram datagram = {bytes, length, *from, 0};
    helio_message message;
    return p->takes_lone && p->room > 0 && !p->subscribers[1].subscription &&
           !p->subscribers[2].subscription &&
           helio_rx_take_lone(p->receiver, &datagram, p->newest_stream, p->now, &message) &&
           pair_on_messages(&p->subscribers[0], &message, 1) == 1;
}

/* Hands a packet over, in memory of its own that ends with it. */
static inline void pair_give(pair *p, bool is_down, const uint8_t *bytes, size_t length,
                             const helio_address *from) {
    uint8_t *copy = malloc(length ? length : 1);
    MUST(copy);
    memcpy(copy, bytes, length);
    if (is_down && !pair_take_lone(p, copy, length, from)) {
        helio_rx_endpoint_on_packet(p->receiver, copy, length, from, p->now.wall_ns, p->now);
    } else if (!is_down && p->source) {
        helio_tx_stream_on_packet(p->source, copy, length, from, p->now);
    }
    free(copy);
}

static inline void pair_on_loss(void *context, const helio_loss *loss) {
    subscriber *s = context;
    MUST(loss->count > 0);
    const uint64_t numbers[] = {loss->first, loss->count, loss->stream};
    pair_digest(the_pair, numbers, sizeof numbers);
    if (the_pair->is_forged || loss->stream >= STREAMS_MAX) {
        return;
    }
    account *of = &s->streams[loss->stream];
    MUST(the_pair->is_arrival || !of->is_begun || loss->first == of->next);
    for (uint64_t i = 0; i < loss->count; i++) {
        pair_mark(the_pair, s, of, loss->first + i, 2);
    }
    of->first = of->is_begun && of->first < loss->first ? of->first : loss->first;
    of->is_begun = true;
    const uint64_t next = loss->first + loss->count;
    of->next = next > of->next ? next : of->next;
}

static inline void pair_subscribe(pair *p, int which) {
    subscriber *s = &p->subscribers[which];
    const helio_sink sink = {.context = s,
                             .on_stream = pair_on_stream,
                             .on_stream_end = pair_on_end,
                             .on_messages = pair_on_messages,
                             .on_loss = pair_on_loss,
                             .ack = s->ack};
    memset(s->streams, 0, sizeof s->streams);
    MUST(helio_rx_endpoint_subscribe(p->receiver, s->topic ? "b" : "a", &sink, p->now,
                                     &s->subscription) == 0);
}

static inline void pair_unsubscribe(pair *p, int which) {
    subscriber *s = &p->subscribers[which];
    const bool was_disturbed = p->is_disturbed;
    helio_rx_endpoint_unsubscribe(p->receiver, s->subscription, p->now);
    s->subscription = NULL;
    p->is_disturbed = was_disturbed;
}

/* ---- time ---- */

static inline int64_t pair_deadline(const pair *p) {
    const int64_t tx = p->source ? helio_tx_stream_next_deadline_ns(p->source) : HELIO_NEVER;
    const int64_t rx = helio_rx_endpoint_next_deadline_ns(p->receiver);
    return tx < rx ? tx : rx;
}

static inline void pair_poll(pair *p) {
    if (p->source) {
        helio_tx_stream_poll(p->source, p->now);
    }
    helio_rx_endpoint_poll(p->receiver, p->now);
}

static inline void pair_pass_time(pair *p, int64_t ns) {
    const int64_t end_ns = p->now.now_ns + ns;
    for (int turns = 0; turns < 2000; turns++) {
        pair_poll(p);
        int64_t next_ns = pair_deadline(p);
        if (next_ns <= p->now.now_ns) { /* at once, and once more when it says so again */
            next_ns = p->now.now_ns + 20 * HELIO_MICROSECOND;
        }
        if (next_ns > end_ns) {
            break;
        }
        p->now.wall_ns += next_ns - p->now.now_ns;
        p->now.now_ns = next_ns;
    }
    if (end_ns > p->now.now_ns) {
        p->now.wall_ns += end_ns - p->now.now_ns;
        p->now.now_ns = end_ns;
    }
    pair_poll(p);
}

/* All that waits gets through, and what it causes, for some turns. */
static inline void pair_pass_all(pair *p, int turns) {
    for (; turns > 0 && p->down.count + p->up.count > 0; turns--) {
        for (int is_down = 0; is_down <= 1; is_down++) {
            queue *box = is_down ? &p->down : &p->up;
            for (size_t left = box->count; left > 0; left--) {
                const carried packet = pair_take(box, 0);
                pair_give(p, is_down, packet.bytes, packet.length, pair_sender(p, is_down));
                free(packet.bytes);
            }
        }
        pair_poll(p);
    }
}

#endif
