/* The cost of decisions, measured. */
#ifndef HELIO_BINDING_LAB_COST_H
#define HELIO_BINDING_LAB_COST_H

#include <stddef.h>
#include <stdint.h>

typedef struct lab_cost_row {
    const char *what; /* a rate policy, or what else decides */
    double ns;        /* per receiver and control interval, on average */
} lab_cost_row;

/* Returns how many rows, at most `most`; 0: no memory. */
size_t lab_cost(uint32_t receivers, int intervals, lab_cost_row *rows, size_t most);

#endif
