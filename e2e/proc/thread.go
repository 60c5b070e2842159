package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// MainThread is the processor time of the process's first thread so far: in an
// Envoy, the one that takes in configuration. It is exact to the microsecond.
func (p *Process) MainThread() (time.Duration, error) {
	path := fmt.Sprintf("/proc/%d/task/%d/schedstat", p.PID(), p.PID())
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	ran, _, _ := strings.Cut(string(raw), " ")
	n, err := strconv.ParseInt(ran, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return time.Duration(n), nil
}
