/* A transmitter's receivers, as the application may see them: a copy of what its stream knows. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "runtime/clock_source.h"
#include "runtime/command.h"
#include "runtime/instance.h"
#include "runtime/transmitter.h"

typedef struct listing {
    helio_transmitter *transmitter;
    helio_receiver_info *out;
    size_t limit;
} listing;

static uint32_t state_of(const helio_receiver_view *view) {
    return view->flags & HELIO_VIEW_LEFT        ? HELIO_RECEIVER_LEFT
           : view->flags & HELIO_VIEW_EXPELLED  ? HELIO_RECEIVER_EXPELLED
           : view->flags & HELIO_VIEW_SUSPENDED ? HELIO_RECEIVER_SUSPENDED
                                                : HELIO_RECEIVER_OK;
}

static void describe(helio_tx_stream *stream, const helio_receiver_view *view, helio_clock clock,
                     helio_receiver_info *out) {
    const char *name;
    double loss;
    const helio_address *address = helio_tx_stream_receiver(stream, view->place, &name, &loss);
    const uint64_t lead = helio_tx_stream_lead(stream);
    memset(out, 0, sizeof *out);
    *out = (helio_receiver_info){
        .receiver = view->receiver,
        .incarnation = view->incarnation,
        .packets_received = view->received,
        .packets_lost = view->lost,
        .packets_unrecoverable = view->unrecoverable,
        .lag = view->position && view->position < lead ? lead - view->position : 0,
        .window = view->window,
        .naks = view->naks,
        .naks_again = view->naks_again,
        .repairs = view->repairs,
        .repair_bytes = view->repair_bytes,
        .loss = loss,
        .buffer_fill = (double)view->buffer_fill / UINT16_MAX,
        .round_trip_ns = view->round_trip_ns,
        .heard_ns = clock.wall_ns - (clock.now_ns - view->heard_ns),
        .state = state_of(view),
        .reports = (view->flags & HELIO_VIEW_REPORTS) != 0,
        .tagged = (view->flags & HELIO_VIEW_TAGGED) != 0,
    };
    snprintf(out->name, sizeof out->name, "%s", name);
    helio_address_format(address, out->address);
}

static bool list(helio_instance *instance, helio_command *command, helio_clock clock) {
    (void)instance;
    const listing *wanted = command->context;
    helio_tx_stream *stream = wanted->transmitter->lane->stream;
    uint32_t places;
    const helio_receiver_view *views = helio_tx_stream_views(stream, &places);
    size_t count = 0;
    for (uint32_t i = 0; i < places; i++) {
        if (!(views[i].flags & HELIO_VIEW_PRESENT)) {
            continue;
        }
        if (count < wanted->limit) {
            describe(stream, &views[i], clock, &wanted->out[count]);
        }
        count++;
    }
    command->result = (int)count;
    return true;
}

int helio_transmitter_receivers(helio_transmitter *transmitter, helio_receiver_info *receivers,
                                size_t limit) {
    listing wanted = {transmitter, receivers, limit};
    helio_command command = {.run = list, .context = &wanted};
    helio_instance *instance = transmitter->instance;
    if (helio_instance_is_engine(instance)) { /* a listener may look */
        list(instance, &command, helio_clock_read(&instance->clock));
        return command.result;
    }
    return helio_command_execute(instance, &command);
}
