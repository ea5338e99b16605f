/* Endpoints: where messages go and come from, as one text.
 *
 *   rmm://GROUP:PORT?option=value&...                  UDP multicast
 *   rmm+unicast://HOST:PORT[,HOST:PORT...]?...         UDP unicast
 *   rum://HOST:PORT[,HOST:PORT...]?...                 TCP; the receiver listens, transmitters connect
 *   shm://NAME?...                                     shared memory of one host
 *   inproc://NAME?...                                  memory of one process
 *
 * IPv6 addresses stand in brackets: rmm://[ff15::1]:7500.  All of one endpoint are of one
 * family. */
#ifndef HELIO_OPTIONS_ENDPOINT_H
#define HELIO_OPTIONS_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/address.h"
#include "io/driver.h"

typedef enum helio_scheme {
    HELIO_SCHEME_RMM,
    HELIO_SCHEME_RMM_UNICAST,
    HELIO_SCHEME_RUM,
    HELIO_SCHEME_SHM,
    HELIO_SCHEME_INPROC,
} helio_scheme;

typedef struct helio_endpoint {
    helio_scheme scheme;
    bool multicast;
    /* The group, or the hosts.  shm and inproc: one made up from the name, for labels. */
    helio_address addresses[HELIO_CHANNEL_DESTINATIONS_MAX];
    size_t addresses_count;
    char name[HELIO_CHANNEL_NAME_MAX + 1]; /* shm, inproc */
    char label[256];                       /* without the query; cut when there are many hosts */
    const char *query;                     /* within the text parsed; "" for none */
} helio_endpoint;

/* Reads an endpoint; names of hosts are looked up.  Returns 0, HELIO_ERR_ENDPOINT (the sentence
 * says what is wrong with it) or HELIO_ERR_ADDRESS (a host is not known). */
int helio_endpoint_parse(const char *text, helio_endpoint *out);

const helio_driver *helio_endpoint_driver(const helio_endpoint *endpoint);

/* Whether both name the same destination. */
bool helio_endpoint_equal(const helio_endpoint *a, const helio_endpoint *b);

#endif
