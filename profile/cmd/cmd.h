/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd: the subcommands. Each function runs one of them. argv[0] is the subcommand's name. Returns
 * the exit status: 0 success, 1 failure, 2 wrong usage; the comments below state where a status
 * differs, and each command's man page has the details. Errors have been printed to stderr then.
 * Called by the main thread, once.
 */
#ifndef KVMPROF_PROFILE_CMD_CMD_H
#define KVMPROF_PROFILE_CMD_CMD_H

/* Also the guest's own status, and others that depend on how the run ended. */
int cmd_run(int argc, char **argv);
int cmd_iosnoop(int argc, char **argv); /* like cmd_run() */
int cmd_stat(int argc, char **argv);	/* like cmd_run() */
int cmd_attach(int argc, char **argv);	/* also 4: the guest's kernel panicked */
int cmd_ps(int argc, char **argv);
int cmd_why(int argc, char **argv);
int cmd_dmesg(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_ctl(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_mem(int argc, char **argv);
int cmd_annotate(int argc, char **argv);
int cmd_flamegraph(int argc, char **argv);
int cmd_view(int argc, char **argv);
int cmd_script(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_symbols(int argc, char **argv);
int cmd_scan(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_diverge(int argc, char **argv); /* 0 equal runs, 1 they differ, 2 failure or wrong usage */
/* 0 pass, 1 slower, 2 failure or wrong usage, 3 inconclusive */
int cmd_gate(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_archive(int argc, char **argv);
/* 0 pass, 1 slower or failure, 2 wrong usage, 3 inconclusive, 130 interrupted */
int cmd_bench(int argc, char **argv);
int cmd_push(int argc, char **argv);

#endif
