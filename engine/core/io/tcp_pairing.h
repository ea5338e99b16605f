/* Two instances with a connection each way put all data on one of them, and all feedback on the
 * other (ADR 0039): TCP then acknowledges data with data.
 *
 * Instance A dialed connection 1 to B, and B dialed connection 2 to A.  A, with the smaller number
 * of HELLO, offers on connection 2: "connection 1 has these ports" (PAIR).  B trusts that, because
 * it dialed the address of A's receiver itself, and looks for a connection that it accepted with
 * exactly these ports and this IP address.  If there is one, B says on both that what follows
 * belongs to the other (CROSS), and from then on writes each to the other's socket.  A reads each
 * from the other's socket once both marks were read.  Nothing is reordered, and the other direction
 * of both sockets stays as it is. */
#ifndef HELIO_IO_TCP_PAIRING_H
#define HELIO_IO_TCP_PAIRING_H

#include <stdint.h>

struct helio_tcp_connection;
struct helio_frame;

/* The standing connections of an instance. */
typedef struct helio_tcp_pairing {
    /* Number of the instance in HELLO, drawn at random; 0: it pairs none. */
    uint64_t instance;
    struct helio_tcp_connection *dialed, *accepted;
    /* Connections that ever stood. */
    uint64_t changes;
} helio_tcp_pairing;

void helio_tcp_pairing_init(helio_tcp_pairing *pairing);

/* A connection stands, or ends. */
void helio_tcp_pairing_add(struct helio_tcp_connection *connection);
void helio_tcp_pairing_remove(struct helio_tcp_connection *connection);

/* Offers a connection that was accepted for pairing, if another is there that fits. */
void helio_tcp_pairing_offer(struct helio_tcp_connection *connection);
/* PAIR came on a connection. */
void helio_tcp_pairing_on_pair(struct helio_tcp_connection *connection,
                               const struct helio_frame *frame);
/* CROSS came on a connection. */
void helio_tcp_pairing_on_cross(struct helio_tcp_connection *connection);
/* The accepted one of a pair is about to be read: reads it from the other's socket from now on, if
 * both marks were read.  Packets that were handed out of it before are no longer used. */
void helio_tcp_pairing_turn(struct helio_tcp_connection *connection);

#endif
