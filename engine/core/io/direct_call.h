/* System calls of the packet path that are no cancellation points.  In a process with a second
 * thread the C library surrounds recvmsg, sendmsg and their kind with two locked operations, so that
 * pthread_cancel can end them.  Nobody cancels an engine, and these calls never wait.
 *
 * They return a count, or -errno; errno itself is not set.  On processors other than x86-64, and
 * for sanitizers that must see the call, they call the C library. */
#ifndef HELIO_IO_DIRECT_CALL_H
#define HELIO_IO_DIRECT_CALL_H

#include <sys/socket.h>

long helio_direct_recvmsg(int fd, struct msghdr *message, int flags);
/* `from` and `from_length` may be NULL. */
long helio_direct_recvfrom(int fd, void *data, size_t length, int flags, struct sockaddr *from,
                           socklen_t *from_length);
long helio_direct_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags);
/* `to` may be NULL. */
long helio_direct_sendto(int fd, const void *data, size_t length, int flags,
                         const struct sockaddr *to, socklen_t to_length);
long helio_direct_sendmsg(int fd, const struct msghdr *message, int flags);
long helio_direct_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags);

#endif
