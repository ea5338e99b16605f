/* Fuzz target for libFuzzer: what people and programs write: an endpoint with its options. */
#include <stdlib.h>
#include <string.h>

#include "options/endpoint.h"
#include "runtime/opening.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (!text) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = 0;
    /* Names of hosts are looked up in the network; the fuzzer is to stay here. */
    const char *unicast = strstr(text, "unicast://"), *tcp = strstr(text, "rum://");
    const char *host = unicast ? unicast + 10 : tcp ? tcp + 6 : NULL;
    if (!host || strspn(host, "0123456789.:,[]%") >= strcspn(host, "?")) {
        helio_opening opening;
        if (helio_opening_init(&opening, text, "T", NULL, HELIO_ON_TRANSMITTER) == 0) {
            if (opening.endpoint.addresses_count > HELIO_CHANNEL_DESTINATIONS_MAX) {
                abort();
            }
            helio_opening_fini(&opening);
        }
    }
    free(text);
    return 0;
}
