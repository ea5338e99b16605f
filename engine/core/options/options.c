#include "options/options.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/math.h"
#include "generated/profiles.h"

enum {
    VALUE_BYTES_MAX = 4096, /* a path is the longest thing anyone has reason to write */
    NAME_BYTES_MAX = 64,
    NEAR = 3, /* a name this many letters off is taken for a slip of the pen */
};

typedef enum { STRING, CHOICE, SIGNED, UNSIGNED, DURATION, FLOAT, BOOLEAN } cell_type;

typedef struct option_row {
    const char *name;
    cell_type type;
    bool per_handle;
    size_t at;       /* in the owner's struct */
    size_t given_at; /* whether it was given */
    double low, high;
    const char *initial;
    const char *choices;
    const char *unit;
} option_row;

#define ROW(STRUCT, name, part, member, TYPE, per_handle, low, high, initial, choices, unit) \
    {#name,                                                                                  \
     TYPE,                                                                                   \
     per_handle,                                                                             \
     offsetof(STRUCT, part member),                                                          \
     offsetof(STRUCT, part given.name),                                                      \
     low,                                                                                    \
     high,                                                                                   \
     initial,                                                                                \
     choices,                                                                                \
     unit},
static const option_row instance_rows[] = {
#define X(...) ROW(helio_instance_options, __VA_ARGS__)
    HELIO_INSTANCE_OPTIONS(X)
#undef X
};
static const option_row transmitter_rows[] = {
#define X(...) ROW(helio_transmitter_options, __VA_ARGS__)
    HELIO_TRANSMITTER_OPTIONS(X)
#undef X
};
static const option_row receiver_rows[] = {
#define X(...) ROW(helio_receiver_options, __VA_ARGS__)
    HELIO_RECEIVER_OPTIONS(X)
#undef X
};

static const struct {
    const char *old, *now;
} renamed[] = {
#define X(old, now) {#old, #now},
    HELIO_RENAMED_OPTIONS(X)
#undef X
};

enum { OWNERS = 3 };

static const struct {
    const option_row *rows;
    size_t count, bytes;
    const char *name;
} owners[OWNERS] = {
    [HELIO_ON_INSTANCE] = {instance_rows, sizeof instance_rows / sizeof *instance_rows,
                           sizeof(helio_instance_options), "an instance"},
    [HELIO_ON_TRANSMITTER] = {transmitter_rows, sizeof transmitter_rows / sizeof *transmitter_rows,
                              sizeof(helio_transmitter_options), "a transmitter"},
    [HELIO_ON_RECEIVER] = {receiver_rows, sizeof receiver_rows / sizeof *receiver_rows,
                           sizeof(helio_receiver_options), "a receiver"},
};

/* ---- names ---- */

/* Letters to change, add or leave out to make one name the other (Levenshtein). */
static size_t distance(const char *a, const char *b) {
    size_t row[NAME_BYTES_MAX + 1];
    const size_t columns = helio_umin(strlen(b), NAME_BYTES_MAX);
    for (size_t j = 0; j <= columns; j++) {
        row[j] = j;
    }
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= columns; j++) {
            const size_t above = row[j];
            row[j] =
                helio_umin(helio_umin(above, row[j - 1]) + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[columns];
}

static int fail_unknown(const char *name, helio_owner on) {
    const char *nearest = NULL;
    size_t nearest_distance = NEAR + 1;
    for (size_t i = 0; i < owners[on].count; i++) {
        const size_t d = distance(name, owners[on].rows[i].name);
        if (d < nearest_distance) {
            nearest_distance = d;
            nearest = owners[on].rows[i].name;
        }
    }
    return nearest ? helio_fail(HELIO_ERR_OPTION, "%s has no option %.64s; did you mean %s?",
                                owners[on].name, name, nearest)
                   : helio_fail(HELIO_ERR_OPTION, "%s has no option %.64s", owners[on].name, name);
}

static const option_row *find(const char *name, helio_owner on) {
    for (size_t i = 0; i < owners[on].count; i++) {
        if (strcmp(owners[on].rows[i].name, name) == 0) {
            return &owners[on].rows[i];
        }
    }
    return NULL;
}

/* The option is not one of `on`. */
static int fail_elsewhere(const char *name, helio_owner on) {
    const char *first = NULL, *second = NULL;
    for (int owner = 0; owner < OWNERS; owner++) {
        if (find(name, owner)) {
            second = first ? owners[owner].name : NULL;
            first = first ? first : owners[owner].name;
        }
    }
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++) {
        if (strcmp(renamed[i].old, name) == 0) {
            return helio_fail(HELIO_ERR_OPTION, "option %s was renamed to %s", name,
                              renamed[i].now);
        }
    }
    return first ? helio_fail(HELIO_ERR_OPTION, "option %s belongs to %s%s%s, not to %s", name,
                              first, second ? " or " : "", second ? second : "", owners[on].name)
                 : fail_unknown(name, on);
}

/* ---- values ---- */

static int read_choice(const option_row *row, const char *text, unsigned *out) {
    const size_t length = strlen(text);
    unsigned index = 0;
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

static int read_boolean(const option_row *row, const char *text, bool *out) {
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        *out = text[0] == 't';
        return 0;
    }
    return helio_fail(HELIO_ERR_OPTION, "option %s is true or false, not \"%.64s\"", row->name,
                      text);
}

static int read_number(const option_row *row, const char *text, void *out) {
    char *end = NULL;
    const double value = strtod(text, &end);
    const bool whole = row->type == SIGNED || row->type == UNSIGNED;
    if (end == text || *end || !isfinite(value) || (whole && value != floor(value)) ||
        value < row->low || value > row->high) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option %s is %s from %.15g to %.15g%s%s, not \"%.64s\"", row->name,
                          whole ? "a whole number" : "a number", row->low, row->high,
                          row->unit[0] ? " " : "", row->unit, text);
    }
    switch (row->type) {
    case SIGNED:
        *(int64_t *)out = (int64_t)value;
        break;
    case UNSIGNED:
        *(uint64_t *)out = (uint64_t)value;
        break;
    case DURATION:
        *(int64_t *)out = (int64_t)(value * 1e9 + 0.5);
        break;
    default:
        *(double *)out = value;
        break;
    }
    return 0;
}

static int read_value(const option_row *row, const char *text, void *out) {
    switch (row->type) {
    case STRING: {
        char *copy = strdup(text);
        if (!copy) {
            return helio_fail(HELIO_ERR_NOMEM, "no memory for option %s", row->name);
        }
        free(*(char **)out);
        *(char **)out = copy;
        return 0;
    }
    case CHOICE:
        return read_choice(row, text, out);
    case BOOLEAN:
        return read_boolean(row, text, out);
    default:
        return read_number(row, text, out);
    }
}

/* The choice with this number, up to the next comma. */
static int write_choice(const option_row *row, unsigned index, char *text, size_t size) {
    const char *choice = row->choices;
    for (; index > 0; index--) {
        choice += strcspn(choice, ",") + 1;
    }
    return snprintf(text, size, "%.*s", (int)strcspn(choice, ","), choice);
}

static int write_value(const option_row *row, const void *value, char *text, size_t size) {
    switch (row->type) {
    case CHOICE:
        return write_choice(row, *(const unsigned *)value, text, size);
    case BOOLEAN:
        return snprintf(text, size, "%s", *(const bool *)value ? "true" : "false");
    case SIGNED:
        return snprintf(text, size, "%" PRId64, *(const int64_t *)value);
    case UNSIGNED:
        return snprintf(text, size, "%" PRIu64, *(const uint64_t *)value);
    case DURATION:
        return snprintf(text, size, "%.15g", (double)*(const int64_t *)value / 1e9);
    default:
        return snprintf(text, size, "%.17g", *(const double *)value);
    }
}

size_t helio_options_write(const void *options, helio_owner on, char *text, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < owners[on].count; i++) {
        const option_row *row = &owners[on].rows[i];
        if (row->type == STRING) {
            continue;
        }
        char value[64];
        write_value(row, (const char *)options + row->at, value, sizeof value);
        used += (size_t)snprintf(text ? text + helio_umin(used, size) : NULL,
                                 size > used ? size - used : 0, "%s%s=%s", used ? "&" : "",
                                 row->name, value);
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

/* Checks a value that is not used. */
static int check_value(const option_row *row, const char *text) {
    union {
        char *string;
        int64_t number;
        double real;
    } value = {NULL};
    const int error = read_value(row, text, &value);
    if (row->type == STRING) {
        free(value.string);
    }
    return error;
}

static int read_pair(void *options, helio_owner on, const char *pair, size_t length,
                     bool for_both) {
    const char *equals = memchr(pair, '=', length);
    char name[NAME_BYTES_MAX + 1];
    char value[VALUE_BYTES_MAX];
    if (!equals) {
        return helio_fail(HELIO_ERR_OPTION, "options are name=value, joined by &; \"%.*s\" is not",
                          (int)helio_umin(length, 64), pair);
    }
    const size_t name_length = (size_t)(equals - pair);
    if (!decode(pair, name_length, name, sizeof name) ||
        !decode(equals + 1, length - name_length - 1, value, sizeof value)) {
        return helio_fail(HELIO_ERR_OPTION, "option \"%.*s\" is too long or has a broken %%-escape",
                          (int)helio_umin(length, 64), pair);
    }
    const option_row *row = find(name, on);
    if (row) {
        *((bool *)((char *)options + row->given_at)) = true;
        return read_value(row, value, (char *)options + row->at);
    }
    const helio_owner other = on == HELIO_ON_TRANSMITTER ? HELIO_ON_RECEIVER : HELIO_ON_TRANSMITTER;
    row = for_both ? find(name, other) : NULL;
    return row ? check_value(row, value) : fail_elsewhere(name, on);
}

int helio_options_read(void *options, helio_owner on, const char *text, bool for_both) {
    while (text && *text) {
        const size_t length = strcspn(text, "&");
        const int error = length ? read_pair(options, on, text, length, for_both) : 0;
        if (error) {
            return error;
        }
        text += length + (text[length] == '&');
    }
    return 0;
}

int helio_options_init(void *options, helio_owner on) {
    memset(options, 0, owners[on].bytes);
    for (size_t i = 0; i < owners[on].count; i++) {
        const option_row *row = &owners[on].rows[i];
        const int error = read_value(row, row->initial, (char *)options + row->at);
        if (error) {
            helio_options_fini(options, on);
            return error;
        }
    }
    return 0;
}

void helio_options_fini(void *options, helio_owner on) {
    for (size_t i = 0; i < owners[on].count; i++) {
        const option_row *row = &owners[on].rows[i];
        if (row->type == STRING) {
            char **text = (char **)((char *)options + row->at);
            free(*text);
            *text = NULL;
        }
    }
}

/* ---- use ---- */

int helio_options_apply_profile(void *options, helio_owner on) {
    static const struct {
        helio_option_profile profile;
        const char *option, *value;
    } changes[] = {
#define X(PROFILE, option, value) {HELIO_PROFILE_##PROFILE, #option, value},
        HELIO_PROFILES(X)
#undef X
    };
    char *cells = options;
    const unsigned profile = *(const unsigned *)(cells + find("profile", on)->at);
    int error = 0;
    for (size_t i = 0; !error && i < sizeof changes / sizeof changes[0]; i++) {
        const option_row *row = find(changes[i].option, on);
        if (changes[i].profile == profile && row && !*(bool *)(cells + row->given_at)) {
            error = read_value(row, changes[i].value, cells + row->at);
        }
    }
    return error;
}

static bool is_equal(const option_row *row, const char *a, const char *b) {
    switch (row->type) {
    case STRING:
        return strcmp(*(char *const *)a, *(char *const *)b) == 0;
    case BOOLEAN:
        return *(const bool *)a == *(const bool *)b;
    case CHOICE:
        return *(const unsigned *)a == *(const unsigned *)b;
    default:
        return memcmp(a, b, sizeof(int64_t)) == 0;
    }
}

bool helio_options_share(const void *a, const void *b, helio_owner on) {
    for (size_t i = 0; i < owners[on].count; i++) {
        const option_row *row = &owners[on].rows[i];
        if (!row->per_handle &&
            !is_equal(row, (const char *)a + row->at, (const char *)b + row->at)) {
            return false;
        }
    }
    return true;
}
