/* What the benchmark programs share: two processes pinned one to a core, one board of figures
 * between them, and one line of JSON at the end, so that every program measures the same way.
 *
 *   latency     closed ping-pong; half of each round trip into an HDR histogram
 *   throughput  messages counted where they arrive, by the sender's clock; some messages carry the
 *               time they were handed over, and their age where they arrive is the latency
 *
 * The time begins when the first message has arrived; its first fifth warms up and is not counted.
 * Where other programs keep a core for so long that there is nothing to count it goes on a while.
 *
 * The parent (core 0) pings or pours, the child (core 1) echoes or counts.  Each message begins
 * with its number, which the echo brings back: an answer that comes after it was given up is not
 * taken for the next one's.  A child that dies stops the parent; a parent that dies takes the child
 * with it; an alarm ends both. */
#ifndef HELIO_BENCH_DUEL_H
#define HELIO_BENCH_DUEL_H

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "stats/hdr.h"

enum { DUEL_SIZE_MIN = 8, DUEL_SIZE_MAX = 1400 };

#define DUEL_MARK 0xA5u /* the first byte of a sampled message; of no other */
#define DUEL_GIVE_UP_NS INT64_C(50000000)
#define DUEL_START_NS INT64_C(5000000000) /* for the first message to arrive */
#define DUEL_INLINE static inline __attribute__((always_inline))

typedef struct duel_board {
    _Alignas(128) _Atomic int ready; /* processes that can be sent to */
    _Atomic int stop;
    _Atomic int is_warm;
    _Alignas(128) _Atomic uint64_t received; /* messages */
    _Alignas(128) _Atomic uint64_t lost;
    helio_hdr latency;
} duel_board;

typedef struct duel {
    const char *what; /* the first argument */
    size_t size;      /* of a message */
    double seconds;
    int port; /* and the few after it */
    int argc; /* options of the program's own: pairs of name and value */
    char **argv;
    duel_board *board;
    pid_t child; /* 0 in the child */
} duel;

static const char *duel_program;
static duel_board *duel_shared; /* for the signal handler */

static inline int64_t duel_now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

static inline void duel_fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s: %s\n", duel_program, what, why && *why ? why : strerror(errno));
    exit(1);
}

static inline void duel_pin(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        fprintf(stderr, "%s: cannot pin to core %d: %s\n", duel_program, core, strerror(errno));
    }
}

/* ---- beginning and end ---- */

/* Value of an option of the program's own, or `fallback`. */
static inline const char *duel_option(const duel *d, const char *name, const char *fallback) {
    for (int i = 0; i + 1 < d->argc; i += 2) {
        if (strcmp(d->argv[i], name) == 0) {
            return d->argv[i + 1];
        }
    }
    return fallback;
}

static inline void duel_usage(const char *usage) {
    fprintf(stderr,
            "usage: %s %s [--size BYTES] [--seconds S] [--port PORT]\n"
            "  size %d to %d, seconds 0.05 to 86400, port 1024 to 65000\n",
            duel_program, usage, DUEL_SIZE_MIN, DUEL_SIZE_MAX);
    exit(2);
}

/* Reads the command line; `names` are the program's own options, NULL at the end. */
static inline void duel_init(duel *d, int argc, char **argv, const char *usage,
                             const char *const *names) {
    duel_program = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    *d = (duel){.size = 64, .seconds = 1.0, .port = 17500};
    if (argc < 2 || argc % 2 != 0) {
        duel_usage(usage);
    }
    d->what = argv[1];
    d->argc = argc - 2;
    d->argv = argv + 2;
    for (int i = 0; i + 1 < d->argc; i += 2) {
        const char *name = d->argv[i], *value = d->argv[i + 1];
        bool known = strcmp(name, "--size") == 0 || strcmp(name, "--seconds") == 0 ||
                     strcmp(name, "--port") == 0;
        for (const char *const *own = names; own && *own; own++) {
            known = known || strcmp(name, *own) == 0;
        }
        if (!known || !*value) {
            duel_usage(usage);
        }
    }
    char *size_end, *seconds_end, *port_end;
    d->size = strtoul(duel_option(d, "--size", "64"), &size_end, 10);
    d->seconds = strtod(duel_option(d, "--seconds", "1"), &seconds_end);
    d->port = (int)strtol(duel_option(d, "--port", "17500"), &port_end, 10);
    if (*size_end || *seconds_end || *port_end || d->size < DUEL_SIZE_MIN ||
        d->size > DUEL_SIZE_MAX || !(d->seconds >= 0.05 && d->seconds <= 86400) || d->port < 1024 ||
        d->port > 65000) {
        duel_usage(usage);
    }
}

static inline void duel_on_child(int number) {
    (void)number;
    duel_shared->stop = 1;
}

/* Makes the second process.  Returns true in the child. */
static inline bool duel_fork(duel *d) {
    d->board =
        mmap(NULL, sizeof *d->board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (d->board == MAP_FAILED) {
        duel_fail("mmap", NULL);
    }
    helio_hdr_init(&d->board->latency);
    duel_shared = d->board;
    struct sigaction on_child = {.sa_handler = duel_on_child, .sa_flags = SA_RESTART};
    sigaction(SIGCHLD, &on_child, NULL);
    const pid_t parent = getpid();
    d->child = fork();
    if (d->child < 0) {
        duel_fail("fork", NULL);
    }
    alarm((unsigned)(d->seconds * 1.2) + 20);
    if (d->child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
        duel_pin(1);
        return true;
    }
    duel_pin(0);
    return false;
}

/* Waits until `count` processes said that they are ready. */
static inline void duel_wait_ready(const duel *d, int count) {
    const int64_t until_ns = duel_now_ns() + INT64_C(10000000000);
    while (d->board->ready < count && !d->board->stop) {
        if (duel_now_ns() > until_ns) {
            duel_fail("start", "the other process is not ready after 10 s");
        }
        usleep(100);
    }
}

/* Stops the child and looks how it ended. */
static inline void duel_end(const duel *d) {
    d->board->stop = 1;
    int status = 0;
    for (int tries = 0; waitpid(d->child, &status, WNOHANG) == 0; tries++) {
        if (tries == 3000) {
            kill(d->child, SIGKILL);
        }
        usleep(1000);
    }
    if (status != 0) {
        fprintf(stderr, "%s: the other process ended with status %d\n", duel_program, status);
        exit(1);
    }
}

/* ---- latency ---- */

/* What send and receive do with a message: they get a number along.  receive returns whether one
 * came, without waiting. */
typedef void duel_send(void *channel, uint64_t number, size_t size);
typedef bool duel_receive(void *channel, uint64_t *number);

DUEL_INLINE void duel_ping(const duel *d, void *channel, duel_send *send, duel_receive *receive) {
    duel_board *board = d->board;
    const int64_t length_ns = (int64_t)(d->seconds * 1e9);
    int64_t warm_ns = INT64_MAX, end_ns = duel_now_ns() + DUEL_START_NS;
    bool is_begun = false, is_counted = false;
    for (uint64_t number = 1; !board->stop; number++) {
        const int64_t sent_ns = duel_now_ns();
        if (sent_ns >= end_ns && (is_counted || !is_begun || sent_ns >= end_ns + DUEL_START_NS)) {
            break;
        }
        send(channel, number, d->size);
        uint64_t answer = 0;
        for (unsigned spins = 1;; spins++) {
            if (receive(channel, &answer) && answer == number) {
                break;
            }
            if (spins % 1024 == 0 && (board->stop || duel_now_ns() - sent_ns > DUEL_GIVE_UP_NS)) {
                answer = 0;
                break;
            }
        }
        const int64_t now_ns = duel_now_ns();
        if (!is_begun) {
            if (answer) {
                is_begun = true;
                warm_ns = now_ns + length_ns / 5;
                end_ns = now_ns + length_ns;
            }
        } else if (!answer) {
            board->lost++;
        } else if (sent_ns > warm_ns) {
            helio_hdr_record(&board->latency, (now_ns - sent_ns) / 2, 1);
            is_counted = true;
        }
    }
}

DUEL_INLINE void duel_echo(const duel *d, void *channel, duel_send *send, duel_receive *receive) {
    uint64_t number;
    d->board->ready++;
    while (!atomic_load_explicit(&d->board->stop, memory_order_relaxed)) {
        if (receive(channel, &number)) {
            send(channel, number, d->size);
        }
    }
}

/* ---- throughput ---- */

/* Sampling.  The sender marks one message of each call or round, at a place that moves; the
 * receiver, which looks at the first byte of each message anyway, takes its time only when that
 * byte is the mark.  One message in some hundreds costs a look at the clock at each end. */

DUEL_INLINE void duel_mark(void *message) {
    const uint64_t stamp = (uint64_t)duel_now_ns() << 8 | DUEL_MARK;
    memcpy(message, &stamp, sizeof stamp);
}

DUEL_INLINE void duel_unmark(void *message) {
    memset(message, 0, sizeof(uint64_t));
}

/* Which of `count` messages is marked in this round. */
static inline size_t duel_marked(size_t count) {
    static size_t round;
    return round++ * 61 % count;
}

DUEL_INLINE void duel_arrive(duel_board *board, const void *message) {
    if (__builtin_expect(*(const unsigned char *)message == DUEL_MARK, 0) &&
        atomic_load_explicit(&board->is_warm, memory_order_relaxed)) {
        uint64_t stamp;
        memcpy(&stamp, message, sizeof stamp);
        helio_hdr_record(&board->latency, duel_now_ns() - (int64_t)(stamp >> 8), 1);
    }
}

/* Sends some messages, as many as one call takes at best. */
typedef void duel_pour_some(void *channel);
/* Takes what is there, without waiting; returns how many messages. */
typedef uint64_t duel_take_some(void *channel);

/* Messages per second that arrived. */
DUEL_INLINE double duel_pour(const duel *d, void *channel, duel_pour_some *pour) {
    duel_board *board = d->board;
    const int64_t start_ns = duel_now_ns();
    while (!atomic_load_explicit(&board->received, memory_order_relaxed) && !board->stop &&
           duel_now_ns() - start_ns < DUEL_START_NS) {
        pour(channel);
    }
    const int64_t begin_ns = duel_now_ns(), end_ns = begin_ns + (int64_t)(d->seconds * 1e9),
                  warm_ns = begin_ns + (end_ns - begin_ns) / 5;
    int64_t since_ns = 0, now_ns = begin_ns;
    uint64_t base = 0, messages = 0;
    while ((now_ns < end_ns || (!messages && now_ns < end_ns + DUEL_START_NS)) &&
           !atomic_load_explicit(&board->stop, memory_order_relaxed)) {
        pour(channel);
        now_ns = duel_now_ns();
        const uint64_t received = atomic_load_explicit(&board->received, memory_order_relaxed);
        if (!since_ns && now_ns >= warm_ns) {
            since_ns = now_ns;
            base = received;
            board->is_warm = 1;
        }
        messages = since_ns ? received - base : 0;
    }
    return now_ns > since_ns && since_ns ? (double)messages * 1e9 / (double)(now_ns - since_ns) : 0;
}

DUEL_INLINE void duel_count(const duel *d, void *channel, duel_take_some *take) {
    uint64_t received = 0;
    d->board->ready++;
    while (!atomic_load_explicit(&d->board->stop, memory_order_relaxed)) {
        const uint64_t got = take(channel);
        if (got) {
            received += got;
            atomic_store_explicit(&d->board->received, received, memory_order_relaxed);
        }
    }
}

/* ---- figures ---- */

static inline uint64_t duel_samples(const helio_hdr *hdr) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < HELIO_HDR_CELLS; i++) {
        total += hdr->counts[i];
    }
    return total;
}

static inline long long duel_percentile(const helio_hdr *hdr, double share) {
    uint64_t rank = (uint64_t)(share * (double)duel_samples(hdr) + 0.999999), seen = 0;
    for (uint32_t i = 0; i < HELIO_HDR_CELLS; i++) {
        seen += hdr->counts[i];
        if (seen >= (rank > 0 ? rank : 1)) {
            const int shift = i < 2048 ? 0 : (int)(i >> 10) - 1;
            return (long long)((((uint64_t)i - ((uint64_t)shift << 10)) + 1) << shift) - 1;
        }
    }
    return 0;
}

static inline void duel_print_percentiles(const helio_hdr *hdr) {
    printf("\"count\": %llu, \"p50_ns\": %lld, \"p99_ns\": %lld, \"p999_ns\": %lld, \"max_ns\": "
           "%lld, ",
           (unsigned long long)duel_samples(hdr), duel_percentile(hdr, 0.5),
           duel_percentile(hdr, 0.99), duel_percentile(hdr, 0.999), duel_percentile(hdr, 1.0));
}

static inline void duel_print_latency(const duel *d) {
    const helio_hdr *hdr = &d->board->latency;
    printf("{\"what\": \"%s\", \"size\": %zu, ", d->what, d->size);
    duel_print_percentiles(hdr);
    printf("\"round_trip_p50_ns\": %lld, \"lost\": %llu}\n", 2 * duel_percentile(hdr, 0.5),
           (unsigned long long)d->board->lost);
    if (duel_samples(hdr) == 0) {
        fprintf(stderr, "%s: no answer came\n", duel_program);
        exit(1);
    }
}

/* Every program here is a thousand times as fast.  One that stands still and then passes a few
 * messages, as libzmq over epgm may, was not measured. */
#define DUEL_RATE_MIN 1000

static inline void duel_print_throughput(const duel *d, double rate) {
    if (rate < DUEL_RATE_MIN) {
        fprintf(stderr, "%s: only %.0f messages arrived per second\n", duel_program, rate);
        exit(1);
    }
    if (duel_samples(&d->board->latency) == 0) { /* a rate without its latency is not printed */
        fprintf(stderr, "%s: no sampled message arrived\n", duel_program);
        exit(1);
    }
    printf("{\"what\": \"%s\", \"size\": %zu, ", d->what, d->size);
    duel_print_percentiles(&d->board->latency);
    printf("\"messages_per_second\": %.0f, \"megabytes_per_second\": %.2f, \"lost\": %llu}\n", rate,
           rate * (double)d->size / 1e6, (unsigned long long)d->board->lost);
}

/* A program whose two ends are alike: `open` makes one of them. */
typedef struct duel_ends {
    void *(*open)(const duel *d);
    duel_send *send;
    duel_receive *receive;
    duel_pour_some *pour;
    duel_take_some *take;
    void (*close)(void *channel); /* may be NULL */
} duel_ends;

/* Plays `latency` or `throughput`, prints the figures.  Returns the exit status. */
DUEL_INLINE int duel_play(duel *d, const duel_ends ends) {
    const bool is_latency = strcmp(d->what, "latency") == 0;
    if (duel_fork(d)) {
        void *channel = ends.open(d);
        if (is_latency) {
            duel_echo(d, channel, ends.send, ends.receive);
        } else {
            duel_count(d, channel, ends.take);
        }
        if (ends.close) {
            ends.close(channel);
        }
        _exit(0);
    }
    void *channel = ends.open(d);
    duel_wait_ready(d, 1);
    double rate = 0;
    if (is_latency) {
        duel_ping(d, channel, ends.send, ends.receive);
    } else {
        rate = duel_pour(d, channel, ends.pour);
    }
    duel_end(d);
    if (ends.close) {
        ends.close(channel);
    }
    if (is_latency) {
        duel_print_latency(d);
    } else {
        duel_print_throughput(d, rate);
    }
    return 0;
}

#endif
