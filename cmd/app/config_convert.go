package app

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/experiment/convert"
	"github.com/onnxrl/onnxrl/agents/population"
	"github.com/onnxrl/onnxrl/configs"
)

// zooFlags name an entry of a file of RL-Zoo's.
type zooFlags struct {
	file, env, algo string
}

// add adds the flags; the file's is called as given, unless it is an argument.
func (f *zooFlags) add(cmd *cobra.Command, file string) {
	if file != "" {
		cmd.Flags().StringVar(&f.file, file, "", "RL-Zoo's hyper-parameters of an algorithm, such as its hyperparams/ppo.yml")
	}
	cmd.Flags().StringVar(&f.env, "env-id", "", "environment of RL-Zoo's file, by Gymnasium's id, such as CartPole-v1")
	cmd.Flags().StringVar(&f.algo, "algo", "", "algorithm of RL-Zoo's file (default: the file's name)")
}

// open returns the document of the entry, and what its run is called.
func (f *zooFlags) open() (*configs.Document, string, error) {
	if f.env == "" {
		return nil, "", errors.New("--env-id is missing: which environment of RL-Zoo's file?")
	}
	doc, err := convert.Zoo(f.file, f.algo, f.env)
	return doc, "zoo-" + strings.NewReplacer("/", "-", ":", "-").Replace(f.env), err
}

// routerKind is the kind of environment that a population gives its experts, and that a document of a
// router alone does not have.
const routerKind = "meta"

// checkConverted decodes what was converted. A router of a population gets its experts there, and here
// some that are not opened.
func (a *app) checkConverted(doc *configs.Document) error {
	var kind string
	if s, ok := doc.Lookup("env.kind"); !ok || s.Decode(&kind) != nil || kind != routerKind {
		_, err := a.kinds.Decode(doc)
		return err
	}
	whole := doc.Clone()
	if err := whole.Set("env.env={kind: cartpole}", "env.experts=[{path: a.onnx}, {path: b.onnx}]"); err != nil {
		return err
	}
	_, err := a.kinds.Decode(whole)
	return err
}

func (a *app) configConvertCommand() *cobra.Command {
	var f zooFlags
	var out string
	cmd := &cobra.Command{
		Use:   "convert FILE",
		Short: "Translate RL-Zoo's hyper-parameters, or QTMRL's default.yaml",
		Long: `Makes a document of another program's: of an environment's entry in a file of RL-Zoo's (rl-baselines3-zoo), with --env-id, of QTMRL's default.yaml, or of a population's configuration with the keys experts, meta_router and trainer. What
becomes of each key is said; one that has no equal is an error. onnxrl train and train population read them by themselves.`,
		Example: `  onnxrl config convert ppo.yml --env-id CartPole-v1 -o cartpole.yaml
  onnxrl config convert default.yaml -o qtmrl.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) (err error) {
			var doc *configs.Document
			if f.env != "" {
				f.file = args[0]
				doc, _, err = f.open()
			} else {
				doc, err = a.document(args[0])
			}
			if err == nil {
				if _, ok := doc.Lookup("experts"); ok {
					c := population.Defaults()
					err = doc.Decode(&c)
				} else {
					err = a.checkConverted(doc)
				}
			}
			if err != nil {
				return fmt.Errorf("config convert: %w", err)
			}
			return a.write(out, doc.Bytes())
		},
	}
	cmd.Annotations = map[string]string{printsText: "a YAML document"}
	f.add(cmd, "")
	cmd.Flags().StringVarP(&out, "out", "o", "", "write to this file (default: standard output)")
	return cmd
}
