package local

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/internal/pki"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares text with testdata/golden/name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := writeFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; if that is meant, run: go test ./e2e/cluster/local -update\ngot\n%s", path, got)
	}
}

// TestMachineFiles writes the files of all kinds of machine and compares those
// that are not credentials.
func TestMachineFiles(t *testing.T) {
	plan := examplePlan(t)
	plan.State = t.TempDir()
	ca, err := pki.Load(plan.pkiDir(), authorityName)
	if err != nil {
		t.Fatal(err)
	}
	for _, machine := range []string{switchName, controlPlaneName, "xeon-2"} {
		if err := plan.writeMachineFiles(machine, ca, hostFacts{snapshotter: "overlayfs", cniBin: "/usr/lib/cni"}); err != nil {
			t.Fatal(err)
		}
		etc := filepath.Join(plan.machineDir(machine), "etc")
		var text strings.Builder
		err := filepath.WalkDir(etc, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			name, _ := filepath.Rel(etc, path)
			if secret(name) {
				content = []byte("(credential)\n")
			}
			fmt.Fprintf(&text, "==> %s\n%s", name, content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		golden(t, machine+".files", text.String())
	}
}

func secret(name string) bool {
	switch filepath.Ext(name) {
	case ".crt", ".key", ".kubeconfig":
		return true
	}
	return false
}

// TestCredentialsAreKept checks that a machine switched on again keeps its identity.
func TestCredentialsAreKept(t *testing.T) {
	plan := examplePlan(t)
	plan.State = t.TempDir()
	read := func() string {
		ca, err := pki.Load(plan.pkiDir(), authorityName)
		if err != nil {
			t.Fatal(err)
		}
		if err := plan.writeMachineFiles("xeon-1", ca, hostFacts{}); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(plan.machineDir("xeon-1"), "etc", "kubelet.kubeconfig"))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	if first, second := read(), read(); first != second {
		t.Error("the kubelet got another identity at the second start")
	}
}

func TestServices(t *testing.T) {
	plan := examplePlan(t)
	var text strings.Builder
	for _, machine := range []string{switchName, controlPlaneName, "xeon-1", "general-1"} {
		services, err := plan.services(machine)
		if err != nil {
			t.Fatal(err)
		}
		for _, service := range services {
			fmt.Fprintf(&text, "%s: %s after %q\n    %s\n", machine, service.Name, service.After, strings.Join(service.Args, "\n    "))
		}
	}
	golden(t, "services", text.String())
	if _, err := plan.services("missing"); err == nil || !strings.Contains(err.Error(), "xeon-1") {
		t.Errorf("an unknown machine gave %v", err)
	}
}

func TestNetworkCommands(t *testing.T) {
	plan := examplePlan(t)
	var text strings.Builder
	show := func(where string, lines []string) {
		fmt.Fprintf(&text, "%s:\n    %s\n", where, strings.Join(lines, "\n    "))
	}
	show("host", append(plan.hostLinks(4711), plan.hostRoutes()...))
	show("switch", plan.switchLinks())
	for _, machine := range []string{controlPlaneName, "xeon-1"} {
		show("switch, for "+machine, plan.portLinks(machine, 4712))
		show(machine, plan.machineLinks(machine))
	}
	golden(t, "network", text.String())
}

func TestDNSManifest(t *testing.T) {
	plan := examplePlan(t)
	manifest, err := render("coredns.yaml", dnsSettings{DNS: plan.dnsAddr().String(), DNSImage: plan.image("coredns"), DNSReplicas: 2})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "coredns.yaml", string(manifest))
}

// TestTemplatesAreFilled finds values a template uses that are not set.
func TestTemplatesAreFilled(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bad := regexp.MustCompile(`<no value>|\{\{|image: *$|"" *,? *$`).FindString(string(content)); bad != "" && !strings.HasSuffix(file, "services") {
			t.Errorf("%s contains %q", file, bad)
		}
	}
}
