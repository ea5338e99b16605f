/* A message to ourselves, from C: cc hello.c -lheliograph && ./a.out [ENDPOINT] */
#include <heliograph/heliograph.h>
#include <stdio.h>

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, helio_error_text());
    return 1;
}

int main(int argc, char **argv) {
    const char *endpoint = argc > 1 ? argv[1] : "rmm://239.192.77.1:7500?interface=127.0.0.1";
    helio_instance *instance;
    helio_receiver *receiver;
    helio_transmitter *transmitter;
    helio_message message;
    if (helio_instance_create("name=hello", &instance) != 0)
        return fail("instance");
    if (helio_receiver_create(instance, endpoint, "HELLO", NULL, NULL, &receiver) != 0)
        return fail("receiver");
    if (helio_transmitter_create(instance, endpoint, "HELLO", NULL, &transmitter) != 0)
        return fail("transmitter");
    if (helio_transmitter_send(transmitter, "seen", 4) != 0)
        return fail("send");
    if (helio_receiver_receive(receiver, &message, 1, 5000000000) != 1)
        return fail("receive");
    printf("%.*s\n", (int)message.length, (const char *)message.data);
    helio_transmitter_destroy(transmitter);
    helio_receiver_destroy(receiver);
    helio_instance_destroy(instance);
    return 0;
}
