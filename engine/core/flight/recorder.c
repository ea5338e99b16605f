#include "flight/recorder.h"

#include <stdlib.h>

#include "base/error.h"

int helio_flight_recorder_open(helio_flight_recorder *recorder, const helio_stats *stats,
                               const char *path, size_t bytes, int64_t interval_ns) {
    const helio_segment_header *segment = helio_stats_header(stats);
    helio_flight_identity identity = {
        .name = segment->name,
        .product = segment->product_version,
        .pid = segment->pid,
        .incarnation = segment->incarnation,
        .started_ns = segment->started_ns,
        .interval_ns = (uint64_t)interval_ns,
    };
    identity.directory = helio_stats_directory(stats, &identity.directory_bytes);
    *recorder = (helio_flight_recorder){.stats = stats};
    int error = helio_flight_scan_init(&recorder->scan, stats);
    if (!error) {
        error = helio_flight_file_open(&recorder->file, path, bytes, &identity);
    }
    if (!error) {
        recorder->frame.limit = helio_flight_file_frame_max(&recorder->file);
        recorder->frame.bytes = malloc(recorder->frame.limit);
        error = recorder->frame.bytes
                    ? 0
                    : helio_fail(HELIO_ERR_NOMEM, "no memory for the flight recorder");
    }
    if (error) {
        helio_flight_recorder_close(recorder);
    }
    return error;
}

void helio_flight_recorder_close(helio_flight_recorder *recorder) {
    helio_flight_file_close(&recorder->file);
    helio_flight_scan_fini(&recorder->scan);
    free(recorder->frame.bytes);
    *recorder = (helio_flight_recorder){0};
}

/* ---- looking ---- */

static void look_at_events(helio_flight_recorder *recorder) {
    const uint64_t written = helio_stats_events_written(recorder->stats);
    recorder->events.count = 0;
    recorder->events.missed = 0;
    while (recorder->next_event < written &&
           recorder->events.count < HELIO_FLIGHT_EVENTS_PER_TICK) {
        helio_segment_event *event = &recorder->events.list[recorder->events.count];
        if (helio_stats_read_event(recorder->stats, recorder->next_event++, event)) {
            recorder->events.count++;
        } else {
            recorder->events.missed++;
        }
    }
}

void helio_flight_recorder_look(helio_flight_recorder *recorder) {
    look_at_events(recorder); /* first: what an event is about is then counted already */
    helio_flight_scan_look(&recorder->scan);
}

/* ---- writing ---- */

static void put_time(helio_flight_recorder *recorder, const helio_flight_time *time, bool is_key) {
    helio_flight_frame *frame = &recorder->frame;
    const helio_moment moment = time->moment, before = recorder->before;
    helio_flight_put(frame, is_key ? HELIO_FLIGHT_KEY : 0);
    helio_flight_put(frame, recorder->ticks);
    if (is_key) {
        helio_flight_put(frame, (uint64_t)moment.now_ns);
        helio_flight_put(frame, (uint64_t)moment.wall_ns);
    } else {
        const int64_t passed_ns = moment.now_ns - before.now_ns;
        helio_flight_put(frame, (uint64_t)passed_ns);
        helio_flight_put_change(frame, (uint64_t)(moment.wall_ns - before.wall_ns - passed_ns));
    }
    helio_flight_put(frame, (uint64_t)time->late_ns);
    helio_flight_put(frame, time->missed);
    helio_flight_put(frame, (uint64_t)time->next_ns);
}

static void put_events(helio_flight_recorder *recorder, int64_t wall_ns) {
    helio_flight_frame *frame = &recorder->frame;
    for (size_t i = 0; i < recorder->events.count; i++) {
        const helio_segment_event *event = &recorder->events.list[i];
        helio_flight_put(frame, HELIO_FLIGHT_EVENT);
        helio_flight_put(frame, helio_cell(&event->number) - 1);
        helio_flight_put_change(frame, event->time_ns - (uint64_t)wall_ns);
        helio_flight_put(frame, event->event);
        helio_flight_put(frame, event->severity);
        helio_flight_put(frame, event->slot == HELIO_STATS_NO_SLOT ? 0 : event->slot + UINT64_C(1));
        for (int argument = 0; argument < 4; argument++) {
            helio_flight_put(frame, event->arguments[argument]);
        }
        helio_flight_put_text(frame, event->text);
    }
    if (recorder->events.missed > 0) {
        helio_flight_put(frame, HELIO_FLIGHT_EVENTS_MISSED);
        helio_flight_put(frame, recorder->events.missed);
    }
}

static void put_cause(helio_flight_frame *frame, const helio_flight_cause *cause) {
    helio_flight_put(frame, HELIO_FLIGHT_TRIGGER);
    helio_flight_put(frame, cause->event);
    helio_flight_put(frame, (uint64_t)cause->wall_ns);
    helio_flight_put_text(frame, cause->why);
}

/* What is told first is small and always there; objects come last, and of a key's only as many as
 * leave room in the chunk for frames after it. */
static bool make_frame(helio_flight_recorder *recorder, const helio_flight_time *time,
                       const helio_flight_cause *cause, bool is_key) {
    helio_flight_frame *frame = &recorder->frame;
    const size_t whole = helio_flight_file_frame_max(&recorder->file);
    frame->used = 0;
    frame->is_full = false;
    frame->limit = whole;
    put_time(recorder, time, is_key);
    if (cause) {
        put_cause(frame, cause);
    }
    put_events(recorder, time->moment.wall_ns);
    if (is_key && frame->used < whole / 4 * 3) {
        frame->limit = whole / 4 * 3;
    }
    bool fits = helio_flight_scan_write(&recorder->scan, frame, is_key);
    frame->limit = whole;
    if (is_key && recorder->scan.left_out > 0) {
        helio_flight_put(frame, HELIO_FLIGHT_LEFT_OUT);
        helio_flight_put(frame, recorder->scan.left_out);
    }
    return fits && !frame->is_full;
}

void helio_flight_recorder_write(helio_flight_recorder *recorder, const helio_flight_time *time,
                                 const helio_flight_cause *cause) {
    helio_flight_frame *frame = &recorder->frame;
    helio_flight_file *file = &recorder->file;
    bool is_written = recorder->ticks > 0 && make_frame(recorder, time, cause, false) &&
                      helio_flight_file_append(file, frame->bytes, frame->used);
    if (!is_written) {
        if (recorder->ticks > 0) {
            helio_flight_file_next(file);
        }
        recorder->chunks_begun++;
        make_frame(recorder, time, cause, true);
        is_written = helio_flight_file_append(file, frame->bytes, frame->used);
    }
    if (is_written) {
        helio_flight_scan_settle(&recorder->scan);
        recorder->before = time->moment;
        recorder->ticks++;
    }
}
