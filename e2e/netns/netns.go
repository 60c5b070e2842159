// Package netns moves a program into a network namespace of its own: a
// loopback device that nobody else uses, and one address that is not loopback,
// which an API server accepts in an EndpointSlice.
//
// Linux only; needs root or CAP_SYS_ADMIN.
package netns

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Address that SetUp gives to the namespace.
var address = netip.AddrFrom4([4]byte{10, 99, 0, 1})

const marker = "HOLDFAST_TEST_IN_NETNS"

// Inside tells whether this process was started by Rerun.
func Inside() bool { return os.Getenv(marker) != "" }

// ErrRefused says that the kernel does not let us make a namespace.
var ErrRefused = errors.New("not allowed to make a network namespace")

// Rerun runs this program again, with the same arguments, in a new namespace,
// and gives its exit code.
func Rerun() (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	// The child dies with the thread that starts it (Pdeathsig).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := exec.Command(self, os.Args[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), marker+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	defer signal.Stop(signals)
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	for {
		select {
		case s := <-signals: // go test's timeout, or a person
			_ = c.Process.Signal(s)
		case err := <-done:
			if exit := new(exec.ExitError); errors.As(err, &exit) {
				return max(1, exit.ExitCode()), nil
			}
			return 0, err
		}
	}
}

// SetUp brings the loopback device up and adds the address.
func SetUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	up, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	up.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, up); err != nil {
		return fmt.Errorf("lo up: %w", err)
	}
	if err := setAddress(s, unix.SIOCSIFADDR, address); err != nil {
		return fmt.Errorf("address %v: %w", address, err)
	}
	return setAddress(s, unix.SIOCSIFNETMASK, netip.AddrFrom4([4]byte{255, 255, 255, 255}))
}

// setAddress works on an alias of lo, which keeps 127.0.0.1.
func setAddress(socket int, request uint, ip netip.Addr) error {
	r, err := unix.NewIfreq("lo:1")
	if err != nil {
		return err
	}
	if err := r.SetInet4Addr(ip.AsSlice()); err != nil {
		return err
	}
	return unix.IoctlIfreq(socket, request, r)
}
