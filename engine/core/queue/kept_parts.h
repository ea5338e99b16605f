/* The state of a bounded queue and what its two files share: kept_store.c (where its messages lie
 * and how they are linked) and kept_queue.c (which of them stay). */
#ifndef HELIO_QUEUE_KEPT_PARTS_H
#define HELIO_QUEUE_KEPT_PARTS_H

#include "queue/kept_queue.h"

#define HELIO_KEPT_NOBODY UINT32_MAX /* as a number of a node */

/* Memory of a message longer than the arena takes. */
typedef struct helio_kept_outside {
    struct helio_kept_outside *next; /* of those given out */
    size_t bytes;                    /* of all this */
    uint8_t record[];
} helio_kept_outside;

/* A message that waits.  Nodes are linked by number: along the queue, and along those of the same
 * priority or the same key's hash. */
typedef struct helio_kept_node {
    uint8_t *record;             /* its head, then its data */
    helio_kept_outside *outside; /* NULL: it lies in the arena */
    uint64_t place;
    int64_t came_ns;
    size_t length;
    uint32_t previous, next;
    uint32_t before, after; /* of the same level or bucket */
} helio_kept_node;

typedef struct helio_kept_list {
    uint32_t first, last;
} helio_kept_list;

struct helio_kept_queue {
    helio_kept_config config;
    _Atomic uint64_t messages, bytes; /* that wait */
    uint64_t next_place;
    int64_t expire_due_ns; /* nothing is too old before */
    helio_kept_list queue;

    helio_kept_node *nodes;
    uint32_t places; /* nodes there are */
    uint32_t fresh;  /* the first never used */
    uint32_t free;   /* the last given back, linked by `next` */

    helio_kept_list *lists; /* of each level, or each bucket of keys; NULL: neither */
    size_t lists_count;     /* a power of two */
    uint64_t *level_bytes, *level_messages;

    uint8_t *arena;
    size_t arena_bytes, arena_end;

    uint8_t *hand; /* what was taken is copied here */
    size_t hand_bytes, hand_end;
    helio_kept_outside *given; /* long messages taken */
    uint64_t memory;           /* of it, as taken from the account */
};

/* A message with its head, as it lies in memory. */
size_t helio_kept_record_bytes(const helio_kept_queue *queue, size_t length);

/* The message of the same key, HELIO_KEPT_NOBODY when there is none. */
uint32_t helio_kept_find(const helio_kept_queue *queue, const uint8_t *data, size_t length);
uint8_t helio_kept_level(const helio_kept_queue *queue, const uint8_t *data, size_t length);

/* Node `i`, whose record is written, goes to the end of the queue and of the list of its like; out
 * of both. */
void helio_kept_link(helio_kept_queue *queue, uint32_t i);
void helio_kept_unlink(helio_kept_queue *queue, uint32_t i);

/* Whether a message of this length has memory of its own; that memory, NULL when there is none. */
bool helio_kept_is_long(const helio_kept_queue *queue, size_t length);
helio_kept_outside *helio_kept_allocate(helio_kept_queue *queue, size_t length);
/* Memory in the arena for the record of node `owner`.  The bound leaves room for it, so there is
 * some once the arena is compacted. */
uint8_t *helio_kept_place(helio_kept_queue *queue, uint32_t owner, size_t length);
/* The memory of a node's record is free. */
void helio_kept_forget(helio_kept_queue *queue, helio_kept_node *message);

#endif
