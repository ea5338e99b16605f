/* Addresses, the map, sequence numbers. */
#include "base/address.h"
#include "base/bits.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/random.h"
#include "base/sequence.h"
#include "check.h"

static void addresses_are_read_and_written(void) {
    static const char *const texts[] = {
        "10.0.0.1:7500",  "239.192.7.7:0",    "255.255.255.255:65535", "[::]:1",
        "[::1]:80",       "[fe80::1:2]:7500", "[2001:db8:0:1::]:9",    "[1:2:3:4:5:6:7:8]:9",
        "[1:0:0:2::3]:4",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        helio_address address;
        char text[HELIO_ADDRESS_TEXT];
        CHECK_EQUAL(helio_address_parse(texts[i], &address), 0);
        if (strcmp(helio_address_format(&address, text), texts[i]) != 0) {
            CHECK_FAIL("%s became %s", texts[i], text);
        }
    }
    helio_address address;
    CHECK_EQUAL(helio_address_parse("10.1.2.3", &address), 0);
    CHECK_EQUAL(address.port, 0);
    CHECK_EQUAL(address.ip[3], 3);
    CHECK_EQUAL(helio_address_parse("[fe80::1]", &address), 0);
    CHECK_EQUAL(address.family, 6);
}

static void what_is_no_address_is_refused(void) {
    static const char *const texts[] = {
        "",
        "10.0.0",
        "10.0.0.256",
        "10.0.0.1:",
        "10.0.0.1:65536",
        "10.0.0.1:x",
        "10.0.0.1 ",
        "host",
        "[::1",
        "[1:2:3]",
        "[1::2::3]:4",
        "[1:2:3:4:5:6:7:8:9]",
        "[:::]",
        "[12345::]",
        "::1",
        "10.0.0.1:-1",
        "[1:2:3:4:5:6:7:8::]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        helio_address address;
        if (helio_address_parse(texts[i], &address) == 0) {
            CHECK_FAIL("\"%s\" is taken for an address", texts[i]);
        }
    }
}

static void addresses_are_told_apart(void) {
    helio_address a, b;
    helio_address_parse("10.0.0.1:1", &a);
    helio_address_parse("10.0.0.1:2", &b);
    CHECK(helio_address_same_ip(&a, &b) && !helio_address_equal(&a, &b));
    CHECK(!helio_address_is_multicast(&a) && !helio_address_is_unspecified(&a));
    helio_address_parse("239.0.0.1", &b);
    CHECK(helio_address_is_multicast(&b));
    helio_address_parse("0.0.0.0", &b);
    CHECK(helio_address_is_unspecified(&b));
    helio_address_parse("[ff02::1]", &b);
    CHECK(helio_address_is_multicast(&b) && !helio_address_same_ip(&a, &b));
    helio_address_parse("[ff02::2]", &a); /* the first 4 bytes are the same */
    CHECK(!helio_address_same_ip(&a, &b));
    helio_address_parse("[ff02::1]", &a);
    CHECK(helio_address_same_ip(&a, &b));
}

static void the_map_holds_what_was_put_and_not_removed(void) {
    helio_map map;
    CHECK_EQUAL(helio_map_init(&map, 0), 0);
    enum { KEYS = 500 };
    static int values[KEYS];
    bool is_in[KEYS] = {false};
    helio_random random;
    helio_random_init(&random, 3);
    size_t count = 0;
    for (int step = 0; step < 20000; step++) {
        const size_t key = helio_random_below(&random, KEYS);
        if (helio_random_below(&random, 2)) {
            CHECK_EQUAL(helio_map_put(&map, key << 32, &values[key]), 0);
            count += !is_in[key];
            is_in[key] = true;
        } else {
            CHECK(helio_map_remove(&map, key << 32) == (is_in[key] ? &values[key] : NULL));
            count -= is_in[key];
            is_in[key] = false;
        }
        CHECK_EQUAL(map.count, count);
        const size_t other = helio_random_below(&random, KEYS);
        CHECK(helio_map_get(&map, other << 32) == (is_in[other] ? &values[other] : NULL));
    }
    helio_map_fini(&map);
}

static void sequences_widen_to_the_nearest(void) {
    const uint64_t base = HELIO_SEQUENCE_BASE;
    CHECK_EQUAL(helio_sequence_widen(5, base + 3), base + 5);
    CHECK_EQUAL(helio_sequence_widen(0xFFFFFFFF, base), base - 1);
    CHECK_EQUAL(helio_sequence_widen(2, base + 0xFFFFFFF0u), 2 * base + 2);
    CHECK_EQUAL(helio_sequence_widen(0xFFFFFFF0u, 2 * base + 2), base + 0xFFFFFFF0u);
    CHECK(helio_sequence_before(0xFFFFFFFF, 0) && !helio_sequence_before(0, 0xFFFFFFFF));
    CHECK(!helio_sequence_before(7, 7));
}

static void bits_and_hashes_are_as_specified(void) {
    CHECK_EQUAL(helio_round_up_power_of_two(0), 1);
    CHECK_EQUAL(helio_round_up_power_of_two(16), 16);
    CHECK_EQUAL(helio_round_up_power_of_two(17), 32);
    CHECK_EQUAL(helio_round_up(65, 64), 128);
    CHECK(helio_is_power_of_two(64) && !helio_is_power_of_two(0) && !helio_is_power_of_two(3));
    CHECK(helio_hash_fnv1a("", 0) == UINT64_C(0xcbf29ce484222325)); /* of the FNV page */
    CHECK(helio_hash_fnv1a("foobar", 6) == UINT64_C(0x85944171f73967e8));
}

int main(void) {
    RUN(addresses_are_read_and_written);
    RUN(what_is_no_address_is_refused);
    RUN(addresses_are_told_apart);
    RUN(the_map_holds_what_was_put_and_not_removed);
    RUN(sequences_widen_to_the_nearest);
    RUN(bits_and_hashes_are_as_specified);
    return check_result();
}
