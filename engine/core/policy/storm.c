#include "policy/storm.h"

enum {
    WAITING_FEW = 16,      /* repairs that wait: no queue to speak of */
    WAITING_PROGRESS = 20, /* of those that wait, gone in a few slices, is progress */
    NAKS_PROGRESS = 7,     /* of the requests, fewer than a few slices ago, is progress */
    RECUR_SLICES = 3,      /* after a cut-off, to see that it was not enough */
    PAUSE_PART = 10,       /* of the usual load: the application pauses */
    BURST_PART = 8,        /* a burst counts so much less */
    RATE_LEAST = 100,      /* requests per second; fewer are no storm */
};

#define USUAL_NS (5 * HELIO_SECOND) /* that the average of the load goes back */
#define LEARN_NS HELIO_SECOND       /* before there is a usual load to compare with */
#define LOAD_MOST 1.5               /* of the usual: still normal */
#define SHARE_LEAST 0.2
#define REPEATS_LEAST 0.5

void helio_storm_init(helio_storm *storm, const helio_storm_config *config) {
    *storm = (helio_storm){.config = *config};
}

static double share(uint64_t part, uint64_t rest) {
    return part + rest ? (double)part / (double)(part + rest) : 0;
}

/* The average takes in what looks normal: pauses say nothing of the load that is usual, and a
 * lasting rise becomes normal slowly. */
static void learn(helio_storm *storm, double load, int64_t length_ns) {
    if (load < storm->usual / PAUSE_PART) {
        return;
    }
    const bool is_new = storm->learnt_ns < LEARN_NS;
    const int64_t memory_ns =
        storm->learnt_ns + length_ns < USUAL_NS ? storm->learnt_ns + length_ns : USUAL_NS;
    const bool is_burst = !is_new && load > LOAD_MOST * storm->usual;
    const double part = (double)length_ns / (double)memory_ns / (is_burst ? BURST_PART : 1);
    storm->usual += (load - storm->usual) * part;
    storm->learnt_ns = memory_ns;
}

/* An earlier slice, counted back from the current one, at most PROGRESS_SLICES. */
static const helio_storm_slice *ended(const helio_storm *storm, uint64_t back) {
    return &storm->ended[(storm->slice - back) % HELIO_STORM_PROGRESS_SLICES];
}

/* Whether the slice that ends looks like a storm. */
static bool looks_like_one(const helio_storm *storm, const helio_interval *interval,
                           int64_t length_ns, const helio_storm_decision *evidence) {
    const uint64_t waiting = ended(storm, HELIO_STORM_PROGRESS_SLICES)->waiting;
    /* Two slices against two: requests come in bunches. */
    const uint64_t naks_before = ended(storm, HELIO_STORM_PROGRESS_SLICES)->naks +
                                 ended(storm, HELIO_STORM_PROGRESS_SLICES - 1)->naks;
    const bool has_progress =
        (waiting > WAITING_FEW &&
         interval->repairs_waiting < waiting - waiting / WAITING_PROGRESS) ||
        storm->naks + ended(storm, 1)->naks < naks_before - naks_before / NAKS_PROGRESS;
    const double rate = (double)storm->naks * (double)HELIO_SECOND / (double)length_ns;
    return storm->learnt_ns >= LEARN_NS && evidence->load <= LOAD_MOST && rate >= RATE_LEAST &&
           evidence->share >= SHARE_LEAST && evidence->repeats >= REPEATS_LEAST && !has_progress;
}

static uint32_t bits(uint64_t word) {
    return (uint32_t)__builtin_popcountll(word);
}

/* In each of the last slices but one at most, the newest among those where it is. */
static bool is_seen_for(const helio_storm *storm, uint32_t slices) {
    const uint64_t mask = slices >= 64 ? UINT64_MAX : (UINT64_C(1) << slices) - 1;
    return storm->slices >= slices && (storm->seen & 1) &&
           bits(storm->seen & mask) + (slices > RECUR_SLICES) >= slices;
}

static uint32_t slices_of(int64_t ns) {
    const int64_t slices = (ns + HELIO_STORM_SLICE_NS - 1) / HELIO_STORM_SLICE_NS;
    return slices < RECUR_SLICES         ? RECUR_SLICES
           : slices > HELIO_STORM_SLICES ? HELIO_STORM_SLICES
                                         : (uint32_t)slices;
}

static void brake(helio_storm *storm, int64_t now_ns, helio_storm_decision *decision) {
    storm->cut_off_ns = storm->cut_off_ns == 0 ? storm->config.cut_off_ns : 2 * storm->cut_off_ns;
    if (storm->cut_off_ns > HELIO_STORM_CUT_OFF_MAX_NS) {
        storm->cut_off_ns = HELIO_STORM_CUT_OFF_MAX_NS;
    }
    decision->cut_off_ns = storm->cut_off_ns;
    /* What was under way still comes. */
    storm->quiet_until_ns =
        now_ns + (storm->config.enforces ? storm->cut_off_ns + HELIO_STORM_SLICE_NS : 0);
    storm->slices = 0;
}

static void conclude(helio_storm *storm, int64_t now_ns, int64_t length_ns,
                     helio_storm_decision *decision) {
    if (storm->seen & 1) {
        storm->last_ns = now_ns;
        if (!storm->is_active && bits(storm->seen & 3) == 1) {
            storm->since_ns = now_ns - length_ns;
        }
    }
    if (!storm->is_active && is_seen_for(storm, slices_of(storm->config.storm_ns))) {
        storm->is_active = true;
        decision->began = true;
        brake(storm, now_ns, decision);
    } else if (storm->is_active && is_seen_for(storm, RECUR_SLICES)) {
        /* A brake that is only watched is not applied again and again. */
        if (storm->config.enforces) {
            brake(storm, now_ns, decision);
        }
    } else if (storm->is_active && now_ns >= storm->quiet_until_ns &&
               now_ns - storm->last_ns >= 2 * storm->config.storm_ns &&
               now_ns - storm->quiet_until_ns >= 2 * storm->config.storm_ns) {
        storm->is_active = false;
        storm->cut_off_ns = 0;
        decision->ended = true;
    }
    decision->lasted_ns = storm->is_active || decision->ended ? now_ns - storm->since_ns : 0;
}

static void open_next_slice(helio_storm *storm, const helio_interval *interval) {
    storm->length_ns = 0;
    storm->ended[storm->slice++ % HELIO_STORM_PROGRESS_SLICES] =
        (helio_storm_slice){interval->repairs_waiting, storm->naks};
    storm->naks = storm->again = storm->repairs = storm->packets = storm->offered = 0;
}

helio_storm_decision helio_storm_decide(helio_storm *storm, const helio_interval *interval,
                                        uint64_t again) {
    helio_storm_decision decision = {0};
    storm->naks += interval->naks;
    storm->again += again;
    storm->repairs += interval->repair_packets;
    storm->packets += interval->packets_sent;
    storm->offered += interval->offered_bytes;
    storm->length_ns += interval->length_ns;
    const int64_t length_ns = storm->length_ns;
    if (length_ns < HELIO_STORM_SLICE_NS) {
        return decision;
    }
    const double load = (double)storm->offered * (double)HELIO_SECOND / (double)length_ns;
    decision.repeats = storm->naks ? (double)storm->again / (double)storm->naks : 0;
    if (decision.repeats > 1) {
        decision.repeats = 1;
    }
    decision.share = share(storm->naks + storm->repairs, storm->packets);
    decision.load = storm->usual > 0 ? load / storm->usual : load > 0 ? LOAD_MOST + 1 : 0;
    if (interval->now_ns >= storm->quiet_until_ns) {
        const bool seen = looks_like_one(storm, interval, length_ns, &decision);
        storm->seen = storm->seen << 1 | seen;
        storm->slices += storm->slices < HELIO_STORM_SLICES;
        conclude(storm, interval->now_ns, length_ns, &decision);
    }
    learn(storm, load, length_ns);
    open_next_slice(storm, interval);
    return decision;
}
