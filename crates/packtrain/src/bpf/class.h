/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Classes as the programs have them: what is asked of a frame, one comparison after the other. What
 * class.bpf.h and linux/direct/classes.rs both know; a test compares the sizes.
 *
 * The comparisons of a condition are alternatives, the conditions of a class must all hold, and the
 * first class that matches says which way the frame takes.
 */
#ifndef PACKTRAIN_CLASS_H
#define PACKTRAIN_CLASS_H

/* Who has fewer says so before. */
#ifndef CLASS_COMPARISONS
#define CLASS_COMPARISONS	4096
#endif

/* Facts that are numbers: within `low[0]` and `high[0]`. What a frame has not is within nothing. */
#define CLASS_ETHER_TYPE	0
#define CLASS_VLAN		1
#define CLASS_PROTOCOL		2
#define CLASS_DSCP		3
#define CLASS_SOURCE_PORT	4
#define CLASS_DESTINATION_PORT	5
#define CLASS_SIZE		6
#define CLASS_EMPTY_TCP		7	/* 1: it is */
#define CLASS_NUMBERS		8
/* Facts under a mask: `low` is what stands there, `high` the mask. */
#define CLASS_MARK		8
#define CLASS_SOURCE4		9
#define CLASS_DESTINATION4	10
#define CLASS_SOURCE6		11
#define CLASS_DESTINATION6	12

#define CLASS_ENDS_CONDITION	1
#define CLASS_ENDS_CLASS	2

/* Who goes where some must not, goes wherever those go that stand before it. */
#define CLASS_PATH_ENGINE	0
#define CLASS_PATH_AUTO		1
#define CLASS_PATH_LOSS_OK	2
#define CLASS_PATH_DIRECT	3

/* Map `comparisons`: two halves, of which one is in use. */
struct class_comparison {
	__u64 low[2];		/* of an address, its last 64 bits in [0] */
	__u64 high[2];
	__u8 fact;
	__u8 negated;		/* the condition must not hold */
	__u8 ends;
	__u8 path;		/* where it ends a class */
	__u8 urgent;		/* … all frames of whose flows go ahead of others */
	__u8 unused[3];
};

#endif
