/* When a source says where it is (SPM): RFC 3208 5.1.4 to 5.1.6.
 *
 * Two timers, independent of each other.  The ambient one always runs.  The heartbeat starts anew
 * at its shortest interval with every data packet and doubles, when it runs out, up to its longest.
 */
#ifndef HELIO_SEND_HEARTBEAT_H
#define HELIO_SEND_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct helio_heartbeat {
    int64_t min_ns;
    int64_t max_ns;
    int64_t ambient_ns;
    int64_t interval_ns; /* of the heartbeat now */
    int64_t heartbeat_due_ns;
    int64_t ambient_due_ns;
} helio_heartbeat;

static inline void helio_heartbeat_restart(helio_heartbeat *heartbeat, int64_t now_ns) {
    heartbeat->interval_ns = heartbeat->min_ns;
    heartbeat->heartbeat_due_ns = now_ns + heartbeat->min_ns;
}

static inline void helio_heartbeat_init(helio_heartbeat *heartbeat, int64_t min_ns, int64_t max_ns,
                                        int64_t ambient_ns, int64_t now_ns) {
    *heartbeat = (helio_heartbeat){
        .min_ns = min_ns,
        .max_ns = max_ns > min_ns ? max_ns : min_ns,
        .ambient_ns = ambient_ns,
        .ambient_due_ns = now_ns + ambient_ns,
    };
    helio_heartbeat_restart(heartbeat, now_ns);
}

/* Data waits to leave and says itself where the stream is: no heartbeat before `until_ns`, when it
 * is expected, and a first interval after. */
static inline void helio_heartbeat_hold(helio_heartbeat *heartbeat, int64_t until_ns) {
    if (heartbeat->heartbeat_due_ns < until_ns + heartbeat->min_ns) {
        heartbeat->heartbeat_due_ns = until_ns + heartbeat->min_ns;
    }
}

/* True when an SPM is to be sent now; the timers that ran out are set again. */
static inline bool helio_heartbeat_poll(helio_heartbeat *heartbeat, int64_t now_ns) {
    bool is_due = false;
    if (now_ns >= heartbeat->ambient_due_ns) {
        heartbeat->ambient_due_ns = now_ns + heartbeat->ambient_ns;
        is_due = true;
    }
    if (now_ns >= heartbeat->heartbeat_due_ns) {
        const int64_t doubled_ns = 2 * heartbeat->interval_ns;
        heartbeat->interval_ns = doubled_ns < heartbeat->max_ns ? doubled_ns : heartbeat->max_ns;
        heartbeat->heartbeat_due_ns = now_ns + heartbeat->interval_ns;
        is_due = true;
    }
    return is_due;
}

static inline int64_t helio_heartbeat_next_deadline_ns(const helio_heartbeat *heartbeat) {
    return heartbeat->heartbeat_due_ns < heartbeat->ambient_due_ns ? heartbeat->heartbeat_due_ns
                                                                   : heartbeat->ambient_due_ns;
}

#endif
