/* Resident memory of a process with one receiver and default options.  Windows, queues and buffers
 * are reserved when they are made and take memory as packets use them. */
#include <heliograph/heliograph.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "ports.h"

enum { RESIDENT_MAX_KIB = 16 * 1024, IDLE_MAX_KIB = 4 * 1024, MESSAGES = 100000, SIZE = 400 };

#define SECOND INT64_C(1000000000)

static long resident_kib(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;
    CHECK(file);
    CHECK_EQUAL(fscanf(file, "%*d %ld", &pages), 1);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static const char *endpoint_of(const char *scheme) {
    static char text[64];
    const int port = test_port(0);
    if (strcmp(scheme, "shm") == 0) {
        snprintf(text, sizeof text, "shm://resident-%d", port);
    } else {
        snprintf(text, sizeof text, "%s://127.0.0.1:%d", scheme, port);
    }
    return text;
}

static void an_idle_receiver_takes_little_memory(void) {
    static const char *const schemes[] = {"rmm+unicast", "rum", "shm"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        helio_instance *instance;
        helio_receiver *receiver;
        helio_message message;
        const long before_kib = resident_kib();
        CHECK_EQUAL(helio_instance_create("", &instance), 0);
        CHECK_EQUAL(helio_receiver_create(instance, endpoint_of(schemes[i]), "RESIDENT", "", NULL,
                                          &receiver),
                    0);
        CHECK_EQUAL(helio_receiver_receive(receiver, &message, 1, SECOND / 2), 0);
        const long idle_kib = resident_kib();
        printf("      %s: %ld KiB, %ld of them new\n", schemes[i], idle_kib, idle_kib - before_kib);
        CHECK(idle_kib < RESIDENT_MAX_KIB);
        CHECK(idle_kib - before_kib < IDLE_MAX_KIB);
        helio_receiver_destroy(receiver);
        helio_instance_destroy(instance);
    }
}

/* In a process of its own, whose history is not counted. */
static pid_t start_source(const char *endpoint) {
    const pid_t child = fork();
    if (child != 0) {
        return child;
    }
    static const char body[SIZE];
    helio_instance *instance;
    helio_transmitter *transmitter;
    if (helio_instance_create("", &instance) != 0 ||
        helio_transmitter_create(instance, endpoint, "RESIDENT", "", &transmitter) != 0) {
        _exit(1);
    }
    for (int sent = 0; sent < MESSAGES; sent++) {
        helio_transmitter_send(transmitter, body, sizeof body);
        if (sent % 100 == 0) {
            usleep(500);
        }
    }
    pause(); /* heartbeats keep the stream until the test has measured */
    _exit(0);
}

static void a_receiver_that_keeps_up_takes_no_more_for_a_long_stream(void) {
    const char *endpoint = endpoint_of("rmm+unicast");
    helio_instance *instance;
    helio_receiver *receiver;
    helio_message messages[256];
    const pid_t source = start_source(endpoint);
    CHECK(source > 0);
    CHECK_EQUAL(helio_instance_create("", &instance), 0);
    CHECK_EQUAL(helio_receiver_create(instance, endpoint, "RESIDENT", "", NULL, &receiver), 0);
    int received = 0;
    for (int silent = 0; silent < 4;) {
        const int got = helio_receiver_receive(receiver, messages, 256, SECOND / 2);
        CHECK(got >= 0);
        received += got;
        silent = got > 0 ? 0 : silent + 1;
    }
    const long kib = resident_kib();
    printf("      %d messages later: %ld KiB\n", received, kib);
    helio_instance_destroy(instance);
    kill(source, SIGKILL);
    waitpid(source, NULL, 0);
    CHECK(received > MESSAGES / 10);
    CHECK(kib < RESIDENT_MAX_KIB);
}

int main(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("a sanitizer's own memory hides the engine's: nothing is measured\n");
    return 0;
#endif
    RUN(an_idle_receiver_takes_little_memory);
    RUN(a_receiver_that_keeps_up_takes_no_more_for_a_long_stream);
    return check_result();
}
