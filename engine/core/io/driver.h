/* The seam between the protocol and a network.  A driver is a small table of functions (udp.c is
 * one); a channel is what it opens: for a transmit stream the one socket that sends its packets and
 * hears its requests, for a receive endpoint the socket of the data and the one that sends
 * feedback.
 *
 * All calls come from the engine's thread and none blocks longer than a few milliseconds.  Mishaps
 * on the way are counted in the channel's counters; the runtime carries them to the statistics. */
#ifndef HELIO_IO_DRIVER_H
#define HELIO_IO_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"

enum {
    HELIO_CHANNEL_DESTINATIONS_MAX = 64, /* of one unicast stream */
    HELIO_CHANNEL_BATCH = 64,            /* packets sent or received by one system call */
    HELIO_CHANNEL_FDS_MAX = 2,
};

typedef enum helio_channel_role {
    HELIO_CHANNEL_TRANSMIT,
    HELIO_CHANNEL_RECEIVE
} helio_channel_role;

typedef struct helio_channel_config {
    helio_channel_role role;
    bool multicast;
    helio_address destinations
        [HELIO_CHANNEL_DESTINATIONS_MAX]; /* the group, or the hosts; receiving: the one bound */
    size_t destinations_count;
    helio_address interface; /* port 0; address 0: the one the system chooses */
    int ttl;
    size_t packet_bytes;  /* largest UDP payload */
    size_t socket_buffer; /* bytes asked of the kernel */
    bool kernel_stamps;   /* receiving: ask the kernel when it took each datagram in */
    double inject_loss;   /* receiving: share of the datagrams thrown away */
    uint64_t seed;        /* of inject_loss */
} helio_channel_config;

/* Totals since the channel was opened. */
typedef struct helio_channel_counters {
    uint64_t packets_sent, bytes_sent;
    uint64_t packets_received, bytes_received; /* without those thrown away by inject_loss */
    uint64_t send_errors;                      /* packets the kernel refused for good */
    int send_errno;                            /* of the last of them */
    uint64_t socket_drops; /* datagrams the kernel dropped because the receive buffer was full */
    size_t buffer_bytes;   /* receive buffer got */
} helio_channel_counters;

/* A datagram read.  `data` is valid until the next receive on the channel. */
typedef struct helio_datagram {
    const uint8_t *data;
    size_t length;
    helio_address source;
    int64_t kernel_ns; /* wall clock when the kernel took it in, 0 unless asked for */
} helio_datagram;

typedef struct helio_channel {
    const struct helio_driver *driver;
    helio_address local; /* what the other side sees; transmit: its port is the stream's */
    helio_address bound; /* receiving: the destination that is ours */
    int fds[HELIO_CHANNEL_FDS_MAX]; /* to be watched for reading, -1 past the last */
    helio_channel_counters counters;
} helio_channel;

typedef struct helio_driver {
    const char *name;

    /* Opens a channel.  Returns 0 or HELIO_ERR_ADDRESS, _PERMISSION, _SYSTEM, _NOMEM with
     * helio_error_text set. */
    int (*open)(const helio_channel_config *config, helio_channel **out);

    /* Queues one packet for `to`; NULL: for every destination of the channel.  A stable packet is
     * not copied: it must stay as it is until flush.  Flushes by itself when its queue is full.
     * Returns 0, or -1 when the packet is longer than the channel takes (counted as a send
     * error). */
    int (*send)(helio_channel *channel, const helio_address *to, const void *packet, size_t length,
                bool stable);

    /* Hands all that is queued to the network. */
    void (*flush)(helio_channel *channel);

    /* Reads up to `limit` datagrams; returns how many. */
    size_t (*receive)(helio_channel *channel, helio_datagram *datagrams, size_t limit);

    /* Flushes and closes.  Accepts NULL. */
    void (*close)(helio_channel *channel);
} helio_driver;

/* UDP over IPv4, multicast and unicast. */
extern const helio_driver helio_driver_udp;

#endif
