#include "io/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FIELDS_BETWEEN = 19
}; /* of /proc/PID/stat: from the state, field 3, to the start, field 22 */

/* State letter and start time of a process; false when /proc does not tell. */
static bool look_up(uint32_t pid, char *state, uint64_t *start) {
    char path[32];
    char text[1024];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    const ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0) {
        return false;
    }
    text[length] = 0;
    const char *at = strrchr(text, ')'); /* the name in parentheses may hold anything */
    if (!at || at[1] != ' ' || !at[2]) {
        return false;
    }
    *state = at[2];
    at += 2;
    for (int i = 0; i < FIELDS_BETWEEN; i++) {
        at = strchr(at, ' ');
        if (!at) {
            return false;
        }
        at++;
    }
    *start = strtoull(at, NULL, 10);
    return true;
}

helio_process helio_process_self(void) {
    helio_process self = {.pid = (uint32_t)getpid()};
    char state;
    look_up(self.pid, &state, &self.start);
    return self;
}

bool helio_process_is_alive(const helio_process *process) {
    if (process->pid == 0 || process->pid > INT32_MAX ||
        (kill((pid_t)process->pid, 0) < 0 && errno == ESRCH)) {
        return false;
    }
    char state;
    uint64_t start;
    if (!look_up(process->pid, &state, &start)) {
        return true; /* no /proc here: the id is all there is */
    }
    return state != 'Z' && state != 'X' && (process->start == 0 || process->start == start);
}
