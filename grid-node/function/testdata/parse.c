/* For benchmarks: copies the message, finds every field of it and adds one. */
#include "../examples/c/og1.h"

#define ROOM 65600

OG1_AREA(ROOM, og1.h.flags = OG1_PAYLOAD)

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
			u32 *out = (u32 *)(og1.data + ROOM - 80), len = fields[k].value.len & 63;
			out[0] = 10001;
			out[1] = len;
			og1_copy((u8 *)(out + 2), p + fields[k].value.at, len);
			og1.h.out.at = sizeof og1.h + ROOM - 80;
			og1.h.out.len = 8 + ((len + 3) & ~3);
			return OG1_CHANGE;
		}
	return OG1_ACCEPT;
}
