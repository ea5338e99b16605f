/* The log of distinct warnings and errors: one object (scope incident) for each kind that ever
 * happened, with how often, first and last.  A ring of events forgets its oldest, this does not,
 * and it counts those that were held back as well.
 *
 * An event may be told anywhere, within the opening of an object too, so it is only noted there;
 * objects are opened and written by the chores. */
#include <stdlib.h>

#include "stats/segment.h"

void helio_incidents_note(helio_stats *stats, helio_event_id event, int64_t wall_ns) {
    helio_incident *incident = &stats->incidents[event];
    if (incident->count++ == 0) {
        incident->first_ns = wall_ns;
    }
    incident->last_ns = wall_ns;
    incident->has_news = true;
    stats->has_incidents = true;
}

static helio_stats_object *open_object(helio_stats *stats, helio_event_id event, int64_t wall_ns) {
    static const char *const severities[] = {"info", "warning", "error"};
    helio_stats_object *object = calloc(1, sizeof *object);
    char labels[HELIO_STATS_LABELS_BYTES] = "";
    helio_stats_label(labels, sizeof labels, "instance", stats->header->name);
    helio_stats_label(labels, sizeof labels, "event", helio_event_name(event));
    helio_stats_label(labels, sizeof labels, "severity", severities[helio_event_severity(event)]);
    if (object && helio_stats_open_object(stats, HELIO_SCOPE_INCIDENT, labels, wall_ns, object)) {
        free(object);
        object = NULL;
    }
    return object;
}

static void show(helio_stats *stats, helio_event_id event, int64_t wall_ns) {
    helio_incident *incident = &stats->incidents[event];
    if (!incident->object) {
        incident->object = open_object(stats, event, wall_ns);
    }
    if (!incident->object) {
        return; /* without memory; with the next one it is tried again */
    }
    helio_incident_stats *cells = incident->object->record;
    helio_stats_begin(cells);
    helio_set(&cells->occurrences, incident->count);
    helio_set(&cells->first, (uint64_t)incident->first_ns);
    helio_set(&cells->last, (uint64_t)incident->last_ns);
    helio_stats_end(cells);
    incident->has_news = false;
}

void helio_incidents_tend(helio_stats *stats, int64_t wall_ns) {
    if (!stats->has_incidents) {
        return;
    }
    stats->has_incidents = false;
    for (unsigned event = 0; event < HELIO_EVENT_IDS_END; event++) {
        if (stats->incidents[event].has_news) {
            show(stats, (helio_event_id)event, wall_ns);
        }
    }
}

void helio_incidents_end(helio_stats *stats, int64_t wall_ns) {
    helio_incidents_tend(stats, wall_ns);
    for (unsigned event = 0; event < HELIO_EVENT_IDS_END; event++) {
        helio_stats_object *object = stats->incidents[event].object;
        if (object) {
            helio_stats_close_object(stats, object, wall_ns);
            free(object);
        }
    }
}
