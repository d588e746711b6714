package server

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/gateway/stream/ws"
)

// userMessage is a message of a client. What is behind the topic is the payload of a fanout.Message, and the end of the
// binary form: flags, length of from (1 byte), from, length of reply (2), reply, data.
type userMessage struct {
	topic, from, reply, data []byte
	bytes                    bool // data is no JSON
	replicated               bool // it is to be stored; never of one that is handed on
}

const (
	// binUser is the first byte of a binary message of a client; then id (4), length of the topic (2), topic, and the rest.
	binUser   = 2
	flagBytes = 1
	// flagReplicated is of a message of a client alone.
	flagReplicated = 2
	// maxFrom bounds the name of a client in a message.
	maxFrom = 255
)

var errUserMessage = errors.New("a binary message is cut short or has unknown flags, allowed: 2, id (4 bytes), length of the topic (2), topic, flags (1 bytes, else JSON; 2 replicated), length of from (1), from, length of reply (2), reply, data")

// check returns why a message cannot be sent to others, or nil. JSON is sent as text, which has to be UTF-8: a reader that gets
// other bytes ends its connection.
func (u *userMessage) check() error {
	if err := topics.CheckTopic(u.topic); err != nil {
		return err
	}
	if len(u.reply) > 0 {
		if err := topics.CheckTopic(u.reply); err != nil {
			return err
		}
	}
	if !u.bytes && (!utf8.Valid(u.data) || !json.Valid(u.data)) {
		return errors.New("data is not valid JSON in UTF-8, allowed: that, or bytes (base64, in the binary form flag 1)")
	}
	return nil
}

// append appends the payload.
func (u *userMessage) append(dst []byte) []byte {
	flags := byte(0)
	if u.bytes {
		flags = flagBytes
	}
	from := u.from[:min(len(u.from), maxFrom)]
	dst = append(append(dst, flags, byte(len(from))), from...)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(u.reply)))
	return append(append(dst, u.reply...), u.data...)
}

// parsePayload reads what append wrote; the topic is not part of it.
func parsePayload(b []byte) (u userMessage, err error) {
	if len(b) < 2 || b[0]&^(flagBytes|flagReplicated) != 0 {
		return u, errUserMessage
	}
	u.bytes, u.replicated = b[0]&flagBytes != 0, b[0]&flagReplicated != 0
	n := 2 + int(b[1])
	if len(b) < n+2 {
		return u, errUserMessage
	}
	u.from = b[2:n]
	end := n + 2 + int(binary.BigEndian.Uint16(b[n:]))
	if len(b) < end {
		return u, errUserMessage
	}
	u.reply, u.data = b[n+2:end], b[end:]
	return u, nil
}

// parseUser reads the binary form.
func parseUser(b []byte) (id uint32, u userMessage, err error) {
	if len(b) < 7 || b[0] != binUser {
		return 0, u, errUserMessage
	}
	id = binary.BigEndian.Uint32(b[1:])
	n := 7 + int(binary.BigEndian.Uint16(b[5:]))
	if len(b) < n {
		return id, u, errUserMessage
	}
	u, err = parsePayload(b[n:])
	u.topic = b[7:n]
	return id, u, err
}

// appendJSON appends what follows the topic in JSON: ,"from":…,"data":…
func (u *userMessage) appendJSON(dst []byte) []byte {
	from, _ := json.Marshal(string(u.from)) // a string is never refused
	dst = append(append(dst, `,"from":`...), from...)
	if len(u.reply) > 0 {
		dst = strconv.AppendQuote(append(dst, `,"reply":`...), string(u.reply)) // a topic has no character to be escaped
	}
	if u.bytes {
		dst = base64.StdEncoding.AppendEncode(append(dst, `,"base64":"`...), u.data)
		return append(dst, '"')
	}
	return append(append(dst, `,"data":`...), u.data...)
}

// appendUserJSON frames a message of a client as {"op":"message","id":         7,"topic":"…","from":"…","data":…}.
func appendUserJSON(dst []byte, m *fanout.Message) ([]byte, int) {
	start := len(dst)
	dst = append(begin(dst), `{"op":"message","id":`...)
	slot := len(dst)
	dst = append(append(append(dst, slotSpaces+`,"topic":"`...), m.Topic...), '"')
	u, _ := parsePayload(m.Payload) // the server wrote it
	dst = append(u.appendJSON(dst), '}')
	dst, moved := finish(dst, start, ws.Text)
	return dst, slot - moved
}

// appendUserBinary frames it in the binary form.
func appendUserBinary(dst []byte, m *fanout.Message) ([]byte, int) {
	start := len(dst)
	dst = append(begin(dst), binUser)
	slot := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(m.Topic)))
	dst = append(append(dst, m.Topic...), m.Payload...)
	dst, moved := finish(dst, start, ws.Binary)
	return dst, slot - moved
}
