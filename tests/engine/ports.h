/* Ports that no other test has: several tests run at once, and their process ids are neighbours.  Each
 * test that asks for ports claims a block of them by holding the one after the last. */
#ifndef HELIO_TEST_PORTS_H
#define HELIO_TEST_PORTS_H

#include <stdint.h>

enum { TEST_PORTS = 127 };

/* n: below TEST_PORTS. */
uint16_t test_port(unsigned n);

#endif
