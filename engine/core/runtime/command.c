#include "runtime/command.h"

#include <stdio.h>

#include "base/error.h"
#include "runtime/instance.h"
#include "runtime/loop.h"
#include "runtime/rx_lane.h"

void helio_commands_init(helio_commands *commands) {
    pthread_mutex_init(&commands->lock, NULL);
    pthread_cond_init(&commands->finished, NULL);
    commands->first = NULL;
    commands->pending = false;
}

void helio_commands_fini(helio_commands *commands) {
    pthread_mutex_destroy(&commands->lock);
    pthread_cond_destroy(&commands->finished);
}

static bool run(helio_instance *instance, helio_command *command, helio_moment moment) {
    command->result = 0;
    const bool is_done = command->run(instance, command, moment);
    helio_rx_lanes_look(instance);
    if (!is_done) {
        return false;
    }
    if (command->result < 0) {
        snprintf(command->sentence, sizeof command->sentence, "%s", helio_error_sentence());
    }
    return true;
}

int helio_commands_run(helio_instance *instance, helio_moment moment) {
    helio_commands *commands = &instance->commands;
    if (!helio_commands_pending(commands)) {
        return 0;
    }
    int done = 0;
    pthread_mutex_lock(&commands->lock);
    for (helio_command **at = &commands->first; *at;) {
        helio_command *command = *at;
        if (run(instance, command, moment)) {
            *at = command->next;
            command->done = true; /* it may be gone as soon as the lock is */
            done++;
        } else {
            at = &command->next;
        }
    }
    atomic_store_explicit(&commands->pending, commands->first != NULL, memory_order_release);
    pthread_cond_broadcast(&commands->finished);
    pthread_mutex_unlock(&commands->lock);
    return done;
}

static void execute_by_thread(helio_instance *instance, helio_command *command) {
    helio_commands *commands = &instance->commands;
    pthread_mutex_lock(&commands->lock);
    command->next = commands->first;
    commands->first = command;
    atomic_store_explicit(&commands->pending, true, memory_order_release);
    helio_idle_wake(&instance->idle);
    while (!command->done) {
        pthread_cond_wait(&commands->finished, &commands->lock);
    }
    pthread_mutex_unlock(&commands->lock);
}

int helio_command_execute(helio_instance *instance, helio_command *command) {
    if (helio_instance_is_engine(instance)) {
        return helio_fail(HELIO_ERR_STATE, "a listener must not create or destroy anything");
    }
    if (instance->mode == HELIO_MODE_THREAD) {
        execute_by_thread(instance, command);
    } else {
        while (!run(instance, command, helio_clock_read(&instance->clock))) {
            helio_loop_once(instance);
        }
    }
    return command->result < 0 ? helio_fail(command->result, "%s", command->sentence)
                               : command->result;
}
