#include "receive/reassembly.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 * 1024 };

void helio_reassembly_init(helio_reassembly *reassembly, size_t limit, helio_account *account) {
    *reassembly = (helio_reassembly){.limit = limit, .account = account};
}

void helio_reassembly_fini(helio_reassembly *reassembly) {
    helio_account_give(reassembly->account, reassembly->capacity);
    free(reassembly->data);
    *reassembly = (helio_reassembly){0};
}

void helio_reassembly_abort(helio_reassembly *reassembly) {
    reassembly->is_open = false;
}

/* Room for `bytes` more; doubles, but never beyond what is declared. */
static bool reserve(helio_reassembly *reassembly, size_t bytes) {
    const size_t needed = reassembly->bytes + bytes;
    if (needed <= reassembly->capacity) {
        return true;
    }
    size_t capacity = reassembly->capacity ? 2 * reassembly->capacity : FIRST_CAPACITY;
    if (capacity > reassembly->total && reassembly->total > FIRST_CAPACITY) {
        capacity = reassembly->total;
    }
    if (capacity < needed) {
        capacity = needed;
    }
    if (!helio_account_take(reassembly->account, capacity - reassembly->capacity)) {
        return false;
    }
    uint8_t *data = realloc(reassembly->data, capacity);
    if (!data) {
        helio_account_give(reassembly->account, capacity - reassembly->capacity);
        return false;
    }
    reassembly->data = data;
    reassembly->capacity = capacity;
    return true;
}

helio_reassembly_result helio_reassembly_add(helio_reassembly *reassembly,
                                             const helio_pgm_fragment *fragment,
                                             const uint8_t *data, size_t bytes) {
    if (fragment->offset == 0) {
        reassembly->is_open = true;
        reassembly->bytes = 0;
        reassembly->first = fragment->first;
        reassembly->total = fragment->length;
    }
    if (!reassembly->is_open) {
        return HELIO_REASSEMBLY_STRAY;
    }
    if (fragment->first != reassembly->first || fragment->length != reassembly->total ||
        fragment->offset != reassembly->bytes || reassembly->total > reassembly->limit ||
        bytes == 0 || bytes > reassembly->total - reassembly->bytes ||
        !reserve(reassembly, bytes)) {
        reassembly->is_open = false;
        return HELIO_REASSEMBLY_DAMAGED;
    }
    memcpy(reassembly->data + reassembly->bytes, data, bytes);
    reassembly->bytes += bytes;
    if (reassembly->bytes < reassembly->total) {
        return HELIO_REASSEMBLY_MORE;
    }
    reassembly->is_open = false;
    return HELIO_REASSEMBLY_COMPLETE;
}
