#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "base/error.h"
#include "trial/parts.h"

#define SEED_MIX UINT64_C(0x5851F42D4C957F2D)

helio_address helio_trial_group_address(void) {
    helio_address address = {.family = 4, .port = 7500};
    const uint8_t ip[4] = {239, 192, 7, 7};
    memcpy(address.ip, ip, sizeof ip);
    return address;
}

helio_address helio_trial_address(unsigned kind, unsigned number, uint16_t port) {
    helio_address address = {.family = 4, .port = port};
    const uint8_t ip[4] = {10, (uint8_t)kind, (uint8_t)(number >> 8), (uint8_t)number};
    memcpy(address.ip, ip, sizeof ip);
    return address;
}

int helio_trial_open_stats(helio_trial *trial, size_t bytes, helio_stats **stats,
                           helio_stats_object *instance) {
    const helio_stats_config config = {.name = "lab", .bytes = bytes, .wall_ns = 1};
    const int error = helio_stats_create(&config, stats);
    return error ? error
                 : helio_stats_open_object(*stats, HELIO_SCOPE_INSTANCE, "instance=lab\n",
                                           helio_trial_now(trial).wall_ns, instance);
}

/* ---- life ---- */

helio_trial *helio_trial_create(uint64_t seed, int64_t interval_ns, bool watches) {
    helio_trial *trial = calloc(1, sizeof *trial);
    if (!trial) {
        return NULL;
    }
    trial->seed = seed;
    helio_random_init(&trial->random, seed * SEED_MIX + 1);
    trial->interval_ns = interval_ns;
    trial->watches = watches;
    trial->next_sample_ns = interval_ns;
    trial->sim = helio_sim_create(helio_random_next(&trial->random));
    if (!trial->sim) {
        free(trial);
        return NULL;
    }
    return trial;
}

void helio_trial_destroy(helio_trial *trial) {
    if (!trial) {
        return;
    }
    for (int i = 0; i < trial->groups_count; i++) {
        helio_trial_group_destroy(trial->groups[i]);
    }
    for (int i = 0; i < trial->sources_count; i++) {
        helio_trial_source_destroy(trial->sources[i]);
    }
    for (int i = 0; i < trial->tcps_count; i++) {
        helio_trial_tcp_destroy(trial->tcps[i]);
    }
    helio_trial_samples_fini(&trial->samples);
    helio_sim_destroy(trial->sim);
    free(trial->changes);
    free(trial);
}

/* ---- what it has ---- */

static int too_many(const char *what, int most) {
    return helio_fail(HELIO_ERR_OPTION, "a trial has at most %d %s", most, what);
}

static int check_pipe(const helio_trial *trial, int pipe) {
    if (pipe == HELIO_TRIAL_NONE || (pipe >= 0 && pipe < trial->pipes_count)) {
        return 0;
    }
    return helio_fail(HELIO_ERR_OPTION, "there is no pipe %d", pipe);
}

int helio_trial_add_pipe(helio_trial *trial, const helio_sim_pipe_config *config) {
    if (trial->pipes_count == HELIO_TRIAL_PIPES_MAX) {
        return too_many("pipes", HELIO_TRIAL_PIPES_MAX);
    }
    helio_sim_pipe *pipe = helio_sim_add_pipe(trial->sim, config);
    if (!pipe) {
        return HELIO_ERR_NOMEM;
    }
    trial->pipes[trial->pipes_count] = pipe;
    return trial->pipes_count++;
}

int helio_trial_add_source(helio_trial *trial, const helio_trial_source_config *config) {
    if (trial->sources_count == HELIO_TRIAL_SOURCES_MAX) {
        return too_many("sources", HELIO_TRIAL_SOURCES_MAX);
    }
    int error = check_pipe(trial, config->pipe);
    if (!error) {
        error = helio_trial_source_create(trial, config, &trial->sources[trial->sources_count]);
    }
    return error ? error : trial->sources_count++;
}

int helio_trial_add_group(helio_trial *trial, const helio_trial_group_config *config) {
    if (trial->groups_count == HELIO_TRIAL_GROUPS_MAX) {
        return too_many("groups", HELIO_TRIAL_GROUPS_MAX);
    }
    const int error = helio_trial_group_create(trial, config, &trial->groups[trial->groups_count]);
    return error ? error : trial->groups_count++;
}

int helio_trial_add_tcp(helio_trial *trial, const helio_trial_tcp_config *config) {
    if (trial->tcps_count == HELIO_TRIAL_TCPS_MAX) {
        return too_many("TCP flows", HELIO_TRIAL_TCPS_MAX);
    }
    int error = check_pipe(trial, config->pipe);
    if (!error) {
        error = helio_trial_tcp_create(trial, config, &trial->tcps[trial->tcps_count]);
    }
    return error ? error : trial->tcps_count++;
}

/* ---- the plan ---- */

static int things(const helio_trial *trial, helio_trial_knob knob) {
    switch (knob) {
    case HELIO_TRIAL_PIPE:
        return trial->pipes_count;
    case HELIO_TRIAL_OFFERED:
        return trial->sources_count;
    default:
        return trial->groups_count;
    }
}

int helio_trial_plan(helio_trial *trial, int64_t at_ns, helio_trial_knob knob, int which,
                     double value, double second) {
    if (which < 0 || which >= things(trial, knob)) {
        return helio_fail(HELIO_ERR_OPTION, "a change names number %d, which is not there", which);
    }
    helio_trial_change *changes =
        realloc(trial->changes, (trial->changes_count + 1) * sizeof *changes);
    if (!changes) {
        return HELIO_ERR_NOMEM;
    }
    trial->changes = changes;
    size_t at = trial->changes_count++; /* after those of the same moment */
    for (; at > 0 && changes[at - 1].at_ns > at_ns; at--) {
        changes[at] = changes[at - 1];
    }
    changes[at] = (helio_trial_change){at_ns, knob, which, value, second};
    return 0;
}

static void turn(helio_trial *trial, const helio_trial_change *change) {
    helio_trial_group *group = trial->groups[change->which];
    switch (change->knob) {
    case HELIO_TRIAL_PIPE:
        helio_sim_change_pipe(trial->sim, trial->pipes[change->which], (uint64_t)change->value,
                              (uint64_t)change->second);
        return;
    case HELIO_TRIAL_OFFERED:
        helio_trial_source_offer(trial->sources[change->which], change->value);
        return;
    case HELIO_TRIAL_LOSS:
        group->link.loss = change->value;
        break;
    case HELIO_TRIAL_DELAY:
        group->link.delay_ns = (int64_t)change->value;
        break;
    case HELIO_TRIAL_DRAIN:
        group->drain = change->value;
        break;
    case HELIO_TRIAL_LEAVE:
        helio_trial_group_leave(group);
        return;
    }
    helio_trial_group_changed(group);
}

/* ---- time ---- */

static int64_t next_join_ns(const helio_trial *trial, int64_t until_ns) {
    int64_t next_ns = until_ns;
    for (int i = 0; i < trial->groups_count; i++) {
        const int64_t join_ns = trial->groups[i]->config.join_ns;
        if (join_ns > helio_trial_now(trial).now_ns && join_ns < next_ns) {
            next_ns = join_ns;
        }
    }
    return next_ns;
}

static void join(helio_trial *trial, int64_t now_ns) {
    for (int i = 0; i < trial->groups_count; i++) {
        if (trial->groups[i]->config.join_ns == now_ns) {
            helio_trial_group_join(trial->groups[i]);
        }
    }
}

int helio_trial_run(helio_trial *trial, int64_t until_ns) {
    if (!trial->has_begun) {
        const int error = helio_trial_name_columns(trial);
        if (error) {
            return error;
        }
        trial->has_begun = true;
        join(trial, 0);
    }
    while (helio_trial_now(trial).now_ns < until_ns) {
        int64_t next_ns = next_join_ns(trial, until_ns);
        if (trial->next_sample_ns < next_ns) {
            next_ns = trial->next_sample_ns;
        }
        if (trial->changes_done < trial->changes_count &&
            trial->changes[trial->changes_done].at_ns < next_ns) {
            next_ns = trial->changes[trial->changes_done].at_ns;
        }
        helio_sim_run_until(trial->sim, next_ns);
        while (trial->changes_done < trial->changes_count &&
               trial->changes[trial->changes_done].at_ns <= next_ns) {
            turn(trial, &trial->changes[trial->changes_done++]);
        }
        join(trial, next_ns);
        if (next_ns == trial->next_sample_ns) {
            trial->next_sample_ns += trial->interval_ns;
            if (helio_trial_sample(trial)) {
                return HELIO_ERR_NOMEM;
            }
        }
    }
    return 0;
}

/* ---- receivers at the end ---- */

size_t helio_trial_receivers(const helio_trial *trial) {
    size_t count = 0;
    for (int i = 0; i < trial->groups_count; i++) {
        count += trial->groups[i]->config.count;
    }
    return count;
}

helio_trial_receiver_result helio_trial_receiver_at(const helio_trial *trial, size_t i) {
    int g = 0;
    for (; i >= trial->groups[g]->config.count; g++) {
        i -= trial->groups[g]->config.count;
    }
    const helio_trial_receiver *receiver = &trial->groups[g]->receivers[i];
    return (helio_trial_receiver_result){g, receiver->id, receiver->delivered, receiver->lost,
                                         receiver->first_lost_ns};
}
