package flight

import "github.com/onnxrl/onnxrl/runtime/atomicfile"

// steadyDisk syncs files of checkpoints as they are written, piece by piece. A file system that
// orders what it writes makes an fsync of the journal, which writers wait for, wait for all that
// the checkpoint has written and not synced.
type steadyDisk struct{ atomicfile.Disk }

// steadyBytes is how much of a checkpoint may wait for the disk.
const steadyBytes = 4 << 20

func (d steadyDisk) Create(path string) (atomicfile.File, error) {
	f, err := d.Disk.Create(path)
	if err != nil {
		return nil, err
	}
	return &steadyFile{File: f}, nil
}

type steadyFile struct {
	atomicfile.File
	waiting int
}

// Write implements io.Writer.
func (f *steadyFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	if f.waiting += n; err == nil && f.waiting >= steadyBytes {
		f.waiting = 0
		err = f.Sync()
	}
	return n, err
}
