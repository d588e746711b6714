package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// regionDescription is a region with what each partition has of it.
type regionDescription struct {
	regionJSON
	Partitions []regionPartition `json:"partitions"`
}

// regionPartition is what a partition has of a region.
type regionPartition struct {
	Partition string `json:"partition"`
	Primary   string `json:"primary,omitempty"` // its address
	Entries   uint64 `json:"entries"`
	Bytes     uint64 `json:"bytes"`
	MaxBytes  uint64 `json:"maxBytes,omitempty"`
	AllBytes  uint64 `json:"allBytes"` // of all regions of the partition
	AllMost   uint64 `json:"allMaxBytes"`
	known     bool
}

// describeRegion asks the primaries. A region that no partition knows is an error that names those that are known.
func describeRegion(ctx context.Context, c *client.Client, name string) (*regionDescription, error) {
	partitions, err := c.RegionsByPartition(ctx)
	if err != nil {
		return nil, err
	}
	table := c.Table()
	d := &regionDescription{regionJSON: regionJSON{Name: name}}
	var names []string
	found := false
	for i := range partitions {
		p := &partitions[i]
		row := regionPartition{Partition: p.Partition.String(), AllBytes: p.Used, AllMost: p.Limit}
		if int(p.Partition) < len(table) {
			row.Primary = table[p.Partition].Primary.Address
		}
		for _, r := range p.Regions {
			if !slices.Contains(names, r.Name) {
				names = append(names, r.Name)
			}
			if r.Name != name {
				continue
			}
			found = true
			row.Entries, row.Bytes, row.MaxBytes, row.known = r.Entries, r.Bytes, r.MaxBytes, true
			d.Entries, d.Bytes, d.MaxBytes = d.Entries+r.Entries, d.Bytes+r.Bytes, d.MaxBytes+r.MaxBytes
			if r.Life > 0 {
				d.Life = r.Life.String()
			}
		}
		d.Partitions = append(d.Partitions, row)
	}
	if !found {
		return nil, fmt.Errorf("region: value %q, allowed: one that the grid has: %s", name, strings.Join(names, ", "))
	}
	return d, nil
}

func regionDescribeCommand(k *kubeFlags) *cobra.Command {
	var f regionFlags
	var output string
	cmd := &cobra.Command{Use: "describe GRID REGION", Short: "Show a region with what each partition has of it", Args: countOf(2, 2, "an OrderGrid and a region"),
		Long: `Prints the bounds of a region, and for each partition its primary, the entries and bytes of the region,
and the bytes of all regions, each with what they may take there. A partition at one of these bounds
refuses changes that need memory, also while others have room.

` + regionReadHelp + `

Exit codes: 0 done, 2 wrong usage, 4 failed.`,
		Example: "  kubectl ordergrid region describe trades quotes -n trading\n  kubectl ordergrid region describe dev quotes --endpoint 127.0.0.1:7400 -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return usageError{fmt.Errorf("--output: value %q, allowed: text, json", output)}
			}
			return f.with(cmd, k, args[0], func(ctx context.Context, c *client.Client) error {
				d, err := describeRegion(ctx, c, args[1])
				switch {
				case err != nil:
					return err
				case output == "json":
					return indented(cmd.OutOrStdout(), d)
				}
				return writeDescription(cmd.OutOrStdout(), d)
			})
		}}
	f.register(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json")
	return cmd
}

func writeDescription(out io.Writer, d *regionDescription) error {
	most, life := "that of all regions", "for ever"
	if d.MaxBytes > 0 {
		most = strconv.FormatUint(d.MaxBytes, 10)
	}
	if d.Life != "" {
		life = d.Life
	}
	fmt.Fprintf(out, "region     %s\nentries    %d\nbytes      %d\nmax bytes  %s\nlife       %s\n\n", d.Name, d.Entries, d.Bytes, most, life)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PARTITION\tPRIMARY\tENTRIES\tBYTES\tMAX BYTES\tALL REGIONS\tMAX BYTES")
	for i := range d.Partitions {
		p := &d.Partitions[i]
		primary, entries, bytes, most := p.Primary, "not defined", "-", "-"
		if primary == "" {
			primary = "-"
		}
		if p.known {
			entries, bytes = strconv.FormatUint(p.Entries, 10), strconv.FormatUint(p.Bytes, 10)
		}
		if p.MaxBytes > 0 {
			most = strconv.FormatUint(p.MaxBytes, 10)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\n", p.Partition, primary, entries, bytes, most, p.AllBytes, p.AllMost)
	}
	return w.Flush()
}

func regionDropCommand(k *kubeFlags) *cobra.Command {
	var f regionFlags
	var yes bool
	cmd := &cobra.Command{Use: "drop GRID REGION", Short: "Remove all entries of a region", Args: countOf(2, 2, "an OrderGrid and a region"),
		Long: `Removes all entries of a region: at once in each partition, in one after the other, with a line for each.
The region stays, with its bounds. Asks first, unless --yes is given; --timeout
holds for the answer too. A drop that is interrupted has
emptied the partitions that it named; give the command again for the others.

` + regionWriteHelp + ` To say what there is, it needs Read as well.

Exit codes: 0 dropped, 1 the answer was not yes, 2 wrong usage, 4 failed.`,
		Example: "  kubectl ordergrid region drop trades quotes -n trading --tls-cert desk.crt --tls-key desk.key\n  kubectl ordergrid region drop dev quotes --endpoint 127.0.0.1:7400 --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd, k, args[0], func(ctx context.Context, c *client.Client) error {
				d, err := describeRegion(ctx, c, args[1])
				if err != nil {
					return err
				}
				if !yes {
					fmt.Fprintf(cmd.ErrOrStderr(), "Remove all %d entries of region %s of grid %s? They cannot be had back. Type yes: ", d.Entries, d.Name, args[0])
					answer, _ := bufio.NewReader(io.LimitReader(cmd.InOrStdin(), 100)).ReadString('\n')
					if strings.TrimSpace(answer) != "yes" {
						fmt.Fprintf(cmd.ErrOrStderr(), "\nregion %s: nothing is removed\n", d.Name)
						return exitError(exitUnchanged)
					}
				}
				return dropRegion(ctx, cmd.OutOrStdout(), c, d)
			})
		}}
	f.register(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// dropRegion clears a region partition by partition.
func dropRegion(ctx context.Context, out io.Writer, c *client.Client, d *regionDescription) error {
	r := c.Region(d.Name)
	for i := range d.Partitions {
		p := &d.Partitions[i]
		if !p.known {
			continue
		}
		if err := r.ClearPartition(ctx, wire.PartitionID(i)); err != nil {
			return fmt.Errorf("partition %s, with %d of %d partitions emptied: %w", p.Partition, i, len(d.Partitions), err)
		}
		fmt.Fprintf(out, "partition %s: emptied, it had %d entries\n", p.Partition, p.Entries)
	}
	return nil
}
