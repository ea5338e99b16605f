/* The index of a receiver in the table of its stream's receivers (table.h).  A receiver keeps its
 * index while it is tracked. */
#ifndef HELIO_RECEIVERS_INDEX_H
#define HELIO_RECEIVERS_INDEX_H

#include <stdint.h>

typedef uint32_t helio_receiver_index;
#define HELIO_RECEIVER_NONE UINT32_MAX

#endif
