/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What filter.bpf.c and linux/filter.rs both know. A test reads this file and compares the order of the reasons
 * with those of packtrain-proto.
 */
#ifndef PACKTRAIN_FILTER_H
#define PACKTRAIN_FILTER_H

/* Why a frame passes or not: the index of its counter. Those from FILTER_FOREIGN_UNICAST on are dropped. */
enum filter_reason {
	FILTER_OURS = 0,		/* to an address of the interface */
	FILTER_BROADCAST = 1,		/* no ARP */
	FILTER_ARP_OURS = 2,		/* ARP that concerns an address of ours */
	FILTER_ARP_NEIGHBOUR = 3,	/* ARP from a neighbour that we know */
	FILTER_GROUP = 4,		/* to a group that was joined */
	FILTER_LINK_CONTROL = 5,	/* to a group that every station listens to: LLDP, STP, EAPOL, PTP … */
	FILTER_TRAIN = 6,		/* packtrain's own, to a group */
	FILTER_SHORT = 7,		/* too short to tell */
	FILTER_PROMISCUOUS = 8,		/* the interface is promiscuous, or takes all groups */
	FILTER_HANDLER = 9,		/* it belongs to a bridge, a macvlan, a bond … */
	FILTER_VLAN = 10,		/* VLAN interfaces stand on it */
	FILTER_CAPTURE = 11,		/* a packet socket takes every type */
	FILTER_LISTENER = 12,		/* a packet socket takes this type */
	FILTER_INGRESS = 13,		/* programs or rules at the interface's way in see it */
	FILTER_ARP_SETTING = 14,	/* arp_accept, proxy_arp, proxied neighbours */
	FILTER_CHANGING = 15,		/* the host's addresses have just changed */
	FILTER_REDIRECTED = 16,		/* to a closed port, which something may redirect */
	FILTER_UNSEEN = 17,		/* the kernel has more of something than is looked through, or keeps it otherwise */
	FILTER_UNREFRESHED = 18,	/* nobody has refreshed the filter */
	FILTER_NO_POLICY = 19,		/* only rules decide, and none did */
	FILTER_ALLOWED = 20,		/* by a rule */
	FILTER_LOOPED = 21,		/* what this host has sent itself, on its way back to its own sockets */
	FILTER_FOREIGN_UNICAST = 22,	/* to somebody else */
	FILTER_FOREIGN_ARP = 23,	/* ARP that concerns others */
	FILTER_FOREIGN_GROUP = 24,	/* to a group that nobody here has joined */
	FILTER_FOREIGN_SOLICITATION = 25, /* IPv6's ARP, that asks for others */
	FILTER_CLOSED_TCP = 26,		/* to a TCP port that no socket has */
	FILTER_CLOSED_UDP = 27,
	FILTER_DENIED = 28,		/* by a rule */
	FILTER_LIMITED = 29,		/* more than a rule allows */
	FILTER_REASONS = 30,
};

enum filter_policy {
	FILTER_POLICY_NONE = 0,
	FILTER_POLICY_NIMA = 1,		/* the paper's algorithm, to the letter */
	FILTER_POLICY_HOST = 2,		/* the same, and whatever else this host may want */
};

/* What is said here, counted and sampled: to be changed with it, for a program may stay longer than its process. */
#define FILTER_VERSION		1

/* What `stay` may be. */
#define FILTER_STAYS		1
#define FILTER_STAYS_CONFIRMED	2	/* once it is confirmed */

/* So many words of 64 bits: most addresses that are asked for are not this host's, which a look at a bit tells. */
#define FILTER_LOCAL_WORDS	16

/* The one entry of the map `settings`. */
struct filter_settings {
	__u64 lease_until_ns;	/* CLOCK_MONOTONIC_COARSE: later, everything passes; 0: for ever */
	__u32 policy;
	__u32 ports;		/* not 0: what is sent to closed ports is dropped */
	__u32 dry_run;		/* not 0: counts, and drops nothing */
	__u32 line_ifindex;	/* the pt0 that this is a member link of; 0: none */
	__u32 fib_seq;		/* the state of IPv4's routes that `local_addresses` tells of */
	__u32 local_prefixes;	/* a bit for each 32nd part of all addresses: some of it are there as a prefix of several */
	__u32 has_rules;	/* not 0: they are asked first */
	__u32 rules_image;	/* which one, of all there were */
	__u32 stay;		/* FILTER_STAYS: rules decide also when nobody has refreshed the filter */
	__u32 generic;		/* not 0: it stands before the stack, in generic mode */
	__u32 process;		/* who has attached it */
	__u32 version;		/* FILTER_VERSION */
	__u64 local_bits[FILTER_LOCAL_WORDS];	/* the bit of each address in `local_addresses` */
};

/* Which bit: the product's uppermost ones. */
#define FILTER_LOCAL_FACTOR	0x9e3779b1U
#define FILTER_LOCAL_SHIFT	22
/* Which one of `local_prefixes`: the address's own uppermost ones. */
#define FILTER_PREFIX_SHIFT	27

/* Map `local_addresses`: IPv4 prefixes that this host has. */
struct filter_prefix {
	__u32 length;
	__be32 address;
};

/* Map `counters`, by reason. */
struct filter_count {
	__u64 frames;
	__u64 bytes;
};

/* What filter_look tells, in the map `looked`. */
struct filter_looked {
	__u32 fib_seq;
	__u32 has_fib_seq;
	__u32 ifindex;		/* of the interface, written by who asks */
	__u32 has_interface;
	__u32 filters_unicast;	/* not 0: it takes several addresses without taking all */
};

/* As much of a dropped frame as can be had. */
#define FILTER_SAMPLE_MAX	2048
/* Bytes of the ring of samples. */
#define FILTER_SAMPLES_LEN	(1 << 20)

/* The one entry of the map `sampling`: of which frames somebody wants to have samples, written by whoever wants them. */
struct filter_sampling {
	__u64 until_ns;		/* CLOCK_MONOTONIC: nobody wants any later */
	__u64 reasons;		/* a bit each */
	__u64 interval_ns;	/* between two samples, on the average */
	__u64 burst_ns;		/* how far ahead of that they may be */
	__u32 len;		/* bytes of each frame, up to FILTER_SAMPLE_MAX */
	__u32 holder;		/* whose process it is */
};

/* The one entry of the map `sampled`: what has become of these frames. Set to 0 by whoever begins. */
struct filter_sampled {
	__u64 next_ns;		/* when the next sample is due */
	__u64 seen;		/* frames that were dropped for these reasons */
	__u64 taken;		/* of those, samples */
	__u64 full;		/* of those that were due, what found no room */
};

/* An entry of the map `samples`, with the frame's first bytes behind it. */
struct filter_sample {
	__u64 time_ns;		/* CLOCK_MONOTONIC */
	__u32 len;		/* of the frame */
	__u32 captured;		/* bytes that follow */
	__u32 reason;
	__u32 rule;		/* its number, where a rule has decided */
	__u32 image;		/* of the rules, that the number is of */
	__u32 unused;
};

#endif
