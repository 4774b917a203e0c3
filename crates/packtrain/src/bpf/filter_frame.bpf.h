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
	__u32 network;		/* where the header after the tags begins */
	__be16 ether_type;	/* after the tags */
	__u8 tagged;
};

/* 0: not even an Ethernet header is whole. */
static __always_inline int read_frame(struct frame *frame, void *data, void *data_end, int tagged)
{
	struct ethernet_header *header = data;
	struct filter_tag *tag;

	if ((void *)(header + 1) > data_end)
		return 0;
	frame->data = data;
	frame->data_end = data_end;
	frame->destination = destination_of(header);
	frame->ether_type = header->ether_type;
	frame->network = sizeof(*header);
	frame->tagged = tagged;
	for (int i = 0; i < FILTER_TAGS_MAX; i++) {
		if (frame->ether_type != bpf_htons(ETHERTYPE_VLAN) &&
		    frame->ether_type != bpf_htons(ETHERTYPE_QINQ))
			break;
		tag = data + frame->network;
		if ((void *)(tag + 1) > data_end)
			return 0;
		frame->tagged = 1;
		frame->ether_type = tag->ether_type;
		frame->network += sizeof(*tag);
	}
	return 1;
}

#endif
