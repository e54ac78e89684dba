package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

func (a *app) modelsVerifyCommand() *cobra.Command {
	var store storeFlag
	var filesOnly bool
	cmd := &cobra.Command{
		Use:   "verify [REF…]",
		Short: "Compare files with their digests and golden outputs with models",
		Long: `Compare every file of the versions, or of all versions of the store, with its digest, and run the models that were published
with golden values. Of market agents, lead the golden bars through features to actions again. The exit status is 1 if anything differs.

` + referenceHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.modelsVerify(cmd.Context(), &store, args, filesOnly)
		},
	}
	store.add(cmd)
	cmd.Flags().BoolVar(&filesOnly, "files-only", false, "compare digests and run nothing")
	return cmd
}

// verifiedDoc is what was verified of a version, as JSON.
type verifiedDoc struct {
	Ref    string `json:"ref"`
	Digest string `json:"digest"`
	OK     bool   `json:"ok"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
	Golden int    `json:"golden_values"`
	// Worst is null where nothing was compared, and where a value that is no floating-point number
	// differs.
	Worst *float64 `json:"golden_max_error"`
	// Decisions is the number of those that golden bars led to.
	Decisions int    `json:"golden_decisions"`
	Error     string `json:"error"`
}

func (a *app) modelsVerify(ctx context.Context, store *storeFlag, refs []string, filesOnly bool) error {
	var c engine.Compiler
	var err error
	if !filesOnly {
		if c, err = a.foreign(ctx, a.engine); err != nil {
			return err
		}
	}
	var list []artifact.Verified
	if len(refs) == 0 {
		s, err := artifact.Open(store.path(), artifact.Options{MustExist: true})
		if err != nil {
			return err
		}
		defer s.Close()
		if list, err = s.Verify(ctx, c); err != nil && failures(list) == 0 {
			return err
		}
	}
	for _, ref := range refs {
		s, v, err := store.find(ref)
		if err != nil {
			list = append(list, artifact.Verified{Version: v, Err: err})
			continue
		}
		defer s.Close()
		one, err := s.Verify(ctx, c, v.Digest)
		if len(one) == 0 {
			return err
		}
		list = append(list, one...)
	}
	all := verifyBars(ctx, c, list)
	if err := a.printVerified(all); err != nil {
		return err
	}
	failed := 0
	for _, v := range all {
		if v.Err != nil {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %s failed: %w", failed, plural(len(all), "version"), errCheckFailed)
	}
	return nil
}

func failures(list []artifact.Verified) int {
	n := 0
	for _, v := range list {
		if v.Err != nil {
			n++
		}
	}
	return n
}

func (a *app) printVerified(list []verified) error {
	if a.json {
		docs := []verifiedDoc{}
		for _, v := range list {
			d := verifiedDoc{Digest: v.Version.Digest, OK: v.Err == nil, Files: v.Files, Bytes: v.Bytes, Golden: v.Golden, Decisions: v.bars.Decisions}
			if v.Golden > 0 && !math.IsInf(v.Worst, 0) {
				d.Worst = &v.Worst
			}
			if v.Version.Manifest.Name != "" {
				d.Ref = v.Version.Manifest.Name + "@" + v.Version.Digest
			}
			if v.Err != nil {
				d.Error = v.Err.Error()
			}
			docs = append(docs, d)
		}
		return a.printJSON(map[string]any{"versions": docs})
	}
	w := printable.NewTable(a.out)
	fmt.Fprintln(w, "version\tfiles\tsize\tgolden values\tmax error\tfrom bars\tresult")
	for _, v := range list {
		name := artifact.Short(v.Version.Digest)
		if v.Version.Manifest.Name != "" {
			name = v.Version.String()
		}
		golden, worst, bars, result := "-", "-", "-", "ok"
		if v.Golden > 0 {
			golden, worst = fmt.Sprint(v.Golden), fmt.Sprintf("%.2g", v.Worst)
		}
		if n := v.bars.Decisions; n > 0 {
			bars = plural(n, "decision")
		}
		if v.Err != nil {
			result = strings.ReplaceAll(v.Err.Error(), "\n", "; ")
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\n", dash(name), v.Files, byteCount(v.Bytes), golden, worst, bars, result)
	}
	return w.Flush()
}

func (a *app) modelsLineageCommand() *cobra.Command {
	var dirs []string
	cmd := &cobra.Command{
		Use:   "lineage REF",
		Short: "Show the versions that a version was made from, and theirs",
		Long: `Show the versions that a version was made from, and those that these were made from. Members of a search, the router above them and its whole each have a store of their own. All stores of the run or search that a store belongs to are looked into. With several
stores, such as those of training runs that began with each other's policies, each version is looked up in all of them.

` + referenceHelp,
		Example: `  onnxrl models lineage qtmrl:best --store 'runs/*/artifacts'`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := artifact.ParseReference(args[0])
			if err != nil {
				return err
			}
			stores, err := lineageStores(r, dirs)
			if err != nil {
				return err
			}
			for _, s := range stores {
				defer s.Close()
			}
			var first error
			for i, s := range stores {
				v, err := s.ResolveReference(r)
				if err != nil {
					if first == nil {
						first = err
					}
					if errors.Is(err, artifact.ErrNotFound) && r.Store == "" {
						continue
					}
					return err
				}
				return a.showLineage(s, v, slices.Delete(slices.Clone(stores), i, i+1))
			}
			return first
		},
	}
	cmd.Flags().StringArrayVar(&dirs, "store", nil, "directory of an artefact store, or a pattern of several such as 'runs/*/artifacts'; may be given again (default "+storeDefault+")")
	return cmd
}

// showLineage follows a version of a store through others and, where that does not find all, through
// those of the run or search that each of them belongs to.
func (a *app) showLineage(s *artifact.Store, v artifact.Version, others []*artifact.Store) error {
	line, err := s.Lineage(v.Digest, others...)
	if err != nil {
		return err
	}
	several := len(others) > 0
	if slices.ContainsFunc(line, func(x artifact.Ancestor) bool { return x.Version == nil }) {
		all := slices.Clone(others)
		for _, in := range append([]*artifact.Store{s}, others...) {
			found, err := relatives(in)
			for _, other := range found {
				defer other.Close()
			}
			if err != nil {
				return err
			}
			all = append(all, found...)
		}
		if line, err = s.Lineage(v.Digest, all...); err != nil {
			return err
		}
		several = len(all) > 0
	}
	return a.printLineage(line, several)
}

// lineageStores opens the stores of a lineage: that of the reference, then those of the flags, else
// the one that all commands use, where the reference names none.
func lineageStores(r artifact.Reference, dirs []string) ([]*artifact.Store, error) {
	if r.Store != "" {
		dirs = append([]string{r.Store}, dirs...)
	}
	if len(dirs) == 0 {
		dirs = []string{new(storeFlag).path()}
	}
	return openStores(dirs)
}

// ancestorDoc is a version of a lineage as JSON; Version is null where the store does not have it.
type ancestorDoc struct {
	Digest  string      `json:"digest"`
	Depth   int         `json:"depth"`
	Version *versionDoc `json:"version"`
	// Store is the directory of the store that has it, empty where none does.
	Store string `json:"store"`
}

// printLineage shows ancestors, with the store of each where there are several.
func (a *app) printLineage(line []artifact.Ancestor, several bool) error {
	if a.json {
		docs := []ancestorDoc{}
		for _, x := range line {
			d := ancestorDoc{Digest: x.Digest, Depth: x.Depth, Store: x.Store}
			if x.Version != nil {
				v := docOf(*x.Version)
				d.Version = &v
			}
			docs = append(docs, d)
		}
		return a.printJSON(map[string]any{"lineage": docs})
	}
	w := printable.NewTable(a.out)
	head, where := "version\taliases\tkind\tpublished\tenv steps\tmade from", "not in this store"
	if several {
		head, where = head+"\tstore", "not in these stores"
	}
	fmt.Fprintln(w, head)
	for _, x := range line {
		indent := strings.Repeat("  ", x.Depth)
		if x.Version == nil {
			fmt.Fprintf(w, "%s%s\t-\t-\t-\t-\t%s\n", indent, artifact.Short(x.Digest), where)
			continue
		}
		v := *x.Version
		kind := dash(v.Manifest.Kind)
		if action := v.Manifest.Info["action"]; kind == evolve.MemberKind && action != "" {
			kind += " (" + action + ")"
		}
		var parents []string
		for _, p := range v.Manifest.Parents {
			parents = append(parents, artifact.Short(p))
		}
		fmt.Fprintf(w, "%s%s\t%s\t%s\t%s\t%s\t%s", indent, v, dash(strings.Join(v.Aliases, " ")), kind, published(v), dash(nonZero(v.Manifest.EnvStep)), dash(strings.Join(parents, " ")))
		if several {
			fmt.Fprintf(w, "\t%s", x.Store)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
