package replay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// ArtifactKind is the kind of versions that [Shared.Publish] makes.
const ArtifactKind = "replay"

// checkpointTitle is the folder of the checkpoint's files in a version.
const checkpointTitle = "checkpoint"

// Publish publishes what the store holds as a version without a model, whose files are those of a
// checkpoint. m has the name, and whatever is known of where the transitions come from, such as the
// versions of the policies that acted as Parents; its kind, its env steps and how many transitions
// of each policy there are, are filled in. The same transitions have the same digest. Nobody may
// write meanwhile, and the disk of temporary files has room for the checkpoint. An error publishes
// nothing.
func (s *Shared) Publish(ctx context.Context, to *artifact.Store, m artifact.Manifest, aliases ...string) (v artifact.Version, err error) {
	dir, err := os.MkdirTemp("", "replay-")
	if err != nil {
		return v, fmt.Errorf("replay: publish: %w", err)
	}
	defer func() {
		if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
			err = fmt.Errorf("replay: publish: %w", err)
		}
	}()
	store, err := checkpoint.OpenStore(dir, checkpoint.Options{})
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	st := s.Stats()
	path, err := store.Save(checkpoint.Meta{Kind: ArtifactKind, Step: st.Recorded}, s)
	if err != nil {
		return v, err
	}
	list, err := os.ReadDir(path)
	if err != nil {
		return v, err
	}
	d := artifact.Draft{Manifest: m, Data: true, Aliases: aliases}
	for _, f := range list {
		d.Files = append(d.Files, artifact.NewFile{Title: checkpointTitle + "/" + f.Name(), Path: filepath.Join(path, f.Name())})
	}
	info := map[string]string{"transitions": strconv.Itoa(st.Transitions)}
	for policy, n := range st.Policies {
		info[fmt.Sprintf("transitions/policy_%d", policy)] = strconv.Itoa(n)
	}
	for key, text := range m.Info {
		info[key] = text
	}
	d.Manifest.Kind, d.Manifest.EnvStep, d.Manifest.Info = ArtifactKind, st.Recorded, info
	return to.Publish(ctx, d)
}

// Restore loads what a version has that [Shared.Publish] made, of a store of the same layout and
// size, each file compared with its digest. Writers of the names that it has go on there; see
// [Shared.Missing].
func (s *Shared) Restore(ctx context.Context, v artifact.Version) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("replay: restore %s: %w", v, err)
		}
	}()
	dir, err := os.MkdirTemp("", "replay-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path, err := Extract(ctx, v, dir)
	if err != nil {
		return err
	}
	c, err := checkpoint.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(c.Load(s), c.Close())
}

// Extract writes the files of a version that [Shared.Publish] made into a folder, each compared
// with its digest, and returns the path of the checkpoint.
func Extract(ctx context.Context, v artifact.Version, dir string) (string, error) {
	if v.Manifest.Kind != ArtifactKind || v.HasModel() {
		return "", fmt.Errorf("its kind is %q, expected %q", v.Manifest.Kind, ArtifactKind)
	}
	if _, err := v.Extract(ctx, dir); err != nil {
		return "", err
	}
	return filepath.Join(dir, checkpointTitle), nil
}
