#include "receive/acks.h"

void helio_rx_acks_init(helio_rx_acks *acks, uint32_t packets, int64_t interval_ns, uint64_t seed) {
    *acks = (helio_rx_acks){
        .packets = packets ? packets : 1, .interval_ns = interval_ns, .due_ns = HELIO_NEVER};
    helio_random_init(&acks->random, seed);
}

void helio_rx_acks_begin(helio_rx_acks *acks, uint64_t first, uint64_t incarnation) {
    acks->is_on = true;
    acks->incarnation = incarnation;
    acks->first = first;
    acks->position = acks->told = first - 1;
    acks->asked = acks->sent = 0;
    acks->due_ns = 0; /* the source is to know at once */
}

void helio_rx_acks_end(helio_rx_acks *acks) {
    acks->is_on = false;
    acks->due_ns = HELIO_NEVER;
}

static void tell_soon(helio_rx_acks *acks, int64_t now_ns) {
    const int64_t due_ns =
        now_ns + (int64_t)helio_random_below(&acks->random, (uint64_t)acks->interval_ns + 1);
    if (due_ns < acks->due_ns) {
        acks->due_ns = due_ns;
    }
}

static bool is_urgent(const helio_rx_acks *acks) {
    return acks->position - acks->told >= acks->packets ||
           (acks->asked > acks->told && acks->asked <= acks->position);
}

void helio_rx_acks_advance(helio_rx_acks *acks, uint64_t position, int64_t now_ns) {
    if (position <= acks->position) {
        return;
    }
    acks->position = position;
    if (is_urgent(acks)) {
        acks->due_ns = now_ns;
    } else if (acks->due_ns == HELIO_NEVER) {
        tell_soon(acks, now_ns);
    }
}

void helio_rx_acks_ask(helio_rx_acks *acks, uint64_t sequence, int64_t now_ns) {
    if (sequence <= acks->asked) {
        return;
    }
    acks->asked = sequence;
    if (is_urgent(acks) && now_ns < acks->due_ns) {
        acks->due_ns = now_ns;
    }
}

void helio_rx_acks_repeat(helio_rx_acks *acks, int64_t now_ns) {
    tell_soon(acks, now_ns);
}

void helio_rx_acks_sent(helio_rx_acks *acks) {
    acks->told = acks->position;
    acks->sent++;
    acks->due_ns = HELIO_NEVER;
}
