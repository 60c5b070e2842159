package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-xds/holdfast/admin"
)

func (a app) releaseCommand() *cobra.Command {
	var c adminClient
	var what admin.Release
	var tokenFile string
	cmd := &cobra.Command{
		Use:   "release",
		Short: "Let go the removals that the removal guard withholds",
		Long: `release tells a running holdfast that the removals which its removal guard
withholds are meant: they go out at once, and what follows from them within a
minute. "holdfast status" shows what is withheld.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.validate(); err != nil {
				return err
			}
			return a.release(cmd.Context(), c, what, tokenFile)
		},
	}
	cmd.Flags().StringVar(&what.Node, "node", "", "only for the Envoys with this node id")
	cmd.Flags().StringVar(&what.Reason, "reason", "", "why, for the log")
	cmd.Flags().StringVar(&tokenFile, "admin-token-file", "", "file with the token that a --admin-address other than loopback asks for")
	c.register(cmd)
	return cmd
}

func (a app) release(ctx context.Context, c adminClient, what admin.Release, tokenFile string) error {
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	req, err := releaseRequest(ctx, c.address, what, tokenFile)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return unreachable(err, "holdfast's --admin-address", req.URL.Host)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("%s: %w", req.URL, err)
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New(strings.TrimSpace(string(body)))
	}
	if c.output == "json" {
		_, err := a.stdout.Write(body)
		return err
	}
	var done admin.Released
	if err := json.Unmarshal(body, &done); err != nil {
		return fmt.Errorf("%s: %w", req.URL, err)
	}
	_, err = fmt.Fprintln(a.stdout, done.Message)
	return err
}

func releaseRequest(ctx context.Context, address string, what admin.Release, tokenFile string) (*http.Request, error) {
	body, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/release", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if tokenFile != "" {
		token, err := os.ReadFile(tokenFile)
		if err != nil {
			return nil, fmt.Errorf("--admin-token-file: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	return req, nil
}
