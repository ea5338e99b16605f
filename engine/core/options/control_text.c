#include "options/control_text.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

typedef struct key_shape {
    const char *name;
    helio_control_kind kind;
} key_shape;

static const key_shape keys[] = {
#define X(NAME, name, kind) {#name, HELIO_CONTROL_##kind},
    HELIO_CONTROL_KEYS(X)
#undef X
};

typedef struct verb_shape {
    const char *word;
    unsigned must, may;
} verb_shape;

static const verb_shape verbs[] = {
#define X(NAME, name, word, must, may) {word, must, may},
    HELIO_CONTROL_VERBS(X)
#undef X
};

/* ---- text ---- */

static bool is_word(const char *word, size_t length, const char *name) {
    return strlen(name) == length && memcmp(word, name, length) == 0;
}

/* Bytes of the character at `bytes`; 0: it is none, or one that moves a cursor. */
static size_t character(const uint8_t *bytes, size_t left) {
    const uint8_t first = bytes[0];
    if (first < 0x80) {
        return first >= 0x20 && first != 0x7F;
    }
    const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || length > left) {
        return 0;
    }
    uint32_t point = first & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xC0) != 0x80) {
            return 0;
        }
        point = point << 6 | (bytes[i] & 0x3Fu);
    }
    const uint32_t least = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
    const bool is_control = point < 0xA0;
    const bool is_half = point >= 0xD800 && point < 0xE000;
    return point < least || point > 0x10FFFF || is_control || is_half ? 0 : length;
}

bool helio_control_is_text(const char *bytes, size_t length) {
    for (size_t at = 0; at < length;) {
        const size_t step = character((const uint8_t *)bytes + at, length - at);
        if (!step) {
            return false;
        }
        at += step;
    }
    return true;
}

static int digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* Writes the text that a value stands for. */
static int decode(const char *name, const char *from, size_t length, char *to) {
    size_t used = 0;
    for (size_t at = 0; at < length; used++) {
        if (used == HELIO_CONTROL_VALUE_BYTES - 1) {
            return helio_fail(HELIO_ERR_OPTION, "%s has at most %d bytes", name,
                              HELIO_CONTROL_VALUE_BYTES - 1);
        }
        if (from[at] != '%') {
            to[used] = from[at++];
            continue;
        }
        const bool is_whole = length - at >= 3;
        const int high = is_whole ? digit(from[at + 1]) : -1;
        const int low = is_whole ? digit(from[at + 2]) : -1;
        if (high < 0 || low < 0) {
            return helio_fail(HELIO_ERR_OPTION, "%s: %% is followed by two hexadecimal digits",
                              name);
        }
        to[used] = (char)(high << 4 | low);
        at += 3;
    }
    to[used] = 0;
    if (!helio_control_is_text(to, used)) {
        to[0] = 0;
        return helio_fail(HELIO_ERR_OPTION, "%s must be UTF-8 text without control characters",
                          name);
    }
    return 0;
}

/* ---- numbers ---- */

/* Digits up to `end`, at most `high`; false: something else. */
static bool read_whole(const char **at, const char *end, uint64_t high, uint64_t *out) {
    const char *start = *at;
    uint64_t value = 0;
    for (; *at < end && **at >= '0' && **at <= '9'; ++*at) {
        value = value * 10 + (uint64_t)(**at - '0');
        if (value > high) {
            return false;
        }
    }
    *out = value;
    return *at > start;
}

/* Seconds, with up to 9 places. */
static bool read_time(const char *at, const char *end, int64_t *out) {
    uint64_t seconds, ns = 0;
    if (!read_whole(&at, end, HELIO_CONTROL_FOR_MAX_NS / 1000000000, &seconds)) {
        return false;
    }
    if (at < end && *at == '.') {
        at++;
        uint64_t unit = 100000000;
        for (const char *first = at; at < end && *at >= '0' && *at <= '9'; at++, unit /= 10) {
            if (at - first == 9) {
                return false;
            }
            ns += unit * (uint64_t)(*at - '0');
        }
    }
    *out = (int64_t)(seconds * 1000000000 + ns);
    return at == end && *out > 0 && *out <= HELIO_CONTROL_FOR_MAX_NS;
}

static int read_value(helio_control_key key, const char *value, size_t length,
                      helio_control_request *out) {
    const char *name = keys[key].name, *at = value, *end = value + length;
    uint64_t level;
    switch (keys[key].kind) {
    case HELIO_CONTROL_RATE:
        return read_whole(&at, end, HELIO_CONTROL_RATE_MAX, &out->rate) && at == end
                   ? 0
                   : helio_fail(HELIO_ERR_OPTION,
                                "%s is a whole number of bytes per second from 0 (no limit) to "
                                "%llu",
                                name, (unsigned long long)HELIO_CONTROL_RATE_MAX);
    case HELIO_CONTROL_TIME:
        return read_time(at, end, &out->for_ns)
                   ? 0
                   : helio_fail(HELIO_ERR_OPTION,
                                "%s is a number of seconds above 0 and at most %lld, with at most "
                                "9 decimal places",
                                name, (long long)(HELIO_CONTROL_FOR_MAX_NS / 1000000000));
    case HELIO_CONTROL_LEVEL:
        if (!read_whole(&at, end, 3, &level) || at != end) {
            return helio_fail(HELIO_ERR_OPTION, "%s is 0, 1, 2 or 3", name);
        }
        out->level = (int)level;
        return 0;
    case HELIO_CONTROL_FLAG:
        return is_word(value, length, "yes")
                   ? 0
                   : helio_fail(HELIO_ERR_OPTION,
                                "%s takes the value yes only; otherwise leave it out", name);
    case HELIO_CONTROL_TEXT:
        break;
    }
    if (length == 0) {
        return helio_fail(HELIO_ERR_OPTION, "%s is empty", name);
    }
    return decode(name, value, length, out->text[key]);
}

/* ---- words ---- */

/* Of the verbs, or (mask not 0) of the keys in the mask, as "a, b, c". */
static void list_names(unsigned mask, char *out, size_t size) {
    size_t used = 0;
    out[0] = 0;
    const size_t count = mask ? HELIO_CONTROL_KEYS_COUNT : HELIO_CONTROL_VERBS_COUNT;
    for (size_t i = 0; i < count && used < size; i++) {
        if (!mask || (mask >> i & 1)) {
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "",
                                     mask ? keys[i].name : verbs[i].word);
        }
    }
}

static int read_verb(const char *word, size_t length, helio_control_request *out) {
    for (int i = 0; i < HELIO_CONTROL_VERBS_COUNT; i++) {
        if (is_word(word, length, verbs[i].word)) {
            out->verb = (helio_control_verb)i;
            return 0;
        }
    }
    char known[256];
    list_names(0, known, sizeof known);
    return helio_fail(HELIO_ERR_OPTION, "command '%.*s' is unknown; the commands are: %s",
                      length > 60 ? 60 : (int)length, word, known);
}

static int read_pair(const char *word, size_t length, helio_control_request *out) {
    const verb_shape *verb = &verbs[out->verb];
    const char *equals = memchr(word, '=', length);
    const size_t name_bytes = equals ? (size_t)(equals - word) : length;
    const unsigned known = verb->must | verb->may;
    for (int key = 0; key < HELIO_CONTROL_KEYS_COUNT; key++) {
        if (!(known >> key & 1) || !is_word(word, name_bytes, keys[key].name)) {
            continue;
        }
        if (!equals) {
            return helio_fail(HELIO_ERR_OPTION, "%s needs a value: %s=...", keys[key].name,
                              keys[key].name);
        }
        if (out->has >> key & 1) {
            return helio_fail(HELIO_ERR_OPTION, "%s is given twice", keys[key].name);
        }
        out->has |= 1u << key;
        return read_value((helio_control_key)key, equals + 1, length - name_bytes - 1, out);
    }
    char names[128] = "none";
    if (known) {
        list_names(known, names, sizeof names);
    }
    return helio_fail(HELIO_ERR_OPTION, "%s has no parameter '%.*s'; its parameters are: %s",
                      verb->word, name_bytes > 60 ? 60 : (int)name_bytes, word, names);
}

int helio_control_parse(const char *text, size_t length, helio_control_request *out) {
    memset(out, 0, sizeof *out);
    if (!helio_control_is_text(text, length)) {
        return helio_fail(HELIO_ERR_OPTION,
                          "the command must be UTF-8 text without control characters");
    }
    const char *at = text, *end = text + length;
    bool is_verb = true;
    while (is_verb || at < end) {
        const char *blank = memchr(at, ' ', (size_t)(end - at));
        const size_t bytes = (size_t)((blank ? blank : end) - at);
        const int error = is_verb ? read_verb(at, bytes, out) : read_pair(at, bytes, out);
        if (error) {
            return error;
        }
        is_verb = false;
        at = blank ? blank + 1 : end;
    }
    const unsigned missing = verbs[out->verb].must & ~out->has;
    if (missing) {
        char names[128];
        list_names(missing, names, sizeof names);
        return helio_fail(HELIO_ERR_OPTION, "%s needs %s", verbs[out->verb].word, names);
    }
    return 0;
}
