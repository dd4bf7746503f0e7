// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The network as a program uses it. On the kernel's command line:
 * 	devices.http=A.B.C.D:PORT	get / from there over HTTP, and print its length
 * 	devices.serve=PORT		then answer one connection
 */
#include "devices.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *word(const char *words, const char *name)
{
	const char *p = strstr(words, name);

	return p ? p + strlen(name) : NULL;
}

/* Reads a page and prints the sum of its bytes, which identifies it. */
static void get_page(const char *where)
{
	static const char request[] = "GET / HTTP/1.0\r\n\r\n";
	struct sockaddr_in to = { .sin_family = AF_INET };
	char address[32], reply[4096], status[64] = "";
	unsigned long sum = 0, len = 0;
	const char *colon = strchr(where, ':');
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	bool body = false;
	ssize_t n;

	if (fd < 0 || !colon || (size_t)(colon - where) >= sizeof(address))
		return;
	memcpy(address, where, (size_t)(colon - where));
	address[colon - where] = 0;
	inet_pton(AF_INET, address, &to.sin_addr);
	to.sin_port = htons((uint16_t)atoi(colon + 1));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
		perror("devices: connect");
		close(fd);
		return;
	}
	(void)!write(fd, request, sizeof(request) - 1);
	while ((n = read(fd, reply, sizeof(reply))) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (body) {
				sum += (unsigned char)reply[i];
				len++;
			} else if (strlen(status) < sizeof(status) - 1) {
				status[strlen(status)] = reply[i];
			}
			/* The server of our test sends its header in one piece. */
			if (!body && i >= 3 && !memcmp(reply + i - 3, "\r\n\r\n", 4))
				body = true;
		}
	}
	close(fd);
	status[strcspn(status, "\r\n")] = 0;
	printf("devices: http %s, %lu bytes, sum %lu\n", status, len, sum);
}

static void serve(const char *port)
{
	static const char reply[] = "hello from the guest\n";
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), client;

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 1) < 0)
		return;
	puts("devices: serving");
	client = accept(fd, NULL, NULL);
	if (client >= 0) {
		(void)!write(client, reply, sizeof(reply) - 1);
		close(client);
		puts("devices: served");
	}
	close(fd);
}

void use_net(void)
{
	char words[4096];
	const char *http, *port;

	read_text("/proc/cmdline", words, sizeof(words));
	http = word(words, "devices.http=");
	port = word(words, "devices.serve=");
	if (http)
		get_page(http);
	if (port)
		serve(port);
}

void count_packets(void)
{
	char packets[32], bytes[32];

	if (read_text("/sys/class/net/eth0/statistics/rx_packets", packets, sizeof(packets)) < 0 ||
	    read_text("/sys/class/net/eth0/statistics/rx_bytes", bytes, sizeof(bytes)) < 0)
		return;
	printf("devices: eth0 received %s packets, %s bytes\n", packets, bytes);
}
