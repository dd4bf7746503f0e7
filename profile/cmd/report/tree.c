/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/report/tree.h"

#include "base/utf8.h"
#include "profile/analyse/tables/agg_tree.h"

#include <inttypes.h>
#include <stdio.h>

#define MARGIN 12 /* columns left of a tree */
#define STEP 10	  /* columns of a level, besides its bar */

struct printer {
	const struct report *r;
	const struct agg_tree *tree;
	bool bar[AGG_TREE_MAX_DEPTH + 1]; /* a level that goes on further down */
};

static int report_tree_build(struct agg_tree *t, const struct report *r, const struct agg_row *row)
{
	const struct agg_tree_options opt = {
		.caller = r->opt->graph == REPORT_CALLER,
		.innermost_only = r->opt->no_children,
		.min_weight = (uint64_t)(r->opt->graph_limit / 100 * (double)r->a->weight),
	};

	return agg_tree_build(t, r->a, row, &opt);
}

static void put_func(const struct agg_func *f)
{
	if (f->name)
		utf8_put(stdout, f->name);
	else
		printf("0x%" PRIx64, f->addr);
}

static void put_bars(const struct printer *p, unsigned int level, int margin)
{
	printf("%*s", margin, "");
	for (unsigned int i = 0; i < level; i++)
		printf("%c%*s", p->bar[i] ? '|' : ' ', STEP, "");
}

/* The functions of a node; the first with the node's share, when `shares`. */
static void put_node(const struct printer *p, const struct agg_node *node, unsigned int level,
		     int margin)
{
	for (uint32_t i = 0; i < node->n; i++) {
		put_bars(p, level, margin);
		putchar(p->bar[level] ? '|' : ' ');
		if (i == 0) {
			fputs("--", stdout);
			report_put_percent(p->r, 0, report_percent(node->weight, p->r->a->weight));
			fputs("--", stdout);
		} else {
			printf("%*s", STEP, "");
		}
		put_func(&p->r->a->func[node->func[i]]);
		putchar('\n');
	}
}

static void put_nodes(struct printer *p, uint32_t first, uint32_t n, unsigned int level, int margin)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct agg_node *node = &p->tree->node[first + i];

		/* A line apart from what stands above; the last one's bar ends there. */
		p->bar[level] = true;
		put_bars(p, level + 1, margin);
		putchar('\n');
		p->bar[level] = i + 1 < n;
		put_node(p, node, level, margin);
		put_nodes(p, node->child, node->nchildren, level + 1, margin);
	}
}

int report_tree(const struct report *r, const struct agg_row *row)
{
	struct agg_tree tree;
	struct printer p = { .r = r, .tree = &tree };
	uint64_t whole = r->opt->no_children ? row->self : row->children;
	const struct agg_node *root;
	int ret = report_tree_build(&tree, r, row);

	if (ret)
		return ret;
	root = tree.node;
	if (tree.nroots == 1 && root->weight == whole) {
		/* All of it goes this way: a share would say nothing. */
		printf("%*s|\n%*s---", MARGIN, "", MARGIN, "");
		for (uint32_t i = 0; i < root->n; i++) {
			if (i)
				printf("%*s", MARGIN + 3, "");
			put_func(&r->a->func[root->func[i]]);
			putchar('\n');
		}
		put_nodes(&p, root->child, root->nchildren, 0, MARGIN + 3);
	} else {
		put_nodes(&p, 0, tree.nroots, 0, MARGIN);
	}
	if (tree.nroots)
		putchar('\n');
	agg_tree_deinit(&tree);
	return 0;
}

/* -- JSON -------------------------------------------------------------------------- */

static void put_json_nodes(struct json_writer *w, const struct report *r, const struct agg_tree *t,
			   uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct agg_node *node = &t->node[first + i];

		json_object_begin(w, NULL);
		json_array_begin(w, "functions");
		for (uint32_t k = 0; k < node->n; k++) {
			const struct agg_func *f = &r->a->func[node->func[k]];

			if (f->name)
				json_str(w, NULL, f->name);
			else
				json_hex(w, NULL, f->addr);
		}
		json_array_end(w);
		json_u64(w, "weight", node->weight);
		json_array_begin(w, "children");
		put_json_nodes(w, r, t, node->child, node->nchildren);
		json_array_end(w);
		json_object_end(w);
	}
}

int report_tree_json(struct json_writer *w, const char *key, const struct report *r,
		     const struct agg_row *row)
{
	struct agg_tree tree;
	int ret = report_tree_build(&tree, r, row);

	if (ret)
		return ret;
	json_array_begin(w, key);
	put_json_nodes(w, r, &tree, 0, tree.nroots);
	json_array_end(w);
	agg_tree_deinit(&tree);
	return 0;
}
