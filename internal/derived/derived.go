// Package derived is what programs have in common that make files of the tree from others of it.
package derived

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Files are the contents by path below the root.
type Files map[string][]byte

// Update writes the files that differ from the tree below root, unless verify is set, and names them. A file that matches
// one of the patterns, paths below root too, and is not among Files differs as well, and is removed.
func (f Files) Update(root string, verify bool, patterns ...string) (drifted []string, err error) {
	for name, want := range f {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if err != nil || !bytes.Equal(got, want) {
			drifted = append(drifted, name)
		}
	}
	for _, pattern := range patterns {
		there, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range there {
			name := filepath.Join(filepath.Dir(pattern), filepath.Base(path))
			if _, made := f[name]; !made {
				drifted = append(drifted, name)
			}
		}
	}
	slices.Sort(drifted)
	if verify {
		return drifted, nil
	}
	for _, name := range drifted {
		if err := f.install(root, name); err != nil {
			return nil, err
		}
	}
	return drifted, nil
}

// install writes a file; one that is not made is removed.
func (f Files) install(root, name string) error {
	path := filepath.Join(root, name)
	data, made := f[name]
	if !made {
		return os.Remove(path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644) //nolint:gosec // files of the tree
}

// Main is a program of that name which updates files: with --verify it writes nothing, and exits 1 if there are some to
// update. from says what they are derived from. Other flags are registered before.
func Main(name, from string, update func(verify bool) ([]string, error)) {
	verify := flag.Bool("verify", false, "compare only; exit 1 and name every file that has drifted")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%s: unknown argument %q; allowed: flags, see --help\n", name, flag.Arg(0))
		os.Exit(2)
	}
	drifted, err := update(*verify)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(2)
	}
	for _, file := range drifted {
		if *verify {
			fmt.Printf("%s: %s differs from %s; run `make generate` and read the difference\n", name, file, from)
		} else {
			fmt.Printf("%s: wrote %s\n", name, file)
		}
	}
	if *verify && len(drifted) > 0 {
		os.Exit(1)
	}
}
