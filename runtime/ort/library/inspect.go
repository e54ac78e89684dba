package library

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// entryPoint is the one symbol through which everything else is reached.
const entryPoint = "OrtGetApiBase"

// inspect reads the headers of a library without loading it. It returns the
// release ("1.32.0", on Windows "1.32"; empty if the file does not say) or an
// error matching [ErrIncompatible] if this platform could not use the file.
func inspect(path string, p platform) (version string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		if info.IsDir() {
			return "", fmt.Errorf("%w: a folder without %s", ErrIncompatible, p.systemNames()[0])
		}
		return "", fmt.Errorf("%w: not a regular file", ErrIncompatible)
	}
	switch p.os {
	case "windows":
		version, err = inspectPE(path, p.arch)
	case "darwin":
		version, err = inspectMachO(path, p.arch)
	default:
		version, err = inspectELF(path, p.arch)
	}
	if err != nil {
		return version, err
	}
	return version, checkRelease(version)
}

// checkRelease refuses releases that cannot serve the API version asked for. An
// unknown release passes: loading the library decides.
func checkRelease(version string) error {
	if version == "" {
		return nil
	}
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(minor)
	if err != nil || major != "1" || n < MinMinor {
		return fmt.Errorf("%w: release %s, expected 1.%d or later", ErrIncompatible, version, MinMinor)
	}
	return nil
}

func wrongMachine(got any, arch string) error {
	return fmt.Errorf("%w: built for %v, expected %s", ErrIncompatible, got, arch)
}

func noEntryPoint() error {
	return fmt.Errorf("%w: does not export %s", ErrIncompatible, entryPoint)
}

func inspectELF(path, arch string) (string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("%w: no ELF file (%v)", ErrIncompatible, err)
	}
	defer f.Close()
	want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]
	if f.Machine != want {
		return "", wrongMachine(f.Machine, arch)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return "", fmt.Errorf("%w: %v", ErrIncompatible, err)
	}
	for _, s := range symbols {
		if s.Name == entryPoint && s.Section != elf.SHN_UNDEF {
			// The build gives every exported symbol the version node VERS_<release>.
			return strings.TrimPrefix(s.Version, "VERS_"), nil
		}
	}
	return "", noEntryPoint()
}

func inspectMachO(path, arch string) (string, error) {
	f, err := macho.Open(path)
	if err != nil {
		if fat, fatErr := macho.OpenFat(path); fatErr == nil {
			defer fat.Close()
			for _, a := range fat.Arches {
				if a.Cpu == machoCPU(arch) {
					return inspectMachOFile(a.File, arch)
				}
			}
			return "", wrongMachine("other architectures", arch)
		}
		return "", fmt.Errorf("%w: no Mach-O file (%v)", ErrIncompatible, err)
	}
	defer f.Close()
	return inspectMachOFile(f, arch)
}

func machoCPU(arch string) macho.Cpu {
	return map[string]macho.Cpu{"amd64": macho.CpuAmd64, "arm64": macho.CpuArm64}[arch]
}

func inspectMachOFile(f *macho.File, arch string) (string, error) {
	if f.Cpu != machoCPU(arch) {
		return "", wrongMachine(f.Cpu, arch)
	}
	exported := false
	if f.Symtab != nil {
		for _, s := range f.Symtab.Syms {
			if s.Name == "_"+entryPoint && s.Sect != 0 {
				exported = true
				break
			}
		}
	}
	if !exported {
		return "", noEntryPoint()
	}
	const loadCommandIDDylib = 0xd // LC_ID_DYLIB of mach-o/loader.h
	for _, l := range f.Loads {
		raw := l.Raw()
		if len(raw) >= 20 && f.ByteOrder.Uint32(raw) == loadCommandIDDylib {
			v := f.ByteOrder.Uint32(raw[16:])
			return fmt.Sprintf("%d.%d.%d", v>>16, v>>8&0xff, v&0xff), nil
		}
	}
	return "", nil
}

func inspectPE(path, arch string) (string, error) {
	f, err := pe.Open(path)
	if err != nil {
		return "", fmt.Errorf("%w: no PE file (%v)", ErrIncompatible, err)
	}
	defer f.Close()
	want := map[string]uint16{"amd64": pe.IMAGE_FILE_MACHINE_AMD64, "arm64": pe.IMAGE_FILE_MACHINE_ARM64}[arch]
	if f.Machine != want {
		return "", wrongMachine(fmt.Sprintf("machine %#x", f.Machine), arch)
	}
	// debug/pe does not decode export tables; the exported name must at least
	// occur in the section that holds them.
	exported := false
	for _, name := range []string{".rdata", ".edata"} {
		if s := f.Section(name); s != nil {
			if data, err := s.Data(); err == nil && bytes.Contains(data, []byte("\x00"+entryPoint+"\x00")) {
				exported = true
			}
		}
	}
	if !exported {
		return "", noEntryPoint()
	}
	resources := f.Section(".rsrc")
	if resources == nil {
		return "", nil
	}
	data, err := resources.Data()
	if err != nil {
		return "", nil
	}
	// VS_FIXEDFILEINFO starts with a signature, followed by the structure's
	// version and the file's version as two little-endian words each. The build's
	// third number is not the release's.
	i := bytes.Index(data, []byte{0xbd, 0x04, 0xef, 0xfe})
	if i < 0 || len(data) < i+12 {
		return "", nil
	}
	minor, major := binary.LittleEndian.Uint16(data[i+8:]), binary.LittleEndian.Uint16(data[i+10:])
	return fmt.Sprintf("%d.%d", major, minor), nil
}
