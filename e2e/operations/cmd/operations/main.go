// Command operations redraws and reprints the results that the suite e2e/operations kept, without a cluster.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ordergrid/ordergrid/e2e/operations"
)

func main() {
	images := flag.String("images", "", "directory that gets the plots as operations-NAME.svg, such as docs/images")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: operations [-images DIR] DIR...   such as out/operations/*; each has history.gz and what belongs to it")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	fmt.Print(operations.Header)
	for _, dir := range flag.Args() {
		if err := tell(dir, *images); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// tell draws the results in dir, prints its rows, and copies the plot.
func tell(dir, images string) error {
	c, err := operations.Keep(dir)
	if err != nil {
		return err
	}
	fmt.Print(operations.Rows(c))
	if images == "" {
		return nil
	}
	svg, err := os.ReadFile(filepath.Join(dir, operations.SVGFile))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(images, "operations-"+filepath.Base(dir)+".svg"), svg, 0o644)
}
