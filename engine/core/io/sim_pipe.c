#include "io/sim_pipe.h"

#include <stdlib.h>

#define NANO UINT64_C(1000000000)

void helio_sim_pipe_init(helio_sim_pipe *pipe, const helio_sim_pipe_config *config) {
    *pipe = (helio_sim_pipe){.config = *config, .due_ns = HELIO_NEVER};
}

void helio_sim_pipe_fini(helio_sim_pipe *pipe) {
    free(pipe->ring);
}

static void grow(helio_sim_pipe *pipe) {
    const size_t capacity = pipe->capacity ? 2 * pipe->capacity : 64;
    helio_sim_passage *ring = malloc(capacity * sizeof *ring);
    if (!ring) {
        abort(); /* a trial without memory proves nothing */
    }
    for (size_t i = 0; i < pipe->count; i++) {
        ring[i] = pipe->ring[(pipe->first + i) & (pipe->capacity - 1)];
    }
    free(pipe->ring);
    pipe->ring = ring;
    pipe->capacity = capacity;
    pipe->first = 0;
}

/* When the first will have left, as of served_ns. */
static void plan(helio_sim_pipe *pipe) {
    const uint64_t rate = pipe->config.rate;
    pipe->due_ns = pipe->count > 0 && rate > 0
                       ? pipe->served_ns + (int64_t)((pipe->left_nano + rate - 1) / rate)
                       : HELIO_NEVER;
}

static void begin_first(helio_sim_pipe *pipe, int64_t now_ns) {
    pipe->served_ns = now_ns;
    pipe->left_nano = pipe->count > 0 ? pipe->ring[pipe->first].bytes * NANO : 0;
    plan(pipe);
}

bool helio_sim_pipe_push(helio_sim_pipe *pipe, const helio_sim_passage *passage, size_t length,
                         int64_t now_ns) {
    const uint32_t bytes = (uint32_t)length + pipe->config.overhead_bytes;
    helio_sim_pipe_counts *counts = &pipe->counts;
    if (pipe->count > 0 && counts->queue_bytes + bytes > pipe->config.queue_bytes) {
        counts->dropped_packets++;
        counts->dropped_bytes += bytes;
        return false;
    }
    if (pipe->count == pipe->capacity) {
        grow(pipe);
    }
    helio_sim_passage *entry = &pipe->ring[(pipe->first + pipe->count) & (pipe->capacity - 1)];
    *entry = *passage;
    entry->bytes = bytes;
    counts->queue_bytes += bytes;
    if (counts->queue_bytes > counts->queue_peak_bytes) {
        counts->queue_peak_bytes = counts->queue_bytes;
    }
    if (pipe->count++ == 0) {
        begin_first(pipe, now_ns);
    }
    return true;
}

helio_sim_passage helio_sim_pipe_pop(helio_sim_pipe *pipe, int64_t now_ns) {
    const helio_sim_passage passage = pipe->ring[pipe->first];
    pipe->first = (pipe->first + 1) & (pipe->capacity - 1);
    pipe->count--;
    pipe->counts.packets++;
    pipe->counts.bytes += passage.bytes;
    pipe->counts.queue_bytes -= passage.bytes;
    begin_first(pipe, now_ns);
    return passage;
}

void helio_sim_pipe_change(helio_sim_pipe *pipe, uint64_t rate, uint64_t queue_bytes,
                           int64_t now_ns) {
    if (pipe->count > 0) {
        const unsigned __int128 served =
            (unsigned __int128)(uint64_t)(now_ns - pipe->served_ns) * pipe->config.rate;
        pipe->left_nano -= served < pipe->left_nano ? (uint64_t)served : pipe->left_nano;
    }
    pipe->served_ns = now_ns;
    pipe->config.rate = rate;
    pipe->config.queue_bytes = queue_bytes;
    plan(pipe);
}

void helio_sim_pipe_forget_peak(helio_sim_pipe *pipe) {
    pipe->counts.queue_peak_bytes = pipe->counts.queue_bytes;
}
