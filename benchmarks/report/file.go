package report

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// New gives a run that begins now on this machine.
func New(mode string, now time.Time) *Run {
	return &Run{Date: now.UTC().Truncate(time.Second), Commit: commit(), Go: runtime.Version(), Machine: machine(), Mode: mode}
}

// Save writes the run as JSON.
func (r *Run) Save(path string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	return os.WriteFile(path, append(raw, '\n'), 0o644) //nolint:gosec // results are public
}

// SaveAll writes the run and its plots into a folder, under its mode's name.
func (r *Run) SaveAll(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // results are public
		return err
	}
	if err := r.Save(filepath.Join(folder, r.Mode+".json")); err != nil {
		return err
	}
	return r.Plots(folder)
}

// Read reads what Save wrote.
func Read(path string) (*Run, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Run{}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func machine() Machine {
	m := Machine{Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH}
	m.CPU = procLine("/proc/cpuinfo", "model name")
	if kb, err := strconv.Atoi(strings.TrimSuffix(procLine("/proc/meminfo", "MemTotal"), " kB")); err == nil {
		m.Memory = kb / 1024
	}
	if raw, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load = strings.Join(strings.Fields(string(raw))[:3], " ")
	}
	return m
}

func procLine(file, key string) string {
	raw, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(raw)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
