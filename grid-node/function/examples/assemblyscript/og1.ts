// The interface of functions, version 1: docs/functions.md. Numbers are read and written in
// memory, so nothing is allocated and nothing imported.

// Places in the area; the names are those of ../c/og1.h.
export const TAG_COUNT: usize = 12;
export const TAGS: usize = 16;
export const SEQ: usize = 80;
export const TIME: usize = 88;
export const QUANTITY: usize = 96;
export const PRICE: usize = 104;
export const MSG_TYPE: usize = 112;
export const SIDE: usize = 113;
export const ORD_TYPE: usize = 114;
export const TIME_IN_FORCE: usize = 115;
export const PRESENT: usize = 116;
export const CL_ORD_ID: usize = 120; // spans: {u32 at, u32 len}
export const SYMBOL: usize = 128;
export const ACCOUNT: usize = 136;
export const PAYLOAD: usize = 144;
export const VALUES: usize = 152;
const OUT: usize = 280;
const REASON: usize = 288;
export const DATA: usize = 296;

export const WANT_PAYLOAD: u32 = 1;
export const HAS_QUANTITY: u32 = 1;
export const HAS_PRICE: u32 = 2;
export const ACCEPT: i32 = 0;
export const REFUSE: i32 = 1;
export const CHANGE: i32 = 2;
export const UNIT: i64 = 100_000_000; // 1 in quantity and price

// The room for data that all functions here have.
const ROOM: i32 = 1024;

// The area: memory.data is memory of the module.
export const area: usize = memory.data(296 + ROOM, 8);

// begin is for og1_area.
export function begin(flags: u32): i32 {
  store<u32>(area, 1);
  store<u32>(area + 4, 296 + ROOM);
  store<u32>(area + 8, flags);
  return area as i32;
}

// The refusal with a reason (tag 103) and a text of ASCII that is a literal.
export function refuse(reason: u32, text: string): i32 {
  const n = min(text.length, ROOM);
  for (let i = 0; i < n; i++) store<u8>(area + DATA + i, text.charCodeAt(i) as u8);
  store<u32>(area + OUT, DATA as u32);
  store<u32>(area + OUT + 4, n);
  store<u32>(area + REASON, reason);
  return REFUSE;
}

// Whether the bytes at p begin with a text of ASCII.
export function begins(p: usize, size: i32, text: string): bool {
  if (size < text.length) return false;
  for (let i = 0; i < text.length; i++) {
    if ((load<u8>(p + i) as i32) != text.charCodeAt(i)) return false;
  }
  return true;
}
