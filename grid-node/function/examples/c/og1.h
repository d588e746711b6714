/* The interface of functions, version 1: docs/functions.md. For freestanding C, wasm32. */
#ifndef OG1_H
#define OG1_H

typedef unsigned char u8;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

/* A place in the area, counted from its start. */
struct og1_span {
	u32 at, len;
};

/* The area. The module fills what is marked so before og1_area returns; data follows it. */
struct og1_head {
	u32 version;                 /* module: 1 */
	u32 size;                    /* module: of the whole area with its data */
	u32 flags;                   /* module: 1 if it wants the message */
	u32 tag_count;               /* module */
	u32 tags[16];                /* module: tags whose values it wants */
	u64 seq;                     /* of the entry; 0 in Pre */
	i64 time;                    /* nanoseconds since 1970 */
	i64 quantity, price;         /* tags 38 and 44, times 1e8 */
	u8 msg_type, side, ord_type, time_in_force;
	u32 present;                 /* 1: quantity, 2: price */
	struct og1_span cl_ord_id, symbol, account, payload;
	struct og1_span values[16];  /* of tags; len 0: not in the message */
	struct og1_span out;         /* module: its output */
	u32 reason;                  /* module: of a refusal, tag 103 */
	u32 action;                  /* module: of Compute with a key, OG1_KEEP, OG1_SET or OG1_REMOVE */
};

/* Compute with a key of a region: seq is the version of its value, 0 if there is none,
 * payload has the arguments, and these are where an order has other things. */
#define og1_key    og1.h.cl_ord_id
#define og1_region og1.h.symbol
#define og1_value  og1.h.values[0] /* the present value */
#define og1_set    og1.h.values[1] /* module: the new one, with OG1_SET */
#define OG1_KEEP 0
#define OG1_SET 1
#define OG1_REMOVE 2

/* A call of a Map: og1_step is OG1_ROW for an entry, and OG1_END when there is none any more,
 * from the beginning where there is no region; 0 for a call about one key. This is slice
 * og1_slice of og1_slices. The last call answers; with OG1_AGAIN it is made once more, so
 * that no call takes long. Memory lasts as long as the Map. */
#define og1_step   og1.h.values[2].at
#define og1_slice  og1.h.values[2].len
#define og1_slices og1.h.values[3].at
/* OG1_ORDERS: of a Map over orders. A row is an order, with seq, time, quantity to account of
 * its own and the message in og1_message; there is no key and no region. */
#define og1_source  og1.h.values[3].len
#define og1_message og1.h.values[0]
#define OG1_KEYS 0
#define OG1_ORDERS 1
#define OG1_ROW 1
#define OG1_END 2
#define OG1_AGAIN 3

#define OG1_PAYLOAD 1
#define OG1_HAS_QUANTITY 1
#define OG1_HAS_PRICE 2
#define OG1_ACCEPT 0
#define OG1_REFUSE 1
#define OG1_CHANGE 2
#define OG1_UNIT 100000000LL /* 1 in quantity and price */

#define OG1_EXPORT(name) __attribute__((export_name(#name))) i32 name

/* OG1_AREA(1024, og1.h.flags = OG1_PAYLOAD) defines the area with room for 1024 bytes of
 * data, and og1_area, which runs the statement. */
#define OG1_AREA(room, statement)                                               \
	static struct { struct og1_head h; u8 data[room]; } og1;                    \
	OG1_EXPORT(og1_area)(void)                                                  \
	{                                                                           \
		og1.h.version = 1;                                                      \
		og1.h.size = sizeof og1;                                                \
		statement;                                                              \
		return (i32)&og1;                                                       \
	}                                                                           \
	__attribute__((unused)) static inline u8 *og1_at(struct og1_span s)         \
	{                                                                           \
		return (u8 *)&og1 + s.at;                                               \
	}

static inline i32 og1_equal(const u8 *a, const u8 *b, u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (a[i] != b[i])
			return 0;
	return 1;
}

static inline void og1_copy(u8 *to, const u8 *from, u32 n)
{
	for (u32 i = 0; i < n; i++)
		to[i] = from[i];
}

static inline u32 og1_hash(const u8 *p, u32 n)
{
	u32 h = 2166136261u; /* FNV-1a */
	for (u32 i = 0; i < n; i++)
		h = (h ^ p[i]) * 16777619u;
	return h;
}

/* The refusal with a reason and a text that is a literal. */
#define og1_refuse(why, text) og1_refuse_text((why), (const u8 *)(text), sizeof(text) - 1)
#define og1_refuse_text(why, text, n)                                           \
	(og1_copy(og1.data, (text), (n)), og1.h.out.at = sizeof og1.h,              \
	 og1.h.out.len = (n), og1.h.reason = (why), OG1_REFUSE)

#endif
