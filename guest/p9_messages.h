/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types of 9P2000.L requests, from its description; a reply's type is one more. Used by clients in
 * guests.
 */
#ifndef GUEST_P9_MESSAGES_H
#define GUEST_P9_MESSAGES_H

enum {
	RLERROR = 7,
	TSTATFS = 8,
	TLOPEN = 12,
	TLCREATE = 14,
	TSYMLINK = 16,
	TREADLINK = 22,
	TGETATTR = 24,
	TSETATTR = 26,
	TREADDIR = 40,
	TFSYNC = 50,
	TLOCK = 52,
	TGETLOCK = 54,
	TMKDIR = 72,
	TRENAMEAT = 74,
	TUNLINKAT = 76,
	TVERSION = 100,
	TATTACH = 104,
	TFLUSH = 108,
	TWALK = 110,
	TREAD = 116,
	TWRITE = 118,
	TCLUNK = 120
};

#endif
