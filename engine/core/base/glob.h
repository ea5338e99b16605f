/* Shell patterns as people write them for topics: `*` stands for any characters, `?` for one, all
 * else for itself.  The time is at most the product of the lengths, whatever the pattern. */
#ifndef HELIO_BASE_GLOB_H
#define HELIO_BASE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

static inline bool helio_glob_matches(const char *pattern, const char *text) {
    const char *star = NULL,
               *retry = NULL; /* behind the last star; what it has not swallowed yet */
    while (*text) {
        if (*pattern == '*') {
            star = ++pattern;
            retry = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == 0;
}

#endif
