/* May this message go now?  One question, one answer: GO, or the one cause it waits for.
 *
 * A stream answers for credit, rate, send limit, history and what is not stable; its lane (helio_tx_lane_admit) adds
 * the channel's room, and a transmitter (helio_transmitter_admit) its receivers and its submit
 * queue.  Errors, events and statistics use the answer and its words. */
#ifndef HELIO_SEND_ADMIT_H
#define HELIO_SEND_ADMIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/moment.h"

typedef enum helio_admission {
    HELIO_ADMIT_GO,
    HELIO_ADMIT_ROOM,          /* the channel takes no more packets */
    HELIO_ADMIT_REPAIRS,       /* repairs, or an announcement, go first */
    HELIO_ADMIT_HISTORY,       /* the history is full of packets not acknowledged */
    HELIO_ADMIT_RATE,          /* of the stream */
    HELIO_ADMIT_INSTANCE_RATE, /* the instance's rate, or the stream's turn in it */
    HELIO_ADMIT_WINDOW,        /* receivers' windows: the send limit */
    HELIO_ADMIT_CREDIT,        /* receivers granted the topic no more messages */
    HELIO_ADMIT_ACKERS,        /* fewer receivers acknowledge than must, and sends are to fail */
    HELIO_ADMIT_QUEUE,         /* the submit queue is full, and nothing else holds messages back */
    HELIO_ADMIT_MEMORY,        /* the instance has no memory left for a long message */
    HELIO_ADMIT_UNSTABLE_MESSAGES, /* as many messages as may be are not stable */
    HELIO_ADMIT_UNSTABLE_BYTES,    /* as many bytes as may be */
    HELIO_ADMISSIONS
} helio_admission;

typedef struct helio_admission_words {
    /* Follows "messages wait for". */
    const char *waits_for;
    /* The sentence of the error: of a message refused at once, and of one whose submit queue is
     * full. */
    const char *refused;
    const char *queue_full;
} helio_admission_words;

extern const helio_admission_words helio_admission_text[HELIO_ADMISSIONS];

/* Messages wait for acknowledgements to come. */
static inline bool helio_admission_is_of_acks(helio_admission cause) {
    return cause == HELIO_ADMIT_HISTORY || cause == HELIO_ADMIT_UNSTABLE_MESSAGES ||
           cause == HELIO_ADMIT_UNSTABLE_BYTES;
}

typedef struct helio_tx_stream helio_tx_stream;
typedef struct helio_tx_topic helio_tx_topic;

/* Whether a message may be appended now.  One that joins the open packet waits for no rate.  A
 * refusal is counted as a wait until the next answer.  What is appended nevertheless leaves: the
 * rate is owed, and packets not acknowledged leave the history. */
helio_admission helio_tx_stream_admit(helio_tx_stream *stream, helio_tx_topic *topic, size_t length,
                                      helio_moment moment);

/* Whether that may be anything but GO, as far as the stream's state goes now. */
bool helio_tx_stream_is_gated(const helio_tx_stream *stream);

#endif
