#include "stats/control_ring.h"

#include <string.h>

#include "base/hash.h"

uint64_t helio_control_check(uint64_t ticket, const char *text, size_t length) {
    uint8_t bytes[8 + HELIO_CONTROL_TEXT_BYTES];
    for (int i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(ticket >> (8 * i));
    }
    memcpy(bytes + 8, text, length);
    return helio_hash_fnv1a(bytes, 8 + length);
}

/* The slot submitted longest ago, as the clients say; NULL: none. */
static helio_control_slot *oldest_of(helio_control_ring *ring, uint64_t *state) {
    helio_control_slot *oldest = NULL;
    for (int i = 0; i < HELIO_CONTROL_SLOTS; i++) {
        helio_control_slot *slot = &ring->slots[i];
        const uint64_t found = atomic_load_explicit(&slot->state, memory_order_acquire);
        if (helio_control_phase_of(found) == HELIO_CONTROL_SUBMITTED &&
            (!oldest || slot->submitted_ns < oldest->submitted_ns)) {
            oldest = slot;
            *state = found;
        }
    }
    return oldest;
}

static uint64_t with_phase(uint64_t state, helio_control_phase phase) {
    return helio_control_state(helio_control_ticket_of(state), helio_control_pid_of(state), phase);
}

static void copy_out(helio_control_slot *slot, uint64_t state, helio_control_copy *out) {
    out->slot = slot;
    out->ticket = helio_control_ticket_of(state);
    out->pid = helio_control_pid_of(state);
    out->uid = slot->uid;
    out->deadline_ns = slot->deadline_ns > INT64_MAX ? INT64_MAX : (int64_t)slot->deadline_ns;
    const uint32_t bytes = *(const volatile uint32_t *)&slot->text_bytes; /* read once */
    out->text_bytes = bytes <= HELIO_CONTROL_TEXT_BYTES ? bytes : 0;
    memcpy(out->text, slot->text, out->text_bytes);
    out->text[out->text_bytes] = 0;
    out->is_whole = bytes <= HELIO_CONTROL_TEXT_BYTES &&
                    helio_control_check(out->ticket, out->text, out->text_bytes) == slot->check;
}

bool helio_control_take(helio_control_ring *ring, helio_control_copy *out) {
    const uint64_t rung = atomic_load_explicit(&ring->bell, memory_order_acquire);
    for (int tries = 0; tries < 2 * HELIO_CONTROL_SLOTS; tries++) {
        uint64_t state = 0;
        helio_control_slot *slot = oldest_of(ring, &state);
        if (!slot) {
            break;
        }
        if (atomic_compare_exchange_strong_explicit(&slot->state, &state,
                                                    with_phase(state, HELIO_CONTROL_RUNNING),
                                                    memory_order_acq_rel, memory_order_relaxed)) {
            copy_out(slot, state, out);
            return true;
        } /* else its client has just withdrawn it */
    }
    atomic_store_explicit(&ring->served, rung, memory_order_release);
    return false;
}

void helio_control_answer(const helio_control_copy *command, int code, const char *text) {
    helio_control_slot *slot = command->slot;
    size_t length = strlen(text);
    if (length > sizeof slot->answer) {
        length = sizeof slot->answer;
        while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) {
            length--;
        }
    }
    memcpy(slot->answer, text, length);
    slot->answer_bytes = (uint32_t)length;
    slot->code = code;
    uint64_t running = helio_control_state(command->ticket, command->pid, HELIO_CONTROL_RUNNING);
    atomic_compare_exchange_strong_explicit(&slot->state, &running,
                                            with_phase(running, HELIO_CONTROL_DONE),
                                            memory_order_release, memory_order_relaxed);
}
