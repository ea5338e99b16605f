/* Reading a decision log (decision_log.h).  The log may be damaged or hostile: every length is
 * checked, and reading ends at the first record that breaks a rule. */
#ifndef HELIO_POLICY_DECISION_READER_H
#define HELIO_POLICY_DECISION_READER_H

#include "policy/decision_log.h"

typedef struct helio_decision_reader {
    const uint8_t *memory;
    size_t used;
    size_t at;
    int64_t wall_ns;   /* when the log was begun */
    char instance[48]; /* NUL-terminated */
    char stream[40];
    helio_interval interval;    /* as of the last INTERVAL record */
    helio_receiver_view *views; /* as of now; NEWS: in those that came since the interval before */
    uint32_t entries;
    bool is_at_interval; /* the last record was one; its views are news until the next is read */
} helio_decision_reader;

typedef struct helio_decision_record {
    uint8_t kind; /* helio_decision_kind; an unknown one is to be skipped */
    uint32_t count;
    uint64_t numbers[HELIO_DECISION_NUMBERS_MAX];
    char text[HELIO_DECISION_TEXT_MAX + 1];
} helio_decision_record;

/* Beside HELIO_ERR_*: it is no decision log, or a damaged one. */
enum { HELIO_DECISION_DAMAGED = -100 };

/* 0, DAMAGED, HELIO_ERR_NOMEM, or HELIO_ERR_OPTION for a log of another version, with a sentence
 * that names both; free with helio_decision_reader_fini.  The memory outlives it. */
int helio_decision_reader_init(helio_decision_reader *reader, const void *memory, size_t size);
void helio_decision_reader_fini(helio_decision_reader *reader);

/* The next record: 1, 0 at the end, DAMAGED where it is damaged.  After a VIEW and an
 * INTERVAL record the reader's views and interval hold what it said; `numbers` are not for them. */
int helio_decision_reader_next(helio_decision_reader *reader, helio_decision_record *record);

#endif
