#!/bin/sh
# Builds a function from Rust: build.sh FILE.rs FILE.wasm. The bytes are the same wherever rustc 1.63 with its core for
# wasm32 and lld 14 are (Debian 12: rustc, libstd-rust-dev-wasm32, lld-14). With another: cargo build --release
# --target wasm32-unknown-unknown --example fat-finger, in this folder.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build() { "${RUSTC:-/usr/bin/rustc}" --edition 2021 --target wasm32-unknown-unknown -D warnings -C opt-level=2 -C codegen-units=1 -C panic=abort "$@"; }
build --crate-name og1 --crate-type rlib --remap-path-prefix "$here=." -o "$work/libog1.rlib" "$here/src/lib.rs"
build --crate-name og1_function --crate-type cdylib --remap-path-prefix "$(dirname "$1")=." --extern og1="$work/libog1.rlib" \
	-C lto=fat -C linker=wasm-ld-14 -C strip=symbols -C link-arg=-zstack-size=4096 -o "$2" "$1"
