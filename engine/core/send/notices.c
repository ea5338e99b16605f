#include "send/notices.h"

#include <stdlib.h>
#include <string.h>

enum { REPEATS = 5 };

#define REPEAT_NS (100 * HELIO_MILLISECOND)
#define UNDONE_NS (60 * HELIO_SECOND) /* the end of an action is repeated for this long */
#define TIME_MAX_NS (HELIO_PGM_NOTICE_TIME_MAX * HELIO_MILLISECOND)

void helio_tx_notices_init(helio_tx_notices *notices) {
    *notices = (helio_tx_notices){.due_ns = HELIO_NEVER};
}

void helio_tx_notices_fini(helio_tx_notices *notices) {
    free(notices->all);
    notices->all = NULL;
    notices->count = 0;
}

uint8_t helio_tx_reason_of(const char *why) {
    static const struct {
        const char *word;
        uint8_t reason;
    } reasons[] = {{"loss", HELIO_PGM_REASON_LOSS},
                   {"naks", HELIO_PGM_REASON_NAKS},
                   {"lag", HELIO_PGM_REASON_LAG},
                   {"buffer", HELIO_PGM_REASON_BUFFER},
                   {"storm", HELIO_PGM_REASON_STORM}};
    for (size_t i = 0; why && i < sizeof reasons / sizeof reasons[0]; i++) {
        if (strncmp(why, reasons[i].word, strlen(reasons[i].word)) == 0) {
            return reasons[i].reason;
        }
    }
    return HELIO_PGM_REASON_NONE;
}

/* ---- the list ---- */

static bool is_over(const helio_tx_notice *notice, int64_t now_ns) {
    const bool has_ended = notice->until_ns != 0 && now_ns >= notice->until_ns;
    return has_ended || (notice->repeats == 0 && now_ns >= notice->keep_ns);
}

static void forget_those_over(helio_tx_notices *notices, int64_t now_ns) {
    uint32_t kept = 0;
    int64_t due_ns = HELIO_NEVER;
    for (uint32_t i = 0; i < notices->count; i++) {
        helio_tx_notice *notice = &notices->all[i];
        if (is_over(notice, now_ns)) {
            continue;
        }
        if (notice->repeats > 0 && notice->due_ns < due_ns) {
            due_ns = notice->due_ns;
        }
        notices->all[kept++] = *notice;
    }
    notices->count = kept;
    notices->due_ns = due_ns;
}

/* The entry for a notice of this receiver and kind. */
static helio_tx_notice *entry_for(helio_tx_notices *notices, const helio_tx_notice *wanted) {
    const bool is_warning = wanted->action == HELIO_ACTION_NOTIFY;
    helio_tx_notice *least = notices->all;
    for (uint32_t i = 0; i < notices->count; i++) {
        helio_tx_notice *notice = &notices->all[i];
        if (notice->receiver == wanted->receiver &&
            (notice->action == HELIO_ACTION_NOTIFY) == is_warning) {
            return notice;
        }
        if (notice->repeats < least->repeats ||
            (notice->repeats == least->repeats && notice->keep_ns < least->keep_ns)) {
            least = notice;
        }
    }
    return notices->count < HELIO_TX_NOTICES_MAX ? &notices->all[notices->count++] : least;
}

void helio_tx_notices_put(helio_tx_notices *notices, const helio_tx_notice *wanted,
                          int64_t now_ns) {
    if (!notices->all) {
        notices->all = calloc(HELIO_TX_NOTICES_MAX, sizeof *notices->all);
    }
    if (!notices->all) {
        return;
    }
    forget_those_over(notices, now_ns);
    helio_tx_notice *notice = entry_for(notices, wanted);
    *notice = *wanted;
    notice->serial = ++notices->serial;
    notice->repeats = REPEATS;
    notice->due_ns = notices->due_ns = now_ns;
    notice->said_ns = INT64_MIN;
    notice->keep_ns = wanted->until_ns                        ? wanted->until_ns
                      : wanted->action == HELIO_ACTION_NOTIFY ? now_ns
                                                              : now_ns + UNDONE_NS;
}

/* ---- sending ---- */

static bool is_due(const helio_tx_notice *notice, int64_t now_ns) {
    return notice->repeats > 0 && notice->due_ns <= now_ns;
}

/* a is sent before b. */
static bool comes_before(const helio_tx_notice *a, const helio_tx_notice *b, int64_t now_ns) {
    const bool a_is_due = is_due(a, now_ns);
    return a_is_due != is_due(b, now_ns) ? a_is_due : a->said_ns < b->said_ns;
}

static uint32_t left_ms(const helio_tx_notice *notice, int64_t now_ns) {
    if (notice->until_ns == 0) {
        return 0;
    }
    const int64_t left_ns = notice->until_ns - now_ns;
    return left_ns >= TIME_MAX_NS
               ? HELIO_PGM_NOTICE_TIME_MAX
               : (uint32_t)((left_ns + HELIO_MILLISECOND - 1) / HELIO_MILLISECOND);
}

static helio_pgm_notice say(helio_tx_notice *notice, int64_t now_ns) {
    if (is_due(notice, now_ns)) {
        notice->repeats--;
        notice->due_ns = now_ns + REPEAT_NS;
    }
    notice->said_ns = now_ns;
    return (helio_pgm_notice){
        .action = notice->action,
        .reason = notice->reason,
        .serial = notice->serial,
        .duration_ms = left_ms(notice, now_ns),
        .receiver = notice->receiver,
        .incarnation = notice->incarnation,
        .text = notice->text,
        .text_bytes = strlen(notice->text),
    };
}

uint32_t helio_tx_notices_take(helio_tx_notices *notices, helio_pgm_notice *out, int64_t now_ns) {
    if (notices->count == 0) {
        return 0;
    }
    forget_those_over(notices, now_ns);
    uint32_t taken = 0;
    bool is_taken[HELIO_TX_NOTICES_MAX] = {false};
    while (taken < HELIO_PGM_NOTICES_MAX && taken < notices->count) {
        uint32_t best = HELIO_TX_NOTICES_MAX;
        for (uint32_t i = 0; i < notices->count; i++) {
            if (!is_taken[i] && (best == HELIO_TX_NOTICES_MAX ||
                                 comes_before(&notices->all[i], &notices->all[best], now_ns))) {
                best = i;
            }
        }
        is_taken[best] = true;
        out[taken++] = say(&notices->all[best], now_ns);
    }
    notices->due_ns = HELIO_NEVER;
    for (uint32_t i = 0; i < notices->count; i++) {
        if (notices->all[i].repeats > 0 && notices->all[i].due_ns < notices->due_ns) {
            notices->due_ns = notices->all[i].due_ns;
        }
    }
    return taken;
}
