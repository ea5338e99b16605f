/* Fuzz target for libFuzzer: a decision log that somebody else wrote, read to its end.
 *
 * The header's fixed words are put right unless the first byte says otherwise: what is behind them is where the work is. */
#include <stdlib.h>
#include <string.h>

#include "policy/decision_fields.h"
#include "policy/decision_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_right(uint8_t *log, size_t size) {
    const uint32_t order = HELIO_DECISION_ORDER, version = HELIO_DECISION_VERSION;
    const uint64_t used = size;
    memcpy(log, HELIO_DECISION_MAGIC, sizeof HELIO_DECISION_MAGIC - 1);
    memcpy(log + HELIO_DECISION_AT_ORDER, &order, sizeof order);
    memcpy(log + HELIO_DECISION_AT_VERSION, &version, sizeof version);
    memcpy(log + HELIO_DECISION_AT_USED, &used, sizeof used);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) {
        return 0;
    }
    const size_t bytes = size - 1;
    uint8_t *log = malloc(bytes ? bytes : 1);
    if (!log) {
        abort();
    }
    memcpy(log, data + 1, bytes);
    if (bytes >= HELIO_DECISION_LOG_HEADER && !(data[0] & 1)) {
        put_right(log, bytes);
    }
    helio_decision_reader reader;
    if (helio_decision_reader_init(&reader, log, bytes) == 0) {
        helio_decision_record record;
        size_t at = reader.at;
        while (helio_decision_reader_next(&reader, &record) == 1) {
            if (reader.at <= at || reader.at > bytes ||
                reader.interval.receivers > reader.entries ||
                record.count > HELIO_DECISION_NUMBERS_MAX ||
                !memchr(record.text, 0, sizeof record.text)) {
                abort();
            }
            at = reader.at;
        }
        helio_decision_reader_fini(&reader);
    }
    free(log);
    return 0;
}
