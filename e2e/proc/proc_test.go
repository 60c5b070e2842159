package proc

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func TestGroupLeavesNothingBehind(t *testing.T) {
	g := NewGroup(t.TempDir())
	// The shell's child would outlive it if only the shell were signalled.
	p, err := g.Start("shell", "/bin/sh", "-c", "sleep 600 & echo child $!; wait")
	if err != nil {
		t.Fatal(err)
	}
	if err := Until(t.Context(), "the child's line", 10*time.Second, logged(p, "child")); err != nil {
		t.Fatal(err)
	}
	if u, err := p.Usage(); err != nil || u.RSS == 0 || u.Peak < u.RSS {
		t.Errorf("usage %+v, %v", u, err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	child := strings.TrimPrefix(p.Tail(1), "child ")
	if err := Until(t.Context(), "the child's end", 10*time.Second, func(context.Context) error { return dead(child) }); err != nil {
		t.Error(err)
	}
	if err := p.Running(); err == nil || !strings.Contains(err.Error(), "child") {
		t.Errorf("the end is not told with the log: %v", err)
	}
}

// dead: there is no such process, or nothing but its exit status.
func dead(pid string) error {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil || strings.Contains(string(stat), ") Z ") {
		return nil
	}
	return errors.New("still runs")
}

func logged(p *Process, text string) func(context.Context) error {
	return func(context.Context) error {
		n, err := p.Logged(text)
		if err == nil && n == 0 {
			err = errors.New("no such line")
		}
		return err
	}
}

func TestKill(t *testing.T) {
	g := NewGroup(t.TempDir())
	defer g.Close()
	p, err := g.Start("stubborn", "/bin/sh", "-c", "trap '' TERM; sleep 600")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p.Log); err != nil {
		t.Error(err)
	}
}
