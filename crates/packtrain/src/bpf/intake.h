/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What intake.bpf.c and linux/intake.rs both know; a test compares the numbers. */
#ifndef PACKTRAIN_INTAKE_H
#define PACKTRAIN_INTAKE_H

/* The entries of the map `state`: what is to be done, how long a flow is silent, in ms, until
 * nothing of it can wait any more and its leaf is free; and of sand, how long a byte counts for its flow and for all
 * of them, in ns (0: no flow's frames are sand). */
#define INTAKE_MODE		0
#define INTAKE_IDLE_TIME	1
#define INTAKE_FLOW_SAND	2
#define INTAKE_ALL_SAND		3
#define INTAKE_ENTRIES		4

/* The modes. */
#define INTAKE_UNUSED		0	/* never shaped: nothing can wait in a leaf */
#define INTAKE_SHAPED		1
#define INTAKE_OPEN		2	/* no longer shaped; leaves may still hold frames */

/* Classes: 7074:1 has the rate, 7074:10 (hexadecimal) and on are its leaves. */
#define INTAKE_MAJOR		28788	/* 7074, "pt" in ASCII */
#define INTAKE_FIRST_LEAF	16
#define INTAKE_LEAVES		256

/*
 * Who has this class as its priority, which there is not, is urgent: it goes past the leaves. (Priority 7074:0 would
 * do without a program, and so that none sees the frame.)
 */
#define INTAKE_URGENT		0xffff

/* No longer frame is sand, and so much of it may come at once, as what is allowed in this time. */
#define INTAKE_SAND_BYTES	256
#define INTAKE_SAND_BURST_NS	8000000

/* Leaves are given out as the lines of a cache are: so many that a flow may have. */
#define INTAKE_WAYS		8

#endif
