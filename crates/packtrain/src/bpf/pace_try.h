/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What pace_try.bpf.c and the tests of linux/pace.rs both know. */
#ifndef PACKTRAIN_PACE_TRY_H
#define PACKTRAIN_PACE_TRY_H

#include "pace.h"

enum pace_try_what {
	PACE_TRY_BEGIN = 0,
	PACE_TRY_ACKNOWLEDGED = 1,
	PACE_TRY_END = 2,
	PACE_TRY_SHARE = 3,		/* of the rate in precision_ns: cwnd streams, headers of rtt_us; the answer in interval_ns */
	PACE_TRY_PROBING = 4,		/* the rate in precision_ns, path_interval_ns after the cycle began, in units of interval_ns; mss, cwnd times raised */
	PACE_TRY_DELIVERED = 5,		/* to the path in the map: cwnd bytes, a round trip of rtt_us, at precision_ns; `fill`: of one that is paced */
	PACE_TRY_FULL = 6,		/* that path, at precision_ns; `fill`: what is remembered was too much */
	PACE_TRY_PATH = 7,		/* what rtt_us is told of it at precision_ns, aged path_interval_ns: in interval_ns */
	PACE_TRY_JUMP = 8,		/* whether, and to which window: of the rate in interval_ns, rtt_us streams, path_interval_ns taken */
	PACE_TRY_JUMPED = 9,		/* the window is to be what `may` says */
};

/* A connection as it is, and after one step of it. */
struct pace_trial {
	__u64 precision_ns;
	__u64 path_interval_ns;
	__u64 interval_ns;
	struct pace_seen seen;
	__u32 round_end;
	__u32 first_flight;
	__u32 phase;
	__u32 what;
	__u32 rtt_us;
	__u32 hystart_min_us;
	__u32 hystart_max_us;
	__u32 verdict;
	struct pace_hystart hystart;
	__u32 fill;
	struct pace_jump jump;
	__u32 jumps;
	__u32 may;			/* BEGIN: jump; ACKNOWLEDGED: a loss is being repaired */
	__u32 delivered;
	__u32 window;			/* the answer: to jump or retreat to; 0: none */
	__u32 opens_to;
	__u32 opened;			/* the answer: the window before a segment is sent; 0: as it is */
	__u32 reserved[2];
};

#endif
