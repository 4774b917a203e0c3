/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What flood.bpf.c and linux/flood.rs both know. */
#ifndef PACKTRAIN_FLOOD_H
#define PACKTRAIN_FLOOD_H

/* As much of a frame as is written for each: Ethernet, IPv4 and UDP, or ARP. */
#define FLOOD_HEADER_LEN	48
/* Powers of two. */
#define FLOOD_TEMPLATES_MAX	16
#define FLOOD_SLOTS_MAX		128

/* What of a template is another in each frame. The sender always is. */
#define FLOOD_VARIES_DESTINATION	1	/* the last two bytes of the address that it is sent to */
#define FLOOD_VARIES_IPV4	2	/* the sender's address and UDP port; with the former, the receiver's address */
#define FLOOD_VARIES_ARP	4	/* who asks, and for whom */

/* A byte of the sender's address that never varies. Not 0: the host wants it. */
#define FLOOD_MARK	9

struct flood_template {
	__u8 header[FLOOD_HEADER_LEN];
	__u32 varies;
	__u32 padding;
};

/* The one entry of the map `flood`. */
struct flood {
	__u64 per_second;	/* 0: as many as there can be */
	__u64 from_ns;		/* when the first was due; 0: it has not been */
	__u64 due;		/* so many were due until now, as far as they were sent or skipped */
	__u64 sent;
	__u64 skipped;		/* were due while the program was not run */
	__u32 ifindex;		/* by which they leave */
	__u32 slots;		/* of `order`; at least 1 */
	__u8 order[FLOOD_SLOTS_MAX];	/* the template of each frame, again and again */
	struct flood_template templates[FLOOD_TEMPLATES_MAX];
};

#endif
