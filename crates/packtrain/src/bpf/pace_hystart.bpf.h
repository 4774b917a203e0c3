/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* HyStart++ (RFC 9406): packtrain-proto, pacing/hystart.rs, once more. */
#ifndef PACKTRAIN_PACE_HYSTART_BPF_H
#define PACKTRAIN_PACE_HYSTART_BPF_H

#include <stdbool.h>

#include "pace.h"

enum pace_verdict {
	PACE_SLOW_START = 0,
	PACE_CONSERVATIVE = 1,
	PACE_OVER = 2,
	PACE_FULL = 3,			/* conservative, and the path is taken for full */
};

static __always_inline void hystart_begin(struct pace_hystart *hystart, __u32 nxt)
{
	__builtin_memset(hystart, 0, sizeof(*hystart));
	hystart->round_end = nxt;
}

static __always_inline void hystart_judge(struct pace_hystart *hystart, __u32 min_us, __u32 max_us)
{
	__u32 growth = hystart->last_round_min_us / PACE_MIN_RTT_DIVISOR;

	if (hystart->rtt_sample_count < PACE_N_RTT_SAMPLE)
		return;
	if (hystart->css_baseline_min_us) {
		if (hystart->current_round_min_us < hystart->css_baseline_min_us)
			hystart->css_baseline_min_us = 0;
		return;
	}
	if (growth > max_us)
		growth = max_us;
	if (growth < min_us)
		growth = min_us;
	if (hystart->last_round_min_us &&
	    hystart->current_round_min_us >= (__u64)hystart->last_round_min_us + growth) {
		hystart->css_baseline_min_us = hystart->current_round_min_us;
		hystart->css_rounds = 0;
	}
}

/* `rtt_us` 0: the acknowledgement tells no round trip. */
static __always_inline enum pace_verdict hystart_acknowledged(struct pace_hystart *hystart, __u32 una, __u32 nxt,
							      __u32 rtt_us, __u32 min_us, __u32 max_us)
{
	bool ends_round = (__s32)(una - hystart->round_end) >= 0;

	if (ends_round) {
		hystart->round_end = nxt;
		hystart->last_round_min_us = hystart->current_round_min_us;
		hystart->current_round_min_us = 0;
		hystart->rtt_sample_count = 0;
		if (hystart->css_baseline_min_us && ++hystart->css_rounds >= PACE_CSS_ROUNDS)
			return PACE_OVER;
	}
	if (rtt_us) {
		hystart->rtt_sample_count++;
		if (!hystart->current_round_min_us || rtt_us < hystart->current_round_min_us)
			hystart->current_round_min_us = rtt_us;
	}
	hystart_judge(hystart, min_us, max_us);
	if (!hystart->css_baseline_min_us)
		return PACE_SLOW_START;
	return ends_round && hystart->css_rounds >= PACE_FULL_ROUNDS ? PACE_FULL : PACE_CONSERVATIVE;
}

#endif
