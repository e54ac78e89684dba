package app

import (
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/runtime/processes"
)

// niceVariable names the environment variable with the default of --nice.
const niceVariable = "ONNXRL_NICE"

// addNice gives a command that works for long the flag --nice. Where that or the environment asks
// for it, the priority is lowered before the command begins.
func (a *app) addNice(cmd *cobra.Command) {
	var nice int
	cmd.Flags().IntVar(&nice, "nice", 0, "niceness to work at, 1 to 19; 0 leaves the priority as it is; $"+niceVariable+" sets another default")
	rarely(cmd.Flags(), "nice")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		from := "--nice"
		if text := os.Getenv(niceVariable); text != "" && !cmd.Flags().Changed("nice") {
			from = "$" + niceVariable
			n, err := strconv.Atoi(text)
			if err != nil {
				return fmt.Errorf("%s: $%s=%q: expected 0 to %d", cmd.Name(), niceVariable, text, processes.Least)
			}
			nice = n
		}
		if nice < 0 || nice > processes.Least {
			return fmt.Errorf("%s: %s %d: expected 0 to %d", cmd.Name(), from, nice, processes.Least)
		}
		if nice == 0 {
			return nil
		}
		if err := processes.Lower(nice); err != nil {
			a.say("warning: the priority stays as it was: %v", err)
		}
		return nil
	}
}
