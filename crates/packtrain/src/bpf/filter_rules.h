/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What filter_rules.bpf.h reads of an image of rules: packtrain-proto/src/filter/rules/image.rs draws it. A test compares
 * the numbers.
 */
#ifndef PACKTRAIN_FILTER_RULES_H
#define PACKTRAIN_FILTER_RULES_H

#define RULES_WORDS_MAX		(1 << 20)
#define RULES_MAX		512
#define RULES_ENTRIES_MAX	1024

enum rules_dimension {
	RULES_SOURCE = 0,
	RULES_DESTINATION = 1,
	RULES_SOURCE_PORT = 2,
	RULES_DESTINATION_PORT = 3,
	RULES_PROTOCOL = 4,
	RULES_ETHER_TYPE = 5,
	RULES_SIZE = 6,
	RULES_VLAN = 7,
	RULES_INNER_VLAN = 8,
	RULES_DSCP = 9,
	RULES_SOURCE_MAC = 10,
	RULES_DESTINATION_MAC = 11,
	RULES_KINDS = 12,
	RULES_DIMENSIONS = 13,
};

#define RULES_KIND_UNICAST	0
#define RULES_KIND_MULTICAST	1
#define RULES_KIND_BROADCAST	2
#define RULES_KIND_CAST_UNKNOWN	3
#define RULES_KIND_CAST		3
#define RULES_KIND_FRAGMENT	4
#define RULES_KIND_SYN		8
#define RULES_KIND_EMPTY	16

/* Words of the header, and of each dimension in it. */
#define RULES_HEAD_DIMENSIONS	2
#define RULES_HEAD_ROW_WORDS	4
#define RULES_HEAD_ROWS		5
#define RULES_HEAD_VERDICTS	7
#define RULES_HEAD_LIMITS	8
#define RULES_HEAD_DIMENSION	16
#define RULES_PLACE_OFFSET	0
#define RULES_PLACE_MASK	1
#define RULES_PLACE_V4		0
#define RULES_PLACE_V6		1
#define RULES_PLACE_ABSENT	2
#define RULES_DIMENSION_WORDS	4

#define RULES_LIMIT_WORDS	8
#define RULES_LIMIT_BUCKET	6
#define RULES_SORTED_WORDS	2
#define RULES_LEAF6_WORDS	5
#define RULES_ROW_WORDS_MAX	16
#define RULES_OFFSET		(1U << 31)
#define RULES_WINDOW		(1U << 30)
#define RULES_WINDOWS_MAX	3
#define RULES_STEPS_16		16
#define RULES_STEPS		19

#define RULES_WINDOW_MASK	0
#define RULES_WINDOW_BASE	4
#define RULES_WINDOW_HALF	8
#define RULES_WINDOW_SHIFT	9
#define RULES_WINDOW_INDEX_MASK	10
#define RULES_WINDOW_OUTSIDE	11
#define RULES_WINDOW_ROOT	12

#define RULES_VERDICT_ALLOW	0
#define RULES_VERDICT_DENY	1
#define RULES_VERDICT_SHIFT	14
#define RULES_LIMIT_SHIFT	16

/* Sources whose buckets are remembered, by all limits together: the one that was looked at least lately is forgotten. */
#define RULES_SOURCES_MAX	65536

#endif
