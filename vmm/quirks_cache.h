/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * quirks_cache: stores what the probe guest found about this host, so that later runs need no probe.
 *
 * The result is valid for one boot of the host's kernel, the same instances of KVM's modules, the
 * same processor and the same build of kvmprof. These make up the key, which is stored before the
 * result. The file is used only if the calling user owns it and nobody else may write to it,
 * because a wrong result switches work-arounds off. The main thread calls these functions.
 */
#ifndef KVMPROF_VMM_QUIRKS_CACHE_H
#define KVMPROF_VMM_QUIRKS_CACHE_H

#include "vmm/quirks.h"

#include <stdbool.h>

#define QUIRKS_CACHE_KEY 1024u /* bytes of a key, with its NUL */

/*
 * Fills *q like quirks_probe(), but from the cache if that has a result for this host; otherwise
 * runs the probe guest and stores its result. The caller must call quirks_release().
 */
void quirks_find(const struct kvm_host *h, struct quirks *q);

/* Stores the result of quirks_probe(), if the probe guest ran. A failure is not reported. */
void quirks_cache_store(const struct quirks *q);

/*
 * Returns the path of the cache: $XDG_CACHE_HOME/kvmprof/host-quirks, or
 * $HOME/.cache/kvmprof/host-quirks. Returns NULL if neither variable names a directory of the
 * calling user, or if out of memory. The caller frees it with free().
 */
char *quirks_cache_path(void);
/* Writes the key of this host. Returns false if a part of it cannot be read or does not fit. */
bool quirks_cache_key(char key[QUIRKS_CACHE_KEY]);
/*
 * Fills *q from the file if it has this key. Returns false, with *q unchanged, if it has another
 * one, is damaged, or may be written by others than the calling user.
 */
bool quirks_cache_read(const char *path, const char *key, struct quirks *q);
/* Replaces the file, and creates its directory. Returns whether that succeeded. */
bool quirks_cache_write(const char *path, const char *key, const struct quirks *q);

#endif
