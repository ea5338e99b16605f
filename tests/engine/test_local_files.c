/* Files on this machine: mappings that are cut short by somebody else, whose files and folders are,
 * and files that are locked from the first moment they can be found. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mapped.h"
#include "base/own_file.h"

enum { PAGE = 4096, PAGES = 16, MANY = 300 };

static char folder[64];

typedef struct piece {
    int file;
    uint8_t *memory;
    helio_mapped *guard;
} piece;

static piece map_piece(bool is_guarded) {
    char path[80];
    snprintf(path, sizeof path, "%s/piece", folder);
    piece out = {.file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600)};
    CHECK(out.file >= 0 && ftruncate(out.file, PAGES * PAGE) == 0);
    out.memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, out.file, 0);
    CHECK(out.memory != MAP_FAILED);
    out.guard = is_guarded ? helio_mapped_guard(out.memory, PAGES * PAGE) : NULL;
    memset(out.memory, 7, PAGES * PAGE);
    unlink(path);
    return out;
}

static void drop_piece(piece *piece) {
    helio_mapped_release(piece->guard);
    munmap(piece->memory, PAGES * PAGE);
    close(piece->file);
}

static void what_is_cut_reads_as_zeros_and_is_told(void) {
    piece one = map_piece(true);
    CHECK(one.guard && !helio_mapped_is_cut(one.guard));
    CHECK(ftruncate(one.file, 3 * PAGE) == 0);
    CHECK_EQUAL(one.memory[3 * PAGE - 1], 7);
    CHECK(!helio_mapped_is_cut(one.guard)); /* nobody has touched what is gone */
    CHECK_EQUAL(one.memory[9 * PAGE + 5], 0);
    CHECK(helio_mapped_is_cut(one.guard));
    one.memory[9 * PAGE + 5] = 1;
    CHECK_EQUAL(one.memory[9 * PAGE + 5], 1);
    CHECK_EQUAL(one.memory[3 * PAGE], 0); /* before it: a fault of its own */
    CHECK_EQUAL(one.memory[PAGES * PAGE - 1], 0);
    CHECK_EQUAL(one.memory[0], 7);
    drop_piece(&one);
}

static void one_that_is_cut_leaves_the_others(void) {
    static piece many[MANY];
    for (int i = 0; i < MANY; i++) {
        many[i] = map_piece(true);
    }
    for (int i = 0; i < MANY; i += 2) {
        CHECK(ftruncate(many[i].file, 0) == 0);
        CHECK_EQUAL(many[i].memory[PAGE], 0);
    }
    for (int i = 0; i < MANY; i++) {
        CHECK_EQUAL(helio_mapped_is_cut(many[i].guard), i % 2 == 0);
        CHECK_EQUAL(many[i].memory[PAGE], i % 2 ? 7 : 0);
        drop_piece(&many[i]);
    }
}

static void *guard_and_release(void *context) {
    (void)context;
    static uint8_t memory[PAGE];
    for (int i = 0; i < 20000; i++) {
        helio_mapped_release(helio_mapped_guard(memory, sizeof memory));
    }
    return NULL;
}

static void threads_guard_at_the_same_time(void) {
    pthread_t threads[4];
    struct sigaction was, now;
    CHECK(sigaction(SIGBUS, NULL, &was) == 0);
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_create(&threads[i], NULL, guard_and_release, NULL) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(sigaction(SIGBUS, NULL, &now) == 0 && now.sa_handler == was.sa_handler);
    what_is_cut_reads_as_zeros_and_is_told();
}

static sigjmp_buf back;
static volatile sig_atomic_t caught;

static void catch_one(int number) {
    (void)number;
    caught++;
    siglongjmp(back, 1);
}

static void a_fault_elsewhere_goes_to_the_handler_before(void) {
    struct sigaction mine = {.sa_handler = catch_one}, now;
    CHECK(sigaction(SIGBUS, &mine, NULL) == 0);
    piece guarded = map_piece(true), other = map_piece(false);
    CHECK(sigaction(SIGBUS, NULL, &now) == 0 && now.sa_handler != catch_one);
    CHECK(ftruncate(other.file, 0) == 0 && ftruncate(guarded.file, 0) == 0);
    if (sigsetjmp(back, 1) == 0) {
        other.memory[0] = 1;
    }
    CHECK_EQUAL(caught, 1);
    CHECK(!helio_mapped_is_cut(guarded.guard));
    CHECK_EQUAL(guarded.memory[0], 0);
    CHECK_EQUAL(caught, 1);
    drop_piece(&guarded);
    drop_piece(&other);
    CHECK(sigaction(SIGBUS, NULL, &now) == 0 && now.sa_handler == catch_one);
    signal(SIGBUS, SIG_DFL);
}

/* Of the signal, or of a sanitizer that tells of it. */
static bool dies_of(void (*what)(void)) {
    const pid_t child = fork();
    if (child == 0) {
        what();
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? WTERMSIG(status) == SIGBUS : WEXITSTATUS(status) != 0;
}

static void touch_another(void) {
    piece guarded = map_piece(true), other = map_piece(false);
    if (guarded.guard && ftruncate(other.file, 0) == 0) {
        other.memory[0] = 1;
    }
}

static void send_one(void) {
    piece guarded = map_piece(true);
    raise(SIGBUS);
    drop_piece(&guarded);
}

static void without_a_handler_it_is_deadly_as_ever(void) {
    CHECK(dies_of(touch_another));
    CHECK(dies_of(send_one));
}

static void a_file_is_locked_when_it_can_be_found(void) {
    char path[80];
    snprintf(path, sizeof path, "%s/feed.1.helio", folder);
    const int file = helio_locked_file_create(path);
    CHECK(file >= 0);
    const int other = open(path, O_RDWR);
    CHECK(other >= 0 && flock(other, LOCK_EX | LOCK_NB) < 0);
    close(other);
    CHECK(helio_locked_file_create(path) < 0 && errno == EEXIST);
    CHECK(!helio_locked_file_remove(path));
    helio_remains_remove(path);
    CHECK(access(path, F_OK) == 0);
    close(file);
    CHECK(helio_locked_file_remove(path) && access(path, F_OK) < 0);
    CHECK(helio_locked_file_remove(path)); /* there is none */
}

/* What an engine finds at its path may be exchanged before it has the lock. */
static void a_file_that_is_another_by_now_stays(void) {
    char path[80], aside[80];
    snprintf(path, sizeof path, "%s/feed.1.helio", folder);
    snprintf(aside, sizeof aside, "%s/aside", folder);
    const int file = helio_locked_file_create(path);
    CHECK(file >= 0 && symlink("feed.1.helio", aside) == 0);
    CHECK(!helio_locked_file_remove(aside)); /* links are not followed */
    unlink(aside);
    close(file);
    unlink(path);
}

static void touch_file(const char *name) {
    char path[96];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0);
    close(file);
}

static bool is_there(const char *name) {
    char path[96];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void remains_are_those_of_the_name_and_no_recordings(void) {
    static const char *const gone[] = {"feed.1.helio", "feed.22.flight", ".feed.3.helio.0.new",
                                       ".feed.3.flight.7.new"};
    static const char *const stay[] = {"feed.1.2.flight", "feeds.1.helio", "fee.1.helio",
                                       "feed.x.helio",    "feed..helio",   "feed.1.helio.old",
                                       "feed.a.1.helio",  "feed.helio",    ".feed.3.helio"};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        touch_file(gone[i]);
    }
    for (size_t i = 0; i < sizeof stay / sizeof *stay; i++) {
        touch_file(stay[i]);
    }
    char path[80];
    snprintf(path, sizeof path, "%s/feed.77.helio", folder);
    helio_remains_remove(path);
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        CHECK(!is_there(gone[i]));
    }
    for (size_t i = 0; i < sizeof stay / sizeof *stay; i++) {
        CHECK(is_there(stay[i]));
        snprintf(path, sizeof path, "%s/%s", folder, stay[i]);
        unlink(path);
    }
}

static void a_folder_is_safe_when_nobody_else_can_exchange_its_files(void) {
    const uid_t other = geteuid() + 1000;
    struct stat about = {.st_uid = geteuid(), .st_mode = S_IFDIR | 0755};
    CHECK(!helio_folder_fault(&about));
    about.st_uid = 0;
    CHECK(!helio_folder_fault(&about));
    about.st_mode = S_IFDIR | 01777;
    CHECK(!helio_folder_fault(&about));
    about.st_mode = S_IFDIR | 03777;
    CHECK(!helio_folder_fault(&about));
    about.st_mode = S_IFDIR | 0775;
    CHECK(helio_folder_fault(&about));
    about.st_mode = S_IFDIR | 0777;
    CHECK(helio_folder_fault(&about));
    about = (struct stat){.st_uid = other, .st_mode = S_IFDIR | 01777};
    CHECK(helio_folder_fault(&about));
    CHECK(!helio_folder_check(folder));
    CHECK(helio_folder_check("/nowhere at all"));
}

int main(void) {
    snprintf(folder, sizeof folder, "/tmp/helio-test-local-XXXXXX");
    if (!mkdtemp(folder)) {
        return 1;
    }
    RUN(what_is_cut_reads_as_zeros_and_is_told);
    RUN(one_that_is_cut_leaves_the_others);
    RUN(threads_guard_at_the_same_time);
    RUN(a_fault_elsewhere_goes_to_the_handler_before);
    RUN(without_a_handler_it_is_deadly_as_ever);
    RUN(a_file_is_locked_when_it_can_be_found);
    RUN(a_file_that_is_another_by_now_stays);
    RUN(remains_are_those_of_the_name_and_no_recordings);
    RUN(a_folder_is_safe_when_nobody_else_can_exchange_its_files);
    if (rmdir(folder) < 0) {
        perror(folder);
        return 1; /* something was left behind */
    }
    return check_result();
}
