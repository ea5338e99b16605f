/* Where lines go: a file, or a socket (TCP, UDP, UNIX).  Nothing here waits: lines a socket does not
 * take at once stay in a bounded buffer, and what does not fit there is given up and counted.
 *
 *   - A file that was moved away or removed (rotation) is opened anew, within a second.
 *   - A connection that broke is made again, at most once a second; the line that was under way is
 *     sent again from its beginning.  Lines the kernel had taken are not known to be lost.
 *   - UDP: a datagram for each line; a longer one than fits is given up. */
#ifndef JSONL_OUT_H
#define JSONL_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

typedef enum jsonl_way { JSONL_FILE, JSONL_STREAM, JSONL_DATAGRAMS } jsonl_way;

typedef struct jsonl_out {
    jsonl_way way;
    int family; /* of sockets: AF_UNSPEC, AF_UNIX */
    char *place, *port;
    int descriptor; /* -1: none now */
    bool is_connecting, is_torn;
    int64_t next_try_ns; /* monotonic: not before this a connection or the file's place is tried */
    char *waiting;       /* lines a stream has not taken */
    size_t begin, sent,
        end;         /* of `waiting`: the first line not wholly sent, what is sent, the end */
    uint64_t lost;   /* lines given up; the caller takes them away */
    char error[256]; /* why, "" while all is well */
} jsonl_out;

enum { JSONL_WAITING_BYTES = 4 << 20 };

/* `path` or `to` ("tcp://HOST:PORT", "udp://HOST:PORT", "unix:///PATH") is not NULL.  Returns false with
 * why in out->error when the place cannot be; a peer that does not listen yet is no error. */
bool jsonl_out_open(jsonl_out *out, const char *path, const char *to);
/* Whole lines.  What cannot be sent is counted in out->lost and out->error says why. */
void jsonl_out_write(jsonl_out *out, const char *lines, size_t bytes, int64_t now_ns);
/* Sends what waits, for a tenth of a second at most, and closes. */
void jsonl_out_close(jsonl_out *out);

#endif
