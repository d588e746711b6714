/* primes is a Compute function for Maps: it counts the primes from 2 up to n, an u32, by trial
 * division by every smaller odd number up to the root. Arguments: n, and an u32 of how often
 * the whole is done. A slice has every slices-th block of odd numbers, so all have about the
 * same work.
 * With a region the numbers are the values of its entries, u32 each, and n is not used. The
 * reply is how many primes were found, an u64, and the work, an u64 of divisions. Error: 1
 * arguments or a value of another size, or a call that is no Map. */
#include "og1.h"

OG1_AREA(65472, )

/* Divisions of a call: it returns in between, so that others need not wait. */
#define MOST 1024
/* Odd numbers of a block: as many multiples of 3 and 5 in one as in another. */
#define BLOCK 15

static u32 begun, round, at;
static u64 found, divisions;

static u32 number(const u8 *p)
{
	return (u32)p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24;
}

static void put(u8 *p, u64 v)
{
	for (u32 i = 0; i < 8; i++)
		p[i] = (u8)(v >> (8 * i));
}

static u32 prime(u32 v)
{
	if (v < 4)
		return v > 1;
	divisions++;
	if (v % 2 == 0)
		return 0;
	for (u32 d = 3; (u64)d * d <= v; d += 2) {
		divisions++;
		if (v % d == 0)
			return 0;
	}
	return 1;
}

/* first is where a slice begins, in another block each time. */
static u32 first(void)
{
	return (og1_slice + round) % og1_slices * BLOCK;
}

/* The odd numbers from 3 on are 2k + 3; 2 goes with the first of them. */
static i32 portion(u32 n, u32 rounds)
{
	u64 until = divisions + MOST;
	if (!begun) {
		begun = 1;
		at = first();
	}
	for (; round < rounds; round++, at = first()) {
		while ((u64)at * 2 + 3 <= n) {
			if (divisions >= until)
				return 1;
			found += prime(at * 2 + 3) + (at == 0);
			if (++at % BLOCK == 0)
				at += BLOCK * (og1_slices - 1);
		}
	}
	return 0;
}

static i32 wrong(void)
{
	static const char text[] = "arguments are n and rounds, 4 bytes each, and values have 4 bytes, in a Map";
	og1_copy(og1.data, (const u8 *)text, sizeof text - 1);
	og1.h.out.at = sizeof og1.h;
	og1.h.out.len = sizeof text - 1;
	return 1;
}

OG1_EXPORT(og1_compute)(void)
{
	if (og1.h.payload.len != 8 || og1_step == 0 || (og1_step == OG1_ROW && og1_value.len != 4))
		return wrong();
	if (og1_step == OG1_ROW) {
		found += prime(number(og1_at(og1_value)));
		return 0;
	}
	const u8 *args = og1_at(og1.h.payload);
	if (og1_region.len == 0 && portion(number(args), number(args + 4))) {
		og1.h.action = OG1_AGAIN;
		return 0;
	}
	put(og1.data, found);
	put(og1.data + 8, divisions);
	og1.h.out.at = sizeof og1.h;
	og1.h.out.len = 16;
	return 0;
}
