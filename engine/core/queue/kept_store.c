/* Where the messages of a bounded queue lie: nodes linked in the queue and with their like, records
 * one behind the other in the arena, long ones in memory of their own. */
#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "base/bits.h"
#include "base/hash.h"
#include "queue/kept_parts.h"

enum {
    LEVELS = 256,   /* of priority */
    LONG_SHARE = 4, /* of the bound, from which a message has memory of its own */
};

/* Before each record in the arena. */
typedef struct record_mark {
    uint32_t node;  /* whose it is; HELIO_KEPT_NOBODY: its message has gone */
    uint32_t bytes; /* with this mark */
} record_mark;
_Static_assert(sizeof(record_mark) == 8, "records lie at multiples of 8");

/* ---- sizes ---- */

size_t helio_kept_record_bytes(const helio_kept_queue *queue, size_t length) {
    return queue->config.head_bytes + (size_t)helio_round_up(length, 8);
}

size_t helio_kept_queue_cost(const helio_kept_queue *queue, size_t length) {
    return sizeof(helio_kept_node) + sizeof(record_mark) + helio_kept_record_bytes(queue, length);
}

bool helio_kept_is_long(const helio_kept_queue *queue, size_t length) {
    return helio_kept_queue_cost(queue, length) > queue->config.bytes / LONG_SHARE;
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
        queue->lists[i] = (helio_kept_list){HELIO_KEPT_NOBODY, HELIO_KEPT_NOBODY};
    }
    return 0;
}

int helio_kept_queue_create(const helio_kept_config *config, helio_kept_queue **out) {
    helio_kept_queue *queue = calloc(1, sizeof *queue);
    if (!queue) {
        return HELIO_ERR_NOMEM;
    }
    queue->config = *config;
    queue->queue = (helio_kept_list){HELIO_KEPT_NOBODY, HELIO_KEPT_NOBODY};
    queue->free = HELIO_KEPT_NOBODY;
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

static void free_outside(helio_kept_queue *queue, helio_kept_outside *message) {
    if (message) {
        helio_account_give(queue->config.account, message->bytes);
        free(message);
    }
}

void helio_kept_queue_give_back(helio_kept_queue *queue) {
    queue->hand_end = 0;
    while (queue->given) {
        helio_kept_outside *message = queue->given;
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
        for (uint32_t i = queue->queue.first; i != HELIO_KEPT_NOBODY; i = queue->nodes[i].next) {
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

static const uint8_t *data_of(const helio_kept_queue *queue, const helio_kept_node *message) {
    return message->record + queue->config.head_bytes;
}

static bool has_key(const helio_kept_queue *queue, size_t length) {
    return queue->config.policy == HELIO_KEPT_CONFLATE &&
           length >= queue->config.key_offset + queue->config.key_bytes;
}

uint8_t helio_kept_level(const helio_kept_queue *queue, const uint8_t *data, size_t length) {
    const int64_t offset = queue->config.priority_offset;
    return offset >= 0 && (size_t)offset < length ? data[offset] : 0;
}

/* The list of its like that a message belongs to; NULL: none. */
static helio_kept_list *list_of(const helio_kept_queue *queue, const uint8_t *data, size_t length) {
    if (queue->config.policy == HELIO_KEPT_PRIORITY) {
        return &queue->lists[helio_kept_level(queue, data, length)];
    }
    if (!has_key(queue, length)) {
        return NULL;
    }
    const uint64_t hash =
        helio_hash_fnv1a(data + queue->config.key_offset, queue->config.key_bytes);
    return &queue->lists[(hash ^ hash >> 32) & (queue->lists_count - 1)];
}

uint32_t helio_kept_find(const helio_kept_queue *queue, const uint8_t *data, size_t length) {
    const helio_kept_list *bucket = has_key(queue, length) ? list_of(queue, data, length) : NULL;
    const size_t offset = queue->config.key_offset;
    uint32_t i = bucket ? bucket->first : HELIO_KEPT_NOBODY;
    while (i != HELIO_KEPT_NOBODY && memcmp(data_of(queue, &queue->nodes[i]) + offset,
                                            data + offset, queue->config.key_bytes) != 0) {
        i = queue->nodes[i].after;
    }
    return i;
}

static void count_level(helio_kept_queue *queue, const helio_kept_node *message,
                        uint64_t messages) {
    if (queue->config.policy == HELIO_KEPT_PRIORITY) {
        const uint8_t level = helio_kept_level(queue, data_of(queue, message), message->length);
        queue->level_messages[level] += messages;
        queue->level_bytes[level] += messages * helio_kept_queue_cost(queue, message->length);
    }
}

/* ---- linking ---- */

void helio_kept_link(helio_kept_queue *queue, uint32_t i) {
    helio_kept_node *nodes = queue->nodes;
    nodes[i].previous = queue->queue.last;
    nodes[i].next = HELIO_KEPT_NOBODY;
    *(queue->queue.last == HELIO_KEPT_NOBODY ? &queue->queue.first
                                             : &nodes[queue->queue.last].next) = i;
    queue->queue.last = i;
    helio_kept_list *like = list_of(queue, data_of(queue, &nodes[i]), nodes[i].length);
    if (like) {
        nodes[i].before = like->last;
        nodes[i].after = HELIO_KEPT_NOBODY;
        *(like->last == HELIO_KEPT_NOBODY ? &like->first : &nodes[like->last].after) = i;
        like->last = i;
        count_level(queue, &nodes[i], 1);
    }
}

void helio_kept_unlink(helio_kept_queue *queue, uint32_t i) {
    helio_kept_node *nodes = queue->nodes;
    const helio_kept_node *gone = &nodes[i];
    *(gone->previous == HELIO_KEPT_NOBODY ? &queue->queue.first : &nodes[gone->previous].next) =
        gone->next;
    *(gone->next == HELIO_KEPT_NOBODY ? &queue->queue.last : &nodes[gone->next].previous) =
        gone->previous;
    helio_kept_list *like = list_of(queue, data_of(queue, gone), gone->length);
    if (like) {
        *(gone->before == HELIO_KEPT_NOBODY ? &like->first : &nodes[gone->before].after) =
            gone->after;
        *(gone->after == HELIO_KEPT_NOBODY ? &like->last : &nodes[gone->after].before) =
            gone->before;
        count_level(queue, gone, (uint64_t)-1);
    }
}

/* ---- records ---- */

static record_mark *mark_of(const helio_kept_node *message) {
    return (record_mark *)(void *)(message->record - sizeof(record_mark));
}

/* Moves what is still of use to the front of the arena. */
static void compact(helio_kept_queue *queue) {
    size_t to = 0;
    for (size_t from = 0; from < queue->arena_end;) {
        const record_mark mark = *(record_mark *)(void *)(queue->arena + from);
        if (mark.node != HELIO_KEPT_NOBODY) {
            memmove(queue->arena + to, queue->arena + from, mark.bytes);
            queue->nodes[mark.node].record = queue->arena + to + sizeof mark;
            to += mark.bytes;
        }
        from += mark.bytes;
    }
    queue->arena_end = to;
}

uint8_t *helio_kept_place(helio_kept_queue *queue, uint32_t owner, size_t length) {
    const size_t bytes = sizeof(record_mark) + helio_kept_record_bytes(queue, length);
    if (bytes > queue->arena_bytes - queue->arena_end) {
        compact(queue);
    }
    record_mark *mark = (record_mark *)(void *)(queue->arena + queue->arena_end);
    *mark = (record_mark){owner, (uint32_t)bytes};
    queue->arena_end += bytes;
    return (uint8_t *)(mark + 1);
}

helio_kept_outside *helio_kept_allocate(helio_kept_queue *queue, size_t length) {
    const size_t bytes = sizeof(helio_kept_outside) + helio_kept_record_bytes(queue, length);
    if (!helio_account_take(queue->config.account, bytes)) {
        return NULL;
    }
    helio_kept_outside *message = malloc(bytes);
    if (!message) {
        helio_account_give(queue->config.account, bytes);
        return NULL;
    }
    message->bytes = bytes;
    return message;
}

void helio_kept_forget(helio_kept_queue *queue, helio_kept_node *message) {
    if (!message->outside) {
        mark_of(message)->node = HELIO_KEPT_NOBODY;
    } else {
        free_outside(queue, message->outside);
    }
}
