/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Clustered Packet Spacing: packtrain-proto, pacing/spacing.rs, once more, in the same integers. There it is explained; a test
 * compares the two by what they decide.
 */
#ifndef PACKTRAIN_PACE_SPACING_BPF_H
#define PACKTRAIN_PACE_SPACING_BPF_H

#include "pace.h"

#define SECOND_NS	1000000000ULL

/* What a sender knows when an acknowledgement has been taken in. */
struct pace_seen {
	__u32 una;
	__u32 nxt;
	__u32 rtt_us;
	__u32 cwnd;
	__u32 ssthresh;
	__u32 mss;
};

/* So many segments are spread over the round trip that begins. `path_interval_ns`: 0 where the path is not known. */
static __always_inline void pace_space(struct pace_stream *stream, const struct pace_seen *seen, __u32 segments,
				       __u64 precision_ns, __u64 path_interval_ns)
{
	__u64 interval_ns = (__u64)seen->rtt_us * 1000 / (segments ? segments : 1);

	if (stream->phase != PACE_SPACING)
		return;
	if (path_interval_ns)
		stream->interval_ns = interval_ns > path_interval_ns ? interval_ns : path_interval_ns;
	else if (interval_ns > precision_ns)
		stream->interval_ns = interval_ns;
	else
		stream->phase = PACE_CLUSTERS;
	if (stream->phase == PACE_SPACING)
		stream->spaced_rounds++;
}

static __always_inline void pace_begin(struct pace_stream *stream, const struct pace_seen *seen, __u64 precision_ns,
				       __u64 path_interval_ns, bool jumps)
{
	stream->first_flight = seen->cwnd;
	stream->jumps = jumps && path_interval_ns;
	stream->round_end = seen->una + seen->cwnd * seen->mss;
	stream->fill = PACE_NOT_FILLED;
	stream->opens_to = 0;
	stream->phase = seen->cwnd < seen->ssthresh || path_interval_ns ? PACE_SPACING : PACE_FREE;
	pace_space(stream, seen, seen->cwnd, precision_ns, path_interval_ns);
}

static __always_inline void pace_end(struct pace_stream *stream)
{
	stream->phase = PACE_FREE;
	stream->first_flight = 0;
	stream->opens_to = 0;
	stream->fill = PACE_NOT_FILLED;
}

/* Whether this is the first answer to a first flight on a path that is remembered. */
static __always_inline bool pace_may_jump(const struct pace_stream *stream, const struct pace_seen *seen)
{
	return stream->jumps && stream->first_flight && seen->cwnd < seen->ssthresh;
}

/* The window is to be this large; in place of pace_acknowledged(). */
static __always_inline void pace_jumps_to(struct pace_stream *stream, const struct pace_seen *seen, __u32 window,
					  __u64 precision_ns, __u64 path_interval_ns)
{
	stream->first_flight = 0;
	stream->jumps = 0;
	stream->opens_to = window;
	stream->round_end = seen->nxt;
	pace_space(stream, seen, window, precision_ns, path_interval_ns);
}

/* The window before a segment is sent; 0: as it is. */
static __always_inline __u32 pace_opens(const struct pace_stream *stream, __u32 in_flight, __u32 cwnd)
{
	__u64 interval_ns = stream->interval_ns ? stream->interval_ns : 1;
	__u64 window;

	if (stream->phase != PACE_SPACING || stream->opens_to <= cwnd)
		return 0;
	window = (__u64)in_flight + PACE_AHEAD_NS / interval_ns + PACE_AHEAD_SEGMENTS;
	if (window > stream->opens_to)
		window = stream->opens_to;
	return window > cwnd ? window : 0;
}

/* Bytes that are acknowledged beyond the round's window: what more than none begins the next one. */
static __always_inline __s32 pace_beyond(const struct pace_stream *stream, const struct pace_seen *seen)
{
	return (__s32)(seen->una - stream->round_end);
}

/* Whether an interval may be decided when this is taken in: who asks has to know the path then. */
static __always_inline bool pace_decides(const struct pace_stream *stream, const struct pace_seen *seen)
{
	return stream->first_flight || pace_beyond(stream, seen) > 0 || seen->cwnd >= seen->ssthresh;
}

/* After slow start on a path that is known. */
static __always_inline void pace_make_even(struct pace_stream *stream, const struct pace_seen *seen)
{
	__u64 interval_ns = (__u64)seen->rtt_us * 1000 / (seen->cwnd ? seen->cwnd : 1);

	stream->interval_ns = interval_ns - interval_ns / PACE_CATCH_UP_DIVISOR;
}

static __always_inline void pace_fill(struct pace_stream *stream, const struct pace_seen *seen, __u64 precision_ns,
				      __u64 path_interval_ns)
{
	stream->opens_to = 0;
	if (stream->phase == PACE_FREE && stream->fill == PACE_EVEN) {
		pace_make_even(stream, seen);
	} else if (stream->phase != PACE_SPACING) {
		pace_end(stream);
	} else if (stream->fill == PACE_NOT_FILLED) {
		stream->fill = PACE_FILLING;
		stream->round_end = seen->una + seen->cwnd * seen->mss;
		pace_space(stream, seen, seen->cwnd, precision_ns, path_interval_ns);
	} else if (pace_beyond(stream, seen) >= 0 || seen->una == seen->nxt) {
		pace_end(stream);
		if (path_interval_ns && (__u64)seen->rtt_us * 1000 / PACE_EVEN_PRECISIONS >= precision_ns) {
			stream->fill = PACE_EVEN;
			pace_make_even(stream, seen);
		}
	}
}

static __always_inline void pace_acknowledged(struct pace_stream *stream, const struct pace_seen *seen,
					      __u64 precision_ns, __u64 path_interval_ns)
{
	__s32 beyond = pace_beyond(stream, seen);
	__u32 window, answered;
	__u64 half, doubled;

	if (seen->cwnd >= seen->ssthresh) {
		pace_fill(stream, seen, precision_ns, path_interval_ns);
		return;
	}
	if (beyond > 0) {
		half = (__u64)(seen->cwnd / 2) * (seen->mss ? seen->mss : 1);
		answered = (__u32)beyond < half ? (__u32)beyond : half;
		window = seen->cwnd - answered / (seen->mss ? seen->mss : 1);
		stream->round_end = seen->una - answered + window * seen->mss;
	} else if (stream->first_flight) {
		window = stream->first_flight;
	} else {
		if (seen->una == seen->nxt)
			stream->round_end = seen->una;
		return;
	}
	stream->first_flight = 0;
	if (seen->cwnd >= stream->opens_to)
		stream->opens_to = 0;
	doubled = 2ULL * window;
	if (doubled < stream->opens_to)
		doubled = stream->opens_to;
	if (doubled > seen->ssthresh)
		doubled = seen->ssthresh;
	pace_space(stream, seen, doubled, precision_ns, path_interval_ns);
}

#endif
