// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * For benchmarks: a flood of frames that no buffer of the kernel's stack was ever made for.
 *
 * flood_send   run by BPF_PROG_TEST_RUN with BPF_F_TEST_XDP_LIVE_FRAMES: makes of each frame the next one of a mix, and
 *              sends it out of an interface. Whose driver is at the other end gets it as a card's driver does.
 * flood_drop   the least that a program in a driver costs: drops, and looks at nothing.
 * flood_marked the least that a filter of this flood costs: who has made it says in a byte what is wanted.
 *
 * A page comes back with what was written into it before: each frame's header is written anew.
 */
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "flood.h"

/* Of as many stations the paper's sample was taken. */
#define STATIONS	125
/* Who is further behind than this was not run: what was due meanwhile would come as a burst that nobody has sent. */
#define BEHIND_MAX	256
#define CAUGHT_UP	64

#define SOURCE_LAST	11
#define DESTINATION_VARYING	4
#define IPV4		14
#define IPV4_CHECKSUM	(IPV4 + 10)
#define IPV4_SOURCE_LAST	(IPV4 + 15)
#define IPV4_DESTINATION_LAST	(IPV4 + 19)
#define UDP_SOURCE	(IPV4 + 20)
#define ARP_SENDER_LAST	(14 + 13)
#define ARP_SENDER_IPV4_LAST	(14 + 17)
#define ARP_TARGET_IPV4	(14 + 26)

struct flood flood SEC(".data.flood");

/* Written and read two bytes at a time, wherever they are. */
typedef __u16 __attribute__((may_alias)) u16_alias;
typedef __u64 __attribute__((may_alias)) u64_alias;

static __always_inline int is_due(struct flood *f)
{
	__u64 now = bpf_ktime_get_ns(), due;

	if (!f->from_ns)
		f->from_ns = now;
	due = (now - f->from_ns) * f->per_second / 1000000000ULL;
	if (f->due >= due)
		return 0;
	if (due - f->due > BEHIND_MAX) {
		f->skipped += due - CAUGHT_UP - f->due;
		f->due = due - CAUGHT_UP;
	}
	f->due++;
	return 1;
}

/* RFC 1071. */
static __always_inline void put_checksum(__u8 *frame)
{
	__u32 sum = 0;
	int at;

	*(u16_alias *)(frame + IPV4_CHECKSUM) = 0;
#pragma unroll
	for (at = IPV4; at < IPV4 + 20; at += 2)
		sum += *(u16_alias *)(frame + at);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	*(u16_alias *)(frame + IPV4_CHECKSUM) = ~sum;
}

static __always_inline void vary(__u8 *frame, __u32 varies, __u32 number)
{
	/* The upper bits of the product are those that are mixed. */
	__u32 mixed = number * 0x9e3779b1U;
	__u8 station = 1 + (mixed >> 16) % STATIONS;

	frame[SOURCE_LAST] = station;
	if (varies & FLOOD_VARIES_DESTINATION)
		*(u16_alias *)(frame + DESTINATION_VARYING) = mixed >> 8;
	if (varies & FLOOD_VARIES_IPV4) {
		frame[IPV4_SOURCE_LAST] = station;
		if (varies & FLOOD_VARIES_DESTINATION)
			frame[IPV4_DESTINATION_LAST] = mixed >> 8;
		/* Not the ports that need rights. */
		*(u16_alias *)(frame + UDP_SOURCE) = bpf_htons(0x8000 | mixed >> 17);
		put_checksum(frame);
	}
	if (varies & FLOOD_VARIES_ARP) {
		frame[ARP_SENDER_LAST] = station;
		frame[ARP_SENDER_IPV4_LAST] = station;
		frame[ARP_TARGET_IPV4] = 0x80 | (mixed >> 24 & 0x3f);
		frame[ARP_TARGET_IPV4 + 1] = mixed >> 16;
	}
}

SEC("xdp")
int flood_send(struct xdp_md *ctx)
{
	__u8 *frame = (void *)(long)ctx->data;
	struct flood *f = &flood;
	struct flood_template *template;
	__u64 number;
	int word;

	if (frame + FLOOD_HEADER_LEN > (__u8 *)(long)ctx->data_end)
		return XDP_ABORTED;
	if (f->per_second && !is_due(f))
		return XDP_DROP;
	number = f->sent++;
	template = &f->templates[f->order[number % f->slots & (FLOOD_SLOTS_MAX - 1)] &
				 (FLOOD_TEMPLATES_MAX - 1)];
#pragma unroll
	for (word = 0; word < FLOOD_HEADER_LEN / 8; word++)
		((u64_alias *)frame)[word] = ((u64_alias *)template->header)[word];
	vary(frame, template->varies, number);
	return bpf_redirect(f->ifindex, 0);
}

SEC("xdp.frags")
int flood_marked(struct xdp_md *ctx)
{
	__u8 *frame = (void *)(long)ctx->data;

	if (frame + FLOOD_MARK + 1 > (__u8 *)(long)ctx->data_end)
		return XDP_PASS;
	return frame[FLOOD_MARK] ? XDP_PASS : XDP_DROP;
}

SEC("xdp.frags")
int flood_drop(struct xdp_md *ctx)
{
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual MIT/GPL";
