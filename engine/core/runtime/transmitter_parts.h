/* What the files of a transmitter share: transmitter.c (life, sending),
 * transmitter_kept.c (its submit queue), transmitter_wait.c.  Everybody else includes
 * transmitter.h. */
#ifndef HELIO_RUNTIME_TRANSMITTER_PARTS_H
#define HELIO_RUNTIME_TRANSMITTER_PARTS_H

#include "runtime/transmitter.h"

/* ---- transmitter.c ---- */

bool helio_transmitter_is_fit(const helio_transmitter *transmitter, size_t length);
int helio_transmitter_fail_size(const helio_transmitter *transmitter, size_t length);
helio_admission helio_transmitter_refusal(const helio_transmitter *transmitter);
/* A message that is held back by this is refused with an error; no call waits. */
bool helio_transmitter_must_fail(const helio_transmitter *transmitter, helio_admission cause);
/* Mode poll: whether a message may be put into packets now. */
helio_admission helio_transmitter_admit(helio_transmitter *transmitter, size_t length,
                                        helio_moment moment);
/* Mode thread: what a message waits for that found no room in the submit queue. */
helio_admission helio_transmitter_cause(const helio_transmitter *transmitter, size_t length);
/* Notes the sentence for what a message waits for.  Returns `error`, WOULD_BLOCK or TIMEOUT; ACKERS
 * when that is the cause. */
int helio_transmitter_fail(const helio_transmitter *transmitter, int error, helio_admission cause);

/* ---- transmitter_kept.c ---- */

/* The queue its options want, if any.  Errors: OPTION, NOMEM. */
int helio_transmitter_open_queue(helio_transmitter *transmitter,
                                 const helio_transmitter_options *options);
/* It is closed, and what its queue still holds cannot be sent: it is dropped and counted. */
void helio_transmitter_drop_rest(helio_transmitter *transmitter);

#endif
