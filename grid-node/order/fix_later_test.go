package order

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// laterFields are of FIX 5.0 SP2 only: each group with two entries, nested ones too.
const laterFields = "957=2|958=a|959=1|960=x|958=b|1018=2|1019=P|1050=D|1051=1|1052=2|1053=s|1054=1|1053=t|1019=Q|" +
	"711=2|311=U|972=1|1058=2|1059=v|1062=1|1063=w|1064=2|1059=x|311=V|315=1|864=2|865=1|1145=a|865=2|1145=b|" +
	"1483=2|1484=1|1491=2|1492=1|1494=1|1495=a|1496=b|1492=2|1484=2|768=2|769=a|770=1|1033=D|769=b|1184=5|1185=<a/>=|1300=x|1028=Y|"

func TestLaterAccepts(t *testing.T) {
	for name, msg := range map[string][]byte{
		"as FIX 4.4 has it":           fix50(whole),
		"ApplVerID":                   fix50("1128=9|" + whole),
		"ApplVerID behind the CompID": fix50("49=P|1128=9|1129=house|56=G|34=1|52=20071115-14:30:00|11=A|" + rest),
		"what no version before has":  fix50(whole + laterFields),
		"counter-order selection":     fix50(header + "11=A|55=IBM|54=1|60=20071115-14:30:00|38=1|40=Q|"),
		"at crossing":                 fix50(whole + "59=9|"),
		"good through crossing":       fix50(whole + "59=8|"),
		"many fields of the standard": fix50(whole + plainLater(100)),
		"parties":                     fix50(whole + "453=2|448=A|447=D|452=1|448=B|447=D|452=3|802=1|523=x|803=1|"),
		"raw data with SOH":           fix50(whole + "95=9|96=a|10=000||"),
		"an empty group":              fix50(whole + "1018=0|"),
		"plain in FIX 4.4":            fix44(whole + "957=x|972=y|1018=z|1128=6|1184=0|"),
	} {
		var o Order
		if err := Parse(msg, &o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// plainLater are so many fields of FIX 5.0 SP2 outside of groups.
func plainLater(n int) string {
	var b strings.Builder
	for tag := tableSize; n > 0; tag++ {
		if laterOf[tag] == 0 {
			fmt.Fprintf(&b, "%d=x|", tag)
			n--
		}
	}
	return b.String()
}

func TestLaterRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		msg  []byte
		want string
	}{
		{"another application version", fix50("1128=6|" + whole), `tag 1128 (ApplVerID): value not known at byte 27: "6"; allowed: 9 (FIX 5.0 SP2), or no such field`},
		{"ApplVerID twice", fix50("1128=9|" + whole + "1128=9|"), `tag 1128 (ApplVerID): tag repeated at byte 124: "9"; allowed: the tag once`},
		{"a plain tag twice", fix50(whole + "1300=x|1300=y|"), `tag 1300: tag repeated at byte 124: "y"; allowed: the tag once`},
		{"a count twice", fix50(whole + "957=0|957=0|"), `tag 957 (NoStrategyParameters): tag repeated at byte 123: "0"; allowed: the tag once`},
		{"group shorter than its count", fix50(whole + "1018=2|1019=P|"), `tag 1018 (NoInstrumentParties): repeating group does not fit its count: 2; allowed: 1, the times tag 1019 is there`},
		{"nested group shorter than its counts", fix50(whole + "1018=2|1019=P|1052=1|1053=a|1019=Q|1052=2|1053=b|"), `tag 1052: repeating group does not fit its count: 3; allowed: 2, the times tag 1053 is there`},
		{"group without count", fix50(whole + "958=a|"), `tag 958: repeating group does not fit its count at byte 121: 958; allowed: inside the group that begins with tag 957`},
		{"nested group outside", fix50(whole + "1052=1|1053=a|"), `tag 1052: repeating group does not fit its count at byte 122: 1052; allowed: inside the group that begins with tag 1018`},
		{"count no number", fix50(whole + "1018=x|"), `tag 1018 (NoInstrumentParties): not such a number at byte 122: "x"; allowed: 1 to 3 digits`},
		{"XML without length", fix50(whole + "1185=<a/>|"), `tag 1185 (SecurityXML): data and its length do not fit at byte 122: "<a/>"; allowed: a length field right before it`},
		{"length without XML", fix50(whole + "1184=4|58=abcd|"), `tag 1185 (SecurityXML): data and its length do not fit at byte 124: "58=abcd\x01"; allowed: tag 1185 right after its length field`},
		{"length at the end", fix50(whole + "1184=4|"), `tag 1185 (SecurityXML): data and its length do not fit at byte 124: ""; allowed: tag 1185 right after its length field`},
		{"XML with SOH", fix50(whole + "1184=5|1185=a|1=b|"), `tag 1185 (SecurityXML): data and its length do not fit at byte 129: "5"; allowed: the number of bytes before the SOH that ends the field, all of them printable ASCII`},
		{"a length of nothing", fix50(whole + "1184=0|1185=a|"), `tag 1184 (SecurityXMLLen): data and its length do not fit at byte 122: "0"; allowed: 1 to 1024`},
		{"OrdType of no version", fix50(strings.Replace(whole, "40=1", "40=R", 1)), `tag 40 (OrdType): value not known at byte 115: "R"; allowed: one of 12346789DEGIJKLMPQ`},
		{"too many tags of others", fix50(whole + manyTags(65)), `tag 6064: too many tags at byte 565: 6064; allowed: at most 64 user-defined tags`},
		{"a cancel by OrderID alone", sealAs("FIXT.1.1", strings.ReplaceAll("35=F|37=p1/17|"+whole, "|", "\x01")), `tag 41 (OrigClOrdID): required tag missing: none; allowed: the tag is required in a cancel or replace`},
		{"BeginString of another transport", envelopeOf("FIXT.1.2", whole), `tag 8 (BeginString): FIX version not taken: "8=FIXT.1.2\x01"; allowed: 8=FIX.4.2, 8=FIX.4.4 or 8=FIXT.1.1, followed by 9=`},
		{"wrong body length", sealed(strings.Replace(text(fix50(whole)), "|9=1", "|9=2", 1)), `tag 9 (BodyLength): wrong BodyLength: 200; allowed: 100, the bytes between 9= and 10=`},
	} {
		var o Order
		err := Parse(c.msg, &o)
		if err == nil {
			t.Errorf("%s: accepted", c.name)
		} else if err.Error() != c.want {
			t.Errorf("%s:\n got  %s\n want %s", c.name, err, c.want)
		}
	}
}

// randomFields are those of an order, most of them right, some not, in any order.
func randomFields(r *rand.Rand) string {
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	seldom := func(right, wrong string) string { // most fields are right, so that many orders are
		if r.IntN(20) == 0 {
			return wrong
		}
		return right
	}
	fields := []string{"49=P", "56=G", "34=" + seldom("22", "x"), "52=20071115-14:30:00" + seldom(".123", ".1"), "11=" + seldom("order-1", strings.Repeat("z", 65)),
		"55=" + pick("IBM", "X"), "54=" + seldom(pick("1", "2", "G"), "Z"), "60=20071115-14:30:00.12" + seldom("3", "x"), "38=" + seldom(pick("100", "1.5"), "0"),
		"40=" + seldom(pick("1", "2", "3", "Q"), "R"), "44=" + seldom(pick("104.25", "-1"), "1.2.3"), "99=10", "41=before"}
	for _, more := range []string{"1=ACC", "21=" + seldom("1", "4"), "59=" + pick("0", "6", "8"), "126=20071116-00:00:00", "58=" + pick("text", "a=b"), "5001=x",
		"453=2|448=A|448=B|802=1|523=x", "95=3|96=" + seldom("a|b", "ab"), "354=2|355=ab", "110=5", "20001=z", "43=N", "97=Y", seldom("15=USD", "55=twice"), seldom("120=USD", "5001=y")} {
		if r.IntN(4) == 0 {
			fields = append(fields, more)
		}
	}
	if r.IntN(4) == 0 {
		i := r.IntN(len(fields))
		fields = append(fields[:i], fields[i+1:]...)
	}
	if r.IntN(2) == 0 {
		r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	}
	return strings.Join(fields, "|") + "|"
}

// TestVersionsAgree: the fields that FIX 4.4 has are read in FIX 5.0 SP2 as in 4.4, one byte
// behind, and refused for the same reasons, but for the values that 5.0 SP2 adds.
func TestVersionsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(50, 44))
	accepted, refused, added := 0, 0, 0
	for range 20000 {
		body := strings.ReplaceAll("35="+[]string{"D", "D", "F", "G"}[r.IntN(4)]+"|"+randomFields(r), "|", "\x01")
		old, now := sealAs("FIX.4.4", body), sealAs("FIXT.1.1", body)
		var a, b Order
		errA, errB := Parse(old, &a), Parse(now, &b)
		switch {
		case errA != nil && errA.Reason == ReasonEnum && (errB == nil || errB.Tag != errA.Tag) && (errA.Value == `"Q"` || errA.Value == `"8"`):
			added++
		case errA == nil && errB == nil:
			accepted++
			want := a
			want.Version = FIX50
			for _, off := range []*uint16{&want.ClOrdIDOff, &want.SymbolOff, &want.AccountOff, &want.QtyOff, &want.PriceOff, &want.CheckSumOff} {
				if *off != 0 {
					*off++
				}
			}
			if b != want {
				t.Fatalf("read as %+v, want %+v: %q", b, want, now)
			}
		case errA == nil || errB == nil:
			t.Fatalf("FIX 4.4 says %v, FIX 5.0 SP2 %v: %q", errA, errB, now)
		default:
			refused++
			if want := errA.Offset; errB.Tag != errA.Tag || errB.Reason != errA.Reason || want != 0 && errB.Offset != want+1 {
				t.Fatalf("FIX 4.4 says %v, FIX 5.0 SP2 %v: %q", errA, errB, now)
			}
		}
	}
	if accepted < 1000 || refused < 1000 || added < 100 {
		t.Errorf("%d accepted, %d refused, %d with values of 5.0 SP2: the test compares too little", accepted, refused, added)
	}
}

func TestBeginStringLen(t *testing.T) {
	for want, msgs := range map[int][][]byte{10: {fix42(whole), fix44(whole)}, 11: {fix50(whole)}, 0: {nil, []byte("8=FIX.4.4\x01"), envelopeOf("FIX.5.0SP2", whole)}} {
		for _, m := range msgs {
			if got := BeginStringLen(m); got != want {
				t.Errorf("BeginStringLen of %q is %d, want %d", m, got, want)
			}
		}
	}
}
