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

/* Bytes of the UTF-8 character that begins here, and *found its code; 0: it is none. */
static size_t character(const unsigned char *at, size_t left, uint32_t *found) {
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
    *found = code;
    return code >= least[bytes] && code <= 0x10FFFF && !is_half ? bytes : 0;
}

/* Whether a character moves the cursor of a terminal, turns the direction of reading or cannot be
 * seen: control characters, separators, format characters, private ones and those that are none. */
static bool is_harmful(uint32_t code) {
    static const uint32_t ranges[][2] = {
        {0x0000, 0x001F},   {0x007F, 0x00A0},   {0x00AD, 0x00AD},    {0x0600, 0x0605},
        {0x061C, 0x061C},   {0x06DD, 0x06DD},   {0x070F, 0x070F},    {0x0890, 0x0891},
        {0x08E2, 0x08E2},   {0x1680, 0x1680},   {0x180E, 0x180E},    {0x2000, 0x200F},
        {0x2028, 0x202F},   {0x205F, 0x206F},   {0x3000, 0x3000},    {0xE000, 0xF8FF},
        {0xFDD0, 0xFDEF},   {0xFEFF, 0xFEFF},   {0xFFF0, 0xFFFB},    {0xFFFE, 0xFFFF},
        {0x110BD, 0x110BD}, {0x110CD, 0x110CD}, {0x13430, 0x1343F},  {0x1BCA0, 0x1BCA3},
        {0x1D173, 0x1D17A}, {0xE0000, 0xE00FF}, {0xF0000, 0x10FFFF},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0] && code >= ranges[i][0]; i++) {
        if (code <= ranges[i][1]) {
            return true;
        }
    }
    return false;
}

/* Writes a character as JSON escapes it: one unit of UTF-16, or two. */
static void put_escape(jsonl_text *text, uint32_t code) {
    char escape[16];
    if (code > 0xFFFF) {
        snprintf(escape, sizeof escape, "\\u%04x\\u%04x", 0xD800 | (code - 0x10000) >> 10,
                 0xDC00 | (code & 0x3FF));
    } else {
        snprintf(escape, sizeof escape, "\\u%04x", code);
    }
    jsonl_puts(text, escape);
}

void jsonl_string(jsonl_text *text, const char *bytes, size_t length) {
    const unsigned char *at = (const unsigned char *)bytes;
    jsonl_puts(text, "\"");
    for (size_t i = 0; i < length;) {
        uint32_t code = 0;
        const size_t size = character(at + i, length - i, &code);
        if (size == 0) {
            jsonl_puts(text, "\xEF\xBF\xBD");
            i++;
        } else if (at[i] == '"' || at[i] == '\\') {
            jsonl_puts(text, at[i] == '"' ? "\\\"" : "\\\\");
            i++;
        } else if (is_harmful(code)) {
            put_escape(text, code);
            i += size;
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
