#include "keep/keeper_subscriptions.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "runtime/instance.h"

enum { NAME_BYTES = 65 };

typedef struct helio_shown_subscription {
    char name[NAME_BYTES], topic[HELIO_STORE_TOPIC_MAX + 1];
    helio_tsi tsi;
    uint64_t next_number, waiting, saved_ns;
    /* Not of the newest list: its statistics close at the next publication. */
    bool is_gone;
    helio_stats_object object;
    struct helio_shown_subscription *next;
} shown;

uint64_t helio_keeper_end(const helio_keeper *keeper, const helio_tsi *tsi, const char *topic) {
    for (const helio_keeper_source *source = keeper->sources; source; source = source->next) {
        if (strcmp(source->topic, topic) != 0) {
            continue;
        }
        for (const helio_kept_topic *one = source->topics; one; one = one->next) {
            if (!one->is_new && helio_tsi_equal(&one->stream->tsi, tsi)) {
                return one->next_number;
            }
        }
    }
    return 0;
}

static shown *find(const helio_keeper *keeper, const helio_keeper_subscription *wanted) {
    shown *one = keeper->subscriptions;
    while (one &&
           !(helio_tsi_equal(&one->tsi, &wanted->tsi) && strcmp(one->name, wanted->name) == 0 &&
             strcmp(one->topic, wanted->topic) == 0)) {
        one = one->next;
    }
    return one;
}

/* Those whose statistics are closed, or were never opened. */
static void free_gone(helio_keeper *keeper) {
    for (shown **at = &keeper->subscriptions; *at;) {
        shown *one = *at;
        if (one->is_gone && !one->object.record) {
            *at = one->next;
            free(one);
        } else {
            at = &one->next;
        }
    }
}

static int show(helio_keeper *keeper, const helio_keeper_subscription *wanted) {
    shown *one = find(keeper, wanted);
    if (!one) {
        if (strlen(wanted->name) >= sizeof one->name ||
            strlen(wanted->topic) >= sizeof one->topic) {
            return helio_fail_plain(HELIO_ERR_OPTION, "the name of a subscription is too long");
        }
        if (!(one = calloc(1, sizeof *one))) {
            return helio_fail_plain(HELIO_ERR_NOMEM, "no memory for a subscription");
        }
        strcpy(one->name, wanted->name);
        strcpy(one->topic, wanted->topic);
        one->tsi = wanted->tsi;
        one->next = keeper->subscriptions;
        keeper->subscriptions = one;
    }
    one->is_gone = false;
    one->next_number = wanted->next_number;
    one->waiting = wanted->end > wanted->next_number ? wanted->end - wanted->next_number : 0;
    one->saved_ns = wanted->saved_ns;
    return 0;
}

int helio_keeper_show_subscriptions(helio_keeper *keeper, const helio_keeper_subscription *all,
                                    size_t count) {
    if (count > HELIO_KEEPER_SUBSCRIPTIONS) {
        return helio_fail(HELIO_ERR_OPTION, "at most %d positions of subscriptions are shown",
                          HELIO_KEEPER_SUBSCRIPTIONS);
    }
    for (shown *one = keeper->subscriptions; one; one = one->next) {
        one->is_gone = true;
    }
    int error = 0;
    for (size_t i = 0; i < count && !error; i++) {
        error = show(keeper, &all[i]);
    }
    free_gone(keeper);
    return error;
}

static void publish(const helio_keeper *keeper, shown *one, helio_moment moment) {
    if (!one->object.record) {
        char labels[HELIO_STATS_LABELS_BYTES] = "", tsi[HELIO_TSI_TEXT];
        helio_stats_label(labels, sizeof labels, "instance", keeper->instance->name);
        helio_stats_label(labels, sizeof labels, "topic", one->topic);
        helio_stats_label(labels, sizeof labels, "stream", helio_tsi_format(&one->tsi, tsi));
        helio_stats_label(labels, sizeof labels, "subscription", one->name);
        if (helio_stats_open_object(keeper->instance->stats, HELIO_SCOPE_STORE_SUBSCRIPTION, labels,
                                    moment.wall_ns, &one->object)) {
            return;
        }
    }
    helio_store_subscription_stats *stats = one->object.record;
    helio_stats_begin(stats);
    helio_set(&stats->next_message, one->next_number);
    helio_set(&stats->messages_waiting, one->waiting);
    helio_set(&stats->last_saved, one->saved_ns);
    helio_stats_end(stats);
}

void helio_keeper_publish_subscriptions(helio_keeper *keeper, helio_moment moment) {
    for (shown *one = keeper->subscriptions; one; one = one->next) {
        if (one->is_gone) {
            helio_stats_close_object(keeper->instance->stats, &one->object, moment.wall_ns);
        } else {
            publish(keeper, one, moment);
        }
    }
}

void helio_keeper_unpublish_subscriptions(helio_keeper *keeper, helio_moment moment) {
    for (shown *one = keeper->subscriptions; one; one = one->next) {
        helio_stats_close_object(keeper->instance->stats, &one->object, moment.wall_ns);
    }
}

void helio_keeper_free_subscriptions(helio_keeper *keeper) {
    for (shown *one; (one = keeper->subscriptions);) {
        keeper->subscriptions = one->next;
        free(one);
    }
}
