/* The seam between the protocol and a network.  A driver is a small table of functions (udp.c is
 * one); a channel is what it opens: what a transmit stream sends its packets through and hears its
 * requests from, or what a receive endpoint reads data from and sends feedback through.
 *
 * All calls come from the engine's thread and none blocks longer than a few milliseconds.  Mishaps
 * on the way are counted in the channel's counters; the runtime carries them to the statistics. */
#ifndef HELIO_IO_DRIVER_H
#define HELIO_IO_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/account.h"
#include "base/address.h"
#include "base/datagram.h"
#include "base/loan.h"

enum {
    HELIO_CHANNEL_DESTINATIONS_MAX = 64, /* of one unicast stream */
    HELIO_CHANNEL_BATCH = 128,           /* packets sent by one flush, received by one call */
    HELIO_CHANNEL_FDS_MAX = 2,
    HELIO_CHANNEL_NAME_MAX = 63,
};

typedef enum helio_channel_role {
    HELIO_CHANNEL_TRANSMIT,
    HELIO_CHANNEL_RECEIVE
} helio_channel_role;

/* Events of a channel with connections or peers. */
typedef enum helio_channel_event {
    HELIO_CHANNEL_CONNECTED,    /* the other side is there (again) */
    HELIO_CHANNEL_DISCONNECTED, /* it said goodbye, or the connection broke */
    HELIO_CHANNEL_PEER_CRASHED, /* its process is gone and had not said goodbye */
    HELIO_CHANNEL_FELL_BACK,    /* something faster could not be had */
    HELIO_CHANNEL_REFUSED,      /* who is there is none of ours, or does not fit */
    HELIO_CHANNEL_TRUNCATED,    /* another program cut the file of a ring */
} helio_channel_event;

/* Connections that the transmit channels of one thread share. */
struct helio_tcp_pool;

typedef struct helio_channel_config {
    helio_channel_role role;
    bool multicast;
    helio_address destinations
        [HELIO_CHANNEL_DESTINATIONS_MAX]; /* the group, or the hosts; receiving: the one bound */
    size_t destinations_count;
    helio_address interface;  /* port 0; address 0: the one the system chooses */
    uint32_t interface_index; /* IPv6: its number; 0: the one the system chooses */
    int ttl;
    size_t packet_bytes;    /* largest UDP payload */
    size_t socket_buffer;   /* bytes asked of the kernel */
    bool raw;               /* udp: IP protocol 113 in the place of UDP */
    bool router_alert;      /* raw: packets that routers on the way are to look at say so */
    bool gso;               /* transmitting: equal packets are given to the kernel as one */
    bool gro;               /* receiving: the kernel may give several packets as one */
    bool upstream;          /* transmitting: listen on the destinations' port as well */
    helio_address feedback; /* receiving, udp: where feedback leaves from; family 0: any port */
    bool kernel_stamps;     /* receiving: ask the kernel when it took each datagram in */
    double inject_loss;     /* receiving: share of the datagrams thrown away */
    uint64_t seed;          /* of inject_loss, and of numbers the driver draws */
    char name[HELIO_CHANNEL_NAME_MAX + 1]; /* shm, inproc */
    size_t ring_packets;                   /* shm, inproc: rounded up to a power of two */
    bool ring_wait;                        /* transmitting: the slowest reader stops the writer */
    bool huge_pages;                       /* transmitting: the ring is to lie in huge pages */
    /* tcp: */
    int64_t timeout_ns;      /* a connection silent for as long is broken off */
    int64_t connect_wait_ns; /* transmit: no room for as long, until all connections stood once */
    size_t backlog_bytes;    /* transmit: with more waiting in a connection there is no room */
    size_t backlog_limit;    /* transmit: what waits beyond this is left out, a send error */
    /* transmit: where channels of the owner's thread find connections to share; first and last of
     * them make and free the pool.  NULL: the channel shares none. */
    struct helio_tcp_pool **pool;
    helio_account *account; /* that buffers of connections are charged to; may be NULL */
    /* Told what happens, within a call of the driver; `peer` may be NULL, `why` is for people.  The
     * channel must not be used in it. */
    void (*tell)(void *context, helio_channel_event event, const helio_address *peer,
                 const char *why);
    void *context; /* of tell */
} helio_channel_config;

/* Totals since the channel was opened. */
typedef struct helio_channel_counters {
    uint64_t packets_sent, bytes_sent;
    uint64_t packets_received, bytes_received; /* without those thrown away by inject_loss */
    uint64_t send_errors;                      /* packets the kernel refused for good */
    uint64_t data_errors;  /* of these, original data packets; all where the driver cannot tell */
    int send_errno;        /* of the last of them */
    uint64_t socket_drops; /* datagrams the kernel dropped because the receive buffer was full */
    size_t buffer_bytes;   /* receive buffer got */
    uint64_t connects, disconnects;
    uint64_t overruns; /* packets the writer of a ring took back before they were read */
    /* connections refused, or put out before they said what they are: one address had too many, or
     * all together did */
    uint64_t refused_of_address, refused;
    /* gauges */
    uint64_t connections;          /* standing now; rings: readers, or the writer */
    uint64_t backlog_bytes;        /* waiting in the driver for a connection to take them */
    uint64_t kernel_backlog_bytes; /* taken by the kernel and not yet by the other side */
} helio_channel_counters;

typedef struct helio_channel {
    const struct helio_driver *driver;
    helio_address local; /* what the other side sees; transmit: its port is the stream's */
    helio_address bound; /* receiving: the destination that is ours */
    int fds[HELIO_CHANNEL_FDS_MAX]; /* to be watched for reading, -1 past the last */
    bool
        has_more; /* the last receive left off where more may wait, though it gave less than asked */
    bool waits;   /* receiving: what is not read makes the source wait, and is not lost */
    bool is_aside; /* receiving from a group: what was read last was sent to this receiver alone */
    helio_channel_counters counters;
} helio_channel;

typedef struct helio_driver {
    const char *name;
    /* Packets go over connections: whole and in order while one stands, and what a receiver says
     * goes back to the address its data came from.  `local` is then an address the driver made up
     * for the stream, the same as long as the channel lives. */
    bool is_connected;
    /* Packets go through memory of this host. */
    bool is_memory;
    /* The transport protects packets from damage: data goes without a checksum. */
    bool is_intact;

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

    /* Sends one packet to every destination of the channel and hands it, behind all that is queued,
     * to the network: send and flush in one call.  The packet is not copied.  Returns as send.  A
     * driver that only receives has none. */
    int (*send_now)(helio_channel *channel, const void *packet, size_t length);

    /* Reads up to `limit` datagrams; returns how many.  Limit 0, to a driver with connections: the
     * reader takes nothing now, so the other side must wait, and what it sends ends no sleep. */
    size_t (*receive)(helio_channel *channel, helio_datagram *datagrams, size_t limit);

    /* Reads into other memory from now on: what was given out stays where it is until `loan` is
     * over, and what was read and not given out yet comes with the next receive.  False: there is
     * no memory, and what was given out may lie in the channel's still.  NULL: nothing that the
     * channel gives out is lent. */
    bool (*leave)(helio_channel *channel, helio_loan *loan);

    /* Flushes and closes.  Accepts NULL. */
    void (*close)(helio_channel *channel);

    /* ---- what follows may be NULL ---- */

    /* Packets for all destinations that send takes now without throwing any away; 0: new data is
     * to wait.  NULL: always room. */
    size_t (*room)(helio_channel *channel);

    /* Looks after connections and peers and brings gauges up to date.  Called about every
     * millisecond while the engine is awake, at least every 50 ms while it sleeps. */
    void (*tend)(helio_channel *channel, int64_t now_ns);

    /* Receiving: datagrams dropped on this host before receive could give them out, all since the
     * channel was opened; it may ask the kernel.  NULL: none ever are. */
    uint64_t (*drops)(helio_channel *channel);

    /* The engine is about to sleep on the fds: from now on news makes one of them readable.  False:
     * there is news already.  NULL: the fds always tell. */
    bool (*before_sleep)(helio_channel *channel);
    void (*after_sleep)(helio_channel *channel);

    /* Receiving: from now on the kernel is asked when it took each datagram in, or no more.  NULL:
     * it cannot be asked. */
    void (*stamp)(helio_channel *channel, bool on);
} helio_driver;

/* One packet of this length was handed over. */
static inline void helio_channel_count_sent(helio_channel *channel, size_t length) {
    channel->counters.packets_sent++;
    channel->counters.bytes_sent += length;
}

/* UDP, multicast and unicast. */
extern const helio_driver helio_driver_udp;
/* TCP: RUM. */
extern const helio_driver helio_driver_tcp;
/* Rings in memory shared by processes, and by the threads of one process. */
extern const helio_driver helio_driver_shm;
extern const helio_driver helio_driver_inproc;

#endif
