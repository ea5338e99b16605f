#include "stats/losses.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "stats/segment.h"

#define REPLACE_NS INT64_C(1000000000)

typedef struct kept_loss {
    uint64_t key; /* of stream and cause */
    int64_t last_ns;
    helio_stats_object object;
} kept_loss;

typedef struct helio_losses {
    uint32_t count;
    bool has_replaced;
    int64_t replaced_ns;
    kept_loss kept[HELIO_LOSSES_MAX];
} helio_losses;

static uint64_t key_of(const helio_loss_note *note) {
    return helio_hash_fnv1a(note->stream, strlen(note->stream)) * 31 +
           helio_hash_fnv1a(note->cause, strlen(note->cause));
}

static int open_object(helio_stats *stats, const helio_loss_note *note, int64_t wall_ns,
                       helio_stats_object *out) {
    char labels[HELIO_STATS_LABELS_BYTES] = "";
    helio_stats_label(labels, sizeof labels, "instance", note->instance);
    helio_stats_label(labels, sizeof labels, "stream", note->stream);
    helio_stats_label(labels, sizeof labels, "cause", note->cause);
    helio_stats_label(labels, sizeof labels, "source", note->source);
    helio_stats_label(labels, sizeof labels, "endpoint", note->endpoint);
    return helio_stats_open_object(stats, HELIO_SCOPE_LOSS, labels, wall_ns, out);
}

static kept_loss *oldest_of(helio_losses *losses) {
    kept_loss *oldest = &losses->kept[0];
    for (uint32_t i = 1; i < losses->count; i++) {
        if (losses->kept[i].last_ns < oldest->last_ns) {
            oldest = &losses->kept[i];
        }
    }
    return oldest;
}

static void count(helio_stats *stats, bool was_replaced) {
    if (stats->instance) {
        helio_count(was_replaced ? &stats->instance->losses_replaced
                                 : &stats->instance->losses_unrecorded,
                    1);
    }
}

/* The place of the oldest, emptied; NULL: not so soon again. */
static kept_loss *replace_oldest(helio_stats *stats, int64_t wall_ns) {
    helio_losses *losses = stats->losses;
    const int64_t since_ns = wall_ns - losses->replaced_ns;
    if (losses->has_replaced && since_ns >= 0 && since_ns < REPLACE_NS) {
        return NULL;
    }
    losses->has_replaced = true;
    losses->replaced_ns = wall_ns;
    kept_loss *oldest = oldest_of(losses);
    helio_stats_close_object(stats, &oldest->object, wall_ns);
    count(stats, true);
    return oldest;
}

static kept_loss *begin(helio_stats *stats, const helio_loss_note *note, int64_t wall_ns) {
    helio_losses *losses = stats->losses;
    kept_loss *place = losses->count < HELIO_LOSSES_MAX ? &losses->kept[losses->count++]
                                                        : replace_oldest(stats, wall_ns);
    if (!place) {
        count(stats, false);
        return NULL;
    }
    *place = (kept_loss){.key = key_of(note), .last_ns = wall_ns};
    if (open_object(stats, note, wall_ns, &place->object) != 0) {
        *place = (kept_loss){.last_ns = INT64_MIN}; /* the first to be replaced */
        count(stats, false);
        return NULL;
    }
    helio_loss_stats *cells = place->object.record;
    helio_set(&cells->first_lost, (uint64_t)wall_ns);
    helio_set(&cells->first_sequence, note->first);
    return place;
}

static kept_loss *find(helio_stats *stats, const helio_loss_note *note, int64_t wall_ns) {
    if (!stats->losses) {
        stats->losses = calloc(1, sizeof *stats->losses);
    }
    if (!stats->losses) {
        count(stats, false);
        return NULL;
    }
    const uint64_t key = key_of(note);
    for (uint32_t i = 0; i < stats->losses->count; i++) {
        if (stats->losses->kept[i].key == key) {
            return &stats->losses->kept[i];
        }
    }
    return begin(stats, note, wall_ns);
}

void helio_losses_note(helio_stats *stats, const helio_loss_note *note, int64_t wall_ns) {
    kept_loss *loss = find(stats, note, wall_ns);
    if (!loss) {
        return;
    }
    loss->last_ns = wall_ns;
    helio_loss_stats *cells = loss->object.record;
    helio_stats_begin(cells);
    helio_count(&cells->observations, 1);
    helio_count(&cells->packets, note->packets);
    helio_count(&cells->bytes_estimated, note->bytes);
    helio_peak(&cells->longest, note->packets);
    helio_set(&cells->last_lost, (uint64_t)wall_ns);
    helio_set(&cells->last_sequence, note->first + note->packets - 1);
    helio_stats_end(cells);
}

void helio_losses_destroy(helio_stats *stats) {
    for (uint32_t i = 0; stats->losses && i < stats->losses->count; i++) {
        helio_stats_object *object = &stats->losses->kept[i].object;
        if (object->slot == HELIO_STATS_NO_SLOT) { /* in memory of its own */
            helio_stats_close_object(stats, object, 0);
        }
    }
    free(stats->losses);
    stats->losses = NULL;
}
