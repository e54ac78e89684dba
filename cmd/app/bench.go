package app

import "github.com/spf13/cobra"

func (a *app) benchCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "bench", Short: "Measure learning and speed against stated targets"}
	cmd.AddCommand(a.benchEnvCommand(), a.benchHistoryCommand(), a.benchLearnCommand(), a.benchLiveCommand(), a.benchOfflineCommand(), a.benchReplayCommand(), a.benchTrainCommand())
	return cmd
}
