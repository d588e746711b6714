// fat-finger refuses orders that are too large: a Pre function, as ../c/fat-finger.c.
// Configuration: lines quantity=NUMBER and value=NUMBER; value is quantity times price. An
// order whose quantity or limit price it cannot see is refused, too: it may be any.
import * as og1 from "./og1";

let maxQuantity: i64 = i64.MAX_VALUE;
let maxValue: i64 = i64.MAX_VALUE;

export function og1_area(): i32 {
  return og1.begin(0);
}

// A number of at most ten digits, times UNIT; -1 if there is anything else.
function number(p: usize, n: i32): i64 {
  if (n <= 0 || n > 10) return -1;
  let v: i64 = 0;
  for (let i = 0; i < n; i++) {
    const d = (load<u8>(p + i) as i32) - 48;
    if (d < 0 || d > 9) return -1;
    v = v * 10 + (d as i64);
  }
  return v * og1.UNIT;
}

export function og1_configure(n: i32): i32 {
  const data = og1.area + og1.DATA;
  let from = 0;
  for (let i = 0; i <= n; i++) {
    if (i < n && load<u8>(data + i) != 10) continue;
    const line = data + from;
    const size = i - from;
    from = i + 1;
    if (size == 0) continue;
    let v: i64 = -1;
    if (og1.begins(line, size, "quantity=")) maxQuantity = v = number(line + 9, size - 9);
    else if (og1.begins(line, size, "value=")) maxValue = v = number(line + 6, size - 6);
    if (v < 0) return 1;
  }
  return 0;
}

// An order of this type has a limit price.
function limited(t: u8): bool {
  return t == 50 || t == 52 || t == 55 || t == 56 || t == 66 || t == 70; // 2, 4, 7, 8, B, F
}

// Whether quantity, rounded up, times price is above the limit. No sum and no product overflows.
function tooMuch(quantity: i64, price: i64): bool {
  const units = quantity / og1.UNIT;
  return units + ((quantity > units * og1.UNIT) as i64) > maxValue / price;
}

export function og1_pre(): i32 {
  const a = og1.area;
  if (load<u8>(a, og1.MSG_TYPE) == 70 /* F */) return og1.ACCEPT; // a cancel is never too large
  const present = load<u32>(a, og1.PRESENT);
  if (!(present & og1.HAS_QUANTITY)) return og1.refuse(3, "fat-finger: no quantity that can be checked");
  const quantity = load<i64>(a, og1.QUANTITY);
  if (quantity > maxQuantity) return og1.refuse(3, "fat-finger: quantity above the limit");
  const price = load<i64>(a, og1.PRICE);
  if (!(present & og1.HAS_PRICE)) {
    return limited(load<u8>(a, og1.ORD_TYPE)) ? og1.refuse(3, "fat-finger: no price that can be checked") : og1.ACCEPT;
  }
  if (price > 0 && tooMuch(quantity, price)) return og1.refuse(3, "fat-finger: value above the limit");
  return og1.ACCEPT;
}
