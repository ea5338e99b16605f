#include "flight/decision_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own_file.h"

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
    const char *why = helio_folder_check(folder);
    if (why) {
        const int error =
            helio_fail(HELIO_ERR_PERMISSION,
                       "option decision_log: the folder %s is not safe to use: %s", folder, why);
        helio_decision_file_close(file, 0);
        return error;
    }
    file->file =
        open(file->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, HELIO_FILE_MODE);
    if (file->file < 0) {
        return fail_at(file, "create");
    }
    if (!helio_file_is_own(file->file)) { /* it could be cut or read at any time */
        const int error = helio_fail(HELIO_ERR_PERMISSION,
                                     "option decision_log: %s is there already and is not a file "
                                     "of this user",
                                     file->path);
        helio_decision_file_close(file, 0);
        return error;
    }
    if (fchmod(file->file, HELIO_FILE_MODE) < 0 || ftruncate(file->file, 0) < 0) {
        return fail_at(file, "empty");
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
    file->guard = helio_mapped_guard(memory, bytes);
    return 0;
}

void helio_decision_file_close(helio_decision_file *file, size_t used) {
    if (!file->path) {
        return;
    }
    if (file->memory) {
        const bool is_cut = helio_mapped_is_cut(file->guard);
        helio_mapped_release(file->guard);
        munmap(file->memory, file->bytes);
        if (!is_cut && ftruncate(file->file, (off_t)used) < 0) {
            /* It stays as long as it was: its header tells what is used. */
        }
    }
    if (file->file >= 0) {
        close(file->file);
    }
    free(file->path);
    *file = (helio_decision_file){0};
}
