#include "jsonl_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void jsonl_text_free(jsonl_text *text) {
    free(text->bytes);
    *text = (jsonl_text){0};
}

void jsonl_put(jsonl_text *text, const char *bytes, size_t length) {
    if (length > text->room - text->used && !text->failed) {
        size_t room = text->room ? text->room : 4096;
        while (room - text->used < length && room <= SIZE_MAX / 2) {
            room *= 2;
        }
        char *larger = room - text->used < length ? NULL : realloc(text->bytes, room);
        if (larger == NULL) {
            text->failed = true;
        } else {
            text->bytes = larger;
            text->room = room;
        }
    }
    if (!text->failed && length > 0) {
        memcpy(text->bytes + text->used, bytes, length);
        text->used += length;
    }
}

void jsonl_puts(jsonl_text *text, const char *bytes) {
    jsonl_put(text, bytes, strlen(bytes));
}

/* Bytes of the UTF-8 character that begins here; 0: it is none. */
static size_t character(const unsigned char *at, size_t left) {
    const unsigned char first = at[0];
    const size_t bytes = first < 0x80       ? 1
                         : first >> 5 == 6  ? 2
                         : first >> 4 == 14 ? 3
                         : first >> 3 == 30 ? 4
                                            : 0;
    if (bytes == 0 || bytes > left) {
        return 0;
    }
    uint32_t code = bytes == 1 ? first : first & (0x7Fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if (at[i] >> 6 != 2) {
            return 0;
        }
        code = code << 6 | (at[i] & 0x3Fu);
    }
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const bool is_half = code >= 0xD800 && code <= 0xDFFF;
    return code >= least[bytes] && code <= 0x10FFFF && !is_half ? bytes : 0;
}

void jsonl_string(jsonl_text *text, const char *bytes, size_t length) {
    const unsigned char *at = (const unsigned char *)bytes;
    jsonl_puts(text, "\"");
    for (size_t i = 0; i < length;) {
        const size_t size = character(at + i, length - i);
        if (size == 0) {
            jsonl_puts(text, "\xEF\xBF\xBD");
            i++;
        } else if (at[i] < 0x20 || at[i] == '"' || at[i] == '\\' || at[i] == 0x7F) {
            char escape[8];
            if (at[i] == '"' || at[i] == '\\') {
                snprintf(escape, sizeof escape, "\\%c", at[i]);
            } else {
                snprintf(escape, sizeof escape, "\\u%04x", at[i]);
            }
            jsonl_puts(text, escape);
            i++;
        } else {
            jsonl_put(text, bytes + i, size);
            i += size;
        }
    }
    jsonl_puts(text, "\"");
}

void jsonl_number(jsonl_text *text, uint64_t number) {
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, number);
    jsonl_puts(text, digits);
}

void jsonl_key(jsonl_text *text, const char *key) {
    jsonl_puts(text, ",\"");
    jsonl_puts(text, key);
    jsonl_puts(text, "\":");
}

bool jsonl_end_line(jsonl_text *text) {
    jsonl_puts(text, "\n");
    const bool is_whole = !text->failed;
    if (!is_whole) {
        text->used = text->line;
        text->failed = false;
    }
    text->line = text->used;
    return is_whole;
}
