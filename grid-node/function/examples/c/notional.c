/* notional is a Compute function for Maps over orders: per symbol the number of new orders,
 * and quantity times price of all of them. Arguments: a symbol, or none for all.
 * The reply has rows of 48 bytes: orders u64, notional u64 in whole units, its 10^-8 u32,
 * orders without a quantity and a price that it can multiply u32, the symbol filled up with
 * zeros to 24 bytes. The row of an empty symbol has orders without one, those of longer symbols,
 * and those of more than 84 symbols. Error: 1 a call that is no Map over orders. */
#include "og1.h"

OG1_AREA(65472, )

#define SYMBOLS 84
#define SYMBOL 24
#define PLACES 256

static struct {
	u64 orders, whole;
	u32 fraction, without;
	u8 symbol[SYMBOL];
} rows[SYMBOLS + 1]; /* the first is that of others */

static u32 used = 1;
static u8 place[PLACES]; /* of a symbol's row, by hash; 0: none */

/* find returns the row of a symbol. */
static u32 find(const u8 *symbol, u32 n)
{
	if (n == 0 || n > SYMBOL)
		return 0;
	for (u32 i = og1_hash(symbol, n);; i++) {
		u32 at = place[i % PLACES];
		if (at == 0) {
			if (used > SYMBOLS)
				return 0;
			place[i % PLACES] = (u8)used;
			og1_copy(rows[used].symbol, symbol, n);
			return used++;
		}
		if (og1_equal(rows[at].symbol, symbol, n) && (n == SYMBOL || rows[at].symbol[n] == 0))
			return at;
	}
}

/* add adds quantity times price, 10^-8 each, as long as it is below 2^63 units of 10^-8. */
static void add(u32 at, i64 quantity, i64 price)
{
	u64 q1 = (u64)quantity / OG1_UNIT, q0 = (u64)quantity % OG1_UNIT;
	u64 p1 = (u64)price / OG1_UNIT, p0 = (u64)price % OG1_UNIT;
	if (quantity < 0 || price < 0 || (q1 > 0 && p1 >= 90000000000ULL / q1)) {
		rows[at].without++;
		return;
	}
	u64 low = q1 * p0 + q0 * p1 + q0 * p0 / OG1_UNIT; /* below 2^64: q1 * p1 is below 9e10 */
	u64 fraction = rows[at].fraction + low % OG1_UNIT;
	rows[at].whole += q1 * p1 + low / OG1_UNIT + fraction / OG1_UNIT;
	rows[at].fraction = (u32)(fraction % OG1_UNIT);
}

static i32 wrong(void)
{
	static const char text[] = "call it in a Map over orders";
	og1_copy(og1.data, (const u8 *)text, sizeof text - 1);
	og1.h.out.at = sizeof og1.h;
	og1.h.out.len = sizeof text - 1;
	return 1;
}

OG1_EXPORT(og1_compute)(void)
{
	if (og1_source != OG1_ORDERS)
		return wrong();
	if (og1_step == OG1_END) {
		/* without a row of others if there are none */
		u32 from = rows[0].orders == 0;
		og1_copy(og1.data, (const u8 *)&rows[from], (used - from) * sizeof rows[0]);
		og1.h.out.at = sizeof og1.h;
		og1.h.out.len = (used - from) * sizeof rows[0];
		return 0;
	}
	const struct og1_span symbol = og1.h.symbol, only = og1.h.payload;
	if (og1.h.msg_type != 'D')
		return 0;
	if (only.len > 0 && (only.len != symbol.len || !og1_equal(og1_at(only), og1_at(symbol), only.len)))
		return 0;
	u32 at = find(og1_at(symbol), symbol.len);
	rows[at].orders++;
	if ((og1.h.present & (OG1_HAS_QUANTITY | OG1_HAS_PRICE)) == (OG1_HAS_QUANTITY | OG1_HAS_PRICE))
		add(at, og1.h.quantity, og1.h.price);
	else
		rows[at].without++;
	return 0;
}
