/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What a receive filter reads of a frame. Reads as packtrain-proto's filter/frame.rs does, to the byte. */
#ifndef PACKTRAIN_FILTER_FRAME_BPF_H
#define PACKTRAIN_FILTER_FRAME_BPF_H

#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>

#include "ethernet.h"

#define FILTER_TAGS_MAX		2
#define FILTER_FRAGMENT		0x3fff	/* more fragments, and the offset */

/* What stands behind a type that says so. */
struct filter_tag {
	__be16 control;
	__be16 ether_type;
};

struct frame {
	void *data;
	void *data_end;
	__u64 destination;
	__u32 len;		/* with what stands behind `data_end`; for rules */
	__u32 network;		/* where the header after the tags begins */
	__be16 ether_type;	/* after the tags */
	__u8 is_whole;		/* up to there */
	__u8 tags;
	__u16 ids[FILTER_TAGS_MAX];
};

/* The verifier may not see that no more than two tags precede the header after them. */
#define NETWORK_MASK	31

#define NO_TAG	(-1)

static __always_inline int is_tag(__be16 ether_type)
{
	return ether_type == bpf_htons(ETHERTYPE_VLAN) || ether_type == bpf_htons(ETHERTYPE_QINQ);
}

/* 0: it ends within its Ethernet header or a tag. `taken_out`: the id of a tag that is not among its bytes. */
static __always_inline int read_frame(struct frame *frame, void *data, void *data_end, int taken_out)
{
	struct ethernet_header *header = data;
	struct filter_tag *tag;

	frame->data = data;
	frame->data_end = data_end;
	frame->destination = 0;
	frame->network = 0;
	frame->ether_type = 0;
	frame->is_whole = 0;
	frame->tags = 0;
	frame->ids[0] = frame->ids[1] = 0;
	if ((void *)(header + 1) > data_end)
		return 0;
	frame->destination = destination_of(header);
	frame->ether_type = header->ether_type;
	frame->network = sizeof(*header);
	if (taken_out != NO_TAG) {
		frame->ids[0] = taken_out;
		frame->tags = 1;
	}
	for (int i = 0; i < FILTER_TAGS_MAX; i++) {
		if (frame->tags >= FILTER_TAGS_MAX || !is_tag(frame->ether_type))
			break;
		tag = data + frame->network;
		if ((void *)(tag + 1) > data_end)
			return 0;
		frame->ids[frame->tags % FILTER_TAGS_MAX] = bpf_ntohs(tag->control) & VLAN_ID_MASK;
		frame->tags++;
		frame->ether_type = tag->ether_type;
		frame->network += sizeof(*tag);
	}
	frame->is_whole = 1;
	return 1;
}

#endif
