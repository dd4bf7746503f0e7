/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/summary/panic.h"

#include "profile/record/host/frame.h"
#include "profile/record/summary/facts.h"
#include "vmm/device.h"
#include "vmm/end.h"
#include "vmm/vm.h"

#include <inttypes.h>
#include <string.h>

static void print_symbol(const struct summary *s, uint64_t ip, bool exact, FILE *out)
{
	const struct target *t = s->present;
	uint64_t off;
	const struct symbol *sym =
		t->symbols ? symtab_lookup(t->symbols, exact ? ip : ip - 1, &off) : NULL;

	if (frame_vmm_owns(ip))
		fprintf(out, "  %016" PRIx64 " [vmm] %s\n", ip,
			vm_device_name(s->vm, frame_vmm_device(ip)));
	else if (sym)
		fprintf(out, "  %016" PRIx64 " %s+0x%" PRIx64 "\n", ip, sym->name,
			off + (exact ? 0 : 1));
	else
		fprintf(out, "  %016" PRIx64 " ?\n", ip);
}

static void print_stack(const struct summary *s, const struct stack *stack, FILE *out)
{
	for (unsigned int i = 0; i < stack->n; i++)
		print_symbol(s, stack->ip[i], stack->exact[i], out);
}

/* KVM has reset the vCPU: only its last sample is left. */
static void print_last_sample(const struct summary *s, FILE *out)
{
	const struct vm_result *r = vm_result(s->vm);

	fprintf(out, "  its registers and its stack are not known: %s\n",
		vm_is_exact(s->vm) ? "QEMU ends with it"
				   : "this host's KVM resets a vCPU before it reports a triple "
				     "fault (kvm_amd does so)");
	if (!s->last || !s->last->time_ns) {
		fprintf(out, "  there was no sample of this vCPU before it\n");
		return;
	}
	fprintf(out, "  the last sample of this vCPU, %.3f ms before:\n",
		(double)(int64_t)(r->end_ns - s->last->time_ns) / 1e6);
	print_stack(s, &s->last->stack, out);
}

void summary_print_crash(const struct summary *s, FILE *out)
{
	static const char *const name[GPR_COUNT] = { "rax", "rcx", "rdx", "rbx", "rsp", "rbp",
						     "rsi", "rdi", "r8",  "r9",	 "r10", "r11",
						     "r12", "r13", "r14", "r15" };
	const struct vm_result *r = vm_result(s->vm);

	if (!r->have_regs) {
		if (r->reason == VM_END_TRIPLE_FAULT)
			print_last_sample(s, out);
		return;
	}
	fprintf(out, "  rip %016" PRIx64 "  rflags %08" PRIx64 "  cs %04x  ss %04x\n", r->regs.rip,
		r->regs.rflags, r->regs.cs, r->regs.ss);
	for (unsigned int i = 0; i < GPR_COUNT; i++)
		fprintf(out, "  %-3s %016" PRIx64 "%s", name[i], r->regs.gpr[i],
			i % 4 == 3 ? "\n" : "");
	fprintf(out,
		"  cr0 %08" PRIx64 "  cr2 %016" PRIx64 "  cr3 %08" PRIx64 "  cr4 %06" PRIx64 "\n",
		r->regs.cr0, r->regs.cr2, r->regs.cr3, r->regs.cr4);
	if (s->crash->n == 0)
		print_symbol(s, r->regs.rip, true, out);
	print_stack(s, s->crash, out);
}

/*
 * Returns the log's next line, without its LF, and its length; NULL at the end. *at is 0 at first,
 * then as this function leaves it.
 */
static const char *next_line(const struct buf *log, size_t *at, int *len)
{
	const char *line = (const char *)log->data + *at, *end;

	if (*at >= log->len)
		return NULL;
	end = memchr(line, '\n', log->len - *at);
	*len = end ? (int)(end - line) : (int)(log->len - *at);
	*at += (size_t)*len + 1;
	return line;
}

void summary_hang(const struct facts_out *o, const struct summary_hang *h)
{
	if (!o->json)
		return;
	if (!h || !h->count) {
		json_str(o->json, "guest_hang", NULL);
		return;
	}
	json_object_begin(o->json, "guest_hang");
	json_u64(o->json, "count", h->count);
	json_str(o->json, "text", h->text);
	json_str(o->json, "cause", *h->cause ? h->cause : NULL);
	json_object_end(o->json);
}

void summary_panic(const struct facts_out *o, const struct summary_panic *p)
{
	const char *line;
	size_t at = 0;
	int len;

	if (!o->json)
		return;
	if (p && p->before) {
		json_object_begin(o->json, "guest_panics_before");
		json_u64(o->json, "count", p->before);
		json_str(o->json, "text", p->before_text);
		json_object_end(o->json);
	}
	if (!p || !p->seen) {
		json_str(o->json, "guest_panic", NULL);
		return;
	}
	json_object_begin(o->json, "guest_panic");
	json_str(o->json, "text", p->text);
	json_array_begin(o->json, "log");
	while ((line = next_line(&p->log, &at, &len)))
		json_strf(o->json, NULL, "%.*s", len, line);
	json_array_end(o->json);
	json_object_end(o->json);
}

void summary_panic_print(const struct summary *s, FILE *out)
{
	const struct summary_panic *p = s->panic;
	const char *line;
	size_t at = 0;
	int len;

	if (p && p->before)
		fprintf(out,
			"kvmprof: %u of the guest's kernels before the last one panicked: %s\n",
			p->before, *p->before_text ? p->before_text : "the reason is not known");
	if (!p || !p->seen)
		return;
	fprintf(out, "kvmprof: the guest's kernel panicked: %s\n",
		*p->text ? p->text : "its log does not say why");
	while ((line = next_line(&p->log, &at, &len)))
		fprintf(out, "  %.*s\n", len, line);
	if (p->log_has_stack)
		return;
	if (p->stack_seen) {
		fprintf(out, "  its stack at the last sample:\n");
		print_stack(s, &s->last->stack, out);
	} else {
		fprintf(out, "  its stack is not known: neither the kernel's log nor the last "
			     "sample has it\n");
	}
}
