package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Totals is what a client was sent since it began.
type Totals struct {
	Responses, Resources, Removed int
	Received                      int64 // bytes of responses
	Sent                          int64 // bytes of requests
}

// Minus gives what came since an earlier moment.
func (t Totals) Minus(u Totals) Totals {
	return Totals{t.Responses - u.Responses, t.Resources - u.Resources, t.Removed - u.Removed, t.Received - u.Received, t.Sent - u.Sent}
}

// Client is one simulated Envoy.
type Client struct {
	Node  string
	fleet *Fleet
	conn  *grpc.ClientConn
	done  chan struct{} // closed when the present stream has ended

	// Owned by the stream's goroutine while there is one.
	state state

	mu      sync.Mutex
	logging bool
	log     []Event
	totals  Totals
	held    [numTypes]int
	err     error // why the last stream ended
}

// retry is the wait for a control plane that has not started yet.
const retry = 5 * time.Millisecond

// NewClient gives a client of a control plane's address. It is not connected.
// Such as remember know the versions that they hold, for connecting again.
func (f *Fleet) NewClient(node, address string, remember bool) (*Client, error) {
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithReadBufferSize(8<<10), grpc.WithWriteBufferSize(4<<10),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: time.Second, Backoff: quick}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30), grpc.ForceCodecV2(raw{})))
	if err != nil {
		return nil, fmt.Errorf("client %s: %w", node, err)
	}
	c := &Client{Node: node, fleet: f, conn: conn}
	c.state.remember = remember
	return c, nil
}

// Connect opens a stream, and waits until the control plane takes it.
func (c *Client) Connect(ctx context.Context) error {
	stream, err := c.open(ctx, "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources")
	if err != nil {
		return err
	}
	c.start(stream, func() error { return c.serve(stream) })
	return nil
}

func (c *Client) open(ctx context.Context, method string) (grpc.ClientStream, error) {
	desc := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	for {
		s, err := c.conn.NewStream(c.fleet.ctx, desc, method, grpc.WaitForReady(true))
		if err == nil {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("client %s: %w", c.Node, err)
		case <-time.After(retry):
		}
	}
}

func (c *Client) start(stream grpc.ClientStream, serve func() error) {
	c.done = make(chan struct{})
	c.fleet.running.Go(func() {
		defer close(c.done)
		err := serve()
		c.mu.Lock()
		c.err = err
		c.mu.Unlock()
	})
}

// Ended waits until the present stream has ended, and says why it did.
func (c *Client) Ended(ctx context.Context) error {
	select {
	case <-c.done:
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Broken gives why the present stream has ended; nil while it has not.
func (c *Client) Broken() error {
	select {
	case <-c.done:
		c.mu.Lock()
		defer c.mu.Unlock()
		return fmt.Errorf("client %s: stream ended: %w", c.Node, c.err)
	default:
		return nil
	}
}

// Close ends the client; its stream ends as well.
func (c *Client) Close() error { return c.conn.Close() }

// Totals so far.
func (c *Client) Totals() Totals {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.totals
}

// Held counts the resources that it holds of each type.
func (c *Client) Held() [6]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held
}

// Forget empties the log of events. Nothing is logged before the first call: a
// thousand clients that are sent all they have need no log of it.
func (c *Client) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logging, c.log = true, c.log[:0]
}

// Log gives the events since Forget.
func (c *Client) Log() []Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Event(nil), c.log...)
}

// keptEvents bounds a client's log.
const keptEvents = 1 << 18

// note records a response that was acknowledged.
func (c *Client) note(events []Event, received, sent int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.totals.Responses++
	for _, e := range events {
		if e.Removed {
			c.totals.Removed++
		} else {
			c.totals.Resources++
		}
	}
	c.totals.Received += int64(received)
	c.totals.Sent += int64(sent)
	if c.logging && len(c.log)+len(events) <= keptEvents {
		c.log = append(c.log, events...)
	}
	for i := range c.held {
		c.held[i] = c.state.held[i].count
	}
}

// Await waits until each of the keys is in the log, and gives when the last of
// them was acknowledged.
func (c *Client) Await(ctx context.Context, wanted []Key) (time.Time, error) {
	t := time.NewTicker(500 * time.Microsecond)
	defer t.Stop()
	for {
		last, missing := c.latest(wanted)
		if len(missing) == 0 {
			return last, nil
		}
		select {
		case <-ctx.Done():
			return last, fmt.Errorf("client %s was not sent %s", c.Node, c.describe(missing))
		case <-t.C:
		}
	}
}

// latest gives when the last of the keys was first acknowledged, and those that
// were not.
func (c *Client) latest(wanted []Key) (last time.Time, missing []Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
next:
	for _, k := range wanted {
		for _, e := range c.log {
			if e.Key == k {
				if e.At.After(last) {
					last = e.At
				}
				continue next
			}
		}
		missing = append(missing, k)
	}
	return last, missing
}

func (c *Client) describe(keys []Key) string {
	s := ""
	for i, k := range keys {
		if i == 4 {
			return s + fmt.Sprintf(" and %d more", len(keys)-i)
		}
		s += fmt.Sprintf(" %s %s", Types[k.Type], c.fleet.Name(k))
	}
	return s
}
