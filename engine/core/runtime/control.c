#include "runtime/control.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "runtime/control_verbs.h"
#include "stats/control_ring.h"

enum { QUOTE_BYTES = 100 }; /* of the command, in the event */

/* Of a command that is no text nothing is quoted. */
static const char *quote(const helio_control_copy *command, char out[QUOTE_BYTES]) {
    if (!command->is_whole || !helio_control_is_text(command->text, command->text_bytes)) {
        return "(not a text)";
    }
    if (command->text_bytes < QUOTE_BYTES) {
        return command->text;
    }
    size_t length = QUOTE_BYTES - sizeof "...";
    while (((unsigned char)command->text[length] & 0xC0) == 0x80) {
        length--;
    }
    snprintf(out, QUOTE_BYTES, "%.*s...", (int)length, command->text);
    return out;
}

static void audit(helio_instance *instance, const helio_control_copy *command, int code,
                  const char *sentence, helio_moment moment) {
    char quoted[QUOTE_BYTES];
    const helio_event_id event = code == 0 ? HELIO_EVENT_COMMAND : HELIO_EVENT_COMMAND_REFUSED;
    helio_count(
        code == 0 ? &instance->counts->commands_served : &instance->counts->commands_refused, 1);
    helio_stats_event(
        instance->stats, moment.wall_ns, event, instance->object.slot,
        (const uint64_t[4]){command->uid, command->pid, command->ticket, (uint64_t)(int64_t)code},
        "%s: %s", quote(command, quoted), sentence);
}

static int carry_out(helio_instance *instance, const helio_control_copy *command,
                     helio_moment moment, char *done) {
    if (!command->is_whole) {
        return helio_fail(HELIO_ERR_OPTION,
                          "the command is damaged: its length or its check is wrong");
    }
    if (command->deadline_ns < moment.wall_ns) {
        return helio_fail(
            HELIO_ERR_TIMEOUT,
            "the command came too late and was not carried out: its client no longer waits");
    }
    helio_control_request request;
    const int error = helio_control_parse(command->text, command->text_bytes, &request);
    return error ? error : helio_control_do(instance, &request, moment, done);
}

void helio_control_serve(helio_instance *instance, helio_moment moment) {
    helio_control_ring *ring = helio_stats_control(instance->stats);
    if (!ring || !helio_control_rung(ring)) {
        return;
    }
    helio_control_copy command;
    for (int i = 0; i < HELIO_CONTROL_SLOTS && helio_control_take(ring, &command); i++) {
        char done[HELIO_CONTROL_SENTENCE_BYTES] = "";
        const int code = carry_out(instance, &command, moment, done);
        const char *sentence = code == 0 ? done : helio_error_sentence();
        audit(instance, &command, code, sentence, moment);
        helio_control_answer(&command, code, sentence);
    }
}
