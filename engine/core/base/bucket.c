#include "base/bucket.h"

#include "base/moment.h"

#define NANOS INT64_C(1000000000)
/* So much debt is forgiven: one charge is never that large, and sums must not overflow. */
#define DEBT_MAX (INT64_MAX / 4)

static void fill(helio_bucket *bucket, int64_t now_ns) {
    const int64_t elapsed_ns = now_ns - bucket->filled_ns;
    if (elapsed_ns <= 0) {
        return;
    }
    const int64_t wanted = bucket->depth_nanos - bucket->credit_nanos;
    /* credit grows by rate * elapsed: in ns and 10^-9 bytes the factors are the same */
    if ((uint64_t)elapsed_ns > (uint64_t)wanted / bucket->rate) {
        bucket->credit_nanos = bucket->depth_nanos;
    } else {
        bucket->credit_nanos += (int64_t)bucket->rate * elapsed_ns;
    }
    bucket->filled_ns = now_ns;
}

void helio_bucket_init(helio_bucket *bucket, uint64_t rate, uint64_t depth, int64_t now_ns) {
    *bucket = (helio_bucket){
        .rate = rate,
        .depth_nanos = (int64_t)depth * NANOS,
        .credit_nanos = (int64_t)depth * NANOS,
        .filled_ns = now_ns,
    };
}

void helio_bucket_set_rate(helio_bucket *bucket, uint64_t rate, uint64_t depth, int64_t now_ns) {
    if (bucket->rate) {
        fill(bucket, now_ns);
    } else {
        bucket->credit_nanos = 0;
    }
    if (now_ns > bucket->filled_ns) {
        bucket->filled_ns = now_ns;
    }
    bucket->rate = rate;
    bucket->depth_nanos = (int64_t)depth * NANOS;
    if (bucket->credit_nanos > bucket->depth_nanos) {
        bucket->credit_nanos = bucket->depth_nanos;
    }
}

uint64_t helio_bucket_credit(helio_bucket *bucket, int64_t now_ns) {
    if (!bucket->rate) {
        return UINT64_MAX;
    }
    fill(bucket, now_ns);
    return bucket->credit_nanos < 0 ? 0 : (uint64_t)(bucket->credit_nanos / NANOS) + 1;
}

bool helio_bucket_has(helio_bucket *bucket, int64_t bytes, int64_t now_ns) {
    if (!bucket->rate) {
        return true;
    }
    fill(bucket, now_ns);
    return bucket->credit_nanos >= bytes * NANOS;
}

void helio_bucket_charge(helio_bucket *bucket, uint64_t bytes) {
    if (!bucket->rate) {
        return;
    }
    bucket->credit_nanos -= (int64_t)bytes * NANOS;
    if (bucket->credit_nanos < -DEBT_MAX) {
        bucket->credit_nanos = -DEBT_MAX;
    }
}

int64_t helio_bucket_ready_ns(const helio_bucket *bucket) {
    if (!bucket->rate || bucket->credit_nanos >= 0) {
        return 0;
    }
    const int64_t rate = (int64_t)bucket->rate;
    return bucket->filled_ns + (-bucket->credit_nanos + rate - 1) / rate;
}
