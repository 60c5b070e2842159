package ads

import "strings"

// quotes are what stands before a private key in a client's words: the names of
// the fields that hold one, as text and as JSON, and the head of a PEM block.
var quotes = []string{"private_key", "privateKey", "PRIVATE KEY", "inline_bytes", "inlineBytes", "inline_string", "inlineString"}

// withoutKeys cuts a client's message where it begins to quote what may be a
// private key: a rejection may have a dump of the whole resource in it. It is
// applied where a message comes in, so that no log, trace or page has it.
func withoutKeys(message string) string {
	end := len(message)
	for _, q := range quotes {
		if i := strings.Index(message, q); i >= 0 {
			end = min(end, i)
		}
	}
	if end == len(message) {
		return message
	}
	return message[:end] + "… (not shown: it may be a private key)"
}
