/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What pace.bpf.c and linux/pace.rs both know. A test reads this file and compares it with packtrain-proto.
 */
#ifndef PACKTRAIN_PACE_H
#define PACKTRAIN_PACE_H

#include <linux/types.h>

/* packtrain-proto, pacing/spacing.rs: Phase. */
enum pace_phase {
	PACE_FREE = 0,			/* ordinary TCP, out of slow start */
	PACE_SPACING = 1,		/* slow start, spaced */
	PACE_CLUSTERS = 2,		/* slow start that is not spaced any more */
	PACE_PHASES = 3,
};

/* After slow start a window leaves in a round trip less this part of it; over round trips of so many times T and more. packtrain-proto,
 * pacing/spacing.rs. */
#define PACE_CATCH_UP_DIVISOR	64
#define PACE_EVEN_PRECISIONS	16

/* The window of a jump is open for what leaves in so many nanoseconds, and these segments. The same file. */
#define PACE_AHEAD_NS		5000000
#define PACE_AHEAD_SEGMENTS	4

/* The least window that slow start is ended at, segments. packtrain-proto, pacing/path.rs: WINDOW_MIN. */
#define PACE_WINDOW_MIN		10

/* Paths that are remembered: the one that was used longest ago is forgotten first. */
#define PACE_PATHS		4096

#define PACE_PORTS		16	/* ranges of ports */
#define PACE_PREFIXES		16	/* of destinations */

/* A congestion control's name (TCP_CA_NAME_MAX). */
#define PACE_NAME		16

/* Which connections are taken: those that one of each kind matches; none of a kind: all. */
struct pace_ports {
	__u16 first;
	__u16 last;
};

struct pace_prefix {
	__u32 address[4];		/* network order; IPv4 as ::ffff:0:0/96 */
	__u32 mask[4];
};

/* The one entry of the map `settings`. */
struct pace_settings {
	__u64 netns;			/* cookie of the network namespace whose connections are taken; 0: of any */
	__u64 precision_ns;		/* T */
	__u64 age_max_ns;		/* a path that was full longer ago is not known any more */
	__u32 remembers;		/* paths */
	__u32 hystart;			/* slow start ends when the round trip grows (RFC 9406) */
	__u32 hystart_min_us;		/* MIN_RTT_THRESH */
	__u32 hystart_max_us;		/* MAX_RTT_THRESH */
	__u32 remote_ports;		/* in use */
	__u32 local_ports;
	__u32 prefixes;
	__u32 cgroup_level;		/* of connections that are there already: how far below the root their cgroup is */
	__u32 overrides;		/* also what an application has chosen itself */
	__u32 spaces;			/* also connections that no rule is about */
	__u32 only_new;			/* of these none that is there already */
	__u32 reserved;
	__u64 cgroup;			/* and its number; 0: any */
	char name[PACE_NAME];		/* of our congestion control */
	struct pace_ports remote_port[PACE_PORTS];
	struct pace_ports local_port[PACE_PORTS];
	struct pace_prefix prefix[PACE_PREFIXES];
};

/* Rules are asked in their order; the first that holds says at which rate a stream leaves. */
#define PACE_RULES		16
#define PACE_ROWS		32	/* of a rule: values that a connection is compared with */

enum pace_row_what {
	PACE_ROW_PORT = 1,
	PACE_ROW_ADDRESS = 2,
	PACE_ROW_VERSION = 3,		/* of IP: 4 or 6, as `first` */
};

/* Rows of a condition follow each other, and one of them has to hold; if it is negated, none. All conditions have to hold. */
struct pace_row {
	__u8 what;
	__u8 is_local;			/* this host's end */
	__u8 is_negated;		/* the condition that ends here */
	__u8 ends;			/* the condition */
	__u16 first;			/* port; of an address IP's version */
	__u16 last;
	struct pace_prefix prefix;
};

struct pace_rule {
	__u32 id;			/* never 0, and never another one's again */
	__u32 rows;			/* in use; none: it holds for all */
	struct pace_row row[PACE_ROWS];
};

/* Who has a rule's rate together. */
enum pace_shared {
	PACE_EACH_STREAM = 0,
	PACE_EACH_DESTINATION = 1,
	PACE_ALL_STREAMS = 2,
};

/* What a rule gives, by its id. */
struct pace_rate {
	__u64 rate;			/* bytes of IP packets a second, as full segments carry them; 0: what the path carries */
	__u32 shared;
	__u32 reserved;
};

/* Where the rules are: they are written to one half of their map while the other one is in use. */
struct pace_rules {
	__u64 lease_until_ns;		/* who has set them is there until then: after that they give nothing */
	__u32 base;
	__u32 count;
};

/* Streams that share a rule's rate. */
struct pace_share_key {
	__u64 netns;
	__u32 address[4];		/* all bits zero where destinations do not matter */
	__u32 rule;
	__u32 reserved;
};

struct pace_share {
	__s32 sending;
	__u32 reserved;
};

/* packtrain-proto, pacing/rate.rs: a path's rate is tried a little more of, and then less, once in so many times. */
#define PACE_PROBE_EVERY	16
#define PACE_PROBE_DIVISOR	40
#define PACE_PROBE_SEGMENTS	4	/* at least, */
#define PACE_PROBE_DIVISOR_MIN	4	/* and at most */
#define PACE_RAISED_MAX		3	/* doublings of it */

/* packtrain-proto, pacing/memory.rs: shorter windows would measure how acknowledgements were bunched. */
#define PACE_WINDOW_NS_MIN	10000000
#define PACE_REPAIR_ROUND_TRIPS	4	/* after a loss others are its consequences */
#define PACE_RAISED_DIVISOR	80	/* a rate that has grown by less has not grown */

struct pace_path_key {
	__u64 netns;			/* cookie */
	__u32 address[4];		/* network order; IPv4 as ::ffff:0:0/96 */
};

/* A path as it is remembered, and what its streams do now. */
struct pace_path {
	__u64 rate;			/* bytes of segments without headers, a second: what it carried when it was full; 0: it was not */
	__u64 full_at_ns;		/* when it was last full, or carried about as much, or more */
	__u64 seen_at_ns;		/* an acknowledgement */
	__u64 window_began_ns;		/* what is delivered is measured in windows of a quarter of a round trip */
	__u64 window_bytes;
	__u64 window_rate;		/* of the last one that is complete */
	__u64 sustained_rate;		/* the least of the last three */
	__u64 connections;		/* ever */
	__u64 losses;			/* times that a window was cut in slow start */
	__u64 cycle_began_ns;		/* of trying more and less */
	__u32 rtt_min_us;
	__s32 sending;			/* streams that have something under way, or wait for their time */
	__u64 cut_at_ns;		/* the first of the cuts of one round trip; 0: none */
	__u64 cut_rate_min;		/* these leave so much */
	__u64 raised_at_ns;		/* when it was last counted that more is carried, */
	__u64 raised_rate;		/* how much that was, */
	__u32 raised;			/* and how often in a row it was counted */
	__u32 reserved;
	__u64 former_rate;		/* of the window before the last one */
	__u64 jumped_rate;		/* that streams have taken by jumps of which nothing has arrived yet */
	__u64 jumped_at_ns;		/* the last of them */
};

/* packtrain-proto, pacing/hystart.rs, in RFC 9406's words. */
#define PACE_N_RTT_SAMPLE	8
#define PACE_MIN_RTT_DIVISOR	8
#define PACE_CSS_GROWTH_DIVISOR	4
#define PACE_CSS_ROUNDS		5
#define PACE_FULL_ROUNDS	2

struct pace_hystart {
	__u32 last_round_min_us;
	__u32 current_round_min_us;
	__u32 css_baseline_min_us;
	__u32 rtt_sample_count;
	__u32 css_rounds;
	__u32 round_end;
};

/* packtrain-proto, pacing/jump.rs. */
#define PACE_RETREAT_MIN	2	/* segments */

enum pace_jump_state {
	PACE_JUMP_NONE = 0,
	PACE_JUMP_UNPROVEN = 1,
	PACE_JUMP_RETREAT = 2,
};

struct pace_jump {
	__u32 state;
	__u32 proven_at;
	__u32 delivered_before;
};

/* What becomes of a window that has grown as far as it is to. */
enum pace_fill {
	PACE_NOT_FILLED = 0,
	PACE_FILLING = 1,		/* for one more round what it lets go is spaced as in slow start */
	PACE_EVEN = 2,			/* what it lets go leaves evenly, out of slow start */
};

/* A connection's. What spacing needs is packtrain-proto, pacing/spacing.rs: Spacing. */
struct pace_stream {
	__u64 interval_ns;
	__u32 round_end;
	__u32 opens_to;			/* so far the window of a jump may be opened; 0: there is none */
	__u32 first_flight;
	__u8 phase;
	__u8 is_sending;		/* counted in its path's `sending` */
	__u8 was_paced;			/* by somebody else */
	__u8 knows_path;		/* slow start ends at what is remembered */
	__u8 fill;			/* enum pace_fill */
	__u8 restarts;			/* after a pause: the window is about to become a small one */
	__u8 was_ours;			/* it comes from a pacer that has ended without a word */
	__u8 jumps;			/* what follows the first flight may be more than twice as much */
	__u32 delivered;		/* segments, when that was last looked at */
	__u32 lost;
	__u32 spaced_rounds;		/* ever */
	__u32 lost_in[PACE_PHASES];	/* segments that were taken for lost in each phase */
	__u32 css_credit;		/* acknowledged, and not yet a part of the window */
	__u32 rule;			/* 0: none */
	struct pace_hystart hystart;
	struct pace_jump jump;
	char former[PACE_NAME];		/* the congestion control that it had */
};

/* What is told of a connection. */
struct pace_shown {
	__u64 pacing_rate;		/* bytes a second, as the kernel has it; all bits: none */
	__u64 interval_ns;		/* 0: it is not spaced */
	__u64 bytes_acked;
	__u64 bytes_retrans;
	__u64 delivery_rate;		/* bytes a second, lately; 0: not known */
	__u32 local[4];			/* addresses in network order; IPv4 as ::ffff:0:0/96 */
	__u32 remote[4];
	__u16 local_port;
	__u16 remote_port;
	__u32 srtt_us;
	__u32 rtt_min_us;
	__u32 cwnd;
	__u32 ssthresh;
	__u32 in_flight;
	__u32 mss;
	__u32 lost_in[PACE_PHASES];
	__u32 spaced_rounds;
	__u32 retransmitted;		/* segments */
	__u8 phase;
	__u8 knows_path;
	__u8 is_sending;
	__u8 state;			/* enum tcp_state */
	__u32 rule;			/* 0: none */
	__u64 ruled_rate;		/* bytes of segments a second that its rule gives it now; 0: no limit */
};

/* What events count, in the order of the map `counters`. */
enum pace_counter {
	PACE_TAKEN = 0,			/* connections that were taken when they were established */
	PACE_TAKEN_LATE = 1,		/* that were there before */
	PACE_REFUSED = 2,		/* the kernel would not have it */
	PACE_BEGUN = 3,			/* slow starts that began spaced */
	PACE_BEGUN_KNOWN = 4,		/* of those, on a path that was remembered */
	PACE_CUT_FREE = 5,		/* windows that were cut, by phase: in the order of enum pace_phase */
	PACE_CUT_SPACING = 6,
	PACE_CUT_CLUSTERS = 7,
	PACE_LOST_FREE = 8,		/* segments that were taken for lost, by phase */
	PACE_LOST_SPACING = 9,
	PACE_LOST_CLUSTERS = 10,
	PACE_ENDED_AT_PATH = 11,	/* slow starts that ended at a remembered window */
	PACE_ENDED_BY_DELAY = 12,	/* because the round trip had grown */
	PACE_JUMPED = 13,		/* slow starts that went on with a window that was remembered */
	PACE_RETREATED = 14,		/* of those, whose window was too large */
	PACE_LEFT = 15,			/* connections that had it, and have another congestion control now */
	PACE_COUNTERS = 16,
};

#endif
