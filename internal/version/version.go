// Package version identifies the build of OrderGrid.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version is set by the linker (`make build`); a plain `go build` leaves it empty.
var Version string

// String is the version for users: the linker's, else the commit recorded by Go, else "dev".
func String() string {
	if Version != "" {
		return Version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return s.Value[:12]
			}
		}
	}
	return "dev"
}

// Line is what `<program> version` prints.
func Line(program string) string {
	return fmt.Sprintf("%s %s %s %s/%s", program, String(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
