/* The chain of options of a PGM packet (RFC 3208 section 9): reading it.  Part of pgm.h's
 * decoder. */
#ifndef HELIO_WIRE_PGM_OPTIONS_H
#define HELIO_WIRE_PGM_OPTIONS_H

#include "wire/pgm.h"

/* Reads the chain at *at, which ends before `end`, and moves *at behind it.  The packet's type and
 * sequence are known. */
helio_pgm_refusal helio_pgm_read_options(const uint8_t **at, const uint8_t *end,
                                         helio_pgm_packet *out);

#endif
