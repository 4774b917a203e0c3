// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * For benchmarks: the least that a second interface over a link costs, whatever it does. A byte of each address says
 * whose frame it is; no map, no count, no order.
 *
 * floor_leave     tc egress of a TAP: to the link.
 * floor_arrive    tc ingress of the link: to the TAP.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

/* Of the first byte of an address: the TAPs' own are without. Others of the link may have it; there is nobody else there. */
#define ON_THE_LINK	0x04

struct {
	__u32 tap;
	__u32 link;
} ends SEC(".data.ends");

struct header_bytes {
	__u8 destination[6];
	__u8 source[6];
};

SEC("tc")
int floor_leave(struct __sk_buff *skb)
{
	struct header_bytes *header = (void *)(long)skb->data;

	if ((void *)(header + 1) > (void *)(long)skb->data_end)
		return TC_ACT_UNSPEC;
	header->destination[0] ^= ON_THE_LINK;
	header->source[0] ^= ON_THE_LINK;
	return bpf_redirect(ends.link, 0);
}

SEC("tc")
int floor_arrive(struct __sk_buff *skb)
{
	struct header_bytes *header = (void *)(long)skb->data;

	if ((void *)(header + 1) > (void *)(long)skb->data_end ||
	    !(header->source[0] & ON_THE_LINK))
		return TC_ACT_UNSPEC;
	header->destination[0] ^= ON_THE_LINK;
	header->source[0] ^= ON_THE_LINK;
	return bpf_redirect(ends.tap, BPF_F_INGRESS);
}

char _license[] SEC("license") = "Dual MIT/GPL";
