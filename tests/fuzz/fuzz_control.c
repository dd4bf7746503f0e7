/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests of the control socket: what is taken keeps to its limits, what is not has a reason. */
#include "tests/fuzz/fuzz.h"

#include "profile/record/control/request.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static void check_string(const char *s, size_t size)
{
	if (strnlen(s, size) == size)
		abort();
}

static void check_request(const struct control_request *r)
{
	check_string(r->path, sizeof(r->path));
	check_string(r->name, sizeof(r->name));
	if (r->cmd >= CONTROL_CMDS || r->nevents > CONTROL_MAX_EVENTS ||
	    r->len > CONTROL_MAX_TEXT || (r->cmd == CONTROL_FREQ && !(r->hz > 0 && r->hz <= 1e9)) ||
	    (r->cmd == CONTROL_PERIOD && !r->value) || (r->cmd == CONTROL_SNAPSHOT && !*r->path) ||
	    (r->cmd == CONTROL_EVENT && !r->nevents))
		abort();
	for (unsigned int i = 0; i < r->nevents; i++)
		check_string(r->event[i].name, sizeof(r->event[i].name));
}

/* Whatever the client said, a reply is one line of JSON. */
static void check_reply(const struct control_request *r, const char *text)
{
	struct buf b;
	json_t *root;

	buf_init(&b);
	control_reply_error(&b, r, text);
	if (b.failed || memchr(b.data, '\n', b.len))
		abort();
	root = json_loadb((const char *)b.data, b.len, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(root))
		abort();
	json_decref(root);
	buf_deinit(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct control_request r;
	struct err e = { 0 };
	char *text = malloc(size + 1);
	int ret = control_request_parse(&r, (const char *)data, size, &e);

	if (!ret)
		check_request(&r);
	else if (!e.code || !*e.text)
		abort();
	/* As the end of a file, a name of the guest's would be. */
	memcpy(text, data, size);
	text[size] = '\0';
	check_reply(&r, ret ? e.text : text);
	check_reply(&r, text);
	free(text);
	return 0;
}
