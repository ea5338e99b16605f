#include "base/loan.h"

#include <stdlib.h>

#include "base/bits.h"

/* In the line before the memory, which an application never sees. */
typedef struct retired {
    struct retired *next;
} retired;

uint8_t *helio_loan_allocate(size_t bytes) {
    uint8_t *line = aligned_alloc(HELIO_LOAN_LINE,
                                  HELIO_LOAN_LINE + (size_t)helio_round_up(bytes, HELIO_LOAN_LINE));
    return line ? line + HELIO_LOAN_LINE : NULL;
}

void helio_loan_release(helio_loan *loan, uint8_t *memory) {
    if (!memory) {
        return;
    }
    retired *line = (retired *)(memory - HELIO_LOAN_LINE);
    if (loan && loan->is_out) {
        line->next = loan->retired;
        loan->retired = line;
    } else {
        free(line);
    }
}

void helio_loan_free_retired(helio_loan *loan) {
    while (loan->retired) {
        retired *line = loan->retired;
        loan->retired = line->next;
        free(line);
    }
}
