/* Which events freeze the flight recording (option flight_freeze), and how often.  An event freezes
 * it again only after HELIO_FLIGHT_QUIET_NS without an event of the same kind.  A trouble that
 * lasts is therefore kept as it began, and does not replace all earlier recordings. */
#ifndef HELIO_FLIGHT_TRIGGER_H
#define HELIO_FLIGHT_TRIGGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/moment.h"
#include "stats/event_limit.h"

#define HELIO_FLIGHT_QUIET_NS (10 * HELIO_SECOND)

typedef struct helio_flight_trigger {
    bool freezes[HELIO_EVENT_IDS_END];
    int64_t last_ns[HELIO_EVENT_IDS_END]; /* monotonic; time of the last event of the kind */
} helio_flight_trigger;

/* Reads names of events and severities (error: all events of that severity), separated by commas;
 * "" and "none": none.  Returns 0 or HELIO_ERR_OPTION. */
int helio_flight_trigger_read(helio_flight_trigger *trigger, const char *text);
/* An event occurred; returns whether it freezes the recording. */
bool helio_flight_trigger_fires(helio_flight_trigger *trigger, uint32_t event, int64_t now_ns);
/* Name of a kind of event. */
const char *helio_flight_trigger_name(uint32_t event);

#endif
