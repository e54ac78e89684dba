package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/printable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// storeVariable names the artefact store that commands use when no --store is given.
const storeVariable = "ONNXRL_STORE"

// storeFlag is where artefacts are kept.
type storeFlag struct{ dir string }

func (f *storeFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dir, "store", "", "directory of the artefact store (default "+storeDefault+")")
}

// storeDefault says which store is used where none is named.
var storeDefault = "$" + storeVariable + ", else " + filepath.Join("runs", publish.StoreDir) + ", to read also that of the only run in runs"

// target is the directory of the store that is written to: the flag, else the environment's, else
// runs/artifacts.
func (f *storeFlag) target() string {
	return cmp.Or(f.dir, os.Getenv(storeVariable), filepath.Join("runs", publish.StoreDir))
}

// path is the directory of the store that is read: target, or the store of the only run below this
// directory where target is no more than a default that is not there.
func (f *storeFlag) path() string {
	dir := f.target()
	if f.dir != "" || os.Getenv(storeVariable) != "" {
		return dir
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if runs := runStores(); len(runs) == 1 {
			return runs[0]
		}
	}
	return dir
}

// runStores lists the stores of the runs below this directory: every run that published has one.
func runStores() []string {
	// The pattern is right, so there is no error.
	found, _ := filepath.Glob(filepath.Join("runs", "*", publish.StoreDir, "oci-layout"))
	for i := range found {
		found[i] = filepath.Dir(found[i])
	}
	return found
}

// find resolves a reference in the store that it names, else in the flag's.
func (f *storeFlag) find(ref string) (*artifact.Store, artifact.Version, error) {
	return artifact.Find(ref, f.path())
}

// nameStores makes an error about a store that is not there name those of the runs below this
// directory.
func nameStores(err error) error {
	if !errors.Is(err, artifact.ErrNoStore) {
		return err
	}
	found := runStores()
	if len(found) == 0 {
		return err
	}
	return fmt.Errorf("%w; name one with --store, such as %s", err, shorten(found, 3))
}

const referenceHelp = `A reference is NAME (the latest version), NAME:ALIAS, NAME@sha256:… or sha256:…, where the first digits of a digest
are enough, optionally after the directory of another store: runs/artifacts//qtmrl:best.`

func (a *app) modelsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "models",
		Short: "Published models: versions that stay, and names that move",
		Long: `Published models: versions that never change, and the names that move between them.

A store is a directory in the OCI image layout. A version is one model under a name with its manifest: inputs and outputs,
metrics, and the versions, seed, data and configuration that it was made from. Its digest covers all of that.

` + referenceHelp,
		Args: cobra.ArbitraryArgs,
	}
	cmd.AddCommand(a.modelsLsCommand(), a.modelsShowCommand(), a.modelsPublishCommand(), a.modelsAliasCommand(), a.modelsVerifyCommand(), a.modelsLineageCommand(),
		a.modelsDiffCommand(), a.modelsGCCommand(), a.modelsPushCommand(), a.modelsPullCommand())
	for _, sub := range cmd.Commands() {
		do := sub.RunE
		sub.RunE = func(cmd *cobra.Command, args []string) error { return nameStores(do(cmd, args)) }
	}
	return cmd
}

// versionDoc is a version as JSON.
type versionDoc struct {
	Ref       string            `json:"ref"`
	Name      string            `json:"name"`
	Digest    string            `json:"digest"`
	Aliases   []string          `json:"aliases"`
	Published *time.Time        `json:"published"`
	Bytes     int64             `json:"bytes"`
	Files     []fileDoc         `json:"files"`
	Manifest  artifact.Manifest `json:"manifest"`
}

type fileDoc struct {
	Title     string `json:"title"`
	MediaType string `json:"media_type"`
	Digest    string `json:"digest"`
	Bytes     int64  `json:"bytes"`
}

func docOf(v artifact.Version) versionDoc {
	d := versionDoc{Ref: v.Manifest.Name + "@" + v.Digest, Name: v.Manifest.Name, Digest: v.Digest, Aliases: append([]string{}, v.Aliases...), Bytes: v.Size(), Files: []fileDoc{}, Manifest: v.Manifest}
	if !v.Published.IsZero() {
		d.Published = &v.Published
	}
	for _, f := range v.Files {
		d.Files = append(d.Files, fileDoc{Title: f.Title, MediaType: f.MediaType, Digest: f.Digest, Bytes: f.Size})
	}
	return d
}

func (a *app) modelsLsCommand() *cobra.Command {
	var store storeFlag
	cmd := &cobra.Command{
		Use:   "ls [NAME]",
		Short: "List the versions of a store, or of one name",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := artifact.Open(store.path(), artifact.Options{MustExist: true})
			if err != nil {
				return err
			}
			defer s.Close()
			if store.path() != store.target() && !a.quiet {
				a.say("store %s, of the only run here", store.path())
			}
			// Damaged versions are reported after those that can be read.
			list, damage := s.List()
			if len(args) > 0 {
				list = slices.DeleteFunc(list, func(v artifact.Version) bool { return v.Manifest.Name != args[0] })
				if len(list) == 0 && damage == nil {
					// The error says which names there are.
					_, err := s.Resolve(args[0])
					return err
				}
			}
			if a.json {
				docs := []versionDoc{}
				for _, v := range list {
					docs = append(docs, docOf(v))
				}
				if err := a.printJSON(map[string]any{"store": store.path(), "versions": docs}); err != nil {
					return err
				}
				return damage
			}
			if len(list) == 0 && damage != nil {
				return damage
			}
			return errors.Join(printVersions(a.out, list), damage)
		},
	}
	store.add(cmd)
	return cmd
}

func printVersions(out io.Writer, list []artifact.Version) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "no versions")
		return err
	}
	w := printable.NewTable(out)
	fmt.Fprintln(w, "name\tversion\taliases\tkind\tpublished\tsize\tenv steps")
	for _, v := range list {
		m := v.Manifest
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.Name, artifact.Short(v.Digest), dash(strings.Join(v.Aliases, " ")), dash(m.Kind), published(v), byteCount(v.Size()), dash(nonZero(m.EnvStep)))
	}
	return w.Flush()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// nonZero prints a number, nothing for 0.
func nonZero(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func published(v artifact.Version) string {
	if v.Published.IsZero() {
		return "-"
	}
	return v.Published.Format("2006-01-02 15:04:05Z")
}

func byteCount(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000*1000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

func (a *app) modelsShowCommand() *cobra.Command {
	var store storeFlag
	cmd := &cobra.Command{
		Use:   "show REF",
		Short: "Show what a version computes, comes from and consists of",
		Long:  "Show what a version computes, where it comes from and what it consists of.\n\n" + referenceHelp,
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			s, v, err := store.find(args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			if a.json {
				return a.printJSON(docOf(v))
			}
			return printVersion(a.out, v)
		},
	}
	store.add(cmd)
	return cmd
}

// printVersion shows everything that is known of a version, and nothing that is not.
func printVersion(out io.Writer, v artifact.Version) error {
	m := v.Manifest
	w := printable.NewTable(out)
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", key, value)
		}
	}
	line("name", m.Name)
	line("version", v.Digest)
	line("aliases", strings.Join(v.Aliases, " "))
	line("kind", m.Kind)
	line("description", m.Description)
	line("published", strings.TrimPrefix(published(v), "-"))
	for _, p := range m.Inputs {
		line("input", portText(p))
	}
	for _, p := range m.Outputs {
		line("output", portText(p))
	}
	for domain, version := range sorted.All(m.Opsets) {
		line("opset", fmt.Sprintf("%s %d", domain, version))
	}
	line("IR", nonZero(int64(m.IR)))
	for k, v := range sorted.All(m.Metrics) {
		line("metric", fmt.Sprintf("%s = %g", k, v))
	}
	if m.Seed != nil {
		line("seed", strconv.FormatUint(*m.Seed, 10))
	}
	line("env steps", nonZero(m.EnvStep))
	line("learner steps", nonZero(m.LearnerStep))
	line("config", m.ConfigDigest)
	line("data", m.DataDigest)
	line("code", m.CodeVersion)
	for _, p := range m.Parents {
		line("parent", p)
	}
	if len(m.Features) > 0 {
		line("features", plural(len(m.Features), "byte")+" of JSON, which --json shows")
	}
	if g := m.Golden; g != nil {
		line("golden", fmt.Sprintf("%s, tolerance %g", plural(g.Rows, "row"), g.Tolerance))
	}
	for k, v := range sorted.All(m.Info) {
		line(k, v)
	}
	for _, f := range v.Files {
		line("file", fmt.Sprintf("%s  %s  %s", f.Title, byteCount(f.Size), artifact.Short(f.Digest)))
	}
	return w.Flush()
}

// portText is a port in the form of the graph commands: name, type, shape with the names of free
// extents, then bounds and meaning.
func portText(p artifact.Port) string {
	s := p.Name + " " + p.DType
	if p.Shape != nil {
		var dims []string
		for i, n := range p.Shape {
			switch {
			case n >= 0:
				dims = append(dims, strconv.Itoa(n))
			case p.Axes != nil && p.Axes[i] != "":
				dims = append(dims, p.Axes[i])
			default:
				dims = append(dims, "?")
			}
		}
		s += "[" + strings.Join(dims, " ") + "]"
	}
	if b := p.Bounds; b != nil && len(b.Low) > 0 {
		s += fmt.Sprintf(" in [%g, %g]", float64(slices.Min(b.Low)), float64(slices.Max(b.High)))
	}
	if p.Description != "" {
		s += ": " + p.Description
	}
	return s
}

func (a *app) modelsAliasCommand() *cobra.Command {
	var store storeFlag
	var remove bool
	cmd := &cobra.Command{
		Use:   "alias REF ALIAS",
		Short: "Let an alias stand for a version, or remove it",
		Long: `Let an alias, such as prod, stand for a version of the same name. It is moved if it stands for another. With --delete the alias
of that name is removed; the version stays, and "models gc" removes it once nothing needs it.

` + referenceHelp,
		Example: `  onnxrl models alias qtmrl:best prod
  onnxrl models alias --delete qtmrl prod`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if remove {
				return a.removeAlias(cmd.Context(), &store, args[0], args[1])
			}
			s, v, err := store.find(args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			was := "it was not set"
			if old, err := s.Resolve(v.Manifest.Name + ":" + args[1]); err == nil {
				was = "it was " + artifact.Short(old.Digest)
			}
			if v, err = s.Alias(cmd.Context(), v.Digest, args[1]); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(docOf(v))
			}
			_, err = fmt.Fprintf(a.out, "%s:%s is %s (%s)\n", v.Manifest.Name, args[1], v, was)
			return err
		},
	}
	store.add(cmd)
	cmd.Flags().BoolVarP(&remove, "delete", "d", false, "remove the alias")
	return cmd
}

// removeAlias takes the name from a reference; what it stands for does not matter.
func (a *app) removeAlias(ctx context.Context, store *storeFlag, ref, alias string) error {
	r, err := artifact.ParseReference(ref)
	if err != nil {
		return err
	}
	if r.Name == "" {
		return fmt.Errorf("artefact reference %q: expected the name whose alias is removed", ref)
	}
	dir := store.path()
	if r.Store != "" {
		dir = r.Store
	}
	s, err := artifact.Open(dir, artifact.Options{MustExist: true})
	if err != nil {
		return err
	}
	defer s.Close()
	old, err := s.Resolve(r.Name + ":" + alias)
	if err != nil && !errors.Is(err, artifact.ErrDamaged) {
		return err
	}
	if err := s.RemoveAlias(ctx, r.Name, alias); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"name": r.Name, "alias": alias, "was": old.Digest})
	}
	_, err = fmt.Fprintf(a.out, "%s:%s is removed (it was %s)\n", r.Name, alias, artifact.Short(old.Digest))
	return err
}
