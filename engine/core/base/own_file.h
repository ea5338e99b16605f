/* Files on this machine that only their owner is to change, and the folders they are in: who opens
 * one asks here, with the descriptor, whose it is. */
#ifndef HELIO_BASE_OWN_FILE_H
#define HELIO_BASE_OWN_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

/* What the group may read: the folder's group where the folder has the setgid bit, else the
 * process's. */
#define HELIO_FILE_MODE 0640

/* A regular file of this user. */
bool helio_file_is_own(int file);

/* NULL: nobody but this user and root can put away or exchange what this user makes in the folder;
 * else what is wrong with it.  That is so when it belongs to one of them, and others may not write
 * in it or it is sticky. */
const char *helio_folder_fault(const struct stat *folder);

/* Looks at the folder of a path.  NULL: it has no fault. */
const char *helio_folder_check(const char *path);

/* Makes a file that is locked (flock) from the first moment anybody can find it by its path, and so
 * for as long as the descriptor that is returned is open; mode HELIO_FILE_MODE.  -1 with errno;
 * EEXIST: there is a file already. */
int helio_locked_file_create(const char *path);

/* Removes a file of this user that nobody holds locked.  True: there is none now. */
bool helio_locked_file_remove(const char *path);

/* Removes what engines of this user that are gone have left: files of the folder of `path` called
 * as the file of `path` is, up to the process number: "STEM.PID.helio" and "STEM.PID.flight".
 * Recordings that were kept ("STEM.PID.N.flight") stay. */
void helio_remains_remove(const char *path);

#endif
