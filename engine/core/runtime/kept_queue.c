#include "runtime/kept_queue.h"

#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "base/bits.h"
#include "base/hash.h"

enum {
    LEVELS = 256,   /* of priority */
    LONG_SHARE = 4, /* of the bound, from which a message has memory of its own */
};
#define NOBODY UINT32_MAX

/* Before each record in the arena. */
typedef struct record_mark {
    uint32_t node;  /* whose it is; NOBODY: its message has gone */
    uint32_t bytes; /* with this mark */
} record_mark;
_Static_assert(sizeof(record_mark) == 8, "records lie at multiples of 8");

/* Memory of a message longer than the arena takes. */
typedef struct outside {
    struct outside *next; /* of those given out */
    size_t bytes;         /* of all this */
    uint8_t record[];
} outside;

/* A message that waits.  Nodes are linked by number: along the queue, and along those of the same
 * priority or the same key's hash. */
typedef struct node {
    uint8_t *record;  /* its head, then its data */
    outside *outside; /* NULL: it lies in the arena */
    uint64_t place;
    int64_t came_ns;
    size_t length;
    uint32_t previous, next;
    uint32_t before, after; /* of the same level or bucket */
} node;

typedef struct list {
    uint32_t first, last;
} list;

struct helio_kept_queue {
    helio_kept_config config;
    _Atomic uint64_t messages, bytes; /* that wait */
    uint64_t next_place;
    int64_t expire_due_ns; /* nothing is too old before */
    list queue;

    node *nodes;
    uint32_t places; /* nodes there are */
    uint32_t fresh;  /* the first never used */
    uint32_t free;   /* the last given back, linked by `next` */

    list *lists;        /* of each level, or each bucket of keys; NULL: neither */
    size_t lists_count; /* a power of two */
    uint64_t *level_bytes, *level_messages;

    uint8_t *arena;
    size_t arena_bytes, arena_end;

    uint8_t *hand; /* what was taken is copied here */
    size_t hand_bytes, hand_end;
    outside *given;  /* long messages taken */
    uint64_t memory; /* of it, as taken from the account */
};

/* ---- sizes ---- */

static size_t record_bytes(const helio_kept_queue *queue, size_t length) {
    return queue->config.head_bytes + (size_t)helio_round_up(length, 8);
}

size_t helio_kept_queue_cost(const helio_kept_queue *queue, size_t length) {
    return sizeof(node) + sizeof(record_mark) + record_bytes(queue, length);
}

static bool is_long(const helio_kept_queue *queue, size_t length) {
    return helio_kept_queue_cost(queue, length) > queue->config.bytes / LONG_SHARE;
}

static uint64_t load(const _Atomic uint64_t *cell) {
    return atomic_load_explicit(cell, memory_order_relaxed);
}

uint64_t helio_kept_queue_messages(const helio_kept_queue *queue) {
    return atomic_load_explicit(&queue->messages, memory_order_acquire);
}

uint64_t helio_kept_queue_bytes(const helio_kept_queue *queue) {
    return atomic_load_explicit(&queue->bytes, memory_order_acquire);
}

/* Messages came or went. */
static void add(helio_kept_queue *queue, uint64_t messages, uint64_t bytes) {
    atomic_store_explicit(&queue->bytes, load(&queue->bytes) + bytes, memory_order_release);
    atomic_store_explicit(&queue->messages, load(&queue->messages) + messages,
                          memory_order_release);
}

/* ---- create, destroy ---- */

static size_t lists_for(const helio_kept_config *config, uint32_t places) {
    return config->policy == HELIO_KEPT_PRIORITY   ? LEVELS
           : config->policy == HELIO_KEPT_CONFLATE ? (size_t)helio_round_up_power_of_two(places)
                                                   : 0;
}

static int allocate(helio_kept_queue *queue) {
    const size_t lists = queue->lists_count;
    queue->nodes = calloc(queue->places, sizeof *queue->nodes);
    queue->arena = malloc(queue->arena_bytes);
    queue->hand = malloc(queue->hand_bytes);
    queue->lists = calloc(lists ? lists : 1, sizeof *queue->lists);
    queue->level_bytes = calloc(LEVELS, sizeof *queue->level_bytes);
    queue->level_messages = calloc(LEVELS, sizeof *queue->level_messages);
    if (!queue->nodes || !queue->arena || !queue->hand || !queue->lists || !queue->level_bytes ||
        !queue->level_messages) {
        return HELIO_ERR_NOMEM;
    }
    for (size_t i = 0; i < lists; i++) {
        queue->lists[i] = (list){NOBODY, NOBODY};
    }
    return 0;
}

int helio_kept_queue_create(const helio_kept_config *config, helio_kept_queue **out) {
    helio_kept_queue *queue = calloc(1, sizeof *queue);
    if (!queue) {
        return HELIO_ERR_NOMEM;
    }
    queue->config = *config;
    queue->queue = (list){NOBODY, NOBODY};
    queue->free = NOBODY;
    const size_t most = config->bytes / helio_kept_queue_cost(queue, 0) + 1;
    queue->places =
        (uint32_t)(config->messages && config->messages < most ? config->messages : most);
    queue->lists_count = lists_for(config, queue->places);
    queue->arena_bytes = (size_t)helio_round_up(config->bytes + config->bytes / 2, 64);
    queue->hand_bytes = (size_t)helio_round_up(config->bytes / LONG_SHARE, 64);
    const uint64_t memory = queue->arena_bytes + queue->hand_bytes +
                            queue->places * sizeof *queue->nodes +
                            queue->lists_count * sizeof *queue->lists;
    if (!helio_account_take(config->account, memory)) {
        free(queue);
        return HELIO_ERR_NOMEM;
    }
    queue->memory = memory;
    const int error = allocate(queue);
    if (error) {
        helio_kept_queue_destroy(queue);
        return error;
    }
    *out = queue;
    return 0;
}

static void free_outside(helio_kept_queue *queue, outside *message) {
    if (message) {
        helio_account_give(queue->config.account, message->bytes);
        free(message);
    }
}

void helio_kept_queue_give_back(helio_kept_queue *queue) {
    queue->hand_end = 0;
    while (queue->given) {
        outside *message = queue->given;
        queue->given = message->next;
        free_outside(queue, message);
    }
}

bool helio_kept_queue_has_given(const helio_kept_queue *queue) {
    return queue->hand_end > 0 || queue->given;
}

void helio_kept_queue_destroy(helio_kept_queue *queue) {
    if (!queue) {
        return;
    }
    if (queue->nodes) {
        for (uint32_t i = queue->queue.first; i != NOBODY; i = queue->nodes[i].next) {
            free_outside(queue, queue->nodes[i].outside);
        }
    }
    helio_kept_queue_give_back(queue);
    helio_account_give(queue->config.account, queue->memory);
    free(queue->nodes);
    free(queue->arena);
    free(queue->hand);
    free(queue->lists);
    free(queue->level_bytes);
    free(queue->level_messages);
    free(queue);
}

/* ---- keys and levels ---- */

static const uint8_t *data_of(const helio_kept_queue *queue, const node *message) {
    return message->record + queue->config.head_bytes;
}

static bool has_key(const helio_kept_queue *queue, size_t length) {
    return queue->config.policy == HELIO_KEPT_CONFLATE &&
           length >= queue->config.key_offset + queue->config.key_bytes;
}

static uint8_t level_of(const helio_kept_queue *queue, const uint8_t *data, size_t length) {
    const int64_t offset = queue->config.priority_offset;
    return offset >= 0 && (size_t)offset < length ? data[offset] : 0;
}

/* The list of its like that a message belongs to; NULL: none. */
static list *list_of(const helio_kept_queue *queue, const uint8_t *data, size_t length) {
    if (queue->config.policy == HELIO_KEPT_PRIORITY) {
        return &queue->lists[level_of(queue, data, length)];
    }
    if (!has_key(queue, length)) {
        return NULL;
    }
    const uint64_t hash =
        helio_hash_fnv1a(data + queue->config.key_offset, queue->config.key_bytes);
    return &queue->lists[(hash ^ hash >> 32) & (queue->lists_count - 1)];
}

/* The message of the same key, NOBODY when there is none. */
static uint32_t find_key(const helio_kept_queue *queue, const uint8_t *data, size_t length) {
    const list *bucket = has_key(queue, length) ? list_of(queue, data, length) : NULL;
    const size_t offset = queue->config.key_offset;
    uint32_t i = bucket ? bucket->first : NOBODY;
    while (i != NOBODY && memcmp(data_of(queue, &queue->nodes[i]) + offset, data + offset,
                                 queue->config.key_bytes) != 0) {
        i = queue->nodes[i].after;
    }
    return i;
}

static void count_level(helio_kept_queue *queue, const node *message, uint64_t messages) {
    if (queue->config.policy == HELIO_KEPT_PRIORITY) {
        const uint8_t level = level_of(queue, data_of(queue, message), message->length);
        queue->level_messages[level] += messages;
        queue->level_bytes[level] += messages * helio_kept_queue_cost(queue, message->length);
    }
}

/* ---- linking ---- */

static void link_node(helio_kept_queue *queue, uint32_t i) {
    node *nodes = queue->nodes;
    nodes[i].previous = queue->queue.last;
    nodes[i].next = NOBODY;
    *(queue->queue.last == NOBODY ? &queue->queue.first : &nodes[queue->queue.last].next) = i;
    queue->queue.last = i;
    list *like = list_of(queue, data_of(queue, &nodes[i]), nodes[i].length);
    if (like) {
        nodes[i].before = like->last;
        nodes[i].after = NOBODY;
        *(like->last == NOBODY ? &like->first : &nodes[like->last].after) = i;
        like->last = i;
        count_level(queue, &nodes[i], 1);
    }
}

static void unlink_node(helio_kept_queue *queue, uint32_t i) {
    node *nodes = queue->nodes;
    const node *gone = &nodes[i];
    *(gone->previous == NOBODY ? &queue->queue.first : &nodes[gone->previous].next) = gone->next;
    *(gone->next == NOBODY ? &queue->queue.last : &nodes[gone->next].previous) = gone->previous;
    list *like = list_of(queue, data_of(queue, gone), gone->length);
    if (like) {
        *(gone->before == NOBODY ? &like->first : &nodes[gone->before].after) = gone->after;
        *(gone->after == NOBODY ? &like->last : &nodes[gone->after].before) = gone->before;
        count_level(queue, gone, (uint64_t)-1);
    }
}

/* ---- records ---- */

static record_mark *mark_of(const node *message) {
    return (record_mark *)(void *)(message->record - sizeof(record_mark));
}

/* Moves what is still of use to the front of the arena. */
static void compact(helio_kept_queue *queue) {
    size_t to = 0;
    for (size_t from = 0; from < queue->arena_end;) {
        const record_mark mark = *(record_mark *)(void *)(queue->arena + from);
        if (mark.node != NOBODY) {
            memmove(queue->arena + to, queue->arena + from, mark.bytes);
            queue->nodes[mark.node].record = queue->arena + to + sizeof mark;
            to += mark.bytes;
        }
        from += mark.bytes;
    }
    queue->arena_end = to;
}

/* The bound leaves room for it, so there is some once the arena is compacted. */
static uint8_t *place_record(helio_kept_queue *queue, uint32_t owner, size_t length) {
    const size_t bytes = sizeof(record_mark) + record_bytes(queue, length);
    if (bytes > queue->arena_bytes - queue->arena_end) {
        compact(queue);
    }
    record_mark *mark = (record_mark *)(void *)(queue->arena + queue->arena_end);
    *mark = (record_mark){owner, (uint32_t)bytes};
    queue->arena_end += bytes;
    return (uint8_t *)(mark + 1);
}

static outside *allocate_outside(helio_kept_queue *queue, size_t length) {
    const size_t bytes = sizeof(outside) + record_bytes(queue, length);
    if (!helio_account_take(queue->config.account, bytes)) {
        return NULL;
    }
    outside *message = malloc(bytes);
    if (!message) {
        helio_account_give(queue->config.account, bytes);
        return NULL;
    }
    message->bytes = bytes;
    return message;
}

static void forget_record(helio_kept_queue *queue, node *message) {
    if (!message->outside) {
        mark_of(message)->node = NOBODY;
    } else {
        free_outside(queue, message->outside);
    }
}

/* ---- dropping ---- */

static void tell(const helio_kept_queue *queue, void *head, size_t length, helio_kept_cause cause,
                 bool by_count) {
    if (queue->config.on_drop) {
        queue->config.on_drop(queue->config.context, head, length, cause, by_count);
    }
}

static void free_node(helio_kept_queue *queue, uint32_t i) {
    add(queue, (uint64_t)-1, -(uint64_t)helio_kept_queue_cost(queue, queue->nodes[i].length));
    queue->nodes[i].next = queue->free;
    queue->free = i;
}

static void drop(helio_kept_queue *queue, uint32_t i, helio_kept_cause cause, bool by_count) {
    node *gone = &queue->nodes[i];
    tell(queue, gone->record, gone->length, cause, by_count);
    unlink_node(queue, i);
    forget_record(queue, gone);
    free_node(queue, i);
}

void helio_kept_queue_expire(helio_kept_queue *queue, int64_t now_ns) {
    if (queue->config.age_ns == 0 || now_ns <= queue->expire_due_ns) {
        return;
    }
    const int64_t oldest_ns = now_ns - queue->config.age_ns;
    int64_t earliest_ns = now_ns;
    for (uint32_t i = queue->queue.first, next; i != NOBODY; i = next) {
        next = queue->nodes[i].next;
        if (queue->nodes[i].came_ns < oldest_ns) {
            drop(queue, i, HELIO_DROPPED_AGE, false);
            continue;
        }
        if (queue->nodes[i].came_ns < earliest_ns) {
            earliest_ns = queue->nodes[i].came_ns;
        }
        if (queue->config.policy != HELIO_KEPT_CONFLATE) {
            break; /* else what has taken over an old place is new */
        }
    }
    queue->expire_due_ns = earliest_ns + queue->config.age_ns;
}

/* ---- the bound ---- */

static bool is_too_many(const helio_kept_queue *queue) {
    return queue->config.messages > 0 && load(&queue->messages) >= queue->config.messages;
}

static bool fits(const helio_kept_queue *queue, size_t cost) {
    return load(&queue->messages) == 0 ||
           (!is_too_many(queue) && load(&queue->messages) < queue->places &&
            load(&queue->bytes) + cost <= queue->config.bytes);
}

bool helio_kept_queue_has_room(const helio_kept_queue *queue, size_t length) {
    return fits(queue, helio_kept_queue_cost(queue, length));
}

static uint32_t lowest(const helio_kept_queue *queue) {
    size_t level = 0;
    while (queue->lists[level].first == NOBODY) {
        level++;
    }
    return queue->lists[level].first;
}

/* Whether there is room once all that is no more important has gone. */
static bool is_important(const helio_kept_queue *queue, uint8_t level, size_t cost) {
    uint64_t messages = load(&queue->messages), bytes = load(&queue->bytes);
    for (size_t i = 0; i <= level; i++) {
        messages -= queue->level_messages[i];
        bytes -= queue->level_bytes[i];
    }
    return messages == 0 || ((queue->config.messages == 0 || messages < queue->config.messages) &&
                             messages < queue->places && bytes + cost <= queue->config.bytes);
}

/* Drops what the policy gives up for a newcomer; false: the newcomer is given up. */
static bool make_room(helio_kept_queue *queue, const uint8_t *data, size_t length, size_t cost,
                      helio_kept_cause *cause) {
    switch (queue->config.policy) {
    case HELIO_KEPT_BLOCK:
    case HELIO_KEPT_NEWEST:
        *cause = HELIO_DROPPED_NEWEST;
        return false;
    case HELIO_KEPT_OLDEST:
    case HELIO_KEPT_CONFLATE:
        while (!fits(queue, cost)) {
            drop(queue, queue->queue.first, HELIO_DROPPED_OLDEST, is_too_many(queue));
        }
        return true;
    case HELIO_KEPT_PRIORITY:
        *cause = HELIO_DROPPED_PRIORITY;
        if (!is_important(queue, level_of(queue, data, length), cost)) {
            return false;
        }
        while (!fits(queue, cost)) {
            drop(queue, lowest(queue), HELIO_DROPPED_PRIORITY, is_too_many(queue));
        }
        return true;
    }
    return false;
}

/* ---- push ---- */

static uint32_t take_node(helio_kept_queue *queue) {
    if (queue->free == NOBODY) {
        return queue->fresh++;
    }
    const uint32_t i = queue->free;
    queue->free = queue->nodes[i].next;
    return i;
}

static void fill(helio_kept_queue *queue, node *message, const void *head, const void *data,
                 size_t length, int64_t now_ns) {
    const size_t head_bytes = queue->config.head_bytes;
    if (head_bytes) {
        memcpy(message->record, head, head_bytes);
    }
    if (length) {
        memcpy(message->record + head_bytes, data, length);
    }
    message->length = length;
    message->came_ns = now_ns;
}

static int append(helio_kept_queue *queue, const void *head, const void *data, size_t length,
                  int64_t now_ns) {
    outside *memory = NULL;
    if (is_long(queue, length) && !(memory = allocate_outside(queue, length))) {
        return HELIO_ERR_NOMEM;
    }
    const uint32_t i = take_node(queue);
    node *message = &queue->nodes[i];
    message->outside = memory;
    message->record = memory ? memory->record : place_record(queue, i, length);
    message->place = queue->next_place++;
    fill(queue, message, head, data, length, now_ns);
    link_node(queue, i);
    add(queue, 1, helio_kept_queue_cost(queue, length));
    return 0;
}

/* A newer message takes over an older one's place, and where it lies in the arena if it is as long. */
static int replace(helio_kept_queue *queue, uint32_t i, const void *head, const void *data,
                   size_t length, int64_t now_ns) {
    node *message = &queue->nodes[i];
    outside *memory = NULL;
    if (is_long(queue, length) && !(memory = allocate_outside(queue, length))) {
        return HELIO_ERR_NOMEM;
    }
    tell(queue, message->record, message->length, HELIO_DROPPED_CONFLATED, false);
    if (!memory && !message->outside &&
        record_bytes(queue, length) == record_bytes(queue, message->length)) {
        fill(queue, message, head, data, length, now_ns);
        return 0;
    }
    const size_t cost = helio_kept_queue_cost(queue, length);
    add(queue, 0, cost - (uint64_t)helio_kept_queue_cost(queue, message->length));
    forget_record(queue, message);
    message->outside = memory;
    /* Of the others the oldest go when it is so much longer. */
    uint32_t other = queue->queue.first, next;
    for (; load(&queue->bytes) > queue->config.bytes && other != NOBODY; other = next) {
        next = queue->nodes[other].next;
        if (other != i) {
            drop(queue, other, HELIO_DROPPED_OLDEST, false);
        }
    }
    message->record = memory ? memory->record : place_record(queue, i, length);
    fill(queue, message, head, data, length, now_ns);
    return 0;
}

int helio_kept_queue_push(helio_kept_queue *queue, const void *head, const void *data,
                          size_t length, int64_t now_ns) {
    helio_kept_queue_expire(queue, now_ns);
    const size_t cost = helio_kept_queue_cost(queue, length);
    const uint32_t same = find_key(queue, data, length);
    helio_kept_cause cause = HELIO_DROPPED_MEMORY;
    bool by_count = false;
    int error;
    if (same != NOBODY) {
        error = replace(queue, same, head, data, length, now_ns);
    } else {
        by_count = is_too_many(queue);
        const bool has_room = fits(queue, cost);
        if (!has_room && queue->config.policy == HELIO_KEPT_BLOCK) {
            return HELIO_ERR_WOULD_BLOCK;
        }
        error = has_room || make_room(queue, data, length, cost, &cause)
                    ? append(queue, head, data, length, now_ns)
                    : HELIO_ERR_WOULD_BLOCK;
        if (error == HELIO_ERR_NOMEM) {
            cause = HELIO_DROPPED_MEMORY;
        }
    }
    if (error && queue->config.policy != HELIO_KEPT_BLOCK) {
        tell(queue, (void *)(uintptr_t)head, length, cause, by_count);
        return 0;
    }
    return error;
}

/* ---- take ---- */

bool helio_kept_queue_front(const helio_kept_queue *queue, size_t *length) {
    if (queue->queue.first == NOBODY) {
        return false;
    }
    *length = queue->nodes[queue->queue.first].length;
    return true;
}

bool helio_kept_queue_take(helio_kept_queue *queue, helio_kept_message *out) {
    const uint32_t i = queue->queue.first;
    if (i == NOBODY) {
        return false;
    }
    node *message = &queue->nodes[i];
    const size_t bytes = record_bytes(queue, message->length);
    uint8_t *record = message->record;
    if (!message->outside) {
        if (bytes > queue->hand_bytes - queue->hand_end) {
            return false;
        }
        record = queue->hand + queue->hand_end;
        memcpy(record, message->record, queue->config.head_bytes + message->length);
        queue->hand_end += bytes;
    }
    unlink_node(queue, i);
    if (message->outside) {
        message->outside->next = queue->given;
        queue->given = message->outside;
    } else {
        forget_record(queue, message);
    }
    *out = (helio_kept_message){record, record + queue->config.head_bytes, message->length};
    free_node(queue, i);
    return true;
}

uint64_t helio_kept_queue_next_place(const helio_kept_queue *queue) {
    return queue->next_place;
}

uint64_t helio_kept_queue_first_place(const helio_kept_queue *queue) {
    return queue->queue.first == NOBODY ? queue->next_place
                                        : queue->nodes[queue->queue.first].place;
}

int64_t helio_kept_queue_oldest_ns(const helio_kept_queue *queue, int64_t otherwise) {
    return queue->queue.first == NOBODY ? otherwise : queue->nodes[queue->queue.first].came_ns;
}
