/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What guard.bpf.c and linux/guard.rs both know. A test reads this file and compares the order of
 * the verdicts with the Rust enum.
 */
#ifndef PACKTRAIN_GUARD_H
#define PACKTRAIN_GUARD_H

/* Why a frame was, or was not, ours: the index of its counter in both counter maps, but of
 * direct ones, which have a counter of their own. */
enum guard_verdict {
	GUARD_OTHER = 0,	/* nothing of ours: for the link's own stack alone */
	GUARD_TRAIN = 1,	/* EtherType 0x88B5 */
	GUARD_MARKED = 2,	/* from a peer's mark */
	GUARD_HOST = 3,		/* to pt0's address */
	GUARD_HELLO_GROUP = 4,	/* to the hello group */
	GUARD_FOREIGN_ARP = 5,	/* who-has for an address that is not the link's own */
	GUARD_GROUP = 6,	/* broadcast or multicast: for the link's stack and for us */
	GUARD_PROMISCUOUS = 7,	/* anything, because pt0 stands in a bridge */
	GUARD_DIRECT = 8,	/* from a peer's direct mark: given to pt0 here and now */
	GUARD_LOST = 9,		/* ours, but there was no memory or no room for it on the way to us */
	GUARD_VERDICTS = 10,
};

/* The one entry of the map `settings`. */
struct guard_settings {
	__u64 host_address;	/* pt0's address, first byte in bits 47..40; 0: none yet */
	__u32 promiscuous;	/* not 0: our socket takes every frame */
	__u32 withheld_action;	/* what the ingress program returns to keep a frame from the stack */
	__u64 link_address;	/* the link's own */
	__u32 host_ifindex;	/* pt0 */
	__u32 link;		/* its number */
	__u32 takes_unmarked;	/* not 0: there is something in the map `unmarked` */
	__u32 direct_vlan;	/* of direct frames with a tag, and of what is said of them; 0: there are none */
	__u32 sources_change;	/* how often the map `sources` has changed, in its low 15 bits */
	__u32 given;		/* not 0: our socket stands behind tc; the control word of the tag of wrapped frames */
	__u32 interrupted;	/* not 0: programs of one processor may interrupt each other, so nothing is remembered */
	__u32 tap;		/* not 0: our socket stands before tc, and what it takes goes to no other */
};

/* At most so many links of peers have direct frames without a mark. */
#define GUARD_UNMARKED		256

/*
 * Map `sources`, by the outer source address of frames of our peers; and map `unmarked`, by the addresses of
 * their links.
 */
struct guard_source {
	__u64 pt0;		/* of direct frames: the pt0 that they come from; 0: marked ones */
};

/* In `pt0`, above the address: the source is no mark, and its frames have no tag either; or they have one. */
#define GUARD_SOURCE_UNMARKED	(1ULL << 63)
#define GUARD_SOURCE_TAGGED	(1ULL << 62)

/* The one entry of the map `direct_traffic`, of each processor. */
struct guard_traffic {
	__u64 frames;
	__u64 bytes;
};

#endif
