package app

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/envs/scml/record"
)

func (a *app) scmlInspectCommand() *cobra.Command {
	var picture string
	cmd := &cobra.Command{
		Use:   "inspect WORLD",
		Short: "Show a world that was recorded",
		Long: `Shows the tables of scml run for a file that it wrote, or for the folder that the league's own program writes for a world. --picture draws prices, stocks, balances, and what flowed from level to
level.`,
		Example: `  onnxrl scml inspect world.json --picture world.svg`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkPicture(picture); err != nil {
				return fmt.Errorf("scml inspect: %w", err)
			}
			file, err := record.Open(args[0])
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
