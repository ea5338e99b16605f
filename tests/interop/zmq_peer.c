/* libzmq's epgm:// at the other end of the cable: a pipe with ZMTP over PGM in it.
 *
 *   zmq_peer send INTERFACE GROUP PORT     frames of standard input become messages (PUB)
 *   zmq_peer recv INTERFACE GROUP PORT     messages become frames of standard output (SUB)
 *
 * A frame is u32 length, u32 tag (0), the bytes; integers as the machine has them.  Standard output
 * begins with a frame READY.  A sender stays until its input ends. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zmq.h>

enum { READY = 0x7FFFFFFE, MESSAGE_MAX = 65535, RATE_KBIT = 100000, RECOVERY_MS = 10000 };

typedef struct frame {
    uint32_t length;
    uint32_t tag;
} frame;

static FILE *out; /* the frames; what the library prints goes to standard error */

static void fail(const char *what) {
    fprintf(stderr, "zmq_peer: %s: %s\n", what, zmq_strerror(zmq_errno()));
    exit(3);
}

static void set(void *socket, int option, int value) {
    if (zmq_setsockopt(socket, option, &value, sizeof value) != 0) {
        fail("option");
    }
}

static void write_frame(uint32_t length, const void *data) {
    const frame head = {length, 0};
    fwrite(&head, sizeof head, 1, out);
    fwrite(data, 1, length == READY ? 0 : length, out);
    fflush(out);
}

static void send_all(void *socket) {
    static char data[MESSAGE_MAX];
    frame head;
    while (fread(&head, sizeof head, 1, stdin) == 1) {
        if (head.length > sizeof data || fread(data, 1, head.length, stdin) != head.length) {
            return;
        }
        if (zmq_send(socket, data, head.length, 0) < 0) {
            fail("send");
        }
    }
}

/* Until the reader of the frames has gone. */
static void receive_all(void *socket) {
    static char data[MESSAGE_MAX];
    while (!ferror(out)) {
        const int length = zmq_recv(socket, data, sizeof data, 0);
        if (length < 0) {
            fail("receive");
        }
        write_frame((uint32_t)length, data);
    }
}

int main(int count, char **words) {
    if (count != 5 || (strcmp(words[1], "send") != 0 && strcmp(words[1], "recv") != 0)) {
        fprintf(stderr, "usage: zmq_peer send|recv INTERFACE GROUP PORT\n");
        return 2;
    }
    out = fdopen(dup(STDOUT_FILENO), "w");
    dup2(STDERR_FILENO, STDOUT_FILENO);
    const int sends = words[1][0] == 's';
    char endpoint[128];
    snprintf(endpoint, sizeof endpoint, "epgm://%s;%s:%s", words[2], words[3], words[4]);
    void *context = zmq_ctx_new();
    void *socket = zmq_socket(context, sends ? ZMQ_PUB : ZMQ_SUB);
    if (!socket) {
        fail("socket");
    }
    set(socket, ZMQ_RATE, RATE_KBIT);
    set(socket, ZMQ_RECOVERY_IVL, RECOVERY_MS);
    set(socket, sends ? ZMQ_SNDHWM : ZMQ_RCVHWM, 0);
    set(socket, ZMQ_LINGER, 0);
    if (!sends && zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0) != 0) {
        fail("subscribe");
    }
    if (zmq_connect(socket, endpoint) != 0) {
        fail(endpoint);
    }
    write_frame(READY, "");
    if (sends) {
        send_all(socket);
    } else {
        receive_all(socket);
    }
    zmq_close(socket);
    zmq_ctx_term(context);
    return 0;
}
