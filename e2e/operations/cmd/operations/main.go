// Command operations draws and tells again what the suite e2e/operations kept, without a cluster.
package main

import (
	"fmt"
	"os"

	"github.com/ordergrid/ordergrid/e2e/operations"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: operations DIR...   such as out/operations/*; each has history.gz and what belongs to it")
		os.Exit(2)
	}
	fmt.Print(operations.Header)
	for _, dir := range os.Args[1:] {
		c, err := operations.Keep(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Print(operations.Rows(c))
	}
}
