/* When a receiver tells its source of itself, and what (docs/adr/0012-reports.md).
 *
 * A report rides on every NAK and ACK.  A packet of its own is sent when none of these has carried
 * one for a random time of half an interval to a whole one, the interval being what the source's
 * SPMs ask for; so none is silent for longer, and receivers do not speak all at once.  The first is
 * drawn over the whole interval from the distribution of back-off for a large group (backoff.h): of
 * however many receivers, few speak early, so that the source hears that they are many, and asks for
 * a longer interval, before most of them have spoken.  Who hears of a longer interval before its
 * first report draws again, evenly over the whole of it; when it becomes still longer, what was left to
 * wait becomes longer in the same measure, so that none waits for ever.
 *
 * Reports are never asked for more often than once in a millisecond, whatever an SPM says.
 *
 * While there is nothing new - no packet came or was missed, and the buffers are about as full -
 * HELIO_PGM_REPORT_REST intervals pass between two.  When the buffers become fuller or emptier than
 * half or four fifths, the next report comes sooner, but not sooner than half an interval after
 * the last.
 *
 * A source held back by its receivers' windows hears as soon as they have moved on by so many packets
 * (progress); one that runs PGMCC has one receiver, the acker, report every packet it gets.
 *
 * It knows nothing of packets, sockets, threads or clocks. */
#ifndef HELIO_RECEIVE_REPORTS_H
#define HELIO_RECEIVE_REPORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/random.h"
#include "wire/pgm.h"

enum {
    HELIO_RX_REPORTS_NAMED = 16, /* of so many one says the name, and the first few do */
    HELIO_RX_REPORTS_ACKED = 16, /* packets an acker tells of together at most */
};

typedef struct helio_rx_reports {
    helio_random random;
    bool is_on;          /* the source understands them */
    int64_t interval_ns; /* 0: only with what is sent anyway */
    int64_t due_ns;      /* when to see whether one is to be sent; HELIO_NEVER: none is */
    int64_t told_ns;     /* when the last one was sent; meaningful when `count` > 0 */
    int64_t stamp_ns;    /* when the source's newest stamp came */
    uint32_t stamp;      /* 0: none came */
    uint32_t count;      /* sent */
    bool is_even;        /* the first one was drawn evenly */
    helio_pgm_told told; /* what the last one said */
    uint32_t progress;   /* packets passed on that are worth a report at once; 0: none are */
    bool is_acker;
    bool is_pressing;      /* the next is sent whether or not it says anything new */
    uint32_t newest;       /* packet, as far as it was noted */
    uint32_t newest_acked; /* the same when the last report was sent */
} helio_rx_reports;

void helio_rx_reports_init(helio_rx_reports *reports, uint64_t seed);

/* An SPM came; NULL: it did not ask for reports.  `receiver`: who this is. */
void helio_rx_reports_on_spm(helio_rx_reports *reports, const helio_pgm_reporting *asked,
                             uint64_t receiver, int64_t now_ns);
/* Whether the source wants to hear of each step forward. */
static inline bool helio_rx_reports_follows(const helio_rx_reports *reports) {
    return reports->is_acker || reports->progress > 0;
}
/* Then: packets came up to `newest`, were passed on up to `position`.  True when a report must not
 * wait for more of them. */
bool helio_rx_reports_on_progress(helio_rx_reports *reports, uint32_t newest, uint32_t position,
                                  int64_t now_ns);
/* The buffers are so full (65535ths): the next report is hastened if that is news. */
void helio_rx_reports_on_fill(helio_rx_reports *reports, uint16_t fill, int64_t now_ns);

static inline int64_t helio_rx_reports_next_deadline_ns(const helio_rx_reports *reports) {
    return reports->due_ns;
}
/* At the deadline: whether `now` is worth a packet of its own.  When not, the deadline moves on. */
bool helio_rx_reports_poll(helio_rx_reports *reports, const helio_pgm_told *now, int64_t now_ns);

/* Adds to a report about to be sent what is this machine's: the source's stamp, and the name if it
 * is its turn. */
void helio_rx_reports_fill_in(const helio_rx_reports *reports, const char *name,
                              helio_pgm_told *told, int64_t now_ns);
/* A report that was due may not be sent yet. */
void helio_rx_reports_put_off(helio_rx_reports *reports, int64_t now_ns);
/* A report was sent, alone or not. */
void helio_rx_reports_on_sent(helio_rx_reports *reports, const helio_pgm_told *told,
                              int64_t now_ns);

#endif
