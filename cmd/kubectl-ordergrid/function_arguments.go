package main

import (
	"encoding/hex"
	"fmt"

	"github.com/spf13/cobra"
)

// argumentsHelp is for the help of commands that call functions.
const argumentsHelp = `Arguments are bytes, in the form that the function expects: text (--args), hexadecimal digits (--args-hex) or
a file (--args-file, - for standard input); none by default.`

// argumentFlags are the arguments of a call of a function.
type argumentFlags struct{ args, argsHex, argsFile string }

func (f *argumentFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.args, "args", "", "arguments, as text")
	fl.StringVar(&f.argsHex, "args-hex", "", "arguments, in hexadecimal digits")
	fl.StringVar(&f.argsFile, "args-file", "", "file with the arguments, - for standard input")
}

// arguments are those of the call.
func (f *argumentFlags) arguments(cmd *cobra.Command) ([]byte, error) {
	given := 0
	for _, flag := range []string{"args", "args-hex", "args-file"} {
		if cmd.Flags().Changed(flag) {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, usageError{fmt.Errorf("%d of --args, --args-hex and --args-file, allowed: at most one of them", given)}
	case f.argsFile != "":
		return readValue(cmd, "args-file", f.argsFile)
	case f.argsHex != "":
		b, err := hex.DecodeString(f.argsHex)
		if err != nil {
			return nil, usageError{fmt.Errorf("--args-hex: value %.80q: %w, allowed: two hexadecimal digits for each byte", f.argsHex, err)}
		}
		return b, nil
	}
	return []byte(f.args), nil
}
