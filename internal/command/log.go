package command

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/pflag"
)

// LogFlags are --log-level and --log-format.
type LogFlags struct{ level, format string }

// Register adds the flags. format is the default of --log-format: text where a person starts the program, json where
// a pod's template does.
func (f *LogFlags) Register(fl *pflag.FlagSet, format string) {
	fl.StringVar(&f.level, "log-level", "info", "debug, info, warn or error")
	fl.StringVar(&f.format, "log-format", format, "text or json")
}

// Logger returns a logger that writes to w as the flags want it, or an error of the command line.
func (f *LogFlags) Logger(w io.Writer) (*slog.Logger, error) { return Logger(w, f.level, f.format) }

// Logger returns a logger of a level and a format, by the words of the flags.
func Logger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, BadUsage(fmt.Errorf("--log-level: value %q, allowed: debug, info, warn, error", level))
	}
	o := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, BadUsage(fmt.Errorf("--log-format: value %q, allowed: text, json", format))
}
