#include "receive/discovery.h"

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

void helio_rx_discovery_init(helio_rx_discovery *discovery, uint64_t seed) {
    *discovery = (helio_rx_discovery){.seed = seed};
}

static void free_set(helio_rx_discovery *discovery, helio_rx_shared *shared, size_t place) {
    if (!discovery->sets[place]) {
        return;
    }
    free(discovery->sets[place]);
    discovery->sets[place] = NULL;
    helio_account_give(shared->config.account, sizeof(helio_rx_discovered_set));
    helio_count(&shared->instance->memory_used,
                (uint64_t)-(int64_t)sizeof(helio_rx_discovered_set));
}

void helio_rx_discovery_fini(helio_rx_discovery *discovery, helio_rx_shared *shared) {
    for (size_t i = 0; i < HELIO_RX_DISCOVERY_SETS; i++) {
        free_set(discovery, shared, i);
    }
}

static size_t place_of(const helio_rx_discovery *discovery, const helio_address *source) {
    return helio_rx_host_key(source, discovery->seed) % HELIO_RX_DISCOVERY_SETS;
}

/* The set of an address; NULL: there is no memory for it. */
static helio_rx_discovered_set *make_set(helio_rx_discovery *discovery, helio_rx_shared *shared,
                                         size_t place) {
    helio_rx_discovered_set **set = &discovery->sets[place];
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

static helio_rx_discovered *find(const helio_rx_discovery *discovery, uint64_t key,
                                 const helio_address *source) {
    helio_rx_discovered_set *set = discovery->sets[place_of(discovery, source)];
    for (uint32_t i = 0; set && i < set->count; i++) {
        if (set->keys[i] == key && helio_address_same_ip(&set->record[i].source, source)) {
            return &set->record[i];
        }
    }
    return NULL;
}

static bool is_over(const helio_rx_discovered *record, const helio_rx_shared *shared,
                    int64_t now_ns) {
    return now_ns - record->heard_ns >= shared->config.stream_expiry_ns;
}

/* A record for a stream that has none; NULL: there is no memory.  Its contents are the caller's. */
static helio_rx_discovered *add(helio_rx_discovery *discovery, helio_rx_shared *shared,
                                uint64_t key, const helio_address *source, helio_moment moment) {
    helio_rx_discovered_set *set = make_set(discovery, shared, place_of(discovery, source));
    if (!set) {
        helio_rx_refuse_state(shared, HELIO_RX_REFUSED_MEMORY, source, moment);
        return NULL;
    }
    uint32_t place = 0;
    if (set->count < HELIO_RX_DISCOVERY_OF_ADDRESS) {
        place = set->count++;
    } else {
        for (uint32_t i = 1; i < set->count; i++) {
            if (set->record[i].heard_ns < set->record[place].heard_ns) {
                place = i;
            }
        }
        const helio_rx_discovered *oldest = &set->record[place];
        if (!is_over(oldest, shared, moment.now_ns)) {
            helio_rx_refuse_state(shared,
                                  helio_address_same_ip(&oldest->source, source)
                                      ? HELIO_RX_REFUSED_OF_ADDRESS
                                      : HELIO_RX_REFUSED_STREAMS,
                                  source, moment);
        }
    }
    set->keys[place] = key;
    return &set->record[place];
}

void helio_rx_discovery_forget(helio_rx_discovery *discovery, helio_rx_shared *shared, uint64_t key,
                               const helio_address *source) {
    helio_rx_discovered *record = find(discovery, key, source);
    if (!record) {
        return;
    }
    const size_t place = place_of(discovery, source);
    helio_rx_discovered_set *set = discovery->sets[place];
    const uint32_t last = --set->count;
    set->keys[record - set->record] = set->keys[last];
    *record = set->record[last];
    if (set->count == 0) {
        free_set(discovery, shared, place);
    }
}

void helio_rx_discovery_remember(helio_rx_discovery *discovery, helio_rx_shared *shared,
                                 uint64_t key, const helio_address *source,
                                 const helio_rx_start *start, helio_moment moment) {
    helio_rx_discovered *record =
        find(discovery, key, source) ? NULL : add(discovery, shared, key, source, moment);
    if (record) {
        *record =
            (helio_rx_discovered){.source = *source, .start = *start, .heard_ns = moment.now_ns};
    }
}

void helio_rx_discovery_on_subscribe(helio_rx_discovery *discovery) {
    for (size_t i = 0; i < HELIO_RX_DISCOVERY_SETS; i++) {
        helio_rx_discovered_set *set = discovery->sets[i];
        for (uint32_t k = 0; set && k < set->count; k++) {
            set->record[k].start.is_complete &=
                set->record[k].start.first == set->record[k].start.joined + 1;
        }
    }
}

/* ---- packets ---- */

/* Its source waits for acknowledgements of messages whose topics are not known yet. */
static bool waits_for_topics(const helio_rx_shared *shared, const helio_pgm_packet *spm) {
    return shared->subscriptions.finders && (spm->options & HELIO_PGM_HAS_AWAIT) &&
           helio_rx_spm_window(spm) > 0;
}

helio_rx_start helio_rx_start_of(const helio_rx_shared *shared, const helio_pgm_packet *packet,
                                 bool from_live) {
    const bool is_spm = packet->type == HELIO_PGM_TYPE_SPM;
    const bool wants_history =
        (shared->config.join_history || helio_rx_is_acking(shared)) && !from_live;
    const bool is_learning = is_spm && wants_history && waits_for_topics(shared, packet);
    const uint64_t lead = helio_sequence_start(is_spm ? packet->lead : packet->sequence - 1);
    return (helio_rx_start){
        .first =
            is_spm && wants_history && !is_learning ? helio_rx_begins_at(shared, packet) : lead + 1,
        .joined = lead,
        .is_complete = is_spm && helio_rx_spm_window(packet) == 0,
        .is_pacing = wants_history,
        .is_waiting = wants_history && (!is_spm || is_learning),
    };
}

/* What the source asks of those who hear it. */
static helio_rx_verdict asked_for(const helio_rx_shared *shared, const helio_pgm_packet *spm) {
    const bool asks = spm->options & HELIO_PGM_HAS_REPORTING;
    if (helio_rx_is_acking(shared) && (spm->options & HELIO_PGM_HAS_AWAIT)) {
        return HELIO_RX_TRACK;
    }
    if (asks && (spm->reporting.flags & HELIO_PGM_REPORTING_AWAITS_CREDIT)) {
        return HELIO_RX_TRACK;
    }
    return asks && shared->config.receiver != 0 ? HELIO_RX_TRACK_IF_ROOM : HELIO_RX_TRACK_NOT;
}

static helio_rx_verdict on_spm(helio_rx_discovered *record, const helio_rx_shared *shared,
                               const helio_pgm_packet *spm, const helio_address *from) {
    enum { KEPT = HELIO_PGM_HAS_REPORTING | HELIO_PGM_HAS_CRQST };
    if (record->has_spm && !helio_sequence_before(record->spm.sequence, spm->sequence)) {
        return HELIO_RX_TRACK_NOT;
    }
    record->has_spm = true;
    record->spm = (helio_rx_discovered_spm){
        .from = *from,
        .path = spm->path,
        .sequence = spm->sequence,
        .trail = spm->trail,
        .lead = spm->lead,
        .options = spm->options & KEPT,
    };
    if (spm->options & HELIO_PGM_HAS_REPORTING) {
        record->spm.reporting = spm->reporting;
    }
    if (spm->options & HELIO_PGM_HAS_CRQST) {
        record->spm.report_fields = spm->report.fields;
    }
    record->spm.reporting.stamp = 0; /* it would be echoed too late */
    const helio_rx_verdict asked = asked_for(shared, spm);
    const bool has_more =
        helio_rx_has_window(spm) &&
        helio_sequence_widen(spm->lead, record->start.first - 1) >= record->start.first;
    return has_more && asked < HELIO_RX_TRACK_PERHAPS ? HELIO_RX_TRACK_PERHAPS : asked;
}

/* What came in order and is wanted by nobody need not come again. */
static helio_rx_verdict on_unwanted(helio_rx_discovered *record, helio_rx_shared *shared,
                                    helio_wanted wanted, const helio_address *from,
                                    helio_moment moment) {
    record->start.first++;
    if (wanted == HELIO_WANTED_FOREIGN) {
        helio_count(&shared->instance->foreign_packets, 1);
        helio_rx_foreign_event(shared, from, "another program's data", moment);
    } else if (wanted == HELIO_WANTED_DAMAGED) {
        helio_pgm_count_refusal(shared->instance, HELIO_PGM_BAD_PAYLOAD);
        helio_rx_foreign_event(shared, from, "a damaged batch", moment);
    }
    return HELIO_RX_TRACK_NOT;
}

static helio_rx_verdict on_data(helio_rx_discovered *record, helio_rx_shared *shared,
                                const helio_pgm_packet *data, const helio_address *from,
                                helio_moment moment) {
    const uint64_t sequence = helio_sequence_widen(data->sequence, record->start.first - 1);
    if (sequence < record->start.first) {
        return HELIO_RX_TRACK_NOT; /* it was sent before, or came already */
    }
    const bool is_fragment = data->options & HELIO_PGM_HAS_FRAGMENT;
    const bool is_of_unwanted = is_fragment && data->fragment.offset > 0 && record->is_unwanted &&
                                record->unwanted_apdu == data->fragment.first;
    const helio_wanted wanted = is_of_unwanted
                                    ? HELIO_WANTED_BY_NONE
                                    : helio_subscriptions_look_at(&shared->subscriptions, data);
    if (wanted == HELIO_WANTED) {
        return HELIO_RX_TRACK;
    }
    if (sequence > record->start.first || record->start.is_waiting ||
        wanted == HELIO_WANTED_PERHAPS) {
        return HELIO_RX_TRACK_PERHAPS;
    }
    record->is_unwanted = is_fragment;
    if (is_fragment) {
        record->unwanted_apdu = data->fragment.first;
    }
    return on_unwanted(record, shared, wanted, from, moment);
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

helio_rx_verdict helio_rx_discovery_on_packet(helio_rx_discovery *discovery,
                                              helio_rx_shared *shared,
                                              const helio_pgm_packet *packet,
                                              const helio_address *from, helio_moment moment,
                                              helio_rx_discovered *out) {
    enum { LAST = HELIO_PGM_HAS_FIN | HELIO_PGM_HAS_RST | HELIO_PGM_HAS_NBR_UNREACH };
    const bool is_spm = packet->type == HELIO_PGM_TYPE_SPM;
    const bool is_data = packet->type == HELIO_PGM_TYPE_ODATA;
    const bool is_last = is_spm && (packet->options & LAST);
    const uint64_t key = helio_tsi_key(&packet->tsi);
    helio_rx_discovered *record = find(discovery, key, from);
    if (record && is_over(record, shared, moment.now_ns)) {
        helio_rx_discovery_forget(discovery, shared, key, from);
        record = NULL;
    }
    if (record && record->source.port != from->port && record->source.port == packet->tsi.port) {
        helio_pgm_count_refusal(shared->instance, HELIO_PGM_BAD_ADDRESS);
        return HELIO_RX_TRACK_NOT; /* its source is known by its port (receive/binding.h) */
    }
    if (record && record->source.port != from->port && from->port == packet->tsi.port) {
        helio_rx_discovery_forget(discovery, shared, key, from); /* here is the source itself */
        record = NULL;
    }
    if ((!record && (is_last || (!is_spm && !is_data))) ||
        (is_data && is_refused(shared, packet))) {
        return HELIO_RX_TRACK_NOT;
    }
    helio_rx_discovered now = {.source = *from};
    if (record) {
        now = *record;
    } else {
        now.start = helio_rx_start_of(shared, packet, false);
    }
    now.heard_ns = moment.now_ns;
    helio_rx_verdict follow = is_spm    ? on_spm(&now, shared, packet, from)
                              : is_data ? on_data(&now, shared, packet, from, moment)
                                        : HELIO_RX_TRACK_IF_ROOM; /* it asks who is there */
    if (is_last && (follow < HELIO_RX_TRACK_PERHAPS || !(packet->options & HELIO_PGM_HAS_FIN))) {
        helio_rx_discovery_forget(discovery, shared, key,
                                  from); /* over, and there is nothing to ask for */
        return HELIO_RX_TRACK_NOT;
    }
    if (!record && follow == HELIO_RX_TRACK_NOT) {
        record = add(discovery, shared, key, from, moment);
    }
    if (record) {
        *record = now;
    }
    *out = now;
    return follow;
}

helio_pgm_packet helio_rx_discovered_packet(const helio_rx_discovered *record,
                                            const helio_tsi *tsi) {
    const helio_rx_discovered_spm *spm = &record->spm;
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
