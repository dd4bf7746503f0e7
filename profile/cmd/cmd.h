/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd: the subcommands. argv[0] is the subcommand's name; the return value is
 * the exit status: 0 fine, 1 failed, 2 wrong usage.
 */
#ifndef KVMPROF_PROFILE_CMD_CMD_H
#define KVMPROF_PROFILE_CMD_CMD_H

int cmd_run(int argc, char **argv);
int cmd_iosnoop(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_attach(int argc, char **argv);
int cmd_ps(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_ctl(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_mem(int argc, char **argv);
int cmd_annotate(int argc, char **argv);
int cmd_flamegraph(int argc, char **argv);
int cmd_script(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_symbols(int argc, char **argv);
int cmd_scan(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_diverge(int argc, char **argv); /* has its own: 1 they part, 2 not to be told */
int cmd_gate(int argc, char **argv);	/* has its own: 1 slower, 3 can't be told */
int cmd_import(int argc, char **argv);
int cmd_archive(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_push(int argc, char **argv);

#endif
