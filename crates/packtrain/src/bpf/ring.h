/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What ring.bpf.c and linux/ring.rs both know; a test compares the sizes. */
#ifndef PACKTRAIN_RING_H
#define PACKTRAIN_RING_H

/* Bytes of the ring: a power of two, and a multiple of every page size that there is. */
#define RING_BYTES		(1 << 20)
/* Larger frames go by the TAP. */
#define RING_FRAME_MAX		492
/* What room is asked for, by the frame's size: the verifier wants constants. With its record and the kernel's own header
 * each takes a multiple of 64 bytes of the ring. */
#define RING_ROOM_SMALL		108
#define RING_ROOM_MIDDLE	236

/* More than so many between here and the daemon, and a flow of theirs goes on by the TAP: less than what that drops. */
#define RING_TAP_FRAMES_MAX	64

/* Flows are told apart by so many slots; of two that share one the other waits too. */
#define RING_SLOTS		4096

/* Map `.data.orders`, which the daemon has in its memory. */
struct ring_orders {
	__u32 open;		/* 0: no frame goes by the ring */
	__u32 asleep;		/* the daemon wants to be woken: by the next frame, which goes by the TAP, and takes this back */
	__u64 read;		/* of the frames that went on to the TAP, so many were read */
};

/* Map `.data.counts`, which only the program writes, under the lock of HTB's root. */
struct ring_counts {
	__u64 to_tap;		/* frames that went on, one that the kernel cuts as its segments */
	__u64 by_ring;
	__u64 full;		/* of those that went on, how many did because the ring had no room */
	__u64 in_leaf;		/* `to_tap` at the last one that went into a leaf of HTB */
};

/* In the ring, before each frame. */
struct ring_record {
	__u16 len;
	__u16 checksum_start;	/* from the frame's first byte; 0: its checksum is finished */
	__u16 checksum_offset;	/* from there */
	__u16 unused;
	__u32 after;		/* the flow's last frame before it is the one of this count at the TAP (lower half); 0: was read */
};

#endif
