/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A libvirt definition: what parses has values within their limits, and texts for a terminal. */
#include "tests/fuzz/fuzz.h"

#include "profile/record/libvirt/domain_xml.h"

#include <stdlib.h>
#include <string.h>

static void check_text(const char *s)
{
	if (s && (!*s || strlen(s) > DOMAIN_XML_TEXT_MAX))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct domain_xml d;
	struct err e = { 0 };
	const char *s;

	if (domain_xml_parse((const char *)data, size, &d, &e) < 0) {
		if (!*e.text || strchr(e.text, '\n'))
			abort();
		domain_xml_deinit(&d);
		return 0;
	}
	check_text(d.name);
	check_text(d.kernel);
	check_text(d.initrd);
	check_text(d.cmdline);
	if (d.nleft > DOMAIN_XML_LEFT_MAX)
		abort();
	s = (const char *)d.left.data;
	for (unsigned int i = 0; i < d.nleft; i++, s += strlen(s) + 1)
		if (!*s || strlen(s) >= DOMAIN_XML_LEFT_TEXT || strpbrk(s, "\n\r\033"))
			abort();
	if (d.left.len && s != (const char *)d.left.data + d.left.len)
		abort();
	domain_xml_deinit(&d);
	return 0;
}
