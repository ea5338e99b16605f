/* Reports of receivers: validation, and the update of entry and view. */
#ifndef HELIO_RECEIVERS_REPORTS_H
#define HELIO_RECEIVERS_REPORTS_H

#include "receivers/table.h"

/* Whether a receiver with this view may send this report. */
helio_report_result helio_receivers_check_report(const helio_receiver_view *view,
                                                 const helio_pgm_receiver_report *told,
                                                 const helio_report_context *context);
/* Processes a report of the receiver with this view.  It is checked against earlier reports and
 * against the packets sent.  Nothing changes unless it is TAKEN. */
helio_report_result helio_receivers_take_report(helio_receiver_entry *entry,
                                                helio_receiver_view *view,
                                                const helio_pgm_receiver_report *told,
                                                const helio_report_context *context);
/* Writes the reported numbers into the statistics. */
void helio_receivers_show_report(helio_receiver_entry *entry, const helio_receiver_view *view,
                                 const helio_report_context *context, helio_moment moment);

#endif
