package order

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/internal/race"
)

// layoutSeeds cover every class of field and every length modulo 8.
func layoutSeeds(tb testing.TB) [][]byte {
	msgs := [][]byte{
		seed(tb, "order-305-fix42.txt"),
		seed(tb, "order-305-fix44.txt"),
		seed(tb, "order-305-fix50.txt"),
		fix50(whole + laterFields),
		fix50("1128=9|" + whole + "58=plain|1099=x|5001=x|20001=z|"),
		fix50(whole),
		fix44(whole + "453=2|448=A|447=D|452=1|448=B|447=D|452=3|802=1|523=x|803=1|"),
		fix44(whole + "95=9|96=a|10=000||354=4|355=\xff\x00||" + "|58=plain|5001=x|9999=yy|20001=z|"),
		fix44(header + "11=A|55=IBM|54=2|60=20080229-23:59:60|38=1|40=3|99=-1.5|110=5|111=9.|152=.1|210=7|369=12|43=Y|126=20090101-00:00:00|168=20090101-00:00:00.999|122=20080101-12:00:00|59=6|"),
		fix42(whole + "44=10|59=0|"),
		fix44(whole + "18=6|99=10.5|111=7|2362=12|2964=1|"),
		envelopeFor("F", header+"11=B|41=A|55=IBM|54=1|60=20071115-14:30:00|38=1|"),
		envelopeFor("G", header+"11=B|41=A|21=1|"+rest),
	}
	for n := range 8 {
		msgs = append(msgs, fix44(whole+"58="+strings.Repeat("x", n+1)+"|"))
	}
	return msgs
}

// sameAsParse returns how Layouts and Parse differ on msg, "" if they do not.
func sameAsParse(ls *Layouts, msg []byte) string {
	var want, got Order
	wantErr, gotErr := Parse(msg, &want), ls.Parse(msg, &got)
	switch {
	case (wantErr == nil) != (gotErr == nil):
		return fmt.Sprintf("Parse returns %v, Layouts %v", wantErr, gotErr)
	case wantErr != nil && *wantErr != *gotErr:
		return fmt.Sprintf("Parse returns %v, Layouts %v", wantErr, gotErr)
	case wantErr == nil && want != got:
		return fmt.Sprintf("Parse finds %+v, Layouts %+v", want, got)
	case wantErr == nil:
		if want, got := want.Terms(msg), ls.Terms(msg, &got); !reflect.DeepEqual(want, got) {
			return fmt.Sprintf("Order.Terms finds %q, Layouts %q", want, got)
		}
	}
	return ""
}

// knowing returns Layouts that has learned msg.
func knowing(tb testing.TB, msg []byte) *Layouts {
	tb.Helper()
	var ls Layouts
	var o Order
	if err := ls.Parse(msg, &o); err != nil {
		tb.Fatal(err)
	}
	if s := &ls.sets[len(msg)%layoutSets]; !s.ways[s.recent].fits(msg) {
		tb.Fatalf("what was learnt does not fit itself: %q", msg)
	}
	return &ls
}

// Each byte of each message becomes every other byte, with its old CheckSum and with the
// correct one: earlier messages make no difference.
func TestLayoutsEveryByte(t *testing.T) {
	for _, base := range layoutSeeds(t) {
		ls := knowing(t, base)
		set := &ls.sets[len(base)%layoutSets]
		known := *set
		taken := 0
		for i := range base {
			for v := range 256 {
				if race.Enabled && (v+i)%8 != 0 { // ten times slower; all of them are tried without it
					continue
				}
				for _, seal := range []bool{false, true} {
					msg := bytes.Clone(base)
					msg[i] = byte(v)
					if seal {
						Seal(msg)
					}
					if set.ways[set.recent].fits(msg) {
						taken++
					}
					if diff := sameAsParse(ls, msg); diff != "" {
						t.Fatalf("byte %d is %#x (sealed: %t): %s\n%q", i, v, seal, diff, msg)
					}
					*set = known
				}
			}
		}
		if taken < 256 && !race.Enabled {
			t.Errorf("only %d variants were recognised of %q", taken, base)
		}
	}
}

// What a faulty or hostile peer sends in place of the learned message.
func TestLayoutsNearMisses(t *testing.T) {
	const tail = "55=IBM|54=1|60=20071115-14:30:00.123|38=100|40=1|58=some text|"
	base := header + "11=ABCDEFGH|21=1|" + tail
	with := func(old, new string) string {
		if strings.Count(base, old) != 1 {
			t.Fatalf("%q stands %d times in %q", old, strings.Count(base, old), base)
		}
		return strings.Replace(base, old, new, 1)
	}
	for name, msg := range map[string][]byte{
		"the same":                             fix44(base),
		"another ClOrdID":                      fix44(with("ABCDEFGH", "ABCDEFGI")),
		"SOH moved back":                       fix44(with("11=ABCDEFGH|21=1", "11=ABCDEFG|121=Y")),
		"SOH moved on":                         fix44(with("49=P|56=G|", "49=P5|6=G|")),
		"SOH in a value":                       fix44(with("some text", "some|text")),
		"SOH and a tag in a value":             fix44(with("some text", "so|44=1.5")),
		"a tag that is there in a value":       fix44(with("some text", "so|38=1.5")),
		"CheckSum in a value":                  fix44(with("some text", "s|10=000|")),
		"tag digits changed":                   fix44(with("11=ABCDEFGH", "17=ABCDEFGH")),
		"tag changed to one that is there":     fix44(with("58=some", "55=some")),
		"tag changed to a length":              fix44(with("58=some text", "95=some text")),
		"tag with leading zero":                fix44(with("58=some", "08=some")),
		"tags in another order":                fix44(with("54=1|60=20071115-14:30:00.123|", "60=20071115-14:30:00.123|54=1|")),
		"equals sign gone":                     fix44(with("58=some", "58-some")),
		"equals sign in a value":               fix44(with("some text", "some=text")),
		"required tag gone, as long":           fix44(with("55=IBM|54=1|", "15=IBM|24=1|")),
		"required tag gone":                    fix44(with("55=IBM|", "")),
		"duplicate tag":                        fix44(with("58=some text|", "38=2|58=text|")),
		"ClOrdID shorter, text longer":         fix44(strings.Replace(with("ABCDEFGH", "ABCDEFG"), "some text", "some texts", 1)),
		"ClOrdID longer, text shorter":         fix44(strings.Replace(with("ABCDEFGH", "ABCDEFGHI"), "some text", "some tex", 1)),
		"ClOrdID shorter":                      fix44(with("ABCDEFGH", "ABCDEFG")),
		"ClOrdID empty, text longer":           fix44(strings.Replace(with("ABCDEFGH", ""), "some text", "some textABCDEFGH", 1)),
		"side not known":                       fix44(with("54=1", "54=Z")),
		"another side":                         fix44(with("54=1", "54=2")),
		"limit without price":                  fix44(with("40=1", "40=2")),
		"quantity zero":                        fix44(with("38=100", "38=000")),
		"quantity with a point":                fix44(with("38=100", "38=1.0")),
		"quantity with two points":             fix44(with("38=100", "38=1..")),
		"quantity negative":                    fix44(with("38=100", "38=-10")),
		"MsgSeqNum no digit":                   fix44(with("34=1|", "34=a|")),
		"month 13":                             fix44(with("60=20071115", "60=20071315")),
		"31 November":                          fix44(with("60=20071115", "60=20071131")),
		"29 February":                          fix44(with("60=20071115", "60=20070229")),
		"29 February of a leap year":           fix44(with("60=20071115", "60=20080229")),
		"hour 24":                              fix44(with("-14:30:00.123", "-24:30:00.123")),
		"second 60":                            fix44(with(":00.123", ":60.123")),
		"second 61":                            fix44(with(":00.123", ":61.123")),
		"milliseconds no digits":               fix44(with(".123", ".12x")),
		"separator of time":                    fix44(with(".123", ":123")),
		"DEL in text":                          fix44(with("some text", "some\x7ftext")),
		"NUL in text":                          fix44(with("some text", "some\x00text")),
		"8 bits in text":                       fix44(with("some text", "some\xfctext")),
		"high bit of a tag":                    fix44(with("58=some", "\xb58=some")),
		"FIX 4.2":                              fix42(base),
		"FIX 5.0 SP2":                          fix50(base),
		"FIX 5.0 SP2 of the same size":         fix50(with("some text", "some tex")),
		"version not known":                    envelopeOf("FIX.4.3", base),
		"BodyLength wrong":                     sealed(strings.Replace(text(fix44(base)), "|9=1", "|9=2", 1)),
		"BodyLength with another last digit":   sealed(flip(text(fix44(base)), strings.Index(text(fix44(base)), "|35=")-1)),
		"BodyLength with leading zero":         sealed(strings.Replace(text(fix44(base)), "|9=1", "|9=0", 1)),
		"CheckSum wrong":                       []byte(strings.ReplaceAll(flip(text(fix44(base)), len(fix44(base))-2), "|", "\x01")),
		"CheckSum off by 256":                  offBy256(fix44(base)),
		"CheckSum no digits":                   []byte(strings.ReplaceAll(text(fix44(base))[:len(fix44(base))-4]+"ab1|", "|", "\x01")),
		"CheckSum of another tag":              []byte(strings.ReplaceAll(strings.Replace(text(fix44(base)), "|10=", "|11=", 1), "|", "\x01")),
		"last SOH gone":                        []byte(strings.ReplaceAll(text(fix44(base))[:len(fix44(base))-1]+"x", "|", "\x01")),
		"SOH before CheckSum gone":             sealed(strings.Replace(text(fix44(base)), "|10=", "x10=", 1)),
		"two bytes that sum up to what it was": []byte(strings.ReplaceAll(strings.Replace(text(fix44(base)), "some text", "sone text", 1), "|", "\x01")),
		"two bytes exchanged in a value":       []byte(strings.ReplaceAll(strings.Replace(text(fix44(base)), "some text", "some etxt", 1), "|", "\x01")),
		"a cancel":                             envelopeFor("F", base),
		"two bytes exchanged over a SOH":       []byte(strings.ReplaceAll(strings.Replace(text(fix44(base)), "54=1|60", "54=|160", 1), "|", "\x01")),
		"cut by one byte":                      fix44(base)[:len(fix44(base))-1],
		"one byte more":                        append(fix44(base), 'x'),
		"nothing":                              {},
		"seven bytes":                          []byte("8=FIX.4"),
	} {
		if diff := sameAsParse(knowing(t, fix44(base)), msg); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func text(msg []byte) string { return strings.ReplaceAll(string(msg), "\x01", "|") }

// flip changes the lowest bit of byte i.
func flip(s string, i int) string {
	b := []byte(s)
	b[i] ^= 1
	return string(b)
}

// offBy256 writes a CheckSum of three digits that is right modulo 256 only.
func offBy256(msg []byte) []byte {
	for pad := byte('a'); ; pad++ { // the sum has to leave room below 1000
		msg[bytes.Index(msg, []byte("some"))] = pad
		if v := int(CheckSum(msg[:len(msg)-trailer])) + 256; v < 1000 {
			copy(msg[len(msg)-4:], fmt.Sprintf("%03d", v))
			return msg
		}
	}
}

// Streams of orders of several layouts, alike and not, with faults among them: the answers
// are those of Parse whatever came before.
func TestLayoutsStreams(t *testing.T) {
	seeds := layoutSeeds(t)
	for round := range uint64(200) {
		r := rand.New(rand.NewPCG(round, 1))
		var ls Layouts
		for range 300 {
			msg := bytes.Clone(seeds[r.IntN(1+r.IntN(len(seeds)))])
			for range r.IntN(6) {
				mutateByte(r, msg)
			}
			if r.IntN(8) != 0 {
				Seal(msg)
			}
			if diff := sameAsParse(&ls, msg); diff != "" {
				t.Fatalf("round %d: %s\n%q", round, diff, msg)
			}
		}
	}
}

// mutateByte is a change that often leaves an order an order.
func mutateByte(r *rand.Rand, msg []byte) {
	i := r.IntN(len(msg))
	switch c := msg[i]; {
	case r.IntN(16) == 0:
		msg[i] = byte(r.IntN(256))
	case c-'0' <= 9 && i > 20:
		msg[i] = byte('0' + r.IntN(10))
	case c >= 'A' && c <= 'z':
		msg[i] = byte('A' + r.IntN(26))
	}
}

// FuzzLayouts: after any message that Parse accepts, any other is judged as Parse does.
func FuzzLayouts(f *testing.F) {
	for _, m := range layoutSeeds(f) {
		f.Add(m, m, true)
	}
	f.Add([]byte(header+whole), []byte(header+whole), true)
	f.Fuzz(func(t *testing.T, first, second []byte, repair bool) {
		if repair {
			first, second = bytes.Clone(first), bytes.Clone(second)
			Seal(first)
			Seal(second)
		}
		var ls Layouts
		for _, msg := range [][]byte{first, second, first, second} {
			before := bytes.Clone(msg)
			if diff := sameAsParse(&ls, msg); diff != "" {
				t.Fatalf("%s\nfirst %q\nsecond %q", diff, first, second)
			}
			if !bytes.Equal(before, msg) {
				t.Fatal("Layouts changed the message")
			}
		}
	})
}

// If no messages are alike few are kept; when they become alike, they are matched again.
func TestLayoutsGiveUpAndComeBack(t *testing.T) {
	var ls Layouts
	var o Order
	msg := func(i int) []byte { // 81 layouts of one length
		a, b := i%9+1, i/9%9+1
		return fix44(header + "11=" + strings.Repeat("A", a) + "|55=" + strings.Repeat("I", b) + "|54=1|60=20071115-14:30:00|38=1|40=1|58=" + strings.Repeat("x", 20-a-b) + "|")
	}
	set := &ls.sets[len(msg(0))%layoutSets]
	for i := range 2000 {
		if err := ls.Parse(msg(i), &o); err != nil {
			t.Fatal(err)
		}
	}
	if set.pause != maxPause {
		t.Errorf("after 2000 messages of 81 layouts one in %d is remembered, want one in %d", set.pause+1, maxPause+1)
	}
	for range 3 * maxPause {
		_ = ls.Parse(msg(7), &o)
	}
	if l := set.ways[set.recent]; !l.used || !l.fits(msg(7)) {
		t.Error("a frequent layout is not kept")
	}
}

func TestLayoutsDoNotAllocate(t *testing.T) {
	var ls Layouts
	var o Order
	seeds := layoutSeeds(t)
	all := func() {
		for _, m := range seeds {
			if err := ls.Parse(m, &o); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 10 {
		all()
	}
	if n := testing.AllocsPerRun(100, all); n != 0 {
		t.Errorf("%v allocations for %d orders, want 0", n, len(seeds))
	}
}

// BenchmarkLayouts: orders of one source, with the fields different that are in the
// published probe: MsgSeqNum, both times, ClOrdID.
func BenchmarkLayouts(b *testing.B) {
	for _, f := range []string{"order-305-fix42.txt", "order-305-fix44.txt", "order-305-fix50.txt"} {
		var msgs [64][]byte
		for i := range msgs {
			m := seed(b, f)
			for _, tag := range []int{34, 11, 52, 60} {
				off, n, _ := Find(m, tag)
				copy(m[off+n-3:], fmt.Sprintf("%03d", i*7))
			}
			Seal(m)
			msgs[i] = m
		}
		b.Run(f[10:15], func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(msgs[0])))
			var ls Layouts
			var o Order
			for i := 0; b.Loop(); i++ {
				if err := ls.Parse(msgs[i%len(msgs)], &o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
