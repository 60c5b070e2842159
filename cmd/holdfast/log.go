package main

import (
	"io"
	"log/slog"
)

// logHandler makes the handler that the flags ask for.
func (c *serveConfig) logHandler(w io.Writer) (slog.Handler, error) {
	level, ok := logLevels[c.logLevel]
	if !ok {
		return nil, usagef("--log-level: %q is not debug, info, warn or error", c.logLevel)
	}
	opts := &slog.HandlerOptions{Level: level}
	switch c.logFormat {
	case "text":
		return slog.NewTextHandler(w, opts), nil
	case "json":
		return slog.NewJSONHandler(w, opts), nil
	}
	return nil, usagef("--log-format: %q is not text or json", c.logFormat)
}
