/* Data that an application looks into where it lies, in a channel's datagrams or in receive
 * windows, instead of in a copy: from the call that lends it until the next one.
 *
 * Until then a window keeps the blocks of packets it has passed on aside.  Memory of windows that
 * end or grow is kept here, and that of a channel that must be read before. */
#ifndef HELIO_BASE_LOAN_H
#define HELIO_BASE_LOAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct helio_loan {
    bool is_out; /* the application looks into data */
    /* It had no place for all there was: what is next waits in its window for the next call. */
    bool is_short;
    bool is_left;  /* the channel reads into other memory meanwhile */
    void *retired; /* memory to free when the loan is over */
} helio_loan;

enum { HELIO_LOAN_LINE = 64 };

/* Memory of `bytes`, at a cache line; NULL: there is none.  Release it with helio_loan_release. */
uint8_t *helio_loan_allocate(size_t bytes);
/* Frees memory, or keeps it while something of it may be lent.  Either may be NULL. */
void helio_loan_release(helio_loan *loan, uint8_t *memory);
/* Frees what was kept. */
void helio_loan_free_retired(helio_loan *loan);
/* The application is done with what it was lent. */
static inline void helio_loan_end(helio_loan *loan) {
    loan->is_out = loan->is_left = false;
    if (loan->retired) {
        helio_loan_free_retired(loan);
    }
}

#endif
