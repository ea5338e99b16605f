/* The two windows. */
#include "base/math.h"
#include "base/outlet.h"
#include "base/random.h"
#include "check.h"
#include "window/rxw.h"
#include "window/txw.h"

/* ---- transmit window ---- */

static void send_one(helio_txw *txw, uint8_t mark) {
    helio_txw_open(txw)[0] = mark;
    helio_txw_commit(txw, 100, mark, 0);
}

static void sent_packets_can_be_found_until_they_leave(void) {
    helio_txw txw;
    const uint64_t first = 1000;
    CHECK_EQUAL(helio_txw_init(&txw, &(helio_txw_config){16, 1472, 0, 0, first}), 0);
    CHECK_EQUAL(helio_txw_count(&txw), 0);
    CHECK(!helio_txw_has(&txw, first));
    for (uint8_t i = 0; i < 40; i++) {
        send_one(&txw, i);
        CHECK_EQUAL(txw.lead, first + i);
        CHECK_EQUAL(helio_txw_count(&txw), i < 16 ? i + 1 : 16);
        CHECK_EQUAL(txw.bytes, helio_txw_count(&txw) * 100);
        for (uint64_t s = txw.trail; s <= txw.lead; s++) {
            CHECK_EQUAL(helio_txw_packet(&txw, s)[0], s - first);
            CHECK_EQUAL(helio_txw_slot_of(&txw, s)->payload_sum, s - first);
        }
    }
    CHECK(helio_txw_has(&txw, first + 24) && !helio_txw_has(&txw, first + 23));
    helio_txw_open(&txw); /* the oldest gives way to the open one */
    CHECK(!helio_txw_has(&txw, first + 24));
    CHECK_EQUAL(txw.trail, first + 25);
    helio_txw_open(&txw);
    CHECK_EQUAL(txw.trail, first + 25);
    helio_txw_fini(&txw);
}

static void who_is_behind_is_so_by_packets_bytes_and_time(void) {
    helio_txw txw;
    const uint64_t first = 1000;
    CHECK_EQUAL(helio_txw_init(&txw, &(helio_txw_config){16, 1472, 0, 0, first}), 0);
    CHECK_EQUAL(helio_txw_behind_of(&txw, first - 1, 5).packets, 0); /* nothing was sent */
    uint64_t bytes[41] = {0};
    for (unsigned i = 0; i < 40; i++) {
        helio_txw_open(&txw);
        helio_txw_commit(&txw, 100 + i, 0, 1000 * i);
        bytes[i + 1] = bytes[i] + 100 + i;
        for (uint64_t position = first - 1; position <= first + i; position++) {
            const helio_txw_behind behind = helio_txw_behind_of(&txw, position, 1000 * i + 7);
            CHECK_EQUAL(behind.packets, first + i - position);
            /* What has left the history is not counted: at least so much. */
            const uint64_t oldest =
                position + 1 > txw.trail ? position + 1 - first : txw.trail - first;
            CHECK_EQUAL(behind.bytes, bytes[i + 1] - bytes[oldest > i ? i + 1 : oldest]);
            CHECK_EQUAL(behind.age_ns, oldest > i ? 0 : 1000 * (i - oldest) + 7);
        }
    }
    CHECK_EQUAL(helio_txw_behind_of(&txw, first + 30, 0).age_ns, 0); /* a clock is never behind */
    CHECK_EQUAL(helio_txw_behind_of(&txw, txw.lead + 5, 0).packets, 0);
    helio_txw_fini(&txw);
}

static void packets_grow_old_only_with_a_limit(void) {
    helio_txw txw;
    CHECK_EQUAL(helio_txw_init(&txw, &(helio_txw_config){64, 1472, 0, 1000, 0x100000000}), 0);
    for (int64_t i = 0; i < 50; i++) {
        helio_txw_open(&txw);
        helio_txw_commit(&txw, 100, 0, 100 * i);
    }
    CHECK_EQUAL(helio_txw_count(&txw), 11); /* 1000 ns at 100 ns each, the edge included */
    helio_txw_expire(&txw, 1000000, 4);
    CHECK_EQUAL(helio_txw_count(&txw), 7);
    txw.floor = txw.lead;
    helio_txw_expire(&txw, 1000000, 100);
    CHECK_EQUAL(helio_txw_count(&txw), 1);
    helio_txw_fini(&txw);
}

static void a_history_of_short_packets_touches_little_memory(void) {
    helio_txw txw;
    enum { PACKETS = 1024, LONGEST = 65507 };
    CHECK_EQUAL(helio_txw_init(&txw, &(helio_txw_config){PACKETS, LONGEST, 0, 0, 0}), 0);
    for (int i = 0; i < 20 * PACKETS; i++) {
        send_one(&txw, 1);
    }
    CHECK_EQUAL(helio_txw_count(&txw), PACKETS);
    CHECK((txw.chunks_count - txw.fresh_count) * txw.chunk_bytes < PACKETS * LONGEST / 10);
    helio_txw_fini(&txw);
}

static void nothing_from_the_floor_on_is_dropped(void) {
    helio_txw txw;
    CHECK_EQUAL(helio_txw_init(&txw, &(helio_txw_config){16, 1472, 0, 0, 1000}), 0);
    for (uint8_t i = 0; i < 20; i++) {
        send_one(&txw, i);
    }
    txw.floor = 1010;
    while (helio_txw_has_room(&txw)) {
        send_one(&txw, 0xFF);
    }
    CHECK_EQUAL(txw.trail, 1010);
    CHECK_EQUAL(txw.lead, 1025);
    CHECK(!helio_txw_open(&txw));
    CHECK_EQUAL(txw.trail, 1010);
    helio_txw_set_limits(&txw, 4, 4 * 1472);
    CHECK_EQUAL(txw.trail, 1010);
    txw.floor = 1011;
    CHECK(!helio_txw_open(&txw)); /* the lower limits want more */
    txw.floor = 1023;
    CHECK(helio_txw_has_room(&txw) && helio_txw_open(&txw));
    CHECK_EQUAL(txw.trail, 1023);
    helio_txw_fini(&txw);
}

/* A window beside the simplest thing that could be one: every packet ever sent, kept for ever. */
enum { TRIAL_PACKETS = 20000, TRIAL_CAPACITY = 256, TRIAL_LONGEST = 9000 };
typedef struct trial_packet {
    uint32_t length;
    int64_t sent_ns;
    uint8_t *memory;
} trial_packet;
typedef struct trial {
    helio_txw txw;
    helio_random random;
    trial_packet *sent; /* by sequence */
    uint64_t trail, lead, packets, bytes, taken;
    int64_t now_ns, age_ns;
    bool is_long; /* all packets are nearly as long as can be */
} trial;

static uint8_t byte_of(uint64_t sequence, size_t place) {
    return (uint8_t)(sequence * 31 + place * 7);
}

static bool is_whole(const trial *t, uint64_t sequence) {
    const uint32_t length = t->sent[sequence].length;
    const uint8_t *memory = t->sent[sequence].memory;
    return memory[0] == byte_of(sequence, 0) &&
           memory[length / 2] == byte_of(sequence, length / 2) &&
           memory[length - 1] == byte_of(sequence, length - 1);
}

static uint64_t rounded(uint64_t length) {
    return (length + 15) / 16 * 16;
}

static void model_drop(trial *t) {
    t->taken -= rounded(t->sent[t->trail++].length);
}

static bool model_is_full(const trial *t) {
    return t->lead + 1 - t->trail >= t->packets || t->taken + rounded(TRIAL_LONGEST) > t->bytes;
}

static bool model_open(trial *t, uint64_t floor) {
    while (model_is_full(t)) {
        if (t->trail > t->lead || t->trail >= floor) {
            return false;
        }
        model_drop(t);
    }
    return true;
}

static void model_age(trial *t, uint64_t floor, int count) {
    for (; t->age_ns && count > 0 && t->trail <= t->lead && t->trail < floor &&
           t->sent[t->trail].sent_ns < t->now_ns - t->age_ns;
         count--) {
        model_drop(t);
    }
}

static void check_against_model(trial *t) {
    CHECK_EQUAL(t->txw.trail, t->trail);
    CHECK_EQUAL(t->txw.lead, t->lead);
    CHECK_EQUAL(t->txw.taken_bytes, t->taken);
    /* A driver may still point at packets that left the window. */
    const uint64_t held = t->lead > HELIO_OUTLET_HOLD ? t->lead - HELIO_OUTLET_HOLD : 1;
    const uint64_t oldest = t->trail < held ? t->trail : held;
    for (int i = 0; i < 4 && oldest <= t->lead; i++) {
        CHECK(is_whole(t, oldest + helio_random_below(&t->random, t->lead + 1 - oldest)));
    }
    if (t->trail <= t->lead) {
        CHECK(is_whole(t, t->trail) && is_whole(t, t->lead));
    }
}

static void send_trial_packet(trial *t) {
    helio_txw *txw = &t->txw;
    const bool has_room = model_open(t, txw->floor);
    CHECK_EQUAL(helio_txw_has_room(txw), has_room);
    uint8_t *memory = helio_txw_open(txw);
    CHECK_EQUAL(memory != NULL, has_room);
    if (!memory) {
        txw->floor = t->lead + 1 - helio_random_below(&t->random, 4);
        return;
    }
    const uint64_t range =
        !t->is_long && helio_random_below(&t->random, 4) > 0 ? 200 : TRIAL_LONGEST;
    const uint64_t least = t->is_long ? TRIAL_LONGEST - 500 : 0;
    const uint32_t length = (uint32_t)(least + 1 + helio_random_below(&t->random, range - least));
    const uint64_t sequence = ++t->lead;
    const bool is_elsewhere = helio_random_below(&t->random, 2) == 0;
    static _Alignas(HELIO_TXW_ALIGNMENT) uint8_t elsewhere[TRIAL_LONGEST + HELIO_TXW_ALIGNMENT];
    uint8_t *packet = is_elsewhere ? elsewhere : memory;
    for (size_t i = 0; i < length; i++) {
        packet[i] = byte_of(sequence, i);
    }
    t->sent[sequence] = (trial_packet){.length = length, .sent_ns = t->now_ns, .memory = memory};
    t->taken += rounded(length);
    CHECK(helio_txw_opened(txw) == memory);
    if (is_elsewhere) {
        helio_txw_commit_copy(txw, elsewhere, length, 0, t->now_ns);
    } else {
        helio_txw_commit(txw, length, 0, t->now_ns);
    }
    CHECK(helio_txw_packet(txw, sequence) == memory);
    model_age(t, txw->floor, 4);
}

static void change_trial_limits(trial *t) {
    t->packets = 1 + helio_random_below(&t->random, TRIAL_CAPACITY);
    t->bytes = 4 * rounded(TRIAL_LONGEST) + helio_random_below(&t->random, 1 << 20);
    if (t->bytes > t->txw.max_bytes) {
        t->bytes = t->txw.max_bytes;
    }
    helio_txw_set_limits(&t->txw, t->packets, t->bytes);
    while (model_is_full(t) && t->trail <= t->lead && t->trail < t->txw.floor) {
        model_drop(t);
    }
}

static void try_window(uint64_t seed) {
    trial t = {.lead = 0, .trail = 1, .packets = TRIAL_CAPACITY, .now_ns = 1};
    helio_random_init(&t.random, seed);
    t.sent = calloc(TRIAL_PACKETS + 1, sizeof *t.sent);
    t.bytes = seed % 3 ? 200000 + helio_random_below(&t.random, 1000000) : 0;
    t.age_ns = seed % 2 ? 3000 : 0;
    t.is_long = seed % 4 < 2;
    const helio_txw_config config = {TRIAL_CAPACITY, TRIAL_LONGEST, t.bytes, t.age_ns, 1};
    CHECK_EQUAL(helio_txw_init(&t.txw, &config), 0);
    t.bytes = t.txw.limit_bytes;
    while (t.lead < TRIAL_PACKETS) {
        const uint64_t what = helio_random_below(&t.random, 1000);
        t.now_ns += (int64_t)helio_random_below(&t.random, what == 0 ? 10000 : 50);
        if (what < 2) {
            change_trial_limits(&t);
        } else if (what < 4) {
            t.txw.floor = what == 2 ? HELIO_TXW_NO_FLOOR : t.lead;
        } else if (what < 6) {
            helio_txw_expire(&t.txw, t.now_ns, 50);
            model_age(&t, t.txw.floor, 50);
        } else {
            send_trial_packet(&t);
        }
        check_against_model(&t);
    }
    helio_txw_fini(&t.txw);
    free(t.sent);
}

static void a_window_does_what_a_list_of_all_packets_would(void) {
    for (uint64_t seed = 1; seed <= 12; seed++) {
        try_window(seed);
    }
}

static void memory_given_back_is_used_again(void) {
    helio_txw txw;
    CHECK_EQUAL(helio_txw_init(&txw, &(helio_txw_config){256, 9000, 0, 0, 1}), 0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1000; i++) {
            memset(helio_txw_open(&txw), i, 9000);
            helio_txw_commit(&txw, 9000, 0, 0);
        }
        const size_t filled = txw.chunks_count - txw.fresh_count;
        helio_txw_set_limits(&txw, 16, 16 * 9008);
        helio_txw_release(&txw);
        CHECK(txw.chunks_count - txw.fresh_count < filled / 4);
        for (uint64_t s = txw.trail; s <= txw.lead; s++) {
            CHECK_EQUAL(helio_txw_packet(&txw, s)[8999], (s - 1) % 1000 & 0xFF);
        }
        helio_txw_set_limits(&txw, 256, UINT64_MAX);
    }
    helio_txw_fini(&txw);
}

/* ---- receive window ---- */

static helio_rxw rxw;
enum { FIRST = 5000, LENT_BYTES = 200 };

static void begin(void) {
    CHECK_EQUAL(helio_rxw_init(&rxw, 16, 64, FIRST), 0);
}

static helio_rxw_result insert(uint64_t sequence) {
    char text[16];
    snprintf(text, sizeof text, "%d", (int)sequence);
    const helio_rxw_packet packet = {.tsdu = (const uint8_t *)text, .bytes = sizeof text};
    return helio_rxw_insert(&rxw, sequence, &packet);
}

static helio_rxw_state state(uint64_t sequence) {
    return (helio_rxw_state)helio_rxw_slot_of(&rxw, sequence)->state;
}

static void packets_in_order_are_appended(void) {
    begin();
    for (uint64_t s = FIRST; s < FIRST + 16; s++) {
        CHECK_EQUAL(insert(s), HELIO_RXW_APPENDED);
    }
    CHECK_EQUAL(rxw.held, 16);
    CHECK_EQUAL(insert(FIRST + 3), HELIO_RXW_DUPLICATE);
    CHECK_EQUAL(insert(FIRST - 1), HELIO_RXW_DUPLICATE);
    for (int s = FIRST; s < FIRST + 16; s++) {
        CHECK_EQUAL(atoi((const char *)helio_rxw_slot_of(&rxw, (uint64_t)s)->packet.tsdu), s);
        helio_rxw_pop(&rxw);
    }
    CHECK(helio_rxw_is_empty(&rxw) && rxw.held == 0);
    helio_rxw_fini(&rxw);
}

static void a_late_packet_fills_its_gap_once(void) {
    begin();
    CHECK_EQUAL(insert(FIRST + 2), HELIO_RXW_OPENED_GAP);
    CHECK_EQUAL(state(FIRST), HELIO_RXW_WAITING);
    CHECK_EQUAL(state(FIRST + 1), HELIO_RXW_WAITING);
    CHECK_EQUAL(insert(FIRST + 1), HELIO_RXW_FILLED_GAP);
    CHECK_EQUAL(insert(FIRST + 1), HELIO_RXW_DUPLICATE);
    CHECK_EQUAL(insert(FIRST), HELIO_RXW_FILLED_GAP);
    CHECK_EQUAL(rxw.held, 3);
    helio_rxw_fini(&rxw);
}

static void what_does_not_fit_is_known_and_wanted_when_there_is_room(void) {
    begin();
    CHECK_EQUAL(insert(FIRST + 16), HELIO_RXW_OVERFLOW);
    CHECK_EQUAL(rxw.known, FIRST + 16);
    CHECK_EQUAL(rxw.lead, FIRST - 1);
    helio_rxw_extend(&rxw, rxw.known);
    CHECK_EQUAL(rxw.lead, FIRST + 15);
    CHECK_EQUAL(insert(FIRST), HELIO_RXW_FILLED_GAP);
    helio_rxw_pop(&rxw);
    helio_rxw_extend(&rxw, rxw.known);
    CHECK_EQUAL(rxw.lead, FIRST + 16);
    CHECK_EQUAL(state(FIRST + 16), HELIO_RXW_WAITING);
    helio_rxw_fini(&rxw);
}

static void one_far_packet_makes_no_more_than_a_window_known(void) {
    begin();
    CHECK_EQUAL(insert(FIRST + 1000000000), HELIO_RXW_OVERFLOW);
    CHECK(rxw.known <= FIRST + 32);
    helio_rxw_extend(&rxw, FIRST + 2000000000);
    CHECK_EQUAL(rxw.lead, FIRST + 15);
    helio_rxw_fini(&rxw);
}

static uint64_t lost_count;

static void count_lost(void *context, uint64_t sequence) {
    (void)context;
    CHECK(sequence >= FIRST);
    lost_count++;
}

static void what_the_source_dropped_is_lost_and_stays_so(void) {
    begin();
    insert(FIRST + 1);
    insert(FIRST + 4);
    lost_count = 0;
    helio_rxw_advance_source(&rxw, FIRST + 3, count_lost, NULL);
    CHECK_EQUAL(lost_count, 2); /* FIRST and FIRST + 2 */
    CHECK_EQUAL(state(FIRST), HELIO_RXW_LOST);
    CHECK_EQUAL(state(FIRST + 1), HELIO_RXW_HELD);
    CHECK_EQUAL(state(FIRST + 3), HELIO_RXW_WAITING);
    CHECK_EQUAL(insert(FIRST), HELIO_RXW_DUPLICATE);
    helio_rxw_advance_source(&rxw, FIRST + 2, count_lost, NULL); /* an old trail changes nothing */
    CHECK_EQUAL(lost_count, 2);
    /* a trail far ahead: slots that appear later are lost from the start */
    helio_rxw_advance_source(&rxw, FIRST + 100, count_lost, NULL);
    CHECK_EQUAL(lost_count, 3);
    helio_rxw_extend(&rxw, FIRST + 8);
    CHECK_EQUAL(state(FIRST + 8), HELIO_RXW_LOST);
    while (!helio_rxw_is_empty(&rxw)) {
        helio_rxw_pop(&rxw);
    }
    helio_rxw_skip(&rxw, rxw.source_trail);
    CHECK_EQUAL(insert(FIRST + 100), HELIO_RXW_APPENDED);
    helio_rxw_fini(&rxw);
}

static void a_packet_passed_on_at_once_leaves_no_trace(void) {
    begin();
    helio_rxw_pass(&rxw);
    CHECK(rxw.trail == FIRST + 1 && helio_rxw_is_empty(&rxw) && rxw.known == FIRST);
    insert(FIRST + 2);
    helio_rxw_pass(&rxw); /* the one that was missing */
    CHECK(rxw.trail == FIRST + 2 && state(FIRST + 1) == HELIO_RXW_EMPTY && rxw.lead == FIRST + 2);
    helio_rxw_fini(&rxw);
}

static void a_window_costs_what_is_held_at_once(void) {
    enum { CAPACITY = 1024, TSDU = 9000 };
    static uint8_t data[TSDU];
    CHECK_EQUAL(helio_rxw_init(&rxw, CAPACITY, TSDU, FIRST), 0);
    for (uint64_t s = FIRST; s < FIRST + 5 * CAPACITY; s += 4) { /* the first of four comes last */
        for (uint64_t i = 1; i <= 4; i++) {
            memset(data, (int)(s + i % 4), sizeof data);
            const helio_rxw_packet packet = {.tsdu = data, .bytes = TSDU};
            helio_rxw_insert(&rxw, s + i % 4, &packet);
        }
        CHECK_EQUAL(rxw.held, 4);
        for (uint64_t i = 0; i < 4; i++) {
            const helio_rxw_packet *held = &helio_rxw_slot_of(&rxw, s + i)->packet;
            CHECK_EQUAL(held->tsdu[0], (uint8_t)(s + i));
            CHECK_EQUAL(held->tsdu[TSDU - 1], (uint8_t)(s + i));
            helio_rxw_pop(&rxw);
        }
    }
    CHECK_EQUAL(rxw.fresh_first, 4);
    helio_rxw_fini(&rxw);
}

/* Holds `count` packets that nothing is missing before, each filled with its number. */
static void hold_some(uint64_t count) {
    uint8_t data[LENT_BYTES];
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t sequence = rxw.lead + 1;
        memset(data, (int)sequence, sizeof data);
        const helio_rxw_packet packet = {.tsdu = data, .bytes = sizeof data};
        CHECK_EQUAL(helio_rxw_insert(&rxw, sequence, &packet), HELIO_RXW_APPENDED);
    }
}

static void what_is_lent_keeps_its_memory(void) {
    enum { CAPACITY = 1024, LENT = 300 };
    const uint8_t *lent[LENT];
    helio_loan loan = {0};
    CHECK_EQUAL(helio_rxw_init(&rxw, CAPACITY, LENT_BYTES, FIRST), 0);
    CHECK(!helio_rxw_may_lend(&rxw)); /* nobody borrows */
    rxw.loan = &loan;
    hold_some(LENT);
    for (size_t i = 0; i < LENT; i++) {
        helio_rxw_offer(&rxw);
        CHECK(helio_rxw_slot_of(&rxw, rxw.trail)->packet.lasts);
        lent[i] = helio_rxw_slot_of(&rxw, rxw.trail)->packet.tsdu;
        loan.is_out = true;
        helio_rxw_pop(&rxw);
    }
    hold_some(CAPACITY - LENT - 255); /* fewer than 256 blocks are left */
    CHECK(!helio_rxw_may_lend(&rxw));
    CHECK_EQUAL(helio_rxw_grow(&rxw, 2 * CAPACITY), 0);
    CHECK(helio_rxw_may_lend(&rxw));
    hold_some(100);
    helio_rxw_fini(&rxw);
    for (size_t i = 0; i < LENT; i++) {
        CHECK_EQUAL(lent[i][0], (uint8_t)(FIRST + i));
        CHECK_EQUAL(lent[i][LENT_BYTES - 1], (uint8_t)(FIRST + i));
    }
    CHECK(loan.retired != NULL);
    helio_loan_end(&loan);
    CHECK(loan.retired == NULL && !loan.is_out);
}

/* The channel's datagrams are lent, and a window too small to lend holds and passes on more packets
 * than it has blocks. */
static void a_window_that_lends_nothing_keeps_nothing_aside(void) {
    enum { CAPACITY = 64 };
    helio_loan loan = {.is_out = true};
    CHECK_EQUAL(helio_rxw_init(&rxw, CAPACITY, LENT_BYTES, FIRST), 0);
    rxw.loan = &loan;
    for (int k = 0; k < 10; k++) {
        hold_some(CAPACITY);
        for (size_t i = 0; i < CAPACITY; i++) {
            helio_rxw_offer(&rxw);
            CHECK(!helio_rxw_slot_of(&rxw, rxw.trail)->packet.lasts);
            helio_rxw_pop(&rxw);
        }
    }
    CHECK_EQUAL(rxw.aside_count, 0);
    helio_rxw_fini(&rxw);
    helio_loan_end(&loan);
}

/* The first messages of a packet are lent, the rest are copied when the window has become full. */
static void a_packet_lent_in_part_keeps_its_memory(void) {
    enum { CAPACITY = 512 };
    helio_loan loan = {0};
    CHECK_EQUAL(helio_rxw_init(&rxw, CAPACITY, LENT_BYTES, FIRST), 0);
    rxw.loan = &loan;
    hold_some(1);
    helio_rxw_offer(&rxw);
    const helio_rxw_packet *packet = &helio_rxw_slot_of(&rxw, rxw.trail)->packet;
    CHECK(packet->lasts);
    const uint8_t *lent = packet->tsdu;
    loan.is_out = true;
    hold_some(CAPACITY - 2);
    helio_rxw_offer(&rxw);
    CHECK(!packet->lasts);
    helio_rxw_pop(&rxw);
    hold_some(1); /* in the one block that is left */
    CHECK_EQUAL(lent[0], (uint8_t)FIRST);
    helio_rxw_fini(&rxw);
    helio_loan_end(&loan);
}

static void memory_comes_back_with_a_loan(void) {
    enum { CAPACITY = 1024, LENT = 300, LOANS = 50 };
    helio_loan loan = {0};
    CHECK_EQUAL(helio_rxw_init(&rxw, CAPACITY, LENT_BYTES, FIRST), 0);
    rxw.loan = &loan;
    for (int k = 0; k < LOANS; k++) {
        hold_some(LENT);
        for (size_t i = 0; i < LENT; i++) {
            helio_rxw_offer(&rxw);
            loan.is_out = true;
            helio_rxw_pop(&rxw);
        }
        helio_loan_end(&loan);
    }
    CHECK_EQUAL(rxw.fresh_first, LENT);
    helio_rxw_fini(&rxw);
}

/* ---- receive window: slots ---- */

enum { WIDE = 1024, NUMBERS = 1 << 20 };

/* What a table with a place for every number says. */
typedef struct table {
    uint8_t state[NUMBERS];
    uint64_t trail, lead;
    helio_random random;
} table;

static uint64_t any_of(table *t, uint64_t from, uint64_t to) {
    return from + helio_random_below(&t->random, to - from + 1);
}

static void take_new(table *t) {
    const uint64_t gap =
        helio_random_below(&t->random, helio_random_below(&t->random, 8) ? 4 : 900);
    const uint64_t sequence = t->lead + 1 + gap;
    if (sequence - t->trail < WIDE) {
        insert(sequence);
        memset(t->state + t->lead + 1, HELIO_RXW_WAITING, gap);
        t->state[sequence] = HELIO_RXW_HELD;
        t->lead = sequence;
    }
}

/* A packet that is waited for comes, or is given up. */
static void end_a_wait(table *t) {
    const uint64_t sequence = t->trail <= t->lead ? any_of(t, t->trail, t->lead) : 0;
    if (sequence == 0 || t->state[sequence] != HELIO_RXW_WAITING) {
        return;
    }
    if (helio_random_below(&t->random, 8)) {
        CHECK_EQUAL(insert(sequence), HELIO_RXW_FILLED_GAP);
        t->state[sequence] = HELIO_RXW_HELD;
    } else {
        helio_rxw_lose(&rxw, sequence, HELIO_LOST_DEADLINE);
        t->state[sequence] = HELIO_RXW_LOST;
    }
}

static void go_back(table *t) {
    const uint64_t begin = t->trail - helio_random_below(&t->random, 40) - 1;
    helio_rxw_go_back(&rxw, begin);
    memset(t->state + begin, HELIO_RXW_WAITING, t->trail - begin);
    t->trail = begin;
    t->lead = helio_min(t->lead, begin + WIDE - 1);
}

static void pass_on(table *t) {
    for (; t->trail <= t->lead && t->state[t->trail] != HELIO_RXW_WAITING; t->trail++) {
        if (t->state[t->trail] == HELIO_RXW_HELD) {
            const helio_rxw_slot *slot = helio_rxw_slot_of(&rxw, t->trail);
            CHECK_EQUAL(atoi((const char *)slot->packet.tsdu), t->trail);
        }
        helio_rxw_pop(&rxw);
    }
    if (t->trail > t->lead) {
        helio_rxw_pass(&rxw);
        t->lead = t->trail++;
    }
}

static void a_window_does_what_a_place_for_every_number_would(void) {
    static table t;
    CHECK_EQUAL(helio_rxw_init(&rxw, WIDE, 64, FIRST), 0);
    t.trail = FIRST;
    t.lead = FIRST - 1;
    helio_random_init(&t.random, 17);
    uint64_t widest = 0, narrow = 0;
    while (t.lead < NUMBERS - 2 * WIDE) {
        take_new(&t);
        for (uint64_t tries = helio_random_below(&t.random, 200); tries > 0; tries--) {
            end_a_wait(&t);
        }
        pass_on(&t);
        if (helio_random_below(&t.random, 100) == 0) {
            go_back(&t);
        }
        CHECK_EQUAL(rxw.trail, t.trail);
        CHECK_EQUAL(rxw.lead, t.lead);
        for (int i = 0; i < 8 && t.trail <= t.lead; i++) {
            const uint64_t sequence = any_of(&t, t.trail, t.lead);
            CHECK_EQUAL(state(sequence), t.state[sequence]);
        }
        widest = rxw.spread > widest ? rxw.spread : widest;
        narrow += rxw.spread == 63;
    }
    CHECK_EQUAL(widest, WIDE - 1);
    CHECK(narrow > 1000);
    helio_rxw_fini(&rxw);
}

static void a_stream_may_begin_earlier_than_it_was_met(void) {
    begin();
    insert(FIRST);
    insert(FIRST + 2);
    helio_rxw_go_back(&rxw, FIRST - 10); /* up to FIRST + 5 there is room */
    CHECK_EQUAL(rxw.trail, FIRST - 10);
    CHECK_EQUAL(rxw.lead, FIRST + 2);
    CHECK_EQUAL(rxw.held, 2);
    CHECK_EQUAL(helio_rxw_slot_of(&rxw, FIRST - 1)->state, HELIO_RXW_WAITING);
    CHECK_EQUAL(helio_rxw_slot_of(&rxw, FIRST)->state, HELIO_RXW_HELD);
    helio_rxw_go_back(&rxw, FIRST - 15); /* now only up to FIRST */
    CHECK_EQUAL(rxw.lead, FIRST);
    CHECK_EQUAL(rxw.known, FIRST + 2);
    CHECK_EQUAL(rxw.held, 1);
    helio_rxw_go_back(&rxw, FIRST - 1000);
    CHECK_EQUAL(rxw.lead, FIRST - 1000 + 15);
    CHECK_EQUAL(rxw.held, 0);
    CHECK_EQUAL(helio_rxw_slot_of(&rxw, rxw.lead)->state, HELIO_RXW_WAITING);
    helio_rxw_fini(&rxw);
}

int main(void) {
    RUN(sent_packets_can_be_found_until_they_leave);
    RUN(who_is_behind_is_so_by_packets_bytes_and_time);
    RUN(packets_grow_old_only_with_a_limit);
    RUN(a_history_of_short_packets_touches_little_memory);
    RUN(nothing_from_the_floor_on_is_dropped);
    RUN(a_window_does_what_a_list_of_all_packets_would);
    RUN(memory_given_back_is_used_again);
    RUN(a_window_costs_what_is_held_at_once);
    RUN(a_window_does_what_a_place_for_every_number_would);
    RUN(a_stream_may_begin_earlier_than_it_was_met);
    RUN(what_is_lent_keeps_its_memory);
    RUN(a_window_that_lends_nothing_keeps_nothing_aside);
    RUN(a_packet_lent_in_part_keeps_its_memory);
    RUN(memory_comes_back_with_a_loan);
    RUN(packets_in_order_are_appended);
    RUN(a_late_packet_fills_its_gap_once);
    RUN(what_does_not_fit_is_known_and_wanted_when_there_is_room);
    RUN(one_far_packet_makes_no_more_than_a_window_known);
    RUN(what_the_source_dropped_is_lost_and_stays_so);
    RUN(a_packet_passed_on_at_once_leaves_no_trace);
    return check_result();
}
