/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What pace_class.bpf.c and linux/gap_qdisc/ both know. A test reads this file and compares it. */
#ifndef PACKTRAIN_PACE_CLASS_H
#define PACKTRAIN_PACE_CLASS_H

#include <linux/types.h>

/* The HTB whose classes these are, and its classes' numbers. */
#define PACE_CLASS_QDISC	0x70630000
#define PACE_CLASS_DIRECT	0	/* none: frames pass by all classes */
#define PACE_CLASS_REST		2	/* of what no rule is about */
#define PACE_CLASS_FIRST	0x10	/* of the rules */

/* Values of all rules of an interface. */
#define PACE_CLASS_VALUES	512

/* The one entry of `.data.orders`. */
struct pace_class_orders {
	__u64 comparisons;		/* the first that is in use, in the upper half, and how many are */
	__u32 otherwise;		/* the class of what no rule is about */
	__u32 reserved;
};

#endif
