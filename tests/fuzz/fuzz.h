/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fuzz: the entry point, which libFuzzer and our corpus runner call. It returns 0. */
#ifndef KVMPROF_TESTS_FUZZ_H
#define KVMPROF_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
