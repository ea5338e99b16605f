/* Packets beside data: SPMs, NCFs and POLLs of the source, NAKs and SPMRs of other receivers. */
#ifndef HELIO_RECEIVE_CONTROL_H
#define HELIO_RECEIVE_CONTROL_H

#include "receive/stream.h"

#define HELIO_RX_WINDOW_LIMIT UINT32_C(0x7FFFFFFF) /* packets; no window is as large */

/* Packets of the window that an SPM announces. */
static inline uint32_t helio_rx_spm_window(const helio_pgm_packet *spm) {
    return spm->lead - spm->trail + 1;
}

/* The SPM announces a window. */
bool helio_rx_has_window(const helio_pgm_packet *spm);

/* Where a receiver begins that wants earlier packets: with acknowledgements, the oldest packet that
 * the source waits for. */
uint64_t helio_rx_begins_at(const helio_rx_shared *shared, const helio_pgm_packet *spm);

/* A stream discovered by data begins: where an SPM says, or with that data when none came. */
void helio_rx_begin_with(helio_rx_stream *stream, const helio_pgm_packet *spm, helio_moment moment);

/* The source has given the stream up: the receiver gives up missing packets. */
void helio_rx_reset(helio_rx_stream *stream, helio_moment moment);

void helio_rx_on_control(helio_rx_stream *stream, const helio_pgm_packet *packet,
                         const helio_address *from, helio_moment moment);

#endif
