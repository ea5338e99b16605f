/* The books of all objects there are, live and gone, held against the catalogue's identities. */
#ifndef HELIO_TESTS_BOOKS_H
#define HELIO_TESTS_BOOKS_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "generated/identities.h"
#include "stats/segment.h"

static inline const void *books_record(const helio_stats *stats,
                                       const helio_segment_object *object) {
    return stats->memory + object->record_offset;
}

/* What does not apply to an object adds nothing. */
static inline uint64_t books_cell(const _Atomic uint64_t *cell) {
    const uint64_t value = helio_cell(cell);
    return value == HELIO_STATS_ABSENT ? 0 : value;
}

static inline bool books_complain(const helio_segment_object *object, const char *what,
                                  uint64_t left, uint64_t right) {
    fprintf(stderr, "%s: %lld, not %lld, in the books of\n%s", what, (long long)left,
            (long long)right, object->labels);
    return false;
}

/* One object; false, and a word on standard error, when some identity does not hold. */
static inline bool books_hold_of(const helio_stats *stats, const helio_segment_object *object) {
    const void *memory = books_record(stats, object);
#define CELL(name) books_cell(&record->name)
#define CHECK_IDENTITY(SCOPE, scope_, name, left, right)                   \
    if (object->scope == HELIO_SCOPE_##SCOPE) {                            \
        const helio_##scope_##_stats *record = memory;                     \
        if ((left) != (right))                                             \
            return books_complain(object, #scope_ "." #name, left, right); \
    }
    HELIO_IDENTITIES(CHECK_IDENTITY)
#undef CHECK_IDENTITY
#undef CELL
    return true;
}

static inline bool books_hold(const helio_stats *stats) {
    const uint64_t used = helio_cell(&stats->header->objects_used);
    for (uint64_t i = 0; i < used; i++) {
        if (!books_hold_of(stats, &stats->objects[i])) {
            return false;
        }
    }
    return true;
}

/* The value of a label, up to its line's end; NULL: it has none of this name. */
static inline const char *books_label(const helio_segment_object *object, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = object->labels; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, name, length) == 0 && at[length] == '=') {
            return at + length + 1;
        }
    }
    return NULL;
}

static inline bool books_same(const helio_segment_object *a, const helio_segment_object *b,
                              const char *label) {
    const char *of_a = books_label(a, label), *of_b = books_label(b, label);
    if (!of_a || !of_b) {
        return !of_a && !of_b;
    }
    const size_t length = strcspn(of_a, "\n");
    return strcspn(of_b, "\n") == length && memcmp(of_a, of_b, length) == 0;
}

/* What is in flight between two ends, by one join; false: they do not belong together. */
static inline bool books_joined(const helio_stats *stats, const helio_segment_object *sender,
                                const helio_segment_object *receiver, uint64_t *in_flight) {
    const void *sent_memory = books_record(stats, sender);
    const void *memory = books_record(stats, receiver);
    if (!books_same(sender, receiver, "stream") || !books_same(sender, receiver, "topic")) {
        return false;
    }
#define SENT(name) books_cell(&sent->name)
#define CELL(name) books_cell(&record->name)
#define CHECK_JOIN(SENDER, sender_, RECEIVER, receiver_, name, left, right, modulo)           \
    if (sender->scope == HELIO_SCOPE_##SENDER && receiver->scope == HELIO_SCOPE_##RECEIVER) { \
        const helio_##sender_##_stats *sent = sent_memory;                                    \
        const helio_##receiver_##_stats *record = memory;                                     \
        const uint64_t of = UINT64_C(modulo), difference = (left) - (right);                  \
        *in_flight = of ? difference % of : difference;                                       \
        return true;                                                                          \
    }
    HELIO_JOINS(CHECK_JOIN)
#undef CHECK_JOIN
#undef CELL
#undef SENT
    return false;
}

/* All is quiet: nothing is in flight between live ends. */
static inline bool books_are_settled(const helio_stats *stats) {
    const uint64_t used = helio_cell(&stats->header->objects_used);
    for (uint64_t i = 0; i < used; i++) {
        const helio_segment_object *sender = &stats->objects[i];
        for (uint64_t k = 0; k < used; k++) {
            const helio_segment_object *receiver = &stats->objects[k];
            uint64_t in_flight = 0;
            if (sender->state == HELIO_OBJECT_LIVE && receiver->state == HELIO_OBJECT_LIVE &&
                books_joined(stats, sender, receiver, &in_flight) && in_flight != 0) {
                return books_complain(receiver, "in flight", in_flight, 0);
            }
        }
    }
    return books_hold(stats);
}

#endif
