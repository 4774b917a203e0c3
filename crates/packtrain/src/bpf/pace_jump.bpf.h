/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The jump start of a path that is remembered: packtrain-proto, pacing/jump.rs and path.rs, once more. A test compares the two.
 */
#ifndef PACKTRAIN_PACE_JUMP_BPF_H
#define PACKTRAIN_PACE_JUMP_BPF_H

#include "pace.h"

static __always_inline void jump_made(struct pace_jump *jump, __u32 una, __u32 window, __u32 mss, __u32 delivered)
{
	jump->state = PACE_JUMP_UNPROVEN;
	jump->proven_at = una + window * mss;
	jump->delivered_before = delivered;
}

static __always_inline __u32 jump_retreat(const struct pace_jump *jump, __u32 delivered)
{
	__u32 half = (delivered - jump->delivered_before) / 2;

	if (jump->state != PACE_JUMP_RETREAT)
		return 0;
	return half > PACE_RETREAT_MIN ? half : PACE_RETREAT_MIN;
}

/* The window that is left; 0: the loss is another one's. */
static __always_inline __u32 jump_lost(struct pace_jump *jump, __u32 delivered)
{
	if (jump->state == PACE_JUMP_UNPROVEN)
		jump->state = PACE_JUMP_RETREAT;
	return jump_retreat(jump, delivered);
}

/* The window that is left by now; 0: nothing is to be changed. */
static __always_inline __u32 jump_acknowledged(struct pace_jump *jump, __u32 una, __u32 delivered, bool is_repairing)
{
	bool is_over = (__s32)(una - jump->proven_at) >= 0 ||
		       (jump->state == PACE_JUMP_RETREAT && !is_repairing);
	__u32 window = jump_retreat(jump, delivered);

	if (is_over)
		jump->state = PACE_JUMP_NONE;
	return window;
}

/* Half of one stream's part of what is free of a path, segments. */
static __always_inline __u32 jump_window(__u64 rate, __u64 taken, __u32 streams, __u32 rtt_min_us, __u32 mss)
{
	__u64 half = rate > taken ? (rate - taken) / (2ULL * (streams ? streams : 1)) : 0;
	/* half * rtt overflows above 90 Tbit/s · s, which no path is. */
	__u64 segments = half * rtt_min_us / 1000000 / (mss ? mss : 1);

	return segments > 0xffffffffULL ? 0xffffffff : segments;
}

#endif
