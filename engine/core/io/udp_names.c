/* Names people write become addresses: hosts and network interfaces. */
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "io/udp_socket.h"

int helio_udp_resolve(const char *host, uint8_t family, helio_address *out) {
    const struct addrinfo hints = {.ai_family = family == 4   ? AF_INET
                                                : family == 6 ? AF_INET6
                                                              : AF_UNSPEC,
                                   .ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    const int error = getaddrinfo(host, NULL, &hints, &found);
    if (error) {
        return helio_fail(HELIO_ERR_ADDRESS, "host %s is not known%s: %s", host,
                          family == 4   ? " by an IPv4 address"
                          : family == 6 ? " by an IPv6 address"
                                        : "",
                          gai_strerror(error));
    }
    const struct addrinfo *chosen = found;
    for (const struct addrinfo *a = found; a; a = a->ai_next) {
        if (a->ai_family == AF_INET) {
            chosen = a;
            break;
        }
    }
    helio_udp_name name = {.v6 = {0}};
    memcpy(&name, chosen->ai_addr,
           chosen->ai_addrlen < sizeof name ? chosen->ai_addrlen : sizeof name);
    *out = helio_udp_address(&name);
    out->port = 0;
    freeaddrinfo(found);
    return 0;
}

/* ---- interfaces ---- */

/* Reads an address with or without the brackets of IPv6. */
static bool read_address(const char *text, helio_address *out) {
    char bracketed[HELIO_ADDRESS_TEXT];
    if (strchr(text, ':') && text[0] != '[') {
        snprintf(bracketed, sizeof bracketed, "[%.50s]", text);
        text = bracketed;
    }
    return helio_address_parse(text, out) == 0 && out->port == 0;
}

static bool is_link_local(const helio_address *address) {
    return address->family == 6 && address->ip[0] == 0xFE && (address->ip[1] & 0xC0) == 0x80;
}

/* Finds the interface that has `address`, or, when that is NULL, the best address of the interface
 * `name`: one that is known beyond its link, where there is one. */
static bool search(const helio_address *address, const char *name, uint8_t family,
                   helio_address *out, uint32_t *index) {
    struct ifaddrs *all = NULL;
    bool found = false;
    if (getifaddrs(&all) < 0) {
        return false;
    }
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        const int system_family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
        if (system_family != (family == 6 ? AF_INET6 : AF_INET)) {
            continue;
        }
        helio_udp_name at = {.v6 = {0}};
        memcpy(&at, i->ifa_addr, family == 6 ? sizeof at.v6 : sizeof at.v4);
        helio_address candidate = helio_udp_address(&at);
        candidate.port = 0;
        const bool fits =
            address ? helio_address_same_ip(&candidate, address) : strcmp(i->ifa_name, name) == 0;
        if (fits && (!found || (is_link_local(out) && !is_link_local(&candidate)))) {
            found = true;
            *out = candidate;
            *index = if_nametoindex(i->ifa_name);
        }
    }
    freeifaddrs(all);
    return found;
}

int helio_udp_find_interface(const char *text, uint8_t family, helio_address *out,
                             uint32_t *index) {
    helio_address address;
    *out = (helio_address){.family = family};
    *index = 0;
    if (!text[0]) {
        return 0;
    }
    if (!read_address(text, &address)) {
        if (!if_nametoindex(text)) {
            return helio_fail(HELIO_ERR_OPTION,
                              "option interface is the address or the name of a network interface "
                              "of this machine, not \"%.64s\"",
                              text);
        }
        return search(NULL, text, family, out, index)
                   ? 0
                   : helio_fail(HELIO_ERR_ADDRESS, "interface=%.64s has no IPv%u address", text,
                                family);
    }
    if (address.family != family) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option interface is an IPv%u address and the endpoint's is an IPv%u one",
                          address.family, family);
    }
    if (!helio_address_is_unspecified(&address) && !search(&address, NULL, family, out, index)) {
        return helio_fail(HELIO_ERR_ADDRESS, "interface=%.64s is not an address of this machine",
                          text);
    }
    return 0;
}
