package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/probe/nodefeatures"
)

// terminationLog is the file from which Kubernetes reads a container's termination message,
// status.containerStatuses[].state.terminated.message: 4096 bytes at most.
const terminationLog = "/dev/termination-log"

func nodeFeaturesCommand() *cobra.Command {
	var node, log string
	cmd := &cobra.Command{
		Use:   "node-features",
		Short: "Print which faults this node's kernel supports",
		Long: `Print which faults this node's kernel supports, as one line of JSON. Every feature is
tried, in a network namespace or on a child process of its own; the node is not
changed. Needs the capabilities SYS_ADMIN and NET_ADMIN, and nothing of the host's
namespaces. In a pod the line is the container's termination message too.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := nodefeatures.Probe(node)
			if err != nil {
				return err
			}
			line, err := json.Marshal(report)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s\n", line)
			return lastWords(log, line)
		},
	}
	cmd.Flags().StringVar(&node, "node", os.Getenv("NODE_NAME"), "name of the node, repeated in the output (default $NODE_NAME)")
	cmd.Flags().StringVar(&log, "termination-log", terminationLog, "file that the line is also written to, if it exists")
	return cmd
}

// lastWords writes to a file that Kubernetes has created; elsewhere there is none.
func lastWords(path string, line []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = file.Write(line)
	return errors.Join(err, file.Close())
}
