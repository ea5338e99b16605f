/* A sender in mode poll is not deaf while it sends a list: what receivers ask for, and what they
 * forbid, counts before the list ends.  The network is a driver that notes what leaves. */
#include "check.h"

#include <unistd.h>

#include <heliograph/heliograph.h>

#include "ports.h"
#include "runtime/instance.h"
#include "runtime/transmitter.h"
#include "send/topics.h"
#include "wire/pgm.h"

enum { SIZE = 1000, LIST = 512, ASKED_AFTER = 100, TYPE_AT = 4, TYPE_MASK = 0x0F };

static helio_instance *instance;
static helio_transmitter *transmitter;
static helio_driver noting;
static helio_buffer list[LIST];
static char data[SIZE];

static struct {
    unsigned data, repairs; /* packets that left */
    unsigned before_repair; /* data packets that left before the first repair */
    unsigned looks;         /* for feedback */
    bool asks;              /* a request comes once ASKED_AFTER packets have left */
    bool forbids;           /* the send limit is at what has left by then */
} seen;

static int send_noting(helio_channel *channel, const helio_address *to, const void *packet,
                       size_t length, bool stable) {
    (void)channel, (void)to, (void)length, (void)stable;
    const uint8_t type = ((const uint8_t *)packet)[TYPE_AT] & TYPE_MASK;
    if (type == HELIO_PGM_TYPE_RDATA && seen.repairs++ == 0) {
        seen.before_repair = seen.data;
    }
    seen.data += type == HELIO_PGM_TYPE_ODATA;
    return 0;
}

static void flush_nothing(helio_channel *channel) {
    (void)channel;
}

static size_t receive_request(helio_channel *channel, helio_datagram *out, size_t limit) {
    static uint8_t packet[HELIO_PGM_CONTROL_MAX];
    (void)channel, (void)limit;
    seen.looks++;
    if (seen.data < ASKED_AFTER || !transmitter) {
        return 0;
    }
    helio_tx_stream *stream = transmitter->lane->stream;
    if (seen.forbids) {
        seen.forbids = false;
        helio_tx_pace_set_send_limit(helio_tx_stream_pace(stream), helio_tx_stream_lead(stream));
    }
    if (!seen.asks) {
        return 0;
    }
    seen.asks = false;
    const helio_pgm_session session = {*helio_tx_stream_tsi(stream),
                                       transmitter->lane->base.endpoint.addresses[0].port};
    const uint32_t wanted = (uint32_t)helio_tx_stream_lead(stream) - 20;
    const helio_address host = {.family = 4, .ip = {127, 0, 0, 1}, .port = 5555};
    const size_t length =
        helio_pgm_encode_nak(packet, &session, HELIO_PGM_TYPE_NAK, &wanted, 1, &host, &host);
    out[0] = (helio_datagram){.data = packet, .length = length, .source = host};
    return 1;
}

static void begin(const char *options) {
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "rmm+unicast://127.0.0.1:%d", test_port(0));
    memset(&seen, 0, sizeof seen);
    if (helio_instance_create("mode=poll&segment_bytes=4194304&flight_keep=0", &instance) < 0 ||
        helio_transmitter_create(instance, endpoint, "T", options, &transmitter) < 0) {
        CHECK_FAIL("%s", helio_error_text());
    }
    helio_channel *channel = transmitter->lane->base.channel;
    noting = *channel->driver;
    noting.send = send_noting;
    noting.flush = flush_nothing;
    noting.receive = receive_request;
    channel->driver = &noting;
    transmitter->lane->read_due_ns = 0;
    for (int i = 0; i < LIST; i++) {
        list[i] = (helio_buffer){data, SIZE};
    }
}

static void end(void) {
    helio_transmitter *ended = transmitter;
    transmitter = NULL; /* the channel is read while the stream lingers */
    helio_transmitter_destroy(ended);
    helio_instance_destroy(instance);
}

static void a_request_is_answered_before_the_list_ends(void) {
    size_t accepted;
    begin("linger=0");
    seen.asks = true;
    CHECK_EQUAL(helio_transmitter_send_many(transmitter, list, LIST, &accepted), 0);
    CHECK_EQUAL(accepted, LIST);
    CHECK_EQUAL(seen.data, LIST);
    CHECK_EQUAL(seen.repairs, 1);
    CHECK(seen.before_repair >= ASKED_AFTER && seen.before_repair < LIST - 64);
    end();
}

static void a_short_list_is_sent_without_a_look(void) {
    begin("linger=0");
    transmitter->lane->unheard = 0;
    seen.looks = 0;
    instance->transmit_due_ns = HELIO_NEVER;
    CHECK_EQUAL(helio_transmitter_send_many(transmitter, list, 60, NULL), 0);
    CHECK_EQUAL(seen.looks, 0);
    CHECK_EQUAL(seen.data, 60);
    end();
}

static void the_rest_of_a_list_goes_through_the_gate_again(void) {
    size_t accepted;
    begin("linger=0");
    seen.forbids = true;
    CHECK_EQUAL(helio_transmitter_send_many(transmitter, list, LIST, &accepted),
                HELIO_ERR_WOULD_BLOCK);
    CHECK(accepted >= ASKED_AFTER && accepted < LIST - 64);
    CHECK_EQUAL(seen.data, accepted);
    helio_tx_pace_set_send_limit(helio_tx_stream_pace(transmitter->lane->stream), UINT64_MAX);
    CHECK_EQUAL(helio_transmitter_send_many(transmitter, list, LIST - accepted, NULL), 0);
    CHECK_EQUAL(seen.data, LIST);
    end();
}

/* Who only sends has nothing else to do in a poll. */
static void a_poll_without_receivers_looks_once_a_microsecond(void) {
    begin("linger=0");
    for (int i = 0; i < 100; i++) {
        CHECK(helio_instance_poll(instance) >= 0);
        const unsigned looks = seen.looks;
        const int64_t start_ns = helio_clock_read(&instance->clock).now_ns;
        while (helio_clock_read(&instance->clock).now_ns < start_ns + 1500) {
        }
        CHECK(helio_instance_poll(instance) >= 0);
        CHECK_EQUAL(seen.looks, looks + 1);
    }
    end();
}

int main(void) {
    RUN(a_request_is_answered_before_the_list_ends);
    RUN(a_short_list_is_sent_without_a_look);
    RUN(the_rest_of_a_list_goes_through_the_gate_again);
    RUN(a_poll_without_receivers_looks_once_a_microsecond);
    return check_result();
}
