// Command crdcompat compares the CRDs of this tree with those of the last release, and names every change after which a
// manifest, a stored object or a client that was right is refused, or means something else. docs/versions.md lists what may
// change when.
//
//	go run ./hack/crdcompat            name the breaks; exit 1 if one is not in released/allowed.yaml
//	go run ./hack/crdcompat --release  what is in the tree is released: it is what later changes are held against
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const (
	crds     = "charts/ordergrid/files/crds"
	released = "hack/crdcompat/released"
	allowed  = "allowed.yaml"
)

func main() {
	release := flag.Bool("release", false, "take the CRDs of the tree as released, and forget what was allowed since the release before")
	flag.Parse()
	var err error
	if *release {
		err = store(".")
	} else {
		err = check(".")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "crdcompat:", err)
		os.Exit(1)
	}
}

// Allowance is a break that people have agreed on.
type Allowance struct {
	// Path and What as the comparison says them.
	Path string `json:"path"`
	What string `json:"what"`
	// Why it does no harm, or is worth it. It belongs into CHANGELOG.md, too.
	Why string `json:"why"`
}

// check prints what breaks, below the root of a checkout.
func check(root string) error {
	problems, err := Problems(root)
	if err != nil {
		return err
	}
	for _, p := range problems {
		fmt.Println(p)
	}
	if len(problems) > 0 {
		return fmt.Errorf("%d changes of the API break what was right for the last release: take them back, add a version instead, or, if people have agreed, put them into %s with the reason (docs/versions.md)",
			len(problems), filepath.Join(released, allowed))
	}
	return nil
}

// Problems are breaks without an agreement, and agreements without a break.
func Problems(root string) (problems []string, err error) {
	before, err := read(filepath.Join(root, released))
	if err != nil {
		return nil, err
	}
	if len(before) == 0 {
		return nil, fmt.Errorf("%s has no CRD to compare with", filepath.Join(root, released))
	}
	now, err := read(filepath.Join(root, crds))
	if err != nil {
		return nil, err
	}
	agreed, err := allowances(filepath.Join(root, released, allowed))
	if err != nil {
		return nil, err
	}
	used := map[int]bool{}
	for name := range before {
		if now[name] == nil {
			problems = append(problems, name+": the kind is gone, and every object of it with the CRD")
			continue
		}
		for _, b := range Compare(before[name], now[name]) {
			i := slices.IndexFunc(agreed, func(a Allowance) bool { return a.Path == b.Path && a.What == b.What })
			if i < 0 {
				problems = append(problems, b.String())
			}
			used[i] = true
		}
	}
	for i, a := range agreed {
		if !used[i] {
			problems = append(problems, fmt.Sprintf("%s allows %s: %s, which has not happened; remove it", allowed, a.Path, a.What))
		}
		if a.Why == "" {
			problems = append(problems, fmt.Sprintf("%s allows %s without a why", allowed, a.Path))
		}
	}
	slices.Sort(problems)
	return problems, nil
}

// read the CRDs of a directory, by name.
func read(dir string) (map[string]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := filepath.Glob(filepath.Join(dir, "ordergrid.dev_*.yaml"))
	if err != nil {
		return nil, err
	}
	out := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out[crd.Name] = crd
	}
	return out, nil
}

func allowances(file string) (list []Allowance, err error) {
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err == nil {
		err = yaml.UnmarshalStrict(text, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return list, nil
}

// store makes what is in the tree what later changes are held against.
func store(root string) error {
	old, err := filepath.Glob(filepath.Join(root, released, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range old {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	files, err := filepath.Glob(filepath.Join(root, crds, "ordergrid.dev_*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, released, filepath.Base(file)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
