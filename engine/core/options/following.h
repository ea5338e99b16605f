/* The options by which a receiver takes messages from stores as well, and those of a store, checked
 * against each other and against those that they contradict. */
#ifndef HELIO_OPTIONS_FOLLOWING_H
#define HELIO_OPTIONS_FOLLOWING_H

#include "options/options.h"

typedef struct helio_following_options {
    bool is_needed; /* else the receiver takes live messages only */
    bool joins;     /* it begins with messages of the stores */
    bool acks;      /* its application acknowledges messages */
    int64_t wait_ns;
    /* Texts of the options. */
    const char *stores, *join_from, *durable;
} helio_following_options;

/* Returns 0 or HELIO_ERR_OPTION. */
int helio_following_read(const helio_receiver_options *options, helio_following_options *out);

#endif
