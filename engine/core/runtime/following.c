#include "runtime/following.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "receive/subscriptions.h"
#include "runtime/instance.h"

enum { NAME_BYTES = 65, STORES_MAX = 16 };

typedef struct followed_stream {
    struct followed_stream *next;
    char text[HELIO_TSI_TEXT];
    helio_stats_object object;
} followed_stream;

/* The account of one receiver.  Its name is that of the durable subscription, or else the least
 * number that no other one of the instance has, so that labels stay few and are never the same. */
struct helio_following {
    struct helio_following *next;
    char name[NAME_BYTES];
    followed_stream *streams;
};

static bool is_taken(const helio_instance *instance, const char *name) {
    for (const helio_following *one = instance->following; one; one = one->next) {
        if (strcmp(one->name, name) == 0) {
            return true;
        }
    }
    return false;
}

int helio_following_open(helio_receiver *receiver, const char *durable) {
    helio_instance *instance = receiver->instance;
    helio_following *following = calloc(1, sizeof *following);
    if (!following) {
        return helio_fail_plain(HELIO_ERR_NOMEM, "no memory for a receiver");
    }
    snprintf(following->name, sizeof following->name, "%s", durable);
    for (unsigned number = 1; !following->name[0] || is_taken(instance, following->name);
         number++) {
        snprintf(following->name, sizeof following->name, "#%u", number);
    }
    following->next = instance->following;
    instance->following = following;
    receiver->following = following;
    return 0;
}

void helio_following_close(helio_receiver *receiver, helio_moment moment) {
    helio_following *following = receiver->following;
    if (!following) {
        return;
    }
    helio_following **at = &receiver->instance->following;
    while (*at != following) {
        at = &(*at)->next;
    }
    *at = following->next;
    while (following->streams) {
        followed_stream *stream = following->streams;
        following->streams = stream->next;
        helio_stats_close_object(receiver->instance->stats, &stream->object, moment.wall_ns);
        free(stream);
    }
    free(following);
    receiver->following = NULL;
}

static followed_stream *open_stream(const helio_receiver *receiver, const char *text,
                                    helio_moment moment) {
    helio_following *following = receiver->following;
    followed_stream *stream = calloc(1, sizeof *stream);
    if (!stream) {
        return NULL;
    }
    snprintf(stream->text, sizeof stream->text, "%s", text);
    char labels[HELIO_STATS_LABELS_BYTES] = "";
    helio_stats_label(labels, sizeof labels, "instance", receiver->instance->name);
    helio_stats_label(labels, sizeof labels, "topic", receiver->subscription->name);
    helio_stats_label(labels, sizeof labels, "stream", stream->text);
    helio_stats_label(labels, sizeof labels, "subscription", following->name);
    if (helio_stats_open_object(receiver->instance->stats, HELIO_SCOPE_FOLLOWER, labels,
                                moment.wall_ns, &stream->object)) {
        free(stream);
        return NULL;
    }
    stream->next = following->streams;
    following->streams = stream;
    return stream;
}

static followed_stream *find_stream(const helio_receiver *receiver, const char *text,
                                    helio_moment moment) {
    followed_stream *stream = receiver->following->streams;
    while (stream && strcmp(stream->text, text) != 0) {
        stream = stream->next;
    }
    return stream ? stream : open_stream(receiver, text, moment);
}

typedef struct report {
    helio_receiver *receiver;
    const char *stream;
    const helio_followed *news;
    const char *failure;
} report;

static void count(helio_follower_stats *stats, const helio_followed *news) {
    helio_stats_begin(stats);
    helio_count(&stats->messages_covered, news->covered);
    helio_count(&stats->messages_live, news->live);
    helio_count(&stats->messages_stored_join, news->joined);
    helio_count(&stats->messages_stored_loss, news->recovered);
    helio_count(&stats->messages_lost, news->lost);
    helio_count(&stats->messages_repeated, news->repeated);
    helio_count(&stats->store_failures, news->failures);
    helio_set(&stats->next_message, news->next);
    helio_stats_end(stats);
}

static void tell(const report *report, uint32_t slot, helio_moment moment) {
    helio_stats *stats = report->receiver->instance->stats;
    const helio_followed *news = report->news;
    const char *topic = report->receiver->subscription->name;
    if (news->recovered) {
        helio_stats_event(stats, moment.wall_ns, HELIO_EVENT_STORE_RECOVERED, slot,
                          (const uint64_t[4]){news->recovered},
                          "%" PRIu64 " lost messages of %s came from a store", news->recovered,
                          topic);
    }
    if (news->lost) {
        helio_stats_event(stats, moment.wall_ns, HELIO_EVENT_STORE_LACKS_MESSAGES, slot,
                          (const uint64_t[4]){news->first_lost, news->lost},
                          "%" PRIu64 " messages of %s, the first is %" PRIu64
                          ", are lost: no store gave them in time",
                          news->lost, topic, news->first_lost);
    }
    if (report->failure) {
        helio_stats_event(stats, moment.wall_ns, HELIO_EVENT_STORE_UNREADABLE, slot, NULL, "%s",
                          report->failure);
    }
}

static bool take_report(helio_instance *instance, helio_command *command, helio_moment moment) {
    (void)instance;
    const report *report = command->context;
    followed_stream *stream = find_stream(report->receiver, report->stream, moment);
    if (!stream) {
        command->result = helio_fail_plain(HELIO_ERR_NOMEM, "no memory for statistics");
        return true;
    }
    count(stream->object.record, report->news);
    tell(report, stream->object.slot, moment);
    command->result = 0;
    return true;
}

int helio_receiver_followed(helio_receiver *receiver, const char *stream,
                            const helio_followed *news, const char *failure) {
    report report = {receiver, stream, news, failure};
    helio_command command = {.run = take_report, .context = &report};
    return helio_command_execute(receiver->instance, &command);
}

int helio_following_parse(helio_opening *hold, const char *endpoint, const char *topic,
                          const char *options, helio_following_options *out) {
    int error = helio_opening_init(hold, endpoint, topic, options, HELIO_ON_RECEIVER);
    if (error) {
        return error;
    }
    error = helio_following_read(&hold->options.receiver, out);
    if (error) {
        helio_opening_fini(hold);
    }
    return error;
}

/* ---- stores that sources announce ---- */

typedef struct stores_query {
    const helio_receiver *receiver;
    helio_address *out;
} stores_query;

static bool take_query(helio_instance *instance, helio_command *command, helio_moment moment) {
    (void)instance, (void)moment;
    const stores_query *query = command->context;
    command->result =
        (int)helio_rx_endpoint_stores(query->receiver->lane->endpoint, query->out, STORES_MAX);
    return true;
}

int helio_receiver_stores(helio_receiver *receiver, char *out, size_t bytes) {
    helio_address stores[STORES_MAX];
    stores_query query = {receiver, stores};
    helio_command command = {.run = take_query, .context = &query};
    const int count = helio_command_execute(receiver->instance, &command);
    size_t used = 0;
    if (bytes > 0) {
        out[0] = 0;
    }
    for (int i = 0; i < count; i++) {
        char text[HELIO_ADDRESS_TEXT];
        helio_address_format(&stores[i], text);
        if (used + strlen(text) + 2 > bytes) {
            return helio_fail(HELIO_ERR_OPTION, "%d stores do not fit into %zu bytes", count,
                              bytes);
        }
        used += (size_t)snprintf(out + used, bytes - used, "%s%s", used ? "," : "", text);
    }
    return count;
}
