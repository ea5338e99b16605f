/* Endpoints: what is read of them and how the refusals help. */
#include "check.h"

#include "base/error.h"
#include "options/endpoint.h"

static helio_endpoint endpoint;

static void refused(const char *text, int error, const char *sentence_part) {
    CHECK_EQUAL(helio_endpoint_parse(text, &endpoint), error);
    if (!strstr(helio_error_sentence(), sentence_part)) {
        CHECK_FAIL("\"%s\" does not say \"%s\"", helio_error_sentence(), sentence_part);
    }
}

static void is_at(size_t i, const char *expected) {
    char text[HELIO_ADDRESS_TEXT];
    CHECK(strcmp(helio_address_format(&endpoint.addresses[i], text), expected) == 0);
}

static void a_group_has_a_port_and_options(void) {
    CHECK_EQUAL(helio_endpoint_parse("rmm://239.192.1.2:7500?ttl=2&interface=127.0.0.1", &endpoint),
                0);
    CHECK(endpoint.multicast);
    CHECK_EQUAL(endpoint.addresses_count, 1);
    is_at(0, "239.192.1.2:7500");
    CHECK(strcmp(endpoint.query, "ttl=2&interface=127.0.0.1") == 0);
    CHECK(strcmp(endpoint.label, "rmm://239.192.1.2:7500") == 0);
}

static void unicast_has_any_number_of_hosts(void) {
    CHECK_EQUAL(
        helio_endpoint_parse("rmm+unicast://127.0.0.1:1,localhost:65535,10.1.2.3:99", &endpoint),
        0);
    CHECK(!endpoint.multicast);
    CHECK_EQUAL(endpoint.addresses_count, 3);
    is_at(0, "127.0.0.1:1");
    is_at(1, "127.0.0.1:65535");
    is_at(2, "10.1.2.3:99");
    CHECK(strcmp(endpoint.query, "") == 0);
}

static void too_many_hosts_are_refused(void) {
    char text[2048] = "rmm+unicast://127.0.0.1:1000";
    for (int i = 0; i < 64; i++) {
        strcat(text, ",127.0.0.1:1001");
    }
    refused(text, HELIO_ERR_ENDPOINT, "more than 64");
}

static void a_ring_has_a_name(void) {
    CHECK_EQUAL(helio_endpoint_parse("shm://prices.fx-1?mtu=9000", &endpoint), 0);
    CHECK_EQUAL(endpoint.scheme, HELIO_SCHEME_SHM);
    CHECK(strcmp(endpoint.name, "prices.fx-1") == 0);
    CHECK(strcmp(endpoint.query, "mtu=9000") == 0);
    CHECK_EQUAL(helio_endpoint_parse("inproc://a", &endpoint), 0);
    CHECK_EQUAL(endpoint.scheme, HELIO_SCHEME_INPROC);
    refused("shm://", HELIO_ERR_ENDPOINT, "the name has 1 to 63");
    refused("shm://../etc", HELIO_ERR_ENDPOINT, "endpoints are");
    refused("shm://.hidden", HELIO_ERR_ENDPOINT, "the name has 1 to 63");
    refused("inproc://a b", HELIO_ERR_ENDPOINT, "the name has 1 to 63");
}

static void tcp_takes_hosts(void) {
    CHECK_EQUAL(helio_endpoint_parse("rum://127.0.0.1:7501,127.0.0.2:7501", &endpoint), 0);
    CHECK_EQUAL(endpoint.scheme, HELIO_SCHEME_RUM);
    CHECK_EQUAL(endpoint.addresses_count, 2);
    is_at(1, "127.0.0.2:7501");
    refused("rum://239.1.1.1:7501", HELIO_ERR_ENDPOINT, "needs hosts");
}

static void ip6_addresses_stand_in_brackets(void) {
    CHECK_EQUAL(helio_endpoint_parse("rmm://[ff15::1]:7500?interface=::1", &endpoint), 0);
    CHECK(endpoint.multicast);
    is_at(0, "[ff15::1]:7500");
    CHECK(strcmp(endpoint.label, "rmm://[ff15::1]:7500") == 0);
    CHECK_EQUAL(helio_endpoint_parse("rmm+unicast://[::1]:1,[2001:db8::2]:99", &endpoint), 0);
    CHECK(!endpoint.multicast);
    is_at(0, "[::1]:1");
    is_at(1, "[2001:db8::2]:99");
    refused("rmm://[ff15::1:7500", HELIO_ERR_ENDPOINT, "endpoints are");
    refused("rmm://[ff15::1]", HELIO_ERR_ENDPOINT, "endpoints are");
    refused("rmm://[ff15::1]7500", HELIO_ERR_ENDPOINT, "endpoints are");
    refused("rmm://[ff15::1]x:7500", HELIO_ERR_ENDPOINT, "endpoints are");
    refused("rmm://[ff15::1]:0", HELIO_ERR_ENDPOINT, "from 1 to 65535");
    refused("rmm://[ff15::z]:7500", HELIO_ERR_ENDPOINT, "not an IPv4 or [IPv6] address");
    refused("rmm+unicast://[::g]:7500", HELIO_ERR_ENDPOINT, "in brackets is not an IPv6 address");
    refused("rmm://[::1]:7500", HELIO_ERR_ENDPOINT, "use rmm+unicast://");
    refused("rmm+unicast://[ff15::1]:7500", HELIO_ERR_ENDPOINT, "use rmm://");
}

static void families_are_not_mixed(void) {
    refused("rmm+unicast://127.0.0.1:1,[::1]:1", HELIO_ERR_ENDPOINT, "cannot be mixed");
    refused("rmm+unicast://[::1]:1,127.0.0.1:1", HELIO_ERR_ENDPOINT, "cannot be mixed");
}

static void unknown_schemes_are_refused(void) {
    refused("http://x", HELIO_ERR_ENDPOINT, "endpoints are rmm://GROUP:PORT");
    refused("", HELIO_ERR_ENDPOINT, "endpoints are rmm://GROUP:PORT");
    refused(NULL, HELIO_ERR_ENDPOINT, "endpoints are rmm://GROUP:PORT");
}

static void broken_addresses_are_refused(void) {
    refused("rmm://239.192.1.2", HELIO_ERR_ENDPOINT, "endpoints are");
    refused("rmm://:7500", HELIO_ERR_ENDPOINT, "endpoints are");
    refused("rmm://239.192.1.2:0", HELIO_ERR_ENDPOINT, "from 1 to 65535");
    refused("rmm://239.192.1.2:65536", HELIO_ERR_ENDPOINT, "from 1 to 65535");
    refused("rmm://239.192.1.2:7x", HELIO_ERR_ENDPOINT, "from 1 to 65535");
    refused("rmm://239.192.1.2:", HELIO_ERR_ENDPOINT, "from 1 to 65535");
    refused("rmm://239.192.1:7500", HELIO_ERR_ENDPOINT, "not an IPv4 or [IPv6] address");
    refused("rmm://239.192.1.2:7500/path", HELIO_ERR_ENDPOINT, "endpoints are");
    refused("rmm://239.192.1.2:7500,239.192.1.3:7500", HELIO_ERR_ENDPOINT, "one group");
    refused("rmm+unicast://127.0.0.1:1,", HELIO_ERR_ENDPOINT, "endpoints are");
}

static void groups_and_hosts_are_not_mixed_up(void) {
    refused("rmm://127.0.0.1:7500", HELIO_ERR_ENDPOINT, "use rmm+unicast://");
    refused("rmm+unicast://239.192.1.2:7500", HELIO_ERR_ENDPOINT, "use rmm://");
}

int main(void) {
    RUN(a_group_has_a_port_and_options);
    RUN(unicast_has_any_number_of_hosts);
    RUN(too_many_hosts_are_refused);
    RUN(a_ring_has_a_name);
    RUN(tcp_takes_hosts);
    RUN(ip6_addresses_stand_in_brackets);
    RUN(families_are_not_mixed);
    RUN(unknown_schemes_are_refused);
    RUN(broken_addresses_are_refused);
    RUN(groups_and_hosts_are_not_mixed_up);
    return check_result();
}
