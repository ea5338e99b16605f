/* Commands from other programs (heliograph ctl), through the ring in the segment.  The engine's
 * thread takes them within the chores, executes them, and answers with a code and a sentence.
 * Each command is reported as an event, also a refused one.  ADR 0015. */
#ifndef HELIO_RUNTIME_CONTROL_H
#define HELIO_RUNTIME_CONTROL_H

#include "runtime/instance.h"

/* Carries out what waits, one ring's worth at most; costs one comparison when nothing does. */
void helio_control_serve(helio_instance *instance, helio_moment moment);

#endif
