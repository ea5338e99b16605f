/* One TCP connection, of either end: frames in, frames out (wire/frame.h).
 *
 * Reading: the kernel's bytes go into one buffer and packets are handed out where they lie there.
 * Writing: packets queue, a flush hands all of them to the kernel at once, and what the kernel does
 * not take is copied to a backlog that goes first from then on.  A frame of which the first byte
 * has been sent is always sent to its end; beyond the backlog's limit whole frames are left out.
 *
 * It begins in GREETING: hello was sent, and nothing but the other side's hello is accepted; until
 * then it has next to no memory.  It becomes STANDING by that, and BROKEN for good by anything
 * wrong; `why` then is a sentence.  It never closes its socket before destroy.
 *
 * Nothing here blocks.  Time is told to it by tend; a connection on which no whole frame came for
 * its timeout breaks, whatever the kernel believes of it. */
#ifndef HELIO_IO_TCP_CONNECTION_H
#define HELIO_IO_TCP_CONNECTION_H

#include <sys/uio.h>

#include "io/driver.h"
#include "io/tcp_pairing.h"
#include "wire/frame.h"

enum {
    HELIO_TCP_QUEUE = HELIO_CHANNEL_BATCH, /* packets */
    HELIO_TCP_WHY = 120,
};

typedef enum helio_tcp_state {
    HELIO_TCP_GREETING,
    HELIO_TCP_STANDING,
    HELIO_TCP_BROKEN,
} helio_tcp_state;

typedef struct helio_tcp_limits {
    uint8_t role;         /* HELIO_RUM_ROLE_* of this end */
    size_t packet_bytes;  /* largest PGM packet */
    size_t read_bytes;    /* wanted of one read */
    size_t backlog_bytes; /* hard limit */
    int64_t timeout_ns;
    helio_account *account;     /* pays for the memory; a transmitter's goes beyond its limit */
    helio_tcp_pairing *pairing; /* of the instance; NULL: it pairs none */
} helio_tcp_limits;

/* A socket, each direction of which belongs to a connection. */
typedef struct helio_tcp_socket {
    int fd;
    unsigned halves; /* directions in use */
} helio_tcp_socket;

/* What an epoll instance waits for at a socket. */
typedef struct helio_tcp_watch {
    int fd;
    uint32_t events; /* 0: nothing */
} helio_tcp_watch;

typedef struct helio_tcp_connection {
    /* What a packet in either direction needs comes first. */

    /* Read from and written to; one, but for pairs. */
    helio_tcp_socket *in, *out;
    helio_tcp_state state;
    bool is_stranger;  /* BROKEN: and it never was one of ours */
    bool is_mute;      /* nothing can be written any more; there may be something to read */
    bool is_paused;    /* nothing is read, so silence says nothing */
    bool is_excess;    /* there are too many: it may not stand */
    bool was_excess;   /* BROKEN: for that */
    bool wants_sums;   /* the other side refuses data packets without a checksum */
    bool is_listed;    /* for pairing */
    bool is_crossing;  /* CROSS was read, and not yet that of the twin */
    bool is_crossed;   /* exchanged, at the side that reads or that writes */
    bool heard, spoke; /* since the last tend */

    uint8_t *buffer;
    size_t buffer_bytes, start, end; /* what was read and not handed out */

    uint8_t *backlog;
    size_t backlog_bytes, backlog_start, backlog_end;

    unsigned queued;     /* packets */
    size_t queued_bytes; /* frames */
    size_t copied_bytes;
    helio_tcp_limits limits;
    helio_address peer;

    uint8_t heads[HELIO_TCP_QUEUE][HELIO_RUM_HEAD];
    struct iovec parts[2 * HELIO_TCP_QUEUE]; /* a head and a body each */
    uint8_t *copies;                         /* of packets that are not stable */

    uint64_t instance;  /* number of the other side's */
    uint64_t looked_at; /* changes of the pairing when a twin was last looked for */
    struct helio_tcp_connection *next, *twin; /* of the pairing; the one offered with it */
    char why[HELIO_TCP_WHY];
    uint64_t left_out; /* packets that found no room in the backlog */
    uint64_t charged;  /* to the account */

    int64_t born_ns, heard_ns, spoke_ns, tended_ns; /* monotonic; 0 before the first tend */
    int64_t alive_ns;                               /* after so much silence something is said */
} helio_tcp_connection;

/* Takes over a socket that is connected or connecting, also when it fails, and says hello.  NULL:
 * no memory. */
helio_tcp_connection *helio_tcp_connection_create(int fd, const helio_address *peer,
                                                  const helio_tcp_limits *limits);
/* Closes the socket; what the kernel has taken it still delivers.  Accepts NULL. */
void helio_tcp_connection_destroy(helio_tcp_connection *connection);

/* Hands out up to `limit` packets: those read before, else those of one read.  They are valid until
 * the next call. */
size_t helio_tcp_read(helio_tcp_connection *connection, helio_datagram *out, size_t limit);
/* Reads into other memory from now on, as helio_driver.leave. */
bool helio_tcp_leave(helio_tcp_connection *connection, helio_loan *loan);
/* There are frames to hand out without a read. */
bool helio_tcp_has_frame(const helio_tcp_connection *connection);

/* Queues a packet of at most the limit's length; a stable one must stay as it is until the
 * flush. */
void helio_tcp_queue(helio_tcp_connection *connection, const void *packet, size_t length,
                     bool stable);
void helio_tcp_flush(helio_tcp_connection *connection);
/* Queues a stable packet and flushes. */
void helio_tcp_send_now(helio_tcp_connection *connection, const void *packet, size_t length);
/* Sends a frame of another kind behind all that is queued. */
void helio_tcp_say(helio_tcp_connection *connection, uint8_t kind, const void *body, size_t length);

/* It becomes BROKEN for this reason. */
__attribute__((format(printf, 2, 3))) void helio_tcp_break_off(helio_tcp_connection *connection,
                                                               const char *format, ...);

static inline size_t helio_tcp_backlog(const helio_tcp_connection *connection) {
    return connection->backlog_end - connection->backlog_start;
}

/* Looks at the clock: says that it is alive, and breaks when the other side is not. */
void helio_tcp_tend(helio_tcp_connection *connection, int64_t now_ns);

/* Brings what an epoll instance waits for up to date, for reading and for writing; NULL: it waits
 * for nothing any more. */
void helio_tcp_watch_connection(helio_tcp_watch watches[2], int epoll,
                                const helio_tcp_connection *connection, void *data);

#endif
