// Command order-probe sends a steady stream of FIX orders to a grid, measures the latency, and prints published figures
// beside the measured ones.
package main

import (
	"os"

	"github.com/ordergrid/ordergrid/probe/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) }
