#include "queue/acked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY_MIN = 8 };

void helio_acked_init(helio_acked *acked) {
    pthread_mutex_init(&acked->lock, NULL);
}

void helio_acked_fini(helio_acked *acked) {
    pthread_mutex_destroy(&acked->lock);
    free(acked->notices);
    acked->notices = NULL;
}

/* ---- notices ---- */

static helio_ack_notice *add(helio_acked *acked) {
    if (acked->count == acked->capacity) {
        const size_t capacity = acked->capacity ? 2 * acked->capacity : CAPACITY_MIN;
        helio_ack_notice *notices = realloc(acked->notices, capacity * sizeof *notices);
        if (!notices) {
            return NULL;
        }
        acked->notices = notices;
        acked->capacity = capacity;
    }
    helio_ack_notice *notice = &acked->notices[acked->count++];
    memset(notice, 0, sizeof *notice);
    return notice;
}

static helio_ack_notice *find(helio_acked *acked, uint64_t receiver) {
    for (size_t i = 0; i < acked->count; i++) {
        if (acked->notices[i].ack.receiver == receiver) {
            return &acked->notices[i];
        }
    }
    return NULL;
}

/* Those of receivers long gone stay until there are as many as a stream has ackers: then a place
 * that was read is used again. */
static helio_ack_notice *place_for(helio_acked *acked, uint64_t receiver) {
    helio_ack_notice *notice = find(acked, receiver);
    for (size_t i = 0; !notice && acked->count >= HELIO_ACKERS_MAX && i < acked->count; i++) {
        if (!acked->notices[i].is_new) {
            notice = &acked->notices[i];
            memset(notice, 0, sizeof *notice);
        }
    }
    return notice || acked->count >= HELIO_ACKERS_MAX ? notice : add(acked);
}

void helio_acked_note(helio_acked *acked, const helio_acker *acker, uint64_t number) {
    pthread_mutex_lock(&acked->lock);
    helio_ack_notice *notice = place_for(acked, acker->receiver);
    if (notice &&
        (!notice->ack.kind || notice->ack.number != number || notice->ack.kind != acker->kind)) {
        notice->is_new = acked->has_new = true;
        notice->ack.number = number;
        notice->ack.receiver = acker->receiver;
        notice->ack.kind = acker->kind;
        snprintf(notice->ack.name, sizeof notice->ack.name, "%s", acker->name);
        helio_address_format(&acker->address, notice->ack.address);
    }
    pthread_mutex_unlock(&acked->lock);
}

size_t helio_acked_take(helio_acked *acked, helio_ack *acks, size_t limit) {
    size_t taken = 0;
    pthread_mutex_lock(&acked->lock);
    for (size_t i = 0; i < acked->count && taken < limit; i++) {
        acked->next = acked->next + 1 < acked->count ? acked->next + 1 : 0;
        helio_ack_notice *notice = &acked->notices[acked->next];
        if (notice->is_new) {
            notice->is_new = false;
            acks[taken++] = notice->ack;
        }
    }
    pthread_mutex_unlock(&acked->lock);
    return taken;
}

/* ---- waits ---- */

void helio_acked_begin_wait(helio_acked *acked, helio_ack_wait *wait) {
    pthread_mutex_lock(&acked->lock);
    wait->next = acked->waits;
    acked->waits = wait;
    atomic_fetch_add_explicit(&acked->waiting, 1, memory_order_release);
    atomic_store_explicit(&acked->has_new_wait, true, memory_order_release);
    pthread_mutex_unlock(&acked->lock);
}

void helio_acked_end_wait(helio_acked *acked, helio_ack_wait *wait) {
    pthread_mutex_lock(&acked->lock);
    helio_ack_wait **link = &acked->waits;
    while (*link != wait) {
        link = &(*link)->next;
    }
    *link = wait->next;
    atomic_fetch_sub_explicit(&acked->waiting, 1, memory_order_release);
    pthread_mutex_unlock(&acked->lock);
}

bool helio_acked_is_done(helio_acked *acked, const helio_ack_wait *wait) {
    pthread_mutex_lock(&acked->lock);
    const bool is_done = wait->is_done;
    pthread_mutex_unlock(&acked->lock);
    return is_done;
}
