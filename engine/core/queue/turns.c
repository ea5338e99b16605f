#include "queue/turns.h"

/* Whose turn the thread has had last; only compared. */
static _Thread_local const helio_turns *pass;

void helio_turns_join(helio_turns *turns, helio_turn *turn) {
    *turn = (helio_turn){0};
    *(turns->last ? &turns->last->next : &turns->first) = turn;
    turns->last = turn;
}

void helio_turns_leave(helio_turns *turns, helio_turn *turn, bool has_pass) {
    helio_turn *before = NULL;
    helio_turn **at = &turns->first;
    while (*at != turn) {
        before = *at;
        at = &before->next;
    }
    *at = turn->next;
    if (turns->last == turn) {
        turns->last = before;
    }
    if (!before && turns->first) {
        helio_signal_wake(&turns->first->news);
    }
    pass = has_pass ? turns : pass;
}

bool helio_turns_may_try(const helio_turns *turns) {
    const bool has_pass = pass == turns;
    pass = has_pass ? NULL : pass;
    return has_pass || helio_turns_is_empty(turns);
}
