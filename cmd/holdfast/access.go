package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/holdfast-xds/holdfast/admin"
)

// adminAccess says who may do what on the admin listener.
type adminAccess struct {
	tokenFile string
	hosts     string
}

func (a *adminAccess) register(f *pflag.FlagSet) {
	f.StringVar(&a.tokenFile, "admin-token-file", "", "file with the token that release and profiles need; needed for them when --admin-address is not on loopback")
	f.StringVar(&a.hosts, "admin-hosts", "", "names, separated by commas, by which browsers and scrapers may ask the admin listener, beside addresses and localhost")
}

func (a *adminAccess) validate() error {
	if a.tokenFile == "" {
		return nil
	}
	_, err := a.token()
	return err
}

// minToken is the least length of a token: one that can be guessed is none.
const minToken = 16

func (a *adminAccess) token() (string, error) {
	raw, err := os.ReadFile(a.tokenFile)
	if err != nil {
		return "", fmt.Errorf("--admin-token-file: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if len(token) < minToken {
		return "", fmt.Errorf("--admin-token-file: %s has a token of %d characters, at least %d are needed", a.tokenFile, len(token), minToken)
	}
	if strings.ContainsAny(token, " \t\r\n") {
		return "", errors.New("--admin-token-file: the token has spaces or more than one line")
	}
	return token, nil
}

// guardAdmin fills in what the admin listener is guarded by.
func (c *serveConfig) guardAdmin(o *admin.Options) error {
	address, err := parseAddress(c.adminAddress)
	if err != nil {
		return err
	}
	o.Exposed, o.Hosts = !address.loopback(), splitList(c.adminAccess.hosts)
	if c.adminAccess.tokenFile != "" {
		o.Token, err = c.adminAccess.token()
	}
	return err
}
