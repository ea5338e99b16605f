/* The parts of heliograph.h that belong to no object. */
#include <heliograph/heliograph.h>

#include "base/error.h"

const char *helio_error_text(void) {
    return helio_error_sentence();
}

const char *helio_error_name(int error) {
    switch (error) {
    case HELIO_OK:
        return "HELIO_OK";
#define X(NAME, value, help) \
    case HELIO_ERR_##NAME:   \
        return "HELIO_ERR_" #NAME;
        HELIO_ERRORS(X)
#undef X
    default:
        return "HELIO_ERR_UNKNOWN";
    }
}

const char *helio_version(void) {
    return HELIO_VERSION;
}
