package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ordergrid/ordergrid/grid-node/function"
	"github.com/ordergrid/ordergrid/grid-node/node"
)

// functionFlags are those of functions that orders pass.
type functionFlags struct {
	pre     []string
	post    []string
	compute []string
	stamp   uint32
}

const functionForm = "NAME=FILE:sha256=HEX[,fuel=N][,memory=QUANTITY][,onError=Reject|Pass][,tags=TAG+TAG][,config=FILE,configSHA256=HEX]"

const postForm = "NAME=FILE:sha256=HEX[,fuel=N][,memory=QUANTITY][,config=FILE,configSHA256=HEX]"

func (f *functionFlags) add(fl *pflag.FlagSet) {
	fl.StringArrayVar(&f.pre, "function-pre", nil, functionForm+", a WebAssembly module that decides on orders before they are entries, see docs/functions.md; repeat for more, they are called in order. The same on every node of the grid; fuel is 100000 and memory 1Mi by default, onError Reject")
	fl.StringArrayVar(&f.post, "function-post", nil, postForm+", a WebAssembly module that every copy calls for each order that it stores, see docs/functions.md; repeat for more, they are called in order. Once every node of the grid has the same ones, the log of each partition changes to them; fuel is 100000 and memory 1Mi by default")
	fl.StringArrayVar(&f.compute, "function-compute", nil, postForm+", a WebAssembly module that clients call with a key of a region and its value, see docs/functions.md; repeat for more. The same on every node of the grid; needs --regions; fuel is 100000 and memory 1Mi by default")
	fl.Uint32Var(&f.stamp, "function-stamp", 0, "tag that is set in each order that the functions accept, to the first 16 digits of the SHA-256 of all that decides; 0 none")
}

// options returns nil without functions.
func (f *functionFlags) options() (*node.Functions, error) {
	if len(f.pre) == 0 && len(f.post) == 0 && len(f.compute) == 0 || len(f.pre) == 0 && f.stamp != 0 {
		if f.stamp != 0 {
			return nil, fmt.Errorf("--function-stamp: value %d, allowed: 0 without --function-pre", f.stamp)
		}
		return nil, nil
	}
	fs := &node.Functions{Stamp: f.stamp}
	for _, text := range f.pre {
		p, err := parseFunction("--function-pre", functionForm, text)
		if err != nil {
			return nil, err
		}
		fs.Pre = append(fs.Pre, *p)
	}
	var err error
	if fs.Post, err = undecided("--function-post", f.post); err != nil {
		return nil, err
	}
	if fs.Compute, err = undecided("--function-compute", f.compute); err != nil {
		return nil, err
	}
	return fs, nil
}

// undecided reads the values of a flag for functions that decide on no orders.
func undecided(flag string, texts []string) (list []node.PostFunction, err error) {
	for _, text := range texts {
		p, err := parseFunction(flag, postForm, text)
		if err != nil {
			return nil, err
		}
		if len(p.Tags) > 0 || p.OnError != function.Reject {
			return nil, fmt.Errorf("%s: value %q: onError and tags are of functions that decide; allowed: %s", flag, text, postForm)
		}
		list = append(list, node.PostFunction{Name: p.Name, Module: p.Module, SHA256: p.SHA256, Fuel: p.Fuel, Pages: p.Pages, Config: p.Config})
	}
	return list, nil
}

// parseFunction reads the value of a flag and the files that it names.
func parseFunction(flag, form, text string) (*node.PreFunction, error) {
	bad := func(what string) error {
		return fmt.Errorf("%s: value %q: %s; allowed: %s", flag, text, what, form)
	}
	name, rest, ok := strings.Cut(text, "=")
	at := strings.LastIndex(rest, ":sha256=")
	if !ok || at <= 0 {
		return nil, bad("no NAME, FILE or sha256")
	}
	p, pinned := &node.PreFunction{Name: name}, pin{}
	for _, field := range strings.Split(rest[at+1:], ",") {
		key, value, _ := strings.Cut(field, "=")
		if key == "configSHA256" {
			pinned.want = value
			continue
		}
		if err := setFunction(p, key, value); err != nil {
			return nil, bad(err.Error())
		}
	}
	if err := pinned.check(p.Config); err != nil {
		return nil, bad(err.Error())
	}
	var err error
	if p.Module, err = readModule(rest[:at]); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", flag, name, err)
	}
	return p, nil
}

// pin is the digest that a configuration has to have, "" for any.
type pin struct{ want string }

func (p *pin) check(config []byte) error {
	if got := fmt.Sprintf("%x", sha256.Sum256(config)); p.want != "" && got != p.want {
		return fmt.Errorf("the configuration has sha256 %s; deploy the one that was named, or name the one that is deployed", got)
	}
	return nil
}

// readModule reads no more than a module may have.
func readModule(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > function.MaxModule {
		return nil, fmt.Errorf("%s has %d bytes, allowed: %d", path, info.Size(), function.MaxModule)
	}
	return os.ReadFile(path)
}

func setFunction(p *node.PreFunction, key, value string) error {
	switch key {
	case "sha256":
		b, err := hex.DecodeString(value)
		if err != nil || len(b) != len(p.SHA256) {
			return fmt.Errorf("sha256 is %q, 64 hexadecimal digits are expected", value)
		}
		copy(p.SHA256[:], b)
	case "fuel":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 1 {
			return fmt.Errorf("fuel is %q, a whole number from 1 is expected", value)
		}
		p.Fuel = n
	case "memory":
		q, err := resource.ParseQuantity(value)
		if err != nil || q.Value() < 64<<10 || q.Value()%(64<<10) != 0 || q.Value() > 1<<32 {
			return fmt.Errorf("memory is %q, a multiple of 64Ki is expected", value)
		}
		p.Pages = uint32(q.Value() >> 16)
	case "onError":
		if value != function.Reject.String() && value != function.Pass.String() {
			return fmt.Errorf("onError is %q", value)
		}
		if value == function.Pass.String() {
			p.OnError = function.Pass
		}
	case "tags":
		for _, t := range strings.Split(value, "+") {
			n, err := strconv.ParseUint(t, 10, 32)
			if err != nil {
				return fmt.Errorf("a tag is %q", t)
			}
			p.Tags = append(p.Tags, uint32(n))
		}
	case "config":
		b, err := os.ReadFile(value)
		if err != nil {
			return err
		}
		p.Config = b
	default:
		return fmt.Errorf("%q is not known", key)
	}
	return nil
}
