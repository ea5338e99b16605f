/* Which cells apply to an object (the catalogue's `only`).  What depends on a feature is absent
 * until the object is said to have it: a transport without a socket drops nothing there, which is
 * another thing than having dropped nothing. */
#include <stddef.h>

#include "stats/segment.h"

typedef struct dependent_cell {
    helio_scope scope;
    size_t offset;
    unsigned features; /* any of them will do */
} dependent_cell;

static const dependent_cell dependent[] = {
#define X(SCOPE, scope, cell, features) \
    {HELIO_SCOPE_##SCOPE, offsetof(helio_##scope##_stats, cell), features},
    HELIO_STATS_ONLY(X)
#undef X
};
enum { DEPENDENT_COUNT = sizeof dependent / sizeof dependent[0] };

static _Atomic uint64_t *cell_of(void *record, const dependent_cell *row) {
    return (_Atomic uint64_t *)((uint8_t *)record + row->offset);
}

void helio_applies_begin(helio_scope scope, void *record) {
    for (size_t i = 0; i < DEPENDENT_COUNT; i++) {
        if (dependent[i].scope == scope) {
            helio_set(cell_of(record, &dependent[i]), HELIO_STATS_ABSENT);
        }
    }
}

void helio_stats_apply(helio_stats_object *object, unsigned features) {
    for (size_t i = 0; i < DEPENDENT_COUNT; i++) {
        const dependent_cell *row = &dependent[i];
        if (row->scope != object->scope || !(row->features & features)) {
            continue;
        }
        _Atomic uint64_t *cell = cell_of(object->record, row);
        if (helio_cell(cell) == HELIO_STATS_ABSENT) {
            helio_set(cell, 0);
        }
    }
}
