/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/core/stack.h"

const char *stack_end_name(enum stack_end end)
{
	switch (end) {
	case STACK_END_ROOT:
		return "root";
	case STACK_END_USER:
		return "user-entry";
	case STACK_END_NO_FP:
		return "no-frame-pointers";
	case STACK_END_NO_TEXT:
		return "no-text";
	case STACK_END_BAD_CHAIN:
		return "bad-chain";
	case STACK_END_CUT:
		return "stack-cut";
	case STACK_END_DEPTH:
		return "depth-limit";
	case STACK_END_NO_ORC:
		return "no-orc-entry";
	case STACK_END_START:
		return "start-code";
	case STACK_END_SCANNED:
		return "scanned";
	case STACK_END_COUNT:
		break;
	}
	return "unknown";
}
