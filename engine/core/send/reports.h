/* How often a source asks its receivers to report (docs/adr/0012-reports.md): as often as the
 * option says, unless they are so many that all together would send more reports than `rate` per
 * second.
 *
 * Reports that come alone are charged to a bucket of a tenth of a second's worth.  When it is empty
 * the interval asked for becomes longer, at once, by as many times as too many came since it was
 * full or the interval changed, two to eight, and the bucket a quarter full, for a measure of what
 * that does; some round trips pass before it is looked at again.  When less than a quarter of the
 * rate comes, while data flows, the interval halves, at most once in two intervals.  In between
 * nothing changes.
 *
 * It knows nothing of packets, sockets, threads or clocks. */
#ifndef HELIO_SEND_REPORTS_H
#define HELIO_SEND_REPORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bucket.h"
#include "base/moment.h"

typedef struct helio_tx_reports {
    int64_t least_ns;    /* the option; 0: no reports are asked for */
    int64_t interval_ns; /* asked for now */
    uint32_t rate;       /* reports per second */
    helio_bucket bucket; /* a report is a byte */
    int64_t round_trip_ns;
    int64_t settled_ns; /* no longer interval before */
    int64_t rush_ns;    /* the bucket was full last, or the interval changed */
    uint64_t rush;      /* reports since then */
    int64_t look_ns;    /* when to see whether it can be shorter; HELIO_NEVER: it is shortest */
    uint64_t came;      /* since the last look */
    uint64_t came_before;
    uint64_t lead; /* of the stream at the last look */
    bool has_sent; /* data, between the last two looks */
} helio_tx_reports;

/* `lead`: of the stream. */
void helio_tx_reports_init(helio_tx_reports *reports, int64_t least_ns, uint32_t rate,
                           uint64_t lead, int64_t now_ns);
/* A report came alone; `round_trip_ns`: of its receiver, 0: not known.  True when receivers are to
 * hear of a longer interval at once. */
bool helio_tx_reports_on_report(helio_tx_reports *reports, int64_t round_trip_ns, int64_t now_ns);
/* At look_ns: whether fewer came than may.  `lead`: of the stream. */
void helio_tx_reports_poll(helio_tx_reports *reports, uint64_t lead, int64_t now_ns);

/* An address that was silent for this long no longer speaks for its receiver: more than those take
 * that have nothing new to say. */
int64_t helio_tx_reports_silence_ns(const helio_tx_reports *reports);

#endif
