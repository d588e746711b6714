//! The interface of functions, version 1: docs/functions.md. For wasm32-unknown-unknown,
//! without std. What the fields are is in examples/c/og1.h too, under the same names.
#![no_std]

/// A place in the area, counted from its start.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Span {
    pub at: u32,
    pub len: u32,
}

const NOWHERE: Span = Span { at: 0, len: 0 };

/// The area. The module fills version to tags before og1_area returns; data follows it.
#[repr(C)]
pub struct Head {
    pub version: u32,
    pub size: u32,
    pub flags: u32,
    pub tag_count: u32,
    pub tags: [u32; 16],
    pub seq: u64,
    pub time: i64,
    pub quantity: i64,
    pub price: i64,
    pub msg_type: u8,
    pub side: u8,
    pub ord_type: u8,
    pub time_in_force: u8,
    pub present: u32,
    pub cl_ord_id: Span,
    pub symbol: Span,
    pub account: Span,
    pub payload: Span,
    pub values: [Span; 16],
    pub out: Span,
    pub reason: u32,
    pub action: u32,
}

pub const PAYLOAD: u32 = 1; // in flags: the message is wanted
pub const HAS_QUANTITY: u32 = 1; // in present
pub const HAS_PRICE: u32 = 2;
pub const ACCEPT: i32 = 0; // results of og1_pre
pub const REFUSE: i32 = 1;
pub const CHANGE: i32 = 2;
pub const UNIT: i64 = 100_000_000; // 1 in quantity and price

/// The area with room for data.
#[repr(C)]
pub struct Area<const ROOM: usize> {
    pub head: Head,
    pub data: [u8; ROOM],
}

impl<const ROOM: usize> Area<ROOM> {
    pub const NEW: Self = Area {
        head: Head {
            version: 1,
            size: core::mem::size_of::<Self>() as u32,
            flags: 0,
            tag_count: 0,
            tags: [0; 16],
            seq: 0,
            time: 0,
            quantity: 0,
            price: 0,
            msg_type: 0,
            side: 0,
            ord_type: 0,
            time_in_force: 0,
            present: 0,
            cl_ord_id: NOWHERE,
            symbol: NOWHERE,
            account: NOWHERE,
            payload: NOWHERE,
            values: [NOWHERE; 16],
            out: NOWHERE,
            reason: 0,
            action: 0,
        },
        data: [0; ROOM],
    };

    /// The bytes at a place, none if it is not in the area.
    pub fn at(&self, s: Span) -> &[u8] {
        let from = (s.at as usize).wrapping_sub(core::mem::size_of::<Head>());
        match from.checked_add(s.len as usize) {
            Some(to) if s.at as usize >= core::mem::size_of::<Head>() => self.data.get(from..to).unwrap_or(&[]),
            _ => &[],
        }
    }

    /// Makes bytes the output; those that do not fit the room are left out.
    pub fn output(&mut self, bytes: &[u8]) {
        let mut len = 0;
        for (to, from) in self.data.iter_mut().zip(bytes) {
            *to = *from;
            len += 1;
        }
        self.head.out = Span { at: core::mem::size_of::<Head>() as u32, len };
    }

    /// The refusal with a reason (tag 103) and a text.
    pub fn refuse(&mut self, reason: u32, text: &str) -> i32 {
        self.output(text.as_bytes());
        self.head.reason = reason;
        REFUSE
    }
}

/// `area!(1024, |head| head.flags = og1::PAYLOAD)` defines the area with room for 1024 bytes
/// of data, and og1_area, which runs the closure. `og1()` is the area: one at a time.
#[macro_export]
macro_rules! area {
    ($room:expr, $fill:expr) => {
        static mut AREA: $crate::Area<{ $room }> = $crate::Area::NEW;

        fn og1() -> &'static mut $crate::Area<{ $room }> {
            unsafe { &mut *core::ptr::addr_of_mut!(AREA) }
        }

        #[no_mangle]
        pub extern "C" fn og1_area() -> i32 {
            let fill: fn(&mut $crate::Head) = $fill;
            fill(&mut og1().head);
            og1() as *mut $crate::Area<{ $room }> as i32
        }
    };
}

/// A panic is a trap: the call fails.
#[cfg(target_arch = "wasm32")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    core::arch::wasm32::unreachable()
}
