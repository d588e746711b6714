package gridfunction

import (
	"errors"
	"os"
	"strings"
	"testing"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
)

func specOf(kind api.FunctionKind) api.GridFunctionSpec {
	return api.GridFunctionSpec{Kind: kind, Fuel: 100_000, MemoryPages: 16, Reads: api.FunctionReadsMessage}
}

// withImport is a module that imports env.now.
var withImport = []byte("\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + "\x02\x0b\x01\x03env\x03now\x00\x00")

// TestCheck: the operator accepts what a node loads, and refuses what no node would load, with the place.
func TestCheck(t *testing.T) {
	nan, err := os.ReadFile("../../grid-node/function/testdata/hostile/8-nan.wasm")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		kind   api.FunctionKind
		module []byte
		config string
		change func(*api.GridFunctionSpec)
		want   string // reason, or what it asks for
		text   string
	}{
		"pre":                {api.FunctionPre, examples.FatFinger, "quantity=10\n", nil, "Tags", ""},
		"pre without tags":   {api.FunctionPre, examples.FatFinger, "quantity=10\n", func(s *api.GridFunctionSpec) { s.Reads = api.FunctionReadsTags }, "Tags", ""},
		"post":               {api.FunctionPost, examples.CountAccounts, "", nil, "Tags", ""},
		"the message":        {api.FunctionPost, examples.AuditTrail, "", nil, "Message", ""},
		"compute":            {api.FunctionCompute, examples.Add, "", nil, "", ""},
		"no compute":         {api.FunctionCompute, examples.FatFinger, "quantity=10\n", nil, reasonModuleRefused, `no export "og1_compute"`},
		"no message granted": {api.FunctionPost, examples.AuditTrail, "", func(s *api.GridFunctionSpec) { s.Reads = api.FunctionReadsTags }, reasonNotGranted, "asks for the whole message"},
		"another kind":       {api.FunctionPost, examples.FatFinger, "", nil, reasonModuleRefused, `no export "og1_post"`},
		"floats in Post":     {api.FunctionPost, nan, "", nil, reasonModuleRefused, "module refused at offset"},
		"an import":          {api.FunctionPre, withImport, "", nil, reasonModuleRefused, "import"},
		"too little fuel":    {api.FunctionPre, examples.FatFinger, "quantity=10\n", func(s *api.GridFunctionSpec) { s.Fuel = 1 }, reasonModuleRefused, "fuel"},
		"no module":          {api.FunctionPre, []byte("#!/bin/sh"), "", nil, reasonModuleRefused, "module refused"},
		"a wrong config":     {api.FunctionPre, examples.FatFinger, "quantity=much\n", nil, reasonModuleRefused, "configur"},
		"too little memory":  {api.FunctionPost, examples.AuditTrail, "", func(s *api.GridFunctionSpec) { s.MemoryPages = 1 }, reasonModuleRefused, "page"},
		"a tag that decides": {api.FunctionPre, examples.EnrichClient, "A=B\n", func(s *api.GridFunctionSpec) { s.SetTags = []int32{453} }, reasonNotGranted, "tag 453 cannot be granted"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := specOf(c.kind)
			if c.change != nil {
				c.change(&spec)
			}
			files := &Files{Module: c.module}
			if c.config != "" {
				files.Config = []byte(c.config)
			}
			found, err := check(t.Context(), &spec, files)
			var p *Problem
			switch {
			case errors.As(err, &p):
				if p.Reason != c.want || !strings.Contains(p.Text, c.text) {
					t.Errorf("%s: %s\nwant %s: … %s", p.Reason, p.Text, c.want, c.text)
				}
			case err != nil || string(found.Asks) != c.want:
				t.Errorf("%+v, %v; want %s", found, err, c.want)
			}
		})
	}
}

// TestGranted: a tag that a module asks for has to be listed.
func TestGranted(t *testing.T) {
	spec := specOf(api.FunctionPre)
	asks := &api.FunctionModuleStatus{Asks: api.FunctionReadsTags, Tags: []int32{55, 528}}
	if err := granted(&spec, asks); err != nil {
		t.Errorf("with the message granted: %v", err)
	}
	spec.Reads, spec.ReadTags = api.FunctionReadsTags, []int32{55}
	if err := granted(&spec, asks); err == nil || !strings.Contains(err.Error(), "tag 528") {
		t.Errorf("tag 528 is not granted: %v", err)
	}
	spec.ReadTags = []int32{528, 55}
	if err := granted(&spec, asks); err != nil {
		t.Error(err)
	}
}

// TestBounds: files that a log or a ConfigMap cannot have are refused before they are loaded.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		kind           api.FunctionKind
		module, config int
		ok             bool
	}{
		{api.FunctionPre, maxFiles, 0, true}, {api.FunctionPre, maxFiles - 1, 1, true}, {api.FunctionPre, maxFiles, 1, false},
		{api.FunctionPost, maxPostModule, maxPostConfig, true}, {api.FunctionPost, maxPostModule + 1, 0, false}, {api.FunctionPost, 1, maxPostConfig + 1, false},
	} {
		if err := bounded(c.kind, &Files{make([]byte, c.module), make([]byte, c.config)}); (err == nil) != c.ok {
			t.Errorf("%s of %d and %d bytes: %v", c.kind, c.module, c.config, err)
		}
	}
}

func TestFilesDigest(t *testing.T) {
	a := specOf(api.FunctionPre)
	a.Module.SHA256 = "aa"
	b := a
	b.Config = &api.FunctionFile{SHA256: "bb"}
	c := a
	c.Fuel++
	if FilesDigest(&a) == FilesDigest(&b) || FilesDigest(&a) != FilesDigest(&c) || len(FilesDigest(&a)) != 20 {
		t.Errorf("%s, with a configuration %s, with other fuel %s", FilesDigest(&a), FilesDigest(&b), FilesDigest(&c))
	}
}
