/* count-accounts counts orders and adds their quantities for each account: a Post function.
 * A record is {u64 orders, i64 quantity, i64 time, u64 all orders, account}: of the order's
 * account with this order, and of all. Cancels and replaces (35=F, 35=G) are not counted.
 * Accounts beyond ACCOUNTS are counted together as *. */
#include "og1.h"

#define ACCOUNTS 512
#define NAME 64

OG1_AREA(512, )

static struct account {
	u64 orders;
	i64 quantity;
	u32 len;
	u8 name[NAME];
} accounts[ACCOUNTS], others = {0, 0, 1, "*"};

static u32 known;
static u64 all;

static struct account *find(const u8 *name, u32 len)
{
	u32 at = og1_hash(name, len) % ACCOUNTS;
	for (;; at = (at + 1) % ACCOUNTS) {
		struct account *a = &accounts[at];
		if (a->orders == 0) {
			if (known == ACCOUNTS / 2 || len > NAME)
				return &others;
			known++;
			a->len = len;
			og1_copy(a->name, name, len);
			return a;
		}
		if (a->len == len && og1_equal(a->name, name, len))
			return a;
	}
}

static struct {
	u64 orders;
	i64 quantity, time;
	u64 all;
	u8 name[NAME];
} record;

OG1_EXPORT(og1_post)(void)
{
	if (og1.h.msg_type != 'D')
		return 0;
	struct account *a = find(og1_at(og1.h.account), og1.h.account.len);
	a->orders++;
	if (og1.h.present & OG1_HAS_QUANTITY)
		a->quantity += og1.h.quantity;
	record.orders = a->orders;
	record.quantity = a->quantity;
	record.time = og1.h.time;
	record.all = ++all;
	og1_copy(record.name, a->name, a->len);
	og1_copy(og1.data, (u8 *)&record, 32 + a->len);
	og1.h.out.at = sizeof og1.h;
	og1.h.out.len = 32 + a->len;
	return 1;
}
