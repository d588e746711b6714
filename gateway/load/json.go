package load

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// jsonSource reads entries of a region from lines of JSON, an object each.
type jsonSource struct {
	lines
	e Entries
}

// longestObject is the longest line of JSON: a key and a value with every byte escaped, and what stands around them.
const longestObject = 512 << 10

func newJSON(in *input, e Entries) (Source, error) {
	return &jsonSource{newLines(in, longestObject, "an object a line; are these lines of JSON?"), e}, nil
}

// Next implements Source.
func (s *jsonSource) Next() (Row, error) {
	for {
		line, err := s.next()
		if err != nil {
			return Row{}, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		r := Row{Where: fmt.Sprintf("line %d", s.line)}
		if r.Key, r.Message, r.Err = s.e.ofLine(line); r.Err != nil {
			r.Message = line
		}
		return r, nil
	}
}

// ofLine is the entry of a line. Members are taken as columns are, but for what JSON says more precisely: members of the
// object keep their types, and a member "valueBase64" is a value of any bytes.
func (e Entries) ofLine(line []byte) (key, value []byte, err error) {
	if !utf8.Valid(line) {
		return nil, nil, errors.New("it is not UTF-8, allowed: UTF-8, and \"valueBase64\" for a value of any bytes")
	}
	names, raw, err := members(line)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, nil, fmt.Errorf("it is no JSON object, allowed: one a line: %w", err)
	}
	base64ed := e.Value == "" && !slices.Contains(names, "value") && slices.Contains(names, "valueBase64")
	if base64ed {
		e.Value = "valueBase64"
	}
	p, err := e.plan(names)
	if err != nil {
		return nil, nil, err
	}
	if key, err = p.join(func(column int) (string, error) { return keyPart(names[column], raw[column]) }); err != nil {
		return nil, nil, err
	}
	if p.value < 0 {
		o := newObject()
		for i, column := range p.object {
			o.add(p.as[i], raw[column])
		}
		return key, o.end(), nil
	}
	value = raw[p.value]
	switch {
	case value[0] == '"':
		text, err := unquoted(value)
		if err != nil {
			return nil, nil, err
		}
		value = []byte(text)
	case base64ed:
		return nil, nil, fmt.Errorf("member %q is %.60s, allowed: a string of standard Base64", "valueBase64", value)
	}
	if base64ed {
		if value, err = base64.StdEncoding.DecodeString(string(value)); err != nil {
			return nil, nil, fmt.Errorf("member %q: %w, allowed: standard Base64", "valueBase64", err)
		}
	}
	return key, value, nil
}

// keyPart is a part of the key: a string, or a number or bool as it stands.
func keyPart(name string, raw json.RawMessage) (string, error) {
	switch raw[0] {
	case '"':
		return unquoted(raw)
	case '{', '[', 'n':
		return "", fmt.Errorf("member %q of the key is %.60s, allowed: a string, number or bool", name, raw)
	}
	return string(raw), nil
}

func unquoted(raw json.RawMessage) (text string, err error) {
	err = json.Unmarshal(raw, &text)
	return text, err
}

// members are the names and values of an object, in their order, each value without white space around it.
func members(line []byte) (names []string, raw []json.RawMessage, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	switch t, err := d.Token(); {
	case err != nil:
		return nil, nil, err
	case t != json.Delim('{'):
		return nil, nil, fmt.Errorf("it begins with %v", t)
	}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return nil, nil, err
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, value); err != nil {
			return nil, nil, err
		}
		names, raw = append(names, name.(string)), append(raw, compact.Bytes())
	}
	if _, err := d.Token(); err != nil {
		return nil, nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("something follows the object")
	}
	return names, raw, nil
}
