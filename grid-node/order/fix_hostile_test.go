package order

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// fix42, fix44 and fix50 make a message from its fields after MsgType, with '|' for SOH, and a
// valid envelope.
func fix42(body string) []byte { return envelopeOf("FIX.4.2", body) }
func fix44(body string) []byte { return envelopeOf("FIX.4.4", body) }
func fix50(body string) []byte { return envelopeOf("FIXT.1.1", body) }

func envelopeOf(version, body string) []byte {
	b := strings.ReplaceAll("35=D|"+body, "|", "\x01")
	msg := []byte(fmt.Sprintf("8=%s\x019=%d\x01%s10=000\x01", version, len(b), b))
	Seal(msg)
	return msg
}

const (
	header = "49=P|56=G|34=1|52=20071115-14:30:00|"
	rest   = "55=IBM|54=1|60=20071115-14:30:00.123|38=100|40=1|"
	whole  = header + "11=A|21=1|" + rest
)

func TestParseAccepts(t *testing.T) {
	for name, msg := range map[string][]byte{
		"market 4.2":            fix42(whole),
		"market 4.4 no 21":      fix44(header + "11=A|" + rest),
		"cash quantity":         fix44(header + "11=A|55=IBM|54=1|60=20071115-14:30:00|152=1000.50|40=1|"),
		"stop":                  fix44(header + "11=A|55=IBM|54=2|60=20071115-14:30:00|38=1|40=3|99=-1.5|"),
		"leap second, leap day": fix44(header + "11=A|55=IBM|54=1|60=20080229-23:59:60|38=1|40=1|"),
		"good till date":        fix44(whole + "59=6|432=20071201|"),
		"raw data with SOH":     fix44(whole + "95=9|96=a|10=000||"),
		"encoded text":          fix44(whole + "354=4|355=\xff\x00||" + "|58=plain|"),
		"signature last":        fix44(whole + "93=3|89=|x||"),
		"parties":               fix44(whole + "453=2|448=A|447=D|452=1|448=B|447=D|452=3|802=1|523=x|803=1|"),
		"allocations with data": fix44(whole + "78=2|79=a|80=1|360=3|361=a|b|79=b|80=2|"),
		"empty group":           fix44(whole + "453=0|"),
		"cancel":                envelopeFor("F", header+"11=B|41=A|55=IBM|54=1|60=20071115-14:30:00|38=1|"),
		"replace":               envelopeFor("G", header+"11=B|41=A|21=1|"+rest),
		"user-defined tags":     fix44(whole + "5001=x|9999=y|20001=z|"),
	} {
		var o Order
		if err := Parse(msg, &o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestParseRefuses is the list of hostile and broken inputs with their exact error
// messages.
func TestParseRefuses(t *testing.T) {
	seed42 := seed(t, "order-305-fix42.txt")
	edit := func(old, new string) []byte { return bytes.Replace(seed42, []byte(old), []byte(new), 1) }
	long := strings.Repeat("x", 2000)
	for _, c := range []struct {
		name string
		msg  []byte
		want string
	}{
		{"nothing", nil, `not a whole FIX message: ""; allowed: 8=FIX.4.2, 8=FIX.4.4 or 8=FIXT.1.1, 9=, 35=, …, 10=`},
		{"binary", bytes.Repeat([]byte{0}, 100), `tag 8 (BeginString): FIX version not taken: "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"; allowed: 8=FIX.4.2, 8=FIX.4.4 or 8=FIXT.1.1, followed by 9=`},
		{"other version", envelopeOf("FIX.5.0", whole), `tag 8 (BeginString): FIX version not taken: "8=FIX.5.0\x019"; allowed: 8=FIX.4.2, 8=FIX.4.4 or 8=FIXT.1.1, followed by 9=`},
		{"longer than an entry", make([]byte, MaxPayload+1), `too long: 65473; allowed: at most 65472 bytes`},
		{"cut off", seed42[:200], `tag 10 (CheckSum): not a whole FIX message: "\x0144=104"; allowed: 10= and three digits as the last field`},
		{"bytes after the end", append(bytes.Clone(seed42), "9=1"...), `tag 10 (CheckSum): not a whole FIX message: "162\x019=1"; allowed: 10= and three digits as the last field`},
		{"wrong checksum", edit("10=162", "10=163"), `tag 10 (CheckSum): wrong CheckSum: "163"; allowed: 162`},
		{"checksum no number", edit("10=162", "10=1x2"), `tag 10 (CheckSum): wrong CheckSum: "1x2"; allowed: three digits`},
		{"wrong body length", edit("9=282", "9=283"), `tag 9 (BodyLength): wrong BodyLength: 283; allowed: 282, the bytes between 9= and 10=`},
		{"body length no number", edit("9=282", "9=2-2"), `tag 9 (BodyLength): wrong BodyLength: "2-2\x0135=D\x0149="; allowed: 1 to 5 digits`},
		{"huge body length", edit("9=282", "9=99999999999999999999"), `tag 9 (BodyLength): wrong BodyLength: "999999999999"; allowed: 1 to 5 digits`},
		{"MsgType not third", sealed("8=FIX.4.4|9=10|49=P|35=D|10=000|"), `tag 35 (MsgType): tag out of place: "49=P\x0135="; allowed: 35= as the third field`},
		{"not an order", envelopeFor("8", whole), `tag 35 (MsgType): message type not taken: "8\x0149=P\x015"; allowed: D (NewOrderSingle), F (OrderCancelRequest), G (OrderCancelReplaceRequest)`},
		{"order list", envelopeFor("E", whole), `tag 35 (MsgType): message type not taken: "E\x0149=P\x015"; allowed: D (NewOrderSingle), F (OrderCancelRequest), G (OrderCancelReplaceRequest)`},
		{"cancel of nothing", envelopeFor("F", whole), `tag 41 (OrigClOrdID): required tag missing: none; allowed: the tag is required in a cancel or replace`},
		{"replace of nothing", envelopeFor("G", whole), `tag 41 (OrigClOrdID): required tag missing: none; allowed: the tag is required in a cancel or replace`},
		{"cancel without quantity", envelopeFor("F", header+"11=A|41=B|55=IBM|54=1|60=20071115-14:30:00|"), `tag 38 (OrderQty): required tag missing: none; allowed: the tag is required unless CashOrderQty (152) is there`},
		{"cancel without side", envelopeFor("F", header+"11=A|41=B|55=IBM|38=1|60=20071115-14:30:00|"), `tag 54 (Side): required tag missing: none; allowed: the tag is required in every order`},
		{"replace without type", envelopeFor("G", header+"11=A|41=B|21=1|55=IBM|54=1|38=1|60=20071115-14:30:00|"), `tag 40 (OrdType): required tag missing: none; allowed: the tag is required in every order`},
		{"MsgType of two letters", envelopeFor("DD", whole), `tag 35 (MsgType): message type not taken: "DD\x0149=P\x01"; allowed: D (NewOrderSingle), F (OrderCancelRequest), G (OrderCancelReplaceRequest)`},
		{"no ClOrdID", fix44(header + rest), `tag 11 (ClOrdID): required tag missing: none; allowed: the tag is required in every order`},
		{"empty ClOrdID", fix44(header + "11=|" + rest), `tag 11 (ClOrdID): no value at byte 59: ""; allowed: at least one character`},
		{"ClOrdID too long", fix44(header + "11=" + strings.Repeat("9", 65) + "|" + rest), `tag 11 (ClOrdID): too long at byte 60: "99999999999999999999999999999999"…; allowed: at most 64 characters`},
		{"no HandlInst in 4.2", fix42(header + "11=A|" + rest), `tag 21 (HandlInst): required tag missing: none; allowed: the tag is required in FIX 4.2`},
		{"no sender", fix44("56=G|34=1|52=20071115-14:30:00|11=A|" + rest), `tag 49 (SenderCompID): required tag missing: none; allowed: the tag is required in every order`},
		{"no quantity", fix44(header + "11=A|55=IBM|54=1|60=20071115-14:30:00|40=1|"), `tag 38 (OrderQty): required tag missing: none; allowed: the tag is required unless CashOrderQty (152) is there`},
		{"limit without price", fix44(header + "11=A|55=IBM|54=1|60=20071115-14:30:00|38=1|40=2|"), `tag 44 (Price): required tag missing: none; allowed: the tag is required for OrdType 2`},
		{"stop without price", fix44(header + "11=A|55=IBM|54=1|60=20071115-14:30:00|38=1|40=3|"), `tag 99 (StopPx): required tag missing: none; allowed: the tag is required for OrdType 3`},
		{"good till date without date", fix44(whole + "59=6|"), `tag 126 (ExpireTime): required tag missing: none; allowed: the tag is required or ExpireDate (432) for TimeInForce 6`},
		{"side not known", fix44(strings.Replace(whole, "54=1", "54=Z", 1)), `tag 54 (Side): value not known at byte 77: "Z"; allowed: one of 123456789ABCDEFG`},
		{"side of 4.4 in 4.2", fix42(strings.Replace(whole, "54=1", "54=B", 1)), `tag 54 (Side): value not known at byte 77: "B"; allowed: one of 123456789`},
		{"side of two letters", fix44(strings.Replace(whole, "54=1", "54=11", 1)), `tag 54 (Side): value not known at byte 77: "11"; allowed: one of 123456789ABCDEFG`},
		{"quantity negative", fix44(strings.Replace(whole, "38=100", "38=-100", 1)), `tag 38 (OrderQty): not such a number at byte 107: "-100"; allowed: a positive decimal number of at most 20 characters`},
		{"quantity zero", fix44(strings.Replace(whole, "38=100", "38=0.00", 1)), `tag 38 (OrderQty): not such a number at byte 107: "0.00"; allowed: a positive decimal number of at most 20 characters`},
		{"quantity exponent", fix44(strings.Replace(whole, "38=100", "38=1e9", 1)), `tag 38 (OrderQty): not such a number at byte 107: "1e9"; allowed: a positive decimal number of at most 20 characters`},
		{"price not a number", fix44(whole + "44=1.2.3|"), `tag 44 (Price): not such a number at byte 119: "1.2.3"; allowed: a decimal number of at most 20 characters`},
		{"price infinite", fix44(whole + "44=Inf|"), `tag 44 (Price): not such a number at byte 119: "Inf"; allowed: a decimal number of at most 20 characters`},
		{"time of another format", fix44(strings.Replace(whole, "20071115-14:30:00.123", "2007-11-15T14:30:00Z", 1)), `tag 60 (TransactTime): not a timestamp at byte 81: "2007-11-15T14:30:00Z"; allowed: UTC YYYYMMDD-HH:MM:SS or YYYYMMDD-HH:MM:SS.sss`},
		{"30 February", fix44(strings.Replace(whole, "20071115-14:30:00.123", "20080230-14:30:00", 1)), `tag 60 (TransactTime): not a timestamp at byte 81: "20080230-14:30:00"; allowed: UTC YYYYMMDD-HH:MM:SS or YYYYMMDD-HH:MM:SS.sss`},
		{"tag twice", fix44(whole + "38=200|"), `tag 38 (OrderQty): tag repeated at byte 116: "200"; allowed: the tag once`},
		{"user-defined tag twice", fix44(whole + "5001=x|5001=y|"), `tag 5001: tag repeated at byte 123: 5001; allowed: the tag once`},
		{"too many user-defined tags", fix44(whole + manyTags(65)), `tag 6064: too many tags at byte 564: 6064; allowed: at most 64 user-defined tags`},
		{"checksum inside", fix44(whole + "10=000|58=x|"), `tag 10 (CheckSum): tag out of place at byte 119: "000"; allowed: 8, 9, 35 first, 10 last, each once`},
		{"second MsgType", fix44(whole + "35=8|"), `tag 35 (MsgType): tag repeated at byte 116: "8"; allowed: the tag once`},
		{"no tag", fix44(whole + "=x|"), `not tag=value at byte 116: "=x\x01"; allowed: 1 to 9 digits without leading zero, then =`},
		{"tag zero", fix44(whole + "0=x|"), `not tag=value at byte 116: "0=x\x01"; allowed: 1 to 9 digits without leading zero, then =`},
		{"leading zero", fix44(whole + "058=x|"), `not tag=value at byte 116: "058=x\x01"; allowed: 1 to 9 digits without leading zero, then =`},
		{"tag overflows", fix44(whole + "18446744073709551674=x|"), `not tag=value at byte 116: "1844674407370955"; allowed: 1 to 9 digits without leading zero, then =`},
		{"no equals sign", fix44(whole + "58|"), `not tag=value at byte 116: "58\x01"; allowed: 1 to 9 digits without leading zero, then =`},
		{"two SOH", fix44(whole + "|"), `not tag=value at byte 116: "\x01"; allowed: 1 to 9 digits without leading zero, then =`},
		{"NUL in text", fix44(whole + "58=a\x00b|"), `tag 58 (Text): character not allowed at byte 120: "a\x00"; allowed: printable ASCII; use the Encoded… fields for other text`},
		{"UTF-8 in text", fix44(whole + "58=Zürich|"), `tag 58 (Text): character not allowed at byte 120: "Z\xc3"; allowed: printable ASCII; use the Encoded… fields for other text`},
		{"newline in symbol", fix44(strings.Replace(whole, "IBM", "I\nM", 1)), `tag 55 (Symbol): character not allowed at byte 71: "I\n"; allowed: printable ASCII; use the Encoded… fields for other text`},
		{"endless value", fix44(whole + "58=" + long + "|"), `tag 58 (Text): too long at byte 120: 2000 bytes; allowed: at most 1024 bytes`},
		{"data longer than the message", fix44(whole + "95=9999|96=a|"), `tag 96 (RawData): data and its length do not fit at byte 127: "9999"; allowed: the number of bytes before the SOH that ends the field`},
		{"data shorter than its length", fix44(whole + "95=1|96=ab|"), `tag 96 (RawData): data and its length do not fit at byte 124: "1"; allowed: the number of bytes before the SOH that ends the field`},
		{"data length negative", fix44(whole + "95=-1|96=a|"), `tag 95 (RawDataLength): data and its length do not fit at byte 122: "-1"; allowed: 1 to 5 digits, not 0`},
		{"data without length", fix44(whole + "96=a|"), `tag 96 (RawData): data and its length do not fit at byte 119: "a"; allowed: a length field right before it`},
		{"length without data", fix44(whole + "95=1|58=a|"), `tag 96 (RawData): data and its length do not fit at byte 121: "58=a\x01"; allowed: tag 96 right after its length field`},
		{"length at the end", fix44(whole + "95=1|"), `tag 96 (RawData): data and its length do not fit at byte 121: ""; allowed: tag 96 right after its length field`},
		{"group shorter than its count", fix44(whole + "453=2|448=A|447=D|452=1|"), `tag 453 (NoPartyIDs): repeating group does not fit its count: 2; allowed: 1, the times tag 448 is there`},
		{"group without count", fix44(whole + "448=A|"), `tag 448 (PartyID): repeating group does not fit its count at byte 120: 448; allowed: inside the group that begins with tag 453`},
		{"huge group", fix44(whole + "453=4294967295|"), `tag 453 (NoPartyIDs): not such a number at byte 120: "4294967295"; allowed: 1 to 3 digits`},
	} {
		var o Order
		err := Parse(c.msg, &o)
		t.Logf("%-28s %v", c.name, err)
		if err == nil {
			t.Errorf("%s: accepted", c.name)
		} else if err.Error() != c.want {
			t.Errorf("%s:\n got  %s\n want %s", c.name, err, c.want)
		}
	}
}

func envelopeFor(msgType, body string) []byte {
	b := strings.ReplaceAll("35="+msgType+"|"+body, "|", "\x01")
	msg := []byte(fmt.Sprintf("8=FIX.4.4\x019=%d\x01%s10=000\x01", len(b), b))
	Seal(msg)
	return msg
}

func sealed(s string) []byte {
	msg := []byte(strings.ReplaceAll(s, "|", "\x01"))
	Seal(msg)
	return msg
}

func manyTags(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d=x|", 6000+i)
	}
	return b.String()
}

func TestFindAndSeal(t *testing.T) {
	msg := seed(t, "order-305-fix44.txt")
	off, n, ok := Find(msg, 11)
	if !ok || string(msg[off:off+n]) != "PRA20071115T00000001" {
		t.Fatalf("Find(11): %d %d %t", off, n, ok)
	}
	if _, _, ok := Find(msg, 9999); ok {
		t.Error("a tag that is not there was found")
	}
	msg[off+n-1] = '2'
	var o Order
	if err := Parse(msg, &o); err == nil || err.Reason != ReasonCheckSum {
		t.Errorf("a patched message without a new CheckSum: %v", err)
	}
	if !Seal(msg) {
		t.Fatal("Seal found no trailer")
	}
	if err := Parse(msg, &o); err != nil {
		t.Error(err)
	}
	if Seal([]byte("10=1")) {
		t.Error("Seal accepted a message without trailer")
	}
}
