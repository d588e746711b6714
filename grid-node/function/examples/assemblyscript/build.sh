#!/bin/sh
# Builds a function from AssemblyScript: build.sh FILE.ts FILE.wasm. The bytes are the same wherever the compiler is
# version 0.28.20 (npm: assemblyscript). --use abort= and --exportStart make a module that imports nothing and has no
# start function; the runtime adds nothing as long as nothing is allocated.
set -eu
exec "${ASC:-asc}" "$1" -o "$2" -O2 --runtime stub --use abort= --exportStart _initialize --noExportMemory \
	--disable nontrapping-f2i
