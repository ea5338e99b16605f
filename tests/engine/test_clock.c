/* The engine's clock: never back, and the kernel's time. */
#include "check.h"

#include <stdlib.h>

#include "io/clock_source.h"

static helio_clock_source source;

static void it_never_goes_back_and_stays_with_the_kernels(void) {
    helio_clock_source_init(&source);
    int64_t last_ns = 0, worst_ns = 0;
    const int64_t end_ns = helio_monotonic_ns() + 60 * HELIO_MILLISECOND;
    for (int64_t kernel_ns = 0; kernel_ns < end_ns;) {
        kernel_ns = helio_monotonic_ns();
        const int64_t now_ns = helio_clock_read(&source).now_ns;
        const int64_t after_ns = helio_monotonic_ns();
        CHECK(now_ns >= last_ns);
        last_ns = now_ns;
        /* Read between two readings of the kernel's; beyond them it is off. */
        const int64_t early_ns = kernel_ns - now_ns, late_ns = now_ns - after_ns;
        const int64_t off_ns = early_ns > late_ns ? early_ns : late_ns;
        worst_ns = off_ns > worst_ns ? off_ns : worst_ns;
    }
    CHECK(worst_ns < 100 * HELIO_MICROSECOND);
}

static void the_wall_clock_is_the_kernels(void) {
    helio_clock_source_init(&source);
    const int64_t before_ns = helio_wall_ns();
    const int64_t wall_ns = helio_clock_read(&source).wall_ns;
    CHECK(wall_ns >= before_ns - HELIO_MILLISECOND);
    CHECK(wall_ns <= helio_wall_ns() + HELIO_MILLISECOND);
}

/* A counter whose rate is wrong, as after a move to another machine, leads back to the kernel. */
static void a_counter_that_jumps_is_not_believed(void) {
    helio_clock_source_init(&source);
    const int64_t end_ns = helio_monotonic_ns() + 30 * HELIO_MILLISECOND;
    while (helio_clock_read(&source).now_ns < end_ns) {
    }
    if (!source.has_counter) {
        return; /* every look asks the kernel here */
    }
    CHECK(source.life_ticks > 0);
    source.anchor_ticks -= UINT64_C(1) << 40; /* the counter is far ahead */
    int64_t kernel_ns = helio_monotonic_ns();
    int64_t now_ns = helio_clock_read(&source).now_ns;
    CHECK(llabs(now_ns - kernel_ns) < 10 * HELIO_MILLISECOND);
    source.anchor_ticks += UINT64_C(1) << 40; /* and far behind */
    kernel_ns = helio_monotonic_ns();
    now_ns = helio_clock_read(&source).now_ns;
    CHECK(llabs(now_ns - kernel_ns) < 10 * HELIO_MILLISECOND);
}

/* Looks up the wall clock anew; how far it is from where it would be without a step. */
static int64_t looked_up(void) {
    source.wall_due_ns = 0;
    source.life_ticks = 0;
    const int64_t wall_ns = helio_clock_read(&source).wall_ns;
    return wall_ns - helio_wall_ns();
}

/* What is known of the wall clock becomes that of a time when it was `by_ns` behind. */
static void set_back(int64_t by_ns) {
    source.offset_ns -= by_ns;
    source.told_offset_ns -= by_ns;
}

static void a_wall_clock_that_is_set_is_noticed_and_followed(void) {
    helio_clock_source_init(&source);
    looked_up();
    CHECK_EQUAL(helio_clock_take_step(&source), 0);
    set_back(3 * HELIO_SECOND); /* so long ago it was 3 s behind where it is now */
    CHECK(llabs(looked_up()) < HELIO_SECOND);
    CHECK(llabs(helio_clock_take_step(&source) - 3 * HELIO_SECOND) < 100 * HELIO_MILLISECOND);
    CHECK_EQUAL(helio_clock_take_step(&source), 0);
    set_back(-40 * HELIO_MILLISECOND); /* now it is set back */
    looked_up();
    CHECK(helio_clock_take_step(&source) < -20 * HELIO_MILLISECOND);
}

static void a_clock_that_nobody_sets_takes_no_steps(void) {
    helio_clock_source_init(&source);
    for (int i = 0; i < 20000; i++) {
        looked_up();
        CHECK_EQUAL(helio_clock_take_step(&source), 0);
    }
}

/* On a busy host readings are off by a microsecond, often all in one direction. */
static void readings_that_are_a_little_off_do_not_add_up_to_a_step(void) {
    helio_clock_source_init(&source);
    looked_up();
    for (int i = 0; i < 1000; i++) {
        source.offset_ns -= 1500;
        looked_up();
        CHECK_EQUAL(helio_clock_take_step(&source), 0);
    }
}

int main(void) {
    RUN(it_never_goes_back_and_stays_with_the_kernels);
    RUN(the_wall_clock_is_the_kernels);
    RUN(a_counter_that_jumps_is_not_believed);
    RUN(a_wall_clock_that_is_set_is_noticed_and_followed);
    RUN(a_clock_that_nobody_sets_takes_no_steps);
    RUN(readings_that_are_a_little_off_do_not_add_up_to_a_step);
    return check_result();
}
