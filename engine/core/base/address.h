/* An IP address and a port, in one size for both families and free of socket headers. */
#ifndef HELIO_BASE_ADDRESS_H
#define HELIO_BASE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    HELIO_ADDRESS_TEXT = 56 /* enough for "[IPv6]:port" and its NUL */
};

typedef struct helio_address {
    uint8_t family; /* 4 or 6; 0: no address */
    uint8_t reserved;
    uint16_t port;  /* host order */
    uint8_t ip[16]; /* network order; IPv4 uses the first 4 and leaves the rest 0 */
} helio_address;

/* Family, IP and port are the same. */
bool helio_address_equal(const helio_address *a, const helio_address *b);
/* Family and IP are the same; ports are not looked at.  Inline and in two parts: every packet's source
 * is compared, and two comparisons of a known size are a few instructions each.  Without the
 * attribute GCC makes it a function, because it has many callers. */
static inline __attribute__((always_inline)) bool helio_address_same_ip(const helio_address *a,
                                                                        const helio_address *b) {
    return a->family == b->family && memcmp(a->ip, b->ip, 4) == 0 &&
           (a->family != 6 || memcmp(a->ip + 4, b->ip + 4, 12) == 0);
}
/* The IP is a multicast group. */
bool helio_address_is_multicast(const helio_address *address);
/* There is no address, or its IP is all zeros. */
bool helio_address_is_unspecified(const helio_address *address);
/* The IP is one by which a host reaches itself. */
bool helio_address_is_loopback(const helio_address *address);
/* Adds an address to a list of `count` without equals; returns the number afterwards, at most
 * `limit`. */
uint32_t helio_address_add(helio_address *all, uint32_t count, uint32_t limit,
                           const helio_address *address);
/* Writes "ip:port" ("[ip]:port" for IPv6) and returns `text`. */
const char *helio_address_format(const helio_address *address, char text[HELIO_ADDRESS_TEXT]);
/* Writes "ip" alone and returns `text`. */
const char *helio_address_format_ip(const helio_address *address, char text[HELIO_ADDRESS_TEXT]);
/* Reads "ip", "ip:port", "[ip6]" or "[ip6]:port"; a port not given is 0.  Returns 0 or
 * HELIO_ERR_ADDRESS. */
int helio_address_parse(const char *text, helio_address *out);

#endif
