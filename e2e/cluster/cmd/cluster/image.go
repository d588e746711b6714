package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/e2e/cluster/image"
	"github.com/ordergrid/ordergrid/internal/checkout"
	"github.com/ordergrid/ordergrid/internal/command"
)

func imageCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "image", Short: "Build container images without Docker or a registry"}
	cmd.AddCommand(imageBuild(), imageContents())
	return cmd
}

func imageBuild() *cobra.Command {
	var all bool
	var out, tag string
	cmd := &cobra.Command{
		Use:   "build [NAME...]",
		Short: "Build the programs and write their images as docker archives, each with its bill of materials",
		RunE: func(cmd *cobra.Command, names []string) error {
			root, err := checkout.Root()
			if err != nil {
				return err
			}
			if all {
				if names, err = image.Names(root); err != nil {
					return err
				}
			}
			if len(names) == 0 {
				return errNoImage
			}
			steps := command.NewSteps(os.Stderr)
			for _, name := range names {
				archive := filepath.Join(out, name+".tar")
				err := steps.Run("image ordergrid.dev/"+name+":"+tag, func() error {
					id, err := image.BuildProgram(cmd.Context(), root, name, tag, archive)
					if err == nil {
						fmt.Printf("%s\t%s\n", archive, id)
					}
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all images below images/")
	cmd.Flags().StringVar(&out, "out", filepath.Join("out", "images"), "directory for the archives NAME.tar")
	cmd.Flags().StringVar(&tag, "tag", "dev", "tag of the images")
	return cmd
}

func imageContents() *cobra.Command {
	return &cobra.Command{
		Use:   "contents NAME.cdx.json...",
		Short: "Say in short what bills of materials list",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			for _, file := range files {
				data, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				line, err := image.Summary(data)
				if err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
				fmt.Println(line)
			}
			return nil
		},
	}
}
