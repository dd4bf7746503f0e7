/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/snapshot/vcpu_state.h"

#include "base/cleanup.h"
#include "vmm/machine.h"
#include "vmm/msr.h"
#include "vmm/pvm.h"
#include "vmm/kvm.h"
#include "vmm/quirks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define CR4_VMXE (1u << 13)
#define EFER_SVME (1u << 12)

#define MSR_IA32_TSC_DEADLINE 0x6e0u

/*
 * KVM's fixed structures in the order in which they are set. Registers come before the local APIC,
 * whose base address is one of them; the APIC before the MSRs, because the TSC deadline is
 * accepted only in its timer's mode; injected events come last.
 */
struct fixed {
	const char *name;
	unsigned long get, set;
	size_t off, len; /* in struct vcpu_state */
};
#define FIXED(NAME, field)                                        \
	{                                                         \
		"KVM_SET_" #NAME, KVM_GET_##NAME, KVM_SET_##NAME, \
			offsetof(struct vcpu_state, field),       \
			sizeof(((struct vcpu_state *)0)->field),  \
	}
static const struct fixed before_msrs[] = {
	FIXED(MP_STATE, mp_state), FIXED(REGS, regs),		FIXED(SREGS, sregs),
	FIXED(XCRS, xcrs),	   FIXED(DEBUGREGS, debugregs), FIXED(LAPIC, lapic),
};
static const struct fixed after_msrs[] = { FIXED(VCPU_EVENTS, events) };

static void *state_field(struct vcpu_state *s, const struct fixed *f)
{
	return (uint8_t *)s + f->off;
}

/* -- bytes ---------------------------------------------------------------------------- */

static void state_put(struct buf *out, const void *data, size_t len)
{
	buf_u32(out, (uint32_t)len);
	buf_add(out, data, len);
}

static void put_state(const struct vcpu_state *s, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(before_msrs); i++)
		state_put(out, state_field((struct vcpu_state *)s, &before_msrs[i]),
			  before_msrs[i].len);
	for (size_t i = 0; i < ARRAY_SIZE(after_msrs); i++)
		state_put(out, state_field((struct vcpu_state *)s, &after_msrs[i]),
			  after_msrs[i].len);
	state_put(out, s->xsave, s->xsave_len);
	state_put(out, s->cpuid, s->ncpuid * sizeof(s->cpuid[0]));
	state_put(out, s->msr, s->nmsrs * sizeof(s->msr[0]));
	buf_u64(out, s->syscall.lstar);
	buf_u64(out, s->syscall.fmask);
	buf_u64(out, s->syscall.pf_handler);
	buf_u8(out, s->syscall.know_lstar);
	buf_u8(out, s->syscall.know_fmask);
}

/*
 * Returns a record of min to max bytes in steps of `each`. Otherwise sets in->bad and returns
 * NULL.
 */
static const uint8_t *state_take(struct cursor *in, size_t min, size_t max, size_t each,
				 uint32_t *len)
{
	*len = cursor_u32(in);
	if (*len < min || *len > max || (*len - min) % each)
		in->bad = true;
	return cursor_bytes(in, *len);
}

static bool take_fixed(struct vcpu_state *s, const struct fixed *f, struct cursor *in)
{
	uint32_t len;
	const uint8_t *p = state_take(in, f->len, f->len, 1, &len);

	if (p)
		memcpy(state_field(s, f), p, f->len);
	return p != NULL;
}

int vcpu_state_parse(struct vcpu_state *s, struct cursor *in, struct err *e)
{
	const uint8_t *p;
	uint32_t len;

	memset(s, 0, sizeof(*s));
	for (size_t i = 0; i < ARRAY_SIZE(before_msrs); i++)
		if (!take_fixed(s, &before_msrs[i], in))
			return err_set(e, EINVAL, "the state of a vCPU is damaged (%s)",
				       before_msrs[i].name);
	for (size_t i = 0; i < ARRAY_SIZE(after_msrs); i++)
		if (!take_fixed(s, &after_msrs[i], in))
			return err_set(e, EINVAL, "the state of a vCPU is damaged (%s)",
				       after_msrs[i].name);
	s->xsave = state_take(in, sizeof(struct kvm_xsave), VCPU_STATE_MAX_XSAVE, 1, &s->xsave_len);
	p = state_take(in, 0, sizeof(s->cpuid), sizeof(s->cpuid[0]), &len);
	if (p)
		memcpy(s->cpuid, p, len);
	s->ncpuid = len / (uint32_t)sizeof(s->cpuid[0]);
	p = state_take(in, 0, sizeof(s->msr), sizeof(s->msr[0]), &len);
	if (p)
		memcpy(s->msr, p, len);
	s->nmsrs = len / (uint32_t)sizeof(s->msr[0]);
	s->syscall.lstar = cursor_u64(in);
	s->syscall.fmask = cursor_u64(in);
	s->syscall.pf_handler = cursor_u64(in);
	s->syscall.know_lstar = cursor_u8(in) & 1;
	s->syscall.know_fmask = cursor_u8(in) & 1;
	if (in->bad || cursor_left(in) || s->xcrs.nr_xcrs > KVM_MAX_XCRS)
		return err_set(e, EINVAL, "the state of a vCPU is damaged (%zu bytes left over)",
			       cursor_left(in));
	return 0;
}

/* -- out of KVM ----------------------------------------------------------------------- */

static int get_fixed(const struct vcpu *v, struct vcpu_state *s, const struct fixed *f, size_t n,
		     struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (ioctl(v->fd, f[i].get, state_field(s, &f[i])) < 0)
			return err_set(e, errno, "vCPU %u: cannot be saved: KVM_GET_%s: %s",
				       v->index, f[i].name + strlen("KVM_SET_"), strerror(errno));
	return 0;
}

/* Reads the XSAVE state. The caller frees *out, to which s->xsave refers. */
static int get_xsave(const struct vcpu *v, struct vcpu_state *s, uint8_t **out, struct err *e)
{
	int size = ioctl(v->vm->fd, KVM_CHECK_EXTENSION, KVM_CAP_XSAVE2);
	bool large = size > (int)sizeof(struct kvm_xsave);

	s->xsave_len = large ? (uint32_t)size : (uint32_t)sizeof(struct kvm_xsave);
	if (s->xsave_len > VCPU_STATE_MAX_XSAVE)
		return err_set(e, ENOTSUP, "vCPU %u: cannot be saved: %u bytes of XSAVE state",
			       v->index, s->xsave_len);
	*out = calloc(1, s->xsave_len);
	if (!*out)
		return err_nomem(e);
	if (ioctl(v->fd, large ? KVM_GET_XSAVE2 : KVM_GET_XSAVE, *out) < 0)
		return err_set(e, errno, "vCPU %u: cannot be saved: KVM_GET_XSAVE: %s", v->index,
			       strerror(errno));
	s->xsave = *out;
	return 0;
}

/* Reads the MSRs that KVM supports and this vCPU has. */
static int get_msrs(const struct vcpu *v, struct vcpu_state *s, struct err *e)
{
	struct {
		struct kvm_msr_list head;
		uint32_t index[VCPU_STATE_MAX_MSRS];
	} list = { .head.nmsrs = VCPU_STATE_MAX_MSRS };

	if (ioctl(v->vm->cfg.host->fd, KVM_GET_MSR_INDEX_LIST, &list) < 0)
		return err_set(e, errno, "vCPU %u: cannot be saved: KVM_GET_MSR_INDEX_LIST: %s",
			       v->index, strerror(errno));
	s->nmsrs = 0;
	for (uint32_t i = 0; i < list.head.nmsrs; i++) {
		struct kvm_msr_entry m = { .index = list.index[i] };

		if (msr_read(v->fd, &m))
			s->msr[s->nmsrs++] = m;
	}
	return 0;
}

static int get_cpuid(const struct vcpu *v, struct vcpu_state *s, struct err *e)
{
	struct {
		struct kvm_cpuid2 head;
		struct kvm_cpuid_entry2 entry[VCPU_STATE_MAX_CPUID];
	} c = { .head.nent = VCPU_STATE_MAX_CPUID };

	if (ioctl(v->fd, KVM_GET_CPUID2, &c) < 0)
		return err_set(e, errno, "vCPU %u: cannot be saved: KVM_GET_CPUID2: %s", v->index,
			       strerror(errno));
	s->ncpuid = c.head.nent;
	memcpy(s->cpuid, c.entry, s->ncpuid * sizeof(s->cpuid[0]));
	return 0;
}

int vcpu_state_save(void *vcpu, struct buf *out, struct err *e)
{
	struct vcpu *v = vcpu;
	cleanup_free struct vcpu_state *s = calloc(1, sizeof(*s));
	cleanup_free uint8_t *xsave = NULL;
	int ret;

	if (!s)
		return err_nomem(e);
	ret = get_fixed(v, s, before_msrs, ARRAY_SIZE(before_msrs), e);
	if (ret)
		return ret;
	ret = get_fixed(v, s, after_msrs, ARRAY_SIZE(after_msrs), e);
	if (ret)
		return ret;
	ret = get_xsave(v, s, &xsave, e);
	if (ret)
		return ret;
	ret = get_msrs(v, s, e);
	if (ret)
		return ret;
	ret = get_cpuid(v, s, e);
	if (ret)
		return ret;
	if ((s->sregs.cr4 & CR4_VMXE) || (s->sregs.efer & EFER_SVME))
		return err_set(e, ENOTSUP,
			       "the guest is a hypervisor itself (vCPU %u has VMX or SVM on): that "
			       "can't be saved",
			       v->index);
	pvm_save(v, s);
	put_state(s, out);
	return 0;
}

/* -- into KVM ------------------------------------------------------------------------- */

static int set_fixed(const struct vcpu *v, struct vcpu_state *s, const struct fixed *f, size_t n,
		     struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		/* On a host without XSAVE, KVM returns no XCRs and accepts none. */
		if (f[i].set == KVM_SET_XCRS && !s->xcrs.nr_xcrs)
			continue;
		if (ioctl(v->fd, f[i].set, state_field(s, &f[i])) < 0)
			return err_set(e, errno, "vCPU %u of the snapshot: KVM refuses %s: %s",
				       v->index, f[i].name, strerror(errno));
	}
	return 0;
}

static int set_cpuid(const struct vcpu *v, const struct vcpu_state *s, struct err *e)
{
	struct {
		struct kvm_cpuid2 head;
		struct kvm_cpuid_entry2 entry[VCPU_STATE_MAX_CPUID];
	} c = { .head.nent = s->ncpuid };

	memcpy(c.entry, s->cpuid, s->ncpuid * sizeof(s->cpuid[0]));
	if (ioctl(v->fd, KVM_SET_CPUID2, &c) < 0)
		return err_set(e, errno, "vCPU %u of the snapshot: KVM refuses its CPUID: %s",
			       v->index, strerror(errno));
	return 0;
}

static int set_xsave(const struct vcpu *v, const struct vcpu_state *s, struct err *e)
{
	int size = ioctl(v->vm->fd, KVM_CHECK_EXTENSION, KVM_CAP_XSAVE2);
	cleanup_free uint8_t *copy = NULL;

	/* KVM reads as many bytes as it has reported. */
	if ((size > (int)sizeof(struct kvm_xsave) ? (uint32_t)size : sizeof(struct kvm_xsave)) !=
	    s->xsave_len)
		return err_set(e, ENOTSUP,
			       "vCPU %u of the snapshot has %u bytes of XSAVE state, KVM %d here",
			       v->index, s->xsave_len, size);
	copy = malloc(s->xsave_len);
	if (!copy)
		return err_nomem(e);
	memcpy(copy, s->xsave, s->xsave_len);
	if (ioctl(v->fd, KVM_SET_XSAVE, copy) < 0)
		return err_set(e, errno, "vCPU %u of the snapshot: KVM refuses KVM_SET_XSAVE: %s",
			       v->index, strerror(errno));
	return 0;
}

/* Writes an MSR. If that fails, the MSR must have the value already. */
static int set_msr(const struct vcpu *v, const struct kvm_msr_entry *m, struct err *e)
{
	struct kvm_msr_entry now = { .index = m->index };

	if (msr_write(v->fd, m) || (msr_read(v->fd, &now) && now.data == m->data))
		return 0;
	return err_set(e, ENOTSUP,
		       "vCPU %u of the snapshot has 0x%llx in MSR 0x%x, KVM 0x%llx here, and "
		       "refuses to change it",
		       v->index, (unsigned long long)m->data, m->index,
		       (unsigned long long)now.data);
}

static int set_msrs(const struct vcpu *v, const struct vcpu_state *s, struct err *e)
{
	int ret = 0;

	/* The deadline is a time of the TSC, so it is set after the TSC. */
	for (uint32_t i = 0; !ret && i < s->nmsrs; i++)
		if (s->msr[i].index != MSR_IA32_TSC_DEADLINE &&
		    (s->msr[i].index != MSR_IA32_TSC || !v->vm->tsc_set))
			ret = set_msr(v, &s->msr[i], e);
	for (uint32_t i = 0; !ret && i < s->nmsrs; i++)
		if (s->msr[i].index == MSR_IA32_TSC_DEADLINE)
			ret = set_msr(v, &s->msr[i], e);
	return ret;
}

/* Records the jump of the guest's TSC if it cannot be set and continues as the host's. */
static void note_jump(const struct vcpu *v, const struct vcpu_state *s)
{
	struct kvm_msr_entry now = { .index = MSR_IA32_TSC };

	for (uint32_t i = 0; i < s->nmsrs; i++)
		if (s->msr[i].index == MSR_IA32_TSC && msr_read(v->fd, &now))
			v->vm->tsc_jump = (int64_t)(now.data - s->msr[i].data);
}

int vcpu_state_restore(void *vcpu, struct cursor *in, struct err *e)
{
	struct vcpu *v = vcpu;
	cleanup_free struct vcpu_state *s = malloc(sizeof(*s));
	int ret;

	if (!s)
		return err_nomem(e);
	ret = vcpu_state_parse(s, in, e);
	if (ret)
		return ret;
	/* After a reset, the vCPU has run, and KVM refuses CPUID, even the same one. */
	ret = v->vm->boot ? 0 : set_cpuid(v, s, e);
	if (ret)
		return ret;
	ret = set_fixed(v, s, before_msrs, ARRAY_SIZE(before_msrs), e);
	if (ret)
		return ret;
	ret = set_xsave(v, s, e);
	if (ret)
		return ret;
	ret = set_msrs(v, s, e);
	if (ret)
		return ret;
	if (v->vm->cfg.quirks->tsc_fixed)
		note_jump(v, s);
	ret = set_fixed(v, s, after_msrs, ARRAY_SIZE(after_msrs), e);
	return ret ? ret : pvm_restore(v, s, e);
}
