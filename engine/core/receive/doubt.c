#include "receive/doubt.h"

#include <stdlib.h>
#include <string.h>

#include "receive/passing.h"
#include "receive/stream.h"

/* ---- leaps ---- */

/* The newest packet that the source has shown to be there. */
static uint64_t shown(const helio_rx_stream *stream) {
    uint64_t newest = stream->newest;
    if (newest < stream->told_lead) {
        newest = stream->told_lead;
    }
    return newest < stream->joined ? stream->joined : newest;
}

/* What is held aside is of no use. */
static void drop_aside(helio_rx_stream *stream) {
    helio_rx_doubt *doubt = &stream->doubt;
    if (!doubt->has_aside) {
        return;
    }
    doubt->has_aside = false;
    helio_rx_account(stream, &helio_rx_stats(stream)->packets_refused, doubt->aside.bytes);
}

void helio_rx_doubt_fini(helio_rx_stream *stream) {
    drop_aside(stream);
    free(stream->doubt.data);
    stream->doubt.data = NULL;
}

/* The second leap to about the same place makes both believed. */
static bool confirms(const helio_rx_stream *stream, uint64_t sequence, int64_t now_ns) {
    const helio_rx_doubt *doubt = &stream->doubt;
    const uint64_t apart = sequence > doubt->leap ? sequence - doubt->leap : doubt->leap - sequence;
    return doubt->leap != 0 && now_ns < doubt->leap_until_ns && apart <= stream->rxw.mask + 1;
}

static const helio_rx_arrival *believe(helio_rx_doubt *doubt) {
    const bool has_aside = doubt->has_aside;
    doubt->leap = 0;
    doubt->has_aside = false;
    return has_aside ? &doubt->aside : NULL;
}

static void begin_leap(helio_rx_stream *stream, uint64_t sequence, int64_t now_ns) {
    drop_aside(stream);
    stream->doubt.leap = sequence;
    stream->doubt.leap_until_ns = now_ns + HELIO_RX_LEAP_NS;
}

bool helio_rx_believes_data(helio_rx_stream *stream, const helio_rx_arrival *arrival,
                            const helio_rx_arrival **before, int64_t now_ns) {
    helio_rx_doubt *doubt = &stream->doubt;
    const uint64_t sequence = arrival->sequence;
    *before = NULL;
    if (sequence <= shown(stream) + HELIO_RX_LEAP) {
        return true;
    }
    const bool is_again = doubt->has_aside && doubt->leap == sequence;
    if (!is_again && confirms(stream, sequence, now_ns)) {
        *before = believe(doubt);
        return true;
    }
    begin_leap(stream, sequence, now_ns);
    if (!doubt->data) {
        doubt->data = malloc(stream->shared->config.max_packet_bytes);
    }
    doubt->aside = *arrival;
    doubt->has_aside = true;
    if (!doubt->data || arrival->packet.bytes > stream->shared->config.max_packet_bytes) {
        drop_aside(stream);
        return false;
    }
    memcpy(doubt->data, arrival->packet.tsdu, arrival->packet.bytes);
    doubt->aside.packet.tsdu = doubt->data;
    doubt->aside.packet.lasts = false;
    return false;
}

bool helio_rx_believes_lead(helio_rx_stream *stream, uint64_t lead, const helio_rx_arrival **before,
                            int64_t now_ns) {
    *before = NULL;
    if (lead <= shown(stream) + HELIO_RX_LEAP) {
        return true;
    }
    if (confirms(stream, lead, now_ns)) {
        *before = believe(&stream->doubt);
        return true;
    }
    begin_leap(stream, lead, now_ns);
    return false;
}

/* ---- numbers of SPMs ---- */

/* `later` follows `sequence` closely. */
static bool follows(uint32_t later, uint32_t sequence) {
    return later - sequence - 1 < HELIO_RX_SPM_LEAP;
}

bool helio_rx_believes_spm(helio_rx_stream *stream, uint32_t sequence) {
    helio_rx_doubt *doubt = &stream->doubt;
    if (!stream->has_spm || follows(sequence, stream->spm_sequence)) {
        return true;
    }
    if (sequence == stream->spm_sequence || follows(stream->spm_sequence, sequence)) {
        return false; /* it is late */
    }
    if (doubt->has_spm && follows(sequence, doubt->spm_sequence)) {
        doubt->has_spm = false;
        return true;
    }
    doubt->has_spm = true;
    doubt->spm_sequence = sequence;
    return false;
}

/* ---- ends ---- */

bool helio_rx_believes_reset(helio_rx_stream *stream, uint32_t spm_sequence, int64_t now_ns) {
    helio_rx_doubt *doubt = &stream->doubt;
    if (doubt->has_reset && stream->newest <= doubt->reset_newest) {
        return spm_sequence != doubt->reset_sequence;
    }
    doubt->has_reset = true;
    doubt->reset_sequence = spm_sequence;
    doubt->reset_newest = helio_rx_newest_known(stream);
    doubt->reset_ns = now_ns;
    return false;
}

/* ---- time ---- */

bool helio_rx_doubt_poll(helio_rx_stream *stream, int64_t now_ns) {
    helio_rx_doubt *doubt = &stream->doubt;
    if (doubt->leap != 0 && now_ns >= doubt->leap_until_ns) {
        drop_aside(stream);
        doubt->leap = 0;
    }
    if (!doubt->has_reset || now_ns < doubt->reset_ns + HELIO_RX_RESET_NS) {
        return false;
    }
    if (stream->heard_ns > doubt->reset_ns) {
        doubt->has_reset = false;
    }
    return doubt->has_reset;
}

int64_t helio_rx_doubt_deadline_ns(const helio_rx_doubt *doubt) {
    const int64_t leap_ns = doubt->leap != 0 ? doubt->leap_until_ns : HELIO_NEVER;
    const int64_t reset_ns = doubt->has_reset ? doubt->reset_ns + HELIO_RX_RESET_NS : HELIO_NEVER;
    return leap_ns < reset_ns ? leap_ns : reset_ns;
}
