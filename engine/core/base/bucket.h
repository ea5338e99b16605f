/* A token bucket: how much may leave now under a rate in bytes per second, with bursts up to a
 * depth.
 *
 * Credit grows with time up to the depth.  What leaves is charged, also when it takes the credit
 * below zero (debt): something may leave while the credit is not negative, so in any span t at most
 * depth + rate * t bytes leave and the one packet that began it (RFC 3208, 5.1.2).
 *
 * A change of rate changes how fast credit grows from then on and nothing else: debt stays.  It
 * knows no clock; callers pass monotonic times that do not go back. */
#ifndef HELIO_BASE_BUCKET_H
#define HELIO_BASE_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

typedef struct helio_bucket {
    uint64_t rate;        /* bytes per second; 0: no limit */
    int64_t depth_nanos;  /* most credit, in 10^-9 bytes */
    int64_t credit_nanos; /* 10^-9 bytes; below 0: debt */
    int64_t filled_ns;    /* until when credit has grown */
} helio_bucket;

/* Full; `depth` in bytes, at most 2^32. */
void helio_bucket_init(helio_bucket *bucket, uint64_t rate, uint64_t depth, int64_t now_ns);
/* Debt without a limit is cancelled: the first rate after none begins with a credit of 0. */
void helio_bucket_set_rate(helio_bucket *bucket, uint64_t rate, uint64_t depth, int64_t now_ns);

/* Bytes that may leave now; 0: none (something may leave with a credit of 0 or more, so at least 1
 * then).  UINT64_MAX without a limit. */
uint64_t helio_bucket_credit(helio_bucket *bucket, int64_t now_ns);
/* Whether the credit is at least `bytes`, which may be negative: a debt. */
bool helio_bucket_has(helio_bucket *bucket, int64_t bytes, int64_t now_ns);
/* So many bytes left, at most 2^32. */
void helio_bucket_charge(helio_bucket *bucket, uint64_t bytes);
/* When something may leave: 0 when it may now, as of the last look or charge. */
int64_t helio_bucket_ready_ns(const helio_bucket *bucket);

#endif
