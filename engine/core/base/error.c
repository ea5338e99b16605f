#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char formatted[512];
static _Thread_local const char *noted = "";

int helio_fail(int error, const char *format, ...) {
    char text[sizeof formatted]; /* an argument may be the sentence noted last */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(formatted, sizeof formatted, "%s", text);
    noted = formatted;
    return error;
}

int helio_fail_plain(int error, const char *sentence) {
    noted = sentence;
    return error;
}

const char *helio_error_sentence(void) {
    return noted;
}
