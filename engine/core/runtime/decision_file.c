#include "runtime/decision_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"

static int fail_at(helio_decision_file *file, const char *what) {
    const int code = errno;
    const int error = helio_fail(
        code == EACCES || code == EPERM || code == EROFS ? HELIO_ERR_PERMISSION : HELIO_ERR_SYSTEM,
        "option decision_log: cannot %s %s: %s; it must be a folder that "
        "this process may write to",
        what, file->path, strerror(code));
    helio_decision_file_close(file, 0);
    return error;
}

/* Folder, and what tells this log from any other; what is unfit for a file name becomes '_'. */
static char *path_of(const char *folder, const char *instance, const char *stream) {
    char *path = NULL;
    if (asprintf(&path, "%s/%s.%ld.%s.decisions", folder, instance, (long)getpid(), stream) < 0) {
        return NULL;
    }
    for (char *c = path + strlen(folder) + 1; *c; c++) {
        const bool is_plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                              (*c >= '0' && *c <= '9') || *c == '-' || *c == '_' || *c == '.';
        if (!is_plain || (*c == '.' && c == path + strlen(folder) + 1)) {
            *c = '_';
        }
    }
    return path;
}

int helio_decision_file_open(helio_decision_file *file, const char *folder, const char *instance,
                             const char *stream, size_t bytes) {
    *file = (helio_decision_file){.file = -1, .bytes = bytes};
    file->path = path_of(folder, instance, stream);
    if (!file->path) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for the path of the decision log");
    }
    file->file = open(file->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file->file < 0) {
        return fail_at(file, "create");
    }
    errno = posix_fallocate(file->file, 0, (off_t)bytes);
    if (errno) {
        return fail_at(file, "make room in");
    }
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->file, 0);
    if (memory == MAP_FAILED) {
        return fail_at(file, "map");
    }
    file->memory = memory;
    return 0;
}

void helio_decision_file_close(helio_decision_file *file, size_t used) {
    if (!file->path) {
        return;
    }
    if (file->memory) {
        munmap(file->memory, file->bytes);
        if (ftruncate(file->file, (off_t)used) < 0) {
            /* It stays as long as it was: its header tells what is used. */
        }
    }
    if (file->file >= 0) {
        close(file->file);
    }
    free(file->path);
    *file = (helio_decision_file){0};
}
