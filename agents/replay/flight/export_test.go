package flight

import (
	"path/filepath"

	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// SetDisk has the checkpoints of a table written to another disk.
func SetDisk(s *Server, name string, d atomicfile.Disk) error {
	t := s.tables[name].(*table)
	t.saving.Lock()
	defer t.saving.Unlock()
	err := t.store.Close()
	if err != nil {
		return err
	}
	t.store, err = checkpoint.OpenStore(filepath.Join(t.dir, "checkpoints"), checkpoint.Options{KeepLast: 2, Disk: d})
	return err
}
