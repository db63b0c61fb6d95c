/* golden.h - texts that are kept: tests/sim/golden.
 *
 * STAGGER_GOLDEN=write in the environment writes the files anew; look at what
 * changed before you keep them. */
#ifndef TESTS_SIM_GOLDEN_H
#define TESTS_SIM_GOLDEN_H

/* Fails, and says where they part, unless text is the file's. */
void golden_check(const char *name, const char *text);

#endif
