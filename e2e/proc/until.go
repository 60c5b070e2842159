package proc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// Until asks again and again until the condition holds. The error after the
// limit carries the last one of the condition.
func Until(ctx context.Context, what string, limit time.Duration, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t := time.NewTicker(pace(limit))
	defer t.Stop()
	var last error
	for {
		if err := condition(ctx); err == nil {
			return nil
		} else if errors.Is(err, ErrEnded) {
			return fmt.Errorf("%s: %w", what, err)
		} else if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %v: %w", what, limit, last)
		case <-t.C:
		}
	}
}

// pace asks often enough to measure by, without being a load of its own.
func pace(limit time.Duration) time.Duration {
	return min(max(limit/500, 5*time.Millisecond), 50*time.Millisecond)
}

// FreePorts gives n addresses on which nobody listened a moment ago.
func FreePorts(ip netip.Addr, n int) ([]netip.AddrPort, error) {
	out := make([]netip.AddrPort, n)
	for i := range out {
		l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, 0)))
		if err != nil {
			return nil, err
		}
		defer l.Close() // all stay open until the last is known: none twice
		out[i] = l.Addr().(*net.TCPAddr).AddrPort()
	}
	return out, nil
}
