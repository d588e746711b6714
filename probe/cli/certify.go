package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/probe/drill/certificate"
)

func certifyCommand() *cobra.Command {
	var format, out string
	cmd := &cobra.Command{
		Use:   "certify HISTORY|DIR",
		Short: "Judge the saved history of a drill again, without a cluster, and compare with its certificate",
		Long: `Judge the saved history of a FailoverDrill again, without a cluster. With the
certificate and SHA256SUMS beside it, check that they all agree: a modified
history or certificate does not.

Exit codes: 0 Pass, 1 Violated, 3 Invalid, 5 Missed; 2 wrong command line; 4 the history
cannot be judged, or it, its certificate and its check sums do not agree.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := certificate.Verify(args[0])
			if err != nil {
				return err
			}
			canonical, text, page, err := certificate.Render(k.Certificate)
			if err != nil {
				return err
			}
			shown := map[string][]byte{"table": text, "json": canonical, "html": page}[format]
			if shown == nil {
				return usage(fmt.Errorf("--format %q: there are table, json and html", format))
			}
			if out != "" {
				if err := certificate.Write(out, canonical, text, page); err != nil {
					return fmt.Errorf("--out %s: %w", out, err)
				}
			}
			if _, err := cmd.OutOrStdout().Write(shown); err != nil {
				return err
			}
			return agreement(cmd, args[0], k)
		},
	}
	cmd.Flags().StringVar(&format, "format", "table", "table, json or html")
	cmd.Flags().StringVar(&out, "out", "", "directory to write the new certificate to")
	return cmd
}

// agreement compares history, certificate and check sums, and ends with the verdict.
func agreement(cmd *cobra.Command, path string, k *certificate.Check) error {
	say := cmd.ErrOrStderr()
	switch {
	case len(k.Trouble) > 0:
		var all error
		for _, t := range k.Trouble {
			all = errors.Join(all, errors.New(t))
		}
		return fmt.Errorf("%s is not what was certified: %w", path, all)
	case k.Certified == nil:
		fmt.Fprintf(say, "no %s beside it: nothing to compare with\n", filepath.Join(filepath.Dir(path), certificate.JSONFile))
	default:
		fmt.Fprintln(say, "history, certificate and check sums agree")
	}
	switch k.Certificate.Verdict {
	case certificate.Violated:
		return &codeError{code: ExitIncorrect}
	case certificate.Invalid:
		return &codeError{code: ExitInvalid}
	case certificate.Missed:
		return &codeError{code: ExitJudged}
	}
	return nil
}
