package suite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cpu gives the time that all threads of a process ran, from the scheduler,
// which counts nanoseconds where /proc/PID/stat counts hundredths of a second.
// Threads that have ended are missing: Go and Envoy keep theirs.
func cpu(pid int) (time.Duration, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(tasks) == 0 {
		return 0, fmt.Errorf("process %d: no threads: %w", pid, os.ErrNotExist)
	}
	var sum time.Duration
	for _, t := range tasks {
		d, err := ran(t)
		if err != nil {
			continue // it ended meanwhile
		}
		sum += d
	}
	return sum, nil
}

// mainThread gives the time that a process's first thread ran: Envoy's main
// thread, which applies configuration.
func mainThread(pid int) (time.Duration, error) {
	return ran(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, pid))
}

func ran(file string) (time.Duration, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(raw), " ")
	ns, err := strconv.ParseInt(first, 10, 64)
	return time.Duration(ns), err
}

// memory gives a process's resident bytes, now and at most.
func memory(pid int) (now, peak int64, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kb, _ := strconv.ParseInt(f[1], 10, 64) // 0 shows
		switch f[0] {
		case "VmRSS:":
			now = kb << 10
		case "VmHWM:":
			peak = kb << 10
		}
	}
	return now, peak, nil
}

// rest is how long a process is left alone before its memory is read: what it
// gives back to the kernel, it gives back in its own time.
const rest = 5 * time.Second

// rested is memory after a rest.
func rested(ctx context.Context, pid int) (now, peak int64, err error) {
	select {
	case <-time.After(rest):
		return memory(pid)
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
}

// meter measures what a process uses from one moment to another.
type meter struct {
	pid  int
	from time.Duration
}

func startMeter(pid int) (meter, error) {
	c, err := cpu(pid)
	return meter{pid, c}, err
}

func (m meter) used() (time.Duration, error) {
	c, err := cpu(m.pid)
	return c - m.from, err
}
