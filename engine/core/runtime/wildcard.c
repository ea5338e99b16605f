#include "runtime/wildcard.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/glob.h"
#include "base/hash.h"
#include "options/control_text.h"
#include "queue/signal.h"
#include "receive/subscriptions.h"
#include "runtime/instance.h"
#include "runtime/loop.h"
#include "runtime/opening.h"
#include "runtime/receiver.h"
#include "runtime/sink.h"

/* A stream repeats what it announces: refusals are reported once a second. */
#define TELL_NS HELIO_SECOND

typedef struct found_topic {
    helio_found_topic shown;
    uint64_t id;
    struct found_topic *next; /* of those that wait */
} found_topic;

struct helio_wildcard {
    helio_instance *instance;
    char *endpoint, *pattern, *options;
    uint32_t limit;
    /* Engine. */
    helio_rx_lane *lane;
    helio_topic_finder finder;
    helio_map by_id; /* of all topics that have a receiver */
    int64_t told_ns;

    _Atomic uint64_t refused;
    _Atomic uint32_t waiting;
    helio_signal news;
    pthread_mutex_t lock; /* of the list */
    found_topic *oldest, *newest;
};

/* ---- engine ---- */

static void refuse(helio_wildcard *wildcard, const char *name, const char *why,
                   helio_moment moment) {
    helio_count(&wildcard->refused, 1);
    if (moment.now_ns < wildcard->told_ns) {
        return;
    }
    wildcard->told_ns = moment.now_ns + TELL_NS;
    helio_stats_event(wildcard->instance->stats, moment.wall_ns, HELIO_EVENT_TOPIC_REFUSED,
                      HELIO_STATS_NO_SLOT, (const uint64_t[4]){wildcard->by_id.count},
                      "topic %s matches %s and is not received: %s", name, wildcard->pattern, why);
}

static bool is_full(const helio_wildcard *wildcard) {
    return wildcard->by_id.count >= wildcard->limit;
}

static int fail_full(const helio_wildcard *wildcard) {
    return helio_fail(HELIO_ERR_NOMEM, "%u topics match %s already, which is the limit",
                      wildcard->limit, wildcard->pattern);
}

/* Opens the topic's receiver and lets it wait to be taken. */
static int open_topic(helio_wildcard *wildcard, const char *name, uint64_t id,
                      helio_moment moment) {
    if (is_full(wildcard)) {
        return fail_full(wildcard);
    }
    found_topic *topic = calloc(1, sizeof *topic);
    if (!topic || helio_map_put(&wildcard->by_id, id, topic)) {
        free(topic);
        return helio_fail_plain(HELIO_ERR_NOMEM, "no memory for a topic");
    }
    topic->id = id;
    memcpy(topic->shown.name, name, strlen(name) + 1);
    const int error = helio_receiver_open_found(wildcard->instance, wildcard->endpoint, name,
                                                wildcard->options, moment, &topic->shown.receiver);
    if (error) {
        helio_map_remove(&wildcard->by_id, id);
        free(topic);
        return error;
    }
    pthread_mutex_lock(&wildcard->lock);
    *(wildcard->oldest ? &wildcard->newest->next : &wildcard->oldest) = topic;
    wildcard->newest = topic;
    pthread_mutex_unlock(&wildcard->lock);
    atomic_fetch_add_explicit(&wildcard->waiting, 1, memory_order_release);
    helio_signal_notify(&wildcard->news);
    return 0;
}

static void name_of(const helio_tsdu_topic *topic, char name[HELIO_TSDU_TOPIC_NAME_MAX + 1]) {
    memcpy(name, topic->name, topic->name_bytes);
    name[topic->name_bytes] = '\0';
}

static bool wants(void *context, const helio_tsdu_topic *topic) {
    const helio_wildcard *wildcard = context;
    char name[HELIO_TSDU_TOPIC_NAME_MAX + 1];
    name_of(topic, name);
    return helio_glob_matches(wildcard->pattern, name) &&
           helio_control_is_text(name, topic->name_bytes);
}

static void found(void *context, const helio_tsdu_topic *topic, helio_moment moment) {
    helio_wildcard *wildcard = context;
    char name[HELIO_TSDU_TOPIC_NAME_MAX + 1];
    name_of(topic, name);
    if (open_topic(wildcard, name, topic->topic_id, moment)) {
        refuse(wildcard, name, helio_error_sentence(), moment);
        return;
    }
    helio_stats_event(wildcard->instance->stats, moment.wall_ns, HELIO_EVENT_TOPIC_FOUND,
                      HELIO_STATS_NO_SLOT, (const uint64_t[4]){wildcard->by_id.count},
                      "topic %s matches %s and is received from now on", name, wildcard->pattern);
}

/* ---- life ---- */

typedef struct wildcard_opening {
    helio_opening common;
    helio_wildcard *wildcard;
} wildcard_opening;

static bool attach(helio_instance *instance, helio_command *command, helio_moment moment) {
    wildcard_opening *opening = command->context;
    helio_wildcard *wildcard = opening->wildcard;
    command->result = helio_rx_lane_acquire(instance, &opening->common.endpoint,
                                            &opening->common.options, moment, &wildcard->lane);
    if (command->result == 0) {
        wildcard->lane->wildcards++;
        helio_rx_endpoint_add_finder(wildcard->lane->endpoint, &wildcard->finder, moment);
    }
    return true;
}

static bool detach(helio_instance *instance, helio_command *command, helio_moment moment) {
    (void)instance;
    helio_wildcard *wildcard = command->context;
    helio_rx_endpoint_remove_finder(wildcard->lane->endpoint, &wildcard->finder, moment);
    for (size_t i = 0; i < wildcard->by_id.capacity; i++) {
        const found_topic *topic = wildcard->by_id.entries[i].value;
        if (topic) {
            helio_receiver_detach(topic->shown.receiver, moment);
        }
    }
    wildcard->lane->wildcards--; /* not before: the lane goes with the last of both */
    helio_rx_lane_release(wildcard->lane, moment);
    return true;
}

static void free_wildcard(helio_wildcard *wildcard) {
    for (size_t i = 0; i < wildcard->by_id.capacity; i++) {
        found_topic *topic = wildcard->by_id.entries[i].value;
        if (topic) {
            helio_receiver_free(topic->shown.receiver);
            free(topic);
        }
    }
    helio_map_fini(&wildcard->by_id);
    pthread_mutex_destroy(&wildcard->lock);
    free(wildcard->endpoint);
    free(wildcard->pattern);
    free(wildcard->options);
    free(wildcard);
}

int helio_wildcard_create(helio_instance *instance, const char *endpoint, const char *pattern,
                          const char *options, uint32_t limit, helio_wildcard **out) {
    wildcard_opening opening;
    int error = helio_opening_init(&opening.common, endpoint, pattern, options, HELIO_ON_RECEIVER);
    if (error) {
        return error;
    }
    if (opening.common.options.stream.payload == HELIO_PAYLOAD_RAW) {
        helio_opening_fini(&opening.common);
        return helio_fail_plain(HELIO_ERR_OPTION,
                                "with payload=raw no topics are announced: name the topic");
    }
    const int64_t ack = opening.common.options.receiver.ack;
    opening.common.options.receiver.ack = HELIO_ACK_NONE; /* as receivers share a lane */
    helio_wildcard *wildcard = calloc(1, sizeof *wildcard);
    if (wildcard) {
        pthread_mutex_init(&wildcard->lock, NULL);
        wildcard->instance = instance;
        wildcard->limit = limit;
        wildcard->endpoint = strdup(endpoint);
        wildcard->pattern = strdup(pattern);
        wildcard->options = strdup(options ? options : "");
        wildcard->finder = (helio_topic_finder){
            .context = wildcard,
            .ack = helio_sink_ack_of(ack),
            .is_store = ack == HELIO_ACK_STORE,
            .wants = wants,
            .found = found,
        };
        opening.wildcard = wildcard;
    }
    if (!wildcard || !wildcard->endpoint || !wildcard->pattern || !wildcard->options ||
        helio_map_init(&wildcard->by_id, 8)) {
        error = helio_fail_plain(HELIO_ERR_NOMEM, "no memory for a pattern of topics");
    } else {
        helio_command command = {.run = attach, .context = &opening};
        error = helio_command_execute(instance, &command);
    }
    helio_opening_fini(&opening.common);
    if (error && wildcard) {
        free_wildcard(wildcard);
    } else if (!error) {
        *out = wildcard;
    }
    return error;
}

void helio_wildcard_destroy(helio_wildcard *wildcard) {
    if (!wildcard) {
        return;
    }
    helio_command command = {.run = detach, .context = wildcard};
    if (helio_command_execute(wildcard->instance, &command) == 0) { /* not from a listener */
        free_wildcard(wildcard);
    }
}

uint64_t helio_wildcard_refused(const helio_wildcard *wildcard) {
    return helio_cell(&wildcard->refused);
}

/* ---- topics ---- */

typedef struct topic_command {
    helio_wildcard *wildcard;
    const char *name;
    found_topic *topic;
} topic_command;

static bool expect(helio_instance *instance, helio_command *command, helio_moment moment) {
    (void)instance;
    const topic_command *expected = command->context;
    const uint64_t id = helio_hash_fnv1a(expected->name, strlen(expected->name));
    if (!helio_rx_endpoint_has_topic(expected->wildcard->lane->endpoint, id)) {
        command->result = open_topic(expected->wildcard, expected->name, id, moment);
    }
    return true;
}

int helio_wildcard_expect(helio_wildcard *wildcard, const char *topic) {
    const size_t bytes = strlen(topic);
    if (bytes == 0 || bytes > HELIO_TSDU_TOPIC_NAME_MAX) {
        return helio_fail(HELIO_ERR_TOPIC, "a topic's name has 1 to 255 bytes; this one has %zu",
                          bytes);
    }
    topic_command expected = {.wildcard = wildcard, .name = topic};
    helio_command command = {.run = expect, .context = &expected};
    return helio_command_execute(wildcard->instance, &command);
}

uint32_t helio_wildcard_found(const helio_wildcard *wildcard) {
    return atomic_load_explicit(&wildcard->waiting, memory_order_acquire);
}

const helio_found_topic *helio_wildcard_look(helio_wildcard *wildcard) {
    pthread_mutex_lock(&wildcard->lock);
    const found_topic *topic = wildcard->oldest;
    pthread_mutex_unlock(&wildcard->lock);
    return topic ? &topic->shown : NULL;
}

helio_found_topic *helio_wildcard_take(helio_wildcard *wildcard) {
    pthread_mutex_lock(&wildcard->lock);
    found_topic *topic = wildcard->oldest;
    if (topic) {
        wildcard->oldest = topic->next;
        atomic_fetch_sub_explicit(&wildcard->waiting, 1, memory_order_release);
    }
    pthread_mutex_unlock(&wildcard->lock);
    return topic ? &topic->shown : NULL;
}

static bool forget(helio_instance *instance, helio_command *command, helio_moment moment) {
    (void)instance;
    const topic_command *forgotten = command->context;
    helio_map_remove(&forgotten->wildcard->by_id, forgotten->topic->id);
    helio_receiver_detach(forgotten->topic->shown.receiver, moment);
    return true;
}

void helio_wildcard_forget(helio_wildcard *wildcard, helio_found_topic *topic) {
    topic_command forgotten = {.wildcard = wildcard, .topic = (found_topic *)topic};
    helio_command command = {.run = forget, .context = &forgotten};
    if (helio_command_execute(wildcard->instance, &command) == 0) { /* not from a listener */
        helio_receiver_free(topic->receiver);
        free(forgotten.topic);
    }
}

/* ---- waiting ---- */

static void wait_threaded(helio_wildcard *wildcard, int64_t deadline_ns) {
    const uint32_t seen = helio_signal_prepare(&wildcard->news);
    if (helio_wildcard_found(wildcard)) {
        helio_signal_cancel(&wildcard->news);
    } else {
        helio_signal_wait(&wildcard->news, seen, deadline_ns);
    }
}

void helio_wildcard_wait(helio_wildcard *wildcard, int64_t timeout_ns) {
    helio_instance *instance = wildcard->instance;
    const int64_t deadline_ns = helio_deadline_after(timeout_ns);
    if (instance->mode == HELIO_MODE_THREAD) {
        wait_threaded(wildcard, deadline_ns);
        return;
    }
    helio_idle_reset(&instance->idle);
    do {
        if (helio_loop_once(instance)) {
            helio_idle_reset(&instance->idle);
        } else {
            helio_loop_rest(instance, deadline_ns);
        }
    } while (!helio_wildcard_found(wildcard) && instance->now_ns < deadline_ns);
}
