/* Texts of addresses are read and written here by hand: the system's functions come with socket
 * headers, and those stay in core/io. */
#include "base/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

enum { GROUPS = 8 }; /* of 16 bits in an IPv6 address */

static size_t ip_bytes(const helio_address *address) {
    return address->family == 6 ? 16 : 4;
}

bool helio_address_equal(const helio_address *a, const helio_address *b) {
    return a->port == b->port && helio_address_same_ip(a, b);
}

bool helio_address_is_multicast(const helio_address *address) {
    return address->family == 6 ? address->ip[0] == 0xFF : (address->ip[0] & 0xF0) == 0xE0;
}

bool helio_address_is_loopback(const helio_address *address) {
    static const uint8_t one[16] = {[15] = 1};
    return address->family == 6 ? memcmp(address->ip, one, sizeof one) == 0
                                : address->family == 4 && address->ip[0] == 127;
}

bool helio_address_is_unspecified(const helio_address *address) {
    static const uint8_t zeros[16];
    return address->family == 0 || memcmp(address->ip, zeros, ip_bytes(address)) == 0;
}

uint32_t helio_address_add(helio_address *all, uint32_t count, uint32_t limit,
                           const helio_address *address) {
    for (uint32_t i = 0; i < count; i++) {
        if (helio_address_equal(&all[i], address)) {
            return count;
        }
    }
    if (count < limit) {
        all[count++] = *address;
    }
    return count;
}

static unsigned group_at(const uint8_t *ip, int i) {
    return (unsigned)ip[2 * i] << 8 | ip[2 * i + 1];
}

static void format_ip6(const uint8_t *ip, char *text, size_t size) {
    /* The longest run of at least two zero groups becomes "::" (RFC 5952). */
    int zeros = GROUPS, longest = 1;
    for (int i = 0; i < GROUPS; i++) {
        int run = 0;
        while (i + run < GROUPS && group_at(ip, i + run) == 0) {
            run++;
        }
        if (run > longest) {
            longest = run;
            zeros = i;
        }
    }
    size_t used = 0;
    for (int i = 0; i < GROUPS; i++) {
        if (i == zeros) {
            used += (size_t)snprintf(text + used, size - used, "::");
            i += longest - 1;
        } else {
            const bool first = i == 0 || i == zeros + longest;
            used +=
                (size_t)snprintf(text + used, size - used, first ? "%x" : ":%x", group_at(ip, i));
        }
    }
}

const char *helio_address_format_ip(const helio_address *address, char text[HELIO_ADDRESS_TEXT]) {
    const uint8_t *ip = address->ip;
    if (address->family == 6) {
        format_ip6(ip, text, HELIO_ADDRESS_TEXT);
    } else if (address->family == 4) {
        snprintf(text, HELIO_ADDRESS_TEXT, "%u.%u.%u.%u", ip[0], ip[1], ip[2], ip[3]);
    } else {
        snprintf(text, HELIO_ADDRESS_TEXT, "-");
    }
    return text;
}

const char *helio_address_format(const helio_address *address, char text[HELIO_ADDRESS_TEXT]) {
    char ip[HELIO_ADDRESS_TEXT];
    helio_address_format_ip(address, ip);
    const char *form = address->family == 6 ? "[%.45s]:%u" : "%.45s:%u";
    snprintf(text, HELIO_ADDRESS_TEXT, form, ip, (unsigned)address->port);
    return text;
}

/* Reads a number up to `limit` and moves on; -1: there is none. */
static long parse_number(const char **text, int base, long limit) {
    const char *digits = base == 16 ? "0123456789abcdefABCDEF" : "0123456789";
    const size_t length = strspn(*text, digits);
    if (length == 0 || length > 5) {
        return -1;
    }
    const long value = strtol(*text, NULL, base);
    *text += length;
    return value <= limit ? value : -1;
}

static bool parse_ip4(const char **text, uint8_t *ip) {
    for (int i = 0; i < 4; i++) {
        if (i > 0 && *(*text)++ != '.') {
            return false;
        }
        const long part = parse_number(text, 10, UINT8_MAX);
        if (part < 0) {
            return false;
        }
        ip[i] = (uint8_t)part;
    }
    return true;
}

static bool parse_ip6(const char **text, uint8_t *ip) {
    int count = 0, gap = -1;
    if (strncmp(*text, "::", 2) == 0) {
        *text += 2;
        gap = 0;
    }
    while (**text && **text != ']' && count < GROUPS) {
        const long part = parse_number(text, 16, UINT16_MAX);
        if (part < 0) {
            return false;
        }
        ip[2 * count] = (uint8_t)(part >> 8);
        ip[2 * count + 1] = (uint8_t)part;
        count++;
        if (**text == ':' && (*text)[1] == ':' && gap < 0) {
            *text += 2;
            gap = count;
        } else if (**text == ':' && (*text)[1] != ']') {
            ++*text;
        }
    }
    if (gap < 0) {
        return count == GROUPS;
    }
    if (count == GROUPS) {
        return false;
    }
    const size_t tail = (size_t)(count - gap) * 2;
    memmove(ip + 2 * GROUPS - tail, ip + 2 * gap, tail);
    memset(ip + 2 * gap, 0, (size_t)(GROUPS - count) * 2);
    return true;
}

int helio_address_parse(const char *text, helio_address *out) {
    const bool six = *text == '[';
    helio_address address = {.family = six ? 6 : 4};
    text += six;
    if (!(six ? parse_ip6(&text, address.ip) : parse_ip4(&text, address.ip))) {
        return HELIO_ERR_ADDRESS;
    }
    if (six && *text++ != ']') {
        return HELIO_ERR_ADDRESS;
    }
    if (*text == ':') {
        text++;
        const long port = parse_number(&text, 10, UINT16_MAX);
        if (port < 0) {
            return HELIO_ERR_ADDRESS;
        }
        address.port = (uint16_t)port;
    }
    if (*text != '\0') {
        return HELIO_ERR_ADDRESS;
    }
    *out = address;
    return 0;
}
