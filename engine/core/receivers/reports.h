/* What a receiver's report changes in what is known of it. */
#ifndef HELIO_RECEIVERS_REPORTS_H
#define HELIO_RECEIVERS_REPORTS_H

#include "receivers/table.h"

/* Whether a receiver of which that is known may say so. */
helio_report_result helio_receivers_check_report(const helio_receiver_view *view,
                                                 const helio_pgm_receiver_report *told,
                                                 const helio_report_context *context);
/* Takes in a report of the receiver the view is of, checked against what it said before and what
 * the stream has sent; nothing changes unless it is TAKEN. */
helio_report_result helio_receivers_take_report(helio_receiver_entry *entry,
                                                helio_receiver_view *view,
                                                const helio_pgm_receiver_report *told,
                                                const helio_report_context *context);
/* Writes what it told into the statistics. */
void helio_receivers_show_report(helio_receiver_entry *entry, const helio_receiver_view *view,
                                 const helio_report_context *context, helio_moment moment);

#endif
