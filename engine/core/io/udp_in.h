/* The receiving half of a UDP channel.
 *
 * How many datagrams one system call asks for follows the traffic: one while it is thin, so that a
 * lone datagram costs one call and the kernel does not look for a second in vain, more as calls
 * come back full.  With generic receive offload (GRO) the kernel may hand over several datagrams of
 * one sender as one; they are taken apart here.  It says so in control data, which make each call
 * dearer: while the traffic is thin, the kernel is not asked to join any.  What was read and does
 * not fit the caller's array waits for the next call, in the same memory. */
#ifndef HELIO_IO_UDP_IN_H
#define HELIO_IO_UDP_IN_H

#include <sys/uio.h>
#include <time.h>

#include "base/loan.h"
#include "base/random.h"
#include "io/udp_socket.h"

enum {
    HELIO_UDP_SLOTS = 64, /* messages read by one system call */
    HELIO_UDP_CONTROL_IN = CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct timespec)),
};

typedef union helio_udp_control_in {
    struct cmsghdr header;
    uint8_t bytes[HELIO_UDP_CONTROL_IN];
} helio_udp_control_in;

/* One socket read from. */
typedef struct helio_udp_source {
    int fd;
    uint16_t port;    /* raw: whose packets it is for */
    size_t ask;       /* messages to ask for the next time */
    uint32_t dropped; /* by the kernel, as far as counted */
} helio_udp_source;

typedef struct helio_udp_in {
    const helio_channel_config *config;
    helio_channel_counters *counters;
    helio_random random; /* of inject_loss */
    int data;            /* the socket whose datagrams may be joined */
    bool has_gro;        /* the kernel can join them */
    bool is_joining;     /* and is asked to */
    bool is_stamped;     /* each message comes with the kernel's stamp */
    bool has_control;    /* either: some message may come with more than its data */
    bool sees_joined;    /* the kernel does join datagrams */
    unsigned thin_for;   /* calls of tend since several datagrams came at once */
    bool filters;        /* not every datagram is given out */
    size_t longest; /* bytes of a packet; a longer one is given out with one byte more than this */
    size_t slot_bytes;
    uint8_t *memory;
    uint16_t port; /* of the source last read */
    /* The first slots whose headers are ready for a call. */
    size_t prepared;

    /* Slots [next, count) are read and not yet given out, the first from `offset` on. */
    size_t next, count;
    size_t offset;
    struct mmsghdr messages[HELIO_UDP_SLOTS];
    struct iovec parts[HELIO_UDP_SLOTS];
    helio_udp_name from[HELIO_UDP_SLOTS];
    helio_udp_control_in control[HELIO_UDP_SLOTS];
} helio_udp_in;

/* `in` is all zeros but for config and counters, which must outlive it.  `data` is the socket that
 * may join datagrams.  0 or NOMEM; release with helio_udp_in_fini. */
int helio_udp_in_init(helio_udp_in *in, int data);
void helio_udp_in_fini(helio_udp_in *in);

/* Datagrams are read that no one has taken yet. */
static inline bool helio_udp_in_has_more(const helio_udp_in *in) {
    return in->next < in->count;
}

/* Reads into other memory from now on, as helio_driver.leave. */
bool helio_udp_in_leave(helio_udp_in *in, helio_loan *loan);

/* Reads from `source`, when nothing read before waits.  Returns whether it gave all that was asked
 * for, so that more may be there, and what was asked for was more than one. */
bool helio_udp_in_read(helio_udp_in *in, helio_udp_source *source);

/* Gives out up to `limit` of the datagrams read; returns how many. */
size_t helio_udp_in_take(helio_udp_in *in, helio_datagram *datagrams, size_t limit);

/* As helio_udp_in_read and helio_udp_in_take of at most one, when nothing read before waits and
 * `source` is to be asked for one message.  Datagrams joined with it wait for the next call. */
size_t helio_udp_in_read_lone(helio_udp_in *in, helio_udp_source *source, helio_datagram *out);

/* The data socket gives kernel stamps from now on, or none. */
void helio_udp_in_stamp(helio_udp_in *in, bool on);

/* To be called each millisecond or so, when nothing read before waits: the kernel is no longer asked
 * to join datagrams of thin traffic. */
void helio_udp_in_tend(helio_udp_in *in);

/* Counts what the kernel has dropped since the last time. */
void helio_udp_in_count_drops(helio_udp_in *in, helio_udp_source *source);

#endif
