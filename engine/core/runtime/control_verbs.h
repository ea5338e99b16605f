/* Carries out commands (control_text.h) on the engine's thread. */
#ifndef HELIO_RUNTIME_CONTROL_VERBS_H
#define HELIO_RUNTIME_CONTROL_VERBS_H

#include "options/control_text.h"
#include "runtime/instance.h"

enum { HELIO_CONTROL_SENTENCE_BYTES = 512 };

/* Carries out a command and describes the result in `done`.  Returns 0, OPTION (for example no
 * receiver matches, or more than one) or STATE, and sets the error text. */
int helio_control_do(helio_instance *instance, const helio_control_request *request,
                     helio_moment moment, char done[HELIO_CONTROL_SENTENCE_BYTES]);

#endif
