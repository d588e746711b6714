package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
)

// exitFailedCall means that the function had no result; nothing was changed.
const exitFailedCall = 1

type invokeFlags struct {
	regionFlags
	argumentFlags
	output string
}

func functionInvokeCommand(k *kubeFlags) *cobra.Command {
	var f invokeFlags
	cmd := &cobra.Command{
		Use:   "invoke GRID REGION FUNCTION KEY",
		Short: "Call a function of kind Compute with a key of a region",
		Long: `Calls a function of kind Compute (spec.callbacks.compute of the OrderGrid, docs/functions.md) with a key of
a region. On the primary of the key it gets the present value and the arguments, and makes the new value and
a reply: one change, made once, also if a failover lies between. Prints the entry that it became, and the reply.

` + argumentsHelp + ` The reply is printed as text and in hexadecimal
digits (text), as JSON, where replyBase64 replaces reply if that is no UTF-8, in hexadecimal digits alone
(hex), or byte for byte (raw).

While pods are replaced, a primary may not have a function that another copy has: the call is repeated until
--timeout. Condition FunctionsLoaded of the OrderGrid is True once every pod has it.

` + regionWriteHelp + `

Exit codes: 0 called, 1 the function returned an error or failed, nothing was changed, 2 wrong usage,
4 failed. After "outcome unknown" read the value before you call again: the next call is another one.`,
		Example: `  kubectl ordergrid function invoke trades positions add ACC-1/IBM --args-hex 6400000000000000 -n trading --tls-cert desk.crt --tls-key desk.key
  kubectl ordergrid function invoke dev quotes merge IBM --args-file delta.bin --endpoint 127.0.0.1:7400 -o raw > reply
  kubectl ordergrid function invoke dev positions add ACC-1/IBM --args-hex 6400000000000000 --endpoint 127.0.0.1:7400 -o json`,
		Args: countOf(4, 4, "an OrderGrid, a region, a function and a key"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, k, args) },
	}
	f.regionFlags.register(cmd)
	f.argumentFlags.register(cmd)
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "text, json, hex, raw (the reply byte for byte)")
	completeFlag(cmd, "output", fixedNames("text", "json", "hex", "raw"))
	return cmd
}

func (f *invokeFlags) run(cmd *cobra.Command, k *kubeFlags, args []string) error {
	if _, err := choose("output", f.output, []string{"text", "json", "hex", "raw"}, make([]int, 4)); err != nil {
		return err
	}
	arguments, err := f.arguments(cmd)
	if err != nil {
		return err
	}
	return f.with(cmd, k, args[0], func(ctx context.Context, c *client.Client) error {
		reply, receipt, err := c.Invoke(ctx, args[1], args[2], []byte(args[3]), arguments)
		if failed := (*client.FunctionError)(nil); errors.As(err, &failed) {
			fmt.Fprintf(cmd.ErrOrStderr(), "region %s: key %q: %v; nothing was changed\n", args[1], args[3], failed)
			return exitError(exitFailedCall)
		}
		if err != nil {
			return err
		}
		return writeReply(cmd.OutOrStdout(), f.output, &receipt, reply)
	})
}

// replyJSON is the result of a call as JSON.
type replyJSON struct {
	Entry       string  `json:"entry"`
	Epoch       uint64  `json:"epoch"`
	Reply       *string `json:"reply,omitempty"`
	ReplyBase64 []byte  `json:"replyBase64,omitempty"`
}

func writeReply(out io.Writer, format string, r *client.Receipt, reply []byte) error {
	entry, text := fmt.Sprintf("%s/%d", r.Partition, r.Seq), string(reply)
	var err error
	switch format {
	case "raw":
		_, err = out.Write(reply)
	case "hex":
		_, err = fmt.Fprintf(out, "%x\n", reply)
	case "json":
		j := replyJSON{Entry: entry, Epoch: r.Epoch, Reply: &text}
		if !utf8.Valid(reply) {
			j.Reply, j.ReplyBase64 = nil, reply
		}
		return indented(out, j)
	default:
		_, err = fmt.Fprintf(out, "entry  %s\nreply  %q\nhex    %x\n", entry, reply, reply)
	}
	return err
}
