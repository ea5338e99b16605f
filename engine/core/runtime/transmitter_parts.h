/* What the files of a transmitter share: transmitter.c (life, the usual ways to send),
 * transmitter_kept.c (sending through a kept queue), transmitter_wait.c.  Everybody else includes
 * transmitter.h. */
#ifndef HELIO_RUNTIME_TRANSMITTER_PARTS_H
#define HELIO_RUNTIME_TRANSMITTER_PARTS_H

#include "runtime/transmitter.h"

/* ---- transmitter.c ---- */

bool helio_transmitter_is_fit(const helio_transmitter *transmitter, size_t length);
int helio_transmitter_fail_size(const helio_transmitter *transmitter, size_t length);
bool helio_transmitter_is_refusing(const helio_transmitter *transmitter);
int helio_transmitter_fail_ackers(void);
/* Mode poll: what was put into packets goes on its way. */
void helio_transmitter_finish(helio_transmitter *transmitter, bool is_new, helio_clock clock);

/* ---- transmitter_kept.c ---- */

/* The queue its options want, if any.  Errors: OPTION, NOMEM. */
int helio_transmitter_open_queue(helio_transmitter *transmitter,
                                 const helio_transmitter_options *options);
/* Between lock and unlock of the queue: whether the calling thread may push now. */
bool helio_transmitter_may_push(helio_transmitter *transmitter);
/* As helio_transmitter_send_many. */
int helio_transmitter_push_kept(helio_transmitter *transmitter, const helio_buffer *messages,
                                size_t count, int64_t intended_ns, size_t *accepted);
int helio_transmitter_append_kept(helio_transmitter *transmitter, const helio_buffer *messages,
                                  size_t count, int64_t intended_ns, size_t *accepted);
/* It is closed, and what its queue still holds cannot be sent: it is dropped and counted. */
void helio_transmitter_drop_rest(helio_transmitter *transmitter);

#endif
