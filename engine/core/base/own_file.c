#include "base/own_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { MAKING_TRIES = 16 };

/* ---- whose ---- */

bool helio_file_is_own(int file) {
    struct stat about;
    return fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid();
}

const char *helio_folder_fault(const struct stat *folder) {
    if (folder->st_uid != 0 && folder->st_uid != geteuid()) {
        return "it belongs to another user, who could exchange the files in it";
    }
    if ((folder->st_mode & (S_IWGRP | S_IWOTH)) && !(folder->st_mode & S_ISVTX)) {
        return "other users may write in it and it is not sticky, so they could exchange the files "
               "in it";
    }
    return NULL;
}

const char *helio_folder_check(const char *path) {
    struct stat about;
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    const bool is_known = folder >= 0 && fstat(folder, &about) == 0;
    const char *why = is_known ? helio_folder_fault(&about) : strerror(errno);
    if (folder >= 0) {
        close(folder);
    }
    return why;
}

/* ---- locked ---- */

static bool is_at(int file, const char *path) {
    struct stat open_one, named;
    return fstat(file, &open_one) == 0 && lstat(path, &named) == 0 &&
           open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

/* Another process takes an unlocked file for a leftover, so it must not find the file before it is
 * locked: it is made under a name nobody looks for.  Another engine of this name may still have
 * taken that for remains between open and flock; then it is gone, and another is made. */
static int make_locked(const char *making) {
    const int file = open(making, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) {
        if (errno == EEXIST) {
            helio_locked_file_remove(making);
            errno = EEXIST;
        }
        return -1;
    }
    if (flock(file, LOCK_EX | LOCK_NB) < 0 || !is_at(file, making)) {
        close(file);
        errno = EEXIST;
        return -1;
    }
    return file;
}

/* FOLDER/.FILE.N.new; from malloc. */
static char *making_path(const char *path, int number) {
    const char *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash - path) + 1 : 0;
    char *out = NULL;
    return asprintf(&out, "%.*s.%s.%d.new", folder, path, path + folder, number) < 0 ? NULL : out;
}

int helio_locked_file_create(const char *path) {
    for (int i = 0; i < MAKING_TRIES; i++) {
        char *making = making_path(path, i);
        if (!making) {
            errno = ENOMEM;
            return -1;
        }
        const int file = make_locked(making);
        int error = file < 0 ? errno : 0;
        if (file >= 0) {
            if (fchmod(file, HELIO_FILE_MODE) < 0 || link(making, path) < 0) {
                error = errno;
                close(file);
            }
            unlink(making);
        }
        free(making);
        if (!error) {
            return file;
        }
        if (file >= 0 || error != EEXIST) {
            errno = error;
            return -1;
        }
    }
    errno = EBUSY;
    return -1;
}

bool helio_locked_file_remove(const char *path) {
    const int file = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) {
        return errno == ENOENT;
    }
    /* While it is locked here and still at its path, nobody puts another one there. */
    const bool is_removed = helio_file_is_own(file) && flock(file, LOCK_EX | LOCK_NB) == 0 &&
                            is_at(file, path) && unlink(path) == 0;
    close(file);
    return is_removed;
}

/* ---- remains ---- */

static size_t digits(const char *text) {
    return strspn(text, "0123456789");
}

/* Whether a file is called STEM.PID.helio, STEM.PID.flight, or one of them while it is being
 * made. */
static bool is_remains_of(const char *file, const char *stem, size_t length) {
    const bool is_making = file[0] == '.';
    file += is_making;
    if (strncmp(file, stem, length) != 0 || file[length] != '.') {
        return false;
    }
    const char *end = file + length + 1 + digits(file + length + 1);
    if (end == file + length + 1) {
        return false;
    }
    const char *kinds[] = {".helio", ".flight"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t bytes = strlen(kinds[i]);
        if (strncmp(end, kinds[i], bytes) == 0 && (is_making ? end[bytes] == '.' : !end[bytes])) {
            return true;
        }
    }
    return false;
}

void helio_remains_remove(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t length = strlen(name);
    for (int parts = 0; parts < 2; parts++) { /* .helio, .PID */
        while (length > 0 && name[--length] != '.') {
        }
    }
    char *folder_path = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
    DIR *folder = folder_path ? opendir(folder_path) : NULL;
    for (const struct dirent *entry; folder && length > 0 && (entry = readdir(folder));) {
        char *found = NULL;
        if (is_remains_of(entry->d_name, name, length) &&
            asprintf(&found, "%s%s", folder_path, entry->d_name) >= 0) {
            helio_locked_file_remove(found);
            free(found);
        }
    }
    if (folder) {
        closedir(folder);
    }
    free(folder_path);
}
