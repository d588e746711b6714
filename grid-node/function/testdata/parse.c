/* For benchmarks: copies the message, finds every field of it and adds one. */
#include "../examples/c/og1.h"

OG1_AREA(65536, og1.h.flags = OG1_PAYLOAD)

static struct {
	u32 tag;
	struct og1_span value;
} fields[64];

OG1_EXPORT(og1_pre)(void)
{
	const u8 *p = og1_at(og1.h.payload);
	u32 n = og1.h.payload.len, count = 0;
	for (u32 i = 0; i < n && count < 64; count++) {
		u32 tag = 0;
		for (; i < n && p[i] != '='; i++)
			tag = tag * 10 + (p[i] - '0');
		u32 from = ++i;
		while (i < n && p[i] != 1)
			i++;
		fields[count].tag = tag;
		fields[count].value = (struct og1_span){from, i - from};
		i++;
	}
	for (u32 k = 0; k < count; k++)
		if (fields[k].tag == 1) {
			static u32 out[20];
			out[0] = 10001;
			out[1] = fields[k].value.len;
			og1_copy((u8 *)(out + 2), p + fields[k].value.at, out[1] & 63);
			og1.h.out.at = (u32)((u8 *)out - (u8 *)&og1);
			return OG1_ACCEPT;
		}
	return OG1_ACCEPT;
}
