//! fat-finger refuses orders that are too large: a Pre function, as ../../c/fat-finger.c.
//! Configuration: lines quantity=NUMBER and value=NUMBER; value is quantity times price. An
//! order whose quantity or limit price it cannot see is refused, too: it may be any.
#![no_std]
#![no_main]

og1::area!(1024, |_| ());

static mut MAX_QUANTITY: i64 = i64::MAX;
static mut MAX_VALUE: i64 = i64::MAX;

/// A number of at most ten digits, times UNIT.
fn number(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > 10 {
        return None;
    }
    let mut v = 0i64;
    for d in digits {
        if !d.is_ascii_digit() {
            return None;
        }
        v = v * 10 + (d - b'0') as i64;
    }
    Some(v * og1::UNIT)
}

#[no_mangle]
pub extern "C" fn og1_configure(len: i32) -> i32 {
    let config = og1().data.get(..len as usize).unwrap_or(&[]);
    for line in config.split(|c| *c == b'\n').filter(|line| !line.is_empty()) {
        let known = if let Some(digits) = line.strip_prefix(b"quantity=") {
            number(digits).map(|v| unsafe { MAX_QUANTITY = v })
        } else if let Some(digits) = line.strip_prefix(b"value=") {
            number(digits).map(|v| unsafe { MAX_VALUE = v })
        } else {
            None
        };
        if known.is_none() {
            return 1;
        }
    }
    0
}

/// Whether quantity, rounded up, times price is above max_value. No sum and no product overflows.
fn too_much(quantity: i64, price: i64, max_value: i64) -> bool {
    let units = quantity / og1::UNIT;
    units + (quantity > units * og1::UNIT) as i64 > max_value / price
}

#[no_mangle]
pub extern "C" fn og1_pre() -> i32 {
    let (area, max_quantity, max_value) = unsafe { (og1(), MAX_QUANTITY, MAX_VALUE) };
    let order = &area.head;
    if order.msg_type == b'F' {
        return og1::ACCEPT; // a cancel is never too large
    }
    if order.present & og1::HAS_QUANTITY == 0 {
        return area.refuse(3, "fat-finger: no quantity that can be checked");
    }
    if order.quantity > max_quantity {
        return area.refuse(3, "fat-finger: quantity above the limit");
    }
    if order.present & og1::HAS_PRICE == 0 {
        return match order.ord_type {
            b'2' | b'4' | b'7' | b'8' | b'B' | b'F' => area.refuse(3, "fat-finger: no price that can be checked"),
            _ => og1::ACCEPT,
        };
    }
    if order.price > 0 && too_much(order.quantity, order.price, max_value) {
        return area.refuse(3, "fat-finger: value above the limit");
    }
    og1::ACCEPT
}
