/* What transmit and receive lanes have in common: a channel of the driver, watched for sleep, whose
 * mishaps become statistics and events. */
#ifndef HELIO_RUNTIME_LANE_H
#define HELIO_RUNTIME_LANE_H

#include "base/burst.h"
#include "options/endpoint.h"
#include "runtime/instance.h"

typedef struct helio_lane {
    helio_instance *instance;
    helio_channel *channel;
    bool connected; /* a connection came to stand since this was last looked at */
    helio_endpoint endpoint;
    helio_owner on;
    helio_end_options options;
    bool is_stamped; /* the kernel says when it took each datagram in */
    /* A connection is gone; set by the lane's owner, may be NULL. */
    void (*on_gone)(struct helio_lane *lane, const helio_address *peer);
    helio_channel_counters counted; /* what the statistics have */
    helio_channel_counters told;    /* what events have said */
    helio_burst refused;            /* connections */
    int64_t next_event_ns; /* monotonic; mishaps come in swarms and are told of once a second */
} helio_lane;

/* Opens the channel; takes over `options`, also when it fails.  Release with helio_lane_close. */
int helio_lane_open(helio_lane *lane, helio_instance *instance, helio_owner on,
                    const helio_endpoint *endpoint, helio_end_options *options,
                    helio_moment moment);
void helio_lane_close(helio_lane *lane);

/* Whether it serves the endpoint with these options. */
bool helio_lane_serves(const helio_lane *lane, const helio_endpoint *endpoint,
                       const helio_end_options *options);

/* Lets the channel look after itself and carries its mishaps to the statistics. */
void helio_lane_tend(helio_lane *lane, helio_moment moment);

/* Receiving: starts and stops the kernel's stamps, as the level of detail wants them. */
void helio_lane_follow_level(helio_lane *lane);

/* Before and after a sleep on the channel's sockets; before says false when there is news already.
 */
bool helio_lane_before_sleep(helio_lane *lane);
void helio_lane_after_sleep(helio_lane *lane);

/* Largest PGM packet that fits the option mtu with the headers of its family and encapsulation. */
uint32_t helio_lane_packet_bytes(const helio_lane *lane);

#endif
