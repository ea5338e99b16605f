/* The sentence behind an error code, per thread (helio_error_text of heliograph.h).  For the slow
 * path only: what happens per packet is a status and a counter, never a text. */
#ifndef HELIO_BASE_ERROR_H
#define HELIO_BASE_ERROR_H

#include <heliograph/errors.h>

/* Notes the sentence for this thread and returns `error`, so that a caller writes `return
 * helio_fail(...)`. */
int helio_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for a sentence that is a literal; costs nothing, for refusals that come by the
 * thousand. */
int helio_fail_plain(int error, const char *sentence);

/* The sentence noted last, "" when there was none. */
const char *helio_error_sentence(void);

#endif
