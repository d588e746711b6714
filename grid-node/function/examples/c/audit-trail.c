/* audit-trail links every entry to the ones before it: a Post function. A record is
 * {u64 seq, i64 time, 32 bytes hash}, hash = SHA-256(hash before, seq, time, message); the
 * first hash before is zeros. Who has the messages and the last record can replay it. */
#include "og1.h"

OG1_AREA(65536, og1.h.flags = OG1_PAYLOAD)

static const u32 K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static u32 state[8];
static u8 block[64];
static u32 filled;
static u64 total;

static u32 rotr(u32 x, u32 n) { return x >> n | x << (32 - n); }

static void compress(void)
{
	u32 w[64], s[8];
	for (u32 i = 0; i < 16; i++)
		w[i] = (u32)block[4 * i] << 24 | (u32)block[4 * i + 1] << 16 | (u32)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (u32 i = 16; i < 64; i++) {
		u32 a = rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
		u32 b = rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
		w[i] = w[i - 16] + a + w[i - 7] + b;
	}
	for (u32 i = 0; i < 8; i++)
		s[i] = state[i];
	for (u32 i = 0; i < 64; i++) {
		u32 a = s[7] + (rotr(s[4], 6) ^ rotr(s[4], 11) ^ rotr(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) + K[i] + w[i];
		u32 b = (rotr(s[0], 2) ^ rotr(s[0], 13) ^ rotr(s[0], 22)) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
		s[7] = s[6]; s[6] = s[5]; s[5] = s[4]; s[4] = s[3] + a;
		s[3] = s[2]; s[2] = s[1]; s[1] = s[0]; s[0] = a + b;
	}
	for (u32 i = 0; i < 8; i++)
		state[i] += s[i];
}

static void start(void)
{
	static const u32 first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	for (u32 i = 0; i < 8; i++)
		state[i] = first[i];
	filled = 0;
	total = 0;
}

static void add(const u8 *p, u32 n)
{
	total += n;
	for (u32 i = 0; i < n; i++) {
		block[filled++] = p[i];
		if (filled == 64) {
			compress();
			filled = 0;
		}
	}
}

static void finish(u8 *out)
{
	u64 bits = total * 8;
	u8 one = 0x80, none = 0, length[8];
	add(&one, 1);
	while (filled != 56)
		add(&none, 1);
	for (u32 i = 0; i < 8; i++)
		length[i] = (u8)(bits >> (56 - 8 * i));
	add(length, 8);
	for (u32 i = 0; i < 32; i++)
		out[i] = (u8)(state[i / 4] >> (24 - 8 * (i % 4)));
}

static struct {
	u64 seq;
	i64 time;
	u8 hash[32];
} record; /* the last one */

OG1_EXPORT(og1_post)(void)
{
	start();
	add(record.hash, 32);
	add((u8 *)&og1.h.seq, 8);
	add((u8 *)&og1.h.time, 8);
	add(og1_at(og1.h.payload), og1.h.payload.len);
	record.seq = og1.h.seq;
	record.time = og1.h.time;
	finish(record.hash);
	og1_copy(og1.data, (u8 *)&record, sizeof record);
	og1.h.out.at = sizeof og1.h;
	og1.h.out.len = sizeof record;
	return 1;
}
