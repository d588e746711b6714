// Command order-probe puts a steady stream of FIX orders on a grid, measures
// what becomes of them, and prints published figures beside those measured here.
package main

import (
	"os"

	"github.com/ordergrid/ordergrid/probe/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) }
