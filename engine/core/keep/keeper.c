#include "keep/keeper.h"

#include <string.h>

#include "base/error.h"
#include "io/kernel_clock.h"
#include "keep/keeper_ahead.h"
#include "keep/keeper_life.h"
#include "keep/keeper_parts.h"
#include "keep/keeper_patterns.h"
#include "store/reader.h"

/* Between attempts to write. */
#define RETRY_NS (100 * HELIO_MILLISECOND)
#define PUBLISH_NS (100 * HELIO_MILLISECOND)
/* With several receivers, each is looked at this often while none has messages. */
#define LOOK_NS HELIO_MILLISECOND
/* A message that the store has may have arrived this much before its submit time: two clocks. */
#define CLOCKS_NS (60 * HELIO_SECOND)

/* ---- blocked ---- */

/* The disk refuses what it may accept later. */
static bool is_passing(int error) {
    return error == HELIO_ERR_SYSTEM || error == HELIO_ERR_NOMEM;
}

void helio_keeper_block(helio_keeper *keeper, int64_t now_ns) {
    keeper->is_refused = true;
    strncpy(keeper->reason, helio_error_sentence(), sizeof keeper->reason - 1);
    keeper->retry_ns = now_ns + RETRY_NS;
    if (!keeper->counts.is_blocked) {
        keeper->counts.is_blocked = keeper->has_blocked = true;
        keeper->blocked_ns = now_ns;
    }
}

static void resume(helio_keeper *keeper, int64_t now_ns) {
    keeper->counts.is_blocked = false;
    keeper->has_resumed = true;
    keeper->was_blocked_ns = now_ns - keeper->blocked_ns;
    keeper->reason[0] = '\0';
}

/* ---- topics ---- */

/* The number after the last message of the topic that the files have.  A message comes again when
 * the store stopped before its acknowledgement; the first after a start may be one. */
static int find_next_number(const helio_keeper *keeper, helio_kept_topic *topic,
                            const helio_message *message) {
    topic->next_number = message->number;
    if (helio_store_appended(topic->stream->files) == 0) {
        return 0;
    }
    helio_store_reader *reader;
    int result = helio_store_reader_open(keeper->path, &topic->stream->tsi, HELIO_STORE_BY_NUMBER,
                                         (helio_store_span){message->number, UINT64_MAX}, &reader);
    if (result) {
        return result;
    }
    if (message->submit_ns > CLOCKS_NS) {
        helio_store_reader_since(reader, (uint64_t)(message->submit_ns - CLOCKS_NS));
    }
    const helio_keeper_source *source = topic->source;
    helio_store_message kept;
    uint64_t position;
    while ((result = helio_store_reader_next(reader, &kept, &position)) == 1) {
        if (kept.topic_bytes == source->topic_bytes &&
            memcmp(kept.topic, source->topic, kept.topic_bytes) == 0 &&
            kept.number >= topic->next_number) {
            topic->next_number = kept.number + 1;
        }
    }
    helio_store_reader_close(reader);
    return result;
}

/* The topic of the message's stream, which is opened when it is new. */
static int topic_of(helio_keeper *keeper, helio_keeper_source *source, const helio_message *message,
                    helio_kept_topic **out) {
    if (source->last && source->last->number == message->stream) {
        *out = source->last;
        return 0;
    }
    *out = helio_map_get(&source->by_number, message->stream);
    int error = *out ? 0 : helio_keeper_open_topic(keeper, source, message->stream, out);
    if (!error && (*out)->is_new) {
        /* The first message of a topic is in the files, or nothing is: no search to the beginning. */
        error = (keeper->has_peers && message->number > 0) || keeper->behind
                    ? helio_keeper_find_ahead(keeper, *out)
                    : find_next_number(keeper, *out, message);
        (*out)->is_new = error != 0;
    }
    source->last = error ? NULL : *out;
    return error;
}

/* ---- taking ---- */

/* The messages up to `number` are durable with `position`. */
static void await(helio_keeper *keeper, helio_kept_topic *topic, uint64_t position,
                  const helio_message *message) {
    helio_awaited *last =
        topic->count > 0 ? &topic->awaited[(topic->first + topic->count - 1) % HELIO_KEEPER_AWAITED]
                         : NULL;
    const bool is_of_list = last && topic->list == keeper->list;
    if (!is_of_list && topic->count < HELIO_KEEPER_AWAITED) {
        last = &topic->awaited[(topic->first + topic->count++) % HELIO_KEEPER_AWAITED];
        *last = (helio_awaited){.arrival_ns = message->receive_ns};
        topic->list = keeper->list;
    }
    /* Too many lists wait apart: the last one grows. */
    last->number = message->number;
    if (position > 0) {
        last->position = position;
        last->messages++;
    }
    if (!topic->is_awaited) {
        topic->is_awaited = true;
        topic->next_awaited = keeper->awaited;
        keeper->awaited = topic;
    }
}

static int keep(helio_keeper *keeper, helio_keeper_source *source, const helio_message *message,
                int64_t now_ns) {
    helio_kept_topic *topic;
    int error = topic_of(keeper, source, message, &topic);
    if (error) {
        return error;
    }
    helio_kept_stream *stream = topic->stream;
    uint64_t position = 0;
    if (message->number > topic->next_number && keeper->has_peers && !topic->behind) {
        error = helio_keeper_fall_behind(keeper, topic, message->number);
        if (error) {
            return error;
        }
    }
    if (message->number < topic->next_number) {
        stream->repeated++;
        keeper->counts.messages_repeated++;
    } else {
        const helio_store_message kept = {
            .topic = source->topic,
            .topic_bytes = source->topic_bytes,
            .number = message->number,
            .submit_ns = (uint64_t)message->submit_ns,
            .receive_ns = (uint64_t)message->receive_ns,
            .flags = message->flags & HELIO_MESSAGE_RECOVERED ? HELIO_STORE_RECOVERED : 0,
            .payload = message->data,
            .bytes = message->length,
        };
        error = helio_store_append(helio_keeper_files(topic), &kept, (uint64_t)now_ns, &position);
        if (error && error != HELIO_ERR_SIZE) {
            return error;
        }
        topic->next_number = message->number + 1;
        topic->has_begun = true;
        if (topic->behind && !error) {
            helio_keeper_wait_ahead(topic->behind, message->number);
        }
        if (error) {
            stream->refused++;
            keeper->counts.messages_refused++;
        } else {
            stream->kept++;
            stream->bytes += message->length;
            keeper->counts.messages_kept++;
            keeper->counts.bytes_kept += message->length;
        }
    }
    stream->received++;
    stream->used_ns = now_ns;
    keeper->counts.messages_received++;
    await(keeper, topic, position, message);
    return 0;
}

void helio_keeper_take_losses(helio_keeper *keeper, helio_keeper_source *source) {
    helio_loss loss;
    while (helio_receiver_loss(source->receiver, &loss) == 1) {
        helio_kept_topic *topic = helio_map_get(&source->by_number, loss.stream);
        if (topic) {
            topic->stream->lost += loss.count;
            const bool is_known = topic->lost_end > topic->next_number;
            topic->lost_first = is_known ? topic->lost_first : loss.first;
            topic->lost_end = loss.first + loss.count;
        }
        keeper->counts.messages_lost += loss.count;
    }
}

/* Keeps the rest of the list, or a new list when there is none.  Returns the messages kept, or an
 * error. */
static int take(helio_keeper *keeper, helio_keeper_source *source, int64_t timeout_ns) {
    if (source->at == source->count) {
        source->at = source->count = 0;
        const int taken = helio_receiver_receive(source->receiver, source->messages,
                                                 HELIO_KEEPER_LIST, timeout_ns);
        if (taken <= 0) {
            return taken;
        }
        source->count = (size_t)taken;
        helio_keeper_take_losses(keeper, source);
    }
    keeper->list++;
    const size_t begun = source->at;
    const int64_t now_ns = helio_monotonic_ns();
    for (; source->at < source->count; source->at++) {
        const int error = keep(keeper, source, &source->messages[source->at], now_ns);
        if (is_passing(error)) {
            helio_keeper_block(keeper, now_ns);
            break;
        }
        if (error) {
            return error;
        }
    }
    return (int)(source->at - begun);
}

static int take_all(helio_keeper *keeper) {
    int taken = 0;
    for (helio_keeper_source *source = keeper->sources; source && !keeper->is_refused;
         source = source->next) {
        const int result = take(keeper, source, 0);
        if (result < 0) {
            return result;
        }
        if (result > 0) {
            keeper->waiting = source;
        }
        taken += result;
    }
    return taken;
}

/* ---- acknowledging ---- */

static void acknowledge_topic(helio_keeper *keeper, helio_kept_topic *topic, int64_t wall_ns) {
    const helio_store_stream *files = helio_keeper_files(topic);
    const uint64_t durable = keeper->options.fsync == HELIO_STORE_FSYNC_NEVER
                                 ? helio_store_written(files)
                                 : helio_store_durable(files);
    uint64_t number = 0;
    bool is_news = false;
    while (topic->count > 0 && topic->awaited[topic->first].position <= durable) {
        const helio_awaited *done = &topic->awaited[topic->first];
        number = done->number;
        is_news = true;
        if (done->messages > 0 && wall_ns > done->arrival_ns) {
            helio_keeper_time(keeper,
                              (helio_keeper_timing){HELIO_KEEPER_DURABLE, topic->stream,
                                                    wall_ns - done->arrival_ns, done->messages});
        }
        topic->first = (topic->first + 1) % HELIO_KEEPER_AWAITED;
        topic->count--;
    }
    if (is_news) {
        /* The stream may have ended: then nobody waits for it. */
        (void)helio_receiver_ack(topic->source->receiver, topic->number, number);
    }
}

void helio_keeper_acknowledge(helio_keeper *keeper) {
    const int64_t wall_ns = helio_wall_ns();
    uint64_t waiting = 0;
    for (helio_kept_topic **at = &keeper->awaited; *at;) {
        helio_kept_topic *topic = *at;
        acknowledge_topic(keeper, topic, wall_ns);
        if (topic->count == 0) {
            *at = topic->next_awaited;
            topic->is_awaited = false;
            continue;
        }
        for (uint32_t i = 0; i < topic->count; i++) {
            waiting += topic->awaited[(topic->first + i) % HELIO_KEEPER_AWAITED].messages;
        }
        at = &topic->next_awaited;
    }
    keeper->counts.messages_waiting = waiting;
}

/* ---- step ---- */

/* Waits for a message, a batch that is due or the next attempt to write.  Returns the messages
 * kept, or an error. */
static int rest(helio_keeper *keeper, int64_t timeout_ns, int64_t now_ns) {
    if (keeper->is_refused) {
        const int64_t left_ns = keeper->retry_ns - now_ns;
        helio_sleep_ns(left_ns < timeout_ns ? left_ns : timeout_ns);
        return 0;
    }
    if (!keeper->sources) {
        helio_keeper_wait_found(keeper, timeout_ns);
        return 0;
    }
    const int64_t batch_ns = (int64_t)keeper->options.batch_time_ns;
    int64_t wait_ns = timeout_ns;
    if (keeper->counts.messages_waiting > 0 && batch_ns < wait_ns) {
        wait_ns = batch_ns;
    }
    if ((keeper->sources->next || keeper->patterns) && LOOK_NS < wait_ns) {
        wait_ns = LOOK_NS;
    }
    return take(keeper, keeper->waiting, wait_ns);
}

/* Writes what is due, acknowledges what is durable, and looks after the rest. */
static int write_due(helio_keeper *keeper, int64_t now_ns) {
    int error = helio_store_poll(keeper->store, (uint64_t)now_ns);
    if (keeper->ahead) {
        const int one = helio_store_poll(keeper->ahead, (uint64_t)now_ns);
        error = error ? error : one;
    }
    if (is_passing(error)) {
        helio_keeper_block(keeper, now_ns);
        error = 0;
    }
    if (keeper->counts.is_blocked && !keeper->is_refused) {
        resume(keeper, now_ns);
    }
    if (!error) {
        helio_keeper_acknowledge(keeper);
        error = helio_keeper_tend(keeper, now_ns);
    }
    const bool is_due = now_ns - keeper->published_ns >= PUBLISH_NS ||
                        keeper->timings_count >= HELIO_KEEPER_TIMINGS / 2;
    if (!error && is_due) {
        keeper->published_ns = now_ns;
        error = helio_keeper_publish(keeper);
    }
    return error;
}

/* Moves what waits ahead.  Returns as helio_keeper_move. */
static int move(helio_keeper *keeper, int64_t now_ns) {
    if (!keeper->behind) {
        return 0;
    }
    const int moved = helio_keeper_move(keeper);
    if (is_passing(moved)) {
        helio_keeper_block(keeper, now_ns);
        return 0;
    }
    return moved;
}

int helio_keeper_step(helio_keeper *keeper, int64_t timeout_ns) {
    if (!keeper->sources && !keeper->patterns) {
        return helio_fail_plain(HELIO_ERR_STATE, "the store has no topics to keep");
    }
    int64_t now_ns = helio_monotonic_ns();
    const int64_t deadline_ns = now_ns + timeout_ns;
    int taken = 0, error = 0;
    do {
        const bool is_waiting = keeper->counts.is_blocked && now_ns < keeper->retry_ns;
        keeper->is_refused = is_waiting;
        taken = take_all(keeper);
        const int moved = taken < 0 || keeper->is_refused ? 0 : move(keeper, now_ns);
        if (moved < 0) {
            return moved;
        }
        if (taken == 0 && moved == 0 && now_ns < deadline_ns) {
            taken = rest(keeper, deadline_ns - now_ns, now_ns);
        }
        now_ns = helio_monotonic_ns();
        if (taken >= 0 && !is_waiting) {
            error = write_due(keeper, now_ns);
        }
    } while (taken == 0 && !error && now_ns < deadline_ns && !helio_keeper_has_found(keeper));
    return error ? error : taken;
}

helio_keeper_counts helio_keeper_look(const helio_keeper *keeper) {
    helio_keeper_counts counts = keeper->counts;
    counts.holes_open = keeper->holes_open;
    counts.messages_fetched = keeper->messages_fetched;
    counts.messages_given_up = keeper->messages_given_up;
    counts.fetch_failures = keeper->fetch_failures;
    counts.topics_refused = helio_keeper_refused_topics(keeper);
    return counts;
}

const char *helio_keeper_reason(const helio_keeper *keeper) {
    return keeper->reason;
}
