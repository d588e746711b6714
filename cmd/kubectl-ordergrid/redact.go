package main

import (
	"regexp"
	"strings"
)

// redacted stands for a value that is left out of a report.
const redacted = "[redacted]"

// secretName matches names of environment variables, fields, flags and annotations whose values may be secret.
var secretName = regexp.MustCompile(`(?i)pass(word|wd|phrase)|secret|token|credential|api[-_]?key|private[-_]?key|access[-_]?key|auth(orization)?$|cookie|bearer|dsn$|connection[-_]?string`)

// references are fields that match secretName but hold the name of an object, which is useful.
var references = map[string]bool{"secretName": true, "tokenSecret": true}

// secretText finds secrets and orders in text: keys and certificates, tokens, passwords in URLs, name=value of a name
// that looks secret, FIX messages.
var secretText = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`-----BEGIN [A-Z ]+-----[\s\S]*?(-----END [A-Z ]+-----|$)`), redacted},
	{regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*)?`), redacted},
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}`), "$1 " + redacted},
	{regexp.MustCompile(`(\b[a-z][a-z0-9+.-]*://[^\s:/@]*:)[^\s@/]+@`), "${1}" + redacted + "@"},
	{regexp.MustCompile(`(?i)([a-z0-9_.-]*(?:password|passwd|passphrase|secret|token|credential|api[-_]?key|private[-_]?key|access[-_]?key)[a-z0-9_-]*\\?["']?\s*[=:]\s*\\?["']?)[^\s"',;}\\]+`), "${1}" + redacted},
	{regexp.MustCompile(`8=FIX[^\n"]*`), "[order]"},
	{regexp.MustCompile(`(?i)(clordid\\?["']?\s*[=:]\s*\\?["']?)[^\s"',;}\\]+`), "${1}[order]"},
}

// redactText removes secrets and orders from a text.
func redactText(s string) string {
	for _, r := range secretText {
		s = r.find.ReplaceAllString(s, r.put)
	}
	return s
}

// redactValue removes them from an object, in place: by the name of a value first, then by its form. Metadata that
// repeats the object is removed too.
func redactValue(v any) any {
	switch x := v.(type) {
	case string:
		return redactText(x)
	case []any:
		secret := false // --token VALUE as two arguments
		for i := range x {
			s, isText := x[i].(string)
			if isText && secret {
				x[i], secret = redacted, false
				continue
			}
			secret = isText && strings.HasPrefix(s, "-") && !strings.Contains(s, "=") && secretName.MatchString(s)
			x[i] = redactValue(x[i])
		}
	case map[string]any:
		delete(x, "managedFields")
		if a, ok := x["annotations"].(map[string]any); ok {
			delete(a, "kubectl.kubernetes.io/last-applied-configuration")
		}
		named, _ := x["name"].(string)
		_, isVariable := x["value"].(string)
		for key, value := range x {
			_, isText := value.(string)
			switch {
			case isText && isVariable && key == "value" && secretName.MatchString(named),
				isText && secretName.MatchString(key) && !references[key]:
				x[key] = redacted
			default:
				x[key] = redactValue(value)
			}
		}
	}
	return v
}
