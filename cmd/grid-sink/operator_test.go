package main

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestOperatorsArguments: the command lines that the operator gives to the pods of sinks are understood.
func TestOperatorsArguments(t *testing.T) {
	files, err := filepath.Glob("../../controllers/ordergrid/testdata/sinks/sink_*_*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var object struct {
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct{ Args []string }
					}
				}
			}
		}
		if err := yaml.Unmarshal(raw, &object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, c := range object.Spec.Template.Spec.Containers {
			found++
			cmd, rest, err := rootCommand().Find(c.Args)
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			if err != nil || !cmd.Runnable() {
				t.Errorf("%s: %v: %v", file, c.Args, err)
			}
		}
	}
	if found != 6 {
		t.Errorf("%d containers in %v, want a Deployment for each of five sinks and a Job", found, files)
	}
}
