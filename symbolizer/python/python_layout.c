/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/python/python_layout.h"

#include "symbolizer/python/python_code.h"

#define USER_BITS 56
#define COOKIE "xdebugpy"
#define MAX_CODE (64u << 20) /* bytes of one function's instructions */

static const struct python_layout known[] = {
	{
		.name = "3.11",
		.runtime_interpreters = 40,
		.interpreter_threads = 16,
		.thread_next = 8,
		.thread_interpreter = 16,
		.thread_id = 152,
		.thread_current = 56,
		.thread_top = 304,
		.cframe = true,
		.cframe_current = 8,
		.cframe_previous = 16,
		.frame_code = 32,
		.frame_previous = 48,
		.frame_instr = 56,
		.frame_owner = 69,
		.frame_is_entry = 68,
		.frame_span = 72,
		.code_file = 112,
		.code_qualname = 128,
		.code_lines = 136,
		.code_first = 72,
		.code_start = 184,
		.object_type = 8,
		.type_name = 24,
		.bytes_len = 16,
		.bytes_data = 32,
		.string_len = 16,
		.string_state = 32,
		.string_ascii = 48,
		.string_compact = 72,
	},
	{
		.name = "3.12",
		.runtime_interpreters = 40,
		.interpreter_threads = 72,
		.thread_next = 8,
		.thread_interpreter = 16,
		.thread_id = 136,
		.thread_current = 56,
		.thread_top = 240,
		.cframe = true,
		.cframe_current = 0,
		.cframe_previous = 8,
		.frame_code = 0,
		.frame_previous = 8,
		.frame_instr = 56,
		.frame_owner = 70,
		.frame_is_entry = PYTHON_NONE,
		.frame_span = 72,
		.owner_c = 3,
		.code_file = 112,
		.code_qualname = 128,
		.code_lines = 136,
		.code_first = 68,
		.code_start = 192,
		.object_type = 8,
		.type_name = 24,
		.bytes_len = 16,
		.bytes_data = 32,
		.string_len = 16,
		.string_state = 32,
		.string_ascii = 40,
		.string_compact = 56,
	},
};

/* Indexes of 8-byte numbers in struct _Py_DebugOffsets of 3.13. */
enum {
	DEBUG_COOKIE,
	DEBUG_INTERPRETERS = 5,
	DEBUG_INTERPRETER_NEXT = 8,
	DEBUG_INTERPRETER_THREADS,
	DEBUG_THREAD_NEXT = 21,
	DEBUG_THREAD_INTERPRETER,
	DEBUG_THREAD_CURRENT,
	DEBUG_THREAD_ID,
	DEBUG_THREAD_CHUNK = 26,
	DEBUG_FRAME_PREVIOUS = 29,
	DEBUG_FRAME_CODE,
	DEBUG_FRAME_INSTR,
	DEBUG_FRAME_VARIABLES,
	DEBUG_FRAME_OWNER,
	DEBUG_CODE_FILE = 35,
	DEBUG_CODE_QUALNAME = 37,
	DEBUG_CODE_LINES,
	DEBUG_CODE_FIRST,
	DEBUG_CODE_START = 43,
	DEBUG_OBJECT_TYPE = 45,
	DEBUG_TYPE_NAME = 47,
	DEBUG_BYTES_LEN = 65,
	DEBUG_BYTES_DATA,
	DEBUG_STRING_SIZE,
	DEBUG_STRING_STATE,
	DEBUG_STRING_LEN,
	DEBUG_STRING_ASCII,
	DEBUG_WORDS
};

static bool word(const struct python_program *p, uint64_t va, uint64_t *out)
{
	return !(va >> USER_BITS) && memory_read(p->memory, p->space, va, out, sizeof(*out));
}

/* Returns whether v can be the address of an aligned structure. */
static bool is_pointer(uint64_t v)
{
	return v >= 4096 && !(v >> USER_BITS) && !(v & 7);
}

static bool layout_of_offsets(struct python_layout *l, const uint64_t *v)
{
	for (unsigned int i = DEBUG_INTERPRETERS; i < DEBUG_WORDS; i++)
		if (v[i] > PYTHON_MAX_OFFSET)
			return false;
	if (v[DEBUG_FRAME_VARIABLES] > PYTHON_MAX_FRAME ||
	    v[DEBUG_FRAME_OWNER] >= v[DEBUG_FRAME_VARIABLES] || v[DEBUG_STRING_SIZE] < 8)
		return false;
	*l = (struct python_layout){
		.name = "3.13",
		.runtime_interpreters = (uint32_t)v[DEBUG_INTERPRETERS],
		.interpreter_next = (uint32_t)v[DEBUG_INTERPRETER_NEXT],
		.interpreter_threads = (uint32_t)v[DEBUG_INTERPRETER_THREADS],
		.thread_next = (uint32_t)v[DEBUG_THREAD_NEXT],
		.thread_interpreter = (uint32_t)v[DEBUG_THREAD_INTERPRETER],
		.thread_current = (uint32_t)v[DEBUG_THREAD_CURRENT],
		.thread_id = (uint32_t)v[DEBUG_THREAD_ID],
		/* datastack_chunk, datastack_top, datastack_limit; checked when used. */
		.thread_top = (uint32_t)v[DEBUG_THREAD_CHUNK] + 8,
		.frame_code = (uint32_t)v[DEBUG_FRAME_CODE],
		.frame_previous = (uint32_t)v[DEBUG_FRAME_PREVIOUS],
		.frame_instr = (uint32_t)v[DEBUG_FRAME_INSTR],
		.frame_owner = (uint32_t)v[DEBUG_FRAME_OWNER],
		.frame_is_entry = PYTHON_NONE,
		.frame_span = (uint32_t)v[DEBUG_FRAME_VARIABLES],
		.owner_c = 3,
		.code_file = (uint32_t)v[DEBUG_CODE_FILE],
		.code_qualname = (uint32_t)v[DEBUG_CODE_QUALNAME],
		.code_lines = (uint32_t)v[DEBUG_CODE_LINES],
		.code_first = (uint32_t)v[DEBUG_CODE_FIRST],
		.code_start = (uint32_t)v[DEBUG_CODE_START],
		.object_type = (uint32_t)v[DEBUG_OBJECT_TYPE],
		.type_name = (uint32_t)v[DEBUG_TYPE_NAME],
		.bytes_len = (uint32_t)v[DEBUG_BYTES_LEN],
		.bytes_data = (uint32_t)v[DEBUG_BYTES_DATA],
		.string_len = (uint32_t)v[DEBUG_STRING_LEN],
		.string_state = (uint32_t)v[DEBUG_STRING_STATE],
		.string_ascii = (uint32_t)v[DEBUG_STRING_ASCII],
		.string_compact = (uint32_t)v[DEBUG_STRING_SIZE] - 8,
	};
	return l->frame_code + 8 <= l->frame_span && l->frame_previous + 8 <= l->frame_span &&
	       l->frame_instr + 8 <= l->frame_span && l->frame_owner < l->frame_span;
}

static uint64_t thread_of_interpreter(const struct python_layout *l, const struct python_program *p,
				      uint64_t interpreter, uint64_t fs_base)
{
	uint64_t t, owner, id;

	if (!word(p, interpreter + l->interpreter_threads, &t))
		return 0;
	for (unsigned int i = 0; i < PYTHON_MAX_THREADS && is_pointer(t); i++) {
		if (!word(p, t + l->thread_interpreter, &owner) || owner != interpreter ||
		    !word(p, t + l->thread_id, &id))
			return 0;
		if (id == fs_base)
			return t;
		if (!word(p, t + l->thread_next, &t))
			return 0;
	}
	return 0;
}

uint64_t python_thread(const struct python_layout *l, const struct python_program *p,
		       uint64_t fs_base)
{
	uint64_t interpreter, t;

	if (!fs_base || !word(p, p->runtime + l->runtime_interpreters, &interpreter))
		return 0;
	for (unsigned int i = 0; i < PYTHON_MAX_INTERPRETERS && is_pointer(interpreter); i++) {
		t = thread_of_interpreter(l, p, interpreter, fs_base);
		if (t)
			return t;
		/* The lists of 3.11 and 3.12 begin with the pointer to the next element. */
		if (!word(p, interpreter + l->interpreter_next, &interpreter))
			return 0;
	}
	return 0;
}

/* Checks whether the thread's innermost frame is valid. */
static enum python_found check_thread(const struct python_layout *l, const struct python_program *p,
				      uint64_t t)
{
	struct python_code code;
	uint64_t frame, at, instr;
	uint8_t owner = 0;

	if (!word(p, t + l->thread_current, &frame))
		return PYTHON_NOT_YET;
	if (l->cframe && is_pointer(frame) && !word(p, frame + l->cframe_current, &frame))
		return PYTHON_UNKNOWN;
	/* It runs no Python function. */
	if (!frame)
		return PYTHON_NOT_YET;
	for (unsigned int i = 0; i < 2; i++) {
		if (!is_pointer(frame) ||
		    !memory_read(p->memory, p->space, frame + l->frame_owner, &owner, 1))
			return PYTHON_UNKNOWN;
		if (!l->owner_c || owner != l->owner_c)
			break;
		if (!word(p, frame + l->frame_previous, &frame))
			return PYTHON_UNKNOWN;
	}
	if (owner > 4 || !word(p, frame + l->frame_code, &at) ||
	    !word(p, frame + l->frame_instr, &instr) || !is_pointer(at))
		return PYTHON_UNKNOWN;
	/*
	 * The pointer may be one unit before the first one: 3.11 and 3.12 store the unit that was
	 * executed.
	 */
	if (instr + 2 < at + l->code_start || instr - at > MAX_CODE || (instr & 1))
		return PYTHON_UNKNOWN;
	return python_code_read(&code, l, p, at) ? PYTHON_FOUND : PYTHON_UNKNOWN;
}

/* Tries a layout with a thread that has just been seen. */
static enum python_found try_layout(const struct python_layout *l, const struct python_program *p,
				    uint64_t fs_base)
{
	uint64_t t = python_thread(l, p, fs_base);

	return t ? check_thread(l, p, t) : PYTHON_UNKNOWN;
}

/* Returns whether it is between a chunk of frames and its end. */
static bool top_is_right(const struct python_layout *l, const struct python_program *p, uint64_t t)
{
	uint64_t chunk, top, limit;

	return word(p, t + l->thread_top - 8, &chunk) && word(p, t + l->thread_top, &top) &&
	       word(p, t + l->thread_top + 8, &limit) && is_pointer(chunk) && chunk < top &&
	       top <= limit;
}

enum python_found python_layout_find(struct python_layout *out, const struct python_program *p,
				     uint64_t fs_base)
{
	enum python_found found = PYTHON_UNKNOWN;
	uint64_t v[DEBUG_WORDS];
	struct python_layout l = known[0];
	unsigned int n = 0;

	if (!memory_read(p->memory, p->space, p->runtime, v, sizeof(v)))
		return PYTHON_NOT_YET;
	if (!memcmp(v, COOKIE, sizeof(v[0]))) {
		if (!layout_of_offsets(&l, v))
			return PYTHON_UNKNOWN;
		found = try_layout(&l, p, fs_base);
		n = found == PYTHON_FOUND;
		*out = l;
	}
	for (size_t i = 0; !n && found == PYTHON_UNKNOWN && i < sizeof(known) / sizeof(known[0]);
	     i++) {
		enum python_found one = try_layout(&known[i], p, fs_base);

		if (one == PYTHON_NOT_YET)
			return one;
		if (one != PYTHON_FOUND)
			continue;
		if (n++)
			return PYTHON_UNKNOWN;
		*out = known[i];
	}
	if (!n)
		return found;
	if (out->thread_top != PYTHON_NONE && !top_is_right(out, p, python_thread(out, p, fs_base)))
		out->thread_top = PYTHON_NONE;
	return PYTHON_FOUND;
}
