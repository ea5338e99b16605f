/* The harness of the C tests: a test is a function named by the behaviour it shows.
 *
 *     static void a_late_packet_fills_its_gap(void) { CHECK(...); }
 *     int main(void) { RUN(a_late_packet_fills_its_gap); return check_result(); }
 *
 * A failed check says where and what, and the program goes on with the next test. */
#ifndef HELIO_TESTS_CHECK_H
#define HELIO_TESTS_CHECK_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_failures;
static jmp_buf check_out;

#define CHECK_FAIL(...)                                 \
    do {                                                \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
        fprintf(stderr, __VA_ARGS__);                   \
        fputc('\n', stderr);                            \
        longjmp(check_out, 1);                          \
    } while (0)

/* The condition holds. */
#define CHECK(condition)                          \
    do {                                          \
        if (!(condition))                         \
            CHECK_FAIL("not so: %s", #condition); \
    } while (0)

/* Two whole numbers are the same. */
#define CHECK_EQUAL(actual, expected)                                                   \
    do {                                                                                \
        const long long check_a = (long long)(actual), check_e = (long long)(expected); \
        if (check_a != check_e)                                                         \
            CHECK_FAIL("%s is %lld, not %lld", #actual, check_a, check_e);              \
    } while (0)

/* Two pieces of memory hold the same bytes. */
#define CHECK_BYTES(actual, expected, length)                     \
    do {                                                          \
        if (memcmp((actual), (expected), (length)) != 0)          \
            CHECK_FAIL("%s differs from %s", #actual, #expected); \
    } while (0)

#define RUN(test)                        \
    do {                                 \
        if (setjmp(check_out) == 0) {    \
            test();                      \
            printf("ok    %s\n", #test); \
        } else {                         \
            check_failures++;            \
            printf("FAIL  %s\n", #test); \
        }                                \
        fflush(stdout);                  \
    } while (0)

/* What main returns. */
static inline int check_result(void) {
    if (check_failures > 0) {
        fprintf(stderr, "%d failed\n", check_failures);
    }
    return check_failures > 0 ? 1 : 0;
}

#endif
