#!/bin/sh
# Builds a function from C: build.sh FILE.c FILE.wasm. The bytes are the same wherever
# clang 14 and lld 14 are (Debian 12: clang-14, lld-14).
set -eu
exec "${CLANG:-clang-14}" --target=wasm32-unknown-unknown -std=c11 -O2 -Wall -Wextra -Werror -ffreestanding -fno-builtin -nostdlib \
	-I "$(dirname "$0")" \
	-Wl,--no-entry -Wl,--strip-all -Wl,-z,stack-size=4096 -Wl,--initial-memory="${MEMORY:-524288}" \
	-o "$2" "$1"
