// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * /init that lists the virtio devices that its kernel has found, and uses each of them.
 *
 * Console lines, which tests wait for:
 * 	devices: start
 * 	devices: virtio NAME ID TRANSPORT	for each: ID as in the specification
 * 	devices: hwrng N BYTES...		bytes of /dev/hwrng, in hex
 * 	devices: hvc0 said LINE			a line typed there, with devices.type on the command line
 * 	devices: http, serving, served		see net.c
 * 	devices: clock CURRENT of AVAILABLE...	sources of the kernel's clock
 * 	devices: steal N			stolen ticks of /proc/stat so far
 * 	devices: eth0 received N packets, N bytes	as counted by its driver so far
 * 	devices: done
 * and on hvc0: "devices: this is hvc0".
 */
#include "devices.h"
#include "../linux_init.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <unistd.h>

#define VIRTIO "/sys/bus/virtio/devices"
#define CLOCK "/sys/devices/system/clocksource/clocksource0/"

int read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	return n < 0 ? -1 : 0;
}

static void list_devices(void)
{
	DIR *dir = opendir(VIRTIO);
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		char path[512], id[32], link[512];
		ssize_t n;

		if (d->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), VIRTIO "/%s/device", d->d_name);
		read_text(path, id, sizeof(id));
		snprintf(path, sizeof(path), VIRTIO "/%s", d->d_name);
		n = readlink(path, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = 0;
		printf("devices: virtio %s %ld %s\n", d->d_name, strtol(id, NULL, 16),
		       strstr(link, "/pci") ? "pci" : "mmio");
	}
	if (dir)
		closedir(dir);
}

static void use_rng(void)
{
	int fd = open("/dev/hwrng", O_RDONLY);
	unsigned char bytes[16];
	ssize_t n;

	if (fd < 0)
		return;
	n = read(fd, bytes, sizeof(bytes));
	close(fd);
	printf("devices: hwrng %zd ", n);
	for (ssize_t i = 0; i < n; i++)
		printf("%02x", bytes[i]);
	putchar('\n');
}

static void use_console(bool type)
{
	char line[128];
	FILE *f = fopen("/dev/hvc0", "r+");

	if (!f)
		return;
	fputs("devices: this is hvc0\n", f);
	fflush(f);
	if (type && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\r\n")] = 0;
		printf("devices: hvc0 said %s\n", line);
	}
	fclose(f);
}

static void tell_of_time(void)
{
	char current[64], available[256], cpu[256];
	unsigned long long steal;

	read_text(CLOCK "current_clocksource", current, sizeof(current));
	read_text(CLOCK "available_clocksource", available, sizeof(available));
	printf("devices: clock %s of %s\n", current, available);
	read_text("/proc/stat", cpu, sizeof(cpu));
	if (sscanf(cpu, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &steal) == 1)
		printf("devices: steal %llu\n", steal);
}

int main(void)
{
	char words[4096];

	init_begin();
	read_text("/proc/cmdline", words, sizeof(words));
	puts("devices: start");
	list_devices();
	use_rng();
	use_console(strstr(words, "devices.type") != NULL);
	use_net();
	tell_of_time();
	count_packets();
	puts("devices: done");
	sync();
	if (access("/sys/firmware/acpi", F_OK) == 0)
		reboot(RB_POWER_OFF);
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}
