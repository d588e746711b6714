/* fat-finger refuses orders that are too large: a Pre function.
 * Configuration: lines quantity=NUMBER and value=NUMBER; value is quantity times price. */
#include "og1.h"

OG1_AREA(1024, )

static i64 max_quantity = 0x7fffffffffffffffLL, max_value = 0x7fffffffffffffffLL;

/* number reads digits up to the end of the line; -1 if there is anything else. */
static i64 number(const u8 *p, u32 n)
{
	i64 v = 0;
	if (n == 0 || n > 10)
		return -1;
	for (u32 i = 0; i < n; i++) {
		if (p[i] < '0' || p[i] > '9')
			return -1;
		v = v * 10 + (p[i] - '0');
	}
	return v * OG1_UNIT;
}

OG1_EXPORT(og1_configure)(i32 len)
{
	u32 n = (u32)len, from = 0;
	for (u32 i = 0; i <= n; i++) {
		if (i < n && og1.data[i] != '\n')
			continue;
		const u8 *line = og1.data + from;
		u32 size = i - from;
		from = i + 1;
		i64 v = -1;
		if (size == 0)
			continue;
		if (size > 9 && og1_equal(line, (const u8 *)"quantity=", 9))
			max_quantity = v = number(line + 9, size - 9);
		else if (size > 6 && og1_equal(line, (const u8 *)"value=", 6))
			max_value = v = number(line + 6, size - 6);
		if (v < 0)
			return 1;
	}
	return 0;
}

OG1_EXPORT(og1_pre)(void)
{
	if (og1.h.msg_type == 'F')
		return OG1_ACCEPT; /* a cancel is never too large */
	if (og1.h.quantity > max_quantity)
		return og1_refuse(3, "fat-finger: quantity above the limit");
	if ((og1.h.present & OG1_HAS_PRICE) && og1.h.price > 0) {
		i64 units = (og1.h.quantity + OG1_UNIT - 1) / OG1_UNIT;
		if (units > max_value / og1.h.price)
			return og1_refuse(3, "fat-finger: value above the limit");
	}
	return OG1_ACCEPT;
}
