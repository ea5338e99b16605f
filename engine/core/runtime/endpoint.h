/* Endpoints: where messages go and come from, as one text.
 *
 *   rmm://GROUP:PORT?option=value&...                  UDP multicast
 *   rmm+unicast://HOST:PORT[,HOST:PORT...]?...         UDP unicast */
#ifndef HELIO_RUNTIME_ENDPOINT_H
#define HELIO_RUNTIME_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/address.h"
#include "io/driver.h"

typedef struct helio_endpoint {
    bool multicast;
    helio_address addresses[HELIO_CHANNEL_DESTINATIONS_MAX]; /* the group, or the hosts */
    size_t addresses_count;
    char label[256];   /* without the query; cut when there are many hosts */
    const char *query; /* within the text parsed; "" for none */
} helio_endpoint;

/* Reads an endpoint; names of hosts are looked up.  Returns 0, HELIO_ERR_ENDPOINT (the sentence
 * says what is wrong with it) or HELIO_ERR_ADDRESS (a host is not known). */
int helio_endpoint_parse(const char *text, helio_endpoint *out);

/* Whether they lead to the same addresses. */
bool helio_endpoint_equal(const helio_endpoint *a, const helio_endpoint *b);

#endif
