#include "base/error.h"
#include "io/driver.h"

static int open_none(const helio_channel_config *config, helio_channel **out) {
    (void)config, (void)out;
    return helio_fail(HELIO_ERR_ENDPOINT, "not yet");
}

const helio_driver helio_driver_tcp = {.name = "tcp", .is_connected = true, .open = open_none};
