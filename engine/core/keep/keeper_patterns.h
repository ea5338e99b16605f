/* Topics of a keeper that are found by their names. */
#ifndef HELIO_KEEP_KEEPER_PATTERNS_H
#define HELIO_KEEP_KEEPER_PATTERNS_H

#include "keep/keeper_parts.h"

/* Topics were found that nobody has adopted. */
bool helio_keeper_has_found(const helio_keeper *keeper);
/* A keeper without topics waits until one is found, or the time is over. */
void helio_keeper_wait_found(helio_keeper *keeper, int64_t timeout_ns);
/* Gives up topics that no stream has had for long. */
void helio_keeper_tend_patterns(helio_keeper *keeper, int64_t now_ns);
/* Announcements that were refused. */
uint64_t helio_keeper_refused_topics(const helio_keeper *keeper);
/* Ends the receivers of all topics that were found; their sources are freed. */
void helio_keeper_end_patterns(helio_keeper *keeper);

#endif
