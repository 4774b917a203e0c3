// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What the decisions of pace.bpf.c are, asked one by one: for tests, which compare them with packtrain-proto's. */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "pace_spacing.bpf.h"
#include "pace_hystart.bpf.h"
#include "pace_jump.bpf.h"
#include "pace_memory.bpf.h"
#include "pace_rate.bpf.h"
#include "pace_try.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The path that is tried: who asks writes and reads it here. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pace_path);
} tried SEC(".maps");

SEC("syscall")
int pace_try(struct pace_trial *trial)
{
	struct pace_seen seen = trial->seen;
	struct pace_stream stream = {};
	struct pace_path *path = bpf_map_lookup_elem(&tried, &(__u32){ 0 });

	if (!path)
		return 1;
	stream.interval_ns = trial->interval_ns;
	stream.round_end = trial->round_end;
	stream.first_flight = trial->first_flight;
	stream.phase = trial->phase;
	stream.fill = trial->fill;
	stream.hystart = trial->hystart;
	stream.opens_to = trial->opens_to;
	stream.jumps = trial->jumps;
	stream.jump = trial->jump;
	trial->window = 0;
	switch (trial->what) {
	case PACE_TRY_BEGIN:
		pace_begin(&stream, &seen, trial->precision_ns, trial->path_interval_ns, trial->may);
		stream.jump.state = PACE_JUMP_NONE;
		hystart_begin(&stream.hystart, seen.nxt);
		break;
	case PACE_TRY_ACKNOWLEDGED:
		trial->window = jump_acknowledged(&stream.jump, seen.una, trial->delivered, trial->may);
		pace_acknowledged(&stream, &seen, trial->precision_ns, trial->path_interval_ns);
		trial->verdict = hystart_acknowledged(&stream.hystart, seen.una, seen.nxt, trial->rtt_us,
						      trial->hystart_min_us, trial->hystart_max_us);
		break;
	case PACE_TRY_END:
		trial->window = jump_lost(&stream.jump, trial->delivered);
		pace_end(&stream);
		break;
	case PACE_TRY_JUMP:
		if (!pace_may_jump(&stream, &seen))
			return 0;
		trial->window = jump_window(trial->interval_ns, trial->path_interval_ns, trial->rtt_us, seen.rtt_us, seen.mss);
		return 0;
	case PACE_TRY_JUMPED:
		jump_made(&stream.jump, seen.una, trial->may, seen.mss, trial->delivered);
		pace_jumps_to(&stream, &seen, trial->may, trial->precision_ns, trial->path_interval_ns);
		break;
	case PACE_TRY_SHARE:
		trial->interval_ns = rate_share(trial->precision_ns, seen.cwnd, seen.mss, seen.rtt_us);
		return 0;
	case PACE_TRY_PROBING:
		trial->interval_ns = rate_probing(trial->precision_ns, trial->path_interval_ns, trial->interval_ns,
						  seen.mss, seen.cwnd);
		return 0;
	case PACE_TRY_DELIVERED:
		path_delivered(path, seen.cwnd, trial->rtt_us, trial->fill, trial->precision_ns);
		break;
	case PACE_TRY_FULL:
		path_full(path, trial->fill, trial->precision_ns);
		break;
	case PACE_TRY_PATH:
		trial->interval_ns = path_rate(path, trial->rtt_us, trial->path_interval_ns, trial->precision_ns);
		return 0;
	}
	trial->interval_ns = stream.interval_ns;
	trial->round_end = stream.round_end;
	trial->first_flight = stream.first_flight;
	trial->phase = stream.phase;
	trial->fill = stream.fill;
	trial->opens_to = stream.opens_to;
	trial->opened = pace_opens(&stream, (seen.nxt - seen.una) / (seen.mss ? seen.mss : 1), seen.cwnd);
	trial->jumps = stream.jumps;
	trial->jump = stream.jump;
	trial->hystart = stream.hystart;
	return 0;
}
