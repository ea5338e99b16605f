/* Threads of an engine beside its own: on which cores they run, and that mode poll has none. */
#include <dirent.h>
#include <heliograph/heliograph.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "flight/recording.h"
#include "runtime/instance.h"

static helio_instance *instance_of(const char *options) {
    helio_instance *instance = NULL;
    if (helio_instance_create(options, &instance) < 0) {
        CHECK_FAIL("%s", helio_error_text());
    }
    return instance;
}

static unsigned count_threads(void) {
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *task; (task = readdir(tasks));) {
        count += task->d_name[0] != '.';
    }
    closedir(tasks);
    return count;
}

static cpu_set_t cores_of(pthread_t thread) {
    cpu_set_t cores;
    CHECK_EQUAL(pthread_getaffinity_np(thread, sizeof cores, &cores), 0);
    return cores;
}

static int first_of(const cpu_set_t *cores) {
    int core = 0;
    while (!CPU_ISSET(core, cores)) {
        core++;
    }
    return core;
}

static void an_instance_of_mode_poll_starts_no_thread(void) {
    const unsigned before = count_threads();
    helio_instance *instance = instance_of("mode=poll&name=alone");
    CHECK_EQUAL(count_threads(), before);
    CHECK_EQUAL(helio_instance_poll(instance), 0);
    CHECK_EQUAL(count_threads(), before);
    helio_instance_destroy(instance);
}

static void the_watcher_of_the_host_is_started_when_it_is_asked_for(void) {
    const unsigned before = count_threads();
    helio_instance *instance = instance_of("mode=poll&name=watched&hiccup_interval=0.001");
    CHECK_EQUAL(count_threads(), before + 1);
    helio_instance_destroy(instance);
    CHECK_EQUAL(count_threads(), before);
}

static void helpers_keep_off_the_core_the_caller_is_pinned_to(void) {
    const cpu_set_t all = cores_of(pthread_self());
    if (CPU_COUNT(&all) < 2) {
        return;
    }
    const int own = first_of(&all);
    cpu_set_t pinned;
    CPU_ZERO(&pinned);
    CPU_SET(own, &pinned);
    pthread_setaffinity_np(pthread_self(), sizeof pinned, &pinned);
    helio_instance *instance = instance_of("name=pinned");
    cpu_set_t expected = all;
    CPU_CLR(own, &expected);
    const cpu_set_t hiccup = cores_of(instance->hiccup.thread);
    const cpu_set_t flight = cores_of(instance->flight->thread);
    CHECK(CPU_EQUAL(&hiccup, &expected));
    CHECK(CPU_EQUAL(&flight, &expected));
    helio_instance_destroy(instance);
    pthread_setaffinity_np(pthread_self(), sizeof all, &all);
}

static void helpers_keep_off_the_core_of_the_engine(void) {
    const cpu_set_t all = cores_of(pthread_self());
    if (CPU_COUNT(&all) < 2) {
        return;
    }
    char options[64];
    snprintf(options, sizeof options, "name=bound&cpu=%d", first_of(&all));
    helio_instance *instance = instance_of(options);
    cpu_set_t expected = all;
    CPU_CLR(first_of(&all), &expected);
    const cpu_set_t hiccup = cores_of(instance->hiccup.thread);
    const cpu_set_t flight = cores_of(instance->flight->thread);
    CHECK(CPU_EQUAL(&hiccup, &expected));
    CHECK(CPU_EQUAL(&flight, &expected));
    helio_instance_destroy(instance);
}

static void helpers_stay_where_nothing_else_is_left(void) {
    const cpu_set_t all = cores_of(pthread_self());
    char options[64];
    cpu_set_t pinned;
    CPU_ZERO(&pinned);
    CPU_SET(first_of(&all), &pinned);
    if (CPU_COUNT(&all) != 2) {
        return;
    }
    pthread_setaffinity_np(pthread_self(), sizeof pinned, &pinned);
    cpu_set_t other = all;
    CPU_CLR(first_of(&all), &other);
    snprintf(options, sizeof options, "name=full&cpu=%d", first_of(&other));
    helio_instance *instance = instance_of(options);
    const cpu_set_t flight = cores_of(instance->flight->thread);
    CHECK(CPU_EQUAL(&flight, &pinned));
    helio_instance_destroy(instance);
    pthread_setaffinity_np(pthread_self(), sizeof all, &all);
}

int main(void) {
    char folder[] = "/dev/shm/helio-test-XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    setenv("HELIOGRAPH_SEGMENT_DIR", folder, 1);
    RUN(an_instance_of_mode_poll_starts_no_thread);
    RUN(the_watcher_of_the_host_is_started_when_it_is_asked_for);
    RUN(helpers_keep_off_the_core_the_caller_is_pinned_to);
    RUN(helpers_keep_off_the_core_of_the_engine);
    RUN(helpers_stay_where_nothing_else_is_left);
    rmdir(folder);
    return check_result();
}
