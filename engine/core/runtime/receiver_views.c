/* A transmitter's receivers, as the application may see them: a copy of what its stream knows, the
 * worst first.  Who wants few of many gets the worst: on the engine's thread they are kept in a
 * heap whose root is the least bad, and the caller's thread puts them in order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/clock_source.h"
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

static void describe(helio_tx_stream *stream, const helio_receiver_view *view, helio_moment moment,
                     helio_receiver_info *out) {
    const char *name;
    double loss;
    const helio_address *address = helio_tx_stream_receiver(stream, view->index, &name, &loss);
    const helio_tx_trouble trouble = helio_tx_stream_trouble(stream, view->index, moment.now_ns);
    memset(out, 0, sizeof *out);
    *out = (helio_receiver_info){
        .receiver = view->receiver,
        .incarnation = view->incarnation,
        .packets_received = view->received,
        .packets_missed = view->lost,
        .packets_lost = view->unrecoverable,
        .lag = trouble.behind.packets,
        .lag_bytes = trouble.behind.bytes,
        .lag_ns = trouble.behind.age_ns,
        .behaviour = trouble.class,
        .outlook = trouble.outlook,
        .forecast_ns = trouble.forecast_ns,
        .blame_ns = (int64_t)trouble.blame_ns,
        .nak_share = trouble.nak_share,
        .badness = trouble.badness,
        .window = view->window,
        .naks = view->naks,
        .naks_again = view->naks_again,
        .repairs = view->repairs,
        .repair_bytes = view->repair_bytes,
        .loss = loss,
        .buffer_fill = (double)view->buffer_fill / UINT16_MAX,
        .round_trip_ns = view->round_trip_ns,
        .heard_ns = moment.wall_ns - (moment.now_ns - view->heard_ns),
        .state = state_of(view),
        .reports = (view->flags & HELIO_VIEW_REPORTS) != 0,
        .tagged = (view->flags & HELIO_VIEW_TAGGED) != 0,
    };
    snprintf(out->name, sizeof out->name, "%s", name);
    helio_address_format(address, out->address);
}

/* A total order, so that equals always come in the same one. */
static bool is_worse(double badness, uint64_t receiver, const helio_receiver_info *than) {
    return badness != than->badness ? badness > than->badness : receiver < than->receiver;
}

static bool is_least(const helio_receiver_info *a, const helio_receiver_info *than) {
    return is_worse(than->badness, than->receiver, a);
}

static void swap(helio_receiver_info *a, helio_receiver_info *b) {
    const helio_receiver_info held = *a;
    *a = *b;
    *b = held;
}

static void sift_up(helio_receiver_info *heap, size_t i) {
    for (size_t parent; i > 0 && is_least(&heap[i], &heap[parent = (i - 1) / 2]); i = parent) {
        swap(&heap[i], &heap[parent]);
    }
}

static void sift_down(helio_receiver_info *heap, size_t count) {
    for (size_t i = 0, least;; i = least) {
        least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < count; child++) {
            if (is_least(&heap[child], &heap[least])) {
                least = child;
            }
        }
        if (least == i) {
            return;
        }
        swap(&heap[i], &heap[least]);
    }
}

static int compare(const void *a, const void *b) {
    const helio_receiver_info *one = a, *other = b;
    return is_worse(one->badness, one->receiver, other) ? -1 : 1;
}

static bool list(helio_instance *instance, helio_command *command, helio_moment moment) {
    (void)instance;
    const listing *wanted = command->context;
    helio_tx_stream *stream = wanted->transmitter->lane->stream;
    uint32_t entries;
    const helio_receiver_view *views = helio_tx_stream_views(stream, &entries);
    size_t count = 0;
    for (uint32_t i = 0; i < entries; i++) {
        if (!(views[i].flags & HELIO_VIEW_PRESENT)) {
            continue;
        }
        if (count < wanted->limit) {
            describe(stream, &views[i], moment, &wanted->out[count]);
            sift_up(wanted->out, count);
        } else if (wanted->limit > 0 &&
                   is_worse(helio_tx_stream_trouble(stream, i, moment.now_ns).badness,
                            views[i].receiver, &wanted->out[0])) {
            describe(stream, &views[i], moment, &wanted->out[0]);
            sift_down(wanted->out, wanted->limit);
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
    int found;
    if (helio_instance_is_engine(instance)) { /* a listener may look */
        list(instance, &command, helio_clock_read(&instance->clock));
        found = command.result;
    } else {
        found = helio_command_execute(instance, &command);
    }
    if (found > 1 && limit > 1) {
        qsort(receivers, (size_t)found < limit ? (size_t)found : limit, sizeof *receivers, compare);
    }
    return found;
}
