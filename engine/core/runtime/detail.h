/* The level of detail as operators set it: with `heliograph ctl level` or with
 * helio_instance_set_level (stats/levels.h has the rules). */
#ifndef HELIO_RUNTIME_DETAIL_H
#define HELIO_RUNTIME_DETAIL_H

#include "options/control_text.h"
#include "runtime/instance.h"

/* Carries out the verb `level`, on the engine's thread, and writes what was done.  Returns 0, or
 * OPTION or STATE and notes the sentence. */
int helio_detail_do(helio_instance *instance, const helio_control_request *request,
                    helio_moment moment, char *done, size_t done_bytes);

#endif
