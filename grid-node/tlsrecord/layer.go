package tlsrecord

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	header  = 5       // bytes: type, version, length
	overTag = 16 + 1  // of every suite, and the type of what is inside
	maxData = 1 << 14 // bytes in one record
	// maxSealed is the longest record after its header: padding may fill it.
	maxSealed = maxData + 256
	// MaxRecord is the longest record with its header, in bytes.
	MaxRecord = header + maxSealed
	// maxVain is how many consecutive records may be without data, as in crypto/tls: each
	// costs as much as one with.
	maxVain = 16
	// maxMessage bounds a handshake message after the handshake, including its header: a
	// server's ticket. A client sends nothing longer than a key update.
	maxMessage = 64 << 10
)

// Types of records.
const (
	typeAlert     = 21
	typeHandshake = 22
	typeData      = 23
)

// Types of handshake messages, and the kinds of a key update.
const (
	newSessionTicket = 4
	keyUpdate        = 24
	messageHeader    = 4
	updateOnly       = 0
	updateRequested  = 1
)

// Layer seals outgoing and opens incoming data of one connection. It is not safe for
// concurrent use, with one exception: one goroutine may Open while another Seals and Ends.
type Layer struct {
	out, in  half
	isClient bool
	vain     int    // consecutive records without data
	message  []byte // beginning of a handshake message
	err      error  // that Open returned
	ended    bool   // End was called
	answer   answer
}

// Seal appends data to dst in as few records as possible. A key update that the peer
// requested, or that is due, precedes it.
func (l *Layer) Seal(dst, data []byte) []byte {
	if l.answer.taken() || l.out.seq >= updateAfter {
		dst = l.seal(dst, []byte{keyUpdate, 0, 0, 1, updateOnly}, typeHandshake)
		l.out.update()
	}
	for len(data) > 0 {
		n := min(len(data), maxData)
		dst = l.seal(dst, data[:n], typeData)
		data = data[n:]
	}
	return dst
}

func (l *Layer) seal(dst, data []byte, inner byte) []byte {
	size := len(data) + overTag
	at := len(dst)
	dst = append(dst, typeData, 3, 3, byte(size>>8), byte(size))
	dst = append(append(dst, data...), inner)
	inside := dst[at+header:]
	return l.out.aead.Seal(dst[:at+header], l.out.next(), inside, dst[at:at+header])
}

// Open appends the data of all whole records to dst; rest is less than one. Data may be
// returned together with an error, which ends the connection: io.EOF after the peer's
// close_notify, an *AlertError for another alert of the peer, ErrRecord for an invalid
// record. dst and sealed do not overlap.
func (l *Layer) Open(dst, sealed []byte) (data, rest []byte, err error) {
	for l.err == nil && len(sealed) >= header {
		size := int(binary.BigEndian.Uint16(sealed[3:]))
		switch {
		case sealed[0] != typeData || sealed[1] != 3 || sealed[2] != 3:
			l.err = &recordError{alertUnexpected, fmt.Sprintf("it begins with % x, allowed: 17 03 03", sealed[:3])}
			continue
		case size > maxSealed:
			l.err = &recordError{alertOverflow, fmt.Sprintf("its length is %d, allowed: at most %d", size, maxSealed)}
			continue
		}
		if len(sealed)-header < size {
			break
		}
		dst = l.open(dst, sealed[:header+size])
		sealed = sealed[header+size:]
	}
	return dst, sealed, l.err
}

// open appends the data of one record.
func (l *Layer) open(dst, record []byte) []byte {
	at := len(dst)
	opened, err := l.in.aead.Open(dst, l.in.next(), record[header:], record[:header])
	if err != nil {
		l.err = &recordError{alertBadMAC, "it was modified, repeated or lost on the way"}
		return dst
	}
	inner, kind := opened[at:], byte(0)
	for len(inner) > 0 && kind == 0 { // padding is zeros
		inner, kind = inner[:len(inner)-1], inner[len(inner)-1]
	}
	switch {
	case len(inner) > maxData:
		l.err = &recordError{alertOverflow, fmt.Sprintf("%d bytes are in it, allowed: at most %d", len(inner), maxData)}
	case kind == typeData && len(l.message) == 0:
		if len(inner) > 0 {
			l.vain = 0
			return opened[:at+len(inner)]
		}
	case kind == typeAlert:
		l.err = alertOf(inner)
	case kind == typeHandshake && len(inner) > 0:
		l.err = l.messages(inner)
	default:
		l.err = &recordError{alertUnexpected, fmt.Sprintf("a record of type %d with %d bytes, allowed here: data, an alert, a handshake message", kind, len(inner))}
	}
	if l.vain++; l.vain > maxVain && l.err == nil {
		l.err = &recordError{alertUnexpected, fmt.Sprintf("more than %d records in a row have no data", maxVain)}
	}
	return dst
}

// messages handles handshake messages after the handshake.
func (l *Layer) messages(part []byte) error {
	l.message = append(l.message, part...)
	for len(l.message) >= messageHeader {
		kind := l.message[0]
		size := messageHeader + int(l.message[1])<<16 + int(l.message[2])<<8 + int(l.message[3])
		switch {
		case kind == keyUpdate && size == messageHeader+1:
		case kind == newSessionTicket && l.isClient && size <= maxMessage: // sessions are not resumed
		default:
			return &recordError{alertUnexpected, fmt.Sprintf("a handshake message of type %d and %d bytes after the handshake", kind, size)}
		}
		if len(l.message) < size {
			return nil
		}
		if kind == keyUpdate {
			if err := l.updated(l.message[messageHeader], len(l.message) > size); err != nil {
				return err
			}
		}
		l.message = l.message[:copy(l.message, l.message[size:])]
	}
	return nil
}

// updated derives the peer's next keys; nothing may follow in this record.
func (l *Layer) updated(request byte, more bool) error {
	switch {
	case more:
		return &recordError{alertUnexpected, "something follows a key update in its record"}
	case request > updateRequested:
		return &recordError{alertIllegal, fmt.Sprintf("a key update of kind %d, allowed: 0 or 1", request)}
	}
	l.in.update()
	if request == updateRequested {
		l.answer.owe()
	}
	return nil
}

// End appends the alert that ends the connection: close_notify, or the one that belongs to
// an error of Open. It does so once.
func (l *Layer) End(dst []byte, err error) []byte {
	if l.ended {
		return dst
	}
	l.ended = true
	level, alert := byte(alertWarning), tls.AlertError(alertClose)
	var bad *recordError
	if errors.As(err, &bad) {
		level, alert = alertFatal, bad.alert
	}
	return l.seal(dst, []byte{level, byte(alert)}, typeAlert)
}
