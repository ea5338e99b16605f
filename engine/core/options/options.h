/* Options as people write them ("name=value&name=value", percent-encoded) made into the members of
 * a struct, checked, from the catalogue's table. */
#ifndef HELIO_OPTIONS_OPTIONS_H
#define HELIO_OPTIONS_OPTIONS_H

#include <stddef.h>

#include "generated/options.h"

/* Whose options they are.  All functions here take the owner's struct: helio_instance_options,
 * helio_transmitter_options or helio_receiver_options. */
typedef enum helio_owner {
    HELIO_ON_INSTANCE,
    HELIO_ON_TRANSMITTER,
    HELIO_ON_RECEIVER,
} helio_owner;

/* Options of either end of a stream. */
typedef union helio_end_options {
    helio_stream_options stream;
    helio_transmitter_options transmitter;
    helio_receiver_options receiver;
} helio_end_options;

/* Fills in the defaults; release with helio_options_fini.  Returns 0 or HELIO_ERR_NOMEM. */
int helio_options_init(void *options, helio_owner on);
void helio_options_fini(void *options, helio_owner on);

/* Reads a text, NULL for none, over what is there.  In a text for both ends of a stream, options of
 * the other end are checked and left out.  Returns 0, HELIO_ERR_OPTION (the sentence names the
 * option, its range and the value) or HELIO_ERR_NOMEM. */
int helio_options_read(void *options, helio_owner on, const char *text, bool for_both);

/* Applies the defaults of the option `profile` to options that were not given.  Returns 0 or
 * HELIO_ERR_NOMEM. */
int helio_options_apply_profile(void *options, helio_owner on);

/* Writes all options but texts, as helio_options_read takes them.  Returns what snprintf would. */
size_t helio_options_write(const void *options, helio_owner on, char *text, size_t size);

/* Whether two ends can share a lane: all options but those of one handle have the same values. */
bool helio_options_share(const void *a, const void *b, helio_owner on);

#endif
