package app

import (
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/runtime/priority"
)

// niceVariable names the environment variable with the default of --nice.
const niceVariable = "ONNXRL_NICE"

// niceHelp is what the help of a command with --nice says about it.
const niceHelp = `With --nice N, or $ONNXRL_NICE, the work leaves the processors to what needs them now, a server above all: at 19, the least priority there is, it runs only where nothing else does, and alone it is as fast as ever. Without it the priority stays as it is. Linux compares niceness within a session
only: where work and server are started from two terminals, or by a service manager, begin the work with setsid, and its session is lowered too. Between containers only their weights count (docker's --cpu-shares, systemd's CPUWeight).`

// addNice gives a command that works for long the flag --nice. Where that or the environment asks
// for it, the priority is lowered before the command begins.
func (a *app) addNice(cmd *cobra.Command) {
	var nice int
	cmd.Long += "\n\n" + niceHelp
	cmd.Flags().IntVar(&nice, "nice", 0, "niceness to work at, 1 to 19; 0 leaves the priority as it is; $"+niceVariable+" sets another default")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		from := "--nice"
		if text := os.Getenv(niceVariable); text != "" && !cmd.Flags().Changed("nice") {
			from = "$" + niceVariable
			n, err := strconv.Atoi(text)
			if err != nil {
				return fmt.Errorf("%s: $%s=%q: expected 0 to %d", cmd.Name(), niceVariable, text, priority.Least)
			}
			nice = n
		}
		if nice < 0 || nice > priority.Least {
			return fmt.Errorf("%s: %s %d: expected 0 to %d", cmd.Name(), from, nice, priority.Least)
		}
		if nice == 0 {
			return nil
		}
		if err := priority.Lower(nice); err != nil {
			a.say("warning: the priority stays as it was: %v", err)
		}
		return nil
	}
}
