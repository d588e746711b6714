package ws

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// greek is text of characters of two and three bytes.
const greek = "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5"

// utf8 is section 6. Its texts from 6.5 on are those of Markus Kuhn's "UTF-8 decoder capability and stress test"; which of
// them are valid is said here.
func (a *autobahn) utf8() {
	const mixed = "Hello-µ@ßöäüàá-UTF-8!!"
	a.add("6.1.1: empty text", in(text("")), "1 ")
	a.add("6.1.2: three empty fragments", in(first(""), more(""), last("")), "1 ")
	a.add("6.1.3: empty ends", in(first(""), more("middle"), last("")), "1 middle")
	a.add("6.2.1: UTF-8", in(text(mixed)), "1 "+mixed)
	a.add("6.2.2: UTF-8 cut between characters", in(first(mixed[:15]), last(mixed[15:])), "1 "+mixed)
	a.add("6.2.3: UTF-8 byte by byte", fragments(1, mixed, 1), "1 "+mixed)
	a.add("6.2.4: Greek byte by byte", fragments(1, greek, 1), "1 "+greek)
	const edited = greek + "\xed\xa0\x80edited"
	a.add("6.3.1: invalid UTF-8", in(text(edited)), "fail 1007")
	a.add("6.3.2: invalid UTF-8 byte by byte", fragments(1, edited, 1), "fail 1007")
	// The suite also looks when they fail, which may be at the end of the message.
	a.add("6.4.1 6.4.3: invalid from the second part on", in(first(greek), more("\xf4\x90\x80\x80"), last("edited")), "fail 1007")
	a.add("6.4.2 6.4.4: invalid from a byte on", in(first(greek+"\xf4"), more("\x90"), last("\x80\x80edited")), "fail 1007")
	lonely := func(from, behind byte) (s string) {
		for c := from; c < behind; c++ {
			s += string([]byte{c, ' '})
		}
		return s
	}
	short := []string{"\xc0", "\xe0\x80", "\xf0\x80\x80", "\xf8\x80\x80\x80", "\xfc\x80\x80\x80\x80", "\xdf", "\xef\xbf", "\xf7\xbf\xbf", "\xfb\xbf\xbf\xbf", "\xfd\xbf\xbf\xbf\xbf"}
	continuations := ""
	for c := 0x80; c < 0xbf; c++ {
		continuations += string([]byte{byte(c)})
	}
	for _, s := range []struct {
		section int
		what    string
		valid   bool
		texts   []string
		from    int // the number of the first
	}{
		{5, "valid", true, []string{"hello$world", "hello¢world", "hello€world", "hello𤭢world", greek}, 1},
		{7, "first of a length", true, []string{"\x00", "\xc2\x80", "\xe0\xa0\x80", "\xf0\x90\x80\x80"}, 1},
		{8, "first of five and six bytes", false, []string{"\xf8\x88\x80\x80\x80", "\xfc\x84\x80\x80\x80\x80"}, 1},
		{9, "last of a length", true, []string{"\x7f", "\xdf\xbf", "\xef\xbf\xbf", "\xf4\x8f\xbf\xbf"}, 1},
		{10, "last of four to six bytes", false, []string{"\xf7\xbf\xbf\xbf", "\xfb\xbf\xbf\xbf\xbf", "\xfd\xbf\xbf\xbf\xbf\xbf"}, 1},
		{11, "at a boundary", true, []string{"\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbd", "\xf4\x8f\xbf\xbf"}, 1},
		{11, "behind the last", false, []string{"\xf4\x90\x80\x80"}, 5},
		{12, "continuation bytes", false, []string{"\x80", "\xbf", "\x80\xbf", "\x80\xbf\x80", "\x80\xbf\x80\xbf", "\x80\xbf\x80\xbf\x80", "\x80\xbf\x80\xbf\x80\xbf", continuations}, 1},
		{13, "lonely starts", false, []string{lonely(0xc0, 0xdf), lonely(0xe0, 0xef), lonely(0xf0, 0xf7), lonely(0xf8, 0xfb), lonely(0xfc, 0xfd)}, 1},
		{14, "cut short", false, short, 1},
		{15, "all cut short", false, []string{strings.Join(short, "")}, 1},
		{16, "impossible bytes", false, []string{"\xfe", "\xff", "\xfe\xfe\xff\xff"}, 1},
		{17, "overlong slash", false, []string{"\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xf8\x80\x80\x80\xaf", "\xfc\x80\x80\x80\x80\xaf"}, 1},
		{18, "the longest overlong", false, []string{"\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf8\x87\xbf\xbf\xbf", "\xfc\x83\xbf\xbf\xbf\xbf"}, 1},
		{19, "overlong NUL", false, []string{"\xc0\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80", "\xf8\x80\x80\x80\x80", "\xfc\x80\x80\x80\x80\x80"}, 1},
		{20, "surrogate", false, []string{"\xed\xa0\x80", "\xed\xad\xbf", "\xed\xae\x80", "\xed\xaf\xbf", "\xed\xb0\x80", "\xed\xbe\x80", "\xed\xbf\xbf"}, 1},
		{21, "pair of surrogates", false, pairs(), 1},
		{22, "no character", true, nonCharacters(), 1},
		{23, "special", true, []string{"\uFFF9", "\uFFFA", "\uFFFB", "\uFFFC", "\uFFFD", "\uFFFE", "\uFFFF"}, 1},
	} {
		for i, payload := range s.texts {
			want := "fail 1007"
			if s.valid {
				want = "1 " + payload
			}
			a.add(fmt.Sprintf("6.%d.%d: %s", s.section, s.from+i, s.what), in(text(payload)), want)
		}
	}
	for i := range len(greek) {
		want := "fail 1007"
		if utf8.RuneStart((greek + "x")[i+1]) {
			want = "1 " + greek[:i+1]
		}
		a.add(fmt.Sprintf("6.6.%d: the first %d bytes of text", i+1, i+1), in(text(greek[:i+1])), want)
	}
}

// pairs are those of surrogates.
func pairs() (list []string) {
	for _, high := range []string{"\xed\xa0\x80", "\xed\xad\xbf", "\xed\xae\x80", "\xed\xaf\xbf"} {
		list = append(list, high+"\xed\xb0\x80", high+"\xed\xbf\xbf")
	}
	return list
}

// nonCharacters are the last two code points of each plane.
func nonCharacters() (list []string) {
	for plane := rune(0); plane <= 0x10; plane++ {
		list = append(list, string(plane<<16|0xfffe), string(plane<<16|0xffff))
	}
	return list
}
