package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what the kernel counts for a process.
type Usage struct {
	RSS  int64 // resident bytes now
	Peak int64 // highest RSS so far
	CPU  time.Duration
}

// userHz is the unit of /proc's times, the same on all of Linux.
const userHz = 100

// Usage reads the process's figures.
func (p *Process) Usage() (Usage, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return Usage{}, err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return Usage{}, err
	}
	u := Usage{RSS: kilobytes(status, "VmRSS:"), Peak: kilobytes(status, "VmHWM:")}
	// The program's name, in brackets, may hold spaces.
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return u, fmt.Errorf("/proc/%d/stat: %q is too short", p.PID(), stat)
	}
	for _, f := range fields[11:13] { // utime, stime
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return u, fmt.Errorf("/proc/%d/stat: %w", p.PID(), err)
		}
		u.CPU += time.Duration(n) * time.Second / userHz
	}
	return u, nil
}

// CPU is what the processes that still run have used so far.
func (g *Group) CPU() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	var sum time.Duration
	for _, p := range g.live {
		if u, err := p.Usage(); err == nil { // or it has just ended
			sum += u.CPU
		}
	}
	return sum
}

// MachineCPU is how long the machine's processors have been busy, with anything.
func MachineCPU() (time.Duration, error) {
	all, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(all), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	var busy time.Duration
	for i, f := range fields[1:9] { // user nice system idle iowait irq softirq steal
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w", err)
		}
		if i != 3 && i != 4 {
			busy += time.Duration(n) * time.Second / userHz
		}
	}
	return busy, nil
}

func kilobytes(status []byte, key string) int64 {
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == key {
			n, _ := strconv.ParseInt(f[1], 10, 64) // 0 shows
			return n * 1024
		}
	}
	return 0
}
