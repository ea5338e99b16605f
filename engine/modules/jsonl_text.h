/* A growing text of JSON lines.  A text that ran out of memory takes nothing more and says so when a
 * line ends; the lines before stay whole. */
#ifndef JSONL_TEXT_H
#define JSONL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct jsonl_text {
    char *bytes;
    size_t used, room;
    size_t line; /* where the line being written begins */
    bool failed; /* since then */
} jsonl_text;

void jsonl_text_free(jsonl_text *text);
void jsonl_put(jsonl_text *text, const char *bytes, size_t length);
void jsonl_puts(jsonl_text *text, const char *bytes);
/* A JSON string with its quotes.  What is no UTF-8 becomes U+FFFD. */
void jsonl_string(jsonl_text *text, const char *bytes, size_t length);
void jsonl_number(jsonl_text *text, uint64_t number);
/* `,"key":`; `key` needs no escaping. */
void jsonl_key(jsonl_text *text, const char *key);

/* Ends the line.  Returns false, and the line is gone, when there was no memory for it. */
bool jsonl_end_line(jsonl_text *text);

#endif
