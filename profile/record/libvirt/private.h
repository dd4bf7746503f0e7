/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libvirt_private: the loaded library, for the files of this folder only. Functions are called by
 * the thread that uses the connection.
 */
#ifndef KVMPROF_PROFILE_RECORD_LIBVIRT_PRIVATE_H
#define KVMPROF_PROFILE_RECORD_LIBVIRT_PRIVATE_H

#include "base/library.h"
#include "profile/record/libvirt/host.h"

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

/* The functions of the library that are used, with the names and types of its header. */
/* clang-format off */
#define LIBVIRT_FUNCTIONS(X) \
	X(virConnectClose) \
	X(virConnectDomainEventDeregisterAny) \
	X(virConnectDomainEventRegisterAny) \
	X(virConnectGetURI) \
	X(virConnectListAllDomains) \
	X(virConnectOpen) \
	X(virConnectOpenReadOnly) \
	X(virConnectRegisterCloseCallback) \
	X(virConnectSetKeepAlive) \
	X(virConnectUnregisterCloseCallback) \
	X(virDomainFree) \
	X(virDomainGetID) \
	X(virDomainGetInfo) \
	X(virDomainGetName) \
	X(virDomainGetState) \
	X(virDomainGetUUIDString) \
	X(virDomainGetXMLDesc) \
	X(virDomainLookupByID) \
	X(virDomainLookupByName) \
	X(virDomainLookupByUUIDString) \
	X(virEventAddTimeout) \
	X(virEventRegisterDefaultImpl) \
	X(virEventRemoveTimeout) \
	X(virEventRunDefaultImpl) \
	X(virEventUpdateTimeout) \
	X(virGetLastError) \
	X(virSetErrorFunc)
/* clang-format on */

struct libvirt_host {
	LIBVIRT_FUNCTIONS(LIBRARY_MEMBER) /* first, as library_load() stores them */
	/* the connection, owned */
	virConnectPtr conn;
	char *uri;
};

/* Stores libvirt's last error in *e, after "WHAT: ". Returns -code. */
int libvirt_failed(const struct libvirt_host *h, int code, const char *what, struct err *e);

/*
 * Looks up domain d again. Returns NULL if it is gone. The caller frees the result with
 * virDomainFree().
 */
virDomainPtr libvirt_domain_get(const struct libvirt_host *h, const struct libvirt_domain *d);

#endif
