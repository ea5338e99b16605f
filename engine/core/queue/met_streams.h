/* The streams a receiver has discovered, by the numbers it gave them.
 *
 * An ended stream stays while its messages wait for the application or may be in use by it, and
 * while it is among the last HELIO_MET_ENDED_KEPT that ended, because the application may request
 * its name.  So memory grows with the present streams and the waiting messages, not with all
 * streams ever seen.
 *
 * The engine's thread adds, ends and removes streams; other threads read under the receiver's
 * lock. */
#ifndef HELIO_QUEUE_MET_STREAMS_H
#define HELIO_QUEUE_MET_STREAMS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/tsi.h"
#include "queue/receive_queue.h"
#include "stats/stats.h"

enum { HELIO_MET_ENDED_KEPT = 64 };

typedef struct helio_met_stream {
    helio_passage passage;
    helio_stats_object *object; /* NULL when the stream has ended */
    helio_tsi tsi;
    char text[HELIO_TSI_TEXT];
    uint32_t number;
    _Atomic uint64_t acknowledged; /* messages before this number, by the application */
    uint64_t acknowledged_told;    /* the same, as the engine knows */
    uint64_t lent;                 /* messages that went to the application without the queue */
    /* Trimmed of its messages, under the queue's lock, and as counted. */
    uint64_t trimmed[HELIO_TRIMMED_CAUSES];
    uint64_t trimmed_counted[HELIO_TRIMMED_CAUSES];
    bool is_drained;     /* it has ended, and nothing of it waits */
    uint64_t drained_at; /* how often the application had begun to receive by then */
    struct helio_met_stream *older, *newer; /* of those that are there, or of those that ended */
} helio_met_stream;

_Static_assert(offsetof(helio_met_stream, passage) == 0, "a passage is its stream's");

typedef struct helio_met_list {
    helio_met_stream *oldest, *newest;
    uint32_t count;
} helio_met_list;

typedef struct helio_met_streams {
    helio_met_stream *last; /* engine: looked up last; most messages come in runs */
    helio_map by_number;
    helio_met_list there, ended;
    helio_met_stream *waiting; /* the first of those that ended that was not seen drained */
    uint32_t next;             /* smaller numbers were met, whether or not they are known still */
    uint64_t trimmed[HELIO_TRIMMED_CAUSES]; /* of messages of streams that are forgotten */
} helio_met_streams;

void helio_met_streams_fini(helio_met_streams *streams);

/* Engine, under the lock: stream number `number` is there.  NULL: there is no memory. */
helio_met_stream *helio_met_streams_add(helio_met_streams *streams, uint32_t number,
                                        const helio_tsi *tsi, helio_stats_object *object);
/* Engine, under the lock: it has ended. */
void helio_met_streams_end(helio_met_streams *streams, helio_met_stream *met);
/* Engine, under the lock: forgets of those that ended what may be.  `receives`: how often the
 * application has begun to receive. */
void helio_met_streams_forget(helio_met_streams *streams, helio_receive_queue *queue,
                              const _Atomic uint64_t *receives);

/* Under the lock, or the engine: NULL when there is none of this number, or no longer. */
helio_met_stream *helio_met_streams_get(const helio_met_streams *streams, uint32_t number);

/* Engine: the same, quickly. */
static inline helio_met_stream *helio_met_streams_find(helio_met_streams *streams,
                                                       uint32_t number) {
    if (!streams->last || streams->last->number != number) {
        streams->last = helio_met_streams_get(streams, number);
    }
    return streams->last;
}

#endif
