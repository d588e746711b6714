/* add is a Compute function: it adds the arguments, an i64, to the value of a key, an i64
 * that is 0 where there is none, and answers with the sum. With 16 bytes of arguments the
 * second i64 is the least that the sum may be. Errors: 1 a value or arguments of another
 * size, 2 the sum does not fit, 3 it would be less than the least. */
#include "og1.h"

OG1_AREA(65472, )

static i64 number(const u8 *p)
{
	u64 v = 0;
	for (u32 i = 0; i < 8; i++)
		v |= (u64)p[i] << (8 * i);
	return (i64)v;
}

static i32 fail(i32 code, const char *text, u32 n)
{
	og1_copy(og1.data, (const u8 *)text, n);
	og1.h.out.at = sizeof og1.h;
	og1.h.out.len = n;
	return code;
}

#define FAIL(code, text) fail((code), (text), sizeof(text) - 1)

OG1_EXPORT(og1_compute)(void)
{
	u32 args = og1.h.payload.len;
	if ((args != 8 && args != 16) || (og1.h.seq != 0 && og1_value.len != 8))
		return FAIL(1, "the value and the arguments have 8 bytes each");
	i64 sum = og1.h.seq != 0 ? number(og1_at(og1_value)) : 0;
	if (__builtin_add_overflow(sum, number(og1_at(og1.h.payload)), &sum))
		return FAIL(2, "the sum does not fit 64 bits");
	if (args == 16 && sum < number(og1_at(og1.h.payload) + 8))
		return FAIL(3, "the sum would be less than the least");
	for (u32 i = 0; i < 8; i++)
		og1.data[i] = (u8)((u64)sum >> (8 * i));
	og1_set.at = og1.h.out.at = sizeof og1.h;
	og1_set.len = og1.h.out.len = 8;
	og1.h.action = OG1_SET;
	return 0;
}
