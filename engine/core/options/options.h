/* Options as people write them ("name=value&name=value", percent-encoded) made into checked values,
 * from the catalogue's table. */
#ifndef HELIO_OPTIONS_OPTIONS_H
#define HELIO_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "generated/options.h"

/* A checked value of each option; `text` is set for strings only.  Choices are the index of the
 * choice. */
typedef struct helio_options {
    struct {
        char *text;
        double number;
        bool given;
    } value[HELIO_OPTIONS_COUNT];
} helio_options;

/* Fills in the defaults; release with helio_options_fini.  Returns 0 or HELIO_ERR_NOMEM. */
int helio_options_init(helio_options *options);
void helio_options_fini(helio_options *options);

/* Reads a text, NULL for none, over what is there.  Options must belong to an object of `on`
 * (HELIO_ON_*); those that belong to `ignored` only are checked and left out.  Returns 0,
 * HELIO_ERR_OPTION (the sentence names the option, its range and the value) or HELIO_ERR_NOMEM. */
int helio_options_read(helio_options *options, const char *text, unsigned on, unsigned ignored);

/* The defaults of the option `profile`, for options of `on` that were not given. */
void helio_options_apply_profile(helio_options *options, unsigned on);
/* Another default than the catalogue's for an option that was not given. */
void helio_options_default(helio_options *options, helio_option_id id, double value);

/* Another number or choice in place of what was read. */
void helio_options_set(helio_options *options, helio_option_id id, double value);

/* The options of `on` that are numbers or choices, as helio_options_read takes them.  Returns what
 * snprintf would. */
size_t helio_options_write(const helio_options *options, unsigned on, char *text, size_t size);

int64_t helio_options_integer(const helio_options *options, helio_option_id id);
double helio_options_float(const helio_options *options, helio_option_id id);
const char *helio_options_string(const helio_options *options, helio_option_id id);
/* An option in seconds as ns. */
int64_t helio_options_ns(const helio_options *options, helio_option_id id);

/* Whether two of `on` can share a lane: all options but those of a queue of their own have the same
 * values. */
bool helio_options_share(const helio_options *a, const helio_options *b, unsigned on);

#endif
