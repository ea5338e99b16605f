/* The identity of a process, so that another can check whether it still lives.  A process id alone
 * comes back after a while; with the time its process started it is unique as long as the machine
 * runs.  Both sides must see the same process ids: one PID namespace. */
#ifndef HELIO_IO_PROCESS_H
#define HELIO_IO_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct helio_process {
    uint32_t pid;
    uint64_t start; /* clock ticks since the machine started; 0: not known */
} helio_process;

helio_process helio_process_self(void);

/* Whether it runs.  One that was killed and not yet waited for does not. */
bool helio_process_is_alive(const helio_process *process);

#endif
