/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which rule decides about a frame. Reads an image as packtrain-proto/src/filter/rules/image/read.rs does, of which two have
 * room here: one that is asked, and one that the next rules are written to.
 */
#ifndef PACKTRAIN_FILTER_RULES_BPF_H
#define PACKTRAIN_FILTER_RULES_BPF_H

#include "filter.h"
#include "filter_facts.bpf.h"
#include "filter_rules.h"

/* In the map `.bss`, of one entry. The words are written by whoever has the rules, into its memory. */
__u32 rule_words[2 * RULES_WORDS_MAX];

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2 * RULES_MAX);
	__type(key, __u32);
	__type(value, struct filter_count);
} rule_counters SEC(".maps");

/*
 * A token bucket, as the time at which it is full again if nothing takes from it (the generic cell rate algorithm: ITU-T
 * I.371, annex A), in sixteenths of a nanosecond. One number, so that processors share it without a lock.
 */
struct rule_bucket {
	__u64 full_at;
};

struct rule_source {
	__u64 address[2];
	__u32 limit;	/* which one of all there were */
	__u32 version;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * RULES_MAX);
	__type(key, __u32);
	__type(value, struct rule_bucket);
} rule_buckets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, RULES_SOURCES_MAX);
	__type(key, struct rule_source);
	__type(value, struct rule_bucket);
} source_buckets SEC(".maps");

/* No less than RULES_DIMENSIONS, and a power of two. */
#define PLACES			16

#define NANOS_PER_SECOND	1000000000ULL
#define SIXTEENTHS_SHIFT	4
/* Of a bucket: two years and more, so that sums stay below 64 bits. */
#define FILL_TIME_MAX		(1ULL << 56)
/* Processors that take from one bucket in the same moment: who has come last so often passes. */
#define TRIES_MAX		8

/* What is asked, as far as it has come. */
struct rule_walk {
	__u32 image;				/* its number, of all there were */
	__u32 base;				/* where it stands */
	__u32 row_words;
	__u32 rows;				/* where they begin: the first has all entries */
	__u32 used;				/* dimensions, a bit each */
	__u32 count;				/* of these */
	__u32 places[PLACES];			/* of the row in each that is used */
	__u32 at;				/* word of the rows that comes next */
	__u32 size;
	__u32 packets;				/* that the frame was put together from */
	__u64 bits;				/* what is left of the last one */
	__s32 reason;
	__u32 rule;				/* that has decided */
	__u32 version;
	__u64 source[2];
};

static __always_inline __u32 rule_word(__u32 base, __u32 at)
{
	/* Volatile, so that the mask stays where the verifier looks for it. */
	return *(volatile __u32 *)&rule_words[(base & RULES_WORDS_MAX) + (at & (RULES_WORDS_MAX - 1))];
}

static __always_inline __u64 rule_wide(__u32 base, __u32 at)
{
	return rule_word(base, at) | (__u64)rule_word(base, at + 1) << 32;
}

static __always_inline __u32 rules_of_table(__u32 base, __u32 head, __u32 number)
{
	__u32 offset, index;

	if (number == FACTS_ABSENT)
		return rule_word(base, head + RULES_PLACE_ABSENT);
	offset = rule_word(base, head + RULES_PLACE_OFFSET);
	index = number & rule_word(base, head + RULES_PLACE_MASK);
	return rule_word(base, offset + index / 2) >> (16 * (index & 1)) & 0xffff;
}

/*
 * Functions that are not static are looked at once, each by itself, by the verifier, and not with all that may have
 * been found before.
 */

/* Of 48 bits; all of them: there is none. */
__noinline __u32 rules_of_mac(__u32 base, __u32 head, __u64 number)
{
	__u32 list, low = 0, len, half, at;
	__u64 key;

	if (number == ~0ULL)
		return rule_word(base, head + RULES_PLACE_ABSENT);
	list = rule_word(base, head + RULES_PLACE_OFFSET);
	len = rule_word(base, list);
	for (int i = 0; i < RULES_STEPS; i++) {
		if (len < 2)
			break;
		half = len / 2;
		at = list + 1 + (low + half) * RULES_SORTED_WORDS;
		key = (__u64)(rule_word(base, at + 1) >> 16) << 32 | rule_word(base, at);
		low += key > number ? 0 : half;
		len -= half;
	}
	return rule_word(base, list + 1 + low * RULES_SORTED_WORDS + 1) & 0xffff;
}

__noinline __u32 rules_of_v4(__u32 base, __u32 reference, __u32 address)
{
	__u32 leaf, low = 0, len, half;

	if (!(reference & RULES_OFFSET))
		return reference;
	reference = rule_word(base, (reference & ~RULES_OFFSET) + (address >> 16));
	if (!(reference & RULES_OFFSET))
		return reference;
	leaf = reference & ~RULES_OFFSET;
	len = rule_word(base, leaf);
	for (int i = 0; i < RULES_STEPS_16; i++) {
		if (len < 2)
			break;
		half = len / 2;
		low += rule_word(base, leaf + 1 + low + half) >> 16 > (address & 0xffff) ? 0 : half;
		len -= half;
	}
	return rule_word(base, leaf + 1 + low) & 0xffff;
}

/* Four words, the first first. */
static __always_inline __u64 rules_half(__u32 base, __u32 at)
{
	return (__u64)rule_word(base, at) << 32 | rule_word(base, at + 1);
}

static __always_inline int rules_is_above(__u32 base, __u32 at, const __u64 *address)
{
	__u64 first = rules_half(base, at);

	return first != address[0] ? first > address[0] : rules_half(base, at + 2) > address[1];
}

__noinline __u32 rules_of_v6(__u32 base, __u32 reference, const struct halves *halves)
{
	const __u64 *address;
	__u32 at, low = 0, len, half;
	__u64 differs, window;

	if (!halves)
		return 0;
	address = halves->of;

	for (int i = 0; i < RULES_WINDOWS_MAX; i++) {
		if (!(reference & RULES_WINDOW))
			break;
		at = reference & ~(RULES_OFFSET | RULES_WINDOW);
		differs = ((address[0] & rules_half(base, at + RULES_WINDOW_MASK)) ^
			   rules_half(base, at + RULES_WINDOW_BASE)) |
			  ((address[1] & rules_half(base, at + RULES_WINDOW_MASK + 2)) ^
			   rules_half(base, at + RULES_WINDOW_BASE + 2));
		if (differs) {
			reference = rule_word(base, at + RULES_WINDOW_OUTSIDE);
			continue;
		}
		window = rule_word(base, at + RULES_WINDOW_HALF) & 1 ? address[1] : address[0];
		window = window >> (rule_word(base, at + RULES_WINDOW_SHIFT) & 63) &
			 rule_word(base, at + RULES_WINDOW_INDEX_MASK);
		reference = rule_word(base, at + RULES_WINDOW_ROOT + (__u32)window);
	}
	if (!(reference & RULES_OFFSET))
		return reference;
	at = (reference & ~(RULES_OFFSET | RULES_WINDOW)) + 1;
	len = rule_word(base, at - 1);
	for (int i = 0; i < RULES_STEPS; i++) {
		if (len < 2)
			break;
		half = len / 2;
		/* Before each row but the first stands the least address that it is for. */
		low += rules_is_above(base, at + (low + half) * RULES_LEAF6_WORDS - 4, address) ? 0 : half;
		len -= half;
	}
	return rule_word(base, at + low * RULES_LEAF6_WORDS);
}

static __always_inline __u32 rules_of_address(__u32 base, __u32 head, __u32 version,
					      const struct halves *address)
{
	if (version == 4)
		return rules_of_v4(base, rule_word(base, head + RULES_PLACE_V4), address->of[1]);
	if (version == 6)
		return rules_of_v6(base, rule_word(base, head + RULES_PLACE_V6), address);
	return rule_word(base, head + RULES_PLACE_ABSENT);
}

static __always_inline __u64 fill_time(__u64 tokens, __u64 per_second)
{
	__u64 time = tokens * NANOS_PER_SECOND / per_second;

	return (time > FILL_TIME_MAX ? FILL_TIME_MAX : time) << SIXTEENTHS_SHIFT |
	       (tokens * NANOS_PER_SECOND % per_second << SIXTEENTHS_SHIFT) / per_second;
}

/*
 * Whether a bucket has so many tokens, which it then gives. One that is full gives also more than it holds, and is in debt then: what
 * others have put together may be longer than any burst.
 */
static __always_inline int bucket_gives(struct rule_bucket *bucket, __u64 per_second, __u64 burst,
					__u64 tokens, __u64 now_ns)
{
	__u64 now = now_ns << SIXTEENTHS_SHIFT, price = fill_time(tokens, per_second);
	__u64 latest = now + fill_time(burst, per_second), full_at, then;

	for (int i = 0; i < TRIES_MAX; i++) {
		full_at = *(volatile __u64 *)&bucket->full_at;
		then = (full_at > now ? full_at : now) + price;
		if (then > latest && full_at > now)
			return 0;
		if (__sync_val_compare_and_swap(&bucket->full_at, full_at, then) == full_at)
			return 1;
	}
	return 1;
}

/* 1: within. Where no bucket is to be had, too: nobody is kept out for want of memory. */
static __always_inline int is_within(const struct rule_walk *walk, __u32 number)
{
	__u32 at = rule_word(walk->base, RULES_HEAD_LIMITS) + number * RULES_LIMIT_WORDS;
	__u64 per_second = rule_wide(walk->base, at), burst = rule_wide(walk->base, at + 2);
	__u64 tokens = rule_word(walk->base, at + 4) ? walk->size : walk->packets;
	/* The same in each image for as long as the limit stays. */
	__u32 place = rule_word(walk->base, at + RULES_LIMIT_BUCKET);
	struct rule_bucket *bucket;

	if (!rule_word(walk->base, at + 5)) {
		bucket = bpf_map_lookup_elem(&rule_buckets, &place);
	} else {
		struct rule_source source = {
			.address = { walk->source[0], walk->source[1] },
			.limit = place,
			.version = walk->version,
		};

		bucket = bpf_map_lookup_elem(&source_buckets, &source);
		if (!bucket) {
			struct rule_bucket empty = {};

			bpf_map_update_elem(&source_buckets, &source, &empty, BPF_NOEXIST);
			bucket = bpf_map_lookup_elem(&source_buckets, &source);
		}
	}
	if (!bucket || !per_second)
		return 1;
	return bucket_gives(bucket, per_second, burst, tokens, bpf_ktime_get_ns());
}

/* The rules' counts begin anew with each image. */
static __always_inline void count_rule(const struct rule_walk *walk, __u32 rule)
{
	__u32 place = rule + (walk->base ? RULES_MAX : 0);
	struct filter_count *counter = bpf_map_lookup_elem(&rule_counters, &place);

	if (!counter)
		return;
	counter->frames++;
	counter->bytes += walk->size;
}

/* Sixty-four entries at a time, or one that matches; 1: it is known what becomes of the frame. */
static long rules_step(__u32 index, void *context)
{
	struct rule_walk *walk = *(struct rule_walk **)context;
	__u32 verdict, kind, entry;
	__u64 bits;

	if (!walk->bits) {
		if (walk->at >= walk->row_words)
			return 1;
		bits = rule_wide(walk->base, walk->rows + walk->at * 2);
		for (__u32 i = 0; i < RULES_DIMENSIONS && i < walk->count; i++)
			bits &= rule_wide(walk->base, walk->places[i] + walk->at * 2);
		walk->bits = bits;
		walk->at++;
		return 0;
	}
	entry = (walk->at - 1) * 64 + __builtin_ctzll(walk->bits);
	walk->bits &= walk->bits - 1;
	verdict = rule_word(walk->base, rule_word(walk->base, RULES_HEAD_VERDICTS) + entry);
	kind = verdict >> RULES_VERDICT_SHIFT & 3;
	if (kind == RULES_VERDICT_ALLOW)
		walk->reason = FILTER_ALLOWED;
	else if (kind == RULES_VERDICT_DENY)
		walk->reason = FILTER_DENIED;
	else if (!is_within(walk, verdict >> RULES_LIMIT_SHIFT))
		walk->reason = FILTER_LIMITED;
	else
		return 0;
	walk->rule = verdict & ((1 << RULES_VERDICT_SHIFT) - 1);
	count_rule(walk, walk->rule);
	return 1;
}

/*
 * All is kept in memory, of which the verifier remembers nothing: else it would look at all that follows for each of the
 * dimensions once as in use and once as not.
 */
static __always_inline void add_row(struct rule_walk *walk, __u32 number)
{
	walk->places[walk->count & (PLACES - 1)] = walk->rows + number * walk->row_words * 2;
	walk->count++;
}

/* What its row is, is not asked where it is not in use. */
#define ADD_ROW(dimension, number)							\
	do {										\
		__u32 head = RULES_HEAD_DIMENSION + (dimension) * RULES_DIMENSION_WORDS; \
											\
		if (walk->used >> (dimension) & 1)					\
			add_row(walk, number);						\
	} while (0)

/* What is too large for a stack, of each processor. */
struct rule_scratch {
	struct rule_facts facts;
	struct rule_walk walk;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rule_scratch);
} rule_scratch SEC(".maps");

static __always_inline struct rule_scratch *rules_scratch(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&rule_scratch, &zero);
}

/* The reason, or -1: no rule decides. Images stand in the one place and in the other in turns. The facts are those of the scratch. */
__noinline int judge_rules(__u32 image)
{
	struct rule_scratch *scratch = rules_scratch();
	struct rule_facts *facts;
	struct rule_walk *walk;
	__u32 base = image & 1 ? RULES_WORDS_MAX : 0;

	if (!scratch)
		return -1;
	facts = &scratch->facts;
	walk = &scratch->walk;
	walk->image = image;
	walk->base = base;
	walk->row_words = rule_word(base, RULES_HEAD_ROW_WORDS);
	walk->rows = rule_word(base, RULES_HEAD_ROWS);
	walk->used = rule_word(base, RULES_HEAD_DIMENSIONS);
	walk->count = 0;
	walk->at = 0;
	walk->bits = 0;
	walk->reason = -1;
	walk->size = facts->len;
	walk->packets = facts->packets;
	walk->version = facts->version;
	walk->source[0] = facts->source.of[0];
	walk->source[1] = facts->source.of[1];
	ADD_ROW(RULES_SOURCE, rules_of_address(base, head, facts->version, &facts->source));
	ADD_ROW(RULES_DESTINATION, rules_of_address(base, head, facts->version, &facts->destination));
	ADD_ROW(RULES_SOURCE_PORT, rules_of_table(base, head, facts->numbers[RULES_SOURCE_PORT]));
	ADD_ROW(RULES_DESTINATION_PORT, rules_of_table(base, head, facts->numbers[RULES_DESTINATION_PORT]));
	ADD_ROW(RULES_PROTOCOL, rules_of_table(base, head, facts->numbers[RULES_PROTOCOL]));
	ADD_ROW(RULES_ETHER_TYPE, rules_of_table(base, head, facts->numbers[RULES_ETHER_TYPE]));
	ADD_ROW(RULES_SIZE, rules_of_table(base, head, facts->numbers[RULES_SIZE]));
	ADD_ROW(RULES_VLAN, rules_of_table(base, head, facts->numbers[RULES_VLAN]));
	ADD_ROW(RULES_INNER_VLAN, rules_of_table(base, head, facts->numbers[RULES_INNER_VLAN]));
	ADD_ROW(RULES_DSCP, rules_of_table(base, head, facts->numbers[RULES_DSCP]));
	ADD_ROW(RULES_SOURCE_MAC, rules_of_mac(base, head, facts->source_mac));
	ADD_ROW(RULES_DESTINATION_MAC, rules_of_mac(base, head, facts->destination_mac));
	ADD_ROW(RULES_KINDS, rules_of_table(base, head, facts->numbers[RULES_KINDS]));
	bpf_loop(RULES_ENTRIES_MAX + RULES_ROW_WORDS_MAX + 1, rules_step, &walk, 0);
	return walk->reason;
}

#endif
