/* How large a stream's history is: always as large as its options allow, or dynamic.
 *
 * A dynamic history begins with a sixteenth of its limits.  It is in need when repairs are asked
 * for that it no longer has or that are in its oldest quarter, or when its floor (acknowledgements)
 * leaves no room; then its limits double, up to the options' and to what the instance's budget and
 * memory have left.  After a quiet time they halve again, down to where they began, and the memory
 * goes back to the system.  All that happens in `tend`, never while packets are sent.
 *
 * A budget is the sum of the limits (in bytes) of all histories of an instance. */
#ifndef HELIO_SEND_HISTORY_H
#define HELIO_SEND_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/moment.h"
#include "repair/repairer.h"
#include "send/stream.h"
#include "window/txw.h"

typedef struct helio_tx_history {
    helio_txw *txw;
    const helio_repairer *repairer;
    helio_history_budget *budget; /* may be NULL */
    helio_account *account;       /* growing keeps to it; may be NULL */
    bool is_dynamic;
    uint64_t first_packets, first_bytes; /* where a dynamic one begins */
    uint64_t max_packets, max_bytes;
    uint64_t late_seen; /* repairs asked for near the end, seen so far */
    int64_t quiet_since_ns;
} helio_tx_history;

/* Sets the limits to begin with and takes them from the budget.  Returns 0 or HELIO_ERR_OPTION:
 * the budget has less left. */
int helio_tx_history_init(helio_tx_history *history, helio_txw *txw, const helio_repairer *repairer,
                          helio_history_budget *budget, bool is_dynamic, int64_t now_ns);
/* Gives back to the budget. */
void helio_tx_history_fini(helio_tx_history *history);

/* The oldest packet a receiver that comes late should ask for: the oldest there is, but not one
 * that new data is about to push out. */
uint64_t helio_tx_history_offer(const helio_tx_history *history);

/* Grows or shrinks a dynamic history when it is time to.  True when the limits changed.  No driver
 * may keep pointers to packets: after a flush. */
bool helio_tx_history_tend(helio_tx_history *history, int64_t now_ns);

#endif
