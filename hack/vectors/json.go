package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// file is one file of vectors: a line for each.
type file struct {
	name    string
	about   string // what a vector of it says
	vectors []object
}

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value any
}

// text is the file's contents.
func (f *file) text() ([]byte, error) {
	head, err := json.Marshal(f.about)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"about\": %s,\n \"protocol\": %d,\n \"vectors\": [", head, wire.Version)
	for i, v := range f.vectors {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n  ")
		if err := v.write(&b); err != nil {
			return nil, fmt.Errorf("%s: vector %d: %w", f.name, i, err)
		}
	}
	b.WriteString("\n ]\n}\n")
	return b.Bytes(), nil
}

func (o object) write(b *bytes.Buffer) error {
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(b, "%q: ", m.name)
		if err := writeValue(b, m.value); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	b.WriteByte('}')
	return nil
}

func writeValue(b *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case object:
		return v.write(b)
	case []object:
		b.WriteByte('[')
		for i, o := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			if err := o.write(b); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case []byte:
		fmt.Fprintf(b, "%q", hex.EncodeToString(v))
		return nil
	case uint64: // readers of JSON may round beyond 2^53
		fmt.Fprintf(b, "%q", strconv.FormatUint(v, 10))
		return nil
	case int64:
		fmt.Fprintf(b, "%q", strconv.FormatInt(v, 10))
		return nil
	}
	text, err := json.Marshal(v)
	b.Write(text)
	return err
}

// raw are the fields of messages that are bytes and no text; their names in the vectors end with Hex.
var raw = map[string]bool{"Payload": true, "Entry": true, "Entries": true, "Bytes": true, "Token": true, "Question": true, "Rows": true, "Values": true, "Body": true}

// fieldsOf lists the fields of a message by their names on the protocol page.
func fieldsOf(message any) object {
	v := reflect.Indirect(reflect.ValueOf(message))
	var out object
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			out = append(out, fieldsOf(v.Field(i).Addr().Interface())...)
			continue
		}
		if f.Type.Kind() == reflect.Struct { // since.seq is sinceSeq
			for _, in := range fieldsOf(v.Field(i).Addr().Interface()) {
				out = append(out, member{lowerCamel(f.Name) + strings.ToUpper(in.name[:1]) + in.name[1:], in.value})
			}
			continue
		}
		name, value := lowerCamel(f.Name), v.Field(i).Interface()
		switch value := value.(type) {
		case []byte:
			if raw[f.Name] {
				out = append(out, member{name + "Hex", value})
			} else {
				out = append(out, member{name, string(value)})
			}
		case [][]byte:
			list := []string{}
			for _, v := range value {
				list = append(list, string(v))
			}
			out = append(out, member{name, list})
		case uint8, uint16, uint32, wire.Type, wire.Code, wire.Role, wire.PartitionID, wire.EndReason, wire.QueryEndCode:
			out = append(out, member{name, small(v.Field(i).Uint())})
		case uint64, int64, bool:
			out = append(out, member{name, value})
		default:
			list := []object{}
			for j := range v.Field(i).Len() {
				list = append(list, fieldsOf(v.Field(i).Index(j).Addr().Interface()))
			}
			out = append(out, member{name, list})
		}
	}
	return out
}

// small is a number of at most 32 bits, which every reader of JSON reads exactly.
type small uint64

// lowerCamel is the name of a field on the protocol page: reqID, idHi, nInSync.
func lowerCamel(s string) string {
	r := []rune(s)
	for i := range r {
		if i > 0 && (!unicode.IsUpper(r[i]) || i+1 < len(r) && !unicode.IsUpper(r[i+1])) {
			break
		}
		r[i] = unicode.ToLower(r[i])
	}
	return string(r)
}
