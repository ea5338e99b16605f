/* Memory that is kept account of, against a limit that all who share the account have together.
 * Any thread may take and give.  What is there already can be charged beyond the limit; nothing
 * else goes beyond it.  Functions accept NULL: no account, no limit. */
#ifndef HELIO_BASE_ACCOUNT_H
#define HELIO_BASE_ACCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct helio_account {
    uint64_t limit_bytes; /* 0: none */
    _Atomic uint64_t used_bytes;
    _Atomic uint64_t refusals;
    _Atomic uint64_t refused_bytes; /* by the last of them */
} helio_account;

static inline uint64_t helio_account_used(const helio_account *account) {
    return account ? atomic_load_explicit(&account->used_bytes, memory_order_relaxed) : 0;
}

/* Bytes that can be taken now. */
static inline uint64_t helio_account_left(const helio_account *account) {
    const uint64_t used = helio_account_used(account);
    return !account || account->limit_bytes == 0 ? UINT64_MAX
           : used < account->limit_bytes         ? account->limit_bytes - used
                                                 : 0;
}

static inline void helio_account_charge(helio_account *account, uint64_t bytes) {
    if (account) {
        atomic_fetch_add_explicit(&account->used_bytes, bytes, memory_order_relaxed);
    }
}

static inline void helio_account_give(helio_account *account, uint64_t bytes) {
    helio_account_charge(account, -bytes);
}

/* False: it would exceed the limit, and nothing is taken. */
static inline bool helio_account_take(helio_account *account, uint64_t bytes) {
    if (!account) {
        return true;
    }
    const uint64_t before =
        atomic_fetch_add_explicit(&account->used_bytes, bytes, memory_order_relaxed);
    if (account->limit_bytes == 0 ||
        (before <= account->limit_bytes && bytes <= account->limit_bytes - before)) {
        return true;
    }
    helio_account_give(account, bytes);
    atomic_store_explicit(&account->refused_bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&account->refusals, 1, memory_order_relaxed);
    return false;
}

#endif
