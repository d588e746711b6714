/* enrich-client sets tag 10001 to the desk of an account: a Pre function that needs the
 * right to set this tag. Configuration: lines ACCOUNT=DESK. */
#include "og1.h"

#define ROOM 65536
#define SLOTS 8192
#define DESK 10001

OG1_AREA(ROOM, )

struct client {
	struct og1_span account, desk; /* places in text */
};

static u8 text[ROOM];
static struct client table[SLOTS];
static u32 count;

static struct client *find(const u8 *p, u32 n)
{
	u32 at = og1_hash(p, n) % SLOTS;
	while (table[at].account.len &&
	       !(table[at].account.len == n && og1_equal(text + table[at].account.at, p, n)))
		at = (at + 1) % SLOTS;
	return &table[at];
}

/* add reads a line; 0 if it is not of the form. */
static i32 add(u32 from, u32 to)
{
	u32 equals = from;
	while (equals < to && text[equals] != '=')
		equals++;
	if (equals == from || equals + 1 >= to || to - equals - 1 > 64 || ++count > 4000)
		return 0;
	*find(text + from, equals - from) = (struct client){{from, equals - from}, {equals + 1, to - equals - 1}};
	return 1;
}

OG1_EXPORT(og1_configure)(i32 len)
{
	u32 n = (u32)len, from = 0;
	og1_copy(text, og1.data, n);
	for (u32 i = 0; i <= n; i++) {
		if (i < n && text[i] != '\n')
			continue;
		if (i > from && !add(from, i))
			return 1;
		from = i + 1;
	}
	return 0;
}

OG1_EXPORT(og1_pre)(void)
{
	if (og1.h.account.len == 0)
		return OG1_ACCEPT;
	struct client *c = find(og1_at(og1.h.account), og1.h.account.len);
	if (c->account.len == 0)
		return OG1_ACCEPT;
	u32 *out = (u32 *)og1.data;
	out[0] = DESK;
	out[1] = c->desk.len;
	og1_copy((u8 *)(out + 2), text + c->desk.at, c->desk.len);
	og1.h.out.at = sizeof og1.h;
	og1.h.out.len = 8 + ((c->desk.len + 3) & ~3u);
	return OG1_CHANGE;
}
