package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/artifact/registry"
	"github.com/onnxrl/onnxrl/runtime/objects"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

const registryHelp = `Credentials are those that "docker login" has left in Docker's configuration, or --username with the password or token on
standard input. Registries on this machine (localhost, 127.0.0.1, [::1]) are asked without TLS unless --plain-http=false is given.`

// registryFlags say how a registry is reached.
type registryFlags struct {
	plain    bool
	username string
	password bool
}

func (f *registryFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.plain, "plain-http", false, "ask the registry without TLS")
	fl.StringVar(&f.username, "username", "", "user of the registry")
	fl.BoolVar(&f.password, "password-stdin", false, "read the password or token of --username from standard input")
}

// open returns the repository of REGISTRY/REPO[:TAG|@digest] and the tag or digest, which is empty
// where there is none.
func (f *registryFlags) open(cmd *cobra.Command, a *app, s string) (*registry.Repository, string, error) {
	if scheme, _, ok := strings.Cut(s, "://"); ok {
		return nil, "", fmt.Errorf("registry reference %q: leave %s:// out, and give --plain-http for a registry without TLS; storages have a URL with one of %s", s, scheme, strings.Join(objects.Schemes(), ", "))
	}
	o := registry.Options{Username: f.username, Agent: a.name + "/" + a.version, Patience: registryPatience}
	if cmd.Flags().Changed("plain-http") {
		o.Plain = &f.plain
	}
	switch {
	case f.password && f.username == "":
		return nil, "", errors.New("--password-stdin belongs to --username")
	case f.username != "" && !f.password:
		return nil, "", errors.New("--username needs the password or token on standard input: give --password-stdin")
	case f.username != "":
		text, err := io.ReadAll(io.LimitReader(a.in, 64<<10))
		if err != nil {
			return nil, "", fmt.Errorf("read the password from standard input: %w", err)
		}
		o.Password = strings.TrimRight(string(text), "\r\n")
	}
	return registry.Open(s, o)
}

// registryPatience is how long a registry may say nothing; 0 is what package registry gives it.
var registryPatience time.Duration

// transferDoc is what was pushed or pulled, as JSON.
type transferDoc struct {
	// URL is that of a storage; Registry and Repository are empty then.
	URL        string `json:"url,omitempty"`
	Registry   string `json:"registry"`
	Repository string `json:"repository"`
	Tag        string `json:"tag"`
	// Versions counts those that were transferred or found there, ancestors included. Files and
	// Bytes are what went over the line, Skipped the files that the receiver had.
	Versions int   `json:"versions"`
	Files    int   `json:"files"`
	Bytes    int64 `json:"bytes"`
	Skipped  int   `json:"skipped"`
	// Repaired are the objects of a storage that were damaged and were written again, with --verify.
	Repaired int64      `json:"repaired"`
	Version  versionDoc `json:"version"`
}

// transferring shows and adds up what goes over the line.
type transferring struct {
	start func() *progress.Progress
	bar   *progress.Progress
	last  map[string]artifact.Progress
}

func (a *app) startTransfer(label string) *transferring {
	start := func() *progress.Progress {
		return progress.Start(a.err, progress.Options{Label: label, Unit: progress.Bytes, Quiet: a.quiet})
	}
	return &transferring{start: start, last: map[string]artifact.Progress{}}
}

// report shows nothing before the first byte: whatever fails until then is one line of error.
func (t *transferring) report(p artifact.Progress) {
	key := p.Version + "/" + p.Title
	if !p.Skipped {
		if t.bar == nil {
			t.bar = t.start()
		}
		t.bar.Add(p.Done - t.last[key].Done)
	}
	t.last[key] = p
}

func (t *transferring) end(d *transferDoc) {
	t.bar.Finish()
	for _, p := range t.last {
		if p.Skipped {
			d.Skipped++
			continue
		}
		d.Files++
		d.Bytes += p.Done
	}
}

// text says what went over the line.
func (d transferDoc) text() string {
	s := fmt.Sprintf("%s, %s", plural(d.Files, "file"), byteCount(d.Bytes))
	if d.Skipped > 0 {
		s += fmt.Sprintf("; %s there already", plural(d.Skipped, "file"))
	}
	if d.Repaired > 0 {
		s += fmt.Sprintf("; %d damaged there", d.Repaired)
	}
	if d.Versions > 1 {
		s += "; with " + plural(d.Versions-1, "ancestor")
	}
	return s
}

func (a *app) modelsPushCommand() *cobra.Command {
	var store storeFlag
	var reg registryFlags
	var lineage, verify bool
	cmd := &cobra.Command{
		Use:   "push REF|PATH REGISTRY/REPOSITORY[:TAG]|URL[#TAG]",
		Short: "Copy a version, directory or file to a registry or a storage",
		Long: `Copy a version to a container registry or a storage, where it has the same digest. The tag is that of the second argument, else
the alias of the first; what was given by digest alone gets no tag. Files that the receiver has are not sent, so a push that was
interrupted goes on where it was.

To a storage also a run directory goes, or any other directory or file, such as data. The command prints a reference, URL#sha256:…, with /PATH for a file in it. Commands read it in place of a path, and configurations at every key of a file or directory that is read. It is fetched once, into a cache, and compared with its digest.

Objects that the receiver has are taken to be whole. Where a storage has lost bytes, which reading notices, --verify reads the objects there and writes damaged ones again.

` + objectsHelp + "\n\n" + registryHelp + "\n\n" + referenceHelp,
		Example: `  onnxrl models push qtmrl:best registry.example.com/team/qtmrl:v1 --lineage
  onnxrl models push qtmrl:best s3://models/team#v1
  onnxrl models push runs/qtmrl 's3://models/team?endpoint=https://storage.example.com#nightly'`,
		Args:        cobra.ExactArgs(2),
		Annotations: map[string]string{keepsReferences: "true"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if objects.IsURL(args[1]) && isThere(args[0]) {
				return a.pushTree(cmd.Context(), args[0], args[1], verify)
			}
			to, err := reg.openPlace(cmd, a, args[1], verify)
			if err != nil {
				return err
			}
			defer to.close()
			tag := to.name
			ref, err := artifact.ParseReference(args[0])
			if err != nil {
				return err
			}
			if strings.Contains(tag, ":") {
				return fmt.Errorf("%q: a version is pushed to a tag; its digest is its own", args[1])
			}
			if tag == "" {
				tag = ref.Alias
			}
			s, v, err := store.find(args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			o := artifact.PushOptions{Lineage: lineage}
			if lineage {
				o.Others, err = relatives(s)
				for _, other := range o.Others {
					defer other.Close()
				}
				if err != nil {
					return err
				}
			}
			if tag != "" {
				o.Tags = []string{tag}
			}
			doc := to.doc
			doc.Tag = tag
			t := a.startTransfer("push")
			o.Progress = t.report
			v, doc.Versions, err = s.Push(cmd.Context(), v.Digest, to, o)
			t.end(&doc)
			doc.Repaired = to.repaired()
			if err != nil {
				return to.explain(err)
			}
			if a.json {
				doc.Version = docOf(v)
				return a.printJSON(doc)
			}
			there := to.there
			switch {
			case tag != "":
				there += to.tag + tag
			case to.tag == "#":
				there += "#" + v.Digest
			}
			if to.tag == ":" {
				there += "@" + v.Digest
			}
			_, err = fmt.Fprintf(a.out, "%s is %s (%s)\n", v, there, doc.text())
			return err
		},
	}
	store.add(cmd)
	reg.add(cmd)
	cmd.Flags().BoolVar(&lineage, "lineage", false, "also copy the versions that it was made from, as far as the store, and the others of its run or search, have them")
	cmd.Flags().BoolVar(&verify, "verify", false, "read the objects that the storage has, and write damaged ones again")
	return cmd
}

func (a *app) modelsPullCommand() *cobra.Command {
	var store storeFlag
	var reg registryFlags
	var lineage bool
	var as, out string
	var most int64
	cmd := &cobra.Command{
		Use:   "pull REGISTRY/REPOSITORY[:TAG|@DIGEST]|URL[#TAG|#DIGEST]",
		Short: "Copy a version or a directory from a registry or a storage",
		Long: `Copy a version from a container registry or a storage into the store, where it has the same digest; every file is compared with
its own. Files that the store has are not fetched, so a pull that was interrupted goes on where it was.

The version keeps its name, which the digest covers. It gets the tag as its alias, or the one of --as, which may also say what
name is expected: --as qtmrl:prod. What is pulled by digest gets no alias without --as, and "models gc" may remove it.

With --out it is a directory that "models push" has sent to a storage: it is made there, as it was, or not at all.

` + objectsHelp + "\n\n" + registryHelp,
		Example: `  onnxrl models pull registry.example.com/team/qtmrl:v1 --as qtmrl:prod --lineage
  onnxrl models pull s3://models/team#v1
  onnxrl models pull 's3://models/team?endpoint=https://storage.example.com#nightly' --out runs/nightly`,
		Args:        cobra.ExactArgs(1),
		Annotations: map[string]string{keepsReferences: "true"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if most <= 0 {
				return fmt.Errorf("--max-bytes %d: expected a positive number", most)
			}
			if out != "" {
				if !objects.IsURL(args[0]) || as != "" || lineage {
					return errors.New("--out is for directories, which are in a storage, such as s3://BUCKET/PREFIX#TAG, and have no alias and no lineage")
				}
				return a.pullTree(cmd.Context(), args[0], out, most)
			}
			from, err := reg.openPlace(cmd, a, args[0], false)
			if err != nil {
				return err
			}
			defer from.close()
			ref := from.name
			if ref == "" {
				ref = artifact.Latest
			}
			doc := from.doc
			o := artifact.PullOptions{Lineage: lineage, MaxBytes: most}
			if !strings.Contains(ref, ":") {
				doc.Tag, o.Aliases = ref, []string{ref}
			}
			if as != "" {
				name, alias, ok := strings.Cut(as, ":")
				if !ok {
					alias = artifact.Latest
				}
				if err := errors.Join(artifact.CheckName(name), artifact.CheckAlias(alias)); err != nil {
					return fmt.Errorf("--as %q: %w", as, err)
				}
				o.Name, o.Aliases = name, []string{alias}
			}
			s, err := artifact.Open(store.target(), artifact.Options{Now: time.Now})
			if err != nil {
				return err
			}
			defer s.Close()
			v, err := a.pull(cmd.Context(), s, from, ref, o, &doc)
			if err != nil {
				return from.explain(err)
			}
			if a.json {
				doc.Version = docOf(v)
				return a.printJSON(doc)
			}
			aliases := "without an alias"
			if len(o.Aliases) > 0 {
				aliases = v.Manifest.Name + ":" + o.Aliases[0]
			}
			_, err = fmt.Fprintf(a.out, "%s is %s (%s)\n", v, aliases, doc.text())
			return err
		},
	}
	store.add(cmd)
	reg.add(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&lineage, "lineage", false, "also copy the versions that it was made from, as far as the repository has them")
	fl.StringVarP(&out, "out", "o", "", "directory to make of one in a storage; it must not exist")
	fl.StringVar(&as, "as", "", "expected name and alias, NAME[:ALIAS]; without an alias it is "+artifact.Latest)
	fl.Int64Var(&most, "max-bytes", artifact.DefaultMaxBytes, "refuse versions that are larger")
	return cmd
}

func (a *app) pull(ctx context.Context, s *artifact.Store, from artifact.Source, ref string, o artifact.PullOptions, doc *transferDoc) (v artifact.Version, err error) {
	t := a.startTransfer("pull")
	defer t.end(doc)
	o.Progress = t.report
	v, doc.Versions, err = s.Pull(ctx, from, ref, o)
	return v, err
}
