#include "repair/nak.h"

#include <assert.h>
#include <stdlib.h>

#include <heliograph/errors.h>

#include "base/math.h"
#include "base/moment.h"
#include "window/size.h"

#define INSIST_NS (365 * 24 * 3600 * HELIO_SECOND)
#define REPEAT_MAX_NS (50 * HELIO_MILLISECOND)
#define DATA_MAX_NS (100 * HELIO_MILLISECOND)
/* Not given: the least, and before anything was measured. */
#define REPEAT_MIN_NS (200 * HELIO_MICROSECOND)
#define REPEAT_START_NS (2 * HELIO_MILLISECOND)
#define DATA_MIN_NS (500 * HELIO_MICROSECOND)
#define DATA_START_NS (5 * HELIO_MILLISECOND)
/* A source ignores a request that comes within 100 us of the repair (tx_lane_life.c). */
#define REORDER_MIN_NS (150 * HELIO_MICROSECOND)

enum { OVERTAKEN_MAX = 3, OVERTAKE_STEPS = 64 };

static int take_memory(helio_nak *nak, size_t capacity) {
    nak->mask = capacity - 1;
    nak->spread = helio_window_spread(nak->mask);
    nak->entries = calloc(capacity, sizeof *nak->entries);
    nak->heap = calloc(capacity, sizeof *nak->heap);
    nak->grace = calloc(capacity, sizeof *nak->grace);
    if (!nak->entries || !nak->heap || !nak->grace) {
        helio_nak_fini(nak);
        return HELIO_ERR_NOMEM;
    }
    return 0;
}

int helio_nak_init(helio_nak *nak, size_t capacity, const helio_nak_config *config, uint64_t seed) {
    *nak = (helio_nak){.config = *config,
                       .ask_room = UINT64_MAX,
                       .asked_oldest = HELIO_NAK_END,
                       .asked_newest = HELIO_NAK_END};
    helio_random_init(&nak->random, seed);
    const helio_backoff_config backoff = {config->backoff_ns, config->group_size, config->is_alone};
    helio_backoff_init(&nak->backoff, &backoff);
    return take_memory(nak, capacity);
}

void helio_nak_fini(helio_nak *nak) {
    free(nak->entries);
    free(nak->heap);
    free(nak->grace);
    *nak = (helio_nak){0};
}

void helio_nak_insist(helio_nak *nak) {
    nak->config.retries = UINT32_MAX;
    nak->config.deadline_ns = INSIST_NS;
}

size_t helio_nak_memory_of(size_t capacity) {
    const helio_nak *nak = NULL;
    return capacity * (sizeof *nak->entries + sizeof *nak->heap + sizeof *nak->grace);
}

size_t helio_nak_memory(const helio_nak *nak) {
    return helio_nak_memory_of(nak->mask + 1);
}

static helio_nak_entry *entry_of(const helio_nak *nak, uint64_t sequence) {
    return &nak->entries[sequence & nak->spread];
}

static bool is_in_heap(const helio_nak_entry *entry) {
    return entry->state >= HELIO_NAK_BACK_OFF;
}

/* ---- the heap: entries by due_ns, then by sequence, so that the oldest is asked for first ---- */

static bool is_earlier(const helio_nak_entry *a, const helio_nak_entry *b) {
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->sequence < b->sequence;
}

static helio_nak_entry *heap_entry(const helio_nak *nak, uint32_t place) {
    return &nak->entries[nak->heap[place]];
}

static void heap_set(helio_nak *nak, uint32_t place, uint32_t index) {
    nak->heap[place] = index;
    nak->entries[index].place = place;
}

/* Moves the entry at `place` to where its due_ns belongs. */
static void heap_settle(helio_nak *nak, uint32_t place) {
    const uint32_t index = nak->heap[place];
    const helio_nak_entry *entry = &nak->entries[index];
    while (place > 0 && is_earlier(entry, heap_entry(nak, (place - 1) / 2))) {
        heap_set(nak, place, nak->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    for (;;) {
        uint32_t child = 2 * place + 1;
        if (child >= nak->heap_count) {
            break;
        }
        if (child + 1 < nak->heap_count &&
            is_earlier(heap_entry(nak, child + 1), heap_entry(nak, child))) {
            child++;
        }
        if (!is_earlier(heap_entry(nak, child), entry)) {
            break;
        }
        heap_set(nak, place, nak->heap[child]);
        place = child;
    }
    heap_set(nak, place, index);
}

static void heap_remove(helio_nak *nak, uint32_t place) {
    nak->heap_count--;
    if (place < nak->heap_count) {
        heap_set(nak, place, nak->heap[nak->heap_count]);
        heap_settle(nak, place);
    }
}

/* ---- open requests, a list in the order they were made ---- */

static uint32_t *asked_after(helio_nak *nak, uint32_t index) {
    return index == HELIO_NAK_END ? &nak->asked_oldest : &nak->entries[index].asked_after;
}

static uint32_t *asked_before(helio_nak *nak, uint32_t index) {
    return index == HELIO_NAK_END ? &nak->asked_newest : &nak->entries[index].asked_before;
}

static void close_request(helio_nak *nak, helio_nak_entry *entry) {
    if (entry->is_open) {
        *asked_after(nak, entry->asked_before) = entry->asked_after;
        *asked_before(nak, entry->asked_after) = entry->asked_before;
        entry->is_open = false;
    }
}

static void open_request(helio_nak *nak, helio_nak_entry *entry, int64_t now_ns) {
    const uint32_t index = (uint32_t)(entry - nak->entries);
    close_request(nak, entry);
    entry->asked_ns = now_ns;
    entry->asked = entry->is_open = true;
    entry->asked_before = nak->asked_newest;
    entry->asked_after = HELIO_NAK_END;
    *asked_after(nak, nak->asked_newest) = index;
    nak->asked_newest = index;
}

int helio_nak_grow(helio_nak *nak, size_t capacity) {
    helio_nak larger = *nak;
    assert(capacity > nak->mask);
    const int error = take_memory(&larger, capacity);
    if (error) {
        return error;
    }
    larger.spread = helio_max(larger.spread, nak->spread);
    for (uint64_t i = 0; i <= nak->spread; i++) {
        const helio_nak_entry *entry = &nak->entries[i];
        if (entry->state != HELIO_NAK_NONE) {
            *entry_of(&larger, entry->sequence) = *entry;
        }
    }
    larger.asked_oldest = larger.asked_newest = HELIO_NAK_END;
    for (uint32_t i = nak->asked_oldest; i != HELIO_NAK_END; i = nak->entries[i].asked_after) {
        helio_nak_entry *entry = entry_of(&larger, nak->entries[i].sequence);
        entry->is_open = false;
        open_request(&larger, entry, entry->asked_ns);
    }
    for (uint32_t place = 0; place < nak->heap_count; place++) {
        const uint64_t sequence = nak->entries[nak->heap[place]].sequence;
        larger.heap[place] = (uint32_t)(sequence & larger.spread);
    }
    for (uint64_t i = nak->grace_first; i != nak->grace_end; i++) {
        larger.grace[i & larger.mask] = nak->grace[i & nak->mask];
    }
    helio_nak_fini(nak);
    *nak = larger;
    return 0;
}

/* ---- spread ---- */

static uint32_t index_within(const helio_nak *nak, uint32_t index, uint64_t spread) {
    return index == HELIO_NAK_END ? index : (uint32_t)(nak->entries[index].sequence & spread);
}

/* Twice as many entries are used: the upper half is free. */
static void double_spread(helio_nak *nak) {
    const uint64_t spread = 2 * nak->spread + 1;
    for (uint32_t place = 0; place < nak->heap_count; place++) {
        nak->heap[place] = index_within(nak, nak->heap[place], spread);
    }
    for (uint32_t i = nak->asked_oldest, after; i != HELIO_NAK_END; i = after) {
        helio_nak_entry *entry = &nak->entries[i];
        after = entry->asked_after;
        entry->asked_before = index_within(nak, entry->asked_before, spread);
        entry->asked_after = index_within(nak, after, spread);
    }
    nak->asked_oldest = index_within(nak, nak->asked_oldest, spread);
    nak->asked_newest = index_within(nak, nak->asked_newest, spread);
    for (uint64_t i = 0; i <= nak->spread; i++) {
        helio_nak_entry *entry = &nak->entries[i];
        const uint64_t place = entry->sequence & spread;
        if (entry->state != HELIO_NAK_NONE && place != i) {
            nak->entries[place] = *entry;
            entry->state = HELIO_NAK_NONE;
        }
    }
    nak->spread = spread;
}

/* An entry for a sequence number that was found missing. */
static helio_nak_entry *free_entry(helio_nak *nak, uint64_t sequence) {
    if (nak->outstanding == 0) {
        nak->spread = helio_window_spread(nak->mask);
    }
    while (entry_of(nak, sequence)->state != HELIO_NAK_NONE && nak->spread < nak->mask) {
        double_spread(nak);
    }
    assert(entry_of(nak, sequence)->state == HELIO_NAK_NONE);
    return entry_of(nak, sequence);
}

/* ---- deadlines ---- */

static bool is_held(const helio_nak *nak, int64_t now_ns) {
    return now_ns < nak->held_until_ns;
}

/* Time excused up to `until_ns`, which is not before the span that began last. */
static int64_t excused_up_to(const helio_nak *nak, int64_t until_ns) {
    const int64_t end_ns = until_ns < nak->excused_until_ns ? until_ns : nak->excused_until_ns;
    return nak->excused_ns + (end_ns - nak->excused_from_ns);
}

static int64_t deadline_of(const helio_nak *nak, const helio_nak_entry *entry) {
    return entry->seen_ns + nak->config.deadline_ns + excused_up_to(nak, nak->excused_until_ns) -
           entry->excused_ns;
}

/* ---- states ---- */

static void end_put_off(helio_nak *nak, helio_nak_entry *entry) {
    nak->put_off -= entry->is_put_off;
    entry->is_put_off = false;
}

static void enter(helio_nak *nak, helio_nak_entry *entry, helio_nak_state state, int64_t due_ns) {
    end_put_off(nak, entry);
    const bool is_new = !is_in_heap(entry);
    const int64_t deadline_ns = deadline_of(nak, entry);
    entry->state = (uint8_t)state;
    entry->due_ns = due_ns < deadline_ns ? due_ns : deadline_ns;
    if (is_new) {
        heap_set(nak, nak->heap_count, (uint32_t)(entry - nak->entries));
        nak->heap_count++;
    }
    heap_settle(nak, entry->place);
}

static void leave(helio_nak *nak, helio_nak_entry *entry) {
    end_put_off(nak, entry);
    close_request(nak, entry);
    if (is_in_heap(entry)) {
        heap_remove(nak, entry->place);
    }
    entry->state = HELIO_NAK_NONE;
    nak->outstanding--;
}

/* Sequences that begin to back off at the same moment get one draw, so that they share a NAK. */
static int64_t draw_backoff(helio_nak *nak) {
    return nak->config.never_asks ? 0 : helio_backoff_draw(&nak->backoff, &nak->random);
}

/* base * 2^times, at most `limit` unless base is more. */
static int64_t grown(int64_t base_ns, uint32_t times, int64_t limit_ns) {
    while (times-- > 0 && base_ns < limit_ns) {
        base_ns = base_ns * 2 < limit_ns ? base_ns * 2 : limit_ns;
    }
    return base_ns;
}

static helio_nak_path *path_of(helio_nak *nak, const helio_nak_entry *entry) {
    return entry->is_near ? &nak->near : &nak->source;
}

/* NAK_RPT_IVL as it is now. */
static int64_t repeat_base_ns(const helio_nak *nak, const helio_nak_time *time) {
    if (nak->config.repeat_ns > 0) {
        return nak->config.repeat_ns;
    }
    const int64_t usual_ns = time->rtt.smoothed_ns
                                 ? helio_max(4 * time->rtt.smoothed_ns, REPEAT_MIN_NS)
                                 : REPEAT_START_NS;
    return helio_min(helio_max(usual_ns, time->held_ns), REPEAT_MAX_NS);
}

/* NAK_RDATA_IVL as it is now: some sources are slow to repair what they confirm at once. */
static int64_t data_base_ns(const helio_nak *nak, const helio_nak_path *path) {
    const helio_nak_time *time = &path->repairing;
    if (nak->config.data_ns > 0) {
        return nak->config.data_ns;
    }
    const int64_t usual_ns =
        time->rtt.smoothed_ns
            ? helio_max(helio_rtt_timeout_ns(&time->rtt),
                        helio_max(8 * path->confirming.rtt.smoothed_ns, DATA_MIN_NS))
            : DATA_START_NS;
    return helio_min(helio_max(usual_ns, time->held_ns), DATA_MAX_NS);
}

static int64_t repeat_ns(helio_nak *nak, const helio_nak_entry *entry) {
    return grown(repeat_base_ns(nak, &path_of(nak, entry)->confirming), entry->ncf_retries,
                 REPEAT_MAX_NS);
}

static int64_t data_ns(helio_nak *nak, const helio_nak_entry *entry) {
    return grown(data_base_ns(nak, path_of(nak, entry)), entry->data_retries, DATA_MAX_NS);
}

/* Requests for it before the last one to the same destination. */
static uint32_t repeats_of(const helio_nak_entry *entry) {
    return entry->is_near ? entry->near_asks - 1 : entry->ncf_retries + entry->data_retries;
}

static void measure(helio_nak_time *time, int64_t seen_ns) {
    helio_rtt_measure(&time->rtt, helio_clamp(seen_ns, 1, DATA_MAX_NS));
    time->held_ns = 0;
}

/* ---- GRACE ---- */

/* The oldest entry in GRACE, NULL when there is none. */
static helio_nak_entry *grace_oldest(helio_nak *nak) {
    for (; nak->grace_first != nak->grace_end; nak->grace_first++) {
        const uint64_t sequence = nak->grace[nak->grace_first & nak->mask];
        helio_nak_entry *entry = entry_of(nak, sequence);
        if (entry->sequence == sequence && entry->state == HELIO_NAK_GRACE) {
            return entry;
        }
    }
    return NULL;
}

void helio_nak_miss(helio_nak *nak, uint64_t first, uint64_t count, int64_t now_ns) {
    for (uint64_t sequence = first; sequence < first + count; sequence++) {
        helio_nak_entry *entry = free_entry(nak, sequence);
        *entry = (helio_nak_entry){
            .sequence = sequence,
            .seen_ns = now_ns,
            .due_ns = now_ns + nak->config.reorder_ns,
            .excused_ns = excused_up_to(nak, now_ns),
            .state = HELIO_NAK_GRACE,
        };
        grace_oldest(
            nak); /* drops what is stale, so that the ring never holds more than the window */
        nak->grace[nak->grace_end++ & nak->mask] = sequence;
        nak->outstanding++;
    }
}

void helio_nak_on_newest(helio_nak *nak, uint64_t newest, int64_t now_ns) {
    int64_t due_ns = -1;
    for (;;) {
        helio_nak_entry *entry = grace_oldest(nak);
        if (!entry || entry->sequence + nak->config.reorder_packets > newest) {
            return;
        }
        if (due_ns < 0) {
            due_ns = now_ns + draw_backoff(nak);
        }
        nak->grace_first++;
        enter(nak, entry, HELIO_NAK_BACK_OFF, due_ns);
    }
}

static void end_grace_by_time(helio_nak *nak, int64_t now_ns) {
    int64_t due_ns = -1;
    for (;;) {
        helio_nak_entry *entry = grace_oldest(nak);
        if (!entry || entry->due_ns > now_ns) {
            return;
        }
        if (due_ns < 0) {
            due_ns = now_ns + draw_backoff(nak);
        }
        nak->grace_first++;
        enter(nak, entry, HELIO_NAK_BACK_OFF, due_ns);
    }
}

/* ---- events ---- */

helio_nak_found helio_nak_remove(helio_nak *nak, uint64_t sequence) {
    helio_nak_entry *entry = entry_of(nak, sequence);
    if (entry->sequence != sequence || entry->state == HELIO_NAK_NONE) {
        return (helio_nak_found){0};
    }
    const helio_nak_found found = {
        .was_missing = true,
        .was_asked_for = entry->state != HELIO_NAK_GRACE,
        .seen_ns = entry->seen_ns,
    };
    leave(nak, entry);
    return found;
}

/* A confirmed request is answered by whom it was made to. */
static void measure_repair(helio_nak *nak, const helio_nak_entry *entry, int64_t now_ns) {
    helio_nak_time *time = &path_of(nak, entry)->repairing;
    if (entry->data_retries == 0) {
        measure(time, now_ns - entry->confirmed_ns);
    } else {
        time->held_ns = data_ns(nak, entry);
    }
}

helio_nak_found helio_nak_on_data(helio_nak *nak, uint64_t sequence, int64_t now_ns) {
    const helio_nak_entry *entry = entry_of(nak, sequence);
    if (helio_nak_state_of(nak, sequence) != HELIO_NAK_NONE && entry->confirmed_ns &&
        !entry->is_near) {
        measure_repair(nak, entry, now_ns);
    }
    return helio_nak_remove(nak, sequence);
}

/* The answer to a request made at `asked_ns`, for `sequence`, took `took_ns`. */
static void overtake(helio_nak *nak, uint64_t sequence, bool is_near, int64_t asked_ns,
                     int64_t took_ns, int64_t now_ns) {
    const int64_t reorder_ns = helio_max(took_ns / 4, REORDER_MIN_NS);
    uint32_t index = nak->asked_oldest;
    for (int i = 0; i < OVERTAKE_STEPS && index != HELIO_NAK_END; i++) {
        helio_nak_entry *entry = &nak->entries[index];
        if (entry->asked_ns > asked_ns ||
            (entry->asked_ns == asked_ns && entry->sequence > sequence)) {
            return;
        }
        index = entry->asked_after;
        const int64_t due_ns = helio_max(entry->asked_ns + took_ns + reorder_ns, now_ns);
        if (entry->is_near == is_near && entry->overtaken < OVERTAKEN_MAX &&
            due_ns < entry->due_ns) {
            entry->is_overtaken = true;
            enter(nak, entry, (helio_nak_state)entry->state, due_ns);
        }
    }
}

/* The destination of the last NAK for it confirmed the request. */
static void measure_ncf(helio_nak *nak, const helio_nak_entry *entry, int64_t now_ns) {
    helio_nak_time *time = &path_of(nak, entry)->confirming;
    if (repeats_of(entry) > 0) {
        time->held_ns = repeat_ns(nak, entry);
        return;
    }
    measure(time, now_ns - entry->asked_ns);
    if (!entry->is_near) {
        helio_backoff_set_round_trip(&nak->backoff, time->rtt.smoothed_ns);
    }
}

/* A repair that comes before a confirmation of its request is one too. */
static void measure_answer(helio_nak *nak, const helio_nak_entry *entry, int64_t now_ns) {
    if (entry->confirmed_ns) {
        measure_repair(nak, entry, now_ns);
    } else if (entry->state == HELIO_NAK_WAIT_NCF && entry->asked) {
        measure_ncf(nak, entry, now_ns);
    }
}

helio_nak_found helio_nak_on_repair(helio_nak *nak, uint64_t sequence, bool is_near,
                                    int64_t now_ns) {
    const helio_nak_entry *entry = entry_of(nak, sequence);
    if (helio_nak_state_of(nak, sequence) == HELIO_NAK_NONE || entry->is_near != is_near) {
        return helio_nak_remove(nak, sequence);
    }
    const bool is_answer = entry->is_open;
    const uint32_t repeats = repeats_of(entry) + entry->overtaken;
    const int64_t asked_ns = entry->asked_ns;
    measure_answer(nak, entry, now_ns);
    const helio_nak_found found = helio_nak_remove(nak, sequence);
    if (is_answer && repeats == 0) { /* else it is not known which request was answered */
        overtake(nak, sequence, is_near, asked_ns, now_ns - asked_ns, now_ns);
    }
    return found;
}

static bool on_confirmed(helio_nak *nak, uint64_t sequence, bool is_near, int64_t now_ns) {
    helio_nak_entry *entry = entry_of(nak, sequence);
    const helio_nak_state state = helio_nak_state_of(nak, sequence);
    if (state == HELIO_NAK_NONE || nak->config.never_asks) {
        return false;
    }
    if (state == HELIO_NAK_WAIT_NCF && entry->asked && entry->is_near == is_near) {
        measure_ncf(nak, entry, now_ns);
    }
    entry->is_near = is_near;
    entry->confirmed_ns = now_ns;
    entry->is_overtaken = false;
    enter(nak, entry, HELIO_NAK_WAIT_DATA, now_ns + data_ns(nak, entry));
    return state == HELIO_NAK_GRACE || state == HELIO_NAK_BACK_OFF;
}

bool helio_nak_on_ncf(helio_nak *nak, uint64_t sequence, int64_t now_ns) {
    return on_confirmed(nak, sequence, false, now_ns);
}

/* Only an answer to a request of ours: nobody else's is confirmed to us. */
bool helio_nak_on_near_ncf(helio_nak *nak, uint64_t sequence, int64_t now_ns) {
    if (helio_nak_state_of(nak, sequence) != HELIO_NAK_WAIT_NCF ||
        !entry_of(nak, sequence)->is_near) {
        return false;
    }
    return on_confirmed(nak, sequence, true, now_ns);
}

void helio_nak_on_near_answer(helio_nak *nak) {
    nak->near_unanswered = 0;
    nak->near_away_until_ns = 0;
}

bool helio_nak_on_foreign_nak(helio_nak *nak, uint64_t sequence, int64_t now_ns) {
    helio_nak_entry *entry = entry_of(nak, sequence);
    const helio_nak_state state = helio_nak_state_of(nak, sequence);
    if (state == HELIO_NAK_NONE || nak->config.never_asks) {
        return false;
    }
    if (state == HELIO_NAK_WAIT_DATA) {
        enter(nak, entry, HELIO_NAK_WAIT_DATA, now_ns + data_ns(nak, entry));
    } else {
        enter(nak, entry, HELIO_NAK_WAIT_NCF, now_ns + repeat_ns(nak, entry));
    }
    return state == HELIO_NAK_GRACE || state == HELIO_NAK_BACK_OFF;
}

/* ---- not being allowed to ask ---- */

/* What backs off until later than `due_ns` does so until then. */
static void hasten(helio_nak *nak, int64_t due_ns) {
    const uint32_t count = nak->heap_count;
    nak->heap_count = 0;
    for (uint32_t place = 0; place < count; place++) {
        const uint32_t index = nak->heap[place];
        helio_nak_entry *entry = &nak->entries[index];
        if (entry->state == HELIO_NAK_BACK_OFF && entry->due_ns > due_ns) {
            entry->due_ns = due_ns;
        }
        heap_set(nak, nak->heap_count++, index);
        heap_settle(nak, entry->place);
    }
}

void helio_nak_hold(helio_nak *nak, int64_t until_ns, int64_t now_ns) {
    const bool is_sooner = until_ns < nak->held_until_ns && is_held(nak, now_ns);
    nak->held_until_ns = until_ns;
    if (is_sooner) {
        hasten(nak, (until_ns > now_ns ? until_ns : now_ns) + draw_backoff(nak));
    }
}

void helio_nak_excuse(helio_nak *nak, int64_t until_ns, int64_t now_ns) {
    nak->excused_ns = excused_up_to(nak, now_ns);
    nak->excused_from_ns = now_ns;
    nak->excused_until_ns = until_ns > now_ns ? until_ns : now_ns;
}

/* There is no room to request it now. */
static void put_off(helio_nak *nak, helio_nak_entry *entry) {
    enter(nak, entry, HELIO_NAK_BACK_OFF, HELIO_NEVER);
    entry->is_put_off = true;
    nak->put_off++;
    nak->put_off_ever++;
}

void helio_nak_release(helio_nak *nak, uint64_t count, int64_t now_ns) {
    const int64_t due_ns = now_ns + draw_backoff(nak);
    /* An entry moves up only, and what it pushes down does not get past its old place. */
    for (uint32_t place = 0; place < nak->heap_count && nak->put_off > 0 && count > 0; place++) {
        helio_nak_entry *entry = heap_entry(nak, place);
        if (!entry->is_put_off) {
            continue;
        }
        enter(nak, entry, HELIO_NAK_BACK_OFF, due_ns);
        count--;
    }
}

/* ---- poll ---- */

static void round_lose(helio_nak *nak, helio_nak_entry *entry, helio_rxw_cause cause,
                       helio_nak_round *round) {
    round->losses[round->loss_count].sequence = entry->sequence;
    round->losses[round->loss_count].seen_ns = entry->seen_ns;
    round->losses[round->loss_count].cause = cause;
    round->loss_count++;
    leave(nak, entry);
}

/* The local repairer is asked for it next. */
static bool goes_near(const helio_nak *nak, const helio_nak_entry *entry, int64_t now_ns) {
    return entry->near_asks < nak->config.near_tries && now_ns >= nak->near_away_until_ns;
}

/* One request more that the local repairer may leave unanswered. */
static void ask_near(helio_nak *nak, helio_nak_entry *entry, int64_t now_ns) {
    entry->near_asks++;
    if (++nak->near_unanswered >= HELIO_NAK_NEAR_UNANSWERED_MAX && entry->near_asks > 1) {
        nak->near_away_until_ns = now_ns + HELIO_NAK_NEAR_AWAY_NS;
    }
}

/* Keeps the asks ascending; they mostly come so. */
static void round_ask(helio_nak *nak, helio_nak_entry *entry, int64_t now_ns,
                      helio_nak_round *round) {
    const bool was_near = entry->is_near && entry->asked;
    entry->is_near = round->is_near;
    if (round->is_near) {
        ask_near(nak, entry, now_ns);
    }
    nak->near_given_up += was_near && !round->is_near;
    size_t place = round->ask_count++;
    for (; place > 0 && round->asks[place - 1] > entry->sequence; place--) {
        round->asks[place] = round->asks[place - 1];
    }
    round->asks[place] = entry->sequence;
    round->retried += entry->asked;
    open_request(nak, entry, now_ns);
    enter(nak, entry, HELIO_NAK_WAIT_NCF, now_ns + repeat_ns(nak, entry));
}

/* The entry's time has come. */
static void fire(helio_nak *nak, helio_nak_entry *entry, bool can_ask, int64_t backoff_due_ns,
                 int64_t now_ns, helio_nak_round *round) {
    if (now_ns >= deadline_of(nak, entry)) {
        round_lose(nak, entry, is_held(nak, now_ns) ? HELIO_LOST_SUSPENDED : HELIO_LOST_DEADLINE,
                   round);
        return;
    }
    close_request(nak, entry);
    if (is_held(nak, now_ns) && !nak->config.never_asks) {
        enter(nak, entry, HELIO_NAK_BACK_OFF, nak->held_until_ns + backoff_due_ns - now_ns);
        return;
    }
    if (entry->is_overtaken) {
        entry->is_overtaken = false;
        entry->overtaken++;
        enter(nak, entry, HELIO_NAK_BACK_OFF, backoff_due_ns);
        return;
    }
    switch ((helio_nak_state)entry->state) {
    case HELIO_NAK_BACK_OFF:
        if (nak->config.never_asks) {
            round_lose(nak, entry, HELIO_LOST_NOT_REQUESTED, round);
        } else if (can_ask && (round->is_near || nak->ask_room > round->ask_count)) {
            round_ask(nak, entry, now_ns, round);
        } else if (can_ask) {
            put_off(nak, entry);
        } else {
            enter(nak, entry, HELIO_NAK_BACK_OFF,
                  now_ns + repeat_base_ns(nak, &nak->source.confirming));
        }
        break;
    case HELIO_NAK_WAIT_NCF:
        if (entry->is_near) {
            enter(nak, entry, HELIO_NAK_BACK_OFF, backoff_due_ns);
        } else if (entry->ncf_retries++ >= nak->config.retries) {
            round_lose(nak, entry, HELIO_LOST_NCF_RETRIES, round);
        } else {
            enter(nak, entry, HELIO_NAK_BACK_OFF, backoff_due_ns);
        }
        break;
    case HELIO_NAK_WAIT_DATA:
        if (entry->is_near) {
            enter(nak, entry, HELIO_NAK_BACK_OFF, backoff_due_ns);
        } else if (entry->data_retries++ >= nak->config.retries) {
            round_lose(nak, entry, HELIO_LOST_DATA_RETRIES, round);
        } else {
            enter(nak, entry, HELIO_NAK_BACK_OFF, backoff_due_ns);
        }
        break;
    case HELIO_NAK_NONE:
    case HELIO_NAK_GRACE:
        assert(!"not in the heap");
    }
}

bool helio_nak_poll(helio_nak *nak, bool can_ask, int64_t now_ns, helio_nak_round *round) {
    const size_t asks_max = sizeof round->asks / sizeof round->asks[0];
    const size_t losses_max = sizeof round->losses / sizeof round->losses[0];
    round->ask_count = round->retried = round->loss_count = 0;
    round->is_near = false;
    end_grace_by_time(nak, now_ns);
    int64_t backoff_due_ns = -1;
    while (nak->heap_count > 0 && heap_entry(nak, 0)->due_ns <= now_ns &&
           round->ask_count < asks_max && round->loss_count < losses_max) {
        helio_nak_entry *entry = heap_entry(nak, 0);
        const bool is_near = goes_near(nak, entry, now_ns);
        if (round->ask_count > 0 && is_near != round->is_near) {
            break;
        }
        round->is_near = is_near;
        if (backoff_due_ns < 0) {
            backoff_due_ns = now_ns + draw_backoff(nak);
        }
        fire(nak, entry, can_ask, backoff_due_ns, now_ns, round);
    }
    return round->ask_count > 0 || round->loss_count > 0;
}

int64_t helio_nak_next_deadline_ns(const helio_nak *nak) {
    int64_t deadline_ns = nak->heap_count > 0 ? heap_entry(nak, 0)->due_ns : HELIO_NEVER;
    for (uint64_t i = nak->grace_first; i != nak->grace_end; i++) {
        const uint64_t sequence = nak->grace[i & nak->mask];
        if (helio_nak_state_of(nak, sequence) != HELIO_NAK_GRACE) {
            continue;
        }
        const int64_t due_ns = entry_of(nak, sequence)->due_ns;
        return due_ns < deadline_ns ? due_ns : deadline_ns;
    }
    return deadline_ns;
}
