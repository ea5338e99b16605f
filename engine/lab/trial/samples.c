/* The curves and the events of a trial.
 *
 * One list of what is looked at serves twice: to name the columns before the first row, and to fill
 * each row in the same order. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "stats/segment.h"
#include "trial/parts.h"

enum { ROWS_BEGIN = 256 };

#define CELL(cell, KIND, unit, level, statistic, label, value, help) #cell,
static const char *const tx_cells[] = {HELIO_STATS_TX_STREAM(CELL)};
static const char *const rx_cells[] = {HELIO_STATS_RX_STREAM(CELL)};
enum {
    TX_CELLS = sizeof tx_cells / sizeof tx_cells[0],
    RX_CELLS = sizeof rx_cells / sizeof rx_cells[0],
};

/* A look goes through all there is: naming (row NULL) or reading. */
typedef struct look {
    helio_trial *trial;
    double *row;
    size_t column;
} look;

__attribute__((format(printf, 3, 4))) static void put(look *l, double value, const char *format,
                                                      ...) {
    if (l->row) {
        l->row[l->column++] = value;
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    if (l->trial->samples.names) {
        vsnprintf(l->trial->samples.names[l->column], HELIO_TRIAL_NAME, format, arguments);
    }
    va_end(arguments);
    l->column++;
}

static void look_at_pipe(look *l, int i) {
    helio_sim_pipe *pipe = l->trial->pipes[i];
    const helio_sim_pipe_counts *counts = &pipe->counts;
    put(l, (double)pipe->config.rate, "pipe%d.rate", i);
    put(l, (double)pipe->config.queue_bytes, "pipe%d.queue_limit", i);
    put(l, (double)counts->queue_bytes, "pipe%d.queue", i);
    put(l, (double)counts->queue_peak_bytes, "pipe%d.queue_peak", i);
    put(l, (double)counts->bytes, "pipe%d.bytes", i);
    put(l, (double)counts->packets, "pipe%d.packets", i);
    put(l, (double)counts->dropped_packets, "pipe%d.dropped", i);
    put(l, (double)counts->lost_packets, "pipe%d.lost", i);
    if (l->row) {
        helio_sim_pipe_forget_peak(pipe);
    }
}

static void look_at_source(look *l, int i) {
    const helio_trial_source *source = l->trial->sources[i];
    const double bytes = source->config.message_bytes;
    put(l, (double)source->offered_messages * bytes, "source%d.offered", i);
    put(l, (double)source->refused_messages * bytes, "source%d.refused", i);
    put(l, (double)source->sent_messages * bytes, "source%d.sent", i);
    put(l, (double)source->queued * bytes, "source%d.queued", i);
    const _Atomic uint64_t *cells = helio_tx_stream_object(source->stream)->record;
    for (size_t k = 0; k < TX_CELLS; k++) { /* the guard comes first */
        put(l, (double)helio_cell(&cells[k + 1]), "source%d.%s", i, tx_cells[k]);
    }
}

static void look_at_group(look *l, int i) {
    helio_trial_group *group = l->trial->groups[i];
    uint64_t delivered = 0, lost = 0, least = UINT64_MAX, fullest = 0, there = 0;
    for (uint32_t k = 0; k < group->config.count && l->row; k++) {
        const helio_trial_receiver *receiver = &group->receivers[k];
        delivered += receiver->delivered;
        lost += receiver->lost;
        there += receiver->endpoint != NULL;
        least = receiver->delivered < least ? receiver->delivered : least;
        fullest = receiver->queued_bytes > fullest ? receiver->queued_bytes : fullest;
    }
    put(l, (double)there, "group%d.receivers", i);
    put(l, (double)delivered, "group%d.delivered", i);
    put(l, (double)least, "group%d.delivered_least", i);
    put(l, (double)lost, "group%d.lost", i);
    put(l, (double)group->taken_messages, "group%d.taken", i);
    put(l, (double)fullest, "group%d.queue", i);
    put(l, (double)group->latest_ns, "group%d.latency", i);
    put(l, group->drain, "group%d.drain", i);
    if (l->row) {
        group->latest_ns = 0;
    }
    uint64_t sums[RX_CELLS] = {0};
    const helio_stats *stats = group->stats;
    const uint64_t slots = helio_cell(&stats->header->objects_used);
    for (uint64_t slot = 0; slot < slots && l->row; slot++) {
        const helio_segment_object *object = &stats->objects[slot];
        if (object->scope != HELIO_SCOPE_RX_STREAM || object->state != HELIO_OBJECT_LIVE) {
            continue;
        }
        const _Atomic uint64_t *cells =
            (const _Atomic uint64_t *)(const void *)(stats->memory + object->record_offset);
        for (size_t k = 0; k < RX_CELLS; k++) {
            sums[k] += helio_cell(&cells[k + 1]);
        }
    }
    for (size_t k = 0; k < RX_CELLS; k++) {
        put(l, (double)sums[k], "group%d.%s", i, rx_cells[k]);
    }
}

static void look_at_tcp(look *l, int i) {
    const helio_trial_tcp_state state = helio_trial_tcp_look(l->trial->tcps[i]);
    put(l, state.acked_bytes, "tcp%d.acked", i);
    put(l, state.window_bytes, "tcp%d.window", i);
    put(l, state.retransmits, "tcp%d.retransmits", i);
    put(l, state.timeouts, "tcp%d.timeouts", i);
}

static void look_at_all(look *l) {
    helio_trial *trial = l->trial;
    put(l, (double)helio_trial_now(trial).now_ns / 1e9, "time");
    for (int i = 0; i < trial->pipes_count; i++) {
        look_at_pipe(l, i);
    }
    for (int i = 0; i < trial->sources_count; i++) {
        look_at_source(l, i);
    }
    for (int i = 0; i < trial->groups_count; i++) {
        look_at_group(l, i);
    }
    for (int i = 0; i < trial->tcps_count; i++) {
        look_at_tcp(l, i);
    }
}

int helio_trial_name_columns(helio_trial *trial) {
    helio_trial_samples *samples = &trial->samples;
    look count = {.trial = trial};
    look_at_all(&count);
    samples->columns = count.column;
    samples->names = calloc(samples->columns, sizeof *samples->names);
    samples->events = calloc(HELIO_TRIAL_EVENTS_MAX, sizeof *samples->events);
    if (!samples->names || !samples->events) {
        return HELIO_ERR_NOMEM;
    }
    look_at_all(&(look){.trial = trial});
    return 0;
}

/* ---- events ---- */

static void read_events(helio_trial *trial, const helio_stats *stats, uint64_t *read, int source) {
    helio_trial_samples *samples = &trial->samples;
    const int64_t begin_ns = helio_trial_now(trial).wall_ns - helio_trial_now(trial).now_ns;
    const uint64_t written = helio_cell(&stats->header->events_written);
    const uint64_t capacity = stats->header->event_capacity;
    if (written - *read > capacity) {
        samples->missed += written - capacity - *read;
        *read = written - capacity;
    }
    for (; *read < written; (*read)++) {
        const helio_segment_event *entry = &stats->events[*read & (capacity - 1)];
        if (samples->events_count == HELIO_TRIAL_EVENTS_MAX) {
            samples->missed++;
            continue;
        }
        helio_trial_event *event = &samples->events[samples->events_count++];
        event->at_ns = (int64_t)entry->time_ns - begin_ns;
        event->event = entry->event;
        event->source = source;
        memcpy(event->arguments, entry->arguments, sizeof event->arguments);
        memcpy(event->text, entry->text, sizeof event->text);
    }
}

/* ---- sights ---- */

static helio_trial_sight *next_sight(helio_trial_samples *samples) {
    if (samples->sights_count == samples->sights_capacity) {
        const size_t capacity =
            samples->sights_capacity ? 2 * samples->sights_capacity : ROWS_BEGIN;
        helio_trial_sight *sights = realloc(samples->sights, capacity * sizeof *sights);
        if (!sights) {
            return NULL;
        }
        samples->sights = sights;
        samples->sights_capacity = capacity;
    }
    return &samples->sights[samples->sights_count++];
}

static int see(helio_trial *trial, int source) {
    helio_tx_stream *stream = trial->sources[source]->stream;
    uint32_t places;
    const helio_receiver_view *views = helio_tx_stream_views(stream, &places);
    for (uint32_t place = 0; place < places; place++) {
        const helio_receiver_view *view = &views[place];
        if (!(view->flags & HELIO_VIEW_PRESENT)) {
            continue;
        }
        helio_trial_sight *sight = next_sight(&trial->samples);
        if (!sight) {
            return HELIO_ERR_NOMEM;
        }
        const char *name;
        double loss;
        helio_tx_stream_receiver(stream, place, &name, &loss);
        *sight = (helio_trial_sight){
            .at_s = (double)helio_trial_now(trial).now_ns / 1e9,
            .source = source,
            .receiver = (double)view->receiver,
            .flags = view->flags,
            .received = (double)view->received,
            .lost = (double)view->lost,
            .unrecoverable = (double)view->unrecoverable,
            .naks = (double)view->naks,
            .naks_again = (double)view->naks_again,
            .repairs = (double)view->repairs,
            .position = (double)view->position,
            .buffer_fill = view->buffer_fill / 65535.0,
            .round_trip_s = (double)view->round_trip_ns / 1e9,
            .loss = loss,
        };
    }
    return 0;
}

const helio_trial_sight *helio_trial_sights(const helio_trial *trial, size_t *count) {
    *count = trial->samples.sights_count;
    return trial->samples.sights;
}

/* ---- rows ---- */

static double *next_row(helio_trial_samples *samples) {
    if (samples->count == samples->capacity) {
        const size_t capacity = samples->capacity ? 2 * samples->capacity : ROWS_BEGIN;
        double *rows = realloc(samples->rows, capacity * samples->columns * sizeof *rows);
        if (!rows) {
            return NULL;
        }
        samples->rows = rows;
        samples->capacity = capacity;
    }
    return &samples->rows[samples->count++ * samples->columns];
}

int helio_trial_sample(helio_trial *trial) {
    helio_trial_samples *samples = &trial->samples;
    double *row = next_row(samples);
    if (!row) {
        return HELIO_ERR_NOMEM;
    }
    look_at_all(&(look){.trial = trial, .row = row});
    for (int i = 0; i < trial->sources_count; i++) {
        read_events(trial, trial->sources[i]->stats, &samples->read_sources[i], i);
    }
    for (int i = 0; i < trial->groups_count; i++) {
        read_events(trial, trial->groups[i]->stats, &samples->read_groups[i], HELIO_TRIAL_NONE);
    }
    for (int i = 0; i < trial->sources_count && trial->watches; i++) {
        if (see(trial, i)) {
            return HELIO_ERR_NOMEM;
        }
    }
    return 0;
}

void helio_trial_samples_fini(helio_trial_samples *samples) {
    free(samples->names);
    free(samples->rows);
    free(samples->events);
    free(samples->sights);
}

size_t helio_trial_columns(const helio_trial *trial) {
    return trial->samples.columns;
}

const char *helio_trial_column(const helio_trial *trial, size_t i) {
    return trial->samples.names[i];
}

const double *helio_trial_rows(const helio_trial *trial, size_t *rows) {
    *rows = trial->samples.count;
    return trial->samples.rows;
}

const helio_trial_event *helio_trial_events(const helio_trial *trial, size_t *count,
                                            uint64_t *missed) {
    *count = trial->samples.events_count;
    *missed = trial->samples.missed;
    return trial->samples.events;
}
