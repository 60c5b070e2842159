// Otlp receives traces as every OpenTelemetry collector does, with the
// collector's own receiver, and writes them to a file: one OTLP/JSON message a
// line. The tests of holdfast's traces run it. A module of its own keeps the
// collector out of holdfast's dependencies.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

func main() {
	grpc := flag.String("grpc", "127.0.0.1:4317", "`address` for OTLP over gRPC")
	http := flag.String("http", "127.0.0.1:4318", "`address` for OTLP over HTTP")
	out := flag.String("out", "traces.jsonl", "`file` to which traces are appended")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *grpc, *http, *out); err != nil {
		fmt.Fprintln(os.Stderr, "otlp:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, grpc, http, out string) error {
	file, err := os.OpenFile(out, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	traces, err := consumer.NewTraces((&writer{file: file}).consume)
	if err != nil {
		return err
	}
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	err = confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{
		"grpc": map[string]any{"endpoint": grpc},
		"http": map[string]any{"endpoint": http},
	}}).Unmarshal(config)
	if err != nil {
		return err
	}
	receiver, err := factory.CreateTraces(ctx, receivertest.NewNopSettings(component.MustNewType("otlp")), config, traces)
	if err != nil {
		return err
	}
	if err := receiver.Start(ctx, componenttest.NewNopHost()); err != nil {
		return err
	}
	fmt.Println("receiving")
	<-ctx.Done()
	return receiver.Shutdown(context.Background())
}

// writer writes each message whole.
type writer struct {
	mu   sync.Mutex
	file *os.File
}

func (w *writer) consume(_ context.Context, t ptrace.Traces) error {
	line, err := (&ptrace.JSONMarshaler{}).MarshalTraces(t)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.file.Write(append(line, '\n'))
	return err
}
