#include "receivers/acks.h"

#include <stdlib.h>
#include <string.h>

enum { CAPACITY_MIN = 16 };

void helio_acks_init(helio_acks *acks, uint32_t limit, int64_t expiry_ns) {
    *acks = (helio_acks){.limit = limit,
                         .silence_ns = expiry_ns,
                         .expiry_ns = expiry_ns,
                         .expiry_due_ns = HELIO_NEVER};
}

void helio_acks_fini(helio_acks *acks) {
    helio_map_fini(&acks->by_receiver);
    free(acks->ackers);
    free(acks->order);
    free(acks->free);
    *acks = (helio_acks){0};
}

/* ---- entries ---- */

/* Each array that could be had is kept, whatever becomes of the others. */
static bool grow(helio_acks *acks) {
    uint32_t capacity = acks->capacity ? 2 * acks->capacity : CAPACITY_MIN;
    if (capacity > acks->limit) {
        capacity = acks->limit;
    }
    if (capacity == acks->capacity ||
        (!acks->by_receiver.entries && helio_map_init(&acks->by_receiver, CAPACITY_MIN))) {
        return false;
    }
    helio_acker *ackers = realloc(acks->ackers, capacity * sizeof *ackers);
    if (ackers) {
        acks->ackers = ackers;
    }
    uint32_t *order = realloc(acks->order, capacity * sizeof *order);
    if (order) {
        acks->order = order;
    }
    uint32_t *entries = realloc(acks->free, capacity * sizeof *entries);
    if (entries) {
        acks->free = entries;
    }
    if (!ackers || !order || !entries) {
        return false;
    }
    for (uint32_t i = acks->capacity; i < capacity; i++) {
        acks->ackers[i] = (helio_acker){0};
        acks->free[i - acks->count] = i; /* all others are taken */
    }
    acks->capacity = capacity;
    return true;
}

/* The map leads to an entry by its number plus 1, for it cannot hold NULL. */
static void *mark_of(uint32_t index) {
    return (void *)(uintptr_t)(index + 1);
}

helio_acker *helio_acks_find(const helio_acks *acks, uint64_t receiver) {
    if (acks->count == 0) {
        return NULL;
    }
    const uintptr_t mark = (uintptr_t)helio_map_get(&acks->by_receiver, receiver);
    return mark ? &acks->ackers[mark - 1] : NULL;
}

static uint32_t rank_of(const helio_acks *acks, uint32_t index) {
    uint32_t rank = 0;
    while (acks->order[rank] != index) {
        rank++;
    }
    return rank;
}

/* Moves the acker at this rank to where its position belongs. */
static void sort_in(helio_acks *acks, uint32_t rank) {
    const uint32_t index = acks->order[rank];
    const uint64_t position = acks->ackers[index].position;
    for (; rank > 0 && helio_acks_at(acks, rank - 1)->position < position; rank--) {
        acks->order[rank] = acks->order[rank - 1];
    }
    for (; rank + 1 < acks->count && helio_acks_at(acks, rank + 1)->position > position; rank++) {
        acks->order[rank] = acks->order[rank + 1];
    }
    acks->order[rank] = index;
}

/* One address has half of all there may be. */
static bool has_too_many(const helio_acks *acks, const helio_address *address) {
    uint32_t of_address = 0;
    if (acks->count < acks->limit / 2) {
        return false;
    }
    for (uint32_t i = 0; i < acks->count; i++) {
        of_address += helio_address_same_ip(&helio_acks_at(acks, i)->address, address);
    }
    return of_address >= acks->limit / 2;
}

static helio_acker *add(helio_acks *acks, const helio_acker *heard) {
    if (has_too_many(acks, &heard->address) || (acks->count == acks->capacity && !grow(acks))) {
        return NULL;
    }
    const uint32_t index = acks->free[acks->capacity - acks->count - 1];
    if (helio_map_put(&acks->by_receiver, heard->receiver, mark_of(index))) {
        return NULL;
    }
    acks->ackers[index] = *heard;
    acks->ackers[index].began_ns = heard->heard_ns;
    acks->order[acks->count++] = index;
    acks->out += heard->is_out;
    sort_in(acks, acks->count - 1);
    const int64_t due_ns = heard->heard_ns + acks->expiry_ns;
    if (due_ns < acks->expiry_due_ns) {
        acks->expiry_due_ns = due_ns;
    }
    return &acks->ackers[index];
}

void helio_acks_remove(helio_acks *acks, helio_acker *acker) {
    const uint32_t index = (uint32_t)(acker - acks->ackers);
    const uint32_t rank = rank_of(acks, index);
    helio_map_remove(&acks->by_receiver, acker->receiver);
    memmove(&acks->order[rank], &acks->order[rank + 1],
            (acks->count - rank - 1) * sizeof *acks->order);
    acks->count--;
    acks->out -= acker->is_out;
    acks->free[acks->capacity - acks->count - 1] = index;
    *acker = (helio_acker){0};
}

/* ---- acknowledgements ---- */

static helio_identity identity_of(const helio_acker *acker) {
    return (helio_identity){
        .address = &acker->address,
        .incarnation = acker->incarnation,
        .began_ns = acker->began_ns,
        .heard_ns = acker->heard_ns,
    };
}

bool helio_acks_is_elsewhere(const helio_acks *acks, uint64_t receiver, const helio_address *from,
                             int64_t now_ns) {
    const helio_acker *acker = helio_acks_find(acks, receiver);
    if (!acker) {
        return false;
    }
    const helio_identity known = identity_of(acker);
    return helio_identity_is_elsewhere(&known, from, acks->silence_ns, now_ns);
}

/* What of an acker's next acknowledgement speaks against it; REPEATED: nothing does. */
static helio_acks_result judge(const helio_acks *acks, const helio_acker *acker,
                               const helio_acker *heard, bool is_vouched) {
    helio_identity known = identity_of(acker);
    if (is_vouched) {
        known.address = &heard->address;
    }
    switch (helio_identity_judge(&known, &heard->address, heard->incarnation, acks->silence_ns,
                                 heard->heard_ns)) {
    case HELIO_IDENTITY_ELSEWHERE:
        return HELIO_ACKS_ELSEWHERE;
    case HELIO_IDENTITY_IMPOSSIBLE:
        return HELIO_ACKS_IMPOSSIBLE;
    case HELIO_IDENTITY_STALE:
        return HELIO_ACKS_STALE;
    default:
        return HELIO_ACKS_REPEATED;
    }
}

helio_acks_result helio_acks_hear(helio_acks *acks, const helio_acker *heard, bool is_vouched,
                                  helio_acker **out) {
    helio_acker *acker = helio_acks_find(acks, heard->receiver);
    *out = NULL;
    if (!acker) {
        *out = add(acks, heard);
        return *out ? HELIO_ACKS_JOINED : HELIO_ACKS_FULL;
    }
    helio_acks_result result = judge(acks, acker, heard, is_vouched);
    if (!helio_acks_is_taken(result)) {
        return result;
    }
    *out = acker;
    if (heard->incarnation != acker->incarnation) {
        result = HELIO_ACKS_RESTARTED;
        const bool is_out = acker->is_out;
        *acker = *heard;
        acker->is_out = is_out;
        acker->began_ns = heard->heard_ns;
    } else {
        acker->heard_ns = heard->heard_ns;
        acker->address = heard->address;
        acker->kind = heard->kind;
        if (heard->position <= acker->position) {
            return HELIO_ACKS_REPEATED;
        }
        result = HELIO_ACKS_PROGRESS;
        acker->position = heard->position;
    }
    sort_in(acks, rank_of(acks, (uint32_t)(acker - acks->ackers)));
    return result;
}

void helio_acks_set_out(helio_acks *acks, helio_acker *acker, bool is_out) {
    acks->out += (uint32_t)is_out - (uint32_t)acker->is_out;
    acker->is_out = is_out;
}

helio_acker *helio_acks_expired(helio_acks *acks, int64_t now_ns) {
    if (now_ns < acks->expiry_due_ns) {
        return NULL;
    }
    int64_t due_ns = HELIO_NEVER;
    for (uint32_t i = 0; i < acks->count; i++) {
        helio_acker *acker = helio_acks_at(acks, i);
        const int64_t expires_ns = acker->heard_ns + acks->expiry_ns;
        if (expires_ns <= now_ns) {
            return acker;
        }
        if (expires_ns < due_ns) {
            due_ns = expires_ns;
        }
    }
    acks->expiry_due_ns = due_ns;
    return NULL;
}

/* ---- questions ---- */

/* Position of the last of `receivers` ackers that have the packet after `after`, or `after`. */
static uint64_t reached_by(const helio_acks *acks, uint32_t receivers, uint64_t after) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < acks->count; i++) {
        const helio_acker *acker = helio_acks_at(acks, i);
        if (acker->position <= after) {
            break;
        }
        if (!acker->is_out && acker->first <= after + 1 && ++found == receivers) {
            return acker->position;
        }
    }
    return after;
}

uint64_t helio_acks_stable(const helio_acks *acks, uint32_t receivers, uint64_t after) {
    for (;;) {
        /* Beyond what these ackers have, others may count that joined in between. */
        const uint64_t reached = reached_by(acks, receivers, after);
        if (reached == after) {
            return after;
        }
        after = reached;
    }
}

uint32_t helio_acks_count(const helio_acks *acks, uint64_t sequence) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < acks->count; i++) {
        const helio_acker *acker = helio_acks_at(acks, i);
        if (acker->position < sequence) {
            break;
        }
        count += !acker->is_out && acker->first <= sequence;
    }
    return count;
}
