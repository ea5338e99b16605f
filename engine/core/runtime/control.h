/* Commands from other programs (heliograph ctl), through the ring in the segment: taken within the
 * chores, carried out on the engine's thread, answered with a code and a sentence, and each of them
 * told as an event, also when it is refused.  ADR 0015. */
#ifndef HELIO_RUNTIME_CONTROL_H
#define HELIO_RUNTIME_CONTROL_H

#include "runtime/instance.h"

/* Carries out what waits, one ring's worth at most; costs one comparison when nothing does. */
void helio_control_serve(helio_instance *instance, helio_moment moment);

#endif
