#include "policy/loss.h"

#include <math.h>

enum {
    RECENT_PACKETS = 160,
    LONGER_PACKETS = 4096,
    LEAST_PACKETS = 100,
};

#define Z_OF_ONE 3.5

double helio_loss_z(uint32_t receivers) {
    /* The chance falls with exp(-z^2 / 2), and N receivers multiply it by N. */
    return sqrt(Z_OF_ONE * Z_OF_ONE + 2 * log(receivers > 1 ? receivers : 1));
}

/* What is remembered fades by as many packets as are new: of `memory` new ones half is left. */
static void add(helio_loss_counts *counts, double lost, double packets, double memory) {
    const double left = memory / (memory + packets);
    counts->lost = counts->lost * left + lost;
    counts->packets = counts->packets * left + packets;
}

void helio_loss_add(helio_loss *loss, uint64_t lost, uint64_t packets) {
    add(&loss->recent, (double)lost, (double)packets, RECENT_PACKETS);
    add(&loss->longer, (double)lost, (double)packets, LONGER_PACKETS);
}

static helio_loss_bound judge(const helio_loss_counts *counts, double z) {
    const double n = counts->packets;
    if (n < LEAST_PACKETS || counts->lost == 0) {
        return (helio_loss_bound){0};
    }
    const double p = counts->lost < n ? counts->lost / n : 1;
    const double zz = z * z / n;
    const double spread = z * sqrt(p * (1 - p) / n + zz / (4 * n));
    const double bound = (p + zz / 2 - spread) / (1 + zz);
    return (helio_loss_bound){.at_least = bound > 0 ? bound : 0, .share = p};
}

helio_loss_bound helio_loss_judge(const helio_loss *loss, double z) {
    const helio_loss_bound recent = judge(&loss->recent, z), longer = judge(&loss->longer, z);
    return recent.at_least >= longer.at_least ? recent : longer;
}
