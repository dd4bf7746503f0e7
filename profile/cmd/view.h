/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * view: makes the page of the command view for other commands. Called by the main thread.
 */
#ifndef KVMPROF_PROFILE_CMD_VIEW_H
#define KVMPROF_PROFILE_CMD_VIEW_H

/*
 * Writes the page of a profile with the defaults of the command view, and prints that it did, or
 * the reason why not. Returns the exit status.
 */
int cmd_view_page(const char *profile, const char *page);

#endif
