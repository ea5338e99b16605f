#include "options/options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "generated/profiles.h"

enum {
    VALUE_BYTES_MAX = 4096, /* a path is the longest thing anyone has reason to write */
    NAME_BYTES_MAX = 64,
    NEAR = 3, /* a name this many letters off is taken for a slip of the pen */
};

typedef struct option_row {
    const char *name;
    helio_option_type type;
    unsigned on;
    double low, high;
    const char *initial;
    const char *choices;
} option_row;

static const option_row rows[HELIO_OPTIONS_COUNT] = {
#define X(NAME, name, TYPE, on, low, high, initial, choices, help) \
    {#name, HELIO_OPTION_##TYPE, on, low, high, initial, choices},
    HELIO_OPTIONS(X)
#undef X
};

/* ---- names ---- */

static const char *owner_of(unsigned on) {
    switch (on) {
    case HELIO_ON_INSTANCE:
        return "an instance";
    case HELIO_ON_TRANSMITTER:
        return "a transmitter";
    case HELIO_ON_RECEIVER:
        return "a receiver";
    default:
        return "a transmitter or receiver";
    }
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Letters to change, add or leave out to make one name the other (Levenshtein). */
static size_t distance(const char *a, const char *b) {
    size_t row[NAME_BYTES_MAX + 1];
    const size_t columns = smaller(strlen(b), NAME_BYTES_MAX);
    for (size_t j = 0; j <= columns; j++) {
        row[j] = j;
    }
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= columns; j++) {
            const size_t above = row[j];
            row[j] = smaller(smaller(above, row[j - 1]) + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[columns];
}

static int fail_unknown(const char *name, unsigned on) {
    const char *nearest = NULL;
    size_t nearest_distance = NEAR + 1;
    for (int i = 0; i < HELIO_OPTIONS_COUNT; i++) {
        const size_t d = rows[i].on & on ? distance(name, rows[i].name) : nearest_distance;
        if (d < nearest_distance) {
            nearest_distance = d;
            nearest = rows[i].name;
        }
    }
    return nearest ? helio_fail(HELIO_ERR_OPTION, "%s has no option %.64s; did you mean %s?",
                                owner_of(on), name, nearest)
                   : helio_fail(HELIO_ERR_OPTION, "%s has no option %.64s", owner_of(on), name);
}

static int find(const char *name) {
    for (int i = 0; i < HELIO_OPTIONS_COUNT; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

/* ---- values ---- */

static int read_choice(const option_row *row, const char *text, double *out) {
    const size_t length = strlen(text);
    int index = 0;
    for (const char *choice = row->choices; *choice; index++) {
        const size_t choice_length = strcspn(choice, ",");
        if (choice_length == length && memcmp(choice, text, length) == 0) {
            *out = index;
            return 0;
        }
        choice += choice_length + (choice[choice_length] == ',');
    }
    return helio_fail(HELIO_ERR_OPTION, "option %s is one of %s, not \"%.64s\"", row->name,
                      row->choices, text);
}

static int read_boolean(const option_row *row, const char *text, double *out) {
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        *out = text[0] == 't';
        return 0;
    }
    return helio_fail(HELIO_ERR_OPTION, "option %s is true or false, not \"%.64s\"", row->name,
                      text);
}

static int read_number(const option_row *row, const char *text, double *out) {
    char *end = NULL;
    const double value = strtod(text, &end);
    const bool whole = row->type == HELIO_OPTION_INTEGER;
    if (end == text || *end || !isfinite(value) || (whole && value != floor(value))) {
        return helio_fail(HELIO_ERR_OPTION, "option %s is %s from %.15g to %.15g, not \"%.64s\"",
                          row->name, whole ? "a whole number" : "a number", row->low, row->high,
                          text);
    }
    if (value < row->low || value > row->high) {
        return helio_fail(HELIO_ERR_OPTION, "option %s is from %.15g to %.15g; %.64s is outside",
                          row->name, row->low, row->high, text);
    }
    *out = value;
    return 0;
}

static int read_value(const option_row *row, const char *text, double *number, char **string) {
    switch (row->type) {
    case HELIO_OPTION_STRING: {
        char *copy = strdup(text);
        if (!copy) {
            return helio_fail(HELIO_ERR_NOMEM, "no memory for option %s", row->name);
        }
        free(*string);
        *string = copy;
        return 0;
    }
    case HELIO_OPTION_CHOICE:
        return read_choice(row, text, number);
    case HELIO_OPTION_BOOLEAN:
        return read_boolean(row, text, number);
    case HELIO_OPTION_INTEGER:
    case HELIO_OPTION_FLOAT:
        break;
    }
    return read_number(row, text, number);
}

/* The choice with this number, up to the next comma. */
static const char *choice_at(const option_row *row, int index, size_t *length) {
    const char *choice = row->choices;
    for (; index > 0; index--) {
        choice += strcspn(choice, ",") + 1;
    }
    *length = strcspn(choice, ",");
    return choice;
}

size_t helio_options_write(const helio_options *options, unsigned on, char *text, size_t size) {
    size_t used = 0;
    for (int i = 0; i < HELIO_OPTIONS_COUNT; i++) {
        const option_row *row = &rows[i];
        const double number = options->value[i].number;
        if (!(row->on & on) || row->type == HELIO_OPTION_STRING) {
            continue;
        }
        size_t length = 0;
        const char *choice =
            row->type == HELIO_OPTION_CHOICE ? choice_at(row, (int)number, &length) : "";
        char value[32] = "";
        if (row->type == HELIO_OPTION_BOOLEAN) {
            snprintf(value, sizeof value, "%s", number != 0 ? "true" : "false");
        } else if (row->type != HELIO_OPTION_CHOICE) {
            snprintf(value, sizeof value, "%.17g", number);
        }
        const int written =
            snprintf(text ? text + smaller(used, size) : NULL, size > used ? size - used : 0,
                     "%s%s=%.*s%s", used ? "&" : "", row->name, (int)length, choice, value);
        used += (size_t)written;
    }
    return used;
}

/* ---- the text ---- */

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Copies with %XX made bytes.  Returns false for a broken escape, an escaped NUL or want of
 * room. */
static bool decode(const char *from, size_t length, char *to, size_t size) {
    size_t out = 0;
    for (size_t i = 0; i < length; i++) {
        int byte = (unsigned char)from[i];
        if (byte == '%') {
            const int high = i + 2 < length ? hex_digit(from[i + 1]) : -1;
            const int low = i + 2 < length ? hex_digit(from[i + 2]) : -1;
            if (high < 0 || low < 0 || (high == 0 && low == 0)) {
                return false;
            }
            byte = high * 16 + low;
            i += 2;
        }
        if (out + 1 >= size) {
            return false;
        }
        to[out++] = (char)byte;
    }
    to[out] = 0;
    return true;
}

static int read_pair(helio_options *options, const char *pair, size_t length, unsigned on,
                     unsigned ignored) {
    const char *equals = memchr(pair, '=', length);
    char name[NAME_BYTES_MAX + 1];
    char value[VALUE_BYTES_MAX];
    if (!equals) {
        return helio_fail(HELIO_ERR_OPTION, "options are name=value, joined by &; \"%.*s\" is not",
                          (int)smaller(length, 64), pair);
    }
    const size_t name_length = (size_t)(equals - pair);
    if (!decode(pair, name_length, name, sizeof name) ||
        !decode(equals + 1, length - name_length - 1, value, sizeof value)) {
        return helio_fail(HELIO_ERR_OPTION, "option \"%.*s\" is too long or has a broken %%-escape",
                          (int)smaller(length, 64), pair);
    }
    const int id = find(name);
    if (id < 0) {
        return fail_unknown(name, on);
    }
    const option_row *row = &rows[id];
    if (!(row->on & (on | ignored))) {
        return helio_fail(HELIO_ERR_OPTION, "option %s belongs to %s, not to %s", name,
                          owner_of(row->on), owner_of(on));
    }
    if (row->on & on) {
        options->value[id].given = true;
        return read_value(row, value, &options->value[id].number, &options->value[id].text);
    }
    double number = 0;
    char *string = NULL;
    const int error = read_value(row, value, &number, &string);
    free(string);
    return error;
}

int helio_options_read(helio_options *options, const char *text, unsigned on, unsigned ignored) {
    while (text && *text) {
        const size_t length = strcspn(text, "&");
        const int error = length ? read_pair(options, text, length, on, ignored) : 0;
        if (error) {
            return error;
        }
        text += length + (text[length] == '&');
    }
    return 0;
}

int helio_options_init(helio_options *options) {
    memset(options, 0, sizeof *options);
    for (int i = 0; i < HELIO_OPTIONS_COUNT; i++) {
        const int error = read_value(&rows[i], rows[i].initial, &options->value[i].number,
                                     &options->value[i].text);
        if (error) {
            helio_options_fini(options);
            return error;
        }
    }
    return 0;
}

void helio_options_fini(helio_options *options) {
    for (int i = 0; i < HELIO_OPTIONS_COUNT; i++) {
        free(options->value[i].text);
        options->value[i].text = NULL;
    }
}

/* ---- use ---- */

void helio_options_default(helio_options *options, helio_option_id id, double value) {
    if (!options->value[id].given) {
        options->value[id].number = value;
    }
}

void helio_options_set(helio_options *options, helio_option_id id, double value) {
    options->value[id].number = value;
}

void helio_options_apply_profile(helio_options *options, unsigned on) {
    static const struct {
        int profile;
        helio_option_id option;
        double value;
    } changes[] = {
#define X(PROFILE, OPTION, value) {HELIO_PROFILE_##PROFILE, HELIO_OPTION_ID_##OPTION, value},
        HELIO_PROFILES(X)
#undef X
    };
    const int64_t profile = helio_options_integer(options, HELIO_OPTION_ID_PROFILE);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        if (changes[i].profile == profile && (rows[changes[i].option].on & on)) {
            helio_options_default(options, changes[i].option, changes[i].value);
        }
    }
}

int64_t helio_options_integer(const helio_options *options, helio_option_id id) {
    return (int64_t)options->value[id].number;
}

double helio_options_float(const helio_options *options, helio_option_id id) {
    return options->value[id].number;
}

const char *helio_options_string(const helio_options *options, helio_option_id id) {
    return options->value[id].text;
}

int64_t helio_options_ns(const helio_options *options, helio_option_id id) {
    return (int64_t)(options->value[id].number * 1e9 + 0.5);
}

/* What is a single transmitter's or receiver's, not its lane's. */
static bool is_own(int id) {
    switch (id) {
    case HELIO_OPTION_ID_SUBMIT_QUEUE:
    case HELIO_OPTION_ID_OVERFLOW:
    case HELIO_OPTION_ID_QUEUE_MESSAGES:
    case HELIO_OPTION_ID_QUEUE_AGE:
    case HELIO_OPTION_ID_LOW_WATER:
    case HELIO_OPTION_ID_RECEIVE_QUEUE:
    case HELIO_OPTION_ID_RECEIVE_OVERFLOW:
    case HELIO_OPTION_ID_RECEIVE_MESSAGES:
    case HELIO_OPTION_ID_RECEIVE_AGE:
    case HELIO_OPTION_ID_RECEIVE_LOW_WATER:
    case HELIO_OPTION_ID_KEY_OFFSET:
    case HELIO_OPTION_ID_KEY_BYTES:
    case HELIO_OPTION_ID_PRIORITY_OFFSET:
    case HELIO_OPTION_ID_QUEUE_HIGH:
    case HELIO_OPTION_ID_QUEUE_LOW:
        return true;
    default:
        return false;
    }
}

bool helio_options_share(const helio_options *a, const helio_options *b, unsigned on) {
    for (int i = 0; i < HELIO_OPTIONS_COUNT; i++) {
        if (!(rows[i].on & on) || is_own(i)) {
            continue;
        }
        const char *left = a->value[i].text ? a->value[i].text : "";
        const char *right = b->value[i].text ? b->value[i].text : "";
        if (a->value[i].number != b->value[i].number || strcmp(left, right) != 0) {
            return false;
        }
    }
    return true;
}
