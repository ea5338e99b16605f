/* A running engine neither allocates nor locks: every message takes the same way through memory
 * that was there before.
 *
 * The functions that would be called are the program's own here (the C library lets a program bring
 * its malloc), so calls from inside the C library count as well.  They are counted for the thread
 * of the engine: in mode thread that is every thread but this one, in mode poll it is this one,
 * whose application does not allocate either.  What the application's side does is counted apart:
 * its lock of the submit queue, which keeps its own threads from each other, shows that counting
 * works. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

#include <stdio.h>

int main(void) {
    printf("sanitizers have a malloc of their own: nothing to count here\n");
    return 0;
}

#else

#include "check.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <heliograph/heliograph.h>

enum { MESSAGES = 1000000, WARM_UP = 200000, AT_ONCE = 64, AHEAD = 1024 };

/* ---- counting ---- */

typedef enum side { ENGINE, APPLICATION, SIDES } side;
typedef enum call { ALLOCATE, RELEASE, MAP, LOCK, FUTEX, CALLS } call;

static const char *const call_names[CALLS] = {"allocations", "releases", "mappings", "locks",
                                              "futex calls"};
static _Thread_local side caller = ENGINE;
static _Atomic uint64_t calls[SIDES][CALLS];

static void count(call which) {
    atomic_fetch_add_explicit(&calls[caller][which], 1, memory_order_relaxed);
}

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

/* The C library finds them too. */
#pragma GCC visibility push(default)

void *malloc(size_t bytes) {
    count(ALLOCATE);
    return __libc_malloc(bytes);
}

void *calloc(size_t number, size_t bytes) {
    count(ALLOCATE);
    return __libc_calloc(number, bytes);
}

void *realloc(void *memory, size_t bytes) {
    count(ALLOCATE);
    return __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    count(ALLOCATE);
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
    count(ALLOCATE);
    *memory = __libc_memalign(alignment, bytes);
    return *memory ? 0 : ENOMEM;
}

void free(void *memory) {
    if (memory) {
        count(RELEASE);
    }
    __libc_free(memory);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) {
    count(MAP);
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

int munmap(void *at, size_t bytes) {
    count(MAP);
    return (int)syscall(SYS_munmap, at, bytes);
}

int madvise(void *at, size_t bytes, int advice) {
    count(MAP);
    return (int)syscall(SYS_madvise, at, bytes, advice);
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    static int (*_Atomic real)(pthread_mutex_t *);
    if (!real) {
        void *const found = dlsym(RTLD_NEXT, "pthread_mutex_lock");
        int (*function)(pthread_mutex_t *);
        memcpy(&function, &found, sizeof function);
        real = function;
    }
    count(LOCK);
    return real(mutex);
}

long syscall(long number, ...) {
    static long (*_Atomic real)(long, ...);
    if (!real) {
        void *const found = dlsym(RTLD_NEXT, "syscall");
        long (*function)(long, ...);
        memcpy(&function, &found, sizeof function);
        real = function;
    }
    if (number == SYS_futex) {
        count(FUTEX);
    }
    long a[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++) {
        a[i] = va_arg(arguments, long);
    }
    va_end(arguments);
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#pragma GCC visibility pop

static void counting_counts(void) {
    for (side of = ENGINE; of < SIDES; of++) {
        const uint64_t before[] = {calls[of][ALLOCATE], calls[of][RELEASE], calls[of][LOCK]};
        pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        caller = of;
        void *volatile memory = malloc(10);
        free(memory);
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        caller = APPLICATION;
        CHECK_EQUAL(calls[of][ALLOCATE], before[0] + 1);
        CHECK_EQUAL(calls[of][RELEASE], before[1] + 1);
        CHECK_EQUAL(calls[of][LOCK], before[2] + 1);
    }
}

/* ---- traffic ---- */

typedef struct traffic {
    helio_instance *source, *sink;
    helio_transmitter *transmitter;
    helio_receiver *receiver;
    bool polled;
    uint64_t sent, received, recovered;
} traffic;

static void open_traffic(traffic *t, const char *mode, const char *endpoint, const char *options) {
    *t = (traffic){.polled = strcmp(mode, "poll") == 0};
    char text[96];
    snprintf(text, sizeof text, "mode=%s&stats=memory", mode);
    if (helio_instance_create(text, &t->source) < 0 || helio_instance_create(text, &t->sink) < 0 ||
        helio_receiver_create(t->sink, endpoint, "A", options, NULL, &t->receiver) < 0 ||
        helio_transmitter_create(t->source, endpoint, "A", "linger=0", &t->transmitter) < 0) {
        CHECK_FAIL("%s", helio_error_text());
    }
}

static void work(traffic *t) {
    if (t->polled) {
        helio_instance_poll(t->source);
        helio_instance_poll(t->sink);
    } else {
        sched_yield();
    }
}

/* Sends and takes in until `until` messages have come. */
static void go_on(traffic *t, uint64_t until) {
    static const uint8_t body[50];
    static helio_buffer buffers[AT_ONCE];
    static helio_message messages[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) {
        buffers[i] = (helio_buffer){body, sizeof body};
    }
    for (uint64_t silent = 0; t->received < until;) {
        if (t->sent < until && t->sent - t->received < AHEAD) {
            const uint64_t left = until - t->sent;
            size_t accepted;
            helio_transmitter_send_many(t->transmitter, buffers,
                                        left < AT_ONCE ? (size_t)left : AT_ONCE, &accepted);
            t->sent += accepted;
        }
        const int count = helio_receiver_receive(t->receiver, messages, AT_ONCE, 0);
        CHECK(count >= 0);
        for (int i = 0; i < count; i++) {
            CHECK_EQUAL(messages[i].number, t->received + (uint64_t)i);
            t->recovered += messages[i].flags & HELIO_MESSAGE_RECOVERED;
        }
        t->received += (uint64_t)count;
        silent = count ? 0 : silent + 1;
        CHECK(silent < 100000000);
        if (!count) {
            work(t);
        }
    }
}

static void nothing_is_allocated_or_locked(const char *mode, const char *endpoint,
                                           const char *options) {
    traffic t;
    open_traffic(&t, mode, endpoint, options);
    caller = t.polled ? ENGINE : APPLICATION;
    go_on(&t, WARM_UP);
    const uint64_t recovered_before = t.recovered;
    uint64_t before[SIDES][CALLS];
    for (int i = 0; i < SIDES * CALLS; i++) {
        before[i / CALLS][i % CALLS] = calls[i / CALLS][i % CALLS];
    }
    go_on(&t, WARM_UP + MESSAGES);
    uint64_t made[SIDES][CALLS];
    for (int i = 0; i < SIDES * CALLS; i++) {
        made[i / CALLS][i % CALLS] = calls[i / CALLS][i % CALLS] - before[i / CALLS][i % CALLS];
    }
    caller = APPLICATION;
    const bool is_lossy = options != NULL;
    CHECK(!is_lossy || t.recovered > recovered_before);
    helio_instance_destroy(t.source);
    helio_instance_destroy(t.sink);
    for (call which = ALLOCATE; which < CALLS; which++) {
        if (made[ENGINE][which]) {
            CHECK_FAIL("%" PRIu64 " %s by the engine in %d messages", made[ENGINE][which],
                       call_names[which], MESSAGES);
        }
    }
    CHECK_EQUAL(made[APPLICATION][ALLOCATE], 0);
    CHECK_EQUAL(made[APPLICATION][RELEASE], 0);
    if (t.polled) {
        CHECK_EQUAL(made[APPLICATION][LOCK], 0);
    } else {
        CHECK(made[APPLICATION][LOCK] >= MESSAGES / AT_ONCE);
    }
}

static const char *endpoint(const char *format, int n) {
    static char text[96];
    snprintf(text, sizeof text, format, 20000 + getpid() * 16 % 40000 + n);
    return text;
}

/* The first time a reader of a ring sleeps, whoever wakes it looks its bell up: some other time. */
#define AWAKE "thread&idle=yield"
#define GROUP "rmm://239.192.33.9:%d?interface=127.0.0.1&ttl=0"
#define HOST "rmm+unicast://127.0.0.1:%d"

static void to_a_group_in_mode_thread(void) {
    nothing_is_allocated_or_locked("thread", endpoint(GROUP, 0), NULL);
}

static void to_a_group_in_mode_poll(void) {
    nothing_is_allocated_or_locked("poll", endpoint(GROUP, 1), NULL);
}

static void through_loss_in_mode_thread(void) {
    nothing_is_allocated_or_locked("thread", endpoint(HOST, 2), "inject_loss=0.01&nak_deadline=30");
}

static void through_loss_in_mode_poll(void) {
    nothing_is_allocated_or_locked("poll", endpoint(HOST, 3), "inject_loss=0.01&nak_deadline=30");
}

static void in_shared_memory_in_mode_thread(void) {
    nothing_is_allocated_or_locked(AWAKE, endpoint("shm://steady-%d", 4), NULL);
}

static void in_shared_memory_in_mode_poll(void) {
    nothing_is_allocated_or_locked("poll", endpoint("shm://steady-%d", 5), NULL);
}

static void within_the_process_in_mode_thread(void) {
    nothing_is_allocated_or_locked(AWAKE, endpoint("inproc://steady-%d", 6), NULL);
}

static void over_a_connection_in_mode_thread(void) {
    nothing_is_allocated_or_locked("thread", endpoint("rum://127.0.0.1:%d", 7), NULL);
}

static void over_a_connection_in_mode_poll(void) {
    nothing_is_allocated_or_locked("poll", endpoint("rum://127.0.0.1:%d", 8), NULL);
}

int main(void) {
    caller = APPLICATION;
    /* Rings that come and go nearby are looked for, which takes memory: a folder of our own. */
    char rings[] = "/dev/shm/heliograph-steady-XXXXXX";
    if (!mkdtemp(rings) || setenv("HELIOGRAPH_RING_DIR", rings, 1) != 0) {
        perror(rings);
        return 1;
    }
    RUN(counting_counts);
    RUN(to_a_group_in_mode_thread);
    RUN(to_a_group_in_mode_poll);
    RUN(through_loss_in_mode_thread);
    RUN(through_loss_in_mode_poll);
    RUN(in_shared_memory_in_mode_thread);
    RUN(in_shared_memory_in_mode_poll);
    RUN(within_the_process_in_mode_thread);
    RUN(over_a_connection_in_mode_thread);
    RUN(over_a_connection_in_mode_poll);
    char generation[64];
    snprintf(generation, sizeof generation, "%s/generation", rings);
    unlink(generation);
    if (rmdir(rings) != 0) {
        perror(rings);
        return 1;
    }
    return check_result();
}

#endif
