/* fat-finger refuses orders that are too large: a Pre function.
 * Configuration: lines quantity=NUMBER and value=NUMBER; value is quantity times price. An
 * order whose quantity or limit price it cannot see is refused, too: it may be any. */
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

/* limited: an order of this type has a limit price. */
static i32 limited(u8 ord_type)
{
	return ord_type == '2' || ord_type == '4' || ord_type == '7' || ord_type == '8' || ord_type == 'B' || ord_type == 'F';
}

/* too_much: quantity, rounded up, times price is above max_value. No sum and no product overflows. */
static i32 too_much(i64 quantity, i64 price)
{
	i64 units = quantity / OG1_UNIT;
	return units + (quantity > units * OG1_UNIT) > max_value / price;
}

OG1_EXPORT(og1_pre)(void)
{
	if (og1.h.msg_type == 'F')
		return OG1_ACCEPT; /* a cancel is never too large */
	if (!(og1.h.present & OG1_HAS_QUANTITY))
		return og1_refuse(3, "fat-finger: no quantity that can be checked");
	if (og1.h.quantity > max_quantity)
		return og1_refuse(3, "fat-finger: quantity above the limit");
	if (!(og1.h.present & OG1_HAS_PRICE))
		return limited(og1.h.ord_type) ? og1_refuse(3, "fat-finger: no price that can be checked") : OG1_ACCEPT;
	if (og1.h.price > 0 && too_much(og1.h.quantity, og1.h.price))
		return og1_refuse(3, "fat-finger: value above the limit");
	return OG1_ACCEPT;
}
