/* The sending half of a UDP channel: packets are queued and leave with as few system calls as can
 * be.
 *
 * With generic segmentation offload (GSO) a run of packets for one destination, equally long but
 * for a shorter last, is one message to the kernel, which makes datagrams of it again as late as it
 * can.  Where the kernel or the network card refuses, the same packets leave one by one and the
 * offload stays off; that is told, once.
 *
 * Sending never loses silently: a full socket buffer is waited for, a few milliseconds at most; a
 * packet the kernel refuses for good is counted and left out, and the ones behind it go on.  The
 * protocol treats it as lost in the network, so it can still be repaired. */
#ifndef HELIO_IO_UDP_OUT_H
#define HELIO_IO_UDP_OUT_H

#include <sys/uio.h>

#include "io/udp_socket.h"

enum { HELIO_UDP_CONTROL_OUT = CMSG_SPACE(sizeof(uint32_t)) };

typedef union helio_udp_control_out {
    struct cmsghdr header;
    uint8_t bytes[HELIO_UDP_CONTROL_OUT];
} helio_udp_control_out;

typedef struct helio_udp_out {
    const helio_channel_config *config;
    helio_channel_counters *counters;
    int fd;
    int connected; /* a socket for what goes to the only destination; -1: there is none */
    bool has_gso;
    size_t destinations_count;
    helio_udp_name destinations[HELIO_CHANNEL_DESTINATIONS_MAX];

    /* Packets [0, queued) wait; those that are not stable are copied to their place in `copies`. */
    size_t queued;
    bool is_for_all[HELIO_CHANNEL_BATCH]; /* else for `to` */
    helio_udp_name to[HELIO_CHANNEL_BATCH];
    struct iovec parts[HELIO_CHANNEL_BATCH];
    uint8_t *copies;

    struct mmsghdr messages[HELIO_CHANNEL_BATCH]; /* what a flush makes of them */
    helio_udp_control_out control[HELIO_CHANNEL_BATCH];
} helio_udp_out;

/* `out` is all zeros but for config, counters, fd and connected, which must outlive it.  0 or
 * NOMEM; release with helio_udp_out_fini. */
int helio_udp_out_init(helio_udp_out *out);
void helio_udp_out_fini(helio_udp_out *out);

/* As send and flush of the driver. */
int helio_udp_out_send(helio_udp_out *out, const helio_address *to, const void *packet,
                       size_t length, bool stable);
void helio_udp_out_flush(helio_udp_out *out);
/* As send_now of the driver. */
int helio_udp_out_send_now(helio_udp_out *out, const void *packet, size_t length);

#endif
