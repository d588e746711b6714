// Command apilint checks Go API types against the Kubernetes API conventions that can be seen in the source: the rules a
// reviewer of a CRD applies before reading what it means. It exits 1 and names file, field, rule and remedy.
//
//	go run ./hack/apilint ./api/v1alpha1
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: apilint DIRECTORY")
		os.Exit(2)
	}
	findings, err := lintDir(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "apilint:", err)
		os.Exit(2)
	}
	for _, f := range findings {
		fmt.Println(f)
	}
	if len(findings) > 0 {
		fmt.Printf("apilint: %d findings\n", len(findings))
		os.Exit(1)
	}
}

// lintDir checks every non-generated file of one package.
func lintDir(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no Go files; name the directory of the API types", dir)
	}
	var findings []string
	for _, name := range files {
		if strings.HasPrefix(filepath.Base(name), "zz_generated") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		got, err := lintSource(name, src)
		if err != nil {
			return nil, err
		}
		findings = append(findings, got...)
	}
	return findings, nil
}

// lintSource checks one file's struct types that are part of the API: those whose fields carry JSON tags.
func lintSource(name string, src []byte) ([]string, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var findings []string
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, spec := range gen.Specs {
			ts := spec.(*ast.TypeSpec)
			st, ok := ts.Type.(*ast.StructType)
			if !ok || isList(ts.Name.Name) {
				continue
			}
			for _, f := range st.Fields.List {
				for _, problem := range checkField(field{owner: ts.Name.Name, node: f}) {
					findings = append(findings, fmt.Sprintf("%s: %s: %s", fset.Position(f.Pos()), ts.Name.Name, problem))
				}
			}
		}
	}
	return findings, nil
}

func isList(typeName string) bool { return strings.HasSuffix(typeName, "List") }
