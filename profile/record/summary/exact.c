/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/summary/exact.h"

#include "base/json.h"
#include "vmm/exact/exact.h"

#include <inttypes.h>

void summary_exact_print(const struct vm *vm, FILE *out)
{
	const struct exact_facts *f = vm_exact_facts(vm);

	if (f)
		fprintf(out,
			"kvmprof: engine exact, QEMU %s: %" PRIu64 " instructions, %s each %" PRIu64
			", %u ns of virtual time each\n",
			f->engine.version, f->instructions,
			f->counts ? "each counted, a look at the process" : "a sample", f->period,
			EXACT_NS_PER_INSN);
	if (f && f->begun)
		fprintf(out,
			"kvmprof: collected from instruction %" PRIu64 " on: %" PRIu64
			" instructions\n",
			f->begun + 1, f->instructions - f->begun);
}

static void json_text(struct buf *b, const char *key, const char *text)
{
	buf_printf(b, ",\"%s\":", key);
	json_quote(b, text);
}

void summary_exact_json(const struct vm *vm, struct buf *b)
{
	const struct exact_facts *f = vm_exact_facts(vm);

	if (!f)
		return;
	buf_printf(b, ",\"engine\":{\"name\":\"exact\"");
	json_text(b, "qemu", f->engine.version);
	buf_printf(b, ",\"plugin\":%u", f->plugin);
	json_text(b, "cpu", EXACT_CPU_MODEL);
	buf_printf(b, ",\"memory_bytes\":%" PRIu64 ",\"vcpus\":%u", f->mem_size, f->vcpus);
	json_text(b, "machine", f->machine);
	json_text(b, "cmdline", f->cmdline);
	json_text(b, "kernel_sha256", f->kernel_sha256);
	json_text(b, "initrd_sha256", f->initrd_sha256);
	for (unsigned int i = 0; i < f->ndisks; i++)
		buf_printf(b, "%s{\"bytes\":%" PRIu64 ",\"read_only\":%s,\"sha256\":\"%s\"}",
			   i ? "," : ",\"disks\":[", f->disk[i].image_size,
			   f->disk[i].read_only ? "true" : "false", f->disk[i].sha256);
	buf_printf(b,
		   "%s,\"counts\":%s,\"period\":%" PRIu64
		   ",\"jitter\":%s,\"instructions\":%" PRIu64
		   ",\"begun\":%" PRIu64 ",\"phases\":[",
		   f->ndisks ? "]" : "", f->counts ? "true" : "false", f->period,
		   f->strict ? "false" : "true", f->instructions,
		   f->begun);
	for (unsigned int i = 0, n = 0; i < f->nparts; i++)
		if (f->part_at[i])
			buf_printf(b,
				   "%s{\"name\":\"%s\",\"instruction\":%" PRIu64
				   ",\"mono_ns\":%" PRIu64 "}",
				   n++ ? "," : "", f->part[i].name, f->part_at[i],
				   EXACT_NS_AT(f->part_at[i]));
	buf_printf(b, "]}");
}
