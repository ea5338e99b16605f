#include "runtime/opening.h"

#include "base/error.h"

enum { LARGE_MTU = 8192, LARGE_WINDOW = 4096 };

static bool has_network(const helio_endpoint *endpoint) {
    return endpoint->scheme == HELIO_SCHEME_RMM || endpoint->scheme == HELIO_SCHEME_RMM_UNICAST;
}

/* Where no network limits packets, larger ones cost less per message; fewer of them are kept. */
static void set_default(uint64_t *value, bool is_given, uint64_t other) {
    *value = is_given ? *value : other;
}

static void set_transmitter_defaults(helio_transmitter_options *options, bool has_network) {
    if (options->rate > 0 && !options->given.rate_policy) {
        options->rate_policy = HELIO_RATE_POLICY_STATIC;
    }
    if (!has_network) {
        set_default(&options->send_window, options->given.send_window, LARGE_WINDOW);
    }
}

static void set_defaults(helio_opening *opening) {
    const bool network = has_network(&opening->endpoint);
    helio_stream_options *stream = &opening->options.stream;
    helio_receiver_options *receiver = &opening->options.receiver;
    if (!network) {
        set_default(&stream->mtu, stream->given.mtu, LARGE_MTU);
    }
    if (opening->on == HELIO_ON_TRANSMITTER) {
        set_transmitter_defaults(&opening->options.transmitter, network);
    } else if (!network) {
        set_default(&receiver->receive_window, receiver->given.receive_window, LARGE_WINDOW);
    }
}

int helio_opening_init(helio_opening *opening, const char *endpoint, const char *topic,
                       const char *options, helio_owner on) {
    if (!topic || !topic[0]) {
        return helio_fail(HELIO_ERR_TOPIC, "a topic's name has 1 to 255 bytes; this one is empty");
    }
    opening->topic = topic;
    opening->on = on;
    int error = helio_endpoint_parse(endpoint, &opening->endpoint);
    if (error) {
        return error;
    }
    error = helio_options_init(&opening->options, on);
    if (error) {
        return error;
    }
    error = helio_options_read(&opening->options, on, opening->endpoint.query, true);
    if (!error) {
        error = helio_options_read(&opening->options, on, options, false);
    }
    if (!error) {
        set_defaults(opening);
        error = helio_options_apply_profile(&opening->options, on);
    }
    if (error) {
        helio_opening_fini(opening);
    }
    return error;
}

void helio_opening_fini(helio_opening *opening) {
    helio_options_fini(&opening->options, opening->on);
}
