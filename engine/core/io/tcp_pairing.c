#include "io/tcp_pairing.h"

#include <sys/random.h>
#include <sys/socket.h>

#include "base/endian.h"
#include "io/tcp_connection.h"
#include "io/udp_socket.h"

void helio_tcp_pairing_init(helio_tcp_pairing *pairing) {
    *pairing = (helio_tcp_pairing){.instance = 0};
    if (getrandom(&pairing->instance, sizeof pairing->instance, GRND_NONBLOCK) !=
        (ssize_t)sizeof pairing->instance) {
        pairing->instance = 0;
    }
}

static bool is_dialed(const helio_tcp_connection *c) {
    return c->limits.role == HELIO_RUM_ROLE_TRANSMIT;
}

static helio_tcp_connection **list_of(const helio_tcp_connection *c) {
    helio_tcp_pairing *pairing = c->limits.pairing;
    return is_dialed(c) ? &pairing->dialed : &pairing->accepted;
}

void helio_tcp_pairing_add(helio_tcp_connection *c) {
    helio_tcp_pairing *pairing = c->limits.pairing;
    if (!pairing || !pairing->instance || !c->instance || c->instance == pairing->instance) {
        return;
    }
    helio_tcp_connection **list = list_of(c);
    c->next = *list;
    *list = c;
    c->is_listed = true;
    pairing->changes++;
}

void helio_tcp_pairing_remove(helio_tcp_connection *c) {
    if (c->twin) {
        c->twin->twin = NULL;
        if (c->twin->is_crossing) {
            helio_tcp_break_off(c->twin, "the connection it was paired with is gone");
        }
        c->twin = NULL;
    }
    if (c->is_listed) {
        helio_tcp_connection **at = list_of(c);
        while (*at != c) {
            at = &(*at)->next;
        }
        *at = c->next;
        c->is_listed = false;
    }
}

/* The port of this side's end of the socket that is read; 0: it is not known. */
static uint16_t local_port(const helio_tcp_connection *c) {
    helio_udp_name name = {.v6 = {0}};
    socklen_t length = sizeof name;
    return getsockname(c->in->fd, &name.any, &length) == 0 ? helio_udp_address(&name).port : 0;
}

/* Two connections of one instance to one other, with nothing broken and nothing exchanged. */
static bool fit(const helio_tcp_connection *a, const helio_tcp_connection *b) {
    return !a->twin && !b->twin && !a->is_crossed && !b->is_crossed &&
           a->state == HELIO_TCP_STANDING && b->state == HELIO_TCP_STANDING && !a->is_mute &&
           !b->is_mute && a->instance == b->instance && helio_address_same_ip(&a->peer, &b->peer);
}

static void couple(helio_tcp_connection *a, helio_tcp_connection *b) {
    a->twin = b;
    b->twin = a;
}

void helio_tcp_pairing_offer(helio_tcp_connection *c) {
    const helio_tcp_pairing *pairing = c->limits.pairing;
    if (!c->is_listed || c->looked_at == pairing->changes || c->is_paused || c->start < c->end) {
        return; /* what is unread keeps the mark away */
    }
    c->looked_at = pairing->changes;
    if (is_dialed(c) || pairing->instance > c->instance) {
        return;
    }
    helio_tcp_connection *other = pairing->dialed;
    while (other && !fit(c, other)) {
        other = other->next;
    }
    if (other) {
        uint8_t ports[HELIO_RUM_PAIR];
        helio_put16(ports, local_port(other));
        helio_put16(ports + 2, other->peer.port);
        couple(c, other);
        helio_tcp_say(c, HELIO_RUM_KIND_PAIR, ports, sizeof ports);
    }
}

static void swap_sizes(size_t *a, size_t *b) {
    const size_t kept = *a;
    *a = *b;
    *b = kept;
}

static void swap_bytes(uint8_t **a, uint8_t **b) {
    uint8_t *kept = *a;
    *a = *b;
    *b = kept;
}

static void swap_sockets(helio_tcp_socket **a, helio_tcp_socket **b) {
    helio_tcp_socket *kept = *a;
    *a = *b;
    *b = kept;
}

/* Memory that goes from one to the other goes with what was paid for it. */
static void swap_charges(helio_tcp_connection *a, helio_tcp_connection *b, size_t of_a,
                         size_t of_b) {
    a->charged = a->charged - of_a + of_b;
    b->charged = b->charged - of_b + of_a;
}

/* What one of them has yet to send belongs to its socket. */
static void cross_out(helio_tcp_connection *a, helio_tcp_connection *b) {
    swap_charges(a, b, a->backlog_bytes, b->backlog_bytes);
    swap_sockets(&a->out, &b->out);
    swap_bytes(&a->backlog, &b->backlog);
    swap_sizes(&a->backlog_bytes, &b->backlog_bytes);
    swap_sizes(&a->backlog_start, &b->backlog_start);
    swap_sizes(&a->backlog_end, &b->backlog_end);
}

static void cross_in(helio_tcp_connection *a, helio_tcp_connection *b) {
    swap_charges(a, b, a->buffer_bytes, b->buffer_bytes);
    swap_sockets(&a->in, &b->in);
    swap_bytes(&a->buffer, &b->buffer);
    swap_sizes(&a->buffer_bytes, &b->buffer_bytes);
    swap_sizes(&a->start, &b->start);
    swap_sizes(&a->end, &b->end);
}

/* Both can be written to without delay, so that the marks follow all that was sent. */
static bool is_clear(helio_tcp_connection *c) {
    helio_tcp_flush(c);
    return !c->is_mute && c->state == HELIO_TCP_STANDING && helio_tcp_backlog(c) == 0;
}

void helio_tcp_pairing_on_pair(helio_tcp_connection *c, const helio_frame *frame) {
    const helio_tcp_pairing *pairing = c->limits.pairing;
    if (frame->length < HELIO_RUM_PAIR || !c->is_listed || !is_dialed(c) || c->is_crossed ||
        pairing->instance < c->instance) {
        return;
    }
    const uint16_t theirs = helio_get16(frame->body), ours = helio_get16(frame->body + 2);
    helio_tcp_connection *other = pairing->accepted;
    while (other && !(other->peer.port == theirs && fit(c, other) && local_port(other) == ours)) {
        other = other->next;
    }
    if (!other || !is_clear(c) || !is_clear(other)) {
        return;
    }
    const uint64_t left_out = c->left_out + other->left_out;
    helio_tcp_say(c, HELIO_RUM_KIND_CROSS, "", 0);
    helio_tcp_say(other, HELIO_RUM_KIND_CROSS, "", 0);
    if (c->left_out + other->left_out != left_out) {
        helio_tcp_break_off(c, "no memory to pair it with another connection");
        helio_tcp_break_off(other, "no memory to pair it with another connection");
        return;
    }
    cross_out(c, other);
    c->is_crossed = other->is_crossed = true;
}

void helio_tcp_pairing_on_cross(helio_tcp_connection *c) {
    if (!c->twin || c->is_crossed) {
        helio_tcp_break_off(c, "it paired the connection without an offer");
        return;
    }
    c->is_crossing = true;
}

void helio_tcp_pairing_turn(helio_tcp_connection *c) {
    helio_tcp_connection *twin = c->twin;
    if (!is_dialed(c) && twin && twin->is_crossing) {
        cross_in(c, twin);
        c->is_crossing = twin->is_crossing = false;
        c->is_crossed = twin->is_crossed = true;
    }
}
