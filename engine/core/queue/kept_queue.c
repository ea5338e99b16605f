/* Which messages of a bounded queue stay: what is dropped, what there is room for, what comes and
 * what is taken. */
#include <math.h>
#include <string.h>

#include <heliograph/errors.h>

#include "queue/kept_parts.h"

/* ---- what waits ---- */

static uint64_t load(const _Atomic uint64_t *cell) {
    return atomic_load_explicit(cell, memory_order_relaxed);
}

uint64_t helio_kept_queue_messages(const helio_kept_queue *queue) {
    return atomic_load_explicit(&queue->messages, memory_order_acquire);
}

uint64_t helio_kept_queue_bytes(const helio_kept_queue *queue) {
    return atomic_load_explicit(&queue->bytes, memory_order_acquire);
}

double helio_kept_queue_fill(const helio_kept_queue *queue, uint64_t bytes, uint64_t most_bytes,
                             uint64_t most_messages) {
    const double messages =
        most_messages == 0 ? 0 : (double)helio_kept_queue_messages(queue) / (double)most_messages;
    return fmax((double)bytes / (double)most_bytes, messages);
}

/* Messages came or went. */
static void add(helio_kept_queue *queue, uint64_t messages, uint64_t bytes) {
    atomic_store_explicit(&queue->bytes, load(&queue->bytes) + bytes, memory_order_release);
    atomic_store_explicit(&queue->messages, load(&queue->messages) + messages,
                          memory_order_release);
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
    helio_kept_node *gone = &queue->nodes[i];
    tell(queue, gone->record, gone->length, cause, by_count);
    helio_kept_unlink(queue, i);
    helio_kept_forget(queue, gone);
    free_node(queue, i);
}

void helio_kept_queue_expire(helio_kept_queue *queue, int64_t now_ns) {
    if (queue->config.age_ns == 0 || now_ns <= queue->expire_due_ns) {
        return;
    }
    const int64_t oldest_ns = now_ns - queue->config.age_ns;
    int64_t earliest_ns = now_ns;
    for (uint32_t i = queue->queue.first, next; i != HELIO_KEPT_NOBODY; i = next) {
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
    while (queue->lists[level].first == HELIO_KEPT_NOBODY) {
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
        if (!is_important(queue, helio_kept_level(queue, data, length), cost)) {
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
    if (queue->free == HELIO_KEPT_NOBODY) {
        return queue->fresh++;
    }
    const uint32_t i = queue->free;
    queue->free = queue->nodes[i].next;
    return i;
}

static void fill(helio_kept_queue *queue, helio_kept_node *message, const void *head,
                 const void *data, size_t length, int64_t now_ns) {
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
    helio_kept_outside *memory = NULL;
    if (helio_kept_is_long(queue, length) && !(memory = helio_kept_allocate(queue, length))) {
        return HELIO_ERR_NOMEM;
    }
    const uint32_t i = take_node(queue);
    helio_kept_node *message = &queue->nodes[i];
    message->outside = memory;
    message->record = memory ? memory->record : helio_kept_place(queue, i, length);
    message->place = queue->next_place++;
    fill(queue, message, head, data, length, now_ns);
    helio_kept_link(queue, i);
    add(queue, 1, helio_kept_queue_cost(queue, length));
    return 0;
}

/* A newer message takes over an older one's place, and where it lies in the arena if it is as
 * long. */
static int replace(helio_kept_queue *queue, uint32_t i, const void *head, const void *data,
                   size_t length, int64_t now_ns) {
    helio_kept_node *message = &queue->nodes[i];
    helio_kept_outside *memory = NULL;
    if (helio_kept_is_long(queue, length) && !(memory = helio_kept_allocate(queue, length))) {
        return HELIO_ERR_NOMEM;
    }
    tell(queue, message->record, message->length, HELIO_DROPPED_CONFLATED, false);
    if (!memory && !message->outside &&
        helio_kept_record_bytes(queue, length) == helio_kept_record_bytes(queue, message->length)) {
        fill(queue, message, head, data, length, now_ns);
        return 0;
    }
    const size_t cost = helio_kept_queue_cost(queue, length);
    add(queue, 0, cost - (uint64_t)helio_kept_queue_cost(queue, message->length));
    helio_kept_forget(queue, message);
    message->outside = memory;
    /* Of the others the oldest go when it is so much longer. */
    uint32_t other = queue->queue.first, next;
    for (; load(&queue->bytes) > queue->config.bytes && other != HELIO_KEPT_NOBODY; other = next) {
        next = queue->nodes[other].next;
        if (other != i) {
            drop(queue, other, HELIO_DROPPED_OLDEST, false);
        }
    }
    message->record = memory ? memory->record : helio_kept_place(queue, i, length);
    fill(queue, message, head, data, length, now_ns);
    return 0;
}

int helio_kept_queue_push(helio_kept_queue *queue, const void *head, const void *data,
                          size_t length, int64_t now_ns) {
    helio_kept_queue_expire(queue, now_ns);
    const size_t cost = helio_kept_queue_cost(queue, length);
    const uint32_t same = helio_kept_find(queue, data, length);
    helio_kept_cause cause = HELIO_DROPPED_MEMORY;
    bool by_count = false;
    int error;
    if (same != HELIO_KEPT_NOBODY) {
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
    if (queue->queue.first == HELIO_KEPT_NOBODY) {
        return false;
    }
    *length = queue->nodes[queue->queue.first].length;
    return true;
}

bool helio_kept_queue_take(helio_kept_queue *queue, helio_kept_message *out) {
    const uint32_t i = queue->queue.first;
    if (i == HELIO_KEPT_NOBODY) {
        return false;
    }
    helio_kept_node *message = &queue->nodes[i];
    const size_t bytes = helio_kept_record_bytes(queue, message->length);
    uint8_t *record = message->record;
    if (!message->outside) {
        if (bytes > queue->hand_bytes - queue->hand_end) {
            return false;
        }
        record = queue->hand + queue->hand_end;
        memcpy(record, message->record, queue->config.head_bytes + message->length);
        queue->hand_end += bytes;
    }
    helio_kept_unlink(queue, i);
    if (message->outside) {
        message->outside->next = queue->given;
        queue->given = message->outside;
    } else {
        helio_kept_forget(queue, message);
    }
    *out = (helio_kept_message){record, record + queue->config.head_bytes, message->length};
    free_node(queue, i);
    return true;
}

uint64_t helio_kept_queue_next_place(const helio_kept_queue *queue) {
    return queue->next_place;
}

uint64_t helio_kept_queue_first_place(const helio_kept_queue *queue) {
    return queue->queue.first == HELIO_KEPT_NOBODY ? queue->next_place
                                                   : queue->nodes[queue->queue.first].place;
}

int64_t helio_kept_queue_oldest_ns(const helio_kept_queue *queue, int64_t otherwise) {
    return queue->queue.first == HELIO_KEPT_NOBODY ? otherwise
                                                   : queue->nodes[queue->queue.first].came_ns;
}
