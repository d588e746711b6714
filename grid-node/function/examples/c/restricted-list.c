/* restricted-list refuses orders in symbols of a list: a Pre function.
 * Configuration: a symbol a line, at most 4,000 lines and 65,536 bytes. */
#include "og1.h"

#define ROOM 65536
#define SLOTS 8192

OG1_AREA(ROOM, )

static u8 text[ROOM];
static struct og1_span table[SLOTS]; /* len 0: free; at counts from text */
static u32 count;

static struct og1_span *find(const u8 *p, u32 n)
{
	u32 at = og1_hash(p, n) % SLOTS;
	while (table[at].len && !(table[at].len == n && og1_equal(text + table[at].at, p, n)))
		at = (at + 1) % SLOTS;
	return &table[at];
}

OG1_EXPORT(og1_configure)(i32 len)
{
	u32 n = (u32)len, from = 0;
	og1_copy(text, og1.data, n);
	for (u32 i = 0; i <= n; i++) {
		if (i < n && text[i] != '\n')
			continue;
		if (i > from) {
			if (++count > 4000)
				return 1;
			*find(text + from, i - from) = (struct og1_span){from, i - from};
		}
		from = i + 1;
	}
	return 0;
}

OG1_EXPORT(og1_pre)(void)
{
	if (og1.h.msg_type == 'F' || og1.h.symbol.len == 0)
		return OG1_ACCEPT;
	if (find(og1_at(og1.h.symbol), og1.h.symbol.len)->len)
		return og1_refuse(0, "restricted-list: symbol is restricted");
	return OG1_ACCEPT;
}
