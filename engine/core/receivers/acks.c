#include "receivers/acks.h"

#include <stdlib.h>
#include <string.h>

#include "base/math.h"

enum { CAPACITY_MIN = 16 };

void helio_acks_init(helio_acks *acks, uint32_t limit, int64_t expiry_ns) {
    *acks = (helio_acks){.limit = limit,
                         .silence_ns = expiry_ns,
                         .expiry_ns = expiry_ns,
                         .expiry_due_ns = HELIO_NEVER};
}

void helio_acks_fini(helio_acks *acks) {
    for (uint32_t i = 0; i < acks->count; i++) {
        free(acks->order[i]);
    }
    free(acks->order);
    helio_map_fini(&acks->by_receiver);
    *acks = (helio_acks){0};
}

/* ---- entries ---- */

static bool grow(helio_acks *acks) {
    const uint32_t twice = acks->capacity ? 2 * acks->capacity : CAPACITY_MIN;
    const uint32_t capacity = twice < acks->limit ? twice : acks->limit;
    if (capacity == acks->capacity ||
        (!acks->by_receiver.entries && helio_map_init(&acks->by_receiver, CAPACITY_MIN))) {
        return false;
    }
    helio_acker **order = realloc(acks->order, capacity * sizeof *order);
    if (order) {
        acks->order = order;
        acks->capacity = capacity;
    }
    return order != NULL;
}

helio_acker *helio_acks_find(const helio_acks *acks, uint64_t receiver) {
    return acks->count > 0 ? helio_map_get(&acks->by_receiver, receiver) : NULL;
}

static uint32_t rank_of(const helio_acks *acks, const helio_acker *acker) {
    uint32_t rank = 0;
    while (acks->order[rank] != acker) {
        rank++;
    }
    return rank;
}

/* Moves the receiver at this rank to the rank of its position. */
static void sort_in(helio_acks *acks, uint32_t rank) {
    helio_acker *acker = acks->order[rank];
    for (; rank > 0 && acks->order[rank - 1]->position < acker->position; rank--) {
        acks->order[rank] = acks->order[rank - 1];
    }
    for (; rank + 1 < acks->count && acks->order[rank + 1]->position > acker->position; rank++) {
        acks->order[rank] = acks->order[rank + 1];
    }
    acks->order[rank] = acker;
}

/* Receivers at one IP address have at most half of the room. */
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
    helio_acker *acker = malloc(sizeof *acker);
    if (!acker || helio_map_put(&acks->by_receiver, heard->receiver, acker)) {
        free(acker);
        return NULL;
    }
    *acker = *heard;
    acker->began_ns = heard->heard_ns;
    acks->order[acks->count++] = acker;
    acks->out += !helio_acker_counts(acker);
    sort_in(acks, acks->count - 1);
    acks->expiry_due_ns = helio_min(acks->expiry_due_ns, heard->heard_ns + acks->expiry_ns);
    return acker;
}

void helio_acks_remove(helio_acks *acks, helio_acker *acker) {
    const uint32_t rank = rank_of(acks, acker);
    helio_map_remove(&acks->by_receiver, acker->receiver);
    acks->count--;
    memmove(&acks->order[rank], &acks->order[rank + 1],
            (acks->count - rank) * sizeof(helio_acker *));
    acks->out -= !helio_acker_counts(acker);
    free(acker);
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

/* Why an acknowledgement of a known receiver is refused; REPEATED: it is not. */
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
    acks->out -= !helio_acker_counts(acker);
    acker->is_store = heard->is_store;
    acker->is_outside = heard->is_outside;
    acks->out += !helio_acker_counts(acker);
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
        if (heard->service.port) { /* it is not on each of them */
            acker->service = heard->service;
        }
        if (heard->position <= acker->position) {
            return HELIO_ACKS_REPEATED;
        }
        result = HELIO_ACKS_PROGRESS;
        acker->position = heard->position;
    }
    sort_in(acks, rank_of(acks, acker));
    return result;
}

void helio_acks_set_out(helio_acks *acks, helio_acker *acker, bool is_out) {
    acks->out -= !helio_acker_counts(acker);
    acker->is_out = is_out;
    acks->out += !helio_acker_counts(acker);
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
        due_ns = helio_min(due_ns, expires_ns);
    }
    acks->expiry_due_ns = due_ns;
    return NULL;
}

/* ---- questions ---- */

/* The least position of the first `receivers` ones that have the packet after `after`; `after`:
 * fewer have it. */
static uint64_t reached_by(const helio_acks *acks, uint32_t receivers, uint64_t after) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < acks->count; i++) {
        const helio_acker *acker = helio_acks_at(acks, i);
        if (acker->position <= after) {
            break;
        }
        if (helio_acker_counts(acker) && acker->first <= after + 1 && ++found == receivers) {
            return acker->position;
        }
    }
    return after;
}

uint64_t helio_acks_stable(const helio_acks *acks, uint32_t receivers, uint64_t after) {
    for (;;) {
        /* Further on, receivers that joined in between may count too. */
        const uint64_t reached = reached_by(acks, receivers, after);
        if (reached == after) {
            return after;
        }
        after = reached;
    }
}

static uint32_t count_of(const helio_acks *acks, uint64_t sequence, bool with_outside) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < acks->count; i++) {
        const helio_acker *acker = helio_acks_at(acks, i);
        if (acker->position < sequence) {
            break;
        }
        count += !acker->is_out && (with_outside || !acker->is_outside) && acker->first <= sequence;
    }
    return count;
}

uint32_t helio_acks_count(const helio_acks *acks, uint64_t sequence) {
    return count_of(acks, sequence, true);
}

uint32_t helio_acks_quorum(const helio_acks *acks, uint64_t sequence) {
    return count_of(acks, sequence, false);
}

uint32_t helio_acks_services(const helio_acks *acks, helio_address *out, uint32_t limit) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < acks->count; i++) {
        const helio_acker *acker = helio_acks_at(acks, i);
        if (acker->is_store && !acker->is_out && acker->service.port) {
            count = helio_address_add(out, count, limit, &acker->service);
        }
    }
    return count;
}
