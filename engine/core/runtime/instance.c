#include "runtime/instance.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/own_file.h"
#include "flight/recording.h"
#include "queue/thread.h"
#include "runtime/loop.h"
#include "runtime/receiver.h"
#include "runtime/transmitter.h"
#include "runtime/tx_lane.h"

#define DEFAULT_FOLDER "/dev/shm/heliograph"

enum {
    OWN_FOLDER_BYTES = sizeof DEFAULT_FOLDER + 16, /* with the number of the user */
    BUILD_BYTES = 64,                              /* of option build, its end included */
    EVENT_BURST = 200, /* most events of one kind at once, above event_rate */
};

bool helio_instance_is_engine(const helio_instance *instance) {
    return instance->mode == HELIO_MODE_THREAD ? pthread_equal(pthread_self(), instance->thread)
                                               : instance->polling;
}

/* ---- identity ---- */

/* The program's name and process id; the second of a process gets "-2" and so on. */
static void name_by_default(char name[HELIO_STATS_NAME_BYTES]) {
    static _Atomic unsigned unnamed;
    const unsigned number = atomic_fetch_add(&unnamed, 1) + 1;
    if (number == 1) {
        snprintf(name, HELIO_STATS_NAME_BYTES, "%.24s-%ld", program_invocation_short_name,
                 (long)getpid());
    } else {
        snprintf(name, HELIO_STATS_NAME_BYTES, "%.24s-%ld-%u", program_invocation_short_name,
                 (long)getpid(), number);
    }
}

static int set_name(helio_instance *instance) {
    const char *name = instance->options.name;
    if (strlen(name) >= sizeof instance->name) {
        return helio_fail(HELIO_ERR_OPTION, "option name has at most %zu bytes",
                          sizeof instance->name - 1);
    }
    if (strlen(instance->options.build) >= BUILD_BYTES) {
        return helio_fail(HELIO_ERR_OPTION, "option build has at most %d bytes", BUILD_BYTES - 1);
    }
    if (!name[0]) {
        name_by_default(instance->name);
    } else {
        strcpy(instance->name, name);
    }
    return 0;
}

static int draw_random(helio_instance *instance) {
    uint64_t seed;
    if (getrandom(instance->gsi, sizeof instance->gsi, 0) < 0 ||
        getrandom(&seed, sizeof seed, 0) < 0) {
        return helio_fail(HELIO_ERR_SYSTEM, "cannot draw random numbers: %s", strerror(errno));
    }
    helio_random_init(&instance->random, seed);
    return 0;
}

/* ---- statistics ---- */

/* Where nobody says it: the folder all users share, unless one of them made it; then, so as not to
 * be at his mercy, one of this user's own.  Monitors look in the same place (monitor/places.py). */
static const char *segment_folder(const helio_instance_options *options,
                                  char own[OWN_FOLDER_BYTES]) {
    struct stat about;
    const char *folder = options->segment_dir;
    if (!folder[0]) {
        folder = getenv("HELIOGRAPH_SEGMENT_DIR");
    }
    if (folder && folder[0]) {
        return folder;
    }
    if (stat(DEFAULT_FOLDER, &about) < 0 || !helio_folder_fault(&about)) {
        return DEFAULT_FOLDER;
    }
    snprintf(own, OWN_FOLDER_BYTES, DEFAULT_FOLDER "-%u", (unsigned)geteuid());
    return own;
}

static void describe(const helio_instance *instance, char *labels, size_t size) {
    static const char *const modes[] = {"thread", "poll"};
    static const char *const idles[] = {"spin", "yield", "backoff", "block"};
    char host[HOST_NAME_MAX + 1] = "";
    char number[24];
    gethostname(host, sizeof host - 1);
    labels[0] = 0;
    helio_stats_label(labels, size, "instance", instance->name);
    helio_stats_label(labels, size, "version", HELIO_VERSION);
    helio_stats_label(labels, size, "build", instance->options.build);
    helio_stats_label(labels, size, "host", host);
    snprintf(number, sizeof number, "%ld", (long)getpid());
    helio_stats_label(labels, size, "pid", number);
    helio_stats_label(labels, size, "mode", modes[instance->mode]);
    helio_stats_label(labels, size, "idle", idles[instance->idle.strategy]);
    snprintf(number, sizeof number, "%lld", (long long)instance->options.cpu);
    helio_stats_label(labels, size, "cpu", number);
    snprintf(number, sizeof number, "%lld", (long long)instance->options.priority);
    helio_stats_label(labels, size, "priority", number);
    helio_stats_label(labels, size, "lock_memory",
                      instance->options.lock_memory ? "true" : "false");
}

/* Mode poll is to stay without threads of the engine: there the option must be given. */
static int start_hiccup(helio_instance *instance) {
    const helio_instance_options *options = &instance->options;
    helio_hdr *histogram = instance->object.histogram[HELIO_INSTANCE_HOST_HICCUP];
    const bool is_wanted = instance->mode == HELIO_MODE_THREAD || options->given.hiccup_interval;
    return histogram && is_wanted && options->hiccup_interval_ns > 0
               ? helio_hiccup_start(&instance->hiccup, histogram, options->hiccup_interval_ns,
                                    options->cpu)
               : 0;
}

static int open_stats(helio_instance *instance) {
    const helio_instance_options *options = &instance->options;
    const bool private = options->stats == HELIO_STATS_MEMORY;
    char own[OWN_FOLDER_BYTES];
    const helio_stats_config config = {
        .name = instance->name,
        .folder = private ? NULL : segment_folder(options, own),
        .bytes = options->segment_bytes,
        .level = options->level,
        .mode = instance->mode,
        .incarnation = helio_random_next(&instance->random),
        .wall_ns = helio_wall_ns(),
        .event_rate = options->event_rate,
        .event_burst = EVENT_BURST,
        .sample = options->sample,
    };
    int error = helio_stats_create(&config, &instance->stats);
    if (error) {
        return error;
    }
    char labels[464];
    describe(instance, labels, sizeof labels);
    error = helio_stats_open_object(instance->stats, HELIO_SCOPE_INSTANCE, labels, config.wall_ns,
                                    &instance->object);
    instance->counts = instance->object.record;
    if (error) {
        return error;
    }
    helio_set(&instance->counts->memory_limit, instance->memory.account.limit_bytes);
    helio_set(&instance->counts->rate_limit, options->rate);
    if (instance->mode == HELIO_MODE_THREAD) {
        helio_stats_apply(&instance->object, HELIO_HAS_THREAD);
    }
    return start_hiccup(instance);
}

static void tell(helio_instance *instance, helio_event_id event, const char *what) {
    helio_stats_event(instance->stats, helio_wall_ns(), event, instance->object.slot,
                      (const uint64_t[4]){(uint64_t)getpid()}, "%s (process %ld) %s",
                      instance->name, (long)getpid(), what);
}

/* ---- thread ---- */

static void *run(void *context) {
    helio_instance *instance = context;
    char name[16];
    snprintf(name, sizeof name, "helio-%.9s", instance->name);
    pthread_setname_np(pthread_self(), name);
    prctl(PR_SET_TIMERSLACK, 1UL); /* ns; timers are in microseconds here */
    helio_loop_run(instance);
    return NULL;
}

static int fail_cpu(int64_t cpu) {
    return helio_fail(HELIO_ERR_OPTION,
                      "option cpu: core %lld is not available to this process (it has %ld cores)",
                      (long long)cpu, sysconf(_SC_NPROCESSORS_ONLN));
}

static void set_cpu(pthread_attr_t *attributes, int64_t cpu) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (cpu >= 0) {
        CPU_SET((int)cpu, &cores);
        pthread_attr_setaffinity_np(attributes, sizeof cores, &cores);
    }
}

static void set_priority(pthread_attr_t *attributes, int64_t priority) {
    const struct sched_param parameters = {.sched_priority = (int)priority};
    if (priority > 0) {
        pthread_attr_setinheritsched(attributes, PTHREAD_EXPLICIT_SCHED);
        pthread_attr_setschedpolicy(attributes, SCHED_FIFO);
        pthread_attr_setschedparam(attributes, &parameters);
    }
}

static int start_thread(helio_instance *instance) {
    const int64_t cpu = instance->options.cpu;
    const int64_t priority = instance->options.priority;
    if (cpu >= CPU_SETSIZE) {
        return fail_cpu(cpu);
    }
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    set_cpu(&attributes, cpu);
    set_priority(&attributes, priority);
    const int error = helio_thread_start(&instance->thread, &attributes, run, instance);
    pthread_attr_destroy(&attributes);
    if (error == EINVAL && cpu >= 0) {
        return fail_cpu(cpu);
    }
    if (error == EPERM && priority > 0) {
        return helio_fail(HELIO_ERR_PERMISSION,
                          "priority=%lld needs the capability CAP_SYS_NICE or a limit "
                          "(RLIMIT_RTPRIO) of at least that; this process has neither",
                          (long long)priority);
    }
    return error ? helio_fail(HELIO_ERR_SYSTEM, "cannot start the engine's thread: %s",
                              strerror(error))
                 : 0;
}

/* ---- memory ---- */

/* Of the whole process; sparse memory stays so until it is touched. */
static int lock_memory(void) {
    if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0) {
        return 0;
    }
    return errno == EPERM || errno == ENOMEM
               ? helio_fail(HELIO_ERR_PERMISSION,
                            "lock_memory needs the capability CAP_IPC_LOCK or a limit "
                            "(RLIMIT_MEMLOCK) above what the process uses")
               : helio_fail(HELIO_ERR_SYSTEM, "cannot lock the memory: %s", strerror(errno));
}

/* ---- life ---- */

static int set_rate(helio_instance *instance) {
    const int64_t rate = instance->options.rate;
    const int error = helio_tx_lane_check_rate(rate);
    if (!error) {
        helio_tx_share_init(&instance->rate, (uint64_t)rate,
                            helio_clock_read(&instance->clock).now_ns);
    }
    return error;
}

/* What the recorder did at the last is told too: nobody else writes any more. */
static void stop_flight(helio_instance *instance) {
    helio_flight_stop(instance->flight);
    helio_flight_tend(instance->flight, helio_wall_ns());
    helio_flight_free(instance->flight);
    instance->flight = NULL;
}

static void destroy(helio_instance *instance) {
    stop_flight(instance);
    helio_hiccup_stop(&instance->hiccup);
    if (instance->stats) {
        helio_stats_tell_held(instance->stats, helio_wall_ns());
        helio_stats_close_object(instance->stats, &instance->object, helio_wall_ns());
    }
    helio_stats_destroy(instance->stats);
    helio_idle_close(&instance->idle);
    helio_commands_fini(&instance->commands);
    helio_options_fini(&instance->options, HELIO_ON_INSTANCE);
    free(instance);
}

static int open_instance(helio_instance *instance, const char *options) {
    helio_clock_source_init(&instance->clock);
    int error = helio_options_init(&instance->options, HELIO_ON_INSTANCE);
    if (!error) {
        error = helio_options_read(&instance->options, HELIO_ON_INSTANCE, options, false);
    }
    if (!error) {
        error = helio_options_apply_profile(&instance->options, HELIO_ON_INSTANCE);
    }
    if (!error) {
        error = set_name(instance);
    }
    if (!error) {
        error = helio_limit_init(instance);
    }
    if (!error) {
        error = draw_random(instance);
    }
    if (!error) {
        error = helio_idle_open(&instance->idle, instance->options.idle);
    }
    if (error) {
        return error;
    }
    instance->mode = instance->options.mode;
    if (instance->mode == HELIO_MODE_POLL && instance->options.priority > 0) {
        return helio_fail(HELIO_ERR_OPTION, "option priority applies to the engine's thread, but "
                                            "an instance of mode=poll has none");
    }
    if (instance->options.lock_memory) {
        error = lock_memory();
        if (error) {
            return error;
        }
    }
    instance->history.limit_bytes = instance->options.history_limit_bytes;
    error = set_rate(instance);
    if (!error) {
        error = open_stats(instance);
    }
    if (error) {
        return error;
    }
    tell(instance, HELIO_EVENT_INSTANCE_STARTED, "started");
    error = helio_flight_start(&(helio_flight_instance){.stats = instance->stats,
                                                        .options = &instance->options,
                                                        .counts = instance->counts,
                                                        .slot = instance->object.slot,
                                                        .name = instance->name},
                               &instance->flight);
    if (error) {
        return error;
    }
    return instance->mode == HELIO_MODE_THREAD ? start_thread(instance) : 0;
}

int helio_instance_create(const char *options, helio_instance **out) {
    helio_instance *instance = helio_allocate(sizeof *instance);
    if (!instance) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for an instance");
    }
    instance->idle.epoll = instance->idle.event = -1;
    helio_commands_init(&instance->commands);
    const int error = open_instance(instance, options);
    if (error) {
        destroy(instance);
        return error;
    }
    *out = instance;
    return 0;
}

/* Closes everything; false: messages still wait to be sent.  Lanes linger on. */
static bool stop(helio_instance *instance, helio_command *command, helio_moment moment) {
    (void)command;
    bool waiting = false;
    for (helio_tx_lane *lane = instance->tx_lanes; lane; lane = lane->next) {
        for (helio_transmitter *t = lane->transmitters, *next; t; t = next) {
            next = t->next;
            if (helio_transmitter_detach(t, moment)) {
                helio_transmitter_free(t);
            } else {
                waiting = true;
            }
        }
    }
    if (waiting) {
        return false;
    }
    for (helio_rx_lane *lane = instance->rx_lanes, *next_lane; lane; lane = next_lane) {
        next_lane = lane->next; /* the lane goes with its last receiver */
        for (helio_receiver *r = lane->receivers, *next; r; r = next) {
            next = r->next;
            helio_receiver_detach(r, moment);
            helio_receiver_free(r);
        }
    }
    instance->stopping = true;
    return true;
}

void helio_instance_destroy(helio_instance *instance) {
    if (!instance) {
        return;
    }
    helio_command command = {.run = stop};
    if (helio_command_execute(instance, &command) < 0) {
        return; /* from a listener: refused */
    }
    if (instance->mode == HELIO_MODE_THREAD) {
        pthread_join(instance->thread, NULL);
    } else {
        helio_loop_run(instance);
    }
    tell(instance, HELIO_EVENT_INSTANCE_STOPPED, "stopped");
    destroy(instance);
}

/* ---- mode poll ---- */

static int check_polled(const helio_instance *instance) {
    if (instance->mode != HELIO_MODE_POLL) {
        return helio_fail_plain(
            HELIO_ERR_STATE,
            "this instance has its own thread; only an instance of mode=poll can be polled");
    }
    if (instance->polling) {
        return helio_fail_plain(HELIO_ERR_STATE, "a listener must not poll: it runs inside a poll");
    }
    return 0;
}

int helio_instance_poll(helio_instance *instance) {
    const int error = check_polled(instance);
    if (error) {
        return error;
    }
    helio_loop_hasten(instance);
    return helio_loop_once(instance);
}

int helio_instance_wait(helio_instance *instance, int64_t timeout_ns) {
    const int error = check_polled(instance);
    if (!error) {
        helio_loop_sleep(instance, helio_deadline_after(timeout_ns));
    }
    return error;
}

const char *helio_instance_name(const helio_instance *instance) {
    return instance->name;
}

int helio_instance_freeze_flight(helio_instance *instance, const char *why) {
    return helio_flight_ask(instance->flight, why && why[0] ? why : "by hand");
}

const char *helio_instance_segment(const helio_instance *instance) {
    return helio_stats_path(instance->stats);
}
