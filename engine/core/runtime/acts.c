/* What an application does by hand to the receivers of a transmitter's stream: run by the
 * engine. */
#include <inttypes.h>

#include "base/error.h"
#include "runtime/command.h"
#include "runtime/instance.h"
#include "runtime/transmitter.h"
#include "runtime/tx_lane.h"

typedef struct act {
    helio_transmitter *transmitter;
    uint64_t receiver;
    helio_action action;
    int64_t duration_ns;
    const char *why;
} act;

static bool run_act(helio_instance *instance, helio_command *command, helio_moment moment) {
    (void)instance;
    const act *wanted = command->context;
    helio_tx_lane *lane = wanted->transmitter->lane;
    const helio_receiver_index index = helio_tx_stream_find(lane->stream, wanted->receiver);
    if (index == HELIO_RECEIVER_NONE) {
        command->result = helio_fail(HELIO_ERR_STATE, "stream %s has no receiver %016" PRIx64,
                                     wanted->transmitter->stream, wanted->receiver);
        return true;
    }
    command->result = helio_tx_stream_act(lane->stream, index, wanted->action, wanted->duration_ns,
                                          wanted->why, true, moment);
    if (command->result < 0) {
        helio_fail(command->result,
                   "receiver %016" PRIx64 " of stream %s: no such action is in force, or the "
                   "receiver is expelled and must be readmitted first",
                   wanted->receiver, wanted->transmitter->stream);
    }
    return true;
}

int helio_transmitter_act(helio_transmitter *transmitter, uint64_t receiver, int action,
                          int64_t duration_ns, const char *why) {
    if (!helio_action_is_on_one((helio_action)action)) {
        return helio_fail(HELIO_ERR_OPTION, "action number %d cannot be applied to a receiver",
                          action);
    }
    act wanted = {transmitter, receiver, (helio_action)action, duration_ns, why};
    helio_command command = {.run = run_act, .context = &wanted};
    return helio_command_execute(transmitter->instance, &command);
}

static bool run_cut_off(helio_instance *instance, helio_command *command, helio_moment moment) {
    (void)instance;
    const act *wanted = command->context;
    helio_tx_stream_cut_off(wanted->transmitter->lane->stream, wanted->duration_ns, wanted->why,
                            true, moment);
    return true;
}

int helio_transmitter_cut_off(helio_transmitter *transmitter, int64_t duration_ns,
                              const char *why) {
    act wanted = {.transmitter = transmitter, .duration_ns = duration_ns, .why = why};
    helio_command command = {.run = run_cut_off, .context = &wanted};
    return helio_command_execute(transmitter->instance, &command);
}
