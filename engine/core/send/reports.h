/* The interval at which a source wants reports (docs/adr/0012-reports.md): that of the option, unless
 * all receivers together would send more than `rate` reports per second.
 *
 * Reports that come alone are charged to a bucket that holds a tenth of a second's worth.  When it
 * is empty the interval grows at once by the factor of the overload, two to eight.  The overload is
 * measured since the bucket was full or the interval changed.  The bucket is then a quarter full,
 * and the interval stays for some round trips.  When less than a quarter of the rate comes while
 * data flows, the interval halves, at most once in two intervals.
 *
 * It knows nothing of packets, sockets, threads or clocks. */
#ifndef HELIO_SEND_REPORTS_H
#define HELIO_SEND_REPORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bucket.h"
#include "base/moment.h"

typedef struct helio_tx_reports {
    /* The option; 0: no reports are wanted. */
    int64_t least_ns;
    /* The interval in force. */
    int64_t interval_ns;
    /* Reports per second. */
    uint32_t rate;
    /* A report is a byte. */
    helio_bucket bucket;
    int64_t round_trip_ns;
    /* The interval does not grow before. */
    int64_t settled_ns;
    /* When the bucket was full last, or the interval changed, and the reports since then. */
    int64_t rush_ns;
    uint64_t rush;
    /* When to check whether the interval can be shorter; HELIO_NEVER: it is the shortest. */
    int64_t look_ns;
    /* Reports since the last check, and between the last two. */
    uint64_t came;
    uint64_t came_before;
    /* Of the stream at the last check. */
    uint64_t lead;
    /* Data was sent between the last two checks. */
    bool has_sent;
} helio_tx_reports;

/* `lead`: of the stream. */
void helio_tx_reports_init(helio_tx_reports *reports, int64_t least_ns, uint32_t rate,
                           uint64_t lead, int64_t now_ns);
/* A report came alone; `round_trip_ns`: of its receiver, 0: not known.  True when receivers must be
 * notified of a longer interval at once. */
bool helio_tx_reports_on_report(helio_tx_reports *reports, int64_t round_trip_ns, int64_t now_ns);
/* At look_ns: shortens the interval if few reports came.  `lead`: of the stream. */
void helio_tx_reports_poll(helio_tx_reports *reports, uint64_t lead, int64_t now_ns);

/* An address silent for this long no longer binds its receiver.  It is longer than the interval of
 * receivers without news. */
int64_t helio_tx_reports_silence_ns(const helio_tx_reports *reports);

#endif
