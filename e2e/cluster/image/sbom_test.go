package image

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const someID = "sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// schema is CycloneDX's own, out of its Go module.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	at := func(name string) string { return "http://cyclonedx.org/schema/" + name }
	for name, file := range map[string]string{"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json"} {
		data, err := os.Open(filepath.Join(strings.TrimSpace(string(dir)), "schema", file))
		if err != nil {
			t.Fatal(err)
		}
		document, err := jsonschema.UnmarshalJSON(data)
		data.Close()
		if err == nil {
			err = c.AddResource(at(name), document)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.Compile(at("bom-1.6.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, data []byte) error {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(document)
}

// TestBillOfMaterials: it is valid and names every file. The program here is this test, which Go links without a list of
// modules; TestTwoClonesGiveTheSameImages has one with a list.
func TestBillOfMaterials(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	data, err := os.ReadFile(program)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "app"), data, 0o700) //nolint:gosec // a program
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "notice"), []byte("text"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	d, err := Parse(strings.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	d.Labels[labelVersion] = "v1.2.3"
	bom, err := BillOfMaterials(d, dir, "ordergrid.dev/app:dev", someID)
	if err != nil {
		t.Fatal(err)
	}
	s := schema(t)
	if err := validate(t, s, bom); err != nil {
		t.Errorf("%v\n%s", err, bom)
	}
	if wrong := bytes.Replace(bom, []byte(`"type": "library"`), []byte(`"type": "nonsense"`), 1); validate(t, s, wrong) == nil {
		t.Error("the schema takes a component of type nonsense: it checks nothing")
	}
	read := &cyclonedx.BOM{}
	if err := json.Unmarshal(bom, read); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range *read.Components {
		got = append(got, c.BOMRef)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"file:/NOTICE", "file:/bin/app", "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}
	if !slices.Equal(got, want) {
		t.Errorf("components\n%v\nwant\n%v", got, want)
	}
	line, err := Summary(bom)
	if want := fmt.Sprintf("ordergrid.dev/app:dev  %s  /NOTICE, /bin/app v1.2.3; %d Go modules", someID, len(want)-2); err != nil || line != want {
		t.Errorf("%v\n%s\nwant\n%s", err, line, want)
	}
}

func TestBillOfMaterialsRefuses(t *testing.T) {
	for _, test := range []struct{ app, id, says string }{
		{"\x7fELF and no Go program", someID, "COPY app: "},
		{"text", "sha256:00", "want a SHA-256"},
		{"text", "latest", "want a SHA-256"},
	} {
		dir := contextDir(t)
		if err := os.WriteFile(filepath.Join(dir, "app"), []byte(test.app), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
		d, err := Parse(strings.NewReader(good))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := BillOfMaterials(d, dir, "ordergrid.dev/app:dev", test.id); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q, id %s: %v, want %q", test.app, test.id, err, test.says)
		}
	}
	for _, data := range []string{"", "{", "[]", `{"bomFormat":"CycloneDX","specVersion":"1.6","version":1}`} {
		if line, err := Summary([]byte(data)); err == nil {
			t.Errorf("%q: %q", data, line)
		}
	}
}

// TestTwoClonesGiveTheSameImages builds images from two clones of the present commit, in directories of different names.
// Images and bills of materials have to be the same, byte for byte. With ORDERGRID_REPRODUCE=all (make reproducible) it is
// every image, and nothing that was compiled for the one is used for the other; otherwise one image, and the clones share
// what compiled packages the cache has, which finds what differs in linking and packing.
func TestTwoClonesGiveTheSameImages(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program from two clones: run it without -short")
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	everything := os.Getenv("ORDERGRID_REPRODUCE") == "all"
	names := []string{"grid-node"}
	if everything {
		if names, err = Names(root); err != nil {
			t.Fatal(err)
		}
	}
	built := map[string][]byte{}
	for i, place := range []string{"a", "a/longer/and deeper/place"} {
		base := filepath.Join(t.TempDir(), place)
		clone, out := filepath.Join(base, "checkout"), filepath.Join(base, "out")
		run(t, root, "git", "clone", "--quiet", "--no-local", "--no-tags", "file://"+root, clone)
		if everything {
			t.Setenv("GOCACHE", filepath.Join(base, "cache"))
		}
		for _, name := range names {
			archive := filepath.Join(out, name+".tar")
			id, err := BuildProgram(context.WithoutCancel(t.Context()), clone, name, "dev", archive)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %s", name, id)
			for _, file := range []string{archive, SBOMFile(archive)} {
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				key := filepath.Base(file)
				if i == 0 {
					built[key] = data
				} else if !bytes.Equal(data, built[key]) {
					t.Errorf("%s: %d bytes from one clone, %d from the other, and not the same", key, len(built[key]), len(data))
				}
			}
			if err := validate(t, schema(t), built[name+".cdx.json"]); err != nil {
				t.Error(err)
			}
			wantModules(t, clone, name, built[name+".cdx.json"])
			if bytes.Contains(built[name+".tar"], []byte(filepath.Dir(base))) {
				t.Errorf("%s has the directory it was built in", name)
			}
		}
	}
}

// wantModules holds a bill of materials against what go list says the program is made of.
func wantModules(t *testing.T, clone, name string, bom []byte) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{with .Module}}{{if not .Main}}pkg:golang/{{.Path}}@{{.Version}}{{end}}{{end}}`, "./cmd/"+name)
	list.Dir, list.Env = clone, append(os.Environ(), "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(out))
	slices.Sort(want)
	want = slices.Compact(want)
	read := &cyclonedx.BOM{}
	if err := json.Unmarshal(bom, read); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range *read.Components {
		if c.Type == cyclonedx.ComponentTypeLibrary && c.Name != "std" {
			got = append(got, c.BOMRef)
		}
	}
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("%s: modules %v, and go list says %v", name, got, want)
	}
}

func run(t *testing.T, dir string, command ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
}
