// Package image writes container images without Docker or a registry: a static
// binary on scratch, as an archive that docker load and ctr images import
// read. The one description of an image is its Dockerfile, of which this
// package understands the few instructions such an image needs.
package image

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
)

// Dockerfile is what an image is made of.
type Dockerfile struct {
	Copies     []Copy
	User       string   // "65532:65532"
	Workdir    string   // "" for /
	Entrypoint []string // program and fixed arguments
	Cmd        []string // default arguments
	Env        []string // NAME=value
	Expose     []string // "7400/tcp"
	Labels     map[string]string
}

// Copy is one file of the build context and its place in the image.
type Copy struct {
	Source, Target string
}

// numericUser is required: without /etc/passwd a name means nothing, and
// Kubernetes' runAsNonRoot can only judge numbers.
var numericUser = regexp.MustCompile(`^[0-9]+(:[0-9]+)?$`)

// Parse reads a Dockerfile. It accepts FROM scratch, COPY, USER, WORKDIR,
// ENTRYPOINT and CMD in JSON form, ENV, EXPOSE and LABEL; anything else is an
// error naming the line, since silently ignoring it would build a different
// image from the one Docker builds.
func Parse(r io.Reader) (*Dockerfile, error) {
	d := &Dockerfile{Labels: map[string]string{}}
	from := false
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		first := number
		for strings.HasSuffix(line, `\`) && lines.Scan() {
			number++
			line = strings.TrimSpace(strings.TrimSuffix(line, `\`)) + " " + strings.TrimSpace(lines.Text())
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		instruction, args, _ := strings.Cut(line, " ")
		instruction, args = strings.ToUpper(instruction), strings.TrimSpace(args)
		if !from && instruction != "FROM" {
			return nil, fmt.Errorf("line %d: %s before FROM scratch", first, instruction)
		}
		if err := d.apply(instruction, args, from); err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", first, instruction, err)
		}
		from = true
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return d, d.check()
}

func (d *Dockerfile) apply(instruction, args string, from bool) (err error) {
	switch instruction {
	case "FROM":
		if from || args != "scratch" {
			return fmt.Errorf("%q; one stage, FROM scratch, is all there is", args)
		}
	case "COPY":
		return d.copy(strings.Fields(args))
	case "USER":
		d.User = args
	case "WORKDIR":
		d.Workdir = args
	case "ENTRYPOINT":
		d.Entrypoint, err = execForm(args)
	case "CMD":
		d.Cmd, err = execForm(args)
	case "EXPOSE":
		for port := range strings.FieldsSeq(args) {
			if !strings.Contains(port, "/") {
				port += "/tcp"
			}
			d.Expose = append(d.Expose, port)
		}
	case "ENV":
		pairs, err := keyValues(args)
		for _, pair := range pairs {
			d.Env = append(d.Env, pair[0]+"="+pair[1])
		}
		return err
	case "LABEL":
		pairs, err := keyValues(args)
		for _, pair := range pairs {
			d.Labels[pair[0]] = pair[1]
		}
		return err
	default:
		return fmt.Errorf("not understood here; use FROM scratch, COPY, USER, WORKDIR, ENTRYPOINT, CMD, ENV, EXPOSE, LABEL")
	}
	return err
}

func (d *Dockerfile) copy(args []string) error {
	if len(args) != 2 || strings.HasPrefix(args[0], "--") {
		return fmt.Errorf("%q; give one file of the context and its absolute path in the image, without options", strings.Join(args, " "))
	}
	source, target := path.Clean(args[0]), args[1]
	if path.IsAbs(source) || source == ".." || strings.HasPrefix(source, "../") || strings.ContainsAny(source, "*?[") {
		return fmt.Errorf("source %q; give a relative path inside the context, without wildcards", args[0])
	}
	if !path.IsAbs(target) || strings.HasSuffix(target, "/") {
		return fmt.Errorf("target %q; give the absolute path of the file", target)
	}
	d.Copies = append(d.Copies, Copy{Source: source, Target: path.Clean(target)})
	return nil
}

// check finds what would build but not run, or not run under the restricted
// Pod Security standard.
func (d *Dockerfile) check() error {
	switch {
	case len(d.Copies) == 0:
		return fmt.Errorf("no COPY: the image would be empty")
	case len(d.Entrypoint) == 0:
		return fmt.Errorf("no ENTRYPOINT: the image would have nothing to run")
	case !numericUser.MatchString(d.User):
		return fmt.Errorf("USER is %q; give numbers such as 65532:65532, there is no /etc/passwd in scratch", d.User)
	}
	for _, c := range d.Copies {
		if c.Target == d.Entrypoint[0] {
			return nil
		}
	}
	return fmt.Errorf("ENTRYPOINT %q is not copied into the image", d.Entrypoint[0])
}

func execForm(args string) ([]string, error) {
	var words []string
	if err := json.Unmarshal([]byte(args), &words); err != nil || len(words) == 0 {
		return nil, fmt.Errorf(`%s; write it as ["program", "argument"], there is no shell in scratch`, args)
	}
	return words, nil
}

// keyValues splits key=value pairs; values may be in double quotes.
func keyValues(args string) ([][2]string, error) {
	var pairs [][2]string
	for rest := args; rest != ""; {
		key, after, found := strings.Cut(rest, "=")
		if !found || key == "" || strings.ContainsAny(key, " \t\"") {
			return nil, fmt.Errorf("%q; write key=value or key=\"value with spaces\"", rest)
		}
		var value string
		if strings.HasPrefix(after, `"`) {
			end := strings.IndexByte(after[1:], '"')
			if end < 0 {
				return nil, fmt.Errorf("%q: the quote is not closed", rest)
			}
			value, rest = after[1:1+end], after[2+end:]
			if rest != "" && !strings.HasPrefix(rest, " ") {
				return nil, fmt.Errorf("%q: put a space between pairs", after)
			}
		} else {
			value, rest, _ = strings.Cut(after, " ")
		}
		if strings.ContainsAny(value, `$\`) {
			return nil, fmt.Errorf("value %q: $ and \\ are not understood here", value)
		}
		pairs = append(pairs, [2]string{key, value})
		rest = strings.TrimSpace(rest)
	}
	return pairs, nil
}
