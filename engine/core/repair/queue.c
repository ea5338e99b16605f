#include "repair/queue.h"

#include <stdlib.h>

#include <heliograph/errors.h>

int helio_queue_init(helio_queue *queue, uint32_t capacity, uint32_t lines) {
    *queue =
        (helio_queue){.capacity = capacity, .free = HELIO_QUEUE_NONE, .turn = HELIO_QUEUE_NONE};
    queue->entries = calloc(capacity, sizeof *queue->entries);
    queue->lines = calloc(lines, sizeof *queue->lines);
    if (!queue->entries || !queue->lines) {
        helio_queue_fini(queue);
        return HELIO_ERR_NOMEM;
    }
    return 0;
}

void helio_queue_fini(helio_queue *queue) {
    free(queue->entries);
    free(queue->lines);
    *queue = (helio_queue){.turn = HELIO_QUEUE_NONE};
}

/* ---- turns: a ring of the lines that are not empty ---- */

/* The line's turn comes when all others had theirs. */
static void join_turns(helio_queue *queue, uint32_t index) {
    helio_queue_line *line = &queue->lines[index];
    if (queue->turn == HELIO_QUEUE_NONE) {
        queue->turn = line->next = line->previous = index;
        return;
    }
    helio_queue_line *next = &queue->lines[queue->turn];
    line->next = queue->turn;
    line->previous = next->previous;
    queue->lines[next->previous].next = index;
    next->previous = index;
}

static void leave_turns(helio_queue *queue, uint32_t index) {
    const helio_queue_line *line = &queue->lines[index];
    if (line->next == index) {
        queue->turn = HELIO_QUEUE_NONE;
        return;
    }
    queue->lines[line->previous].next = line->next;
    queue->lines[line->next].previous = line->previous;
    if (queue->turn == index) {
        queue->turn = line->next;
    }
}

/* ---- lines ---- */

static void append(helio_queue *queue, uint32_t index, uint32_t at) {
    helio_queue_line *line = &queue->lines[index];
    helio_queue_entry *entry = &queue->entries[at];
    entry->next = entry->previous = HELIO_QUEUE_NONE;
    if (line->count++ == 0) {
        line->first = at;
        join_turns(queue, index);
    } else {
        entry->previous = line->last;
        queue->entries[line->last].next = at;
    }
    line->last = at;
}

static void take_out(helio_queue *queue, uint32_t index, uint32_t at) {
    helio_queue_line *line = &queue->lines[index];
    const helio_queue_entry *entry = &queue->entries[at];
    if (entry->previous == HELIO_QUEUE_NONE) {
        line->first = entry->next;
    } else {
        queue->entries[entry->previous].next = entry->next;
    }
    if (entry->next == HELIO_QUEUE_NONE) {
        line->last = entry->previous;
    } else {
        queue->entries[entry->next].previous = entry->previous;
    }
    if (--line->count == 0) {
        leave_turns(queue, index);
    }
}

uint32_t helio_queue_push(helio_queue *queue, uint32_t line, uint64_t value) {
    uint32_t at = queue->free;
    if (at != HELIO_QUEUE_NONE) {
        queue->free = queue->entries[at].next;
    } else if (queue->fresh < queue->capacity) {
        at = queue->fresh++;
    } else {
        return HELIO_QUEUE_NONE;
    }
    queue->entries[at].value = value;
    queue->count++;
    append(queue, line, at);
    return at;
}

bool helio_queue_pop(helio_queue *queue, uint64_t *value) {
    if (queue->turn == HELIO_QUEUE_NONE) {
        return false;
    }
    const uint32_t line = queue->turn;
    const uint32_t at = queue->lines[line].first;
    queue->turn = queue->lines[line].next;
    take_out(queue, line, at);
    *value = queue->entries[at].value;
    queue->entries[at].next = queue->free;
    queue->free = at;
    queue->count--;
    return true;
}

void helio_queue_move(helio_queue *queue, uint32_t entry, uint32_t from, uint32_t to) {
    take_out(queue, from, entry);
    append(queue, to, entry);
}
