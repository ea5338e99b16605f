/* A bottleneck of the simulated network: a queue that drops at its tail and a wire of a given rate
 * behind it.  All users of the pipe share the queue.
 *
 * Rate and queue may change while packets wait: what is on the wire then has the new rate for the
 * bytes it has left, and nothing that waits is dropped.  It knows nothing of what it carries, nor
 * of clocks; times are ns that do not go back. */
#ifndef HELIO_IO_SIM_PIPE_H
#define HELIO_IO_SIM_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/moment.h"

struct helio_sim_node;
struct helio_sim_parcel;

typedef struct helio_sim_pipe_config {
    uint64_t rate;           /* bytes per second; 0: it stands still */
    uint64_t queue_bytes;    /* most inside at once; an empty pipe takes any packet */
    uint32_t overhead_bytes; /* of what is below, on the wire, for each packet */
    double loss;             /* share of what leaves that is lost, for all behind it alike */
    int64_t delay_ns;        /* after it has left */
} helio_sim_pipe_config;

typedef struct helio_sim_pipe_counts {
    uint64_t packets; /* that left; bytes with overhead, as all here */
    uint64_t bytes;
    uint64_t dropped_packets; /* as the queue was full */
    uint64_t dropped_bytes;
    uint64_t lost_packets;     /* by chance */
    uint64_t queue_bytes;      /* inside now */
    uint64_t queue_peak_bytes; /* most inside since helio_sim_pipe_forget_peak */
} helio_sim_pipe_counts;

/* A packet inside, and where it goes: to one node, or (`to` NULL) on from a node to an address. */
typedef struct helio_sim_passage {
    struct helio_sim_parcel *parcel;
    struct helio_sim_node *to;
    struct helio_sim_node *from;
    helio_address destination;
    uint32_t bytes;
} helio_sim_passage;

typedef struct helio_sim_pipe {
    helio_sim_pipe_config config;
    helio_sim_pipe_counts counts;
    helio_sim_passage *ring;
    size_t first;
    size_t count;
    size_t capacity;    /* a power of two */
    uint64_t left_nano; /* of the first: bytes not on the wire yet, in 10^-9 */
    int64_t served_ns;  /* as of */
    int64_t due_ns;     /* when the first has left; HELIO_NEVER: none, or it stands still */
    struct helio_sim_pipe *next; /* of the simulation */
} helio_sim_pipe;

/* Free with helio_sim_pipe_fini; what is inside is the caller's to release. */
void helio_sim_pipe_init(helio_sim_pipe *pipe, const helio_sim_pipe_config *config);
void helio_sim_pipe_fini(helio_sim_pipe *pipe);

/* Takes in a packet of `length` bytes, or drops it and returns false.  passage->bytes is set. */
bool helio_sim_pipe_push(helio_sim_pipe *pipe, const helio_sim_passage *passage, size_t length,
                         int64_t now_ns);
/* The first has left (now is due_ns). */
helio_sim_passage helio_sim_pipe_pop(helio_sim_pipe *pipe, int64_t now_ns);

void helio_sim_pipe_change(helio_sim_pipe *pipe, uint64_t rate, uint64_t queue_bytes,
                           int64_t now_ns);
/* The peak is counted from now on. */
void helio_sim_pipe_forget_peak(helio_sim_pipe *pipe);

#endif
