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

// ArtifactKind is the kind of versions that [Publish] makes, and of the checkpoints in them.
const ArtifactKind = "replay"

// checkpointTitle is the folder of the checkpoint's files in a version.
const checkpointTitle = "checkpoint"

// Publish publishes the replay that a checkpoint has (see [In]) as a version without a model, whose
// files are those of a checkpoint of the replay alone. m has the name, and whatever is known of where
// the transitions come from, such as the versions of the policies that acted as Parents; its kind,
// its env steps, which count what was ever recorded, and how many transitions of each policy there
// are, are filled in. The same transitions have the same digest. The disk of temporary files has
// room for the checkpoint. An error publishes nothing.
func Publish(ctx context.Context, c *checkpoint.Checkpoint, to *artifact.Store, m artifact.Manifest, aliases ...string) (v artifact.Version, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("replay: publish: %w", err)
		}
	}()
	r, err := In(c.Reader())
	if err != nil {
		return v, err
	}
	has, err := countedIn(r)
	if err != nil {
		return v, err
	}
	dir, err := os.MkdirTemp("", "replay-")
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	store, err := checkpoint.OpenStore(dir, checkpoint.Options{})
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	path, err := store.SaveScope(checkpoint.Meta{Kind: ArtifactKind, Step: has.recorded}, r)
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
	info := map[string]string{}
	total := 0
	for policy, n := range has.policies {
		info[fmt.Sprintf("transitions/policy_%d", policy)] = strconv.Itoa(n)
		total += n
	}
	info["transitions"] = strconv.Itoa(total)
	for key, text := range m.Info {
		info[key] = text
	}
	d.Manifest.Kind, d.Manifest.EnvStep, d.Manifest.Info = ArtifactKind, has.recorded, info
	return to.Publish(ctx, d)
}

// In is the scope of a checkpoint that has a replay: of a replay by itself or of one that members of a
// search share, of a server's table, or of a run.
func In(r *checkpoint.Reader) (*checkpoint.Reader, error) {
	for _, at := range []*checkpoint.Reader{r, r.Scope("store"), r.Scope("agent").Scope("replay")} {
		if at.Has("replay") || at.Has("shared") || at.Has("recorder") {
			return at, nil
		}
	}
	return nil, errors.New("the checkpoint has no replay")
}

// counted are the transitions of each policy, and how many were ever recorded.
type counted struct {
	policies map[int32]int
	recorded int64
}

// countedIn counts the transitions of a saved replay.
func countedIn(r *checkpoint.Reader) (c counted, err error) {
	var rec recorded
	if r.Has("recorder") {
		if err := r.JSON("recorder", &rec); err != nil {
			return c, err
		}
		if rec.Store != "" {
			return c, &ElsewhereError{rec.Store}
		}
	}
	c.policies = map[int32]int{}
	if r.Has("shared") {
		var s savedShared
		if err := r.JSON("shared", &s); err != nil {
			return c, err
		}
		for _, k := range s.Chunks {
			if k.Transitions > 0 {
				c.policies[k.Policy] += k.Transitions
			}
		}
		c.recorded = s.Clock
		return c, nil
	}
	var s saved
	if err := r.JSON("replay", &s); err != nil {
		return c, err
	}
	shape, _ := r.Shape("finals")
	if len(shape) != 1 {
		return c, fmt.Errorf("finals are an array of shape %v, expected one dimension", shape)
	}
	finals := make(rowSet, shape[0])
	if err := r.Uint64sInto("finals", finals); err != nil {
		return c, err
	}
	for e, n := range s.N {
		if e >= len(s.Begin) || s.Size < 1 || n < 0 || n > s.Size || s.Begin[e] < 0 || (e+1)*s.Size > 64*len(finals) {
			return c, fmt.Errorf("environment %d has %d of %d rows", e, n, s.Size)
		}
		for k := range n - 1 {
			if !finals.has(e*s.Size + (s.Begin[e]+k)%s.Size) {
				c.policies[0]++
			}
		}
	}
	c.recorded = rec.Rounds * int64(len(s.N))
	return c, nil
}

// Restore loads what a version has that [Publish] made of a store of the same layout and size, each
// file compared with its digest. Writers of the names that it has go on there; see [Shared.Missing].
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

// Extract writes the files of a version that [Publish] made into a folder, each compared with its
// digest, and returns the path of the checkpoint.
func Extract(ctx context.Context, v artifact.Version, dir string) (string, error) {
	if v.Manifest.Kind != ArtifactKind || v.HasModel() {
		return "", fmt.Errorf("its kind is %q, expected %q", v.Manifest.Kind, ArtifactKind)
	}
	if _, err := v.Extract(ctx, dir); err != nil {
		return "", err
	}
	return filepath.Join(dir, checkpointTitle), nil
}
