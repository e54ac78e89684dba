package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/scml/samples"
	"github.com/onnxrl/onnxrl/envs/scml/record"
)

func (a *app) scmlInspectCommand() *cobra.Command {
	var picture string
	cmd := &cobra.Command{
		Use:   "inspect WORLD",
		Short: "Show a world that was recorded, or a tournament",
		Long: `Shows the tables of scml run for a file that it wrote, or for the folder that the league's own program writes for a world. --picture draws prices, stocks, balances, and what flowed from level to
level. Of the folder of a tournament it shows the scores, and what the tracker of scml_analyzer has counted, where agents were tracked; of a folder of samples, what there is in it.`,
		Example: `  onnxrl scml inspect world.json --picture world.svg`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkPicture(picture); err != nil {
				return fmt.Errorf("scml inspect: %w", err)
			}
			if _, err := os.Stat(filepath.Join(args[0], samples.ManifestFile)); err == nil {
				s, err := samples.Open(args[0])
				if err != nil {
					return fmt.Errorf("scml inspect: %w", err)
				}
				return a.printTable(&scmlSamples{Dir: args[0], Manifest: &s.Manifest}, nil)
			}
			if t, err := record.OpenTournament(args[0]); err == nil {
				if picture != "" {
					return errors.New("scml inspect: --picture draws a world, and this is a tournament")
				}
				return a.printTable(t, nil)
			} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
				return fmt.Errorf("scml inspect: %w", err)
			}
			file, err := record.Open(args[0])
			if err == nil {
				if err = file.Validate(); err != nil {
					err = fmt.Errorf("%s: %w", args[0], err)
				}
			}
			if err == nil && picture != "" {
				err = drawWorld(file, picture)
			}
			if err != nil {
				return fmt.Errorf("scml inspect: %w", err)
			}
			sum := file.Summarise()
			if err := sum.Hear(args[0]); err != nil {
				return fmt.Errorf("scml inspect: %w", err)
			}
			return a.printTable(sum, nil)
		},
	}
	cmd.Flags().StringVar(&picture, "picture", "", pictureUsage)
	return cmd
}
