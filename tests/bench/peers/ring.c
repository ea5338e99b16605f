/* Rings in memory between two processes, one writer and one reader: the floor under shared memory.
 *
 *   ring latency|throughput [--kind slot|byte|batch]
 *
 *   slot   fixed slots, each with its sequence in the cache line of the message: one line travels
 *   byte   records of any length behind each other; writer and reader publish their places
 *   batch  the same, publishing every 32 messages and whenever the ring is full or empty */
#include "../duel.h"

enum { SLOTS = 4096, BYTES = 1 << 20, HEADER = 8, BATCH = 32, CREDIT = 256, ROUND = 64 };

typedef enum kind { SLOT, BYTE, BATCHED } kind;

typedef struct ring {
    _Alignas(128) _Atomic uint64_t head; /* byte: written up to here */
    _Alignas(128) _Atomic uint64_t tail; /* read up to here: bytes, or slots */
    _Alignas(128) unsigned char data[SLOTS * (size_t)(DUEL_SIZE_MAX + 128)];
} ring;

/* One side of one ring. */
typedef struct place {
    ring *ring;
    uint64_t at;        /* where it is */
    uint64_t seen;      /* where the other side was last seen */
    uint64_t published; /* what the other side knows of us */
} place;

typedef struct end {
    kind kind;
    size_t size, stride; /* stride: bytes of a slot, or of a record */
    unsigned unpublished;
    duel_board *board;
    place out, in;
    unsigned char message[DUEL_SIZE_MAX + 8];
} end;

static ring *rings;

static bool is_stopped(const end *e) {
    return atomic_load_explicit(&e->board->stop, memory_order_relaxed);
}

/* ---- slots ---- */

static inline _Atomic uint64_t *slot_of(const end *e, const place *p) {
    return (_Atomic uint64_t *)(void *)(p->ring->data + (p->at % SLOTS) * e->stride);
}

static inline bool slot_put(end *e, place *p) {
    if (p->at - p->seen >= SLOTS) {
        p->seen = atomic_load_explicit(&p->ring->tail, memory_order_acquire);
        if (p->at - p->seen >= SLOTS) {
            return false;
        }
    }
    _Atomic uint64_t *slot = slot_of(e, p);
    memcpy((unsigned char *)slot + HEADER, e->message, e->size);
    atomic_store_explicit(slot, ++p->at, memory_order_release);
    return true;
}

static inline const unsigned char *slot_peek(const end *e, const place *p) {
    _Atomic uint64_t *slot = slot_of(e, p);
    return atomic_load_explicit(slot, memory_order_acquire) == p->at + 1
               ? (const unsigned char *)slot + HEADER
               : NULL;
}

static inline void slot_drop(place *p) {
    if (++p->at % CREDIT == 0) {
        atomic_store_explicit(&p->ring->tail, p->at, memory_order_release);
    }
}

/* ---- bytes ---- */

/* A record of 0 bytes fills the end of the ring, where the next one would not fit. */
static inline bool byte_put(end *e, place *p) {
    const uint64_t left = BYTES - p->at % BYTES;
    const uint64_t skip = left < e->stride ? left : 0;
    if (p->at + skip + e->stride - p->seen > BYTES) {
        atomic_store_explicit(&p->ring->head, p->at, memory_order_release);
        p->seen = atomic_load_explicit(&p->ring->tail, memory_order_acquire);
        if (p->at + skip + e->stride - p->seen > BYTES) {
            return false;
        }
    }
    if (skip) {
        *(uint64_t *)(void *)(p->ring->data + p->at % BYTES) = 0;
        p->at += skip;
    }
    unsigned char *record = p->ring->data + p->at % BYTES;
    *(uint64_t *)(void *)record = e->size;
    memcpy(record + HEADER, e->message, e->size);
    p->at += e->stride;
    if (e->kind == BYTE || ++e->unpublished == BATCH) {
        e->unpublished = 0;
        atomic_store_explicit(&p->ring->head, p->at, memory_order_release);
    }
    return true;
}

static inline const unsigned char *byte_peek(place *p, uint64_t *size) {
    for (;;) {
        if (p->at == p->seen) {
            p->seen = atomic_load_explicit(&p->ring->head, memory_order_acquire);
            if (p->at == p->seen) {
                if (p->published != p->at) {
                    p->published = p->at;
                    atomic_store_explicit(&p->ring->tail, p->at, memory_order_release);
                }
                return NULL;
            }
        }
        const unsigned char *record = p->ring->data + p->at % BYTES;
        *size = *(const uint64_t *)(const void *)record;
        if (*size) {
            return record + HEADER;
        }
        p->at += BYTES - p->at % BYTES;
    }
}

static inline void byte_drop(place *p, uint64_t size, bool at_once) {
    p->at += (HEADER + size + 7) / 8 * 8;
    if (at_once || p->at - p->published >= BYTES / 16) {
        p->published = p->at;
        atomic_store_explicit(&p->ring->tail, p->at, memory_order_release);
    }
}

/* ---- both ---- */

static inline bool put(end *e) {
    return e->kind == SLOT ? slot_put(e, &e->out) : byte_put(e, &e->out);
}

static void send_one(void *channel, uint64_t number, size_t size) {
    end *e = channel;
    (void)size;
    memcpy(e->message, &number, sizeof number);
    while (!put(e) && !is_stopped(e)) {
    }
}

static bool receive_one(void *channel, uint64_t *number) {
    end *e = channel;
    uint64_t size = e->size;
    const unsigned char *data = e->kind == SLOT ? slot_peek(e, &e->in) : byte_peek(&e->in, &size);
    if (!data) {
        return false;
    }
    memcpy(e->message, data, size); /* out of the ring, as a socket's recv does */
    if (e->kind == SLOT) {
        slot_drop(&e->in);
    } else {
        byte_drop(&e->in, size, true);
    }
    memcpy(number, e->message, sizeof *number);
    return true;
}

static inline void put_some(end *e, size_t count) {
    for (size_t i = 0; i < count; i++) {
        while (!put(e)) {
            if (is_stopped(e)) {
                return;
            }
        }
    }
}

static void pour(void *channel) {
    end *e = channel;
    const size_t before = duel_marked(ROUND * 8);
    put_some(e, before);
    duel_mark(e->message);
    put_some(e, 1);
    duel_unmark(e->message);
    put_some(e, ROUND * 8 - 1 - before);
}

static uint64_t take(void *channel) {
    end *e = channel;
    uint64_t size = e->size, messages = 0;
    for (; messages < ROUND; messages++) {
        const unsigned char *data =
            e->kind == SLOT ? slot_peek(e, &e->in) : byte_peek(&e->in, &size);
        if (!data) {
            break;
        }
        duel_arrive(e->board, data);
        if (e->kind == SLOT) {
            slot_drop(&e->in);
        } else {
            byte_drop(&e->in, size, false);
        }
    }
    return messages;
}

static void *open_end(const duel *d) {
    static end e;
    const char *text = duel_option(d, "--kind", "slot");
    const int side = d->child == 0;
    e.kind = strcmp(text, "slot") == 0 ? SLOT : strcmp(text, "byte") == 0 ? BYTE : BATCHED;
    if (e.kind == BATCHED && strcmp(d->what, "latency") == 0) {
        e.kind = BYTE; /* a ping waits for nobody */
    }
    e.size = d->size;
    e.stride = e.kind == SLOT ? (HEADER + d->size + 63) / 64 * 64 : (HEADER + d->size + 7) / 8 * 8;
    e.board = d->board;
    e.out.ring = &rings[side];
    e.in.ring = &rings[!side];
    return &e;
}

int main(int argc, char **argv) {
    static const char *const names[] = {"--kind", NULL};
    duel d;
    duel_init(&d, argc, argv, "latency|throughput [--kind slot|byte|batch]", names);
    rings =
        mmap(NULL, 2 * sizeof *rings, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (rings == MAP_FAILED) {
        duel_fail("mmap", NULL);
    }
    return duel_play(&d, (duel_ends){open_end, send_one, receive_one, pour, take, NULL});
}
