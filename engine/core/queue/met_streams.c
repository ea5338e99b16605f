#include "queue/met_streams.h"

#include <stdlib.h>

#include "base/memory.h"

static void append(helio_met_list *list, helio_met_stream *met) {
    met->older = list->newest;
    met->newer = NULL;
    *(list->newest ? &list->newest->newer : &list->oldest) = met;
    list->newest = met;
    list->count++;
}

static void take_out(helio_met_list *list, helio_met_stream *met) {
    *(met->older ? &met->older->newer : &list->oldest) = met->newer;
    *(met->newer ? &met->newer->older : &list->newest) = met->older;
    list->count--;
}

static void free_all(helio_met_list *list) {
    while (list->oldest) {
        helio_met_stream *met = list->oldest;
        take_out(list, met);
        free(met);
    }
}

void helio_met_streams_fini(helio_met_streams *streams) {
    free_all(&streams->there);
    free_all(&streams->ended);
    helio_map_fini(&streams->by_number);
}

helio_met_stream *helio_met_streams_add(helio_met_streams *streams, uint32_t number,
                                        const helio_tsi *tsi, helio_stats_object *object) {
    helio_met_stream *met = helio_allocate(sizeof *met);
    if (number >= streams->next) {
        streams->next = number + 1;
    }
    if (!met || (!streams->by_number.entries && helio_map_init(&streams->by_number, 8)) ||
        helio_map_put(&streams->by_number, number, met)) {
        free(met);
        return NULL;
    }
    met->number = number;
    met->object = object;
    met->tsi = *tsi;
    helio_tsi_format(tsi, met->text);
    append(&streams->there, met);
    return met;
}

void helio_met_streams_end(helio_met_streams *streams, helio_met_stream *met) {
    met->object = NULL;
    take_out(&streams->there, met);
    append(&streams->ended, met);
    if (!streams->waiting) {
        streams->waiting = met;
    }
}

helio_met_stream *helio_met_streams_get(const helio_met_streams *streams, uint32_t number) {
    return streams->by_number.entries ? helio_map_get(&streams->by_number, number) : NULL;
}

/* Nothing of an ended stream waits in the queue. */
static bool is_drained(const helio_met_stream *met, helio_receive_queue *queue) {
    const helio_passage *passage = &met->passage;
    if (queue->kept) {
        helio_receive_queue_lock(queue);
    }
    const uint64_t waiting = passage->pushed_messages - passage->trimmed_messages -
                             atomic_load_explicit(&passage->taken_messages, memory_order_acquire);
    if (queue->kept) {
        helio_receive_queue_unlock(queue);
    }
    return waiting == 0;
}

/* Notes when the application had taken the last messages of streams that ended. */
static void look_for_drained(helio_met_streams *streams, helio_receive_queue *queue,
                             const _Atomic uint64_t *receives) {
    while (streams->waiting && is_drained(streams->waiting, queue)) {
        streams->waiting->is_drained = true;
        streams->waiting->drained_at = atomic_load_explicit(receives, memory_order_acquire);
        streams->waiting = streams->waiting->newer;
    }
}

/* The application has nothing of an ended stream any more, and looks at nothing of it: what it took
 * last it gave back when it began to receive again. */
static bool may_be_forgotten(const helio_met_stream *met, const _Atomic uint64_t *receives) {
    const bool had_nothing = met->passage.pushed_messages == 0 && met->lent == 0;
    return met->is_drained &&
           (had_nothing || atomic_load_explicit(receives, memory_order_acquire) != met->drained_at);
}

void helio_met_streams_forget(helio_met_streams *streams, helio_receive_queue *queue,
                              const _Atomic uint64_t *receives) {
    look_for_drained(streams, queue, receives);
    while (streams->ended.count > HELIO_MET_ENDED_KEPT) {
        helio_met_stream *met = streams->ended.oldest;
        if (!may_be_forgotten(met, receives)) {
            return;
        }
        for (int i = 0; i < HELIO_TRIMMED_CAUSES; i++) {
            streams->trimmed[i] += met->trimmed[i];
        }
        if (streams->last == met) {
            streams->last = NULL;
        }
        take_out(&streams->ended, met);
        helio_map_remove(&streams->by_number, met->number);
        free(met);
    }
}
