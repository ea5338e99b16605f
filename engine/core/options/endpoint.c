#include "options/endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "io/udp_socket.h"

enum { HOST_BYTES_MAX = 255 };

static const char usage[] =
    "endpoints are rmm://GROUP:PORT, rmm+unicast://HOST:PORT[,HOST:PORT...], "
    "rum://HOST:PORT[,HOST:PORT...], shm://NAME or inproc://NAME, with ?option=value&... behind";

static const struct scheme {
    const char *start;
    helio_scheme scheme;
    bool is_named; /* leads to a name, not to addresses */
    const helio_driver *driver;
} schemes[] = {
    {"rmm://", HELIO_SCHEME_RMM, false, &helio_driver_udp},
    {"rmm+unicast://", HELIO_SCHEME_RMM_UNICAST, false, &helio_driver_udp},
    {"rum://", HELIO_SCHEME_RUM, false, &helio_driver_tcp},
    {"shm://", HELIO_SCHEME_SHM, true, &helio_driver_shm},
    {"inproc://", HELIO_SCHEME_INPROC, true, &helio_driver_inproc},
};
enum { SCHEMES = sizeof schemes / sizeof schemes[0] };

static int fail(const char *text, const char *why) {
    return helio_fail(HELIO_ERR_ENDPOINT, "endpoint %.200s: %s", text, why);
}

static bool starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

/* A decimal number from 1 to 65535 that takes the whole text; 0 for anything else. */
static uint16_t read_port(const char *text, size_t length) {
    unsigned long port = 0;
    if (length == 0 || length > 5) {
        return 0;
    }
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return 0;
        }
        port = port * 10 + (unsigned long)(text[i] - '0');
    }
    return port <= UINT16_MAX ? (uint16_t)port : 0;
}

/* A host or group by number, IPv6 in brackets, or a host by name, which is looked up in the family
 * of the hosts before it. */
static int read_host(const char *text, const char *host, helio_endpoint *out, helio_address *to) {
    if (helio_address_parse(host, to) < 0) {
        const uint8_t family = out->addresses_count ? out->addresses[0].family : 0;
        if (out->multicast || host[0] == '[') {
            return fail(text, out->multicast ? "the group is not an IPv4 or [IPv6] address"
                                             : "the address in brackets is not an IPv6 address");
        }
        return helio_udp_resolve(host, family, to);
    }
    return 0;
}

/* Whether the address may be one of the endpoint's. */
static int check_address(const char *text, const helio_address *address,
                         const helio_endpoint *endpoint) {
    if (endpoint->multicast && !helio_address_is_multicast(address)) {
        return fail(text, "rmm:// needs a multicast group (224.0.0.0 to 239.255.255.255, or "
                          "[ff00::] and above); for a host use rmm+unicast://");
    }
    if (!endpoint->multicast && helio_address_is_multicast(address)) {
        return fail(text, "this scheme needs hosts; for a multicast group use rmm://");
    }
    if (endpoint->addresses_count && endpoint->addresses[0].family != address->family) {
        return fail(text, "IPv4 and IPv6 hosts cannot be mixed");
    }
    return 0;
}

/* One HOST:PORT. */
static int read_address(const char *text, const char *part, size_t length, helio_endpoint *out) {
    const char *bracket = part[0] == '[' ? memchr(part, ']', length) : NULL;
    const size_t skipped = bracket ? (size_t)(bracket - part) : 0;
    const char *colon = memchr(part + skipped, ':', length - skipped);
    if (!colon || colon == part || (bracket && colon != bracket + 1) ||
        (part[0] == '[' && !bracket)) {
        return fail(text, usage);
    }
    const size_t host_length = (size_t)(colon - part);
    const uint16_t port = read_port(colon + 1, length - host_length - 1);
    if (!port) {
        return fail(text, "the port is a number from 1 to 65535");
    }
    if (host_length > HOST_BYTES_MAX) {
        return fail(text, "the host is too long");
    }
    if (out->addresses_count == HELIO_CHANNEL_DESTINATIONS_MAX) {
        return fail(text, "there are more than 64 hosts");
    }
    char host[HOST_BYTES_MAX + 1];
    memcpy(host, part, host_length);
    host[host_length] = 0;
    helio_address *address = &out->addresses[out->addresses_count];
    int error = read_host(text, host, out, address);
    if (!error) {
        error = check_address(text, address, out);
    }
    if (error) {
        return error;
    }
    address->port = port;
    out->addresses_count++;
    return 0;
}

/* HOST:PORT, one or more. */
static int read_addresses(const char *text, const char *at, helio_endpoint *out) {
    do {
        const size_t length = strcspn(at, ",?");
        const int error = read_address(text, at, length, out);
        if (error) {
            return error;
        }
        at += length;
    } while (*at++ == ',');
    return out->multicast && out->addresses_count > 1 ? fail(text, "rmm:// takes one group") : 0;
}

static bool is_fit_for_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

/* The name of a ring, which is part of a file's name. */
static int read_name(const char *text, const char *at, size_t length, helio_endpoint *out) {
    bool is_fit = length > 0 && length <= HELIO_CHANNEL_NAME_MAX && at[0] != '.';
    for (size_t i = 0; is_fit && i < length; i++) {
        is_fit = is_fit_for_name(at[i]);
    }
    if (!is_fit) {
        return fail(text, "the name has 1 to 63 letters, digits, '-', '_' and '.', and does not "
                          "begin with '.'");
    }
    memcpy(out->name, at, length);
    out->addresses[0] =
        (helio_address){.family = 4,
                        .port = (uint16_t)(1 + helio_hash_fnv1a(at, length) % UINT16_MAX),
                        .ip = {127, 0, 0, 1}};
    out->addresses_count = 1;
    return 0;
}

int helio_endpoint_parse(const char *text, helio_endpoint *out) {
    memset(out, 0, sizeof *out);
    if (!text) {
        return fail("(none)", usage);
    }
    const struct scheme *scheme = schemes;
    while (scheme < schemes + SCHEMES && !starts_with(text, scheme->start)) {
        scheme++;
    }
    if (scheme == schemes + SCHEMES) {
        return fail(text, usage);
    }
    out->scheme = scheme->scheme;
    out->multicast = scheme->scheme == HELIO_SCHEME_RMM;
    const char *at = text + strlen(scheme->start);
    const char *end = at + strcspn(at, "?");
    out->query = *end ? end + 1 : end;
    snprintf(out->label, sizeof out->label, "%.*s", (int)(end - text), text);
    if (memchr(at, '/', (size_t)(end - at))) {
        return fail(text, usage);
    }
    return scheme->is_named ? read_name(text, at, (size_t)(end - at), out)
                            : read_addresses(text, at, out);
}

const helio_driver *helio_endpoint_driver(const helio_endpoint *endpoint) {
    return schemes[endpoint->scheme].driver;
}

bool helio_endpoint_equal(const helio_endpoint *a, const helio_endpoint *b) {
    if (a->scheme != b->scheme || a->addresses_count != b->addresses_count ||
        strcmp(a->name, b->name) != 0) {
        return false;
    }
    for (size_t i = 0; i < a->addresses_count; i++) {
        if (!helio_address_equal(&a->addresses[i], &b->addresses[i])) {
            return false;
        }
    }
    return true;
}
