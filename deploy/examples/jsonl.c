/* A monitoring module in C: it writes what it is given as lines of JSON.
 *
 *   cc -std=c11 -shared -fPIC -Iengine/include -o jsonl.so deploy/examples/jsonl.c
 *   heliograph monitor --module ./jsonl.so=/tmp/stats.jsonl
 *
 * It shows the rules of heliograph/module.h: it copies the names that it needs from the schema,
 * escapes every text, and counts the lines that it cannot write.  It leaves out histograms and
 * topics.  For production use the module `log`, which has them, follows rotated files and sends to
 * sockets. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heliograph/module.h>

/* The names of one scope, copied: the schema is valid during `describe` only. */
typedef struct named_scope {
    char *name;
    char **cells;
    uint32_t *kinds;
    size_t cell_count;
} named_scope;

typedef struct jsonl {
    const helio_module_host *host;
    FILE *file;
    size_t scope_count;
    named_scope *scopes;
} jsonl;

static int jsonl_open(const char *options, const helio_module_host *host, void **state) {
    jsonl *self = calloc(1, sizeof *self);
    if (self == NULL || (self->file = fopen(options, "a")) == NULL) {
        free(self);
        host->error(host->context, "give the name of a file that can be written");
        return 1;
    }
    self->host = host;
    *state = self;
    return 0;
}

/* ---- the schema ---- */

static char *copy_of(const helio_module_text *text) {
    char *copy = malloc(text->length + 1);
    return copy ? memcpy(copy, text->text, text->length + 1) : NULL;
}

static int copy_scope(named_scope *to, const helio_module_scope *from) {
    to->name = copy_of(&from->name);
    to->cells = calloc(from->cell_count + 1, sizeof *to->cells);
    to->kinds = calloc(from->cell_count + 1, sizeof *to->kinds);
    int is_whole = to->name && to->cells && to->kinds;
    for (; is_whole && to->cell_count < from->cell_count; to->cell_count++) {
        const helio_module_cell *cell = from->cells[to->cell_count];
        to->kinds[to->cell_count] = cell->kind;
        is_whole = (to->cells[to->cell_count] = copy_of(&cell->name)) != NULL;
    }
    return is_whole;
}

static int jsonl_describe(void *state, const helio_module_schema *schema) {
    jsonl *self = state;
    self->scopes = calloc(schema->scope_count + 1, sizeof *self->scopes);
    int is_whole = self->scopes != NULL;
    for (; is_whole && self->scope_count < schema->scope_count; self->scope_count++) {
        is_whole = copy_scope(&self->scopes[self->scope_count], schema->scopes[self->scope_count]);
    }
    if (!is_whole) {
        self->host->error(self->host->context, "no memory for the schema");
    }
    return !is_whole;
}

/* ---- lines ---- */

/* Writes a text as a string of JSON.  It escapes all but the printable characters of ASCII, so that
 * no name can move a terminal's cursor or end the string. */
static void put_text(FILE *file, const helio_module_text *text) {
    const unsigned char *at = (const unsigned char *)text->text, *const end = at + text->length;
    fputc('"', file);
    while (at < end) {
        uint32_t code = *at++;
        if (code >= 0xC0) { /* the first byte of a character of UTF-8 */
            code &= code >= 0xF0 ? 0x07 : code >= 0xE0 ? 0x0F : 0x1F;
            while (*at >> 6 == 2) {
                code = code << 6 | (*at++ & 0x3F);
            }
        }
        if (code > 0xFFFF) {
            code -= 0x10000;
            fprintf(file, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xD800 | code >> 10,
                    0xDC00 | (code & 0x3FF));
        } else if (code < ' ' || code > '~' || code == '"' || code == '\\') {
            fprintf(file, "\\u%04" PRIx32, code);
        } else {
            fputc((int)code, file);
        }
    }
    fputc('"', file);
}

static void put(FILE *file, const char *key, const helio_module_text *text) {
    fprintf(file, ",\"%s\":", key);
    put_text(file, text);
}

static void begin(jsonl *self, const char *what, uint64_t time_ns,
                  const helio_module_text *instance) {
    fprintf(self->file, "{\"what\":\"%s\",\"time_ns\":%" PRIu64, what, time_ns);
    put(self->file, "instance", instance);
}

static int end(jsonl *self) {
    fputs("}\n", self->file);
    if (fflush(self->file) != 0) {
        self->host->lost(self->host->context, 1);
    }
    return 0;
}

static void put_object(jsonl *self, uint64_t time_ns, const helio_module_text *instance,
                       const helio_module_object *object) {
    const named_scope *scope = &self->scopes[object->scope];
    FILE *const file = self->file;
    begin(self, "object", time_ns, instance);
    fprintf(file, ",\"scope\":\"%s\",\"labels\":[", scope->name);
    for (size_t i = 0; i < object->label_count; i++) {
        fputs(i ? "," : "", file);
        put_text(file, &object->labels[i]);
    }
    fputs("],\"values\":{", file);
    const char *comma = "";
    for (size_t i = 0; i < object->value_count; i++) {
        if (object->valid[i]) {
            const int below_0 = scope->kinds[i] == HELIO_MODULE_SIGNED && object->values[i] >> 63;
            fprintf(file, "%s\"%s\":%s%" PRIu64, comma, scope->cells[i], below_0 ? "-" : "",
                    below_0 ? 0 - object->values[i] : object->values[i]);
            comma = ",";
        }
    }
    fputs("}", file);
    end(self);
}

static int jsonl_snapshot(void *state, const helio_module_snapshot *snapshot) {
    jsonl *self = state;
    for (size_t i = 0; i < snapshot->instance_count; i++) {
        const helio_module_instance *instance = snapshot->instances[i];
        begin(self, "instance", snapshot->time_ns, &instance->name);
        put(self->file, "health", &instance->health);
        put(self->file, "reason", &instance->reason);
        end(self);
        for (size_t j = 0; j < instance->object_count; j++) {
            if (instance->objects[j]->scope < self->scope_count) {
                put_object(self, snapshot->time_ns, &instance->name, instance->objects[j]);
            }
        }
    }
    return 0;
}

static int jsonl_event(void *state, const helio_module_event *event) {
    jsonl *self = state;
    begin(self, "event", event->time_ns, &event->instance);
    put(self->file, "name", &event->name);
    put(self->file, "text", &event->text);
    return end(self);
}

static void jsonl_close(void *state) {
    jsonl *self = state;
    for (size_t i = 0; i < self->scope_count; i++) {
        named_scope *scope = &self->scopes[i];
        for (size_t j = 0; j < scope->cell_count; j++) {
            free(scope->cells[j]);
        }
        free(scope->name);
        free(scope->cells);
        free(scope->kinds);
    }
    free(self->scopes);
    fclose(self->file);
    free(self);
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
        .close = jsonl_close,
    };
    return abi == HELIO_MODULE_ABI ? &module : NULL;
}
