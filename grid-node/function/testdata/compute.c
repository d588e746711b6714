/* For tests and benchmarks: compute. The first byte of the arguments says what, the u32
 * after it how much. Recursion, tables and loops of every kind. */
#include "../examples/c/og1.h"

OG1_AREA(65536, )

static u8 sieve[1 << 16];
static u32 matrix[3][32][32];

static u32 primes(u32 n)
{
	u32 found = 0;
	for (u32 i = 2; i < n; i++)
		sieve[i & 0xffff] = 1;
	for (u32 i = 2; i < n && i < 1 << 16; i++) {
		if (!sieve[i])
			continue;
		found++;
		for (u32 k = 2 * i; k < n && k < 1 << 16; k += i)
			sieve[k] = 0;
	}
	return found;
}

static u32 fibonacci(u32 n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

static u32 product(u32 n)
{
	n = n > 32 ? 32 : n;
	for (u32 i = 0; i < n; i++)
		for (u32 k = 0; k < n; k++) {
			matrix[0][i][k] = i * 7 + k;
			matrix[1][i][k] = i ^ k;
		}
	for (u32 i = 0; i < n; i++)
		for (u32 k = 0; k < n; k++) {
			u32 sum = 0;
			for (u32 j = 0; j < n; j++)
				sum += matrix[0][i][j] * matrix[1][j][k];
			matrix[2][i][k] = sum;
		}
	return og1_hash((u8 *)matrix[2], sizeof matrix[2]);
}

static u32 collatz(u32 n)
{
	u32 most = 0;
	for (u32 i = 1; i < n; i++) {
		u32 steps = 0;
		for (u64 v = i; v != 1; steps++)
			v = v & 1 ? 3 * v + 1 : v / 2;
		most = steps > most ? steps : most;
	}
	return most;
}

static u32 switched(u32 n)
{
	u32 v = n;
	for (u32 i = 0; i < n; i++)
		switch (v % 7) {
		case 0: v += 3; break;
		case 1: v = v * 5 + 1;
		case 2: v ^= i; break;
		case 4: v -= 9; continue;
		case 5: if (v > 1u << 30) return v; v *= 3; break;
		default: v++;
		}
	return v;
}

static u32 hash(u32 n) { return og1_hash(sieve, n & 0xffff); }

static u32 (*const what[])(u32) = {primes, fibonacci, product, collatz, switched, hash};

OG1_EXPORT(og1_compute)(void)
{
	u8 *in = og1_at(og1.h.payload);
	u32 n, k = in[0];
	if (og1.h.payload.len < 5 || k >= sizeof what / sizeof *what)
		return 1;
	og1_copy((u8 *)&n, in + 1, 4);
	n = what[k](n);
	og1_copy(og1.data, (u8 *)&n, 4);
	og1.h.out.at = sizeof og1.h;
	og1.h.out.len = 4;
	return 0;
}
