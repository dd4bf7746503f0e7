/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A role that repeatedly closes one library and opens another at the same address. The function that
 * calls into the library has the library's number in its name, so each stack shows what the name of
 * the frame within the library must be.
 */
#include "worker.h"

#include <dlfcn.h>
#include <stdio.h>

#define ROUNDS 20000000ul

typedef unsigned long (*turn_function)(unsigned long rounds);

static worker_function unsigned long call_one(turn_function f)
{
	unsigned long x = f(ROUNDS);

	keep_frame();
	return x + 1;
}

static worker_function unsigned long call_two(turn_function f)
{
	unsigned long x = f(ROUNDS);

	keep_frame();
	return x + 2;
}

/* Where the function was, or NULL. */
static void *take_turn(const char *library, const char *name, unsigned long (*call)(turn_function))
{
	void *handle = dlopen(library, RTLD_NOW);
	void *f = handle ? dlsym(handle, name) : NULL;

	if (f)
		call((turn_function)f);
	else
		printf("worker: failed: %s\n", dlerror());
	if (handle)
		dlclose(handle);
	return f;
}

void role_turns(void)
{
	unsigned int turns = 0, same = 0;

	while (time_is_left()) {
		void *one = take_turn("/lib/libone.so", "turn_one", call_one);
		void *two = take_turn("/lib/libtwo.so", "turn_two", call_two);

		if (!one || !two)
			return;
		turns++;
		same += one == two;
	}
	printf("worker: turns %u, at the same place %u\n", turns, same);
}
