/* Work the engine's thread does for another thread: it creates and destroys transmitters, receivers
 * and replays, and listens to acknowledgements. */
#ifndef HELIO_RUNTIME_COMMAND_H
#define HELIO_RUNTIME_COMMAND_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <heliograph/heliograph.h>

#include "base/moment.h"

typedef struct helio_command {
    /* Runs on the engine's thread and stores the outcome in `result`.  Returns false when it is not
     * done; it then runs again in the next duty cycle. */
    bool (*run)(helio_instance *instance, struct helio_command *command, helio_moment moment);
    void *context;
    int result;

    char sentence[512]; /* error text of the engine's thread, when `result` is an error */
    bool done;
    struct helio_command *next;
} helio_command;

typedef struct helio_commands {
    pthread_mutex_t lock;
    pthread_cond_t finished;
    helio_command *first;
    _Atomic bool pending;
} helio_commands;

void helio_commands_init(helio_commands *commands);
void helio_commands_fini(helio_commands *commands);

/* Makes the engine run the command, waits until it is done and returns its result.  Returns
 * HELIO_ERR_STATE when called from a listener. */
int helio_command_execute(helio_instance *instance, helio_command *command);

/* Engine: runs the waiting commands; returns the number done. */
int helio_commands_run(helio_instance *instance, helio_moment moment);
static inline bool helio_commands_pending(const helio_commands *commands) {
    return atomic_load_explicit(&commands->pending, memory_order_acquire);
}

#endif
