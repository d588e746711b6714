package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// keepCodec bounds what a codec holds from one command or reply to the next.
const keepCodec = 64 << 10

// commandCodec reads commands, one after the other, into the same memory: thousands of clients subscribe at a time, and what
// is garbage of that would lie between what stays.
type commandCodec struct {
	in   bytes.Reader
	d    *json.Decoder // nil: the next command makes one
	last command
}

// decode returns a command that is valid until the next one.
func (k *commandCodec) decode(payload []byte) (*command, error) {
	if k.d == nil {
		k.d = json.NewDecoder(&k.in)
		k.d.DisallowUnknownFields()
	}
	k.in.Reset(payload)
	k.last = command{}
	err := k.d.Decode(&k.last)
	if err == nil {
		if _, more := k.d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more behind the object")
		}
	}
	if k.in.Reset(nil); err != nil || len(payload) > keepCodec {
		k.d = nil // it is in the middle of something, or large
	}
	return &k.last, err
}

// replyCodec writes replies into the same memory.
type replyCodec struct {
	out  bytes.Buffer
	e    *json.Encoder
	last reply
}

// encode returns JSON that is valid until the next one.
func (k *replyCodec) encode(r *reply) ([]byte, error) {
	if k.out.Reset(); k.e == nil || k.out.Cap() > keepCodec {
		k.out = bytes.Buffer{}
		k.e = json.NewEncoder(&k.out)
		k.e.SetEscapeHTML(false) // > is a usual character of topics
	}
	k.last = *r
	err := k.e.Encode(&k.last)
	k.last = reply{}
	return bytes.TrimSuffix(k.out.Bytes(), []byte("\n")), err
}
