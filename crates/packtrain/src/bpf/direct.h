/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What direct.bpf.c and linux/direct.rs both know; a test compares the sizes. */
#ifndef PACKTRAIN_DIRECT_H
#define PACKTRAIN_DIRECT_H

#include "ethernet.h"

/* Flows are told apart by so many slots; two that share one wait for each other. */
#define DIRECT_SLOTS		4096
/*
 * Sources of direct frames that are counted, by their links: so many in places of their own, and so many others, of which
 * the longest silent make room.
 */
#define DIRECT_ARRIVED		1024
/* The place of a source among them that it is looked for first, without a search: the uppermost ten bits. */
#define DIRECT_ARRIVED_FACTOR	0x9e3779b97f4a7c15ULL
#define DIRECT_ARRIVED_SHIFT	54
/* A destination keeps its place among them for as long as it may be one. */
#define DIRECT_SENDING		1024
#define DIRECT_DESTINATIONS	256	/* the map holds the old and the new ones at once */
#define DIRECT_WAYS		4	/* to one destination, a power of two */
#define DIRECT_LAST		16	/* so many of them a processor remembers; a power of two */
#define DIRECT_NUMBERS		256	/* a link's number is a byte */
#define DIRECT_FLOWS		4096	/* flows that arrive are told apart by so many places; a power of two */

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
	__u32 leaves_small;	/* not 0: many small frames close nothing */
	__u32 destinations_change;	/* how often the map `destinations` has changed; never 0 */
	__u32 watches_flows;	/* not 0: whether flows arrive in order is looked at, for some may be striped */
	__u32 shaper;		/* not 0: by this interface, whose queue is ours, frames go to … */
	__u32 shaped;		/* … this link */
	__u32 shapes_from;	/* a link of so many bytes a millisecond may have one; 0: none may */
};

/* The one entry of the map `state`, which only the programs write. */
struct direct_state {
	__u64 tickets;		/* frames that went to the engine, ever */
	__u32 foreign_tc;	/* not 0: there is a qdisc before pt0, or a filter, that is not ours */
	__u32 left;		/* how often a flow went back to the engine; wraps */
	__u64 small_since;	/* ns: small direct frames are counted since then */
	__u64 small_frames;
	__u32 small_per_second;	/* … in the last window of 20 ms or more that is over */
	__u32 small_windows;	/* how many are over; wraps */
	__u64 striped;		/* frames of which each took the link by which it was there first */
};

/* Map `slots`, by a flow's hash. */
struct direct_slot {
	__u64 ticket;		/* of the last frame that went to the engine */
	__u16 way;		/* one has gone directly since, by the link of this number - 1 */
	__u16 stripe;		/* … and one of those that are spread, the last by this one */
	__u32 stayed;		/* large ones of these in a row that found it idle, and went there */
};

/* One of the ways to a peer: a member link. */
struct direct_way {
	struct addresses outer;
	__u32 ifindex;		/* the member link */
	__u32 payload_max;	/* bytes after the EtherType that all on the way take */
	__u32 link;		/* its number */
	__u32 least;		/* CLASS_PATH_…: closed to frames of classes before this one */
	__u32 sending;		/* its entry in the map `sending` */
	__u16 flags;		/* DIRECT_WAY_… */
	__u16 vlan;		/* not 0: in this VLAN, from the link's own address */
};

/* The outer source is the link's own, and only what may_be_unmarked goes. */
#define DIRECT_WAY_UNMARKED	1
/* The link has a queue, which direct_watch looks at. */
#define DIRECT_WAY_WATCHED	2
/* It takes frames of striped flows. */
#define DIRECT_WAY_STRIPED	4

/* Map `destinations`, by the address of a peer's pt0. */
struct direct_destination {
	struct direct_way ways[DIRECT_WAYS];
	__u32 ways_count;
	__u32 stripes;		/* so many of them take frames of striped flows; 0, or at least two */
};

/* Map `last_destinations`, of each processor, by the lowest bits of the address. */
struct direct_last {
	__u64 address;
	__u32 change;		/* `destinations_change` when it was looked up; 0: none is known */
	struct direct_destination destination;
};

/* Map `watches`, by the link's number. */
struct direct_watch {
	__u64 standing_since;	/* ns; 0: the link's queue was empty when last seen */
	__u64 seen_at;		/* ns: when it was last seen to hold something */
	__u64 rate_at;		/* ns: when its rate was measured last */
	__u64 measured_ns;	/* so long it stood since then */
	__u64 left;		/* bytes that left it in that time */
	__u64 drained;		/* … ever, when it was last seen to hold something */
	__u64 fast_at;		/* ns: when it was last measured to be faster than the engine */
	__u32 rate;		/* bytes a millisecond that left while it stood last; 0: not known */
	__u32 queue;		/* of those of the link, the one that is looked at next, or stands */
	__u64 asked_at;		/* ns: when a queue of ours before the link was asked for last; 0: never */
	__u64 stood_ns;		/* so long something was seen to stand there, ever */
	__u64 stood_left;	/* … and bytes that left it in that time */
};

/* Map `flows`, by what a TCP flow's addresses and ports come to: where one is that arrives. */
struct direct_flow {
	__u32 check;		/* which one it is; 0: none was seen */
	__u32 next;		/* the byte after the last one that has come */
	__u32 then;		/* what that was at … */
	__u32 before;		/* … and what it was LATE_NS before, or earlier */
	__u64 then_at;		/* ns */
};

/*
 * Map `closed`, by the link's number: the opening in which its queue stood, or small frames were many by it.
 * Nothing goes there directly but what must.
 */

/* Map `arrived_first`, of each processor, by the uppermost bits of DIRECT_ARRIVED_FACTOR × the key of the map `arrived`. */
struct direct_arrived {
	__u64 key;		/* who was first to have this entry, and keeps it; 0: nobody yet */
	__u32 segments;		/* wraps */
	__u32 late;		/* … of which so many came long behind later ones of their flow; wraps */
};

/* Map `shaping`, of each processor: what went into the queue that is ours before a link, and out of it. */
struct direct_shaping {
	__u64 entered;		/* a GSO frame as what it becomes */
	__u64 left;
};

/* Map `sending`, of each processor, by `direct_way.sending`: what was sent there. */
struct direct_traffic {
	__u64 frames;
	__u64 bytes;
	__u64 segments;		/* a GSO frame as what it becomes; its lower half is what the peer is told */
};

#endif
