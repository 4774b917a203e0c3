/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What direct.bpf.c and linux/direct.rs both know; a test compares the sizes. */
#ifndef PACKTRAIN_DIRECT_H
#define PACKTRAIN_DIRECT_H

/* Flows are told apart by so many slots; two that share one wait for each other. */
#define DIRECT_SLOTS		4096
#define DIRECT_DESTINATIONS	256	/* the map holds the old and the new ones at once */
#define DIRECT_LINKS		16
#define DIRECT_COUNTERS		256	/* a link's number is a byte */

/*
 * The first bytes of the source address of a frame of pt0's own that goes to the engine with a mark,
 * which stands in the other four. No station has such an address: it is a group's.
 */
#define DIRECT_MARKED_0		0x03
#define DIRECT_MARKED_1		0x70

/* The one entry of the map `orders`, which only the daemon writes. */
struct direct_orders {
	__u64 host_address;	/* pt0's address, first byte in bits 47..40 */
	__u64 drained;		/* what had a ticket up to this was delivered by the peers */
	__u32 opening;		/* the path was opened so many times */
	__u32 qdisc;		/* handle of the qdisc that is ours before pt0; 0: none is */
	__u32 classes_first;	/* in the map `comparisons` */
	__u32 classes_count;	/* 0: no class says anything of paths */
	__u32 tells_marks;	/* the engine is told what mark a frame has */
	__u32 urgent_count;	/* as classes_count: 0: what is urgent need not go past our qdisc's queues */
};

/* The one entry of the map `state`, which only the programs write. */
struct direct_state {
	__u64 tickets;		/* frames that went to the engine, ever */
	__u32 closed;		/* the opening that has been closed: all go to the engine */
	__u32 closed_by;	/* the link whose queue stands, or by which small frames are many */
	__u32 foreign_tc;	/* not 0: there is a qdisc before pt0, or a filter, that is not ours */
	__u32 unused;
	__u64 small_since;	/* ns: small direct frames are counted since then */
	__u64 small_frames;
};

/* Map `destinations`, by the address of a peer's pt0. */
struct direct_destination {
	__u8 outer_destination[6];
	__u8 outer_source[6];
	__u32 ifindex;		/* the member link */
	__u32 payload_max;	/* bytes after the EtherType that all on the way take */
	__u32 counter;		/* the link's number, and so its entry in the map `leaving` */
	__u32 only_classes;	/* closed to all frames but those of a class that says direct */
	__u32 segments;		/* sent there, a GSO frame as what it becomes; written by the program */
};

/* Map `watches`, by the index of the member link. */
struct direct_watch {
	__u64 source;		/* of direct frames on this link */
	__u64 standing_since;	/* ns; 0: the link's queue was empty when last seen */
	__u64 standing_bytes;	/* direct frames since then */
	__u64 seen_at;		/* ns: when it was last seen to hold something */
};

/* Map `leaving`, by the link's number, of each processor. */
struct direct_traffic {
	__u64 frames;
	__u64 bytes;
};

#endif
