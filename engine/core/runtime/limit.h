/* The memory limit of an instance: from options it makes an account that all holders of memory
 * share, and reports marks crossed and refusals. */
#ifndef HELIO_RUNTIME_LIMIT_H
#define HELIO_RUNTIME_LIMIT_H

#include "base/account.h"
#include "base/mark.h"
#include "base/moment.h"

typedef struct helio_instance helio_instance;

typedef struct helio_limit {
    helio_account account;
    helio_mark mark; /* bytes */
    uint64_t refusals_counted, refusals_told;
    int64_t told_ns; /* wall clock */
} helio_limit;

/* Reads the options.  Returns 0 or HELIO_ERR_OPTION: the low mark is above the high one. */
int helio_limit_init(helio_instance *instance);
/* An allocation of `bytes` for `what` failed.  The sentence names the limit's numbers, if there is a
 * limit.  Returns HELIO_ERR_NOMEM. */
int helio_limit_fail(const helio_instance *instance, const char *what, uint64_t bytes);
/* Engine: takes memory for something being opened.  Returns 0 or fails as above. */
int helio_limit_take(helio_instance *instance, const char *what, uint64_t bytes);
void helio_limit_give(helio_instance *instance, uint64_t bytes);
/* Engine, now and then: sets the gauges, reports marks crossed and refusals. */
void helio_limit_tend(helio_instance *instance, helio_moment moment);

#endif
