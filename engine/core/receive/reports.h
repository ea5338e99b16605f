/* When a receiver reports to its source, and what (docs/adr/0012-reports.md).
 *
 * A report rides on every NAK and ACK.  A packet of its own is sent when none of these has carried
 * one for a random time of half an interval to a whole one.  The source's SPMs set the interval.
 * So no receiver is silent for longer, and receivers do not speak all at once.  The first report is
 * drawn over the whole interval from the distribution of back-off for a large group (backoff.h): of
 * any number of receivers, few speak early, so the source learns the number of receivers, and asks
 * for a longer interval, before most of them have spoken.  A receiver that gets a longer interval
 * before its first report draws again, evenly over the whole of it.  When the interval grows
 * further, the remaining wait grows in proportion, so that none waits for ever.
 *
 * The shortest interval is one millisecond, whatever an SPM says.
 *
 * While there is nothing new (no packet came or was missed, and the buffers are about as full),
 * HELIO_PGM_REPORT_REST intervals pass between two reports.  When the buffers cross half or four
 * fifths, the next report comes sooner, but not sooner than half an interval after the last.
 *
 * A source that is limited by its receivers' windows gets a report as soon as they have moved by a
 * given number of packets (progress).  A source that runs PGMCC has one receiver, the acker, report
 * every packet it gets.
 *
 * It knows nothing of packets, sockets, threads or clocks. */
#ifndef HELIO_RECEIVE_REPORTS_H
#define HELIO_RECEIVE_REPORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/moment.h"
#include "base/random.h"
#include "wire/pgm.h"

enum {
    HELIO_RX_REPORTS_NAMED = 16, /* one report in 16 carries the name, and the first few do */
    HELIO_RX_REPORTS_ACKED = 16, /* most packets that an acker reports together */
};

typedef struct helio_rx_reports {
    helio_random random;
    bool is_on;                     /* the source understands them */
    int64_t interval_ns;            /* 0: only with what is sent anyway */
    int64_t due_ns;                 /* when to decide whether to send one; HELIO_NEVER: never */
    int64_t told_ns;                /* when the last one was sent; valid when `count` > 0 */
    int64_t stamp_ns;               /* when the source's newest stamp came */
    uint32_t stamp;                 /* 0: none came */
    uint32_t count;                 /* sent */
    bool is_even;                   /* the first one was drawn evenly */
    helio_pgm_receiver_report told; /* what the last one said */
    uint32_t progress;              /* packets passed on that cause a report at once; 0: off */
    bool is_acker;
    bool is_pressing;      /* the next is sent even if it says nothing new */
    uint32_t newest;       /* newest packet noted */
    uint32_t newest_acked; /* the same when the last report was sent */
} helio_rx_reports;

void helio_rx_reports_init(helio_rx_reports *reports, uint64_t seed);

/* An SPM came; `asked` NULL: it asks for no reports.  `receiver`: the id of this receiver. */
void helio_rx_reports_on_spm(helio_rx_reports *reports, const helio_pgm_reporting *asked,
                             uint64_t receiver, int64_t now_ns);
/* Whether the source wants a report of each step forward. */
static inline bool helio_rx_reports_follows(const helio_rx_reports *reports) {
    return reports->is_acker || reports->progress > 0;
}
/* Then: packets came up to `newest` and were passed on up to `position`.  True when a report must
 * be sent now. */
bool helio_rx_reports_on_progress(helio_rx_reports *reports, uint32_t newest, uint32_t position,
                                  int64_t now_ns);
/* The fill of the buffers, in 65535ths: the next report comes sooner if it crossed a threshold. */
void helio_rx_reports_on_fill(helio_rx_reports *reports, uint16_t fill, int64_t now_ns);

static inline int64_t helio_rx_reports_next_deadline_ns(const helio_rx_reports *reports) {
    return reports->due_ns;
}
/* At the deadline: whether `now` is worth a packet of its own.  When not, the deadline moves on. */
bool helio_rx_reports_poll(helio_rx_reports *reports, const helio_pgm_receiver_report *now,
                           int64_t now_ns);

/* Completes a report before it is sent: the source's stamp, and the name when it is due. */
void helio_rx_reports_fill_in(const helio_rx_reports *reports, const char *name,
                              helio_pgm_receiver_report *told, int64_t now_ns);
/* A report that was due may not be sent yet. */
void helio_rx_reports_put_off(helio_rx_reports *reports, int64_t now_ns);
/* A report was sent, alone or not. */
void helio_rx_reports_on_sent(helio_rx_reports *reports, const helio_pgm_receiver_report *told,
                              int64_t now_ns);

#endif
