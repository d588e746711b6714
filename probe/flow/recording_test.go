package flow

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// A day of LOBSTER in miniature: two orders, one reduced, executed in part and
// deleted, one executed whole; events of orders older than the file.
const lobsterFile = `34200.017459617,5,0,1,2238200,-1
34200.189607670,1,11885113,21,2238100,1
34200.190607670,1,11885114,100,2240000,-1
34200.289607670,3,9999,20,2238100,1
34200.489607670,2,11885114,40,2240000,-1
34200.589607670,4,11885114,10,2240000,-1
34200.689607670,4,11885113,21,2238100,1
34200.789607670,3,11885113,21,2238100,1
34201.189607670,3,11885114,50,2240000,-1
34201.2,7,0,0,-1,-1
`

const fixFile = `20260102-14:30:00.000 : 8=FIX.4.2|9=1|35=A|34=1|52=20260102-14:30:00.000|10=000|
8=FIX.4.2|9=1|35=D|34=2|52=20260102-14:30:00.100|1=SECRET-ACCOUNT|11=a1|55=IBM|54=1|60=20260102-14:30:00|38=200|40=2|44=104.25|10=000|
some words between
8=FIX.4.4|35=8|52=20260102-14:30:00.101|11=a1|10=000|
8=FIX.4.2|9=1|35=D|52=20260102-14:30:00.300|11=a2|55=MSFT|54=5|38=50.5|40=1|10=000|
8=FIX.4.2|9=1|35=G|52=20260102-14:30:00.250|11=a3|41=a1|55=IBM|54=1|38=100|40=2|44=104.3|10=000|
8=FIX.4.2|9=1|35=F|60=20260102-14:30:01.100|11=a4|41=a3|55=IBM|54=1|10=000|
8=FIX.4.2|9=1|35=F|52=20260102-14:30:01.200|11=a5|41=zz|55=IBM|54=1|10=000|
`

func read(t testing.TB, text, name string, f Format) *Recording {
	t.Helper()
	r, err := Read(strings.NewReader(text), name, f, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func replay(r *Recording, speed int) Params {
	return Params{Arrival: Arrival{Type: Replay}.Defaulted(), Varied: true, Measure: time.Minute, Probes: 1, Recording: r, Speed: speed}
}

func contents(t testing.TB, s *Schedule) (out []Message) {
	t.Helper()
	checkChanges(t.(*testing.T), s)
	for i := range s.Messages().Len() {
		var m Message
		s.Messages().Message(i, &m)
		out = append(out, m)
	}
	return out
}

func TestReadLobster(t *testing.T) {
	r := read(t, lobsterFile, "/data/AMZN_2012-06-21_34200000_57600000_message_1.csv", Lobster)
	if r.Skipped != 4 || r.Orphans != 2 || r.Messages() != 4 || r.Span() != time.Second {
		t.Errorf("%d skipped, %d orphans, %d messages over %v", r.Skipped, r.Orphans, r.Messages(), r.Span())
	}
	for speed, offsets := range map[int][]int64{1: {0, 1e6, 300e6, 1000e6}, 4: {0, 250e3, 75e6, 250e6}} {
		s := schedule(t, replay(r, speed))
		for i, want := range offsets {
			if got := s.Offset(int64(i)); got != want {
				t.Errorf("%dx: message %d at %d ns, want %d", speed, i, got, want)
			}
		}
		want := []Message{
			{Kind: NewOrder, Target: -1, Symbol: "AMZN", Side: '1', Type: '2', Time: '0', Qty: 21, Price: 2238100},
			{Kind: NewOrder, Target: -1, Symbol: "AMZN", Side: '2', Type: '2', Time: '0', Qty: 100, Price: 2240000},
			{Kind: Replace, Target: 1, Symbol: "AMZN", Side: '2', Type: '2', Time: '0', Qty: 60, Price: 2240000},
			{Kind: Cancel, Target: 2, Symbol: "AMZN", Side: '2', Type: '2', Time: '0', Qty: 60, Price: 2240000},
		}
		for i, got := range contents(t, s) {
			if got != want[i] {
				t.Errorf("%dx: message %d is %+v, want %+v", speed, i, got, want[i])
			}
		}
	}
}

func TestReadFIXLog(t *testing.T) {
	for name, text := range map[string]string{"pipes": fixFile, "SOH": strings.ReplaceAll(fixFile, "|", "\x01"), "CRLF": strings.ReplaceAll(fixFile, "\n", "\r\n")} {
		t.Run(name, func(t *testing.T) {
			r := read(t, text, "client.log", FIXLog)
			if r.Skipped != 3 || r.Orphans != 1 || r.Span() != time.Second {
				t.Errorf("%d skipped, %d orphans, %v", r.Skipped, r.Orphans, r.Span())
			}
			s := schedule(t, replay(r, 1))
			want := []Message{
				{Kind: NewOrder, Target: -1, Symbol: "IBM", Side: '1', Type: '2', Time: '0', Qty: 200, Price: 1042500},
				{Kind: NewOrder, Target: -1, Symbol: "MSFT", Side: '5', Type: '1', Time: '0', Qty: 50},
				{Kind: Replace, Target: 0, Symbol: "IBM", Side: '1', Type: '2', Time: '0', Qty: 100, Price: 1043000},
				{Kind: Cancel, Target: 2, Symbol: "IBM", Side: '1', Type: '2', Time: '0', Qty: 100, Price: 1043000},
			}
			for i, got := range contents(t, s) {
				if got != want[i] {
					t.Errorf("message %d is %+v, want %+v", i, got, want[i])
				}
			}
			// 50 ms back counts as the same time.
			if a, b := s.Offset(1), s.Offset(2); a != 200e6 || b != a {
				t.Errorf("messages 1 and 2 at %d and %d", a, b)
			}
		})
	}
}

// Each message is sent by exactly one probe, with the order it refers to.
func TestProbesShareARecording(t *testing.T) {
	r := read(t, lobsterFile, "x.csv", Lobster)
	for probes := 1; probes <= 3; probes++ {
		total, most := int64(0), int64(0)
		for probe := range probes {
			p := replay(r, 1)
			p.Probe, p.Probes = probe, probes
			s := schedule(t, p)
			checkChanges(t, s)
			total, most = total+s.Messages().Len(), max(most, s.Messages().Len())
		}
		all, largest := r.Count(1, 0, time.Minute, probes)
		if total != 4 || all != 4 || largest != most {
			t.Errorf("%d probes: %d messages, counted %d; largest share %d, counted %d", probes, total, all, most, largest)
		}
	}
}

func TestReadIsBounded(t *testing.T) {
	r, err := Read(strings.NewReader(lobsterFile), "x.csv", Lobster, 2)
	if err != nil || r.Messages() != 2 || !r.Cut {
		t.Errorf("%v, %+v", err, r)
	}
	if _, err := Read(strings.NewReader(strings.Repeat("7", maxLine+1)), "x.csv", Lobster, 2); err == nil || !strings.Contains(err.Error(), "line 1: length") {
		t.Errorf("endless line: %v", err)
	}
	if _, err := Read(strings.NewReader("x"), "x", FIXLog, 0); err == nil || !strings.Contains(err.Error(), "max-messages 0: must be") {
		t.Errorf("no messages allowed: %v", err)
	}
}

func TestReadRefuses(t *testing.T) {
	const good = "8=FIX.4.2|35=D|52=20260102-14:30:00|11=a|55=IBM|54=1|38=1|40=2|44=1|"
	with := func(old, by string) string { return strings.Replace(good, old, by, 1) }
	for name, c := range map[string]struct {
		format Format
		text   string
		want   []string // parts of the error
	}{
		"empty":             {Lobster, "", []string{"no order in it"}},
		"only executions":   {Lobster, "1,4,1,1,1,1\n", []string{"no order in it (1 lines skipped)"}},
		"columns few":       {Lobster, "1,1,1,1,1\n", []string{"line 1", `number of columns is "5"`, "time,type,order id,size,price,direction"}},
		"columns many":      {Lobster, "1,1,1,1,1,1,1\n", []string{`"7"`}},
		"binary":            {Lobster, "\x00\xff\xfe", []string{"line 1", "number of columns"}},
		"time":              {Lobster, "1e4,1,1,1,1,1\n", []string{`time is "1e4"`, "0 to 172800"}},
		"time negative":     {Lobster, "-1,1,1,1,1,1\n", []string{`time is "-1"`}},
		"time point":        {Lobster, "1.,1,1,1,1,1\n", []string{`time is "1."`}},
		"time huge":         {Lobster, "172801,1,1,1,1,1\n", []string{`time is "172801"`}},
		"time back":         {Lobster, "2,1,1,1,1,1\n1,1,2,1,1,1\n", []string{"line 2", "not before"}},
		"type":              {Lobster, "1,8,1,1,1,1\n", []string{`type is "8"`, "1 new"}},
		"order id":          {Lobster, "1,1,-5,1,1,1\n", []string{`order id is "-5"`}},
		"order id alive":    {Lobster, "1,1,5,1,1,1\n1,1,5,1,1,1\n", []string{"line 2", "of a live order"}},
		"size zero":         {Lobster, "1,1,1,0,1,1\n", []string{`size is "0"`}},
		"size huge":         {Lobster, "1,1,1,99999999999,1,1\n", []string{"size is"}},
		"price":             {Lobster, "1,1,1,1,1.5,1\n", []string{`price is "1.5"`, "1/10,000"}},
		"direction":         {Lobster, "1,1,1,1,1,0\n", []string{`direction is "0"`, "-1 for a sell"}},
		"text":              {FIXLog, "hello\n", []string{"no order in it (1 lines skipped)"}},
		"no type":           {FIXLog, with("35=D|", ""), []string{"MsgType (35)", "required"}},
		"not tag=value":     {FIXLog, with("40=2", "order type two"), []string{"field is", "tag=value"}},
		"no time":           {FIXLog, with("52=20260102-14:30:00|", ""), []string{"TransactTime (60)", "in 52 or 60"}},
		"time of day":       {FIXLog, with("20260102-14:30:00", "14:30:00"), []string{`SendingTime (52) is "14:30:00"`}},
		"month":             {FIXLog, with("20260102", "20261302"), []string{"SendingTime (52)"}},
		"minutes back":      {FIXLog, good + "\n" + strings.Replace(with("14:30:00", "14:25:00"), "11=a", "11=b", 1), []string{"line 2", "at most 1s before"}},
		"days later":        {FIXLog, good + "\n" + strings.Replace(with("20260102", "20260202"), "11=a", "11=b", 1), []string{"line 2", "48 hours"}},
		"no id":             {FIXLog, with("11=a|", ""), []string{"ClOrdID (11)"}},
		"id alive":          {FIXLog, good + "\n" + good, []string{"line 2", "of a live order"}},
		"no symbol":         {FIXLog, with("55=IBM|", ""), []string{"symbol", "1 to 16"}},
		"symbol with space": {FIXLog, with("IBM", "I B"), []string{`symbol is "I B"`}},
		"side":              {FIXLog, with("54=1", "54=B"), []string{`Side (54) is "B"`}},
		"no order type":     {FIXLog, with("40=2|", ""), []string{"OrdType (40)"}},
		"quantity":          {FIXLog, with("38=1", "38=0.5"), []string{`OrderQty (38) is "0.5"`}},
		"quantity negative": {FIXLog, with("38=1", "38=-1"), []string{"OrderQty (38)"}},
		"price negative":    {FIXLog, with("44=1", "44=-1"), []string{"Price (44)", "0.0001"}},
		"price words":       {FIXLog, with("44=1", "44=.."), []string{"Price (44)"}},
		"cancel of nothing": {FIXLog, good + "\n" + strings.Replace(with("35=D", "35=F"), "11=a", "11=b", 1), []string{"OrigClOrdID (41)"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.text), "rec", c.format, 100)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q lacks %q", err, part)
				}
			}
			var line *LineError
			if strings.Contains(err.Error(), "line ") && !errors.As(err, &line) {
				t.Errorf("%v is no LineError", err)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add(lobsterFile, false)
	f.Add(fixFile, true)
	f.Add("1,1,1,1,1,1\n1,2,1,1,1,1\n", false)
	f.Add("8=FIX|35=G|41=|", true)
	f.Fuzz(func(t *testing.T, text string, isFIX bool) {
		format := Lobster
		if isFIX {
			format = FIXLog
		}
		r, err := Read(strings.NewReader(text), "fuzz", format, 50)
		if err != nil {
			return
		}
		if r.Messages() < 1 || r.Messages() > 50 || r.Span() < 0 {
			t.Fatalf("%d messages over %v", r.Messages(), r.Span())
		}
		for probe := range 2 {
			p := replay(r, 8)
			p.Probe, p.Probes, p.Measure = probe, 2, 48*time.Hour
			checkChanges(t, schedule(t, p))
		}
	})
}
