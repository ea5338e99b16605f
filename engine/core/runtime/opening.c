#include "runtime/opening.h"

#include "base/error.h"

enum { LARGE_MTU = 8192, LARGE_WINDOW = 4096 };

/* Where no network limits packets, larger ones cost less per message; fewer of them are kept.  Who
 * gives a rate and no policy means that rate. */
static void set_defaults(helio_opening *opening) {
    if (helio_options_integer(&opening->options, HELIO_OPTION_ID_RATE) > 0) {
        helio_options_default(&opening->options, HELIO_OPTION_ID_RATE_POLICY,
                              HELIO_RATE_POLICY_STATIC);
    }
    if (opening->endpoint.scheme == HELIO_SCHEME_RMM ||
        opening->endpoint.scheme == HELIO_SCHEME_RMM_UNICAST) {
        return;
    }
    helio_options_default(&opening->options, HELIO_OPTION_ID_MTU, LARGE_MTU);
    helio_options_default(&opening->options, HELIO_OPTION_ID_SEND_WINDOW, LARGE_WINDOW);
    helio_options_default(&opening->options, HELIO_OPTION_ID_RECEIVE_WINDOW, LARGE_WINDOW);
}

int helio_opening_init(helio_opening *opening, const char *endpoint, const char *topic,
                       const char *options, unsigned on, unsigned other) {
    if (!topic || !topic[0]) {
        return helio_fail(HELIO_ERR_TOPIC, "a topic's name has 1 to 255 bytes; this one is empty");
    }
    opening->topic = topic;
    int error = helio_endpoint_parse(endpoint, &opening->endpoint);
    if (error) {
        return error;
    }
    error = helio_options_init(&opening->options);
    if (error) {
        return error;
    }
    error = helio_options_read(&opening->options, opening->endpoint.query, on, other);
    if (!error) {
        error = helio_options_read(&opening->options, options, on, 0);
    }
    if (error) {
        helio_opening_fini(opening);
    } else {
        set_defaults(opening);
        helio_options_apply_profile(&opening->options, on);
    }
    return error;
}

void helio_opening_fini(helio_opening *opening) {
    helio_options_fini(&opening->options);
}
