#include "window/rxw.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "base/bits.h"
#include "base/math.h"
#include "window/size.h"

/* Packets that may have to be held while blocks are lent: two readings of a channel. */
enum { RESERVE = 256 };

/* Memory for `packets`; the window is empty. */
static int take_memory(helio_rxw *rxw, size_t capacity) {
    rxw->mask = capacity - 1;
    rxw->spread = helio_window_spread(rxw->mask);
    rxw->free_count = rxw->aside_count = rxw->fresh_first = 0;
    rxw->data = helio_loan_allocate(capacity * rxw->stride);
    rxw->slots = calloc(capacity, sizeof *rxw->slots);
    rxw->free_blocks = calloc(capacity, sizeof *rxw->free_blocks);
    if (!rxw->data || !rxw->slots || !rxw->free_blocks) {
        helio_rxw_fini(rxw);
        return HELIO_ERR_NOMEM;
    }
    return 0;
}

int helio_rxw_init(helio_rxw *rxw, size_t capacity, size_t tsdu_bytes, uint64_t next) {
    *rxw = (helio_rxw){
        .stride = helio_round_up(tsdu_bytes, HELIO_LOAN_LINE),
        .trail = next,
        .lead = next - 1,
        .known = next - 1,
        .source_trail = next,
    };
    return take_memory(rxw, capacity);
}

void helio_rxw_fini(helio_rxw *rxw) {
    helio_loan_release(rxw->loan, rxw->data);
    free(rxw->free_blocks);
    free(rxw->slots);
    *rxw = (helio_rxw){0};
}

size_t helio_rxw_memory_of(size_t capacity, size_t tsdu_bytes) {
    return HELIO_LOAN_LINE + capacity * (helio_round_up(tsdu_bytes, HELIO_LOAN_LINE) +
                                         sizeof(helio_rxw_slot) + sizeof(uint8_t *));
}

size_t helio_rxw_memory(const helio_rxw *rxw) {
    return helio_rxw_memory_of(rxw->mask + 1, rxw->stride);
}

/* ---- blocks: as many as slots, so one is always to be had ---- */

static bool is_lent(const helio_rxw *rxw) {
    return rxw->loan && rxw->loan->is_out;
}

/* The loan is over: blocks kept aside are free, those kept last first. */
static void take_back(helio_rxw *rxw) {
    for (; rxw->aside_count > 0; rxw->aside_count--) {
        rxw->free_blocks[rxw->free_count++] = rxw->free_blocks[rxw->mask + 1 - rxw->aside_count];
    }
}

static size_t blocks_left(const helio_rxw *rxw) {
    return rxw->free_count + (rxw->mask + 1 - rxw->fresh_first);
}

static uint8_t *take_block(helio_rxw *rxw) {
    if (rxw->aside_count > 0 && !is_lent(rxw)) {
        take_back(rxw);
    }
    assert(blocks_left(rxw) > 0);
    return rxw->free_count > 0 ? rxw->free_blocks[--rxw->free_count]
                               : rxw->data + rxw->fresh_first++ * rxw->stride;
}

bool helio_rxw_may_lend(helio_rxw *rxw) {
    if (!rxw->loan) {
        return false;
    }
    if (rxw->aside_count > 0 && !is_lent(rxw)) {
        take_back(rxw);
    }
    return blocks_left(rxw) >= RESERVE && rxw->lead + 1 - rxw->trail + RESERVE <= rxw->mask + 1;
}

void helio_rxw_offer(helio_rxw *rxw) {
    helio_rxw_slot *slot = helio_rxw_slot_of(rxw, rxw->trail);
    slot->packet.lasts = helio_rxw_may_lend(rxw);
    /* A part of it may be lent already, and the rest not. */
    slot->may_be_lent |= slot->packet.lasts;
}

/* The slot is in use no more. */
static void empty(helio_rxw *rxw, helio_rxw_slot *slot) {
    if (slot->state == HELIO_RXW_HELD) {
        if (slot->may_be_lent && is_lent(rxw)) {
            rxw->free_blocks[rxw->mask - rxw->aside_count++] = slot->block;
        } else {
            rxw->free_blocks[rxw->free_count++] = slot->block;
        }
        rxw->held--;
    }
    slot->state = HELIO_RXW_EMPTY;
}

int helio_rxw_grow(helio_rxw *rxw, size_t capacity) {
    helio_rxw larger = *rxw;
    assert(capacity > rxw->mask);
    const int error = take_memory(&larger, capacity);
    if (error) {
        return error;
    }
    larger.spread = helio_max(larger.spread, rxw->spread);
    for (uint64_t i = rxw->trail; i <= rxw->lead; i++) {
        const helio_rxw_slot *from = helio_rxw_slot_of(rxw, i);
        helio_rxw_slot *to = helio_rxw_slot_of(&larger, i);
        *to = *from;
        if (from->state == HELIO_RXW_HELD) {
            to->block = take_block(&larger);
            memcpy(to->block, from->block, from->packet.bytes);
            to->packet.tsdu = to->block;
        }
    }
    helio_rxw_fini(rxw);
    *rxw = larger;
    return 0;
}

/* ---- slots ---- */

/* Twice as many slots are used: the upper half is free. */
static void double_spread(helio_rxw *rxw) {
    const uint64_t spread = 2 * rxw->spread + 1;
    for (uint64_t i = rxw->trail; i <= rxw->lead; i++) {
        helio_rxw_slot *from = helio_rxw_slot_of(rxw, i);
        if ((i & spread) != (i & rxw->spread)) {
            rxw->slots[i & spread] = *from;
            from->state = HELIO_RXW_EMPTY;
        }
    }
    rxw->spread = spread;
}

/* Slots for all up to `sequence`, which the window has room for.  Few are used while the window spans
 * few packets: a rare gap would touch pages that nobody has touched yet, which takes microseconds. */
static void spread_to(helio_rxw *rxw, uint64_t sequence) {
    if (helio_rxw_is_empty(rxw)) {
        rxw->spread = helio_window_spread(rxw->mask);
    }
    while (sequence > rxw->trail && sequence - rxw->trail > rxw->spread) {
        double_spread(rxw);
    }
}

/* ---- the window ---- */

helio_rxw_result helio_rxw_look(const helio_rxw *rxw, uint64_t sequence) {
    if (sequence < rxw->trail) {
        return HELIO_RXW_DUPLICATE;
    }
    if (sequence - rxw->trail > rxw->mask) {
        return HELIO_RXW_OVERFLOW;
    }
    if (sequence > rxw->lead) {
        return sequence == rxw->lead + 1 ? HELIO_RXW_APPENDED : HELIO_RXW_OPENED_GAP;
    }
    return helio_rxw_slot_of(rxw, sequence)->state == HELIO_RXW_WAITING ? HELIO_RXW_FILLED_GAP
                                                                        : HELIO_RXW_DUPLICATE;
}

helio_rxw_result helio_rxw_insert(helio_rxw *rxw, uint64_t sequence,
                                  const helio_rxw_packet *packet) {
    const helio_rxw_result result = helio_rxw_look(rxw, sequence);
    if (result == HELIO_RXW_DUPLICATE) {
        return result;
    }
    if (result == HELIO_RXW_OVERFLOW) {
        const uint64_t limit = rxw->trail + 2 * rxw->mask;
        const uint64_t known = sequence < limit ? sequence : limit;
        if (known > rxw->known) {
            rxw->known = known;
        }
        return result;
    }
    if (sequence > rxw->known) {
        rxw->known = sequence;
    }
    if (result == HELIO_RXW_OPENED_GAP) {
        helio_rxw_extend(rxw, sequence - 1);
    }
    spread_to(rxw, sequence);
    if (sequence > rxw->lead) {
        rxw->lead = sequence;
    }
    assert(packet->bytes <= rxw->stride);
    helio_rxw_slot *slot = helio_rxw_slot_of(rxw, sequence);
    slot->block = take_block(rxw);
    memcpy(slot->block, packet->tsdu, packet->bytes);
    slot->packet = *packet;
    slot->packet.tsdu = slot->block;
    slot->packet.lasts = slot->may_be_lent = false; /* helio_rxw_offer says whether it does */
    slot->state = HELIO_RXW_HELD;
    rxw->held++;
    return result;
}

void helio_rxw_extend(helio_rxw *rxw, uint64_t sequence) {
    if (sequence > rxw->known) {
        rxw->known = sequence;
    }
    const uint64_t last_room = rxw->trail + rxw->mask;
    const uint64_t last = sequence < last_room ? sequence : last_room;
    spread_to(rxw, last);
    while (rxw->lead < last) {
        rxw->lead++;
        helio_rxw_slot *slot = helio_rxw_slot_of(rxw, rxw->lead);
        slot->state = rxw->lead < rxw->source_trail ? HELIO_RXW_LOST : HELIO_RXW_WAITING;
        slot->cause = HELIO_LOST_WINDOW_ADVANCED;
    }
}

void helio_rxw_lose(helio_rxw *rxw, uint64_t sequence, helio_rxw_cause cause) {
    helio_rxw_slot *slot = helio_rxw_slot_of(rxw, sequence);
    assert(slot->state == HELIO_RXW_WAITING);
    slot->state = HELIO_RXW_LOST;
    slot->cause = (uint8_t)cause;
}

void helio_rxw_advance_source(helio_rxw *rxw, uint64_t sequence,
                              void (*lost)(void *context, uint64_t sequence), void *context) {
    if (sequence <= rxw->source_trail) {
        return;
    }
    uint64_t i = rxw->source_trail > rxw->trail ? rxw->source_trail : rxw->trail;
    rxw->source_trail = sequence;
    for (; i < sequence && i <= rxw->lead; i++) {
        if (helio_rxw_slot_of(rxw, i)->state == HELIO_RXW_WAITING) {
            helio_rxw_lose(rxw, i, HELIO_LOST_WINDOW_ADVANCED);
            if (lost) {
                lost(context, i);
            }
        }
    }
    if (sequence - 1 > rxw->known) {
        rxw->known = sequence - 1;
    }
}

void helio_rxw_pop(helio_rxw *rxw) {
    assert(rxw->trail <= rxw->lead);
    empty(rxw, helio_rxw_slot_of(rxw, rxw->trail));
    rxw->trail++;
}

void helio_rxw_pass(helio_rxw *rxw) {
    if (rxw->trail <= rxw->lead) {
        empty(rxw, helio_rxw_slot_of(rxw, rxw->trail));
    } else {
        rxw->lead = rxw->trail;
        if (rxw->known < rxw->lead) {
            rxw->known = rxw->lead;
        }
    }
    rxw->trail++;
}

void helio_rxw_skip(helio_rxw *rxw, uint64_t sequence) {
    assert(helio_rxw_is_empty(rxw) && sequence > rxw->trail);
    rxw->trail = sequence;
    rxw->lead = sequence - 1;
    if (rxw->known < rxw->lead) {
        rxw->known = rxw->lead;
    }
}

void helio_rxw_go_back(helio_rxw *rxw, uint64_t sequence) {
    assert(sequence < rxw->trail);
    const uint64_t last_room = sequence + rxw->mask;
    for (; rxw->lead > last_room && rxw->lead >= rxw->trail; rxw->lead--) {
        empty(rxw, helio_rxw_slot_of(rxw, rxw->lead));
    }
    if (rxw->lead > last_room) {
        rxw->lead = last_room; /* there was nothing but the trail before it */
    }
    const uint64_t last = rxw->trail - 1 < rxw->lead ? rxw->trail - 1 : rxw->lead;
    while (rxw->lead - sequence > rxw->spread) {
        double_spread(rxw);
    }
    for (uint64_t i = sequence; i <= last; i++) {
        helio_rxw_slot *slot = helio_rxw_slot_of(rxw, i);
        slot->state = HELIO_RXW_WAITING;
        slot->place = 0;
    }
    rxw->trail = rxw->source_trail = sequence;
}
