/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/serial.h"

#include "vmm/layout.h"

#include <errno.h>
#include <string.h>

/* Register offsets and bits, PC16550D table II. */
enum { REG_DATA, REG_IER, REG_IIR_FCR, REG_LCR, REG_MCR, REG_LSR, REG_MSR, REG_SCR };
#define IER_RDI 0x01
#define IER_THRI 0x02
#define IIR_NONE 0x01
#define IIR_THRE 0x02
#define IIR_RDA 0x04
#define IIR_FIFO 0xc0
#define FCR_ENABLE 0x01
#define FCR_CLEAR_RX 0x02
#define LCR_DLAB 0x80
#define MCR_OUT2 0x08
#define MCR_LOOP 0x10
#define LSR_DR 0x01
#define LSR_THRE_TEMT 0x60
#define MSR_DCD_DSR_CTS 0xb0

static unsigned int cause(const struct serial *s)
{
	if ((s->ier & IER_RDI) && s->rx_n)
		return IIR_RDA;
	if ((s->ier & IER_THRI) && s->thre_pending)
		return IIR_THRE;
	return IIR_NONE;
}

static void update_irq(struct serial *s)
{
	/* OUT2 gates the interrupt line on a PC. */
	int level = cause(s) != IIR_NONE && (s->mcr & MCR_OUT2);

	/* Only a change needs an ioctl: most bytes change nothing. */
	if (level != s->level) {
		s->level = level;
		s->irq.set(s->irq.ctx, IRQ_SERIAL, level);
	}
}

static void rx_push(struct serial *s, uint8_t byte)
{
	if (s->rx_n == SERIAL_FIFO)
		return;
	s->rx[(s->rx_head + s->rx_n++) % SERIAL_FIFO] = byte;
}

static void serial_write(struct serial *s, uint16_t reg, uint8_t v)
{
	switch (reg) {
	case REG_DATA:
		if (s->lcr & LCR_DLAB) {
			s->dll = v;
		} else if (s->mcr & MCR_LOOP) {
			rx_push(s, v);
		} else {
			s->bytes_out++;
			s->out(s->ctx, v);
			s->thre_pending = true;
			/*
			 * A real UART drops its line while the byte is on the wire. The
			 * edge-triggered controller needs that fall to see the next rise.
			 */
			if (s->level && (s->ier & IER_THRI)) {
				s->level = 0;
				s->irq.set(s->irq.ctx, IRQ_SERIAL, 0);
			}
		}
		break;
	case REG_IER:
		if (s->lcr & LCR_DLAB) {
			s->dlm = v;
		} else {
			/* Enabling THRI while the holding register is empty raises it. */
			if ((v & IER_THRI) && !(s->ier & IER_THRI))
				s->thre_pending = true;
			s->ier = v & 0x0f;
		}
		break;
	case REG_IIR_FCR:
		s->fcr = v;
		if (v & FCR_CLEAR_RX)
			s->rx_n = 0;
		break;
	case REG_LCR:
		s->lcr = v;
		break;
	case REG_MCR:
		s->mcr = v & 0x1f;
		break;
	case REG_SCR:
		s->scr = v;
		break;
	}
}

static uint8_t serial_read(struct serial *s, uint16_t reg)
{
	uint8_t v = 0;

	switch (reg) {
	case REG_DATA:
		if (s->lcr & LCR_DLAB)
			return s->dll;
		if (s->rx_n) {
			v = s->rx[s->rx_head];
			s->rx_head = (s->rx_head + 1) % SERIAL_FIFO;
			s->rx_n--;
		}
		return v;
	case REG_IER:
		return s->lcr & LCR_DLAB ? s->dlm : s->ier;
	case REG_IIR_FCR:
		v = (uint8_t)cause(s);
		if (v == IIR_THRE)
			s->thre_pending = false;
		return v | (s->fcr & FCR_ENABLE ? IIR_FIFO : 0);
	case REG_LCR:
		return s->lcr;
	case REG_MCR:
		return s->mcr;
	case REG_LSR:
		return LSR_THRE_TEMT | (s->rx_n ? LSR_DR : 0);
	case REG_MSR:
		/* In loop mode the modem lines mirror MCR: RTS->CTS, DTR->DSR, OUT1->RI, OUT2->DCD. */
		if (s->mcr & MCR_LOOP)
			return (uint8_t)((s->mcr & 0x02) << 3 | (s->mcr & 0x01) << 5 |
					 (s->mcr & 0x0c) << 4);
		return MSR_DCD_DSR_CTS;
	case REG_SCR:
		return s->scr;
	}
	return 0xff;
}

static void serial_io(void *dev, uint16_t off, bool write, unsigned int len, uint32_t *val)
{
	struct serial *s = dev;

	(void)len;
	pthread_mutex_lock(&s->lock);
	if (write)
		serial_write(s, off, (uint8_t)*val);
	else
		*val = serial_read(s, off);
	update_irq(s);
	pthread_mutex_unlock(&s->lock);
}

int serial_init(struct serial *s, struct bus *bus, struct dev_irq irq,
		void (*out)(void *ctx, uint8_t byte), void *ctx)
{
	memset(s, 0, sizeof(*s));
	pthread_mutex_init(&s->lock, NULL);
	s->irq = irq;
	s->out = out;
	s->ctx = ctx;
	s->dll = 1; /* 115200 baud */
	return bus_add(bus, PORT_SERIAL, 8, "serial", serial_io, s);
}

void serial_deinit(struct serial *s)
{
	pthread_mutex_destroy(&s->lock);
}

size_t serial_input(struct serial *s, const uint8_t *data, size_t len)
{
	size_t n = 0;

	pthread_mutex_lock(&s->lock);
	while (n < len && s->rx_n < SERIAL_FIFO)
		rx_push(s, data[n++]);
	update_irq(s);
	pthread_mutex_unlock(&s->lock);
	return n;
}

int serial_save(void *serial, struct buf *out, struct err *e)
{
	struct serial *s = serial;
	const uint8_t regs[] = { s->ier, s->lcr, s->mcr, s->scr, s->fcr, s->dll, s->dlm };

	(void)e;
	pthread_mutex_lock(&s->lock);
	buf_add(out, regs, sizeof(regs));
	buf_u8(out, s->thre_pending);
	buf_u8(out, s->level != 0);
	buf_u8(out, (uint8_t)s->rx_n);
	for (unsigned int i = 0; i < s->rx_n; i++)
		buf_u8(out, s->rx[(s->rx_head + i) % SERIAL_FIFO]);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

int serial_restore(void *serial, struct cursor *in, struct err *e)
{
	struct serial *s = serial;
	const uint8_t *r = cursor_bytes(in, 7);
	bool thre = cursor_u8(in), level = cursor_u8(in);
	unsigned int n = cursor_u8(in);
	const uint8_t *rx = cursor_bytes(in, n);

	if (in->bad || cursor_left(in) || n > SERIAL_FIFO)
		return err_set(e, EINVAL, "the state of the serial line is damaged");
	pthread_mutex_lock(&s->lock);
	s->ier = r[0] & 0x0f;
	s->lcr = r[1];
	s->mcr = r[2] & 0x1f;
	s->scr = r[3];
	s->fcr = r[4];
	s->dll = r[5];
	s->dlm = r[6];
	s->thre_pending = thre;
	s->level = level;
	s->rx_head = 0;
	s->rx_n = n;
	memcpy(s->rx, rx, n);
	pthread_mutex_unlock(&s->lock);
	return 0;
}
