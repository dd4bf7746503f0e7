/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * toml_shim: toml++'s tree as C structures. The only file in C++; nothing is thrown out
 * of it.
 */
extern "C" {
#include "profile/gate/toml.h"
}

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/* A text can bring toml++ where it asserts ("[[[x]]" in 3.3): that is an error of the text, and no end of the program. */
[[noreturn]] static void assert_fails(const char *what)
{
	throw std::logic_error(what);
}

#define TOML_ASSERT(expr) ((expr) ? static_cast<void>(0) : assert_fails(#expr))
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_WINDOWS_COMPAT 0
#include <toml++/toml.h>

namespace
{

struct builder {
	const char *name;
	struct err *e;
	size_t nodes;
};

/* Thrown and caught in this file: the text is recorded already. */
struct refused {
	int code;
};

[[noreturn]] void refuse(builder &b, int code, const toml::source_position &at, const char *what)
{
	err_set(b.e, code, "%s:%u:%u: %s", b.name, static_cast<unsigned int>(at.line),
		static_cast<unsigned int>(at.column), what);
	throw refused{ code };
}

char *copy_text(builder &b, const std::string &s, const toml::source_position &at)
{
	if (s.find('\0') != std::string::npos)
		refuse(b, EINVAL, at, "a string or key with a NUL in it");
	char *text = static_cast<char *>(malloc(s.size() + 1));
	if (!text)
		throw std::bad_alloc();
	memcpy(text, s.c_str(), s.size() + 1);
	return text;
}

struct toml_node *add_node(builder &b, struct toml_node **end, const toml::node &from)
{
	if (++b.nodes > TOML_MAX_NODES)
		refuse(b, E2BIG, from.source().begin, "too many values");
	struct toml_node *n = static_cast<struct toml_node *>(calloc(1, sizeof(*n)));
	if (!n)
		throw std::bad_alloc();
	*end = n;
	n->line = from.source().begin.line;
	n->column = from.source().begin.column;
	return n;
}

void fill(builder &b, struct toml_node *n, const toml::node &from, unsigned int level);

void fill_table(builder &b, struct toml_node *n, const toml::table &t, unsigned int level)
{
	struct member {
		const toml::key *key;
		const toml::node *value;
	};
	std::vector<member> members;
	struct toml_node **end = &n->child;

	for (auto &&[key, value] : t)
		members.push_back({ &key, &value });
	/* toml++ sorts by name. */
	std::stable_sort(members.begin(), members.end(), [](const member &x, const member &y) {
		const toml::source_position &a = x.key->source().begin, &c = y.key->source().begin;
		return a.line != c.line ? a.line < c.line : a.column < c.column;
	});
	for (const member &m : members) {
		struct toml_node *child = add_node(b, end, *m.value);
		const toml::source_position at = m.key->source().begin;

		end = &child->next;
		child->key_line = at.line;
		child->key_column = at.column;
		child->key = copy_text(b, std::string(m.key->str()), at);
		fill(b, child, *m.value, level + 1);
	}
}

void fill_array(builder &b, struct toml_node *n, const toml::array &a, unsigned int level)
{
	struct toml_node **end = &n->child;

	for (const toml::node &value : a) {
		struct toml_node *child = add_node(b, end, value);

		end = &child->next;
		child->key = copy_text(b, std::string(), value.source().begin);
		fill(b, child, value, level + 1);
	}
}

void fill(builder &b, struct toml_node *n, const toml::node &from, unsigned int level)
{
	if (level > TOML_MAX_LEVELS)
		refuse(b, E2BIG, from.source().begin, "tables or arrays too deep in each other");
	if (const toml::table *t = from.as_table()) {
		n->kind = TOML_TABLE;
		fill_table(b, n, *t, level);
	} else if (const toml::array *a = from.as_array()) {
		n->kind = TOML_ARRAY;
		fill_array(b, n, *a, level);
	} else if (const auto *s = from.as_string()) {
		n->kind = TOML_STRING;
		n->string = copy_text(b, s->get(), from.source().begin);
	} else if (const auto *i = from.as_integer()) {
		n->kind = TOML_INTEGER;
		n->integer = i->get();
		n->real = static_cast<double>(n->integer);
	} else if (const auto *r = from.as_floating_point()) {
		n->kind = TOML_REAL;
		n->real = r->get();
	} else if (const auto *v = from.as_boolean()) {
		n->kind = TOML_BOOLEAN;
		n->boolean = v->get();
	} else {
		n->kind = TOML_OTHER;
	}
}

/* What toml++ says may span lines. */
std::string one_line(std::string s)
{
	for (char &c : s)
		if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
			c = ' ';
	return s;
}

int build(builder &b, struct toml_node **root, const char *text, size_t len)
{
	try {
		const toml::table t = toml::parse(std::string_view(text, len));

		struct toml_node *n = add_node(b, root, t);
		n->key = copy_text(b, std::string(), t.source().begin);
		fill(b, n, t, 0);
		return 0;
	} catch (const toml::parse_error &x) {
		const toml::source_position at = x.source().begin;

		return err_set(b.e, EINVAL, "%s:%u:%u: %s", b.name,
			       static_cast<unsigned int>(at.line),
			       static_cast<unsigned int>(at.column),
			       one_line(std::string(x.description())).c_str());
	} catch (const refused &x) {
		return -x.code;
	}
}

} // namespace

extern "C" int toml_parse(struct toml_node **out, const char *name, const char *text, size_t len,
			  struct err *e)
{
	builder b = { name, e, 0 };
	struct toml_node *root = nullptr;
	int ret;

	if (len > TOML_MAX_TEXT)
		return err_set(e, E2BIG, "%s: %zu bytes, at most %u", name, len, TOML_MAX_TEXT);
	try {
		ret = build(b, &root, text, len);
	} catch (const std::bad_alloc &) {
		ret = err_set(e, ENOMEM, "%s: out of memory", name);
	} catch (...) {
		ret = err_set(e, EINVAL, "%s: it can't be parsed as TOML", name);
	}
	if (ret)
		toml_free(root);
	else
		*out = root;
	return ret;
}

/* No recursion but the levels of the document, which are limited. */
extern "C" void toml_free(struct toml_node *n)
{
	while (n) {
		struct toml_node *next = n->next;

		toml_free(n->child);
		free(n->key);
		free(n->string);
		free(n);
		n = next;
	}
}

extern "C" const char *toml_kind_name(enum toml_kind kind)
{
	static const char *const name[] = { "table",  "array",	 "string",	"integer",
					    "number", "boolean", "date or time" };

	return name[kind];
}
