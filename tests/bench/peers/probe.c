/* Where the two cores are today: one cache line goes back and forth between them.
 *
 *   probe line [--seconds S]
 *
 * On a virtual machine the host may put both virtual cores on one physical core (some tens of
 * nanoseconds half a round trip) or on two (150 and more), and change its mind; figures of the two
 * placements must not be compared with each other. */
#include "../duel.h"

typedef struct lines {
    _Alignas(128) _Atomic uint64_t there;
    _Alignas(128) _Atomic uint64_t back;
} lines;

int main(int argc, char **argv) {
    duel d;
    duel_init(&d, argc, argv, "line", NULL);
    lines *l = mmap(NULL, sizeof *l, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (l == MAP_FAILED) {
        duel_fail("mmap", NULL);
    }
    if (duel_fork(&d)) {
        uint64_t seen = 0;
        d.board->ready++;
        while (!atomic_load_explicit(&d.board->stop, memory_order_relaxed)) {
            const uint64_t now = atomic_load_explicit(&l->there, memory_order_acquire);
            if (now != seen) {
                seen = now;
                atomic_store_explicit(&l->back, seen, memory_order_release);
            }
        }
        _exit(0);
    }
    duel_wait_ready(&d, 1);
    const int64_t end_ns = duel_now_ns() + (int64_t)(d.seconds * 1e9);
    uint64_t number = 0;
    for (int64_t at_ns = 0; at_ns < end_ns && !d.board->stop;) {
        const int64_t from_ns = duel_now_ns();
        atomic_store_explicit(&l->there, ++number, memory_order_release);
        while (atomic_load_explicit(&l->back, memory_order_acquire) != number && !d.board->stop) {
        }
        at_ns = duel_now_ns();
        helio_hdr_record(&d.board->latency, (at_ns - from_ns) / 2, 1);
    }
    duel_end(&d);
    duel_print_latency(&d);
    return 0;
}
