package order

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// sealFields makes a FIX 4.4 message of fields.
func sealFields(body string) []byte {
	body = strings.ReplaceAll(body, "|", "\x01")
	return sealAs("FIX.4.4", body)
}

func sealAs(version, body string) []byte {
	m := fmt.Sprintf("8=%s\x019=%d\x01%s", version, len(body), body)
	return fmt.Appendf(nil, "%s10=%03d\x01", m, CheckSum([]byte(m)))
}

// naive finds the first value of a tag outside data fields by splitting.
func naive(msg []byte, tag string) string {
	for i := 0; i < len(msg)-trailer; {
		eq := bytes.IndexByte(msg[i:], '=') + i
		soh := bytes.IndexByte(msg[i:], SOH) + i
		name, value := string(msg[i:eq]), string(msg[eq+1:soh])
		if name == tag {
			return value
		}
		i = soh + 1
		if name == "95" { // RawDataLength: RawData follows
			n := 0
			fmt.Sscan(value, &n)
			i += len("96=") + n + 1
		}
	}
	return ""
}

// TestLocatorFindsWhatSplittingFinds sends streams of similar messages, with values that
// look like fields in data, through one locator.
func TestLocatorFindsWhatSplittingFinds(t *testing.T) {
	tags := []uint32{35, 41, 40, 59, 60, 5001}
	l := NewLocator(tags...)
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(s ...string) string { return s[rng.IntN(len(s))] }
	matched := 0
	for range 20000 {
		body := "35=" + pick("D", "F", "G") + "|49=A|56=B|34=" + fmt.Sprint(rng.IntN(100)+1) + "|"
		if rng.IntN(3) == 0 {
			raw := pick("x60=20200101", "x\x0160=9\x0141=zz", "\x0140=9\x01zzz9=", "=\x01=\x0159=1")
			body += fmt.Sprintf("95=%d|96=%s|", len(raw), raw)
		}
		body += "11=" + pick("a1", "b2", "41=c") + "|"
		if rng.IntN(2) == 0 {
			body += "41=" + pick("orig1", "orig2", "60=x5") + "|"
		}
		body += pick("40=1|", "40=2|", "59=1|", "5001=1|", "5001=22|58=60=|") + "60=20260101-00:00:0" + pick("1", "2") + "|"
		msg := sealAs(pick("FIX.4.4", "FIXT.1.1"), strings.ReplaceAll(body, "|", "\x01"))
		spans := l.Locate(msg, 0)
		if &spans[0] != &l.spans[0] {
			matched++
		}
		for i, tag := range tags {
			if got, want := string(spans[i].Of(msg)), naive(msg, fmt.Sprint(tag)); got != want {
				t.Fatalf("tag %d of %q: located %q, want %q", tag, msg, got, want)
			}
		}
	}
	if matched < 1000 {
		t.Errorf("%d of 20000 messages matched a kept one, want 1000 or more: comparing is not tested", matched)
	}
}

func TestLocateAllocsNothing(t *testing.T) {
	l := NewLocator(60, 40)
	msg := sealFields("35=D|49=A|56=B|11=a|55=X|60=20260101-00:00:01|40=1|")
	l.Locate(msg, 0)
	if n := testing.AllocsPerRun(100, func() { l.Locate(msg, 0) }); n != 0 {
		t.Errorf("Locate allocates %v times, want 0", n)
	}
}

func FuzzLocate(f *testing.F) {
	f.Add(sealFields("35=D|11=a|60=20260101-00:00:01|"), sealFields("35=D|11=b|60=20260101-00:00:02|"))
	f.Add(sealAs("FIXT.1.1", "35=D\x0111=a\x0160=20260101-00:00:01\x01"), sealFields("35=D|11=bb|60=20260101-00:00:02|"))
	f.Add(sealFields("35=D|95=3|96=\x0160|11=a|"), sealFields("35=D|95=9|96=\x0160|11=a|"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		l, fresh := NewLocator(35, 60, 11, 96), NewLocator(35, 60, 11, 96)
		l.Locate(a, 0)
		got := append([]Span(nil), l.Locate(b, 0)...)
		for i, s := range fresh.Locate(b, 0) {
			if got[i] != s {
				t.Fatalf("after another message: %v, alone %v", got[i], s)
			}
			s.Of(b)
		}
	})
}

func BenchmarkLocate(b *testing.B) {
	body := "35=D|49=A|56=B|34=1|52=20260101-00:00:01.000|11=P12345678901234567890|1=ACC-%04d|21=1|55=SYM%02d|54=1|38=%d|40=2|44=%d.%02d|59=0|60=20260101-00:00:01.%03d|58=some text that makes it as long as an order is|100=XNAS|47=A|"
	msgs := make([][]byte, 1000)
	for i := range msgs {
		msgs[i] = sealFields(fmt.Sprintf(body, i, i%100, 1+i*37%9000, i*91%400, i%100, i%1000))
	}
	l := NewLocator(35, 41, 40, 59, 60)
	b.SetBytes(int64(len(msgs[500])))
	hints := make([]uint64, len(msgs))
	for i, m := range msgs {
		var o Order
		if err := Parse(m, &o); err != nil {
			b.Fatal(err)
		}
		hints[i] = o.Places()
	}
	b.ResetTimer()
	for i := range b.N {
		l.Locate(msgs[i%1000], hints[i%1000])
	}
}
