/* The source's actions on receivers (receivers/action.h).  They are carried out here, reported to
 * people by events and to receivers by notices, and ended when their time is over.
 *
 * A receiver without reports is known by its address alone and gets no notice. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <heliograph/errors.h>

#include "base/math.h"
#include "send/parts.h"

#define TIME_MAX_NS (HELIO_PGM_NOTICE_TIME_MAX * HELIO_MILLISECOND)

enum { WHO_TEXT = 128, FOR_TEXT = 48 };

static const char *const DONE[] = {
    [HELIO_ACTION_NOTIFY] = "is warned",
    [HELIO_ACTION_SHED] = "is repaired less",
    [HELIO_ACTION_SUSPEND_NAKS] = "is not repaired",
    [HELIO_ACTION_SUSPEND] = "is suspended",
    [HELIO_ACTION_RESUME] = "is resumed",
    [HELIO_ACTION_EXPEL] = "is expelled",
    [HELIO_ACTION_READMIT] = "is readmitted",
    [HELIO_ACTION_CUT_OFF] = "are not repaired",
};

/* ---- identity ---- */

/* A receiver, for events and notices. */
typedef struct identity {
    const helio_address *address;
    uint64_t receiver;
    uint64_t incarnation;
    const char *name;
    /* It reports, so it reads notices. */
    bool takes_notices;
} identity;

static identity identify(helio_tx_stream *stream, helio_receiver_index index) {
    const helio_receiver_entry *entry = &stream->repairer.receivers.entries[index];
    const helio_receiver_view *view = &stream->repairer.receivers.views[index];
    return (identity){
        .address = &entry->address,
        .receiver = view->receiver,
        .incarnation = view->incarnation,
        .name = entry->name,
        .takes_notices = view->flags & HELIO_VIEW_REPORTS,
    };
}

static helio_allowance *allowance_of(helio_tx_stream *stream, helio_receiver_index index) {
    return helio_receivers_allowance(&stream->repairer.receivers, index);
}

helio_receiver_index helio_tx_stream_find(const helio_tx_stream *stream, uint64_t receiver) {
    return helio_receivers_find(&stream->repairer.receivers, receiver);
}

/* ---- events ---- */

static const char *for_how_long(int64_t until_ns, int64_t now_ns, char *text) {
    if (until_ns == 0) {
        text[0] = '\0';
    } else if (until_ns == HELIO_NEVER) {
        snprintf(text, FOR_TEXT, " until it is undone");
    } else {
        snprintf(text, FOR_TEXT, " for %g s", (double)(until_ns - now_ns) / 1e9);
    }
    return text;
}

static uint64_t left_ms(int64_t until_ns, int64_t now_ns) {
    return until_ns == 0 || until_ns == HELIO_NEVER
               ? 0
               : (uint64_t)(until_ns - now_ns) / HELIO_MILLISECOND;
}

static void report_event(helio_tx_stream *stream, const identity *who,
                         const helio_tx_notice *notice, bool by_hand, helio_moment moment) {
    char whom[WHO_TEXT] = "all receivers", address[HELIO_ADDRESS_TEXT], time[FOR_TEXT];
    if (who) {
        snprintf(whom, sizeof whom, "receiver %s%s%s", who->name, who->name[0] ? " at " : "",
                 helio_address_format(who->address, address));
    }
    helio_stats_event(stream->stats, moment.wall_ns, HELIO_EVENT_RECEIVER_ACTION,
                      stream->object.slot,
                      (const uint64_t[4]){notice->action, who ? who->receiver : 0,
                                          left_ms(notice->until_ns, moment.now_ns), by_hand},
                      "%s: %s %s%s%s: %s", stream->endpoint, whom, DONE[notice->action],
                      for_how_long(notice->until_ns, moment.now_ns, time),
                      by_hand ? " by hand" : "", notice->text);
}

/* ---- carrying it out ---- */

/* Whether `action` is possible while `now` is in force. */
static bool fits(helio_action action, helio_action now) {
    switch (action) {
    case HELIO_ACTION_NOTIFY:
    case HELIO_ACTION_EXPEL:
        return true;
    case HELIO_ACTION_SHED:
    case HELIO_ACTION_SUSPEND_NAKS:
    case HELIO_ACTION_SUSPEND:
        return now != HELIO_ACTION_EXPEL;
    case HELIO_ACTION_RESUME:
        return now != HELIO_ACTION_NONE && now != HELIO_ACTION_EXPEL;
    case HELIO_ACTION_READMIT:
        return now == HELIO_ACTION_EXPEL;
    default:
        return false;
    }
}

static uint32_t flags_of(helio_action action) {
    return action == HELIO_ACTION_EXPEL         ? HELIO_VIEW_EXPELLED
           : helio_action_stops_repairs(action) ? HELIO_VIEW_SUSPENDED
                                                : 0;
}

/* `action` (NONE or one that lasts) is in force at the receiver from now on. */
static void set_action(helio_tx_stream *stream, helio_receiver_index index, helio_action action,
                       int64_t until_ns, helio_moment moment) {
    helio_receivers *receivers = &stream->repairer.receivers;
    helio_allowances *allowances = &receivers->allowances;
    helio_allowance_set(allowances, allowance_of(stream, index), action, until_ns, moment.now_ns);
    helio_receiver_view *view = &receivers->views[index];
    view->flags &= ~(uint32_t)(HELIO_VIEW_SUSPENDED | HELIO_VIEW_EXPELLED);
    view->flags |= flags_of(action);
    helio_set(&helio_tx_stats(stream)->receivers_restricted, allowances->restricted);
    helio_set(&helio_receivers_stats(receivers, index)->action, (uint64_t)action);
    helio_tx_acks_on_action(&stream->acks, receivers, index, action, moment);
}

/* Copies what fits into a notice, in whole characters. */
static void put_text(char *to, const char *text) {
    size_t length = text ? strlen(text) : 0;
    if (length > HELIO_PGM_NOTICE_TEXT_MAX) {
        length = HELIO_PGM_NOTICE_TEXT_MAX;
        while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) {
            length--;
        }
    }
    if (length > 0) {
        memcpy(to, text, length);
    }
    to[length] = '\0';
}

int helio_tx_stream_act(helio_tx_stream *stream, helio_receiver_index index, helio_action action,
                        int64_t duration_ns, const char *why, bool by_hand, helio_moment moment) {
    if (!helio_receivers_view(&stream->repairer.receivers, index)) {
        return HELIO_ERR_STATE;
    }
    if (!fits(action, (helio_action)allowance_of(stream, index)->action)) {
        return HELIO_ERR_STATE;
    }
    const bool stands = helio_action_stands(action);
    const identity who = identify(stream, index);
    helio_tx_notice notice = {
        .receiver = who.receiver,
        .incarnation = action == HELIO_ACTION_NOTIFY ? who.incarnation : 0,
        .action = (uint8_t)action,
        .reason = (uint8_t)(helio_tx_reason_of(why) | (by_hand ? HELIO_PGM_REASON_BY_HAND : 0)),
        .until_ns = !stands                                            ? 0
                    : duration_ns > 0 && duration_ns < HELIO_NEVER / 2 ? moment.now_ns + duration_ns
                                                                       : HELIO_NEVER,
    };
    put_text(notice.text, why);
    stream->moment = moment;
    report_event(stream, &who, &notice, by_hand, moment);
    if (who.takes_notices) {
        helio_tx_notices_put(&stream->notices, &notice, moment.now_ns);
    }
    if (action != HELIO_ACTION_NOTIFY) {
        set_action(stream, index, stands ? action : HELIO_ACTION_NONE, notice.until_ns, moment);
    }
    return 0;
}

void helio_tx_stream_cut_off(helio_tx_stream *stream, int64_t duration_ns, const char *why,
                             bool by_hand, helio_moment moment) {
    helio_allowances *allowances = &stream->repairer.receivers.allowances;
    const bool begins = duration_ns > 0;
    if (!begins && allowances->cut_off_ns == 0) {
        return;
    }
    allowances->cut_off_ns =
        begins ? moment.now_ns + (duration_ns < TIME_MAX_NS ? duration_ns : TIME_MAX_NS) : 0;
    helio_tx_notice notice = {
        .action = begins ? HELIO_ACTION_CUT_OFF : HELIO_ACTION_RESUME,
        .reason = (uint8_t)(helio_tx_reason_of(why) | (by_hand ? HELIO_PGM_REASON_BY_HAND : 0)),
        .until_ns = allowances->cut_off_ns,
    };
    put_text(notice.text, why);
    stream->moment = moment;
    report_event(stream, NULL, &notice, by_hand, moment);
    helio_tx_notices_put(&stream->notices, &notice, moment.now_ns);
}

/* ---- time ---- */

/* Receivers know when their action ends, so no notice is sent. */
static void end_action(helio_tx_stream *stream, helio_receiver_index index, helio_moment moment) {
    const bool was_expelled = allowance_of(stream, index)->action == HELIO_ACTION_EXPEL;
    helio_tx_notice notice = {.action = was_expelled ? HELIO_ACTION_READMIT : HELIO_ACTION_RESUME};
    const identity who = identify(stream, index);
    put_text(notice.text, "its time is over");
    report_event(stream, &who, &notice, false, moment);
    set_action(stream, index, HELIO_ACTION_NONE, 0, moment);
}

static void end_actions_due(helio_tx_stream *stream, helio_moment moment) {
    const helio_receivers *receivers = &stream->repairer.receivers;
    int64_t ends_ns = HELIO_NEVER;
    for (helio_receiver_index index = 0; index < receivers->count; index++) {
        const helio_allowance *allowance = allowance_of(stream, index);
        if (allowance->action == HELIO_ACTION_NONE) {
            continue;
        }
        if (allowance->until_ns <= moment.now_ns) {
            end_action(stream, index, moment);
        } else {
            ends_ns = helio_min(ends_ns, allowance->until_ns);
        }
    }
    stream->repairer.receivers.allowances.ends_ns = ends_ns;
}

/* `index`: HELIO_RECEIVER_NONE for receivers that are not tracked. */
static void report_refusals(helio_tx_stream *stream, helio_receiver_index index,
                            helio_moment moment) {
    helio_allowance *allowance = allowance_of(stream, index);
    const bool is_tracked = index != HELIO_RECEIVER_NONE;
    const identity who = is_tracked ? identify(stream, index) : (identity){.name = ""};
    char address[HELIO_ADDRESS_TEXT] = "receivers that are not tracked";
    if (is_tracked) {
        helio_address_format(who.address, address);
    }
    const uint64_t window_ns = (uint64_t)(moment.now_ns - allowance->refused_from_ns);
    helio_stats_event(
        stream->stats, moment.wall_ns, HELIO_EVENT_NAK_LIMIT, stream->object.slot,
        (const uint64_t[4]){who.receiver, window_ns, allowance->naks_shed, allowance->acks_shed},
        "%s: %s%s%s: %" PRIu32 " packets requested and %" PRIu32
        " acknowledgements refused in %g s",
        stream->endpoint, who.name, who.name[0] ? " at " : "", address, allowance->naks_shed,
        allowance->acks_shed, (double)window_ns / 1e9);
    allowance->refused_from_ns = 0;
    allowance->naks_shed = allowance->acks_shed = 0;
}

static void report_refusals_due(helio_tx_stream *stream, helio_moment moment) {
    const helio_receivers *receivers = &stream->repairer.receivers;
    int64_t report_ns = HELIO_NEVER;
    for (uint32_t i = 0; i <= receivers->count; i++) {
        const helio_receiver_index index = i < receivers->count ? i : HELIO_RECEIVER_NONE;
        const int64_t from_ns = allowance_of(stream, index)->refused_from_ns;
        if (from_ns == 0) {
            continue;
        }
        if (from_ns + HELIO_ALLOWANCE_WINDOW_NS <= moment.now_ns) {
            report_refusals(stream, index, moment);
        } else {
            report_ns = helio_min(report_ns, from_ns + HELIO_ALLOWANCE_WINDOW_NS);
        }
    }
    stream->repairer.receivers.allowances.report_ns = report_ns;
}

void helio_tx_end_actions(helio_tx_stream *stream, helio_moment moment) {
    helio_allowances *allowances = &stream->repairer.receivers.allowances;
    if (moment.now_ns >= allowances->ends_ns) {
        end_actions_due(stream, moment);
    }
    if (moment.now_ns >= allowances->report_ns) {
        report_refusals_due(stream, moment);
    }
    if (allowances->cut_off_ns && moment.now_ns >= allowances->cut_off_ns) {
        allowances->cut_off_ns = 0;
        helio_tx_notice notice = {.action = HELIO_ACTION_RESUME};
        put_text(notice.text, "the cut-off is over");
        report_event(stream, NULL, &notice, false, moment);
    }
}

int64_t helio_tx_actions_deadline_ns(const helio_tx_stream *stream) {
    const helio_allowances *allowances = &stream->repairer.receivers.allowances;
    const int64_t deadline_ns = helio_allowances_next_deadline_ns(allowances);
    return allowances->cut_off_ns ? helio_min(allowances->cut_off_ns, deadline_ns) : deadline_ns;
}

/* The sender of a packet: by the id in it, or else by its address. */
static helio_receiver_index sender_of(const helio_tx_stream *stream, const helio_pgm_packet *packet,
                                      const helio_address *from) {
    const helio_receivers *receivers = &stream->repairer.receivers;
    if (packet->options & HELIO_PGM_HAS_REPORT) {
        return helio_receivers_find(receivers, packet->receiver_report.receiver);
    }
    if (packet->options & HELIO_PGM_HAS_ACKNOWLEDGE) {
        return helio_receivers_acknowledging(receivers, packet->acknowledge.receiver, from);
    }
    return helio_receivers_at(receivers, from);
}

bool helio_tx_is_expelled(const helio_tx_stream *stream, const helio_pgm_packet *packet,
                          const helio_address *from) {
    const helio_receiver_index index = sender_of(stream, packet, from);
    return index != HELIO_RECEIVER_NONE &&
           (stream->repairer.receivers.views[index].flags & HELIO_VIEW_EXPELLED);
}
