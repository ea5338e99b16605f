/* jsonl: a monitoring module that writes the stream as lines of JSON, to a file or a socket.
 *
 *   heliograph monitor --module jsonl=path=/var/log/heliograph.jsonl
 *   heliograph monitor --module jsonl=to=tcp://collector:5170,histograms=off
 *   heliograph monitor --module jsonl=path=/var/log/audit.jsonl,events-only
 *
 * Options, separated by commas:
 *   path=FILE         append to a file; opened anew when it was moved away
 *   to=ADDRESS        tcp://HOST:PORT, udp://HOST:PORT or unix:///PATH instead
 *   events-only       events and topics that come and go, no values: an audit trail
 *   histograms=off    no histograms
 *   rate=LINES        most lines of values per second (default 100000); events are never held back
 *
 * Each line has `what`: "snapshot", "instance", "object", "event", "topic_created" or
 * "topic_destroyed".  What cannot be written is given up and counted (`lost`), never waited for. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <heliograph/module.h>

#include "jsonl_out.h"
#include "jsonl_text.h"

enum { SEND_BYTES = 1 << 20 }; /* so much text is sent before more is made */

/* A copy of the schema's names: the schema itself is ours during `describe` only. */
typedef struct named_scope {
    char *name;
    size_t label_count, cell_count;
    char **labels, **cells;
    uint32_t *kinds; /* by cell */
} named_scope;

typedef struct named_event {
    char *name;
    uint32_t id;
} named_event;

typedef struct jsonl {
    const helio_module_host *host;
    jsonl_out out;
    jsonl_text text;
    bool events_only, no_histograms;
    uint64_t rate;     /* lines of values per second */
    double allowance;  /* lines that may be written now */
    int64_t filled_ns; /* when it was last filled up */
    uint64_t lost;     /* not told to the host yet */
    size_t scope_count, event_count;
    named_scope *scopes;
    named_event *events;
    char told[256]; /* the trouble the host knows of */
} jsonl;

static int64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* ---- options ---- */

static int refuse(const helio_module_host *host, const char *format, const char *word) {
    char text[256];
    snprintf(text, sizeof text, format, word);
    host->error(host->context, text);
    return -1;
}

static bool number_from(const char *text, uint64_t *out) {
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == 0 && errno == 0 && *out > 0;
}

static int set_options(jsonl *self, char *words) {
    const char *path = NULL, *to = NULL;
    char *rest = words;
    for (char *word = strtok_r(words, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        if (strncmp(word, "path=", 5) == 0) {
            path = word + 5;
        } else if (strncmp(word, "to=", 3) == 0) {
            to = word + 3;
        } else if (strcmp(word, "events-only") == 0) {
            self->events_only = true;
        } else if (strcmp(word, "histograms=off") == 0) {
            self->no_histograms = true;
        } else if (strcmp(word, "histograms=on") == 0) {
            self->no_histograms = false;
        } else if (strncmp(word, "rate=", 5) == 0) {
            if (!number_from(word + 5, &self->rate)) {
                return refuse(self->host, "rate=%s: it must be a number of lines from 1", word + 5);
            }
        } else {
            return refuse(self->host,
                          "there is no option '%s'; there are path=FILE, to=ADDRESS, events-only, "
                          "histograms=off and rate=LINES",
                          word);
        }
    }
    if ((path == NULL || path[0] == 0) == (to == NULL || to[0] == 0)) {
        return refuse(self->host, "%s", "give either path=FILE or to=ADDRESS");
    }
    if (!jsonl_out_open(&self->out, path, path ? NULL : to)) {
        return refuse(self->host, "%s", self->out.error);
    }
    return 0;
}

static void free_schema(jsonl *self) {
    for (size_t i = 0; i < self->scope_count; i++) {
        named_scope *scope = &self->scopes[i];
        for (size_t j = 0; scope->labels && j < scope->label_count; j++) {
            free(scope->labels[j]);
        }
        for (size_t j = 0; scope->cells && j < scope->cell_count; j++) {
            free(scope->cells[j]);
        }
        free(scope->name);
        free(scope->labels);
        free(scope->cells);
        free(scope->kinds);
    }
    for (size_t i = 0; i < self->event_count; i++) {
        free(self->events[i].name);
    }
    free(self->scopes);
    free(self->events);
    self->scopes = NULL;
    self->events = NULL;
    self->scope_count = self->event_count = 0;
}

static void jsonl_close(void *state) {
    jsonl *self = state;
    jsonl_out_close(&self->out);
    self->lost += self->out.lost;
    if (self->lost > 0) {
        self->host->lost(self->host->context, self->lost);
    }
    free_schema(self);
    jsonl_text_free(&self->text);
    free(self);
}

static int jsonl_open(const char *options, const helio_module_host *host, void **state) {
    jsonl *self = calloc(1, sizeof *self);
    char *words = strdup(options);
    if (self == NULL || words == NULL) {
        free(self);
        free(words);
        return refuse(host, "%s", "no memory");
    }
    self->host = host;
    self->rate = 100000;
    self->out.descriptor = -1;
    const int result = set_options(self, words);
    free(words);
    if (result != 0) {
        jsonl_out_close(&self->out);
        free(self);
        return result;
    }
    self->allowance = (double)self->rate;
    self->filled_ns = monotonic_ns();
    *state = self;
    return 0;
}

/* ---- the schema ---- */

static char *copy_of(const helio_module_text *text) {
    char *copy = malloc(text->length + 1);
    if (copy != NULL) {
        memcpy(copy, text->text, text->length + 1);
    }
    return copy;
}

static bool copy_scope(named_scope *to, const helio_module_scope *from) {
    to->name = copy_of(&from->name);
    to->label_count = from->label_count;
    to->cell_count = from->cell_count;
    to->labels = calloc(from->label_count + 1, sizeof *to->labels);
    to->cells = calloc(from->cell_count + 1, sizeof *to->cells);
    to->kinds = calloc(from->cell_count + 1, sizeof *to->kinds);
    bool is_whole = to->name && to->labels && to->cells && to->kinds;
    for (size_t i = 0; is_whole && i < from->label_count; i++) {
        is_whole = (to->labels[i] = copy_of(&from->labels[i])) != NULL;
    }
    for (size_t i = 0; is_whole && i < from->cell_count; i++) {
        to->kinds[i] = from->cells[i]->kind;
        is_whole = (to->cells[i] = copy_of(&from->cells[i]->name)) != NULL;
    }
    return is_whole;
}

static int jsonl_describe(void *state, const helio_module_schema *schema) {
    jsonl *self = state;
    free_schema(self);
    self->scopes = calloc(schema->scope_count + 1, sizeof *self->scopes);
    self->events = calloc(schema->event_kind_count + 1, sizeof *self->events);
    bool is_whole = self->scopes && self->events;
    for (size_t i = 0; is_whole && i < schema->scope_count; i++) {
        self->scope_count = i + 1;
        is_whole = copy_scope(&self->scopes[i], schema->scopes[i]);
    }
    for (size_t i = 0; is_whole && i < schema->event_kind_count; i++) {
        self->event_count = i + 1;
        self->events[i].id = schema->event_kinds[i]->id;
        is_whole = (self->events[i].name = copy_of(&schema->event_kinds[i]->name)) != NULL;
    }
    return is_whole ? 0 : refuse(self->host, "%s", "no memory for the schema");
}

/* ---- lines ---- */

static void put_text(jsonl *self, const char *key, const helio_module_text *value) {
    jsonl_key(&self->text, key);
    jsonl_string(&self->text, value->text, value->length);
}

static void put_number(jsonl *self, const char *key, uint64_t value) {
    jsonl_key(&self->text, key);
    jsonl_number(&self->text, value);
}

static void put_incarnation(jsonl *self, uint64_t incarnation) {
    char digits[24];
    jsonl_key(&self->text, "incarnation");
    snprintf(digits, sizeof digits, "\"%016llx\"", (unsigned long long)incarnation);
    jsonl_puts(&self->text, digits);
}

static void put_name(jsonl *self, size_t index, const char *name, size_t length) {
    jsonl_puts(&self->text, index ? "," : "");
    jsonl_string(&self->text, name, length);
    jsonl_puts(&self->text, ":");
}

static void put_pairs(jsonl *self, const char *key, const helio_module_pair *pairs, size_t count) {
    jsonl_key(&self->text, key);
    jsonl_puts(&self->text, "{");
    for (size_t i = 0; i < count; i++) {
        put_name(self, i, pairs[i].key.text, pairs[i].key.length);
        jsonl_string(&self->text, pairs[i].value.text, pairs[i].value.length);
    }
    jsonl_puts(&self->text, "}");
}

static void begin(jsonl *self, const char *what, uint64_t time_ns) {
    jsonl_puts(&self->text, "{\"what\":\"");
    jsonl_puts(&self->text, what);
    jsonl_puts(&self->text, "\"");
    put_number(self, "time_ns", time_ns);
}

static void end(jsonl *self) {
    jsonl_puts(&self->text, "}");
    if (!jsonl_end_line(&self->text)) {
        self->lost++;
    }
}

/* Whether one more line of values may be written now. */
static bool admit(jsonl *self) {
    if (self->allowance < 1.0) {
        const int64_t now_ns = monotonic_ns();
        self->allowance += (double)(now_ns - self->filled_ns) * 1e-9 * (double)self->rate;
        self->filled_ns = now_ns;
        if (self->allowance > (double)self->rate) {
            self->allowance = (double)self->rate;
        }
    }
    const bool may = self->allowance >= 1.0;
    if (may) {
        self->allowance -= 1.0;
    } else {
        self->lost++;
    }
    return may;
}

static void send_lines(jsonl *self) {
    jsonl_out_write(&self->out, self->text.bytes, self->text.used, monotonic_ns());
    self->text.used = self->text.line = 0;
}

/* Sends the lines made, and tells the host of new trouble and of what was lost. */
static int finish(jsonl *self) {
    send_lines(self);
    self->lost += self->out.lost;
    self->out.lost = 0;
    if (self->lost > 0) {
        self->host->lost(self->host->context, self->lost);
        self->lost = 0;
    }
    if (strcmp(self->told, self->out.error) != 0) {
        memcpy(self->told, self->out.error, sizeof self->told);
        self->host->log(self->host->context,
                        self->told[0] ? HELIO_MODULE_WARNING : HELIO_MODULE_INFO,
                        self->told[0] ? self->told : "all is well again");
    }
    return 0;
}

/* ---- snapshots ---- */

static void put_histogram(jsonl *self, const helio_module_histogram *histogram) {
    jsonl_puts(&self->text, "{\"digits\":");
    jsonl_number(&self->text, histogram->digits);
    put_number(self, "lowest", histogram->lowest);
    put_number(self, "highest", histogram->highest);
    put_number(self, "above", histogram->above);
    put_number(self, "negative", histogram->negative);
    put_number(self, "total_ns", histogram->total_ns);
    jsonl_key(&self->text, "cells");
    jsonl_puts(&self->text, "[");
    for (size_t i = 0; i < histogram->count; i++) {
        jsonl_puts(&self->text, i ? ",[" : "[");
        jsonl_number(&self->text, histogram->index[i]);
        jsonl_puts(&self->text, ",");
        jsonl_number(&self->text, histogram->counts[i]);
        jsonl_puts(&self->text, "]");
    }
    jsonl_puts(&self->text, "]}");
}

static void put_value(jsonl *self, uint32_t kind, uint64_t value) {
    if (kind == HELIO_MODULE_SIGNED && value >> 63) {
        jsonl_puts(&self->text, "-");
        value = 0 - value;
    }
    jsonl_number(&self->text, value);
}

static void put_values(jsonl *self, const named_scope *scope, const helio_module_object *object) {
    size_t put = 0;
    jsonl_key(&self->text, "values");
    jsonl_puts(&self->text, "{");
    for (size_t i = 0; i < scope->cell_count; i++) {
        if (object->valid[i] && scope->kinds[i] != HELIO_MODULE_HISTOGRAM) {
            put_name(self, put++, scope->cells[i], strlen(scope->cells[i]));
            put_value(self, scope->kinds[i], object->values[i]);
        }
    }
    jsonl_puts(&self->text, "}");
    if (self->no_histograms) {
        return;
    }
    jsonl_key(&self->text, "histograms");
    jsonl_puts(&self->text, "{");
    for (size_t i = 0; i < object->histogram_count; i++) {
        const helio_module_histogram *histogram = object->histograms[i];
        const char *name = scope->cells[histogram->cell];
        put_name(self, i, name, strlen(name));
        put_histogram(self, histogram);
    }
    jsonl_puts(&self->text, "}");
}

static void put_object(jsonl *self, const helio_module_snapshot *snapshot,
                       const helio_module_instance *instance, const helio_module_object *object) {
    const named_scope *scope = &self->scopes[object->scope];
    begin(self, "object", snapshot->time_ns);
    put_number(self, "number", snapshot->number);
    put_text(self, "instance", &instance->name);
    put_incarnation(self, instance->incarnation);
    jsonl_key(&self->text, "scope");
    jsonl_string(&self->text, scope->name, strlen(scope->name));
    put_number(self, "created_ns", object->created_ns);
    jsonl_key(&self->text, "live");
    jsonl_puts(&self->text, object->flags & HELIO_MODULE_LIVE ? "true" : "false");
    jsonl_key(&self->text, "torn");
    jsonl_puts(&self->text, object->flags & HELIO_MODULE_TORN ? "true" : "false");
    jsonl_key(&self->text, "labels");
    jsonl_puts(&self->text, "{");
    for (size_t i = 0; i < scope->label_count; i++) {
        put_name(self, i, scope->labels[i], strlen(scope->labels[i]));
        jsonl_string(&self->text, object->labels[i].text, object->labels[i].length);
    }
    jsonl_puts(&self->text, "}");
    put_pairs(self, "info", object->info, object->info_count);
    put_values(self, scope, object);
    end(self);
}

static void put_instance(jsonl *self, const helio_module_snapshot *snapshot,
                         const helio_module_instance *instance) {
    begin(self, "instance", snapshot->time_ns);
    put_number(self, "number", snapshot->number);
    put_text(self, "instance", &instance->name);
    put_incarnation(self, instance->incarnation);
    put_text(self, "health", &instance->health);
    put_text(self, "reason", &instance->reason);
    put_number(self, "pid", instance->pid);
    put_number(self, "started_ns", instance->started_ns);
    put_number(self, "heartbeat_ns", instance->heartbeat_ns);
    put_number(self, "objects", instance->object_count);
    end(self);
}

static int jsonl_snapshot(void *state, const helio_module_snapshot *snapshot) {
    jsonl *self = state;
    if (self->events_only) {
        return 0;
    }
    if (admit(self)) {
        begin(self, "snapshot", snapshot->time_ns);
        put_number(self, "number", snapshot->number);
        put_number(self, "dropped", snapshot->dropped);
        put_number(self, "events_missed", snapshot->events_missed);
        put_number(self, "instances", snapshot->instance_count);
        end(self);
    }
    for (size_t i = 0; i < snapshot->instance_count; i++) {
        const helio_module_instance *instance = snapshot->instances[i];
        if (admit(self)) {
            put_instance(self, snapshot, instance);
        }
        for (size_t j = 0; j < instance->object_count; j++) {
            if (instance->objects[j]->scope < self->scope_count && admit(self)) {
                put_object(self, snapshot, instance, instance->objects[j]);
            }
            if (self->text.used > SEND_BYTES) {
                send_lines(self);
            }
        }
    }
    return finish(self);
}

/* ---- what happens ---- */

static int jsonl_event(void *state, const helio_module_event *event) {
    static const char *const severities[] = {"info", "warning", "error"};
    jsonl *self = state;
    begin(self, "event", event->time_ns);
    put_text(self, "instance", &event->instance);
    put_incarnation(self, event->incarnation);
    put_number(self, "number", event->number);
    for (size_t i = 0; i < self->event_count; i++) {
        if (strcmp(self->events[i].name, event->name.text) == 0) {
            put_number(self, "id", self->events[i].id);
        }
    }
    put_text(self, "name", &event->name);
    jsonl_key(&self->text, "severity");
    jsonl_puts(&self->text, "\"");
    jsonl_puts(&self->text, event->severity < 3 ? severities[event->severity] : "unknown");
    jsonl_puts(&self->text, "\"");
    put_pairs(self, "labels", event->labels, event->label_count);
    jsonl_key(&self->text, "arguments");
    jsonl_puts(&self->text, "{");
    for (size_t i = 0; i < event->argument_count; i++) {
        put_name(self, i, event->arguments[i].name.text, event->arguments[i].name.length);
        jsonl_number(&self->text, event->arguments[i].value);
    }
    jsonl_puts(&self->text, "}");
    put_text(self, "text", &event->text);
    end(self);
    return finish(self);
}

static int put_topic(jsonl *self, const char *what, const helio_module_topic *topic) {
    begin(self, what, topic->time_ns);
    put_text(self, "instance", &topic->instance);
    put_incarnation(self, topic->incarnation);
    jsonl_key(&self->text, "direction");
    jsonl_puts(&self->text,
               topic->direction == HELIO_MODULE_TRANSMIT ? "\"transmit\"" : "\"receive\"");
    put_text(self, "topic", &topic->topic);
    put_text(self, "stream", &topic->stream);
    put_text(self, "endpoint", &topic->endpoint);
    end(self);
    return finish(self);
}

static int jsonl_topic_created(void *state, const helio_module_topic *topic) {
    return put_topic(state, "topic_created", topic);
}

static int jsonl_topic_destroyed(void *state, const helio_module_topic *topic) {
    return put_topic(state, "topic_destroyed", topic);
}

const helio_module *helio_module_entry(uint32_t abi) {
    static const helio_module module = {
        .size = sizeof module,
        .abi = HELIO_MODULE_ABI,
        .name = "jsonl",
        .version = "1.0",
        .open = jsonl_open,
        .describe = jsonl_describe,
        .snapshot = jsonl_snapshot,
        .event = jsonl_event,
        .topic_created = jsonl_topic_created,
        .topic_destroyed = jsonl_topic_destroyed,
        .close = jsonl_close,
    };
    return abi >= HELIO_MODULE_ABI ? &module : NULL;
}
