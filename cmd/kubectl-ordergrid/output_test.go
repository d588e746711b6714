package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func TestTableWithColors(t *testing.T) {
	for _, colors := range []bool{false, true} {
		tab := &table{colors: colors}
		tab.row("A", "B")
		tab.row(cell{"größe", red}, 1)
		var out bytes.Buffer
		if err := tab.write(&out); err != nil {
			t.Fatal(err)
		}
		want := "A      B\ngröße  1\n"
		if colors {
			want = "A      B\n\x1b[31mgröße\x1b[0m  1\n"
		}
		if out.String() != want {
			t.Errorf("colors %v: %q, want %q", colors, &out, want)
		}
	}
}

func TestMood(t *testing.T) {
	for _, tc := range []struct{ kind, status, want string }{
		{"Available", "True", green}, {"Available", "False", red}, {"Available", "Unknown", yellow}, {"Stalled", "False", green}, {"Stalled", "True", red},
		{"DataLossSuspected", "True", red}, {"Progressing", "True", yellow}, {"Progressing", "False", green},
	} {
		if got := mood(&metav1.Condition{Type: tc.kind, Status: metav1.ConditionStatus(tc.status)}); got != tc.want {
			t.Errorf("%s %s: colour %s, want %s", tc.kind, tc.status, got, tc.want)
		}
	}
}

func TestNoColorsWithoutATerminal(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	root := rootCommand()
	root.SetOut(file)
	if colors(root) {
		t.Error("a file gets colours")
	}
}

// TestListFormats: objects are printed as objects, with their kinds.
func TestListFormats(t *testing.T) {
	s := newStage(t)
	for _, tc := range []struct {
		args  []string
		kinds []string
	}{
		{[]string{"status", "trades", "-o", "json"}, []string{"OrderGrid", "GridPartition", "GridPartition"}},
		{[]string{"status", "trades", "-o", "yaml"}, []string{"OrderGrid", "GridPartition", "GridPartition"}},
		{[]string{"drill", "list", "-o", "json"}, nil},
	} {
		out, err := s.run(tc.args...)
		var list struct {
			Kind  string            `json:"kind"`
			Items []metav1.TypeMeta `json:"items"`
		}
		if err != nil || yaml.Unmarshal([]byte(out), &list) != nil || list.Kind != "List" {
			t.Fatalf("%v: %v\n%s", tc.args, err, out)
		}
		var kinds []string
		for _, i := range list.Items {
			kinds = append(kinds, i.Kind)
		}
		if !slices.Equal(kinds, tc.kinds) {
			t.Errorf("%v: kinds %v", tc.args, kinds)
		}
	}
	out, err := s.run("status", "trades", "-o", "wide")
	s.want(out, err, 0, "PREFERRED    ADDRESS\n", "trades-s0-0  10.0.0.1:7400\n")
}

// TestCompletion calls it like kubectl's completion.
func TestCompletion(t *testing.T) {
	s := newStage(t)
	nodes := s.pods()
	script, err := run("completion")
	if err != nil || !strings.HasPrefix(script, "#!/bin/sh\n") || !strings.Contains(script, `exec kubectl ordergrid __complete "$@"`) {
		t.Errorf("%v\n%s", err, script)
	}
	for _, tc := range []struct {
		words []string
		want  []string
		not   string
	}{
		{[]string{"status", ""}, []string{"trades"}, ""},
		{[]string{"handover", "trades-p"}, []string{"trades-p0", "trades-p1"}, ""},
		{[]string{"handover", "trades-p0", ""}, nil, "trades"},
		{[]string{"drain", "worker-0"}, nodes[:1], nodes[1]},
		{[]string{"drill", "run", "pull"}, []string{"pull-the-plug"}, "network"},
		{[]string{"drill", "run", "network", "--grid", ""}, []string{"trades"}, ""},
		{[]string{"status", "trades", "-o", ""}, []string{"table", "wide", "json", "yaml"}, ""},
		{[]string{"par"}, []string{"partitions"}, "status"},
	} {
		out, err := run(append(append([]string{"__complete"}, s.args...), tc.words...)...)
		lines := strings.Split(out, "\n")
		for i := range lines {
			lines[i], _, _ = strings.Cut(lines[i], "\t")
		}
		for _, want := range tc.want {
			if err != nil || !slices.Contains(lines, want) {
				t.Errorf("%v: no %q (%v)\n%s", tc.words, want, err, out)
			}
		}
		if tc.not != "" && slices.Contains(lines, tc.not) {
			t.Errorf("%v: %q is offered\n%s", tc.words, tc.not, out)
		}
	}
}
