package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// sampleOrder is a FIX 4.2 NewOrderSingle.
func sampleOrder(clOrdID string, now time.Time) []byte {
	at := now.UTC().Format("20060102-15:04:05.000")
	body := fmt.Sprintf("35=D|49=GATEWAY1|56=ORDERGRID|34=1|52=%s|11=%s|1=ACCT-0042|21=1|55=INTC|54=1|60=%s|38=500|40=2|44=21.35|59=0|", at, clOrdID, at)
	return assemble("FIX.4.2", []byte(soh(body)))
}

func soh(s string) string { return string(bytes.ReplaceAll([]byte(s), []byte{'|'}, []byte{1})) }

// assemble puts BeginString, BodyLength and CheckSum around a body.
func assemble(begin string, body []byte) []byte {
	msg := fmt.Appendf(nil, "8=%s\x019=%d\x01", begin, len(body))
	msg = append(msg, body...)
	sum := 0
	for _, c := range msg {
		sum += int(c)
	}
	return fmt.Appendf(msg, "10=%03d\x01", sum%256)
}

// sealFIX sets BodyLength and CheckSum of a message, replacing any.
func sealFIX(msg []byte) ([]byte, error) {
	fields := bytes.SplitAfter(msg, []byte{1})
	if n := len(fields); len(fields[n-1]) == 0 {
		fields = fields[:n-1]
	} else {
		fields[n-1] = append(bytes.Clone(fields[n-1]), 1)
	}
	begin, ok := bytes.CutPrefix(fields[0], []byte("8="))
	if !ok {
		return nil, errors.New("the first field is not BeginString: it has to begin with 8=FIX.4.2, 8=FIX.4.4 or 8=FIXT.1.1")
	}
	var body []byte
	for _, f := range fields[1:] {
		if !bytes.HasPrefix(f, []byte("9=")) && !bytes.HasPrefix(f, []byte("10=")) {
			body = append(body, f...)
		}
	}
	return assemble(string(bytes.TrimSuffix(begin, []byte{1})), body), nil
}

// clOrdIDOf finds tag 11 for a message to the user.
func clOrdIDOf(msg []byte) string {
	_, after, _ := bytes.Cut(msg, []byte("\x0111="))
	id, _, _ := bytes.Cut(after, []byte{1})
	return strconv.Quote(string(id))
}
