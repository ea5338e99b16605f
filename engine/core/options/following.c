#include "options/following.h"

#include "base/error.h"

/* The option that asks for stores, as people write it; NULL: none. */
static const char *asking(const helio_receiver_options *options) {
    return options->durable[0]                       ? "durable"
           : options->join == HELIO_JOIN_STORE       ? "join=store"
           : options->recover == HELIO_RECOVER_STORE ? "recover=store"
                                                     : NULL;
}

static int contradicts(const char *option, const char *other, const char *why) {
    return helio_fail(HELIO_ERR_OPTION, "option %s cannot be used with %s: %s", option, other, why);
}

int helio_following_read(const helio_receiver_options *options, helio_following_options *out) {
    if (options->service[0] && options->ack != HELIO_ACK_STORE) {
        return helio_fail_plain(HELIO_ERR_OPTION,
                                "option service needs ack=store: sources announce message stores");
    }
    const char *option = asking(options);
    const int overflow = (int)options->stream.overflow;
    *out = (helio_following_options){
        .is_needed = option != NULL,
        .joins = options->join == HELIO_JOIN_STORE || options->durable[0],
        .acks = options->ack == HELIO_ACK_APP,
        .wait_ns = (int64_t)options->store_wait_ns,
        .stores = options->stores,
        .join_from = options->join_from,
        .durable = options->durable,
    };
    if (!option) {
        return options->stores[0] || options->join_from[0]
                   ? helio_fail(HELIO_ERR_OPTION,
                                "option %s needs recover=store, join=store or "
                                "durable",
                                options->stores[0] ? "stores" : "join_from")
                   : 0;
    }
    if (!options->stores[0]) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option %s needs stores: directories, store://HOST:PORT or announced",
                          option);
    }
    if (options->join_from[0] && !out->joins) {
        return helio_fail_plain(HELIO_ERR_OPTION, "option join_from needs join=store or durable");
    }
    if (options->given.recover && options->recover == HELIO_RECOVER_SOURCE) {
        return contradicts(option, "recover=source", "losses come from the stores too");
    }
    if (options->stream.payload == HELIO_PAYLOAD_RAW) {
        return contradicts(option, "payload=raw", "a loss does not show in its numbers");
    }
    if (options->order == HELIO_ORDER_ARRIVAL) {
        return contradicts(option, "order=arrival", "messages are put into order");
    }
    if (overflow == HELIO_OVERFLOW_CONFLATE || overflow == HELIO_OVERFLOW_PRIORITY) {
        return contradicts(
            option, overflow == HELIO_OVERFLOW_CONFLATE ? "overflow=conflate" : "overflow=priority",
            "the stores give back what it drops");
    }
    return 0;
}
