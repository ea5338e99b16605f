#include "receive/met.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/sequence.h"
#include "receive/control.h"
#include "receive/wanted.h"

uint64_t helio_rx_host_key(const helio_address *address, uint64_t seed) {
    uint64_t half[2];
    memcpy(half, address->ip, sizeof half);
    const uint64_t first = helio_hash_mix(half[0] ^ seed);
    return helio_hash_mix(first ^ half[1] ^ ((uint64_t)address->family << 56));
}

/* ---- records ---- */

void helio_rx_mets_init(helio_rx_mets *mets, uint64_t seed) {
    *mets = (helio_rx_mets){.seed = seed};
}

static void free_set(helio_rx_mets *mets, helio_rx_shared *shared, size_t place) {
    if (!mets->sets[place]) {
        return;
    }
    free(mets->sets[place]);
    mets->sets[place] = NULL;
    helio_account_give(shared->config.account, sizeof(helio_rx_met_set));
    helio_count(&shared->instance->memory_used, (uint64_t)-(int64_t)sizeof(helio_rx_met_set));
}

void helio_rx_mets_fini(helio_rx_mets *mets, helio_rx_shared *shared) {
    for (size_t i = 0; i < HELIO_RX_MET_SETS; i++) {
        free_set(mets, shared, i);
    }
}

static size_t place_of(const helio_rx_mets *mets, const helio_address *source) {
    return helio_rx_host_key(source, mets->seed) % HELIO_RX_MET_SETS;
}

/* The set of an address; NULL: there is no memory for it. */
static helio_rx_met_set *make_set(helio_rx_mets *mets, helio_rx_shared *shared, size_t place) {
    helio_rx_met_set **set = &mets->sets[place];
    if (*set || !helio_account_take(shared->config.account, sizeof **set)) {
        return *set;
    }
    *set = calloc(1, sizeof **set);
    if (*set) {
        helio_count(&shared->instance->memory_used, sizeof **set);
    } else {
        helio_account_give(shared->config.account, sizeof **set);
    }
    return *set;
}

static helio_rx_met *find(const helio_rx_mets *mets, uint64_t key, const helio_address *source) {
    helio_rx_met_set *set = mets->sets[place_of(mets, source)];
    for (uint32_t i = 0; set && i < set->count; i++) {
        if (set->keys[i] == key && helio_address_same_ip(&set->met[i].source, source)) {
            return &set->met[i];
        }
    }
    return NULL;
}

static bool is_over(const helio_rx_met *met, const helio_rx_shared *shared, int64_t now_ns) {
    return now_ns - met->heard_ns >= shared->config.stream_expiry_ns;
}

/* A record for a stream that has none; NULL: there is no memory.  Its contents are the caller's. */
static helio_rx_met *add(helio_rx_mets *mets, helio_rx_shared *shared, uint64_t key,
                         const helio_address *source, helio_clock clock) {
    helio_rx_met_set *set = make_set(mets, shared, place_of(mets, source));
    if (!set) {
        helio_rx_refuse_state(shared, HELIO_RX_REFUSED_MEMORY, source, clock);
        return NULL;
    }
    uint32_t place = 0;
    if (set->count < HELIO_RX_MET_OF_ADDRESS) {
        place = set->count++;
    } else {
        for (uint32_t i = 1; i < set->count; i++) {
            if (set->met[i].heard_ns < set->met[place].heard_ns) {
                place = i;
            }
        }
        const helio_rx_met *oldest = &set->met[place];
        if (!is_over(oldest, shared, clock.now_ns)) {
            helio_rx_refuse_state(shared,
                                  helio_address_same_ip(&oldest->source, source)
                                      ? HELIO_RX_REFUSED_OF_ADDRESS
                                      : HELIO_RX_REFUSED_STREAMS,
                                  source, clock);
        }
    }
    set->keys[place] = key;
    return &set->met[place];
}

void helio_rx_mets_forget(helio_rx_mets *mets, helio_rx_shared *shared, uint64_t key,
                          const helio_address *source) {
    helio_rx_met *met = find(mets, key, source);
    if (!met) {
        return;
    }
    const size_t place = place_of(mets, source);
    helio_rx_met_set *set = mets->sets[place];
    const uint32_t last = --set->count;
    set->keys[met - set->met] = set->keys[last];
    *met = set->met[last];
    if (set->count == 0) {
        free_set(mets, shared, place);
    }
}

void helio_rx_mets_remember(helio_rx_mets *mets, helio_rx_shared *shared, uint64_t key,
                            const helio_address *source, const helio_rx_start *start,
                            helio_clock clock) {
    helio_rx_met *met = find(mets, key, source) ? NULL : add(mets, shared, key, source, clock);
    if (met) {
        *met = (helio_rx_met){.source = *source, .start = *start, .heard_ns = clock.now_ns};
    }
}

void helio_rx_mets_on_subscribe(helio_rx_mets *mets) {
    for (size_t i = 0; i < HELIO_RX_MET_SETS; i++) {
        helio_rx_met_set *set = mets->sets[i];
        for (uint32_t k = 0; set && k < set->count; k++) {
            set->met[k].start.is_complete &=
                set->met[k].start.first == set->met[k].start.joined + 1;
        }
    }
}

/* ---- packets ---- */

helio_rx_start helio_rx_start_of(const helio_rx_shared *shared, const helio_pgm_packet *packet,
                                 bool from_live) {
    const bool is_spm = packet->type == HELIO_PGM_TYPE_SPM;
    const bool wants_history =
        (shared->config.join_history || helio_rx_is_acking(shared)) && !from_live;
    const uint64_t lead = helio_sequence_start(is_spm ? packet->lead : packet->sequence - 1);
    return (helio_rx_start){
        .first = is_spm && wants_history ? helio_rx_begins_at(shared, packet) : lead + 1,
        .joined = lead,
        .is_complete = is_spm && helio_rx_spm_window(packet) == 0,
        .is_pacing = wants_history,
        .is_waiting = wants_history && !is_spm,
    };
}

/* What the source asks of those who hear it. */
static helio_rx_follow_it asked_for(const helio_rx_shared *shared, const helio_pgm_packet *spm) {
    const bool asks = spm->options & HELIO_PGM_HAS_REPORTING;
    if (helio_rx_is_acking(shared) && (spm->options & HELIO_PGM_HAS_AWAIT)) {
        return HELIO_RX_FOLLOW;
    }
    if (asks && (spm->reporting.flags & HELIO_PGM_REPORTING_AWAITS_CREDIT)) {
        return HELIO_RX_FOLLOW;
    }
    return asks && shared->config.receiver != 0 ? HELIO_RX_FOLLOW_IF_ROOM : HELIO_RX_FOLLOW_NOT;
}

static helio_rx_follow_it on_spm(helio_rx_met *met, const helio_rx_shared *shared,
                                 const helio_pgm_packet *spm, const helio_address *from) {
    enum { KEPT = HELIO_PGM_HAS_REPORTING | HELIO_PGM_HAS_CRQST };
    if (met->has_spm && !helio_sequence_before(met->spm.sequence, spm->sequence)) {
        return HELIO_RX_FOLLOW_NOT;
    }
    met->has_spm = true;
    met->spm = (helio_rx_met_spm){
        .from = *from,
        .path = spm->path,
        .sequence = spm->sequence,
        .trail = spm->trail,
        .lead = spm->lead,
        .options = spm->options & KEPT,
    };
    if (spm->options & HELIO_PGM_HAS_REPORTING) {
        met->spm.reporting = spm->reporting;
    }
    if (spm->options & HELIO_PGM_HAS_CRQST) {
        met->spm.report_fields = spm->report.fields;
    }
    met->spm.reporting.stamp = 0; /* it would be echoed too late */
    const helio_rx_follow_it asked = asked_for(shared, spm);
    const bool has_more = helio_rx_has_window(spm) &&
                          helio_sequence_widen(spm->lead, met->start.first - 1) >= met->start.first;
    return has_more && asked < HELIO_RX_FOLLOW_PERHAPS ? HELIO_RX_FOLLOW_PERHAPS : asked;
}

/* What came in order and is wanted by nobody need not come again. */
static helio_rx_follow_it on_unwanted(helio_rx_met *met, helio_rx_shared *shared,
                                      helio_wanted wanted, const helio_address *from,
                                      helio_clock clock) {
    met->start.first++;
    if (wanted == HELIO_WANTED_FOREIGN) {
        helio_count(&shared->instance->foreign_packets, 1);
        helio_rx_foreign_event(shared, from, "another program's data", clock);
    } else if (wanted == HELIO_WANTED_DAMAGED) {
        helio_pgm_count_refusal(shared->instance, HELIO_PGM_BAD_PAYLOAD);
        helio_rx_foreign_event(shared, from, "a damaged batch", clock);
    }
    return HELIO_RX_FOLLOW_NOT;
}

static helio_rx_follow_it on_data(helio_rx_met *met, helio_rx_shared *shared,
                                  const helio_pgm_packet *data, const helio_address *from,
                                  helio_clock clock) {
    const uint64_t sequence = helio_sequence_widen(data->sequence, met->start.first - 1);
    if (sequence < met->start.first) {
        return HELIO_RX_FOLLOW_NOT; /* it was sent before, or came already */
    }
    const bool is_fragment = data->options & HELIO_PGM_HAS_FRAGMENT;
    const bool is_of_unwanted = is_fragment && data->fragment.offset > 0 && met->is_unwanted &&
                                met->unwanted_apdu == data->fragment.first;
    const helio_wanted wanted = is_of_unwanted
                                    ? HELIO_WANTED_BY_NONE
                                    : helio_subscriptions_look_at(&shared->subscriptions, data);
    if (wanted == HELIO_WANTED) {
        return HELIO_RX_FOLLOW;
    }
    if (sequence > met->start.first || met->start.is_waiting || wanted == HELIO_WANTED_PERHAPS) {
        return HELIO_RX_FOLLOW_PERHAPS;
    }
    met->is_unwanted = is_fragment;
    if (is_fragment) {
        met->unwanted_apdu = data->fragment.first;
    }
    return on_unwanted(met, shared, wanted, from, clock);
}

/* The packet is data of a kind not used here, or contradicts itself: no stream begins with it. */
static bool is_refused(helio_rx_shared *shared, const helio_pgm_packet *data) {
    if ((data->flags & HELIO_PGM_FLAG_PARITY) && data->tsdu_bytes > 0) {
        helio_count(&shared->instance->foreign_packets, 1);
        return true;
    }
    if (data->sequence - data->trail < HELIO_RX_WINDOW_LIMIT) {
        return false;
    }
    helio_pgm_count_refusal(shared->instance, HELIO_PGM_BAD_SIZE);
    return true;
}

helio_rx_follow_it helio_rx_mets_on_packet(helio_rx_mets *mets, helio_rx_shared *shared,
                                           const helio_pgm_packet *packet,
                                           const helio_address *from, helio_clock clock,
                                           helio_rx_met *out) {
    enum { LAST = HELIO_PGM_HAS_FIN | HELIO_PGM_HAS_RST | HELIO_PGM_HAS_NBR_UNREACH };
    const bool is_spm = packet->type == HELIO_PGM_TYPE_SPM;
    const bool is_data = packet->type == HELIO_PGM_TYPE_ODATA;
    const bool is_last = is_spm && (packet->options & LAST);
    const uint64_t key = helio_tsi_key(&packet->tsi);
    helio_rx_met *met = find(mets, key, from);
    if (met && is_over(met, shared, clock.now_ns)) {
        helio_rx_mets_forget(mets, shared, key, from);
        met = NULL;
    }
    if (met && met->source.port != from->port && met->source.port == packet->tsi.port) {
        helio_pgm_count_refusal(shared->instance, HELIO_PGM_BAD_ADDRESS);
        return HELIO_RX_FOLLOW_NOT; /* its source is known by its port (receive/binding.h) */
    }
    if (met && met->source.port != from->port && from->port == packet->tsi.port) {
        helio_rx_mets_forget(mets, shared, key, from); /* here is the source itself */
        met = NULL;
    }
    if ((!met && (is_last || (!is_spm && !is_data))) || (is_data && is_refused(shared, packet))) {
        return HELIO_RX_FOLLOW_NOT;
    }
    helio_rx_met now = {.source = *from};
    if (met) {
        now = *met;
    } else {
        now.start = helio_rx_start_of(shared, packet, false);
    }
    now.heard_ns = clock.now_ns;
    helio_rx_follow_it follow = is_spm    ? on_spm(&now, shared, packet, from)
                                : is_data ? on_data(&now, shared, packet, from, clock)
                                          : HELIO_RX_FOLLOW_IF_ROOM; /* it asks who is there */
    if (is_last && (follow < HELIO_RX_FOLLOW_PERHAPS || !(packet->options & HELIO_PGM_HAS_FIN))) {
        helio_rx_mets_forget(mets, shared, key, from); /* over, and there is nothing to ask for */
        return HELIO_RX_FOLLOW_NOT;
    }
    if (!met && follow == HELIO_RX_FOLLOW_NOT) {
        met = add(mets, shared, key, from, clock);
    }
    if (met) {
        *met = now;
    }
    *out = now;
    return follow;
}

helio_pgm_packet helio_rx_met_packet(const helio_rx_met *met, const helio_tsi *tsi) {
    const helio_rx_met_spm *spm = &met->spm;
    return (helio_pgm_packet){
        .tsi = *tsi,
        .type = HELIO_PGM_TYPE_SPM,
        .options = spm->options,
        .sequence = spm->sequence,
        .trail = spm->trail,
        .lead = spm->lead,
        .path = spm->path,
        .reporting = spm->reporting,
        .report = {.fields = spm->report_fields},
    };
}
