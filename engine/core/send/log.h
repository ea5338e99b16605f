/* What a stream's policies see and decide goes into a decision log (policy/decision_log.h), in the
 * order in which it happens.  Without memory for one nothing is written. */
#ifndef HELIO_SEND_LOG_H
#define HELIO_SEND_LOG_H

#include "policy/decision_record.h"
#include "stats/stats.h"

struct helio_tx_stream;

typedef struct helio_tx_log_config {
    void *memory; /* outlives the stream; NULL: no log */
    size_t bytes;
    const char *options; /* of the stream, as text; copied */
} helio_tx_log_config;

typedef struct helio_tx_log {
    bool is_on;
    bool is_full_told;
    helio_decision_log log;
    helio_rate_decision rate; /* the last one written */
} helio_tx_log;

/* 0, OPTION (too little memory) or NOMEM; release with helio_tx_log_fini. */
int helio_tx_log_init(struct helio_tx_stream *stream, const helio_tx_log_config *config,
                      helio_moment moment);
void helio_tx_log_fini(helio_tx_log *log);
/* Bytes of the memory that hold the log. */
static inline size_t helio_tx_log_used(const helio_tx_log *log) {
    return log->log.used;
}

/* The end of an interval, before anything is decided about it. */
void helio_tx_log_interval(struct helio_tx_stream *stream, const helio_interval *interval,
                           const helio_receiver_view *views);
/* What was decided. */
void helio_tx_log_decisions(struct helio_tx_stream *stream, helio_moment moment);
/* A rate policy takes over, at the beginning or by hand: from this rate, with this ceiling. */
void helio_tx_log_policy(struct helio_tx_stream *stream, const char *name, uint64_t rate,
                         uint64_t ceiling, int64_t now_ns);

#endif
