package main

import (
	"io"
	"log/slog"

	"github.com/holdfast-xds/holdfast/index"
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

// problemLog is the index as the source sees it: it logs each problem once,
// when the commit that brings it is made.
type problemLog struct {
	index  *index.Index
	logger *slog.Logger
}

// Apply applies the changes to the index.
func (p problemLog) Apply(cause index.Cause, changes ...index.Change) index.Commit {
	c := p.index.Apply(cause, changes...)
	for _, x := range c.Problems {
		p.logger.Warn(x.Message, "object", x.Object.String(), "field", x.Field, "severity", string(x.Severity), "revision", c.Revision)
	}
	return c
}
