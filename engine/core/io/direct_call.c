#include "io/direct_call.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#if defined(__x86_64__) && defined(__LP64__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)

static inline long call(long number, long a, const void *b, long c, long d, const void *e,
                        const void *f) {
    long result;
    register long r10 __asm__("r10") = d;
    register const void *r8 __asm__("r8") = e;
    register const void *r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

long helio_direct_recvmsg(int fd, struct msghdr *message, int flags) {
    return call(SYS_recvmsg, fd, message, flags, 0, NULL, NULL);
}

long helio_direct_recvfrom(int fd, void *data, size_t length, int flags, struct sockaddr *from,
                           socklen_t *from_length) {
    return call(SYS_recvfrom, fd, data, (long)length, flags, from, from_length);
}

long helio_direct_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags) {
    return call(SYS_recvmmsg, fd, messages, count, flags, NULL, NULL);
}

long helio_direct_sendto(int fd, const void *data, size_t length, int flags,
                         const struct sockaddr *to, socklen_t to_length) {
    return call(SYS_sendto, fd, data, (long)length, flags, to, (const void *)(uintptr_t)to_length);
}

long helio_direct_sendmsg(int fd, const struct msghdr *message, int flags) {
    return call(SYS_sendmsg, fd, message, flags, 0, NULL, NULL);
}

long helio_direct_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags) {
    return call(SYS_sendmmsg, fd, messages, count, flags, NULL, NULL);
}

#else

static inline long result_of(long result) {
    return result < 0 ? -errno : result;
}

long helio_direct_recvmsg(int fd, struct msghdr *message, int flags) {
    return result_of(recvmsg(fd, message, flags));
}

long helio_direct_recvfrom(int fd, void *data, size_t length, int flags, struct sockaddr *from,
                           socklen_t *from_length) {
    return result_of(recvfrom(fd, data, length, flags, from, from_length));
}

long helio_direct_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags) {
    return result_of(recvmmsg(fd, messages, count, flags, NULL));
}

long helio_direct_sendto(int fd, const void *data, size_t length, int flags,
                         const struct sockaddr *to, socklen_t to_length) {
    return result_of(sendto(fd, data, length, flags, to, to_length));
}

long helio_direct_sendmsg(int fd, const struct msghdr *message, int flags) {
    return result_of(sendmsg(fd, message, flags));
}

long helio_direct_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags) {
    return result_of(sendmmsg(fd, messages, count, flags));
}

#endif
