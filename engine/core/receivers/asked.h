/* The packets that one receiver has requested: a window of bits that ends with the newest of them.
 *
 * It distinguishes a first request from a repeated one.  It is exact for packets at most
 * HELIO_ASKED_SPAN - 1 before the newest one; a request for an older packet counts as repeated. */
#ifndef HELIO_RECEIVERS_ASKED_H
#define HELIO_RECEIVERS_ASKED_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { HELIO_ASKED_SPAN = 4096, HELIO_ASKED_WORDS = HELIO_ASKED_SPAN / 64 };

typedef struct helio_asked {
    /* 0: nothing was requested. */
    uint64_t newest;
    /* By sequence; those outside the window are 0. */
    uint64_t bits[HELIO_ASKED_WORDS];
} helio_asked;

static inline uint64_t *helio_asked_word(helio_asked *asked, uint64_t sequence) {
    return &asked->bits[sequence / 64 % HELIO_ASKED_WORDS];
}

static inline uint64_t helio_asked_bit(uint64_t sequence) {
    return UINT64_C(1) << sequence % 64;
}

/* Moves the window so that it ends with `sequence`. */
static inline void helio_asked_advance(helio_asked *asked, uint64_t sequence) {
    if (asked->newest == 0 || sequence - asked->newest >= HELIO_ASKED_SPAN) {
        memset(asked->bits, 0, sizeof asked->bits);
    } else {
        for (uint64_t s = asked->newest + 1; s <= sequence; s++) {
            *helio_asked_word(asked, s) &= ~helio_asked_bit(s);
        }
    }
    asked->newest = sequence;
}

static inline bool helio_asked_reaches(const helio_asked *asked, uint64_t sequence) {
    return asked->newest != 0 && asked->newest - sequence < HELIO_ASKED_SPAN;
}

/* The receiver requests a packet.  True for the first time. */
static inline bool helio_asked_note(helio_asked *asked, uint64_t sequence) {
    if (sequence > asked->newest) {
        helio_asked_advance(asked, sequence);
    } else if (!helio_asked_reaches(asked, sequence)) {
        return false;
    }
    const bool is_first = !(*helio_asked_word(asked, sequence) & helio_asked_bit(sequence));
    *helio_asked_word(asked, sequence) |= helio_asked_bit(sequence);
    return is_first;
}

/* The oldest packet after `sequence` that it has requested; 0: none. */
static inline uint64_t helio_asked_after(helio_asked *asked, uint64_t sequence) {
    if (asked->newest <= sequence) {
        return 0;
    }
    uint64_t s = asked->newest - sequence >= HELIO_ASKED_SPAN ? asked->newest - HELIO_ASKED_SPAN + 1
                                                              : sequence + 1;
    for (; s <= asked->newest; s++) {
        const uint64_t word = *helio_asked_word(asked, s) >> s % 64;
        if (word == 0) {
            s |= 63; /* the loop goes on with the next word */
        } else {
            return s + (uint64_t)__builtin_ctzll(word);
        }
    }
    return 0;
}

#endif
